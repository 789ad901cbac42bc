"""Searches that end below the statistic: the same p-value for a fraction of the evaluations."""

import numpy as np
import pytest

import hullcal as hc
from hullcal import pvalues
from hullcal._compiled import streams
from hullcal._compiled.mixing import cumulate, draw_labels, draw_of_many, turned
from hullcal.engines import local
from hullcal.minimizers import Pairwise
from hullcal.sets import ClassifierSet


def data(n_samples, n_members, n_classes, *, seed=0, kind="mean", tenths=False):
    """A set around a truth, with labels of the mean, of the truth, or of something else.

    Predictions in tenths are those of ten voters: all on edges of bins, and many alike.
    """
    rng = np.random.default_rng(seed)
    prior = np.full(n_classes, 0.5)
    truth = rng.dirichlet(prior, n_samples)
    others = rng.dirichlet(prior, (n_samples, n_members))
    members = 0.5 * truth[:, np.newaxis] + 0.5 * others
    if tenths:
        members = rng.multinomial(10, members) / 10
    law = {
        "mean": members.mean(axis=1),
        "truth": truth,
        "else": rng.dirichlet(prior, n_samples),
    }[kind]
    return members, np.array([rng.choice(n_classes, p=p) for p in law])


KINDS = ["mean", "truth", "else"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("null", ["recentered", "refit", "stacked", "paper", "maximized"])
@pytest.mark.parametrize("measure", sorted(hc.measures.available()))
def test_the_pvalue_is_the_same_and_null_values_are_bounds(measure, null, kind):
    members, labels = data(60, 4, 3, seed=KINDS.index(kind), kind=kind)
    settings = {"measure": measure, "null": null, "n_resamples": 39, "rng": 5}
    whole = hc.calibration_test(members, labels, **settings)
    short = hc.calibration_test(members, labels, pvalue_only=True, **settings)
    assert short.pvalue == whole.pvalue
    assert short.statistic == whole.statistic
    np.testing.assert_array_equal(short.weights, whole.weights)
    reached = pvalues.exceeds(whole.null_distribution, whole.statistic)
    np.testing.assert_array_equal(
        short.null_distribution[reached], whole.null_distribution[reached]
    )
    below = short.null_distribution[~reached]
    assert (below >= whole.null_distribution[~reached] - 1e-12).all()
    assert not pvalues.exceeds(below, whole.statistic).any()


@pytest.mark.parametrize("null", ["recentered", "refit"])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
def test_entries_of_many_classes_give_the_same_pvalue(measure, null):
    members, labels = data(300, 4, 70, kind="truth")
    settings = {"measure": measure, "null": null, "n_resamples": 19, "alpha": 0.1, "rng": 2}
    whole = hc.calibration_test(members, labels, **settings)
    assert hc.calibration_test(members, labels, pvalue_only=True, **settings).pvalue == whole.pvalue


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("null", ["recentered", "refit", "stacked"])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
def test_votes_on_edges_of_bins_give_the_same_pvalue(measure, null, seed):
    members, labels = data(80, 5, 3, seed=seed, kind=KINDS[seed % 3], tenths=True)
    settings = {"measure": measure, "null": null, "n_resamples": 59, "rng": seed}
    whole = hc.calibration_test(members, labels, **settings)
    assert hc.calibration_test(members, labels, pvalue_only=True, **settings).pvalue == whole.pvalue


@pytest.mark.parametrize("tenths", [False, True])
@pytest.mark.parametrize("null", ["recentered", "refit"])
def test_passes_over_rows_give_the_same_pvalue(null, tenths, monkeypatch):
    members, labels = data(150, 4, 3, kind="truth", tenths=tenths)
    settings = {"null": null, "n_resamples": 39, "rng": 1}
    monkeypatch.setattr(local, "_MANY_ROWS", 1)
    monkeypatch.setattr(local, "_LARGE", 1)
    whole = hc.calibration_test(members, labels, **settings)
    short = hc.calibration_test(members, labels, pvalue_only=True, **settings)
    assert short.pvalue == whole.pvalue
    assert short.n_evaluations < whole.n_evaluations


def test_a_set_that_is_clearly_rejected_takes_an_evaluation_a_replicate():
    members, labels = data(300, 5, 4, kind="else")
    result = hc.calibration_test(members, labels, n_resamples=99, pvalue_only=True, rng=0)
    assert result.pvalue == 0.01
    assert result.n_evaluations == 200 + 99


def test_the_critical_value_is_exact_or_said_to_be_a_bound():
    accepted = data(200, 4, 3, kind="mean")
    whole = hc.calibration_test(*accepted, n_resamples=39, rng=1)
    short = hc.calibration_test(*accepted, n_resamples=39, rng=1, pvalue_only=True)
    assert not short.rejected
    assert short.critical_value == whole.critical_value
    assert "at most" not in str(short)
    rejected = data(200, 4, 3, kind="else")
    whole = hc.calibration_test(*rejected, n_resamples=39, rng=1)
    short = hc.calibration_test(*rejected, n_resamples=39, rng=1, pvalue_only=True)
    assert short.rejected
    assert whole.critical_value <= short.critical_value < short.statistic
    assert "(critical value at most" in str(short)
    assert "at most" not in str(whole)


def test_where_nothing_is_searched_nothing_is_said_of_it():
    members, labels = data(60, 4, 3)
    for probs, null in [(members[:, :1], "refit"), (members, "paper"), (members, "maximized")]:
        result = hc.calibration_test(
            probs, labels, null=null, n_resamples=19, pvalue_only=True, rng=0
        )
        assert "pvalue_only" not in result.settings
        assert result == hc.calibration_test(probs, labels, null=null, n_resamples=19, rng=0)
    result = hc.calibration_test(members, labels, n_resamples=19, pvalue_only=True, rng=0)
    assert any("bounds from above" in note for note in result.notes)


def test_the_program_and_an_assessment_pass_it_on(tmp_path, capsys):
    from hullcal import cli

    members, labels = data(200, 4, 3, kind="else")
    found = hc.assessment.assess(members, labels, n_resamples=39, pvalue_only=True, rng=0)
    assert all(result.settings["pvalue_only"] for result in found.results)
    np.savez(tmp_path / "set.npz", probs=members, labels=labels)
    arguments = ["test", str(tmp_path / "set.npz"), "-D", "39", "--seed", "0", "--format", "json"]
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments, "--pvalue-only", "--quiet"])
    assert ended.value.code == 0
    assert hc.io.from_json(capsys.readouterr().out) == list(found.results)


