"""Large data: one pass for many replicates gives lines 2 to 5 of Algorithm 1, replicate by replicate."""

from dataclasses import replace

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal.engines.local import packed_problem
from hullcal.nulls import _passes
from hullcal.nulls.paper import Paper
from hullcal.sets import ClassifierSet
from hullcal.simulation.protocols import RightClosedECE

MEASURES = [
    hc.ConfidenceECE(n_bins=1),
    hc.ConfidenceECE(n_bins=10),
    RightClosedECE(n_bins=5),
    hc.ConfidenceECE(n_bins=1, smooth=True),
    hc.ConfidenceECE(n_bins=10, smooth=True),
    hc.ClasswiseECE(n_bins=3),
    hc.ClasswiseECE(n_bins=10),
]
IDS = [f"{type(one).__name__}({one.n_bins}{', smooth' * one.smooth})" for one in MEASURES]


def predictions(n_samples, n_members, n_classes, sharpness=2.0, seed=0):
    rng = np.random.default_rng(seed)
    shared = 2 * sharpness * rng.normal(size=(n_samples, 1, n_classes))
    logits = shared + sharpness * rng.normal(size=(n_samples, n_members, n_classes))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    return probs / probs.sum(axis=2, keepdims=True)


def objective_of(probs, measure):
    labels = np.zeros(len(probs), dtype=np.int32)
    return packed_problem(ClassifierSet(probs), labels, measure).objective


