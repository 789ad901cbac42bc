"""The loops of the measures against their equations, on cases so small that every step shows."""

import itertools
import math

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import HullcalWarning, InvalidInputError
from hullcal.kernels import GaussianTV
from hullcal.measures import _all_pairs
from hullcal.measures._hl_bounds import enclosure
from hullcal.measures._hl_cells import KEPT, cell_edges, cells_of, part_of
from hullcal.measures._hl_refined import _Refined
from hullcal.measures._hl_sketch import _HosmerLemeshowSketch as Sketch

BINNED = {"ece_conf": hc.ConfidenceECE, "ece_cwise": hc.ClasswiseECE, "hl_cwise": hc.HosmerLemeshow}
RESIDUALS = {
    "ece_conf": oracles.residual_ece_conf,
    "ece_cwise": oracles.residual_ece_cwise,
    "hl_cwise": oracles.residual_hl,
}


def a_case(seed, n, k, tied=False):
    """Predictions, labels and counts of a bootstrap that leaves rows out."""
    rng = np.random.default_rng(seed)
    if tied:
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    else:
        probs = rng.dirichlet(np.full(k, 0.7), size=n)
    counts = np.bincount(rng.integers(n, size=n), minlength=n)
    return probs, rng.integers(k, size=n).astype(np.int32), counts


def evaluated(measure, probs, labels, **options):
    mixed = np.ascontiguousarray(probs.T)
    return measure.evaluate(mixed, labels, measure.parameters(probs), **options)


def pair_matrix(probs, labels, others=None, other_labels=None, *, kernel="exponential", nu=1.0):
    """h of every row with every other, from the definition."""
    others = probs if others is None else others
    other_labels = labels if other_labels is None else other_labels
    errors = probs - np.eye(probs.shape[1])[labels]
    other_errors = others - np.eye(probs.shape[1])[other_labels]
    tv = 0.5 * np.abs(probs[:, None] - others[None]).sum(axis=2)
    factors = np.exp(-tv / nu) if kernel == "exponential" else np.exp(-(tv**2) / nu)
    return factors * (errors @ other_errors.T)


# Binned measures


