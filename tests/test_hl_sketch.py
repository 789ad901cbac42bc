"""Hosmer–Lemeshow from cells that add up over rows: exact where cells hold one value, else bounded."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hullcal as hc
import oracles
from hullcal import nulls
from hullcal._compiled.streams import key_of
from hullcal.distinct import Distinct
from hullcal.engines import jobs
from hullcal.engines.engine import Problem
from hullcal.engines.jobs import Cases
from hullcal.engines.local import ArrayPasses, packed_problem
from hullcal.engines.objective import Moves
from hullcal.engines.streamed import Streamed
from hullcal.measures._hl_bounds import enclosure
from hullcal.measures._hl_cells import KEPT, cell_edges, cells_of, part_of
from hullcal.measures._hl_sketch import _HosmerLemeshowSketch as Sketch
from hullcal.minimizers.pairwise import Pairwise
from hullcal.sets import ClassifierSet

CELLS = [8, 9, 31, 1024]
KINDS = ["smooth", "skewed", "sure", "tied", "zeros and ones", "constant", "grid"]


def forecasts(rng, n, k, kind):
    """One classifier's predictions of a kind."""
    if kind in ("smooth", "skewed", "sure"):
        logits = {"smooth": 1.0, "skewed": 4.0, "sure": 30.0}[kind] * rng.normal(size=(n, k))
        probs = np.exp(logits - logits.max(axis=1, keepdims=True))
        return probs / probs.sum(axis=1, keepdims=True)
    if kind == "tied":
        # Probabilities so far apart that no two of them share a cell.
        few = np.abs(np.linspace(0.1, 0.9, 4)[:, np.newaxis] - np.linspace(0.0, 0.6, k))
        return (few / few.sum(axis=1, keepdims=True))[rng.integers(4, size=n)]
    if kind == "constant":
        return np.tile(rng.dirichlet(np.ones(k)), (n, 1))
    if kind == "grid":
        return rng.multinomial(8, np.full(k, 1 / k), size=n) / 8
    probs = rng.dirichlet(np.ones(k), size=n)
    probs[rng.random(n) < 0.6] = np.eye(k)[0]
    return probs


def labels_of(rng, probs, *, possible=True):
    """Labels from the predictions, or from anywhere."""
    if not possible:
        return rng.integers(probs.shape[1], size=len(probs)).astype(np.int32)
    running = probs.cumsum(axis=1)
    levels = rng.random((len(probs), 1)) * running[:, -1:]
    return (levels >= running[:, :-1]).sum(axis=1).astype(np.int32)


def over_rows(measure, probs, labels):
    """Passes over the rows of one classifier or of a set."""
    members = probs[:, np.newaxis] if probs.ndim == 2 else probs
    positions = np.arange(members.shape[1])
    return Streamed.of(measure, ArrayPasses(members, labels, positions, 1))


def here():
    """The only combination of one member."""
    return Moves.none(0, np.ones(1))


def same(found, expected, **options):
    if np.isinf(expected):
        assert found == expected
    else:
        assert found == pytest.approx(expected, **({"rel": 1e-10, "abs": 1e-12} | options))


# Cells ------------------------------------------------------------------------------------------

probabilities = st.one_of(
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e-6),
    st.floats(0.0, 1e-6).map(lambda p: 1.0 - p),
    st.floats(0.499999, 0.500001),
    st.sampled_from([0.0, 1.0, 0.5, np.nextafter(0.5, 0), np.nextafter(1, 0), 5e-324]),
)


@settings(deadline=None)
@given(st.lists(probabilities, min_size=2, max_size=30), st.sampled_from(CELLS))
def test_cells_keep_the_order_and_lie_between_their_edges(values, n_cells):
    p = np.sort(values)
    cells = np.empty(len(p), dtype=np.uint32)
    cells_of(p, n_cells, cells)
    assert (np.diff(cells.astype(int)) >= 0).all()
    assert cells.max() < n_cells
    low, high = cell_edges(n_cells)[cells, 0].T
    assert (low <= p).all()
    assert (p <= high).all()
    parts = np.array([part_of(q, n_cells, 256) for q in p])
    assert (np.diff(256 * cells.astype(int) + parts)[np.diff(p) > 0] >= 0).all()
    inner = (p > 0.0) & (p < 1.0)
    low, high = cell_edges(n_cells, 256)[cells, parts][inner].T
    assert (low <= p[inner]).all()
    assert (p[inner] <= high).all()


