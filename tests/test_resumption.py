"""A test that was stopped goes on: journals of finished resamples."""

import tempfile

import numpy as np
import pytest

import hullcal as hc
from hullcal import resampling
from hullcal.objectives import opening

NULLS = ["paper", "recentered", "refit", "stacked"]
OPTIONS = {"n_resamples": 60, "rng": 3}


class Stopped(Exception):
    """What a progress callback raises to stop a run."""


def data(seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(3), size=(120, 3)), rng.integers(0, 3, 120)


def stop(done, total):
    if done > 10:
        raise Stopped


def lines(folder):
    return (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()


def stopped(folder, null="refit", n_jobs=3):
    with pytest.raises(Stopped):
        hc.calibration_test(
            *data(), null=null, journal=folder, n_jobs=n_jobs, progress=stop, **OPTIONS
        )


@pytest.mark.parametrize("null", NULLS)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(null, tmp_path):
    whole = hc.calibration_test(*data(), null=null, **OPTIONS)
    stopped(tmp_path / "j", null)
    # On a busy machine threads may finish all before they hear of the stop: the last block is taken away.
    kept = lines(tmp_path / "j")[:-1]
    (tmp_path / "j" / "journal.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    before = len(kept)
    resumed = hc.calibration_test(*data(), null=null, journal=tmp_path / "j", **OPTIONS)
    assert before > 2  # something was kept, something was missing
    assert len(lines(tmp_path / "j")) > before
    assert (resumed.null_distribution == whole.null_distribution).all()
    assert resumed.statistic == whole.statistic
    assert resumed.n_evaluations == whole.n_evaluations


def test_without_a_seed_the_journal_s_is_taken(tmp_path):
    first = hc.calibration_test(*data(), null="refit", journal=tmp_path, n_resamples=19)
    again = hc.calibration_test(*data(), null="refit", journal=tmp_path, n_resamples=19)
    assert again.seed == first.seed
    assert (again.null_distribution == first.null_distribution).all()


@pytest.mark.parametrize(
    "other",
    [{"n_resamples": 61}, {"rng": 4}, {"measure": "ece_cwise"}, {"null": "recentered"}],
    ids=lambda other: next(iter(other)),
)
def test_another_configuration_is_refused(other, tmp_path):
    hc.calibration_test(*data(), journal=tmp_path, **{"null": "refit", **OPTIONS})
    with pytest.raises(
        hc.InvalidInputError, match=r"`journal` needs the same configuration.*folder"
    ):
        hc.calibration_test(*data(), journal=tmp_path, **{"null": "refit", **OPTIONS, **other})


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
        (another_order(3), False, {"measure": "skce_b"}),
        (another_order(3), False, {"measure": "skce_ul"}),
    ],
)
def test_other_data_are_refused_even_with_the_same_statistic(pair, same, options, tmp_path):
    options = {"null": "refit", "n_resamples": 19, "rng": 0, **options}
    first = hc.calibration_test(*pair[0], journal=tmp_path, **options)
    assert hc.calibration_test(*pair[0], journal=tmp_path, **options).statistic == first.statistic
    if same:
        assert hc.calibration_test(*pair[1], **options).statistic == pytest.approx(first.statistic)
    with pytest.raises(hc.InvalidInputError, match="same data, rows in the same order"):
        hc.calibration_test(*pair[1], journal=tmp_path, **options)


def test_a_null_without_finished_resamples_takes_no_journal(tmp_path):
    with pytest.raises(hc.InvalidInputError, match="`journal` must be None with null `maximized`"):
        hc.calibration_test(*data(), null="maximized", journal=tmp_path / "j", **OPTIONS)
    assert not (tmp_path / "j").exists()


def test_an_assessment_keeps_a_journal_for_each_test(tmp_path):
    measures = [hc.ConfidenceECE(n_bins=10), hc.ConfidenceECE(n_bins=15)]
    options = {"measures": measures, "nulls": ["refit", "paper"], **OPTIONS}
    whole = hc.assessment.assess(*data(), **options)

    def stop_later(what, done, total):
        if done > total // 2:
            raise Stopped

    with pytest.raises(Stopped):
        hc.assessment.assess(*data(), journal=tmp_path, progress=stop_later, **options)
    resumed = hc.assessment.assess(*data(), journal=tmp_path, **{**options, "rng": None})
    assert [r.seed for r in resumed.results] == [3] * 4
    for one, other in zip(whole.results, resumed.results, strict=True):
        assert (one.null_distribution == other.null_distribution).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ece_conf-paper", "ece_conf-paper.2", "ece_conf-refit", "ece_conf-refit.2",
    ]  # fmt: skip


def test_stopping_early_goes_on_as_well(tmp_path):
    options = {"null": "refit", "stop_after": 5, **OPTIONS}
    whole = hc.calibration_test(*data(), **options)
    for _ in range(2):
        kept = hc.calibration_test(*data(), journal=tmp_path, **options)
        assert kept.pvalue == whole.pvalue
        assert (kept.null_distribution == whole.null_distribution).all()


def test_passes_over_rows_have_the_fingerprint_of_packed_data(monkeypatch):
    probs, labels = data()
    found = []
    check = resampling.ResamplingJournal.check_data

    def kept(journal, statistic, fingerprint):
        found.append(fingerprint)
        return check(journal, statistic, fingerprint)

    monkeypatch.setattr(resampling.ResamplingJournal, "check_data", kept)
    with tempfile.TemporaryDirectory() as folder:
        for many in (10**9, 1):
            monkeypatch.setattr(opening, "_MANY_ROWS", many)
            monkeypatch.setattr(opening, "_LARGE", many)
            hc.calibration_test(probs, labels, journal=folder, **OPTIONS)
    packed, passed = found
    np.testing.assert_allclose(passed, packed, rtol=1e-13)
    chances = probs[np.arange(len(labels)), :, labels]
    np.testing.assert_allclose(np.sort(packed[:3]), np.sort(chances.sum(axis=0)), rtol=1e-13)