def some_draws(objective, n_replicates, seed=1):
    """Weights (the first replicate is a vertex, the second has zeros), rows and levels."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(objective.n_members), size=n_replicates)
    weights[0] = np.eye(objective.n_members)[-1]
    weights[1, 1:-1] = 0.0
    weights[1] /= weights[1].sum()
    size = (n_replicates, objective.n_samples)
    rows = rng.integers(objective.n_samples, size=size).astype(np.uint32)
    # Few rows, many copies.
    rows[2] %= 3
    return weights, rows, rng.random(size)


def literally(objective, weights, rows, levels):
    """Mix everything, look up every label, and fill every cell, one probability after the other."""
    mixed = np.einsum("m,mkn->nk", weights, objective.members)[rows]
    running = np.cumsum(mixed, axis=1)
    labels = [
        np.searchsorted(sums[:-1], level * sums[-1], side="right")
        for sums, level in zip(running, levels, strict=True)
    ]
    measure = objective.measure
    n_samples, n_classes = mixed.shape
    inner = np.arange(1, measure.n_bins) / measure.n_bins
    side = "left" if isinstance(measure, RightClosedECE) else "right"
    if measure.smooth:
        value = getattr(oracles, measure.name)
        return value(mixed, np.array(labels), measure.n_bins)
    gaps = np.zeros((n_classes, measure.n_bins))
    for p, label in zip(mixed, labels, strict=True):
        if isinstance(measure, hc.ConfidenceECE):
            top = int(np.argmax(p))
            gaps[0, np.searchsorted(inner, p[top], side=side)] += (label == top) - p[top]
        else:
            for k in range(n_classes):
                gaps[k, np.searchsorted(inner, p[k], side=side)] += (label == k) - p[k]
    total = np.abs(gaps).sum() / n_samples
    return total if isinstance(measure, hc.ConfidenceECE) else total / n_classes


def all_literally(objective, *draws):
    return [literally(objective, *one) for one in zip(*draws, strict=True)]


@pytest.mark.parametrize("measure", MEASURES, ids=IDS)
@pytest.mark.parametrize("n_members", [2, 5, 7])
@pytest.mark.parametrize("n_classes", [50, 257])
def test_a_pass_over_entries_is_algorithm_1(measure, n_members, n_classes):
    objective = objective_of(predictions(90, n_members, n_classes), measure)
    assert objective.entries is not None
    draws = some_draws(objective, 7)
    found = _passes.evaluate(objective, *draws)
    np.testing.assert_allclose(found, all_literally(objective, *draws), rtol=0, atol=1e-13)
    assert len(set(found)) == 7


@pytest.mark.parametrize(
    "measure",
    [*MEASURES, hc.ClasswiseECE(n_bins=3, smooth=True)],
    ids=[*IDS, "ClasswiseECE(3, smooth)"],
)
def test_a_pass_over_all_predictions_is_algorithm_1(measure):
    objective = replace(objective_of(predictions(90, 3, 50), measure), entries=None)
    draws = some_draws(objective, 5)
    found = _passes.evaluate(objective, *draws)
    np.testing.assert_allclose(found, all_literally(objective, *draws), rtol=0, atol=1e-13)


@pytest.mark.parametrize("measure", MEASURES, ids=IDS)
def test_certainty_and_impossibility_are_drawn_as_such(measure):
    # Every member is sure, mostly of the same class: no other label may ever come up.
    rng = np.random.default_rng(3)
    chosen = rng.choice([0, 1, 30, 58, 59], size=(80, 4))
    chosen[:60] = chosen[:60, :1]
    objective = objective_of(np.eye(60)[chosen], measure)
    assert objective.entries is not None
    weights, rows, levels = some_draws(objective, 6)
    levels[:, ::7] = 0.0
    # Dyadic weights and levels make every sum exact: a level may equal a running sum.
    weights[3:] = [0.25, 0.25, 0.5, 0.0]
    levels[3:] = rng.integers(8, size=levels[3:].shape) / 8
    found = _passes.evaluate(objective, weights, rows, levels)
    expected = all_literally(objective, weights, rows, levels)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_a_label_without_an_entry_counts_in_the_first_bin_of_its_class():
    # By hand: class 0 has 0.95 everywhere and 59 others share the rest; all labels are the last class.
    probs = np.full((100, 2, 60), 0.05 / 59)
    probs[:, :, 0] = 0.95
    probs[:, 1, :3] = 0.95, 0.0, 0.1 / 59
    objective = objective_of(probs, hc.ClasswiseECE(n_bins=10))
    assert set(objective.entries.classes) == {0}
    rows = np.arange(100, dtype=np.uint32)[np.newaxis]
    found = _passes.evaluate(objective, np.array([[0.5, 0.5]]), rows, np.full((1, 100), 0.99999))
    # Class 0 claims 0.95 too much, the last one 1 - p too little, the others the rest too much.
    claimed = 0.05 / 59
    np.testing.assert_allclose(found, [(0.95 + (1 - claimed) + 0.05 - claimed) / 60], atol=1e-14)


@pytest.mark.parametrize("measure", MEASURES, ids=IDS)
@pytest.mark.parametrize("with_entries", [True, False])
def test_a_replicate_alone_has_the_bits_it_has_among_others(measure, with_entries, monkeypatch):
    objective = objective_of(predictions(150, 6, 64), measure)
    if not with_entries:
        objective = replace(objective, entries=None)
    draws = some_draws(objective, 40)
    together = _passes.evaluate(objective, *draws)
    alone = [_passes.evaluate(objective, *(part[r : r + 1] for part in draws)) for r in range(40)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    order = np.random.default_rng(0).permutation(40)
    shuffled = _passes.evaluate(objective, *(part[order] for part in draws))
    np.testing.assert_array_equal(together[order], shuffled)
    if with_entries:
        monkeypatch.setattr(_passes, "_TURNED", 1)
        monkeypatch.setattr(_passes, "_FEWEST_ROWS", 7)
        np.testing.assert_array_equal(together, _passes.evaluate(objective, *draws))


def test_what_was_drawn_is_left_as_it_was():
    for entries in (True, False):
        objective = objective_of(predictions(60, 3, 50), hc.ClasswiseECE())
        objective = objective if entries else replace(objective, entries=None)
        draws = some_draws(objective, 3)
        kept = [part.copy() for part in draws]
        _passes.evaluate(objective, *draws)
        for part, before in zip(draws, kept, strict=True):
            np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("measure", MEASURES[1:], ids=IDS[1:])
def test_an_offset_is_subtracted(measure):
    objective = objective_of(predictions(60, 3, 50), measure)
    offset = np.random.default_rng(5).normal(size=objective.offset.shape) / 100
    moved = replace(objective, offset=offset)
    draws = some_draws(moved, 4)
    whole = _passes.evaluate(replace(moved, entries=None), *draws)
    np.testing.assert_allclose(_passes.evaluate(moved, *draws), whole, rtol=0, atol=1e-13)
    assert (np.abs(whole - _passes.evaluate(objective, *draws)) > 1e-6).all()


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
@pytest.mark.parametrize("rows", ["resampled", "permuted"])
def test_the_test_is_the_same_in_passes_over_entries(measure, rows, monkeypatch):
    probs, labels = predictions(120, 4, 60), np.arange(120) % 60
    settings = {"measure": measure, "null": Paper(rows=rows), "n_resamples": 39, "rng": 0}
    one_by_one = hc.calibration_test(probs, labels, **settings)
    calls = []

    def evaluate(*arguments):
        calls.append(arguments)
        return _passes.evaluate(*arguments)

    monkeypatch.setattr(_passes, "_LARGE", 1)
    monkeypatch.setattr("hullcal.nulls.paper.evaluate", evaluate)
    found = hc.calibration_test(probs, labels, **settings)
    on_threads = hc.calibration_test(probs, labels, n_jobs=2, **settings)
    assert len(calls) > 1
    np.testing.assert_allclose(
        found.null_distribution, one_by_one.null_distribution, rtol=0, atol=1e-14
    )
    np.testing.assert_array_equal(found.null_distribution, on_threads.null_distribution)


def test_passes_are_worth_while_sooner_where_entries_will_do():
    objective = objective_of(predictions(2_100, 2, 50, sharpness=4.0), hc.ClasswiseECE())
    assert _passes.work_of(objective) is not None
    assert _passes.work_of(replace(objective, entries=None)) is None
    fewer_rows = objective_of(predictions(2_000, 2, 50, sharpness=4.0), hc.ClasswiseECE())
    assert _passes.work_of(fewer_rows) is None
    fewer_classes = objective_of(predictions(2_200, 2, 49, sharpness=4.0), hc.ClasswiseECE())
    assert fewer_classes.entries is not None
    assert _passes.work_of(fewer_classes) is None
    # Pairs of neighbours do not add up row by row.
    pairs = replace(objective, measure=hc.SKCE(estimator="ul"))
    assert pairs.measure.halves_agree()
    assert _passes.work_of(pairs) is None
