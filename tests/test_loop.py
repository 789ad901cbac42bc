"""The loop over replicates: blocks, waves, Besag and Clifford's early stopping, and its journal."""

import itertools
from functools import partial

import numpy as np
import pytest

import hullcal as hc
from hullcal import InvalidInputError
from hullcal.io.journal import Journal
from hullcal.minimizers import Pairwise
from hullcal.pvalues import monte_carlo
from hullcal.resampling import Loop, kept_in, kept_seed
from simulation import judged

STOPPING = ["paper", "recentered", "refit"]
SEED = 0
judge = partial(judged, minimizer=Pairwise(max_evaluations=30), alpha=0.1, rng=0)


def calibrated_set(seed=0, n=60, m=3, k=3):
    data = hc.simulation.scenario("S1", n_samples=n, n_members=m, n_classes=k, spread=1.0, rng=seed)
    return data.probs, data.labels


def block_of(values, calls=None):
    """What the loop runs: known values, three evaluations each."""

    def block(first, last):
        if calls is not None:
            calls.append((first, last))
        return np.column_stack([values[first:last], np.full(last - first, 3.0)])

    return block


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
    worlds, run = [], Loop.run
    monkeypatch.setattr(Loop, "run", lambda *a, **k: worlds.append(run(*a, **k)) or worlds[-1])
    probs, labels = calibrated_set()
    whole = judge(probs, labels, null="stacked", n_resamples=99)
    full = [found[:, 0] for found in worlds]
    assert len(full) > 1
    for h in (2, 5, 20):
        worlds.clear()
        found = judge(probs, labels, null="stacked", n_resamples=99, stop_after=h, n_jobs=n_jobs)
        assert found.statistic == whole.statistic
        for part, values in zip(worlds, full, strict=True):
            np.testing.assert_array_equal(part[:, 0], values[: len(part)])
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
    (note,) = found.notes
    at = found.n_resamples + 1
    assert note.code == "stopped"
    assert note.data == {"resample": at, "of_resamples": 999, "stop_after": 5}
    assert str(note) == f"stopped at resample {at} of 999: 5 null values reached the statistic"


def test_progress_reaches_its_end_when_the_run_stops():
    told = []
    options = {"null": "refit", "n_resamples": 500, "stop_after": 3}
    judge(*calibrated_set(), **options, progress=lambda *report: told.append(report))
    assert told[-1] == (500, 500)
    assert all(before[0] < after[0] for before, after in itertools.pairwise(told))


@pytest.mark.parametrize("h", [2, 3])
def test_under_the_null_the_p_value_is_at_most_alpha_with_chance_at_most_alpha(h):
    # All ranks of the statistic among D values are equally likely, and so are all orders: enumerate them.
    n_resamples = 6
    loop = Loop(n_resamples=n_resamples, seed=SEED, stop_after=h)
    found = []
    for order in itertools.permutations(range(n_resamples + 1)):
        statistic, values = float(order[0]), np.array(order[1:], dtype=np.float64)
        kept = loop.run(block_of(values), statistic, together=n_resamples, n_jobs=1)
        p = monte_carlo(statistic, kept[:, 0])
        assert p == pytest.approx(rule(values, statistic, h))
        found.append(p)
    for alpha in sorted(set(found)):
        assert np.mean(np.array(found) <= alpha) <= alpha + 1e-12
    # And it is not needlessly so: small p-values have exactly their chance.
    smallest = 1 / (n_resamples + 1)
    assert np.mean(np.array(found) <= smallest) == pytest.approx(smallest)


def test_a_null_whose_resamples_are_run_together_cannot_stop():
    for option in ({"stop_after": 5}, {"journal": "somewhere"}):
        words = f"`{next(iter(option))}` must be None with null `maximized`"
        with pytest.raises(InvalidInputError, match=words):
            judge(*calibrated_set(), null="maximized", n_resamples=19, **option)


# Blocks


