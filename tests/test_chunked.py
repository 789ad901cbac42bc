"""Data too large to be packed are read where they are: the same numbers, whatever the threads.

Passes over the rows are asked for at any size here, with small ranges. They are compared with what is
packed in memory, and both with the paper's formulas spelled out.
"""

import json
import math
import os
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import minimizers
from hullcal._compiled import streams
from hullcal._compiled.drawn_rows import LEAF, leaf_draws
from hullcal._compiled.jit import is_compiled
from hullcal.kernels import ExponentialTV
from hullcal.minimizers import Steepest
from hullcal.nulls import Paper
from hullcal.objectives import chunked, opening
from hullcal.objectives.base import Objective
from hullcal.sets import ClassifierSet
from hullcal.simulation.protocols import RightClosedECE
from simulation import judged

NULLS = {
    "paper": "paper",
    "permuted": Paper(rows="permuted"),
    "recentered": "recentered",
    "refit": "refit",
}
CASES = [
    *((measure, null) for measure in ("ece_conf", "ece_cwise") for null in NULLS),
    *(("skce_ul", null) for null in ("recentered", "refit")),
]
#: Other bins and kernels of fixed bandwidth; the null whose function of the weights is no measure.
MORE = [
    (hc.ConfidenceECE(n_bins=1), "paper"),
    (hc.ClasswiseECE(n_bins=3, smooth=True), "recentered"),
    (RightClosedECE(n_bins=7), "paper"),
    (hc.SKCE(kernel="gaussian", bandwidth=0.3), "refit"),
    ("ece_conf", "maximized"),
]
OPTIONS = {"minimizer": Steepest(max_evaluations=20), "n_resamples": 9, "alpha": 0.5, "rng": 3}