@pytest.mark.parametrize("name", BINNED)
@pytest.mark.parametrize(("n", "k", "n_bins"), [(1, 2, 1), (7, 2, 3), (17, 5, 4), (9, 6, 10)])
@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_a_binned_value_is_its_equation(name, n, k, n_bins):
    for tied in (False, True):
        probs, labels, _ = a_case(n + k, n, k, tied)
        expected = getattr(oracles, name)(probs, labels, n_bins)
        assert BINNED[name](n_bins=n_bins)(probs, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", range(2, 12))
def test_the_largest_probability_is_found_wherever_it_stands(k):
    # Row r is sure of class r, by 0.6; the label is right in the even rows.
    probs = np.full((k, k), 0.4 / (k - 1))
    np.fill_diagonal(probs, 0.6)
    labels = np.arange(k)
    labels[1::2] -= 1
    hits = len(labels[::2])
    found = hc.ConfidenceECE(n_bins=1)(probs, labels)
    assert found == pytest.approx(abs(hits / k - 0.6), abs=1e-14)


@pytest.mark.parametrize("name", BINNED)
@pytest.mark.parametrize("n_bins", [1, 4])
def test_drawn_rows_less_the_residual_of_the_data_are_the_definition(name, n_bins):
    for tied in (False, True):
        probs, labels, counts = a_case(3, 13, 3, tied)
        measure = BINNED[name](n_bins=n_bins)
        mixed = np.ascontiguousarray(probs.T)
        offset = measure.offset_at(mixed, labels, measure.parameters(probs))
        residual = RESIDUALS[name](probs, labels, n_bins)
        np.testing.assert_allclose(offset, residual, atol=1e-13)
        weights = counts.astype(float)
        found = evaluated(measure, probs, labels, row_weights=weights, offset=offset)
        drawn = oracles.repeat_rows(probs, labels, counts)
        expected = oracles.recentered_value(name, *drawn, residual, n_bins)
        assert found == pytest.approx(expected, abs=1e-12)


def test_rows_in_any_disorder_are_sorted():
    # One class in falling order, then with many values close to 0, where the buckets are uneven.
    n = 60
    falling = np.linspace(0.99, 0.01, n)
    crowded = np.concatenate([np.geomspace(1e-12, 1e-3, n - 2), [0.0, 1.0]])[::-1]
    for p in (falling, crowded, np.random.default_rng(0).permutation(crowded)):
        labels = (np.arange(n) % 3 == 0).astype(np.int32)
        probs = np.stack([p, 1 - p], axis=1)
        for n_bins in (4, 7):
            expected = oracles.hl_cwise(probs, labels, n_bins)
            assert hc.HosmerLemeshow(n_bins=n_bins)(probs, labels) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_parts_without_rows_count_nothing():
    probs = np.array([[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])
    labels = np.array([0, 1, 1], dtype=np.int32)
    expected = oracles.hl_cwise(probs, labels, 5)
    assert hc.HosmerLemeshow(n_bins=5)(probs, labels) == pytest.approx(expected, rel=1e-12)


def test_the_first_part_is_the_larger_one_in_the_enclosure_too():
    # Five rows in two parts, three and two; all cells are ties, so that the ends meet.
    p = np.array([0.1, 0.2, 0.3, 0.7, 0.9])
    labels = np.array([0, 1, 0, 1, 1])
    cells = np.stack([np.ones(5), p, labels], axis=1)[None]
    edges = np.stack([p, p], axis=1)[None]
    gaps = [(1 - 0.6, 3), (2 - 1.6, 2)]
    expected = sum(
        (gap / n) ** 2 / (total / n) for (gap, n), total in zip(gaps, (0.6, 1.6), strict=True)
    )
    assert enclosure(cells, edges, 2, 5) == pytest.approx((expected, expected), rel=1e-12)


def test_rows_that_all_fall_into_one_bucket_are_sorted_all_the_same():
    # The two at the ends make buckets so wide that all others share one, in falling order.
    n = 120
    p = np.concatenate([0.5 + 1e-9 * np.arange(n - 2)[::-1], [0.0, 1.0]])
    labels = (np.arange(n) % 3 == 0).astype(np.int32)
    probs = np.stack([1 - p, p], axis=1)
    expected = oracles.hl_cwise(probs, labels, 7)
    assert hc.HosmerLemeshow(n_bins=7)(probs, labels) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", [*BINNED.values(), hc.SKCE])
def test_settings_are_said_by_name(kind):
    with pytest.raises(TypeError, match="positional"):
        kind(5)


def test_the_two_smallest_probabilities_are_put_in_order():
    # So close that they share a bucket, and in falling order. The smallest is drawn twice and fills
    # the first of two bins.
    p = np.array([0.1001, 0.1, 0.5, 0.9])
    labels = np.array([1, 0, 0, 1], dtype=np.int32)
    probs = np.stack([1 - p, p], axis=1)
    counts = np.array([1, 2, 1, 0])
    expected = oracles.hl_cwise(*oracles.repeat_rows(probs, labels, counts), 2)
    found = evaluated(hc.HosmerLemeshow(n_bins=2), probs, labels, row_weights=counts.astype(float))
    assert found == pytest.approx(expected, rel=1e-12)


def test_hundreds_of_rows_that_end_in_ties_are_shared():
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.random(200) / 2, np.full(100, 0.75)])
    labels = (rng.random(300) < p).astype(np.int32)
    probs = np.stack([1 - p, p], axis=1)
    expected = oracles.hl_cwise(probs, labels, 7)
    assert hc.HosmerLemeshow(n_bins=7)(probs, labels) == pytest.approx(expected, rel=1e-10)


def test_blocks_of_rows_add_up_and_the_state_before_is_kept():
    probs, labels, _ = a_case(5, 19, 5)
    for measure in (hc.ConfidenceECE(n_bins=4), hc.ClasswiseECE(n_bins=4), hc.SKCE()):
        parameters = measure.parameters(probs)
        state = np.zeros(measure.state_size(5))
        for rows in (slice(0, 8), slice(8, 10), slice(10, 19)):
            mixed = np.ascontiguousarray(probs[rows].T)
            n = mixed.shape[1]
            scratch = np.full(measure.scratch_size(5, n), 9.0)
            measure.accumulate(mixed, labels[rows], np.ones(n), parameters, state, scratch)
        found = measure.finish(state, measure.no_offset(5), parameters, 19)
        assert found == pytest.approx(measure(probs, labels), abs=1e-14)


ALL = [hc.measures.resolve(name) for name in hc.measures.available()]