@pytest.mark.parametrize("n_cells", CELLS)
def test_exactly_0_and_exactly_1_are_alone_in_their_cells(n_cells):
    p = np.array([-1e-17, 0.0, 5e-324, 1e-300, np.nextafter(1.0, 0.0), 1.0, 1.0 + 3e-16])
    cells = np.empty(len(p), dtype=np.uint32)
    cells_of(p, n_cells, cells)
    last = n_cells - 1
    assert cells.tolist() == [0, 0, 1, 1, last - 1, last, last]


def test_cells_cover_all_probabilities_without_gaps():
    edges = cell_edges(1024)[:, 0]
    assert (edges[1:, 0] <= edges[:-1, 1] * (1 + 1e-15)).all()
    assert edges[0, 0] == 0.0
    assert edges[-1, 1] == 1.0


# Against the definition -------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [1, 2, 7, 10])
@pytest.mark.parametrize("kind", ["grid", "tied", "constant"])
@pytest.mark.parametrize("possible", [True, False])
def test_where_every_cell_has_one_value_the_sketch_is_the_definition(kind, n_bins, possible):
    measure = hc.HosmerLemeshow(n_bins=n_bins).over_chunks()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(n_bins, 60))
        probs = forecasts(rng, n, 3, kind)
        labels = labels_of(rng, probs, possible=possible)
        same(measure(probs, labels), oracles.hl_cwise(probs, labels, n_bins))


@pytest.mark.parametrize("seed", range(6))
def test_row_weights_are_copies_and_an_offset_is_subtracted(seed):
    rng = np.random.default_rng(seed)
    probs = forecasts(rng, 40, 3, "grid")
    labels = labels_of(rng, probs)
    measure, exact = Sketch(n_bins=4, n_cells=64), hc.HosmerLemeshow(n_bins=4)
    counts = rng.multinomial(40, np.full(40, 1 / 40))
    mixed = np.ascontiguousarray(probs.T)
    offset = measure.offset_at(mixed, labels, measure.parameters(probs))
    np.testing.assert_allclose(offset, oracles.residual_hl(probs, labels, 4), atol=1e-12)
    np.testing.assert_allclose(
        offset, exact.offset_at(mixed, labels, exact.parameters(probs)), atol=1e-12
    )
    value = measure.evaluate(
        mixed,
        labels,
        measure.parameters(probs),
        row_weights=counts.astype(float),
        offset=offset,
    )
    repeated = oracles.repeat_rows(probs, labels, counts)
    same(value, oracles.recentered_value("hl_cwise", *repeated, offset, n_bins=4))


def test_a_class_that_nobody_predicts_and_that_never_occurs_adds_nothing():
    rng = np.random.default_rng(1)
    two = forecasts(rng, 50, 2, "grid")
    labels = labels_of(rng, two)
    three = np.column_stack([two, np.zeros(50)])
    measure = hc.HosmerLemeshow().over_chunks()
    assert measure(three, labels) == measure(two, labels)
    bounds = [over_rows(measure, probs, labels).error_bound(np.ones(1)) for probs in (two, three)]
    assert bounds[0] == bounds[1]


def test_an_event_of_probability_0_is_infinite_and_infinite_equals_infinite():
    probs = np.array([[1.0, 0.0]] * 6 + [[0.5, 0.5]] * 4)
    labels = np.array([0, 0, 1, 0, 0, 0, 0, 1, 1, 0], dtype=np.int32)
    measure = hc.HosmerLemeshow(n_bins=2).over_chunks()
    assert measure(probs, labels) == oracles.hl_cwise(probs, labels, 2) == np.inf
    objective = over_rows(measure, probs, labels)
    assert objective.error_bound(np.ones(1)) == 0.0
    assert objective.recentered(np.ones(1)).at(np.ones(1)).tolist() == [0.0]


