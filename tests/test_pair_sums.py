"""SKCE over all pairs of rows that are never in one place: pairs of ranges add up to the same value."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import nulls
from hullcal._compiled.jit import is_compiled
from hullcal._compiled.streams import key_of
from hullcal.engines import _pair_loops, pair_jobs
from hullcal.engines.engine import Problem
from hullcal.engines.jobs import Cases, Rows
from hullcal.engines.local import ArrayPasses, in_order, packed_problem
from hullcal.engines.objective import Moves
from hullcal.engines.pair_jobs import PairSums, pair_total, pairs_of
from hullcal.engines.streamed import Streamed
from hullcal.kernels import GaussianTV
from hullcal.minimizers.pairwise import Pairwise
from hullcal.sets import ClassifierSet

MEASURES = [
    hc.SKCE(estimator="uq"),
    hc.SKCE(estimator="b"),
    hc.SKCE(estimator="uq", bandwidth=0.2),
    hc.SKCE(estimator="b", kernel=GaussianTV(bandwidth=0.5)),
]
every_measure = pytest.mark.parametrize(
    "measure", MEASURES, ids=lambda m: f"{m.name}-{m.settings()['kernel']}-{m.bandwidth}"
)
CUTS = [[], [1], [1, 2, 3], [20], [7, 8, 30], list(range(1, 41))]


class RangePasses(ArrayPasses):
    """Rows that are read a range at a time, wherever the ranges are cut."""

    def __init__(self, probs, labels, positions, cuts, *, n_jobs=1):
        super().__init__(probs, labels, positions, n_jobs)
        bounds = [0, *cuts, self.n_samples]
        self.ranges = [slice(a, b) for a, b in pairwise(bounds)]
        self.n_read = 0

    def read(self, rows):
        self.n_read += 1
        return Rows(self._probs[rows], self._labels[rows], rows.start)

    def pair_total(self, job):
        job = pickle.loads(pickle.dumps(job))  # as it would travel to workers
        threads = partial(in_order, n_jobs=self._n_jobs)
        return pair_total(self.ranges, self.read, job, in_order=threads)


def data(n=41, n_members=3, k=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), size=(n, n_members)).astype(dtype)
    probs[0, 0] = np.eye(k)[0]
    return probs, rng.integers(k, size=n).astype(np.int32)


def in_ranges(measure, probs, labels, cuts, **options):
    positions = ClassifierSet(probs).distinct.positions
    return Streamed.of(measure, RangePasses(probs, labels, positions, cuts, **options))


def in_memory(measure, probs, labels):
    return packed_problem(ClassifierSet(probs), labels, measure).packed


def literal(measure, probs, labels):
    kernel = measure.settings()["kernel"]
    g = oracles.skce_uq if measure.estimator == "uq" else oracles.skce_b
    return g(probs, labels, bandwidth=measure.bandwidth, kernel=kernel)


# One value --------------------------------------------------------------------------------------


@every_measure
@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_any_cut_into_ranges_gives_the_definition(measure, cuts):
    probs, labels = data()
    objective = in_ranges(measure, probs, labels, cuts)
    positions = objective.passes.positions
    weights = np.array([0.5, 0.3, 0.2])
    found = objective.at(weights)[0]
    mixed = oracles.mixture(probs[:, positions], weights)
    assert found == pytest.approx(literal(measure, mixed, labels), abs=1e-12)
    assert found == pytest.approx(in_memory(measure, probs, labels).at(weights)[0], abs=1e-14)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 127, 128, 129, 257])
@every_measure
def test_no_number_of_rows_is_special(measure, n):
    probs, labels = data(n, seed=n)
    weights = np.array([0.1, 0.2, 0.7])
    expected = in_memory(measure, probs, labels).at(weights)[0]
    for cuts in ([], [1], [n // 2], [n - 1]):
        found = in_ranges(measure, probs, labels, cuts).at(weights)[0]
        assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("k", [2, 5, 6, 40])
def test_no_number_of_classes_is_special(k):
    probs, labels = data(150, k=k, seed=k)
    weights = np.array([0.1, 0.2, 0.7])
    for measure in MEASURES:
        expected = in_memory(measure, probs, labels).at(weights)[0]
        found = in_ranges(measure, probs, labels, [64, 100]).at(weights)[0]
        assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("rows", "held"), [(1024, 1), (128, 2**21), (128, 1), (128, 5_000)])
def test_the_size_of_blocks_and_of_groups_of_moves_changes_no_value(rows, held, monkeypatch):
    probs, labels = data(600, seed=2)
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(3), size=9)
    measure = MEASURES[0]
    expected = in_memory(measure, probs, labels).values(weights, np.zeros(9, dtype=np.int64))
    monkeypatch.setattr(pair_jobs, "_ROWS", rows)
    monkeypatch.setattr(pair_jobs, "_HELD", held)
    found = in_ranges(measure, probs, labels, [333]).values(weights, np.zeros(9, dtype=np.int64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_groups_of_moves_are_all_moves_in_order(monkeypatch):
    probs, labels = data(30)
    asked = []
    rng = np.random.default_rng(4)
    for case, n_moves in ((2, 3), (0, 1), (2, 4), (1, 2)):
        pairs = np.array([rng.choice(3, size=2, replace=False) for _ in range(n_moves)])
        asked.append(Moves(case, rng.dirichlet(np.ones(3)), pairs, rng.random(n_moves) / 10))
    weights, key = np.full(3, 1 / 3), key_of(5)
    objective = in_ranges(MEASURES[0], probs, labels, [11])
    drawn = objective.drawing_labels(weights, key)(0, 3)
    expected = drawn.answer(asked)
    exact = in_memory(MEASURES[0], probs, labels).drawing_labels(weights, key)(0, 3)
    places, cases = [], []
    for one in asked:
        for (gaining, losing), amount in zip(one.pairs, one.amounts, strict=True):
            places.append(one.base.copy())
            places[-1][gaining] += amount
            places[-1][losing] -= amount
            cases.append(one.case)
    values = exact.values(np.array(places), np.array(cases))
    np.testing.assert_allclose(expected, values, rtol=0, atol=1e-14)
    for at_a_time in (1, 2, 3, 7):
        size = 2 * 4 * 136 * 8 * at_a_time
        monkeypatch.setattr(pair_jobs, "_HELD", size)
        np.testing.assert_array_equal(drawn.answer(asked), expected)


def test_every_pair_of_ranges_is_asked_for_once():
    assert list(pairs_of(3)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    probs, labels = data(30)
    objective = in_ranges(MEASURES[0], probs, labels, [10, 20])
    objective.at(np.full(3, 1 / 3))
    # Three ranges with themselves, three pairs of two.
    assert objective.passes.n_read == 3 + 2 * 3


def test_a_range_met_by_itself_counts_each_row_with_itself_once():
    probs, labels = data(10)
    job = PairSums(
        n_samples=10,
        n_classes=4,
        positions=np.arange(3),
        measure=MEASURES[0],
        parameters=MEASURES[0].parameters(probs[:0, 0]),
        cases=Cases.data(),
        bases=np.eye(3)[1:2],
        case_of=np.zeros(1, dtype=np.int64),
        ends=np.ones(1, dtype=np.int64),
        pairs=np.zeros((1, 2), dtype=np.int64),
        amounts=np.zeros(1),
    )
    one, other = Rows(probs[:6], labels[:6], 0), Rows(probs[6:], labels[6:], 6)

    def h(i, j):
        return oracles.skce_term(probs[i, 1], labels[i], probs[j, 1], labels[j])

    alone = math.fsum(h(i, j) for i in range(6) for j in range(6))
    diagonal = math.fsum(h(i, i) for i in range(6))
    np.testing.assert_allclose(job.between(one, one), [[alone, diagonal]], atol=1e-13)
    # Another object with the same rows, as a worker would be sent, is the same range.
    again = Rows(probs[:6].copy(), labels[:6].copy(), 0)
    np.testing.assert_array_equal(job.between(one, again), job.between(one, one))
    across = 2.0 * math.fsum(h(i, j) for i in range(6) for j in range(6, 10))
    np.testing.assert_allclose(job.between(one, other), [[across, 0.0]], atol=1e-13)
    np.testing.assert_allclose(job.between(other, one), [[across, 0.0]], atol=1e-13)
    with pytest.raises(TypeError, match="between"):
        job.over(one)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_and_types_change_no_bit(n_jobs):
    probs, labels = data(700, dtype=np.float32)
    weights = np.array([0.5, 0.3, 0.2])
    cuts = [100, 250, 400, 401]
    expected = in_ranges(MEASURES[0], probs, labels, cuts).at(weights)
    held = [probs, probs.astype(np.float64), np.asfortranarray(probs)]
    readonly = probs.copy()
    readonly.flags.writeable = False
    for given in (*held, readonly):
        found = in_ranges(MEASURES[0], given, labels, cuts, n_jobs=n_jobs).at(weights)
        assert found.tobytes() == expected.tobytes()


def test_results_may_come_from_anywhere_as_long_as_they_come_in_order():
    probs, labels = data(50)
    passes = RangePasses(probs, labels, np.arange(3), [9, 30])
    objective = Streamed.of(MEASURES[0], passes)
    job = PairSums(**objective._asked([Moves.none(0, np.full(3, 1 / 3))]))
    expected = pair_total(passes.ranges, passes.read, job)
    with ThreadPoolExecutor(3) as pool:
        found = pair_total(passes.ranges, passes.read, job, in_order=pool.map)
    assert found.tobytes() == expected.tobytes()


def test_the_loops_give_the_same_uncompiled():
    assert is_compiled(_pair_loops.packed_moves)
    probs, labels = data(13)
    expected = in_ranges(MEASURES[0], probs, labels, [5]).at(np.full(3, 1 / 3))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("packed_moves", "add_pairs"):
            patch.setattr(_pair_loops, name, getattr(_pair_loops, name).py_func)
        found = in_ranges(MEASURES[0], probs, labels, [5]).at(np.full(3, 1 / 3))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


# The objective ----------------------------------------------------------------------------------


def test_labels_are_drawn_as_in_memory():
    probs, labels = data(1_500, seed=7)
    weights, key = np.array([0.2, 0.3, 0.5]), key_of(8)
    for measure in MEASURES[:2]:
        expected = in_memory(measure, probs, labels).drawing_labels(weights, key)(3, 7).at(weights)
        objective = in_ranges(measure, probs, labels, [100, 1_030])
        found = objective.drawing_labels(weights, key)(3, 7).at(weights)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        assert len(set(found)) == 4


def test_starts_and_the_likeliest_weights_are_those_in_memory():
    probs, labels = data(200)
    exact = in_memory(MEASURES[0], probs, labels)
    objective = in_ranges(MEASURES[0], probs, labels, [77])
    np.testing.assert_allclose(objective.starts(), exact.starts(), atol=1e-12)
    np.testing.assert_allclose(
        objective.maximum_likelihood(), exact.maximum_likelihood(), atol=1e-12
    )
    assert objective.impossible() == exact.impossible()
    assert (objective.n_members, objective.n_classes, objective.n_samples) == (3, 4, 200)
    assert objective.error_bound(np.full(3, 1 / 3)) == 0.0


@pytest.mark.parametrize("null", ["refit", "maximized"])
@pytest.mark.parametrize("measure", MEASURES[:2], ids=lambda m: m.name)
def test_the_test_is_that_of_predictions_in_memory(null, measure):
    probs, labels = data(300, seed=9)
    distinct = ClassifierSet(probs).distinct
    search, resampling = Pairwise(max_evaluations=30), nulls.Resampling(19, key_of(2))
    problems = [
        packed_problem(ClassifierSet(probs), labels, measure),
        Problem(in_ranges(measure, probs, labels, [50, 180]), distinct),
    ]
    exact, found = (nulls.resolve(null).run(one, search, resampling) for one in problems)
    assert found.statistic == pytest.approx(exact.statistic, abs=1e-12)
    np.testing.assert_allclose(found.weights, exact.weights, atol=1e-9)
    np.testing.assert_allclose(found.distribution, exact.distribution, rtol=0, atol=1e-12)
    assert (found.n_evaluations, found.converged) == (exact.n_evaluations, exact.converged)
    assert len(set(exact.distribution)) == 19


@pytest.mark.parametrize("null", ["refit", "recentered"])
def test_one_member_needs_no_rows_drawn(null):
    probs, labels = data(100, n_members=1)
    distinct = ClassifierSet(probs).distinct
    search, resampling = Pairwise(max_evaluations=5), nulls.Resampling(9, key_of(2))
    problems = [
        packed_problem(ClassifierSet(probs), labels, MEASURES[0]),
        Problem(in_ranges(MEASURES[0], probs, labels, [50]), distinct),
    ]
    exact, found = (nulls.resolve(null).run(one, search, resampling) for one in problems)
    np.testing.assert_allclose(found.distribution, exact.distribution, rtol=0, atol=1e-13)


def test_which_measures_add_up_over_pairs():
    found = [n for n in hc.measures.available() if hc.measures.resolve(n).finish_pairs is not None]
    assert found == ["skce_b", "skce_uq"]
    assert hc.SKCE(estimator="uq", bandwidth="median").finish_pairs is None

    class Another(hc.SKCE):
        pass

    assert Another(estimator="uq").finish_pairs is None


def test_passes_that_cannot_bring_ranges_together_say_so():
    probs, labels = data(30)
    objective = Streamed.of(MEASURES[0], ArrayPasses(probs, labels, np.arange(3), 1))
    with pytest.raises(NotImplementedError):
        objective.at(np.full(3, 1 / 3))
