"""What a result says, and that nothing is lost when it is written down and read again."""

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import CalibrationTestResult, InvalidInputError, MinimizeResult

SEARCH = hc.minimizers.Pairwise(max_evaluations=10)


def result(**changes):
    """A result by hand: 19 null values .01 to .19, of which two reach the statistic."""
    fields = {
        "statistic": 0.18,
        "minimum": 0.125,
        "weights": np.array([0.75, 0.25, 0.0]),
        "null_distribution": np.arange(1, 20) / 100,
        "alpha": 0.05,
        "hypothesis": "the convex hull of the members contains a calibrated classifier",
        "measure": "ece_conf",
        "null": "recentered",
        "minimizer": "pairwise",
        "settings": {"measure": {"n_bins": 10}, "minimizer": {"max_evaluations": 300}},
        "n_evaluations": 6000,
        "converged": True,
        "seed": 2**100 + 1,
        "n_samples": 120,
        "n_classes": 4,
        "notes": ("rows were renormalised",),
    }
    return CalibrationTestResult(**{**fields, **changes})


def minimum(**changes):
    fields = {
        "weights": np.array([0.5, 0.5]),
        "value": 0.0625,
        "n_evaluations": 41,
        "converged": False,
        "measure": "skce_ul",
        "minimizer": "random",
        "settings": {"measure": {"estimator": "ul"}, "minimizer": {"max_evaluations": 41}},
        "seed": 3,
        "notes": (),
    }
    return MinimizeResult(**{**fields, **changes})


def data(seed=0, n=40, m=3, k=3):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=(n, m)), rng.integers(k, size=n)


# What follows from the data of a result


def test_everything_that_follows_from_the_null_by_hand():
    r = result()
    assert r.n_resamples == 19
    assert r.n_members == 3
    assert r.pvalue == 3 / 20
    assert r.critical_value == 0.19
    assert r.rejected is False
    assert r.decide(0.15) is True
    assert r.decide(0.1499) is False
    low, high = r.pvalue_interval
    assert low < 2 / 19 < high
    assert result(statistic=0.5).pvalue == 1 / 20
    assert result(statistic=0.5).rejected is True


@pytest.mark.parametrize("seed", range(10))
def test_decisions_against_the_oracle_at_any_level(seed):
    rng = np.random.default_rng(seed)
    null = np.round(rng.random(39), 1)
    null[:3] = math.inf
    for statistic in (*np.round(rng.random(5), 1), math.inf):
        r = result(statistic=float(statistic), null_distribution=null)
        assert r.pvalue == oracles.p_value(statistic, null)
        for alpha in (0.01, 0.025, 0.05, 0.1, 0.3, 0.9, r.pvalue if r.pvalue < 1 else 0.5):
            at_alpha = dataclasses.replace(r, alpha=alpha)
            assert r.decide(alpha) == (r.pvalue <= alpha)
            assert at_alpha.rejected == r.decide(alpha)
            assert at_alpha.critical_value == oracles.critical_value(null, alpha)
            above = oracles.is_above(statistic, at_alpha.critical_value)
            assert above == at_alpha.rejected


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, math.nan, "0.05", None])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(InvalidInputError, match="`alpha`"):
        result().decide(alpha)


def test_too_close_to_call_means_that_alpha_is_inside_the_interval():
    close = result(alpha=0.1)
    low, high = close.pvalue_interval
    assert low < 0.1 < high
    assert close.too_close_to_call
    assert "too close to call: raise n_resamples" in str(close)
    clear = result(statistic=0.0, alpha=0.05)
    assert clear.pvalue_interval[0] > 0.05
    assert not clear.too_close_to_call
    assert "too close" not in str(clear)


# Written down and read again


def through_json(r):
    return type(r).from_dict(json.loads(json.dumps(r.to_dict())))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"statistic": math.inf},
        {"statistic": math.inf, "null_distribution": np.array([math.inf, 0.5, math.inf])},
        {"notes": ()},
        {"converged": False},
        {"statistic": 0.1 + 0.2, "weights": np.array([1 / 3, 1 / 3, 1 / 3])},
    ],
)
def test_a_test_result_survives_json(changes):
    r = result(**changes)
    again = through_json(r)
    assert again == r
    assert hash(again) == hash(r)
    assert str(again) == str(r)
    assert again.to_dict() == r.to_dict()
    for name in ("weights", "null_distribution"):
        assert getattr(again, name).dtype == np.float64
        np.testing.assert_array_equal(getattr(again, name), getattr(r, name))
    assert again.pvalue == r.pvalue
    assert isinstance(again.notes, tuple)
    assert again.seed == r.seed


