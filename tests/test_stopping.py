"""Stopping early: Besag and Clifford's rule, whatever the threads, and its p-value is valid."""

import itertools
from functools import partial

import numpy as np
import pytest

import hullcal as hc
from hullcal.minimizers import Pairwise
from hullcal.nulls import Resampling, stacked
from hullcal.pvalues import monte_carlo

STOPPING = ["paper", "recentered", "refit"]
judge = partial(hc.calibration_test, minimizer=Pairwise(max_evaluations=30), alpha=0.1, rng=0)


def calibrated_set(seed=0, n=60, m=3, k=3):
    data = hc.simulation.scenario("S1", n_samples=n, n_members=m, n_classes=k, spread=1.0, rng=seed)
    return data.probs, data.labels


def rule(null_values, statistic, h):
    """The rule in its own words: p = h / l at the l-th value, else (1 + count) / (1 + D)."""
    count = 0
    for draws, value in enumerate(null_values, 1):
        count += value >= statistic
        if count == h:
            return h / draws
    return (1 + count) / (1 + len(null_values))


@pytest.mark.parametrize("null", STOPPING)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_stopping_cuts_the_full_run_short_by_the_rule(null, n_jobs):
    probs, labels = calibrated_set()
    whole = judge(probs, labels, null=null, n_resamples=99)
    for h in (2, 5, 20):
        found = judge(probs, labels, null=null, n_resamples=99, stop_after=h, n_jobs=n_jobs)
        assert found.statistic == whole.statistic
        assert found.pvalue == pytest.approx(rule(whole.null_distribution, whole.statistic, h))
        kept = len(found.null_distribution)
        np.testing.assert_array_equal(found.null_distribution, whole.null_distribution[:kept])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_world_stops_by_the_rule_and_the_largest_p_value_counts(n_jobs, monkeypatch):
    worlds, distributions = [], stacked._distributions
    monkeypatch.setattr(
        stacked, "_distributions", lambda *a: worlds.append(distributions(*a)) or worlds[-1]
    )
    probs, labels = calibrated_set()
    whole = judge(probs, labels, null="stacked", n_resamples=99)
    (full,) = worlds
    assert len(full) > 1
    for h in (2, 5, 20):
        found = judge(probs, labels, null="stacked", n_resamples=99, stop_after=h, n_jobs=n_jobs)
        assert found.statistic == whole.statistic
        for part, values in zip(worlds[-1], full, strict=True):
            np.testing.assert_array_equal(part, values[: len(part)])
        largest = max(rule(values, whole.statistic, h) for values in full)
        assert found.pvalue == pytest.approx(largest)


@pytest.mark.parametrize("null", [*STOPPING, "stacked"])
def test_threads_change_nothing_of_a_run_that_stops(null):
    probs, labels = calibrated_set(1)
    one, two = (
        judge(probs, labels, null=null, n_resamples=199, stop_after=4, n_jobs=n) for n in (1, 2)
    )
    assert one.to_dict() == two.to_dict()


def test_a_clearly_calibrated_set_takes_few_resamples_and_says_so():
    probs, labels = calibrated_set()
    found = judge(probs, labels, null="refit", n_resamples=999, stop_after=5)
    assert found.n_evaluations <= 30 * 61
    assert found.n_resamples < 60
    assert found.pvalue == 5 / (found.n_resamples + 1)
    assert found.notes == (
        f"stopped at resample {found.n_resamples + 1} of 999, the number 5 to reach the statistic",
    )


def test_a_set_that_is_rejected_takes_all_of_them():
    labels = np.zeros(60, dtype=int)
    probs = np.full((60, 2, 2), 0.5)
    probs[:, 1] = [0.4, 0.6]
    found = judge(probs, labels, null="refit", n_resamples=99, stop_after=5)
    assert found.n_resamples == 99
    assert found.pvalue == 0.01
    assert found.notes == ()


def test_progress_reaches_its_end_when_the_run_stops():
    told = []
    probs, labels = calibrated_set()
    judge(
        probs,
        labels,
        null="refit",
        n_resamples=500,
        stop_after=3,
        progress=lambda *report: told.append(report),
    )
    assert told[-1] == (500, 500)
    assert all(before[0] < after[0] for before, after in itertools.pairwise(told))


@pytest.mark.parametrize("h", [2, 3])
def test_under_the_null_the_p_value_is_at_most_alpha_with_chance_at_most_alpha(h):
    # All ranks of the statistic among D values are equally likely, and so are all orders: enumerate them.
    n_resamples = 6
    enough = Resampling(n_resamples, np.zeros(2, dtype=np.uint64), stop_after=h).enough
    found = []
    for order in itertools.permutations(range(n_resamples + 1)):
        statistic, values = float(order[0]), np.array(order[1:], dtype=np.float64)
        kept = enough(statistic)(values)
        p = monte_carlo(statistic, values if kept is None else values[:kept])
        assert p == pytest.approx(rule(values, statistic, h))
        found.append(p)
    for alpha in sorted(set(found)):
        assert np.mean(np.array(found) <= alpha) <= alpha + 1e-12
    # And it is not needlessly so: small p-values have exactly their chance.
    smallest = 1 / (n_resamples + 1)
    assert np.mean(np.array(found) <= smallest) == pytest.approx(smallest)


def test_a_null_whose_resamples_are_run_together_cannot_stop():
    words = "`stop_after` must be None with null `maximized`"
    with pytest.raises(hc.InvalidInputError, match=words):
        judge(*calibrated_set(), null="maximized", n_resamples=19, stop_after=5)
    with pytest.raises(hc.InvalidInputError, match="`stop_after`"):
        hc.assessment.assess(*calibrated_set(), nulls=["refit", "maximized"], stop_after=5)