@pytest.mark.parametrize("n", [10, 11, 13])
@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.name)
def test_what_working_memory_held_before_does_not_matter(measure, n):
    probs, labels, _ = a_case(n, n, 3)
    mixed, parameters = np.ascontiguousarray(probs.T), measure.parameters(probs)
    state = np.full(measure.state_size(3), 7.0)
    scratch = np.full(measure.scratch_size(3, n), 9.0)
    ones, nothing = np.ones(n), measure.no_offset(3)
    found = measure.value(mixed, labels, ones, parameters, nothing, state, scratch)
    assert found == pytest.approx(getattr(oracles, measure.name)(probs, labels), abs=1e-13)


# SKCE


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 5), (6, 4), (9, 6), (5, 11)])
@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
def test_the_kernel_estimators_are_their_equations(n, k, kernel):
    probs, labels, _ = a_case(n * k, n, k)
    h = pair_matrix(probs, labels, kernel=kernel, nu=0.5)
    pairs = [h[2 * i, 2 * i + 1] for i in range(n // 2)]
    expected = {
        "ul": np.mean(pairs),
        "uq": (h.sum() - np.trace(h)) / (n * (n - 1)),
        "b": h.mean(),
    }
    for estimator, value in expected.items():
        measure = hc.SKCE(estimator=estimator, kernel=kernel, bandwidth=0.5)
        assert measure(probs, labels) == pytest.approx(value, abs=1e-13), estimator


@pytest.mark.parametrize("estimator", ["uq", "b"])
@pytest.mark.parametrize(("n", "k"), [(7, 2), (8, 6)])
def test_drawn_rows_are_recentered_by_kernel_algebra(estimator, n, k):
    probs, labels, counts = a_case(n, n, k)
    there, _, _ = a_case(n + 1, n, k)
    measure = hc.SKCE(estimator=estimator)
    parameters = measure.parameters(probs)
    offset = measure.offset_at(np.ascontiguousarray(there.T), labels, parameters)
    found = evaluated(measure, probs, labels, row_weights=counts.astype(float), offset=offset)
    drawn, drawn_labels = oracles.repeat_rows(probs, labels, counts)
    inner = pair_matrix(drawn, drawn_labels)
    cross = pair_matrix(drawn, drawn_labels, there, labels).mean(axis=1)
    inner = inner - cross[:, None] - cross[None] + pair_matrix(there, labels).mean()
    same_draw = np.eye(n, dtype=bool)
    expected = inner[~same_draw].sum() / (n * (n - 1)) if estimator == "uq" else inner.mean()
    assert found == pytest.approx(expected, abs=1e-13)


def test_rows_beyond_the_first_block_are_paired_with_all_others():
    probs, labels, counts = a_case(1, 133, 2)
    h = pair_matrix(probs, labels)
    assert hc.SKCE(estimator="b")(probs, labels) == pytest.approx(h.mean(), abs=1e-13)
    there, _, _ = a_case(2, 133, 2)
    measure = hc.SKCE(estimator="b")
    mixed = np.ascontiguousarray(there.T)
    offset = measure.offset_at(mixed, labels, measure.parameters(probs))
    found = evaluated(measure, probs, labels, row_weights=counts.astype(float), offset=offset)
    drawn, drawn_labels = oracles.repeat_rows(probs, labels, counts)
    cross = pair_matrix(drawn, drawn_labels, there, labels).mean()
    expected = pair_matrix(drawn, drawn_labels).mean() - 2 * cross
    assert found == pytest.approx(expected + pair_matrix(there, labels).mean(), abs=1e-13)


def test_packed_blocks_of_128_rows_have_classes_136_apart_twice():
    assert [_all_pairs.packed_size(3, n) for n in (1, 128, 129, 256)] == [816, 816, 1632, 1632]


@pytest.mark.parametrize("n", [5, 300])
def test_terms_of_some_rows_with_all_rows_are_those_of_the_matrix(n):
    probs, labels, _ = a_case(4, n, 2)
    error = (probs - np.eye(2)[labels]).T.copy()
    out = np.empty((2, n))
    scratch = np.empty(3 * _all_pairs.BLOCK)
    parameters = hc.SKCE(bandwidth=0.3).parameters(probs)
    _all_pairs.pair_terms(probs.T.copy(), error, 2, parameters, out, scratch)
    np.testing.assert_allclose(out, pair_matrix(probs, labels, nu=0.3)[2:4], atol=1e-14)


def test_sums_over_pairs_give_both_estimators():
    probs, labels, _ = a_case(8, 6, 3)
    h = pair_matrix(probs, labels)
    sums = np.array([h.sum(), np.trace(h)])
    for estimator in ("uq", "b"):
        measure = hc.SKCE(estimator=estimator)
        assert measure.finish_pairs(sums, 6) == pytest.approx(measure(probs, labels), abs=1e-14)
    assert hc.SKCE(estimator="ul").finish_pairs is None
    assert hc.SKCE(estimator="b", bandwidth="median").finish_pairs is None


def test_the_settings_of_a_kernel_are_those_that_were_given():
    kernel = GaussianTV(bandwidth=0.2)
    measure = hc.SKCE(estimator="b", kernel=kernel)
    assert measure.bandwidth == 0.2
    assert measure.settings() == {"estimator": "b", "bandwidth": 0.2, "kernel": "gaussian"}
    assert hc.SKCE(kernel=kernel, bandwidth=0.2).bandwidth == 0.2
    with pytest.raises(InvalidInputError, match="`bandwidth` must be left out"):
        hc.SKCE(kernel=kernel, bandwidth=0.3)
    with pytest.raises(InvalidInputError, match="`estimator`"):
        hc.SKCE(estimator="u")
    assert [each.rows_per_unit for each in hc.SKCE.defaults()] == [2, 1, 1]
    assert [each.order_matters for each in hc.SKCE.defaults()] == [True, False, False]


# What a measure refuses and warns of


def test_too_few_rows_are_refused_and_few_rows_are_warned_of():
    with pytest.raises(InvalidInputError, match=r"`skce_ul` needs at least 2 rows; got 1\."):
        hc.SKCE().check(1)
    hc.SKCE().check(2)
    hc.ConfidenceECE(n_bins=7).check(7)
    with pytest.warns(HullcalWarning, match="6 rows are fewer than the 7 that"):
        hc.ConfidenceECE(n_bins=7).check(6)
    # With one bin, two rows are still the fewest that say much.
    with pytest.warns(HullcalWarning, match="1 rows are fewer than the 2 that"):
        hc.ConfidenceECE(n_bins=1).check(1)


def test_a_function_as_a_measure_is_given_rows_and_must_give_a_number():
    seen = []

    def accuracy(probs, labels):
        seen.append((probs, labels))
        return np.float32(0.5)

    probs, labels, _ = a_case(1, 4, 3)
    measure = hc.measures.resolve(accuracy)
    assert measure(probs, labels) == 0.5
    np.testing.assert_array_equal(seen[0][0], probs)
    np.testing.assert_array_equal(seen[0][1], labels)
    assert seen[0][0].flags.c_contiguous
    assert (measure.name, measure.notion) == ("accuracy", "custom")
    assert measure.settings() == {"function": "accuracy"}
    assert measure.order_matters
    assert not measure.has_residual
    with pytest.raises(InvalidInputError, match="returned NaN"):
        hc.measures.resolve(lambda probs, labels: math.nan)(probs, labels)
    with pytest.raises(InvalidInputError, match="raised ZeroDivisionError"):
        hc.measures.resolve(lambda probs, labels: 1 / 0)(probs, labels)


def test_which_measures_stream_and_which_have_what_it_takes():
    assert hc.ConfidenceECE().streams()
    assert hc.SKCE().streams()
    assert not hc.SKCE(bandwidth="median").streams()
    assert not hc.SKCE(estimator="uq").halves_agree()
    assert not hc.HosmerLemeshow().streams()
    assert hc.HosmerLemeshow().over_chunks().approximate
    assert hc.ConfidenceECE().over_chunks() == hc.ConfidenceECE()
    assert hc.SKCE(estimator="b").over_chunks() is None


# The sketch of Hosmer and Lemeshow's statistic


def cells_by_definition(p, n_cells):
    """Three quarters of the cells by the eighth root of p, the others by the fourth root of 1 - p."""
    n_high = n_cells // 4
    low = (n_cells - n_high - 1.5) / 0.5**0.125
    high = (n_high - 1.5) / 0.5**0.25
    if p <= 0.0:
        return 0
    if p >= 1.0:
        return n_cells - 1
    if p < 0.5:
        return 1 + math.floor(p**0.125 * low)
    return n_cells - 2 - math.floor((1 - p) ** 0.25 * high)


@pytest.mark.parametrize("n_cells", [8, 33, 1024])
def test_cells_follow_the_scale(n_cells):
    p = np.concatenate([np.geomspace(1e-9, 0.499, 40), 1 - np.geomspace(1e-9, 0.499, 40), [0, 1]])
    cells = np.empty(len(p), dtype=np.uint32)
    cells_of(p, n_cells, cells)
    np.testing.assert_array_equal(cells, [cells_by_definition(each, n_cells) for each in p])
    edges = cell_edges(n_cells)[cells, 0]
    assert ((edges[:, 0] <= p) & (p <= edges[:, 1])).all()
    # Neighbouring cells share an edge, but for rounding, and reach from 0 to 1.
    inner = cell_edges(n_cells)[1:-1, 0]
    np.testing.assert_allclose(inner[1:, 0], inner[:-1, 1], rtol=1e-12)
    assert (np.diff(inner[:, 0]) > 0).all()
    assert inner[0, 0] == 0.0
    assert inner[-1, 1] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("parts", [2, 5])
def test_parts_lie_between_their_edges_and_in_order(parts):
    n_cells = 33
    p = np.sort(np.random.default_rng(0).random(300) ** 3)
    cells = np.empty(len(p), dtype=np.uint32)
    cells_of(p, n_cells, cells)
    own = np.array([part_of(each, n_cells, parts) for each in p])
    edges = cell_edges(n_cells, parts)[cells, own]
    assert ((edges[:, 0] <= p) & (p <= edges[:, 1])).all()
    same_cell = np.diff(cells.astype(int)) == 0
    assert (np.diff(own)[same_cell] >= 0).all()
    assert set(own) == set(range(parts))


@pytest.mark.parametrize("n_bins", [1, 3, 4])
def test_of_probabilities_with_cells_of_their_own_the_sketch_is_exact(n_bins):
    values = np.array([0.0, 0.1, 0.3, 0.6, 0.8, 1.0])
    rng = np.random.default_rng(n_bins)
    p = values[rng.integers(6, size=23)]
    labels = (rng.random(23) < p).astype(np.int32)
    probs = np.stack([1 - p, p], axis=1)
    measure = Sketch(n_bins=n_bins, n_cells=64)
    expected = oracles.hl_cwise(probs, labels, n_bins)
    assert evaluated(measure, probs, labels) == pytest.approx(expected, rel=1e-12)
    counts = np.bincount(rng.integers(23, size=23), minlength=23)
    offset = oracles.residual_hl(probs, labels, n_bins)
    found = evaluated(measure, probs, labels, row_weights=counts.astype(float), offset=offset)
    drawn = oracles.repeat_rows(probs, labels, counts)
    expected = oracles.recentered_value("hl_cwise", *drawn, offset, n_bins)
    assert found == pytest.approx(expected, rel=1e-12)


def orders(p, y, cells):
    """All orders of the rows that keep cells in order."""
    groups = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    for each in itertools.product(*(itertools.permutations(group) for group in groups)):
        rows = np.concatenate(each)
        yield p[rows], y[rows]


def test_the_enclosure_of_a_class_holds_every_order_and_is_sharp_for_events():
    # One class, 3 rows in each of 2 cells, 2 bins of 3 after a first cell of 1: cuts inside of cells.
    p = np.array([0.05, 0.2, 0.22, 0.24, 0.6, 0.62])
    y = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    cells = np.array([0, 1, 1, 1, 2, 2])
    edges = np.array([[[0.04, 0.06], [0.19, 0.25], [0.58, 0.63]]])
    sums = np.array(
        [[[(cells == c).sum(), p[cells == c].sum(), y[cells == c].sum()] for c in range(3)]]
    )
    least, most = enclosure(sums, edges, 3, 6)
    values = []
    for _, events in orders(p, y, cells):
        # Sorted by probability, labels inside of a cell in any order.
        o, q = events.reshape(3, 2).mean(axis=1), p.reshape(3, 2).mean(axis=1)
        values.append(((o - q) ** 2 / q).sum())
    assert least <= min(values)
    assert max(values) <= most
    # By hand: bin 1 holds 0 or 1 events of the second cell, bin 2 the others, bin 3 exactly one.
    boxes = [
        ((0.0, 0.5), ((0.05 + 0.19) / 2, (0.05 + 0.22) / 2)),
        ((0.5, 1.0), ((0.66 - 0.66 / 3) / 2, (0.66 - 0.19) / 2)),
        ((0.5, 0.5), (0.61, 0.61)),
    ]
    by_hand = sum(max((o - q) ** 2 / q for o in events for q in means) for events, means in boxes)
    assert most == pytest.approx(by_hand, rel=1e-12)
    nearest = ((0.5, 0.235), (0.5, 0.61))
    assert least == pytest.approx(sum((o - q) ** 2 / q for o, q in nearest), rel=1e-12)


def test_the_lowest_rows_of_a_cell_hold_what_the_others_cannot():
    # Two of three rows in [0.19, 0.25] with a sum of 0.66 have 0.41 at least, since the third has
    # 0.25 at most, and no more than their share; the third has 0.22 to 0.25. A row of 0.9 follows.
    sums = np.array([[[3.0, 0.66, 1.0], [1.0, 0.9, 1.0]]])
    edges = np.array([[[0.19, 0.25], [0.9, 0.91]]])
    least, most = enclosure(sums, edges, 2, 4)
    first = (0.5 - 0.41 / 2) ** 2 / (0.41 / 2)
    second = (1.0 - (0.22 + 0.9) / 2) ** 2 / ((0.22 + 0.9) / 2)
    assert most == pytest.approx(first + second, rel=1e-12)
    assert least == 0.0


def test_a_tie_that_straddles_a_cut_is_shared_in_proportion():
    # Four rows of exactly 1, three of them events, after two rows of a cell with no event: bins of 3.
    sums = np.array([[[2.0, 1.0, 0.0], [4.0, 4.0, 3.0]]])
    edges = np.array([[[0.4, 0.6], [1.0, 1.0]]])
    first, second = (0.75 / 3, (1.0 + 1.0) / 3), (2.25 / 3, 1.0)
    expected = sum((o - p) ** 2 / p for o, p in (first, second))
    assert enclosure(sums, edges, 2, 6) == pytest.approx((expected, expected), rel=1e-12)


def test_only_cells_that_straddle_a_cut_are_parted():
    # 7 rows in 3 bins: cuts after 3 rows and after 5. Either lies inside of a cell, the other at an end.
    for weights, parted in (([1, 1, 2, 0, 1, 1, 0, 1], 2), ([1, 2, 0, 3, 1, 0, 0, 0], 3)):
        cells = np.zeros((1, 8, KEPT))
        cells[0, :, 0] = weights
        second = _Refined.of(0.5, cells, 3, 7)
        expected = np.where(np.arange(8) == parted, 256, 1)
        np.testing.assert_array_equal(np.diff(second.starts[0]), expected)
        assert second.starts[0, 0] == 0
    # In the first and the last cell all probabilities are the same.
    cells[0, :, 0] = [4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0]
    second = _Refined.of(0.5, cells, 3, 7)
    np.testing.assert_array_equal(np.diff(second.starts[0]), np.ones(8))


@pytest.mark.parametrize("seed", range(4))
def test_the_stated_error_holds_the_exact_statistic(seed):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(3, 0.5), size=40)
    labels = np.array([rng.choice(3, p=p) for p in probs], dtype=np.int32)
    measure = Sketch(n_bins=4, n_cells=9)
    mixed, parameters = np.ascontiguousarray(probs.T), measure.parameters(probs)
    state, ones = np.zeros(measure.state_size(3)), np.ones(40)
    measure.accumulate(mixed, labels, ones, parameters, state, np.zeros(20))
    assert state.reshape(3, 9, KEPT).sum(axis=1) == pytest.approx(
        np.column_stack([np.full(3, 40), probs.sum(axis=0), np.bincount(labels, minlength=3)])
    )
    second = measure.refined(state, 40)
    value = evaluated(measure, probs, labels)
    assert second.value_found == pytest.approx(value, rel=1e-14)
    again = np.zeros(second.state_size(3))
    scratch = np.zeros(second.scratch_size(3, 40))
    second.accumulate(mixed, labels, ones, second.parameters(probs), again, scratch)
    bound = second.error_bound(again, 40)
    error = abs(oracles.hl_cwise(probs, labels, 4) - value)
    assert error <= bound * (1 + 1e-9)
    # Cut into parts, rows of a cell are hardly confused: what is stated is not far from the error.
    assert bound <= error + 0.1 * (1.0 + value)