def test_threads_journal_and_early_stopping_change_nothing(tmp_path):
    members, labels = data(120, 4, 3, kind="mean")
    settings = {"null": "refit", "n_resamples": 60, "rng": 3, "pvalue_only": True}
    one = hc.calibration_test(members, labels, **settings)
    assert hc.calibration_test(members, labels, n_jobs=2, **settings) == one
    assert hc.calibration_test(members, labels, journal=tmp_path / "j", **settings) == one
    assert hc.calibration_test(members, labels, journal=tmp_path / "j", **settings) == one
    full = settings | {"pvalue_only": False, "stop_after": 5}
    stopped = hc.calibration_test(members, labels, **full)
    assert (
        hc.calibration_test(members, labels, **(settings | {"stop_after": 5})).pvalue
        == stopped.pvalue
    )


def test_a_journal_of_bounds_is_not_continued_by_a_run_that_wants_minima(tmp_path):
    members, labels = data(60, 3, 3)
    settings = {"n_resamples": 39, "rng": 3, "journal": tmp_path / "j"}
    hc.calibration_test(members, labels, pvalue_only=True, **settings)
    with pytest.raises(hc.InvalidInputError, match="journal"):
        hc.calibration_test(members, labels, **settings)


@pytest.mark.parametrize("minimizer", ["cobyla", "random", "exact"])
def test_a_search_that_cannot_end_early_gives_the_same_result(minimizer):
    members, labels = data(50, 2, 3, kind="truth")
    settings = {"minimizer": minimizer, "n_resamples": 19, "rng": 4}
    whole = hc.calibration_test(members, labels, **settings)
    short = hc.calibration_test(members, labels, pvalue_only=True, **settings)
    # To the last setting and note: nothing is called a bound that is none.
    assert short == whole
    assert "at most" not in str(short)


@pytest.mark.parametrize("flag", ["False", 1, None])
def test_a_flag_is_true_or_false(flag):
    with pytest.raises(hc.InvalidInputError, match="`pvalue_only` must be True or False"):
        hc.calibration_test(*data(60, 3, 3), pvalue_only=flag)


def test_a_subclass_of_the_search_is_left_as_it_is():
    class Mine(Pairwise):
        pass

    members, labels = data(60, 3, 3)
    settings = {"minimizer": Mine(max_evaluations=10), "n_resamples": 19, "rng": 0}
    short = hc.calibration_test(members, labels, pvalue_only=True, **settings)
    assert short == hc.calibration_test(members, labels, **settings)
    assert Pairwise().ends_early


@pytest.mark.parametrize("budget", [1, 2, 3, 10, 200])
def test_an_early_end_is_a_value_below_the_bound_or_the_whole_search(budget):
    members, labels = data(80, 5, 3, kind="truth")
    one = local.packed_problem(
        ClassifierSet(members), labels.astype(np.int32), hc.ConfidenceECE()
    ).packed
    key = streams.key_of(1)
    replicates = one.drawing_rows(key)(0, 20)
    search = Pairwise(max_evaluations=budget)
    whole = search.minimize(replicates, key)
    bound = float(np.median(whole.values))
    short = search.until(bound).minimize(replicates, key)
    ended = whole.values < bound
    assert (short.values[ended] < bound).all()
    np.testing.assert_array_equal(short.values[~ended], whole.values[~ended])
    np.testing.assert_array_equal(short.weights[~ended], whole.weights[~ended])
    # The value belongs to the weights beside it.
    np.testing.assert_array_equal(replicates.values(short.weights, np.arange(20)), short.values)


@pytest.mark.parametrize("statistic", [0.0, 1e-300, 0.3, 1.0, 7e5, np.inf])
def test_what_is_clearly_below_does_not_reach_the_statistic(statistic):
    bound = pvalues.clearly_below(statistic)
    assert not pvalues.exceeds([np.nextafter(bound, -np.inf)], statistic).any()
    assert pvalues.exceeds([statistic], statistic).all()


@pytest.mark.parametrize("n_classes", [2, 31, 32, 33, 34, 64, 65, 200])
def test_labels_of_many_classes_are_those_of_the_plain_loop(n_classes):
    rng = np.random.default_rng(n_classes)
    mixed = np.ascontiguousarray(rng.dirichlet(np.full(n_classes, 0.2), 400).T)
    mixed[:, 0], mixed[:, 1], mixed[:, 2] = 0.0, 0.0, 1.0 / n_classes
    mixed[0, 0] = mixed[-1, 1] = 1.0
    cumulative = np.empty_like(mixed)
    cumulate(mixed, cumulative)
    key = streams.key_of(9)
    plain, fast = np.empty((2, 7, 400), dtype=np.int32)
    draw_labels(cumulative, key, 3, plain)
    draw_of_many(*turned(cumulative), key, 3, fast)
    np.testing.assert_array_equal(fast, plain)
    assert plain.max() >= n_classes // 2