def test_blocks_are_no_larger_than_is_asked_and_waves_end_where_enough_is_known():
    values, calls = np.arange(20.0), []
    whole = Loop(n_resamples=5, seed=SEED).run(block_of(values, calls), 0.0, together=2, n_jobs=1)
    np.testing.assert_array_equal(whole, np.column_stack([np.arange(5.0), np.full(5, 3.0)]))
    assert calls == [(0, 2), (2, 4), (4, 5)]
    calls.clear()
    # Waves of twice the exceedances that are enough; the second to reach 4.5 is 6, which is left out.
    found = Loop(n_resamples=20, seed=SEED, stop_after=2).run(
        block_of(values, calls), 4.5, together=20, n_jobs=1
    )
    np.testing.assert_array_equal(found[:, 0], np.arange(6))
    assert calls == [(0, 4), (4, 8)]


@pytest.mark.parametrize("stop_after", [None, 4])
def test_threads_share_a_wave_and_change_no_value(stop_after):
    values, calls = np.arange(50.0), []
    loop = Loop(n_resamples=50, seed=SEED, stop_after=stop_after)
    found = loop.run(block_of(values, calls), 60.0, together=50, n_jobs=3)
    np.testing.assert_array_equal(found[:, 0], values)
    # Four blocks a thread of all replicates, or one a thread of a wave of eight.
    assert max(last - first for first, last in calls) == (5 if stop_after is None else 3)
    assert min(calls)[0] == 0
    assert all(a[1] == b[0] for a, b in itertools.pairwise(sorted(calls)))


def test_progress_of_parts_is_told_in_resamples_of_all_each_once():
    told = []
    loop = Loop(n_resamples=20, seed=SEED, progress=lambda *each: told.append(each))
    for part in range(3):
        loop.run(block_of(np.arange(20.0)), 60.0, together=1, n_jobs=1, part=part, of_parts=3)
    # Though 60 replicates are run, and 20 / 3 of them are no whole number.
    assert told == [(each, 20) for each in range(1, 21)]


# The journal


def test_known_replicates_are_not_run_again_and_others_are(tmp_path):
    calls, values = [], np.arange(5) / 3
    block = block_of(values, calls)
    for first, last in ((0, 3), (2, 5)):
        calls.clear()
        with kept_in(tmp_path / "here", {"seed": 7}) as journal:
            journal.check_data(0.25, np.array([1.0, -3.0]))
            kept = journal.keeping("part", block)(first, last)
        np.testing.assert_array_equal(kept[:, 0], values[first:last])
        assert calls == [(first, last)]
    with kept_in(tmp_path / "here", {"seed": 7}) as journal:
        calls.clear()
        known = journal.keeping("part", block)(1, 5)
        np.testing.assert_array_equal(known, block_of(values)(1, 5))
        assert calls == []
        journal.keeping("another", block)(1, 2)
        assert calls == [(1, 2)]
        with pytest.raises(InvalidInputError, match=r"statistic of 0\.25 and a fingerprint of -3"):
            journal.check_data(0.25, np.array([1.0, -3.001]))
        journal.check_data(0.25 + 1e-14, np.array([1.0, -3.0]))
    assert kept_seed(tmp_path / "here") == 7
    assert kept_seed(tmp_path / "elsewhere") is None


def test_a_journal_of_something_else_is_refused(tmp_path):
    with Journal.open(tmp_path, {"seed": 1}, resume=True) as journal:
        journal.append(("part", 0, 3), {"values": [1.0, 2.0], "evaluations": [1.0, 1.0]})
    (tmp_path / "file").write_text("")
    for folder, seed, words in (
        (tmp_path, 1, "another block 'part' from 0"),
        (tmp_path, 2, r"`journal`.* or delete this one\."),
        (tmp_path / "file", 1, "must be a folder"),
        (3, 1, "must be a path"),
    ):
        with pytest.raises(InvalidInputError, match=words), kept_in(folder, {"seed": seed}):
            pass