def data(n_samples, n_members, n_classes, seed=0):
    """Members that differ, and labels from the first but for one in five rows."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n_samples, 1, n_classes))
    logits = logits + rng.normal(size=(n_samples, n_members, n_classes))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    labels = oracles.draw_labels(rng, probs[:, 0])
    others = rng.integers(n_classes, size=n_samples)
    return probs, np.where(rng.random(n_samples) < 0.2, others, labels)


@contextmanager
def streaming(rows_in_range=2 * LEAF):
    """Passes over the rows at any size; nothing may be packed."""

    def packed(*_):
        raise AssertionError("these data are to be streamed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "_MANY_ROWS", 0)
        patch.setattr(opening, "_LARGE", 0)
        patch.setattr(opening, "packed", packed)
        patch.setattr(chunked, "_RANGE", rows_in_range)
        yield


def streamed(*args, rows_in_range=2 * LEAF, **options):
    with streaming(rows_in_range):
        return packed(*args, **options)


def packed(*args, **options):
    return judged(*args, **(OPTIONS | options))


def assert_same(found, expected, *, atol=1e-12):
    for name in ("statistic", "minimum", "weights", "null_distribution"):
        got, wanted = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=atol, err_msg=name)
    for name in ("pvalue", "n_evaluations", "converged", "rejected", "seed", "notes", "settings"):
        assert getattr(found, name) == getattr(expected, name), name


def assert_same_bits(found, expected):
    assert found.to_dict() == expected.to_dict()
    assert found.null_distribution.tobytes() == expected.null_distribution.tobytes()
    assert found.weights.tobytes() == expected.weights.tobytes()


def both_ways(*args, rows_in_range=2 * LEAF, **options):
    """What is found over blocks, which must be what is found in memory."""
    found = streamed(*args, rows_in_range=rows_in_range, **options)
    assert_same(found, packed(*args, **options))
    return found


# Against what is packed in memory ----------------------------------------------------------------


@pytest.mark.parametrize(("measure", "null"), CASES)
@pytest.mark.parametrize(
    ("n_samples", "n_members", "n_classes"),
    [(2_049, 4, 3), (5_003, 2, 2), (2_051, 1, 4), (6_145, 3, 30)],
)
def test_a_test_over_blocks_is_the_one_in_memory(measure, null, n_samples, n_members, n_classes):
    probs, labels = data(n_samples, n_members, n_classes)
    found = both_ways(probs, labels, measure=measure, null=NULLS[null])
    assert len(set(found.null_distribution)) == 9


@pytest.mark.parametrize(("measure", "null"), MORE)
def test_any_bins_and_any_kernel_of_fixed_bandwidth_will_do(measure, null):
    search = Steepest(max_evaluations=12)
    both_ways(*data(2_049, 3, 3), measure=measure, null=null, minimizer=search)


THREE = [("ece_conf", "paper"), ("skce_ul", "recentered"), ("ece_cwise", "refit")]


@pytest.mark.parametrize("n_samples", [2, 3, 17, 1_023, 1_024, 1_025, 2_048, 4_097])
@pytest.mark.parametrize(("measure", "null"), THREE)
@pytest.mark.filterwarnings("ignore:.*rows are fewer:hullcal.HullcalWarning")
def test_no_number_of_rows_is_special(n_samples, measure, null):
    both_ways(*data(n_samples, 3, 3, seed=n_samples), measure=measure, null=null)


@pytest.mark.parametrize(("measure", "null"), CASES)
def test_identical_members_are_one(measure, null):
    probs, labels = data(2_049, 2, 3)
    options = {"measure": measure, "null": NULLS[null]}
    found = both_ways(probs[:, [1, 0, 1, 1]], labels, **options)
    assert found.weights[0] == pytest.approx(found.weights[2], abs=1e-15)
    both_ways(probs[:, [1, 1]], labels, **options)


@pytest.mark.parametrize("null", NULLS)
def test_rows_that_no_member_gives_a_chance_are_left_out_and_told(null):
    probs, labels = data(2_049, 3, 3)
    for n in (0, 1_023, 1_024, 2_047, 2_048):
        probs[n, :, labels[n]] = 0.0
        probs[n] /= probs[n].sum(axis=1, keepdims=True)
    found = both_ways(probs, labels, null=NULLS[null])
    note = hc.notes.Note("impossible", {"n_rows": 5, "refutes": null == "refit"})
    assert note in found.notes
    # Where nobody gives any label a chance, likelihoods leave the weights at the mean.
    probs = np.array([[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]] * 2_049)
    both_ways(probs, np.full(2_049, 2), null=NULLS[null])


@pytest.mark.parametrize(
    "search",
    [
        minimizers.Random(max_evaluations=7),
        minimizers.Cobyla(max_evaluations=4),
        Steepest(max_evaluations=1),
        Steepest(max_evaluations=2),
        Steepest(max_evaluations=150),
    ],
    ids=lambda search: f"{search.name}-{search.max_evaluations}",
)
@pytest.mark.parametrize("measure", ["ece_conf", "skce_ul"])
@pytest.mark.parametrize("null", ["recentered", "refit"])
def test_every_search_goes_over_blocks(search, measure, null):
    # COBYLA's planes, which come after four evaluations, make another path of the last bits of a sum.
    options = {"measure": measure, "null": null, "minimizer": search, "n_resamples": 4}
    both_ways(*data(2_049, 3, 3, seed=19), **options)


# Against the formulas --------------------------------------------------------------------------

G = {"ece_conf": oracles.ece_conf, "ece_cwise": oracles.ece_cwise, "skce_ul": oracles.skce_ul}
RESIDUAL = {
    "ece_conf": oracles.residual_ece_conf,
    "ece_cwise": oracles.residual_ece_cwise,
    "skce_ul": oracles.skce_ul,
}
#: The mean and the two members are all the points that a search visits.
CORNERS = [(0.5, 0.5), (1.0, 0.0), (0.0, 1.0)]
THREE_POINTS = minimizers.Random(max_evaluations=3)


def two_members(n_samples=2_049):
    """Two members in the order in which the package keeps them: by their traits."""
    probs, labels = data(n_samples, 2, 3, seed=8)
    traits = (probs * (probs + np.sqrt(probs.mean(axis=1, keepdims=True)))).sum(axis=(0, 2))
    return np.ascontiguousarray(probs[:, np.argsort(traits)]), labels


def literal_rows(key, replicate, n_samples, rows_per_unit=1):
    """Units drawn with replacement: so many from each leaf, then draw by draw; in order of leaves."""
    n_units, rows = n_samples // rows_per_unit, []
    (draws,) = leaf_draws(key, np.array([replicate]), n_units)
    for leaf, n_draws in enumerate(draws):
        size = min(LEAF, n_units - leaf * LEAF)
        for draw in range(n_draws):
            level = streams.uniform(key, streams.ROWS, replicate, draw, leaf)
            first = rows_per_unit * (leaf * LEAF + int(level * size))
            rows.extend(range(first, first + rows_per_unit))
    return rows


def literal_paper(probs, g, key, replicate, *, permuted):
    """Lines 2 to 5."""
    n, m, _ = probs.shape
    rows = range(n) if permuted else sorted(literal_rows(key, replicate, n))
    exponentials = [
        -math.log1p(-streams.uniform(key, streams.WEIGHTS, replicate, j, 0)) for j in range(m)
    ]
    mixed = oracles.mixture(probs, [e / sum(exponentials) for e in exponentials])
    labels, copies = [], dict.fromkeys(range(n), 0)
    for row in rows:
        level = streams.uniform(key, streams.LABELS, replicate, row, copies[row])
        copies[row] += 1
        labels.append(oracles.label_at(mixed[row], level))
    return g(mixed[list(rows)], np.array(labels))


@pytest.mark.parametrize("null", ["paper", "permuted"])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
def test_lines_1_to_7_against_their_transcription(measure, null):
    probs, labels = two_members()
    options = {"measure": measure, "null": NULLS[null], "minimizer": THREE_POINTS}
    found = streamed(probs, labels, n_resamples=4, **options)
    g, key, permuted = G[measure], streams.key_of(3), null == "permuted"
    expected = [literal_paper(probs, g, key, d, permuted=permuted) for d in range(4)]
    np.testing.assert_allclose(found.null_distribution, expected, rtol=0, atol=1e-12)
    values = [g(oracles.mixture(probs, weights), labels) for weights in CORNERS]
    assert found.statistic == pytest.approx(min(values), abs=1e-12)
    np.testing.assert_array_equal(found.weights, CORNERS[int(np.argmin(values))])
    assert found.pvalue == oracles.p_value(min(values), expected)


@pytest.mark.parametrize("null", ["recentered", "refit"])
@pytest.mark.parametrize("measure", G)
def test_searched_replicates_against_their_transcription(measure, null):
    probs, labels = two_members()
    options = {"measure": measure, "null": null, "minimizer": THREE_POINTS, "n_resamples": 3}
    found = streamed(probs, labels, **options)
    g, mixed = G[measure], [oracles.mixture(probs, weights) for weights in CORNERS]
    best = min(mixed, key=lambda one: g(one, labels))
    likeliest = oracles.mixture(probs, oracles.em_weights(probs, labels))
    offset, key, expected = RESIDUAL[measure](best, labels), streams.key_of(3), []
    for d in range(3):
        if null == "refit":
            levels = [streams.uniform(key, streams.LABELS, d, n, 0) for n in range(len(labels))]
            drawn = np.array(list(map(oracles.label_at, likeliest, levels)))
            expected.append(min(g(one, drawn) for one in mixed))
        else:
            rows = literal_rows(key, d, len(labels), 2 if measure == "skce_ul" else 1)
            drawn = labels[rows]
            expected.append(
                min(oracles.recentered_value(measure, one[rows], drawn, offset) for one in mixed)
            )
    np.testing.assert_allclose(found.null_distribution, expected, rtol=0, atol=1e-12)
    assert found.statistic == found.minimum == pytest.approx(g(best, labels), abs=1e-12)


# Whatever holds the data, and whoever passes over them -----------------------------------------


def dyadic(n_samples=2_049, n_members=3, n_classes=4):
    """Sixty-fourths, which every type can hold."""
    rng = np.random.default_rng(4)
    probs = rng.multinomial(64, np.full(n_classes, 1 / n_classes), size=(n_samples, n_members)) / 64
    return probs, rng.integers(n_classes, size=n_samples)


def mapped(probs, folder):
    np.save(folder / "probs.npy", probs)
    return np.load(folder / "probs.npy", mmap_mode="r")


HELD = {
    "float32": lambda probs, _: probs.astype(np.float32),
    "float16": lambda probs, _: probs.astype(np.float16),
    "big-endian": lambda probs, _: probs.astype(">f8"),
    "Fortran": lambda probs, _: np.asfortranarray(probs),
    "classes reversed": lambda probs, _: probs[:, :, ::-1].copy()[:, :, ::-1],
    "every other row": lambda probs, _: np.repeat(probs, 2, axis=0)[::2],
    "members first": lambda probs, _: probs.transpose(1, 0, 2).copy().transpose(1, 0, 2),
    "memory map": mapped,
    "read-only": lambda probs, _: np.frombuffer(probs.tobytes()).reshape(probs.shape),
    "list of members": lambda probs, _: list(probs.transpose(1, 0, 2)),
    "set": lambda probs, _: ClassifierSet(probs),
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("null", ["paper", "recentered"])
def test_the_layout_and_the_type_of_the_array_change_nothing(held, null, tmp_path):
    probs, labels = dyadic()
    given = HELD[held](probs, tmp_path)
    kept = given.probs if held == "set" else given
    before = np.array(kept)
    found = both_ways(given, labels, null=null, n_resamples=4)
    assert np.array(kept).tobytes() == before.tobytes()
    assert_same_bits(found, streamed(probs, labels, null=null, n_resamples=4))


@pytest.mark.parametrize(("measure", "null"), CASES)
def test_neither_threads_nor_what_a_pass_returns_change_a_bit(measure, null, monkeypatch):
    probs, labels = data(9_001, 3, 3)
    options = {"measure": measure, "null": NULLS[null], "n_resamples": 20}
    expected = streamed(probs, labels, **options)
    for n_jobs in (2, 3):
        assert_same_bits(streamed(probs, labels, n_jobs=n_jobs, **options), expected)
    monkeypatch.setattr(chunked, "_SUMS", 1_000)
    monkeypatch.setattr(chunked, "TOGETHER", 3)
    assert_same_bits(streamed(probs, labels, **options), expected)


@pytest.mark.parametrize(
    ("rows_in_range", "in_cache"),
    [(2, 1_000), (100, 40), (1_000, 1), (LEAF, 2**16), (3 * LEAF + 2, 1_000), (2**16, 2**16)],
)
@pytest.mark.parametrize(("measure", "null"), THREE)
def test_ranges_and_blocks_of_any_size_give_the_same_numbers(
    rows_in_range, in_cache, measure, null, monkeypatch
):
    # Many members and classes leave room for a pair of rows in a block, and no less.
    monkeypatch.setattr(chunked, "_IN_CACHE", in_cache)
    probs, labels = data(2_049 if rows_in_range > 2 else 301, 2, 3)
    options = {"measure": measure, "null": null, "n_resamples": 4}
    both_ways(probs, labels, rows_in_range=rows_in_range, **options)


def test_ranges_grow_with_the_data_and_stay_even():
    for n_samples in (1, 2**18, 2**21, 2**21 + 1, 10**8, 10**9 + 7):
        size = chunked.range_size(n_samples)
        assert size % (2 * LEAF) == 0
        assert -(-n_samples // size) <= chunked._RANGES
    assert chunked.range_size(2**21) == chunked._RANGE
    assert chunked.range_size(2**21 + 1) == 2 * chunked._RANGE


# Answers and searches --------------------------------------------------------------------------


def both(measure, probs, labels):
    """The same objective over blocks and in memory."""
    classifiers, labels = ClassifierSet(probs), labels.astype(np.int32)
    g, distinct = hc.measures.resolve(measure), classifiers.distinct
    passes = chunked.ArrayPasses(probs, labels, distinct.positions, n_jobs=2)
    over_blocks = chunked.Chunked.of(g, distinct.copies, passes)
    return over_blocks, opening.packed(classifiers, labels, g)


KEY = streams.key_of(7)


def centre(objective):
    """Weights of all members that are not all the same."""
    weights = np.arange(1.0, objective.n_members + 1.0)
    return weights / weights.sum()


KINDS = {
    "the data": lambda g: g,
    "drawn labels": lambda g: g.drawing_labels(centre(g), KEY)(2, 7),
    "drawn rows": lambda g: g.drawing_rows(KEY)(2, 7),
    "recentered rows": lambda g: g.recentered(centre(g)).drawing_rows(KEY)(2, 7),
}
STREAMING = [
    "ece_conf",
    "ece_cwise",
    "skce_ul",
    pytest.param(RightClosedECE(n_bins=7), id="right-closed"),
    pytest.param(hc.SKCE(kernel="gaussian", bandwidth=0.3), id="gaussian"),
]


def questions(objective):
    """Bases for cases in any order, some of them neighbours that share a base and its moves."""
    rng, n_members = np.random.default_rng(1), objective.n_members
    bases = rng.dirichlet(np.ones(n_members), size=12)
    bases[0] = np.eye(n_members)[0]
    bases[5:9] = bases[5]
    amounts = np.stack([np.full(bases.shape, 0.15), -np.minimum(0.05, bases / 2)], axis=2)
    amounts = amounts.reshape(12, 2 * n_members)
    # Nowhere to go, and the same base again with one move less.
    amounts[3, 2:5] = amounts[8, 1] = 0.0
    return bases, rng.integers(objective.n_cases, size=12), amounts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measure", STREAMING)
def test_answers_over_blocks_are_those_in_memory(measure, kind, monkeypatch):
    monkeypatch.setattr(chunked, "_RANGE", 2 * LEAF)
    over_blocks, in_memory = map(KINDS[kind], both(measure, *data(5_003, 4, 3)))
    assert over_blocks.n_cases == in_memory.n_cases == (1 if kind == "the data" else 5)
    bases, cases, amounts = questions(in_memory)
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-12)
    close(over_blocks.values(bases, cases), in_memory.values(bases, cases))
    close(over_blocks.at(centre(in_memory)), in_memory.at(centre(in_memory)))
    close(over_blocks.likeliest(), in_memory.likeliest())
    expected = in_memory.moves(bases, cases, amounts)
    np.testing.assert_array_equal(np.isinf(expected), amounts == 0.0)
    close(over_blocks.moves(bases, cases, amounts), expected)
    # A move leads where its points, mixed afresh, are.
    close(expected, Objective.moves(in_memory, bases, cases, amounts))
    assert len(np.unique(expected)) > 50


def counted(monkeypatch):
    """A list that grows with every pass over the rows."""
    begun, total = [], chunked.ArrayPasses.total

    def count(passes, job):
        begun.append(job)
        return total(passes, job)

    monkeypatch.setattr(chunked.ArrayPasses, "total", count)
    return begun


@pytest.mark.parametrize("n_members", [2, 3, 4, 10, 30])
@pytest.mark.parametrize("measure", STREAMING)
def test_a_search_over_blocks_takes_few_passes(measure, n_members, monkeypatch):
    passes = counted(monkeypatch)
    for seed in range(3):
        over_blocks, _ = both(measure, *data(3_001, n_members, 3, seed=seed))
        search = Steepest().budgeted(in_test=True)
        for kind in KINDS.values():
            objective, before = kind(over_blocks), len(passes)
            search.minimize(objective, KEY)
            assert 2 < len(passes) - before <= 8
        before = len(passes)
        search.minimize(over_blocks, KEY, of_data=True)
        assert 12 < len(passes) - before <= 40


# Interruptions, memory, and what never streams -------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("null", ["recentered", "refit", "paper"])
def test_an_interruption_ends_the_run(null, n_jobs, monkeypatch):
    passes, at = counted(monkeypatch), []

    def interrupt(done, total):
        at.append((len(passes), done, total))
        raise KeyboardInterrupt

    options = {"null": null, "n_resamples": 400, "n_jobs": n_jobs}
    with pytest.raises(KeyboardInterrupt):
        streamed(*data(5_003, 2, 3), progress=interrupt, **options)
    # It comes after a part of the replicates, and no further pass follows.
    ((n_passes, done, total),) = at
    assert len(passes) == n_passes
    assert 0 < done < total == 400


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interruption_within_a_pass_ends_it(n_jobs, monkeypatch):
    probs, labels = data(40 * 2 * LEAF, 2, 2)
    begun = []
    over = chunked.Job.over

    def interrupted(job, rows):
        begun.append(rows.first)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return over(job, rows)

    monkeypatch.setattr(chunked.Job, "over", interrupted)
    with pytest.raises(KeyboardInterrupt):
        streamed(probs, labels, null="paper", n_resamples=4, n_jobs=n_jobs)
    # However late the main thread hears of it: no more are begun than are waited for.
    assert len(begun) <= 1 + 2 * n_jobs


@pytest.mark.parametrize("null", ["paper", "recentered"])
def test_a_large_array_is_read_where_it_is(null):
    rng = np.random.default_rng(0)
    probs = rng.random((400_000, 4, 10), dtype=np.float32)
    probs /= probs.sum(axis=2, keepdims=True)
    labels = rng.integers(10, size=400_000)
    assert probs.nbytes == 64_000_000
    options = {"null": null, "minimizer": Steepest(max_evaluations=3), "n_resamples": 1}
    streamed(probs[:3_000], labels[:3_000], **options)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        streamed(probs, labels, rows_in_range=2**16, n_jobs=2, **options)
        assert tracemalloc.get_traced_memory()[1] - before < 0.3 * probs.nbytes
    finally:
        tracemalloc.stop()


def mean_gap(probs, labels):
    """A measure of the user's own."""
    return float(abs(probs[:, 0].mean() - (labels == 0).mean()))