def test_a_tiny_probability_is_not_taken_for_0():
    probs = np.array([[1.0, 0.0]] * 5 + [[1.0 - 1e-30, 1e-30]] * 5)
    labels = np.array([0] * 9 + [1], dtype=np.int32)
    measure = hc.HosmerLemeshow(n_bins=2).over_chunks()
    same(measure(probs, labels), oracles.hl_cwise(probs, labels, 2))


# The stated error -------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.integers(2, 4),
    st.integers(1, 12),
    st.sampled_from([8, 16, 64, 1024]),
    st.booleans(),
)
@example(0, "sure", 2, 10, 16, False)
def test_the_exact_statistic_is_within_the_stated_error(seed, kind, k, n_bins, n_cells, possible):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(max(2, n_bins), 300))
    probs = forecasts(rng, n, k, kind)
    labels = labels_of(rng, probs, possible=possible)
    measure = Sketch(n_bins=n_bins, n_cells=max(n_cells, n_bins))
    exact = hc.HosmerLemeshow(n_bins=n_bins)(probs, labels)
    objective = over_rows(measure, probs, labels)
    value = float(objective.at(np.ones(1))[0])
    bound = objective.error_bound(np.ones(1))
    assert bound >= 0.0
    slack = 1e-11 * (1.0 + (0.0 if np.isinf(exact) else exact))
    gap = 0.0 if exact == value else abs(exact - value)
    assert gap <= bound * (1 + 1e-9) + slack
    # The first pass alone encloses it, too, and less closely.
    state = objective._states([here()])[0]
    cells = state.reshape(k, measure.n_cells, KEPT)
    edges = np.broadcast_to(cell_edges(measure.n_cells)[:, 0], (k, measure.n_cells, 2))
    low, high = enclosure(cells, np.ascontiguousarray(edges), n_bins, n)
    for one in (exact, value):
        assert low <= one + slack
        assert one <= high + slack


@pytest.mark.parametrize("kind", ["smooth", "skewed", "sure"])
def test_the_stated_error_is_hardly_more_than_the_error(kind):
    rng = np.random.default_rng(5)
    probs = forecasts(rng, 20_000, 5, kind)
    labels = labels_of(rng, probs)
    measure = hc.HosmerLemeshow().over_chunks()
    objective = over_rows(measure, probs, labels)
    exact = hc.HosmerLemeshow()(probs, labels)
    gap, bound = abs(measure(probs, labels) - exact), objective.error_bound(np.ones(1))
    assert gap * (1 - 1e-9) <= bound <= gap + 0.01 * exact
    # Half of it would be too little: the check above can fail.
    assert gap > bound / 2
    assert gap < 0.15 * exact


