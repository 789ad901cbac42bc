"""Many classes: values from a few entries, and replicates from one pass, against all probabilities."""

from dataclasses import replace

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal._compiled.streams import key_of
from hullcal.engines.local import packed_problem
from hullcal.measures.ece_conf import _leave_out_dominated
from hullcal.nulls import _passes, paper
from hullcal.nulls._base import Resampling
from hullcal.sets import ClassifierSet

MEASURES = [
    hc.ConfidenceECE(n_bins=4),
    hc.ConfidenceECE(n_bins=7),
    hc.ClasswiseECE(n_bins=4),
    hc.ClasswiseECE(n_bins=10),
]
IDS = ["ece_conf of 4", "ece_conf of 7", "ece_cwise of 4", "ece_cwise of 10"]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=IDS)
N, K = 13, 50


def a_set(n_members, seed=0, n=N):
    rng = np.random.default_rng(seed)
    logits = 5 * rng.normal(size=(n, 1, K)) + 2 * rng.normal(size=(n, n_members, K))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    # Some labels have no entry.
    labels = np.where(np.arange(n) % 3 == 0, rng.integers(K, size=n), probs[:, 0].argmax(axis=1))
    return probs, labels.astype(np.int32)


def objective_of(probs, labels, measure):
    objective = packed_problem(ClassifierSet(probs), labels, measure).packed
    assert objective.entries is not None
    return objective


def value_of(measure, probs, labels):
    return getattr(oracles, measure.name)(probs, labels, measure.n_bins)


def combined(objective, weights):
    return np.einsum("m,mkn->nk", weights, objective.members)


@every_measure
def test_the_value_from_entries_is_that_of_all_probabilities(measure):
    probs, labels = a_set(3)
    objective = objective_of(probs, labels, measure)
    for weights in (np.array([0.2, 0.3, 0.5]), np.array([0.0, 1.0, 0.0])):
        expected = value_of(measure, combined(objective, weights), labels)
        assert objective.at(weights)[0] == pytest.approx(expected, abs=1e-13)


@every_measure
def test_drawn_rows_from_entries_are_recentered_as_those_of_all_probabilities(measure):
    probs, labels = a_set(2, seed=1)
    objective = objective_of(probs, labels, measure)
    weights, best = np.array([0.7, 0.3]), np.array([0.4, 0.6])
    drawn = objective.recentered(best).drawing_rows(key_of(2))(0, 2)
    residual = {"ece_conf": oracles.residual_ece_conf, "ece_cwise": oracles.residual_ece_cwise}
    offset = residual[measure.name](combined(objective, best), labels, measure.n_bins)
    for value, counts in zip(drawn.at(weights), drawn.row_weights, strict=True):
        rows = oracles.repeat_rows(combined(objective, weights), labels, counts.astype(int))
        expected = oracles.recentered_value(measure.name, *rows, offset, measure.n_bins)
        assert value == pytest.approx(expected, abs=1e-13)


def test_a_class_is_left_out_only_if_another_exceeds_it_in_every_member_that_gives_it_something():
    # Classes by columns, members by rows. The first dominates the second; the third is larger in one
    # member; the fourth has 0 in one member and is smaller in the other; the fifth ties the first.
    members = np.array([[0.3, 0.2, 0.1, 0.0, 0.3], [0.25, 0.1, 0.3, 0.2, 0.25]])[:, :, np.newaxis]
    found = np.ones((5, 1), dtype=bool)
    _leave_out_dominated(members, members.min(axis=0), found)
    np.testing.assert_array_equal(found[:, 0], [True, False, True, False, True])
    kept = hc.ConfidenceECE().matters(members)
    # The fourth's largest, 0.2, is below the first's smallest, 0.25, and so is the second's.
    np.testing.assert_array_equal(kept[:, 0], [True, False, True, False, True])


def test_the_classes_that_may_dominate_are_the_twelve_with_the_largest_minima():
    # Class k has the minimum 30 - k or k; each dominates one companion, which is just below it.
    n = 20
    for least in (
        np.arange(n, 0, -1),
        np.arange(1, n + 1),
        np.random.default_rng(0).permutation(n),
    ):
        strong = np.stack([0.01 + least / 100, 0.9 - least / 100])
        companions = strong - 1e-3
        members = np.concatenate([strong, companions], axis=1)[:, :, np.newaxis]
        found = np.ones((2 * n, 1), dtype=bool)
        _leave_out_dominated(members, members.min(axis=0), found)
        assert found[:n].all()
        # A companion has nearly its class's minimum, so that six classes and their companions are
        # the twelve; a companion among them is seen to be dominated, and so are those of the six.
        largest = np.argsort(-members.min(axis=0)[:, 0], kind="stable")[:12]
        dominating = [k for k in largest if k < n]
        assert not found[[n + k for k in dominating]].any()
        others = [n + k for k in range(n) if k not in dominating]
        assert found[others].all()


