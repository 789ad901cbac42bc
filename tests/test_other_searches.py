"""How much of a p-value is left to the search, and is it told?"""

import numpy as np
import pytest

import hullcal as hc
from hullcal.assessment import assess
from hullcal.cli import tables
from hullcal.nulls import _base

NULLS = ["recentered", "refit", "stacked"]


def rugged(seed=0, n_members=6):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(4), size=(150, n_members))
    return probs, np.array([rng.choice(4, p=p) for p in probs.mean(axis=1)])


@pytest.mark.parametrize("null", NULLS)
def test_others_are_what_the_search_finds_with_members_in_other_orders(null, monkeypatch):
    probs, labels = rugged()
    orders = []
    reordered = _base.Packed.reordered

    def seen(objective, order):
        orders.append(order)
        return reordered(objective, order)

    monkeypatch.setattr(_base.Packed, "reordered", seen)
    found = hc.calibration_test(probs, labels, null=null, n_resamples=199, rng=0)
    assert len(found.other_searches) == len(orders) == 9
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    # Not all end where the first did, and none ends below what a long search finds.
    best = hc.minimize(probs, labels, rng=0).value
    assert len({found.statistic, *found.other_searches}) > 1
    assert min(found.other_searches) >= best - 1e-12
    p = [hc.pvalues.monte_carlo(t, found.null_distribution) for t in found.other_searches]
    assert found.pvalue_range == (min(found.pvalue, *p), max(found.pvalue, *p))


def test_nothing_else_depends_on_them(monkeypatch):
    probs, labels = rugged()
    options = {"n_resamples": 99, "rng": 3}
    found = hc.calibration_test(probs, labels, **options)
    monkeypatch.setattr(_base, "_OTHERS", 0)
    without = hc.calibration_test(probs, labels, **options)
    assert found.other_searches != without.other_searches == ()
    assert without.pvalue_range == (without.pvalue, without.pvalue)
    for name in ("statistic", "pvalue", "n_evaluations", "seed"):
        assert getattr(found, name) == getattr(without, name)
    np.testing.assert_array_equal(found.null_distribution, without.null_distribution)
    np.testing.assert_array_equal(found.weights, without.weights)


@pytest.mark.parametrize(
    ("n_resamples", "n_others"), [(1, 0), (19, 0), (20, 1), (99, 4), (179, 8), (180, 9), (999, 9)]
)
def test_each_is_worth_twenty_resamples(n_resamples, n_others):
    probs, labels = rugged(n_members=2)
    options = {"alpha": 0.6, "minimizer": hc.minimizers.Pairwise(max_evaluations=9), "rng": 0}
    found = hc.calibration_test(probs, labels, n_resamples=n_resamples, **options)
    assert len(found.other_searches) == n_others


@pytest.mark.parametrize(
    "options",
    [
        {"null": "paper"},
        {"null": "maximized"},
        {"pvalue_only": True},
        {"stop_after": 5},
        {"minimizer": "exact"},
    ],
    ids=str,
)
def test_where_there_are_none(options):
    probs, labels = rugged(n_members=2)
    found = hc.calibration_test(probs, labels, n_resamples=40, rng=0, **options)
    assert found.other_searches == ()
    assert not found.depends_on_search
    assert "other search" not in str(found)


def test_one_member_many_classes_and_large_data_have_none(monkeypatch):
    probs, labels = rugged()
    assert hc.calibration_test(probs[:, :1], labels, n_resamples=40, rng=0).other_searches == ()
    rng = np.random.default_rng(0)
    many = rng.dirichlet(np.ones(60), size=(50, 2)), rng.integers(60, size=50)
    assert hc.calibration_test(*many, null="refit", n_resamples=20, rng=0).other_searches == ()
    monkeypatch.setattr(_base, "_COPIED", probs.size - 1)
    assert hc.calibration_test(probs, labels, n_resamples=40, rng=0).other_searches == ()
    monkeypatch.setattr(_base, "_COPIED", probs.size)
    assert hc.calibration_test(probs, labels, n_resamples=40, rng=0).other_searches != ()


def test_a_decision_that_others_would_not_make_is_told():
    probs, labels = rugged()
    found = hc.calibration_test(probs, labels, n_resamples=199, rng=0)
    low, high = found.pvalue_range
    assert low < high
    inside = hc.calibration_test(probs, labels, n_resamples=199, rng=0, alpha=(low + high) / 2)
    outside = hc.calibration_test(probs, labels, n_resamples=199, rng=0, alpha=high)
    assert inside.depends_on_search
    assert "(other searches decide otherwise)" in str(inside)
    assert f"with 9 other searches of these data: {low:.4g} to {high:.4g}" in str(inside)
    assert not outside.depends_on_search
    assert "otherwise" not in str(outside)
    at_low = hc.calibration_test(probs, labels, n_resamples=199, rng=0, alpha=low)
    assert at_low.depends_on_search  # the smallest p rejects at its own level, the others do not


def test_sentences_and_tables_tell_it():
    probs, labels = rugged()
    first = assess(probs, labels, nulls="refit", n_resamples=199, rng=0)
    low, high = first.results[0].pvalue_range
    middle = assess(probs, labels, nulls="refit", n_resamples=199, rng=0, alpha=(low + high) / 2)
    words = f"over this and 9 others of the same data, p runs from {low:.3g} to {high:.3g}."
    assert words in middle.sentences()[0]
    assert middle.verdicts()[0]["depends_on_search"] is True
    assert f"{low:.3g} to {high:.3g}" in tables.assessment(middle)
    above = assess(probs, labels, nulls="refit", n_resamples=199, rng=0, alpha=high)
    assert "depends on the search" not in above.sentences()[0]
    assert above.verdicts()[0]["depends_on_search"] is False
    # Adjusted for two measures, the range is as well.
    two = assess(
        probs, labels, measures=["ece_conf", hc.ConfidenceECE(n_bins=10)], nulls="refit",
        n_resamples=199, rng=0, alpha=min(0.99, low + high),
    )  # fmt: skip
    factor = two.adjusted[0] / two.results[0].pvalue
    assert factor > 1
    ends = f"p runs from {factor * low:.3g} to {min(1.0, factor * high):.3g}."
    assert ends in two.sentences()[0]


def test_json_gives_them_back():
    probs, labels = rugged()
    found = hc.calibration_test(probs, labels, n_resamples=99, rng=0)
    (again,) = hc.io.from_json(hc.io.to_json(found))
    assert again == found
    assert again.other_searches == found.other_searches
    assert type(again.other_searches) is tuple