@pytest.mark.parametrize("value", [0.0625, math.inf, -1e-17])
def test_a_minimum_survives_json(value):
    r = minimum(value=value)
    assert through_json(r) == r
    assert str(through_json(r)) == str(r)


@pytest.mark.parametrize("measure", hc.measures.available())
def test_a_real_result_survives_json(measure):
    probs, labels = data(n=12)
    r = hc.calibration_test(probs, labels, measure=measure, minimizer=SEARCH, n_resamples=19, rng=5)
    assert through_json(r) == r
    found = hc.minimize(probs, labels, measure=measure, minimizer=SEARCH, rng=5)
    assert through_json(found) == found


@pytest.mark.parametrize(
    ("measure", "minimizer"),
    [
        (hc.ConfidenceECE(n_bins=np.int64(5)), SEARCH),
        (hc.SKCE(bandwidth=np.float64(0.5)), SEARCH),
        (hc.SKCE(bandwidth=np.float32(0.5)), SEARCH),
        (hc.SKCE(bandwidth="median", kernel="gaussian"), SEARCH),
        (hc.SKCE(kernel=hc.kernels.GaussianTV(bandwidth=2.0)), SEARCH),
        ("ece_conf", hc.minimizers.Random(max_evaluations=np.int64(50))),
        (oracles.ece_cwise, SEARCH),
    ],
)
def test_results_of_settings_in_any_type_survive_json(measure, minimizer):
    probs, labels = data()
    r = hc.minimize(probs, labels, measure=measure, minimizer=minimizer, rng=np.int64(1))
    assert through_json(r) == r


def test_what_is_not_a_result_is_refused_with_the_fields_in_question():
    written = result().to_dict()
    del written["alpha"]
    written["beta"] = 1
    with pytest.raises(InvalidInputError, match=r"CalibrationTestResult.*alpha.*beta"):
        CalibrationTestResult.from_dict(written)
    with pytest.raises(InvalidInputError, match="MinimizeResult"):
        MinimizeResult.from_dict(result().to_dict())


def test_results_that_differ_are_not_equal():
    r = result()
    assert r == result()
    assert r != result(statistic=0.19)
    assert r != result(weights=np.array([0.25, 0.75, 0.0]))
    assert r != minimum()
    assert r != "a result"