class Doubled(hc.ConfidenceECE):
    """A loop of its own, whose halves are those of its base."""

    @staticmethod
    def value(mixed, labels, row_weights, parameters, offset, state, scratch):
        loop = hc.ConfidenceECE.value
        return 2.0 * loop(mixed, labels, row_weights, parameters, offset, state, scratch)


class Deciles(hc.ConfidenceECE):
    """Edges at the quantiles of the mean member's confidence, so that no pass over blocks will do."""

    def parameters(self, average):
        inner = np.quantile(average.max(axis=1), np.arange(1, self.n_bins) / self.n_bins)
        return np.concatenate([[0.0], inner, [1.0]])


@pytest.mark.parametrize(
    "settings",
    [
        {"measure": "hl_cwise"},
        {"measure": "skce_uq", "null": "maximized"},
        {"measure": "skce_b"},
        {"measure": hc.SKCE(bandwidth="median"), "null": "maximized"},
        {"measure": hc.SKCE(kernel=ExponentialTV(bandwidth="median"))},
        {"measure": mean_gap},
        {"measure": mean_gap, "null": "maximized"},
        {"measure": Doubled()},
        {"measure": Deciles()},
        {"null": "stacked"},
        # Pairs of rows drawn one by one do not add up over blocks.
        {"null": "paper", "measure": "skce_ul"},
        {"null": Paper(rows="permuted"), "measure": "skce_ul"},
        {"minimizer": "exact"},
        {"minimizer": minimizers.Pairwise(max_evaluations=30)},
    ],
    ids=lambda settings: "-".join(
        getattr(each, "name", getattr(each, "__name__", str(each))) for each in settings.values()
    ),
)
def test_what_does_not_add_up_or_needs_the_predictions_goes_on_in_memory(settings, monkeypatch):
    def of(*_):
        raise AssertionError("these data are not to be streamed")

    few = {"null": "refit", "n_resamples": 4, "minimizer": THREE_POINTS}
    given = data(301, 2, 3)
    expected = packed(*given, **(few | settings))
    monkeypatch.setattr(opening, "_MANY_ROWS", 0)
    monkeypatch.setattr(opening, "_LARGE", 0)
    monkeypatch.setattr(chunked.Chunked, "of", of)
    assert_same_bits(packed(*given, **(few | settings)), expected)
    with pytest.raises(AssertionError, match="not to be streamed"):
        packed(*given, **few)