def test_more_cells_err_less():
    rng = np.random.default_rng(6)
    probs = forecasts(rng, 20_000, 3, "smooth")
    labels = labels_of(rng, probs)
    bounds = [
        over_rows(Sketch(n_cells=n_cells), probs, labels).error_bound(np.ones(1))
        for n_cells in (16, 128, 1024, 8192)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.05 * bounds[0]


def test_the_stated_error_is_told_in_words():
    rng = np.random.default_rng(10)
    probs = forecasts(rng, 5_000, 3, "smooth")
    objective = over_rows(hc.HosmerLemeshow().over_chunks(), probs, labels_of(rng, probs))
    (note,) = objective.notes_at(np.ones(1))
    told = float(note.split("at most ")[1].split(" ")[0])
    bound = objective.error_bound(np.ones(1))
    assert bound <= told <= 1.2 * bound
    assert "`hl_cwise`" in note


def test_an_exact_value_that_may_be_infinite_is_told_so():
    # All of these share a cell and its first part, and nobody knows which of them has the event.
    tiny = np.geomspace(1e-320, 1e-300, 40)
    labels = np.zeros(40, dtype=np.int32)
    labels[3] = 1
    objective = over_rows(Sketch(n_bins=4, n_cells=8), np.column_stack([1.0 - tiny, tiny]), labels)
    assert objective.error_bound(np.ones(1)) == np.inf
    assert "may be infinite" in objective.notes_at(np.ones(1))[0]


def test_a_measure_that_is_exact_states_no_error():
    rng = np.random.default_rng(7)
    probs = forecasts(rng, 100, 3, "smooth")
    objective = over_rows(hc.ConfidenceECE(), probs, labels_of(rng, probs))
    assert objective.error_bound(np.ones(1)) == 0.0
    assert objective.notes_at(np.ones(1)) == ()


# Over chunks ------------------------------------------------------------------------------------


def test_what_every_measure_is_over_chunks():
    forms = {name: hc.measures.resolve(name).over_chunks() for name in hc.measures.available()}
    assert [name for name, form in forms.items() if form is not None] == [
        "ece_conf",
        "ece_cwise",
        "hl_cwise",
        "skce_ul",
    ]
    for name in ("ece_conf", "ece_cwise", "skce_ul"):
        assert forms[name] == hc.measures.resolve(name)
    sketch = forms["hl_cwise"]
    assert sketch.name == "hl_cwise"
    assert sketch.settings() == {"n_bins": 10, "n_cells": 1024}
    assert sketch.over_chunks() is sketch
    assert sketch.approximate
    assert not any(form.approximate for name, form in forms.items() if form not in (None, sketch))
    assert not hc.HosmerLemeshow().streams()
    assert hc.SKCE(bandwidth="median").over_chunks() is None


def test_bins_have_enough_cells_each():
    assert hc.HosmerLemeshow(n_bins=100).over_chunks().n_cells == 6_400


class Doubled(hc.HosmerLemeshow):
    @staticmethod
    def value(*arguments):
        return 2.0 * hc.HosmerLemeshow.value(*arguments)


def test_a_subclass_with_a_loop_of_its_own_has_no_sketch():
    assert Doubled().over_chunks() is None


def test_the_number_of_cells_is_checked():
    with pytest.raises(hc.InvalidInputError, match="n_cells"):
        Sketch(n_bins=20, n_cells=19)


def test_ranges_add_up_and_a_sketch_can_be_sent(monkeypatch):
    rng = np.random.default_rng(8)
    probs = forecasts(rng, 5_000, 3, "skewed")
    labels = labels_of(rng, probs)
    measure = pickle.loads(pickle.dumps(hc.HosmerLemeshow().over_chunks()))
    whole = over_rows(measure, probs, labels)
    expected = whole.at(np.ones(1)), whole.error_bound(np.ones(1))
    monkeypatch.setattr(jobs, "_RANGE", 64)
    cut = over_rows(measure, probs, labels)
    np.testing.assert_allclose(cut.at(np.ones(1)), expected[0], rtol=1e-12)
    assert cut.error_bound(np.ones(1)) == pytest.approx(expected[1], rel=1e-6)
    finer = measure.refined(whole._states([here()])[0], 5_000)
    assert pickle.loads(pickle.dumps(finer)).value_found == finer.value_found


def test_the_loops_give_the_same_uncompiled():
    rng = np.random.default_rng(9)
    probs = forecasts(rng, 60, 3, "zeros and ones")
    labels = labels_of(rng, probs)
    measure = Sketch(n_bins=5, n_cells=32)
    mixed, parameters = np.ascontiguousarray(probs.T), measure.parameters(probs)
    states = np.zeros((2, measure.state_size(3)))
    for state, loop in zip(states, (measure.accumulate, measure.accumulate.py_func), strict=True):
        loop(mixed, labels, np.ones(60), parameters, state, np.zeros(measure.scratch_size(3, 60)))
    np.testing.assert_array_equal(*states)
    offset = measure.no_offset(3)
    values = [
        loop(state, offset, parameters, 60)
        for state, loop in zip(states, (measure.finish, measure.finish.py_func), strict=True)
    ]
    assert values[0] == values[1]
    np.testing.assert_array_equal(*states)


# Nulls ------------------------------------------------------------------------------------------

NULLS = ["paper", "recentered", "refit", "maximized"]


def members_of(rng, n, kind):
    """Members, their labels, and passes of two kinds over them."""
    if kind == "few values":
        few = rng.dirichlet(np.ones(3), size=(3, 1))
        few = np.concatenate([few, few[[1, 2, 0]]], axis=1)
        probs = few[:, rng.integers(2, size=n)].swapaxes(0, 1)
    else:
        common = rng.normal(size=(n, 1, 3))
        logits = 2.0 * common + rng.normal(size=(n, 3, 3))
        probs = np.exp(logits)
        probs /= probs.sum(axis=2, keepdims=True)
    return probs, labels_of(rng, probs.mean(axis=1))


def both(probs, labels, null, *, n_resamples=49):
    """Outcomes of the exact measure in memory and of the sketch by passes, of the same draws."""
    classifiers = ClassifierSet(probs)
    search = Pairwise(max_evaluations=40)
    exact = packed_problem(classifiers, labels, hc.HosmerLemeshow(n_bins=5))
    distinct = classifiers.distinct
    assert isinstance(distinct, Distinct)
    passes = ArrayPasses(probs, labels, distinct.positions, 1)
    sketch = hc.HosmerLemeshow(n_bins=5).over_chunks()
    streamed = Problem(Streamed.of(sketch, passes), distinct)
    resampling = nulls.Resampling(n_resamples, key_of(4))
    reference = nulls.resolve(null)
    return [reference.run(problem, search, resampling) for problem in (exact, streamed)]


@pytest.mark.parametrize(("null", "n_members"), [*((null, 1) for null in NULLS), ("paper", 3)])
def test_of_few_values_the_test_is_that_of_the_exact_measure(null, n_members, monkeypatch):
    # A search among several members would find places where their values meet in a cell.
    monkeypatch.setattr(jobs, "_RANGE", 2_048)
    probs, labels = members_of(np.random.default_rng(0), 3_000, "few values")
    exact, sketch = both(probs[:, :n_members], labels, null)
    assert sketch.statistic == pytest.approx(exact.statistic, rel=1e-6)
    np.testing.assert_allclose(sketch.distribution, exact.distribution, rtol=1e-6)
    assert len(set(exact.distribution)) > 5


@pytest.mark.parametrize("null", ["paper", "recentered", "refit"])
def test_the_pvalue_is_near_that_of_the_exact_measure(null):
    probs, labels = members_of(np.random.default_rng(2), 3_000, "smooth")
    exact, sketch = both(probs, labels, null, n_resamples=99)
    assert sketch.statistic == pytest.approx(exact.statistic, rel=0.1)
    median = np.median(exact.distribution)
    assert np.median(sketch.distribution) == pytest.approx(median, rel=0.05)
    pvalues = [oracles.p_value(one.statistic, one.distribution.tolist()) for one in (exact, sketch)]
    assert pvalues[1] == pytest.approx(pvalues[0], abs=0.06)
    # The same replicates, not only the same law: another seed would have other ones.
    assert np.corrcoef(exact.distribution, sketch.distribution)[0, 1] > 0.9


def test_drawn_rows_and_labels_are_cases_like_any_other():
    rng = np.random.default_rng(3)
    probs, labels = members_of(rng, 500, "few values")
    classifiers = ClassifierSet(probs)
    exact = packed_problem(classifiers, labels, hc.HosmerLemeshow(n_bins=5)).packed
    passes = ArrayPasses(probs, labels, classifiers.distinct.positions, 1)
    sketch = Streamed.of(hc.HosmerLemeshow(n_bins=5).over_chunks(), passes)
    weights, key = np.array([0.2, 0.5, 0.3]), key_of(1)
    for draws in (
        (exact.drawing_rows(key), sketch.drawing_rows(key)),
        (exact.drawing_labels(weights, key), sketch.drawing_labels(weights, key)),
        (exact.recentered(weights).drawing_rows(key), sketch.recentered(weights).drawing_rows(key)),
    ):
        values = [draw(0, 6).at(weights) for draw in draws]
        np.testing.assert_allclose(*values, rtol=1e-9)
    assert replace(sketch, cases=Cases.data()).n_cases == 1