def test_results_are_frozen():
    for r in (result(), minimum()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            r.seed = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            del r.weights


def test_arrays_stay_the_callers_own_and_later_writing_changes_no_result():
    weights, null = np.array([0.75, 0.25, 0.0]), np.arange(1, 20) / 100
    written = result().to_dict() | {"weights": weights, "null_distribution": null}
    for r in (
        result(weights=weights, null_distribution=null),
        CalibrationTestResult.from_dict(written),
        minimum(weights=weights),
    ):
        assert weights.flags.writeable
        assert null.flags.writeable
        assert not r.weights.flags.writeable
        before = r.to_dict()
        weights[:2] = weights[1::-1]
        null += 1.0
        assert r.to_dict() == before


# In words


def test_a_result_says_all_that_was_asked_and_found():
    text = str(result())
    assert "the convex hull of the members contains a calibrated classifier" in text
    assert "not rejected at alpha = 0.05" in text
    assert "not proof" in text
    assert "0.15" in text.split("p-value")[1].splitlines()[0]
    assert "ece_conf = 0.18" in text
    assert "critical value 0.19" in text
    assert "0.750 on member 0, 0.250 on member 1" in text
    assert "Minimum      ece_conf = 0.125, at these weights:" in text
    assert "expect worse calibration on new data" in text
    assert "null recentered, 19 resamples" in text
    assert "minimizer pairwise, 6000 evaluations" in text
    assert "120 rows, 3 members, 4 classes" in text
    assert str(2**100 + 1) in text
    assert "rows were renormalised" in text
    assert "nan" not in text


def test_a_rejection_is_said_and_comes_with_no_excuse():
    text = str(result(statistic=0.5, alpha=0.2))
    assert "REJECTED at alpha = 0.2" in text
    assert "not rejected" not in text
    assert "not proof" not in text


def test_a_search_says_whether_its_budget_was_spent_and_a_test_does_not():
    assert str(result(converged=False)) == str(result())
    assert "budget spent" in str(minimum())
    assert "at a local minimum" in str(minimum(converged=True))


def test_the_hypothesis_of_the_null_is_the_one_that_is_said():
    probs, labels = data()
    said = {}
    for null in ("recentered", "paper", "refit", "maximized"):
        tested = hc.calibration_test(
            probs, labels, null=null, minimizer=SEARCH, n_resamples=19, rng=0
        )
        said[null] = tested.hypothesis
        assert tested.hypothesis in str(tested)
    assert "calibrated" in said["recentered"]
    assert said["paper"] == said["maximized"] == said["recentered"]
    assert "truth" in said["refit"]


def test_infinities_are_said_in_words():
    text = str(result(statistic=math.inf, alpha=0.01))
    assert "ece_conf = inf" in text
    assert "critical value inf" in text


def test_a_minimum_says_what_was_found_and_how():
    text = str(minimum())
    assert "skce_ul = 0.0625" in text
    assert "0.500 on member 0, 0.500 on member 1" in text
    assert "random, 41 evaluations" in text


@pytest.mark.parametrize("n_members", [2, 6, 7, 30, 3000])
def test_the_weights_in_words_account_for_all_the_weight(n_members):
    for weights in (np.full(n_members, 1 / n_members), np.eye(n_members)[n_members // 2]):
        line = next(x for x in str(result(weights=weights)).splitlines() if x.startswith("Weights"))
        words = line.removeprefix("Weights").strip()
        assert not words.startswith(",")
        shares = [float(part.split(" on ")[0]) for part in words.split(", ")]
        assert sum(shares) == pytest.approx(1.0, abs=0.0005 * len(shares))


def test_a_single_classifier_has_no_weights_to_speak_of():
    text = str(result(weights=np.ones(1)))
    assert "Weights" not in text
    assert "1 member," in text


def test_names_of_members_stand_in_for_their_numbers():
    text = str(result(weights=np.array([0.25, 0.75]), members=("tree", "net")))
    assert "0.750 on net, 0.250 on tree" in text


# Several tests at once


def test_adjusting_results_and_pvalues_is_the_same():
    results = [result(statistic=t) for t in (0.5, 0.18, 0.19)]
    raw = [r.pvalue for r in results]
    assert raw == [1 / 20, 3 / 20, 2 / 20]
    expected = oracles.holm(raw)
    np.testing.assert_allclose(hc.adjust(results), expected)
    np.testing.assert_allclose(hc.adjust(raw), expected)
    np.testing.assert_allclose(hc.adjust([results[0], *raw[1:]]), expected)
    np.testing.assert_allclose(hc.adjust(np.array(raw)), expected)
    np.testing.assert_allclose(hc.adjust(tuple(results), method="holm"), expected)
    assert hc.adjust([]).shape == (0,)


@pytest.mark.parametrize("bad", [[0.5, 1.5], [-0.1], [math.nan], [math.inf]])
def test_numbers_that_are_no_pvalues_are_refused(bad):
    with pytest.raises(InvalidInputError, match="`results`"):
        hc.adjust(bad)


def test_a_method_of_adjustment_that_is_none_is_refused():
    with pytest.raises(InvalidInputError, match="`method`"):
        hc.adjust([0.5], method="bonferroni")


def test_nothing_that_a_result_was_made_of_changes_it():
    given = result()
    described = given.to_dict()
    again = type(given).from_dict(described)
    described["settings"]["later"] = 1
    described["notes"] = ("later",)
    assert again == given
    settings = {"measure": {"n_bins": 10}}
    one = result(settings=settings)
    settings["measure"]["n_bins"] = 99
    assert one.settings == {"measure": {"n_bins": 10}}


def test_a_result_that_was_pickled_is_frozen_as_before():
    again = pickle.loads(pickle.dumps(result()))
    assert again == result()
    for array in (again.weights, again.null_distribution):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_equal_results_have_equal_hashes():
    one, other = (dataclasses.replace(result(), statistic=zero) for zero in (0.0, -0.0))
    assert one == other
    assert hash(one) == hash(other)
    assert hash(one) != hash(dataclasses.replace(one, measure="another"))


@pytest.mark.parametrize("name", ["weights", "null_distribution"])
@pytest.mark.parametrize("value", ["abc", [[1], [1, 2]], {"a": 1}, [None, "x"]])
def test_a_dictionary_without_numbers_is_refused(name, value):
    data = result().to_dict() | {name: value}
    with pytest.raises(InvalidInputError, match=f"`{name}` must be numbers; got .* Pass what"):
        CalibrationTestResult.from_dict(data)
