"""A test that was stopped goes on: journals of finished resamples."""

import json
import math
from functools import partial

import numpy as np
import pytest

import hullcal as hc
from hullcal.objectives import opening

TESTS = {
    "truth": hc.truth_test,
    "truth by a measure": partial(hc.truth_test, measure="ece_conf"),
    **{
        null: partial(hc.calibration_test, null=null) for null in ("paper", "recentered", "stacked")
    },
}
OPTIONS = {"n_resamples": 60, "rng": 3}
#: A test of which resamples are quick.
quick = partial(hc.truth_test, measure="ece_conf")


class Stopped(Exception):
    """What a progress callback raises to stop a run."""


def data(seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(3), size=(120, 3))
    return probs, hc.simulation.draw_labels(probs.mean(axis=1), rng)


def stop(done, total):
    if done > 10:
        raise Stopped


def lines(folder):
    return (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", TESTS)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(name, tmp_path):
    test = TESTS[name]
    whole = test(*data(), **OPTIONS)
    with pytest.raises(Stopped):
        test(*data(), journal=tmp_path / "j", n_jobs=3, progress=stop, **OPTIONS)
    # On a busy machine threads may finish all before they hear of the stop: the last block is taken away.
    kept = lines(tmp_path / "j")[:-1]
    (tmp_path / "j" / "journal.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    before = len(kept)
    resumed = test(*data(), journal=tmp_path / "j", **OPTIONS)
    # Something was kept, something was missing.
    assert len(lines(tmp_path / "j")) > before >= 2
    assert resumed == whole


@pytest.mark.parametrize(
    "other",
    [{"n_resamples": 61}, {"rng": 4}, {"measure": "ece_cwise"}, {"minimizer": "random"}],
    ids=lambda other: next(iter(other)),
)
def test_another_configuration_is_refused(other, tmp_path):
    quick(*data(), journal=tmp_path, **OPTIONS)
    with pytest.raises(
        hc.InvalidInputError, match=r"`journal` needs the same configuration.*folder"
    ):
        quick(*data(), journal=tmp_path, **{**OPTIONS, **other})


@pytest.mark.parametrize("spoiled", ["values", "evaluations"])
def test_what_no_test_gives_is_not_taken_from_a_journal(spoiled, tmp_path):
    quick(*data(), journal=tmp_path, **OPTIONS)
    *others, last = lines(tmp_path)
    block = json.loads(last)
    block["columns"][spoiled][0] = math.nan
    text = "\n".join([*others, json.dumps(block)]) + "\n"
    (tmp_path / "journal.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(hc.InvalidInputError, match="`journal` must hold what hullcal wrote"):
        quick(*data(), journal=tmp_path, **OPTIONS)


def same_statistic():
    """Labels of classes that are never predicted can change without changing a confidence."""
    rng = np.random.default_rng(5)
    probs = np.full((60, 2, 4), 0.1)
    probs[:, :, 0] = rng.uniform(0.5, 0.7, (60, 2))
    probs[:, :, 1:] = rng.dirichlet([1, 1, 1], (60, 2)) * (1 - probs[:, :, :1])
    labels = rng.integers(0, 4, 60)
    return (probs, labels), (probs, np.where(labels == 0, 0, 1 + labels % 3))


def infinite_statistic():
    def impossible(seed):
        probs = np.random.default_rng(seed).dirichlet([1, 1], size=(40, 2))
        probs[:5] = [1.0, 0.0]
        return probs, np.r_[np.ones(5, int), np.zeros(35, int)]

    return impossible(0), impossible(1)


def another_order(members):
    """Draws belong to row numbers, so what is kept would be of another run."""
    probs, labels = data()
    order = np.r_[1, 0, 2 : len(labels)]
    probs = probs[:, :members]
    return (probs, labels), (probs[order], labels[order])


@pytest.mark.parametrize(
    ("pair", "same", "options"),
    [
        ((data(), data(1)), False, {}),
        (same_statistic(), True, {"minimizer": "random"}),
        (infinite_statistic(), True, {"measure": "hl_cwise"}),
        (another_order(2), True, {"minimizer": "exact"}),
        (another_order(1), True, {}),
        (another_order(3), False, {"measure": "skce_ul"}),
    ],
)
def test_other_data_are_refused_even_with_the_same_statistic(pair, same, options, tmp_path):
    options = {"n_resamples": 19, "rng": 0, **options}
    first = quick(*pair[0], journal=tmp_path, **options)
    assert quick(*pair[0], journal=tmp_path, **options).statistic == first.statistic
    if same:
        assert quick(*pair[1], **options).statistic == pytest.approx(first.statistic)
    with pytest.raises(hc.InvalidInputError, match="same data, rows in the same order"):
        quick(*pair[1], journal=tmp_path, **options)


def test_a_null_without_finished_resamples_takes_no_journal(tmp_path):
    with pytest.raises(hc.InvalidInputError, match="`journal` must be None with null `maximized`"):
        hc.calibration_test(*data(), null="maximized", journal=tmp_path / "j", **OPTIONS)
    assert not (tmp_path / "j").exists()


def test_an_assessment_keeps_a_journal_for_each_test(tmp_path):
    measures = [hc.ConfidenceECE(n_bins=10), hc.ConfidenceECE(n_bins=15)]
    options = {"measures": measures, "null": "paper", "stop_after": None, **OPTIONS}
    options |= {"n_resamples": 146}
    whole = hc.assess(*data(), **options)

    def stop_later(what, done, total):
        if done > total // 2:
            raise Stopped

    with pytest.raises(Stopped):
        hc.assess(*data(), journal=tmp_path, progress=stop_later, **options)
    resumed = hc.assess(*data(), journal=tmp_path, **{**options, "rng": None})
    assert resumed.results == whole.results
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "average-ece_conf", "average-ece_conf.2", "calibrated-ece_conf", "calibrated-ece_conf.2",
        "truth-likelihood",
    ]  # fmt: skip


def test_stopping_early_goes_on_as_well(tmp_path):
    options = {"stop_after": 5, **OPTIONS}
    whole = quick(*data(), **options)
    for _ in range(2):
        assert quick(*data(), journal=tmp_path, **options) == whole


def test_a_journal_begun_in_memory_goes_on_by_passes_over_rows(monkeypatch, tmp_path):
    """What tells other data apart must not depend on how these were read."""
    found = []
    for many in (10**9, 1):
        monkeypatch.setattr(opening, "_MANY_ROWS", many)
        monkeypatch.setattr(opening, "_LARGE", many)
        found.append(hc.calibration_test(*data(), journal=tmp_path, **OPTIONS))
    assert found[1].pvalue == found[0].pvalue