def test_the_usual_null_of_data_beyond_memory_is_recentered_and_that_is_said(monkeypatch):
    probs, labels = data(2_049, 2, 3)
    assert packed(probs, labels).null == "stacked"
    expected = streamed(probs, labels, null="recentered")
    monkeypatch.setattr(opening, "_SHARE", 0.0)
    found = streamed(probs, labels)
    *notes, last = found.notes
    assert last == hc.notes.Note("beyond_memory", {"null": "recentered", "usual": "stacked"})
    assert_same_bits(replace(found, notes=tuple(notes)), expected)
    # Whoever asks for a null gets it.
    assert packed(probs, labels, null="stacked").null == "stacked"


# Uncompiled ------------------------------------------------------------------------------------


def outcomes():
    """Of data with two leaves; the null "recentered" would take a hundred passes to judge itself."""
    few = {"n_resamples": 1, "minimizer": Steepest(max_evaluations=4), "rows_in_range": 512}
    found = []
    for measure, null in [("ece_conf", "paper"), ("ece_cwise", "permuted"), ("skce_ul", "refit")]:
        result = streamed(*data(LEAF + 77, 2, 2), measure=measure, null=NULLS[null], **few)
        found.append([result.statistic, *result.weights, *result.null_distribution])
    return found


def test_the_passes_run_uncompiled_and_give_the_same_numbers():
    path = os.pathsep.join([str(Path(hc.__file__).parents[1]), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    answer = json.loads(done.stdout)
    assert answer["compiled"] is False
    np.testing.assert_allclose(answer["outcomes"], outcomes(), rtol=0, atol=1e-12)


if __name__ == "__main__":
    loop = hc.measures.resolve("ece_conf").value
    print(json.dumps({"compiled": is_compiled(loop), "outcomes": outcomes()}))