# Passes


def some_draws(objective, n_replicates, seed=3):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(objective.n_members), size=n_replicates)
    size = (n_replicates, objective.n_samples)
    rows = rng.integers(objective.n_samples, size=size).astype(np.uint32)
    return weights, rows, rng.random(size)


def literally(objective, weights, rows, levels):
    """Line 4, label by label, and line 5 by its equation."""
    mixed = combined(objective, weights)[rows]
    running = np.cumsum(mixed, axis=1)
    labels = (running[:, :-1] <= (levels * running[:, -1])[:, np.newaxis]).sum(axis=1)
    return value_of(objective.measure, mixed, labels)


@every_measure
@pytest.mark.parametrize("n_members", [3, 10])
@pytest.mark.parametrize("over", ["entries", "all"])
def test_a_pass_in_several_blocks_of_rows_is_lines_4_and_5(measure, n_members, over, monkeypatch):
    # Blocks of 5 rows, the last of 3.
    monkeypatch.setattr(_passes, "_FEWEST_ROWS", 5)
    monkeypatch.setattr(_passes, "_TURNED", 1)
    monkeypatch.setattr(_passes, "_IN_CACHE", 5 * K)
    objective = objective_of(*a_set(n_members), measure)
    if over == "all":
        objective = replace(objective, entries=None)
    draws = some_draws(objective, 3)
    expected = [literally(objective, *one) for one in zip(*draws, strict=True)]
    np.testing.assert_allclose(_passes.evaluate(objective, *draws), expected, atol=1e-13)


def test_more_draws_of_a_row_than_are_bisected_at_once_have_their_labels():
    # One row has all draws of 40 replicates' worth: more than 32 wait at a time.
    objective = objective_of(*a_set(2, n=40), hc.ConfidenceECE(n_bins=4))
    weights, rows, levels = some_draws(objective, 2)
    rows[:] = 7
    expected = [literally(objective, *one) for one in zip(weights, rows, levels, strict=True)]
    np.testing.assert_allclose(
        _passes.evaluate(objective, weights, rows, levels), expected, atol=1e-13
    )


def distribution(problem, n_resamples, null="resampled"):
    lines, together = paper.Paper(rows=null)._lines_1_to_5(
        problem, Resampling(n_resamples=n_resamples, key=key_of(4))
    )
    blocks = [(d, min(d + together, n_resamples)) for d in range(0, n_resamples, together)]
    return np.concatenate([lines(*block) for block in blocks]), together


@pytest.mark.parametrize("null", ["resampled", "permuted"])
def test_neither_blocks_nor_passes_change_a_replicate_of_the_paper(null, monkeypatch):
    probs, labels = a_set(2, seed=5)
    problem = packed_problem(ClassifierSet(probs), labels, hc.ConfidenceECE(n_bins=4))
    whole, together = distribution(problem, 7, null)
    assert together >= 7
    monkeypatch.setattr(paper, "READ_AT_ONCE", 2 * problem.packed.members.size)
    in_blocks, together = distribution(problem, 7, null)
    assert together == 2
    np.testing.assert_array_equal(in_blocks, whole)
    monkeypatch.setattr(paper, "work_of", lambda _: problem.packed.members.size // 2)
    in_passes, together = distribution(problem, 7, null)
    assert together == 4
    np.testing.assert_allclose(in_passes, whole, atol=1e-14)


def test_the_work_of_a_replicate_is_its_share_of_a_pass_or_what_it_keeps():
    probs, labels = a_set(2, n=30)
    objective = objective_of(probs, labels, hc.ConfidenceECE(n_bins=4))
    assert _passes.work_of(objective) is None
    # 2,098 rows of 50 classes are a tenth of 2**20, and few members make rows the larger part.
    large = objective_of(*a_set(2, n=2098), hc.ConfidenceECE(n_bins=4))
    assert _passes.work_of(large) == 64 * 2098
    assert _passes.work_of(replace(large, entries=None)) is None
