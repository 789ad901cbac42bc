"""What a result says, and that nothing is lost when it is written down and read again."""

import dataclasses
import json
import math
import pickle

import jsonschema
import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import CalibrationTestResult, InvalidInputError, MinimizeResult
from hullcal.notes import Note, merged
from hullcal.words import printable, weights_in_words
from simulation import random_set

RENORMALISED = Note("renormalised", {"n_rows": 3, "of_rows": 120, "deviation": 2e-4})
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
        "notes": (RENORMALISED,),
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


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, math.nan, "0.05", None])
def test_a_level_that_is_none_is_refused(alpha):
    with pytest.raises(InvalidInputError, match="`alpha`"):
        result().decide(alpha)


@pytest.mark.parametrize("end", [0, 1])
def test_borderline_means_that_alpha_is_inside_the_interval(end):
    at = result().pvalue_interval[end]
    beyond = [-1e-9, 1e-9][end]
    assert result(alpha=at).headline == "Borderline"
    assert result(alpha=at - beyond).headline == "Borderline"
    assert result(alpha=at + beyond).headline != "Borderline"


# Written down and read again


def through_json(r):
    return type(r).from_dict(json.loads(json.dumps(r.to_dict())))


@pytest.mark.parametrize(
    "r",
    [
        result(statistic=math.inf),
        result(statistic=math.inf, null_distribution=np.array([math.inf, 0.5, math.inf])),
        result(notes=(), members=("a", "b", "c"), converged=False),
        result(statistic=0.1 + 0.2, weights=np.array([1 / 3, 1 / 3, 1 / 3])),
        *(minimum(value=value) for value in (0.0625, math.inf, -1e-17)),
    ],
)
def test_a_result_survives_json(r):
    again = through_json(r)
    assert again == r
    assert hash(again) == hash(r)
    assert str(again) == str(r)
    assert (again.notes, again.members) == (r.notes, r.members)
    np.testing.assert_array_equal(again.weights, r.weights)
    assert again.weights.dtype == np.float64


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
    probs, labels = random_set(0, 40)
    r = hc.minimize(probs, labels, measure=measure, minimizer=minimizer, rng=np.int64(1))
    assert through_json(r) == r


def test_what_is_not_a_result_is_refused_with_the_fields_in_question():
    written = result().to_dict()
    del written["alpha"]
    written["beta"] = 1
    words = r"not a CalibrationTestResult: missing or unknown fields \['alpha', 'beta'\]"
    with pytest.raises(InvalidInputError, match=words):
        CalibrationTestResult.from_dict(written)
    with pytest.raises(InvalidInputError, match="a dictionary is needed; got 3"):
        CalibrationTestResult.from_dict(3)
    with pytest.raises(InvalidInputError, match="MinimizeResult"):
        MinimizeResult.from_dict(result().to_dict())


def test_results_are_equal_and_have_one_hash_if_their_fields_are_equal():
    r = result()
    assert r == result()
    assert r != result(statistic=0.19)
    assert r != result(weights=np.array([0.25, 0.75, 0.0]))
    assert r != minimum()
    assert r != "a result"
    one, other = (result(statistic=zero) for zero in (0.0, -0.0))
    assert one == other
    assert hash(one) == hash(other)
    assert hash(one) != hash(result(measure="another"))


def test_results_are_frozen():
    for r in (result(), minimum()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            r.seed = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            del r.weights


@pytest.mark.parametrize(
    "note", ["a sentence", {"code": "odd", "data": {}}, {"code": "clipped"}, 3]
)
def test_a_note_that_is_none_is_refused(note):
    with pytest.raises(InvalidInputError, match="`notes` must be known ones"):
        CalibrationTestResult.from_dict(result().to_dict() | {"notes": [note]})


def test_a_note_is_a_code_and_figures_with_a_sentence_made_of_them():
    words = "3 of 120 rows were renormalised, every member counted (largest deviation 0.0002)"
    assert RENORMALISED.to_dict() == {
        "code": "renormalised",
        "text": words,
        "data": {"n_rows": 3, "of_rows": 120, "deviation": 2e-4},
    }
    assert str(RENORMALISED) == words
    assert Note.from_dict(json.loads(json.dumps(RENORMALISED.to_dict()))) == RENORMALISED
    for n, words in ((1, "1 label with"), (2, "2 labels with")):
        assert words in str(Note("impossible", {"n_rows": n, "refutes": True}))
    one = Note("renormalised", {"n_rows": 1, "of_rows": 9, "deviation": 2e-4})
    assert "1 of 9 rows was renormalised" in str(one)
    assert hash(RENORMALISED) == hash(Note("renormalised", dict(RENORMALISED.data)))


def test_notes_on_parts_of_the_rows_are_merged_into_those_on_all():
    more = Note("renormalised", {"n_rows": 2, "of_rows": 80, "deviation": 3e-4})
    needless = Note("needless_logits")
    assert merged([(RENORMALISED, needless), (more,)], 200) == (
        Note("renormalised", {"n_rows": 5, "of_rows": 200, "deviation": 3e-4}),
    )
    assert merged([(needless,), (needless,)], 200) == (needless,)


def test_nothing_that_a_result_was_made_of_and_nothing_it_gives_away_changes_it():
    weights, null = np.array([0.75, 0.25, 0.0]), np.arange(1, 20) / 100
    settings = {"measure": {"n_bins": 10}}
    own = {"weights": weights, "null_distribution": null, "settings": settings}
    for r in (result(**own), CalibrationTestResult.from_dict(result().to_dict() | own)):
        before = r.to_dict()
        weights[:2] = weights[1::-1]
        null += 1.0
        settings["measure"]["n_bins"] += 1
        r.to_dict()["settings"]["measure"]["n_bins"] = 99
        assert r.to_dict() == before
    for frozen in (result(), pickle.loads(pickle.dumps(result()))):
        assert frozen == result()
        for array in (frozen.weights, frozen.null_distribution):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0


def labels_of(members, *, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(members.shape[2], p=p) for p in members.mean(axis=1)])


def written(name):
    """Results of every kind, as JSON."""
    members, _ = random_set(0, 150)
    labels = labels_of(members)
    if name == "alone":
        one = hc.minimize(members, labels), hc.classical.skce_test(members[:, 0], labels)
        truth = hc.truth_test(members, labels, n_resamples=0)
        return hc.io.to_json([*one, truth, result(statistic=math.inf)])
    sets = {
        "fine": (members, labels),
        "one": (members[:, 0], labels),
        "wrong": (members**5 / (members**5).sum(axis=2, keepdims=True), labels),
        "impossible": (np.tile([0.6, 0.4, 0.0], (60, 2, 1)), np.r_[2, np.arange(59) % 2]),
    }
    return hc.assess(*sets[name], n_resamples=99, rng=0).to_json()


@pytest.mark.parametrize("name", ["fine", "one", "wrong", "impossible", "alone"])
def test_what_is_written_keeps_to_its_published_schema(name):
    text = written(name)
    judge = jsonschema.Draft202012Validator(hc.io.schema())
    judge.check_schema(judge.schema)
    judge.validate(json.loads(text))
    # A control: a schema that allows anything would let these pass.
    for place, wrong in (("seed", "7"), ("notes", [{"code": "x"}]), ("added", 1), ("kind", "x")):
        damaged = json.loads(text)
        damaged["results"][0][place] = wrong
        assert not judge.is_valid(damaged), place


@pytest.mark.parametrize(
    ("name", "odd"),
    [("statistic", "NaN"), ("log_evalue", "NaN"), ("pool", ["NaN"] * 4), ("pool", [0.0])],
)
def test_numbers_of_a_likelihood_test_that_none_gives_are_refused(name, odd):
    members, _ = random_set(0, 40)
    text = json.loads(hc.io.to_json(hc.truth_test(members, labels_of(members), n_resamples=0)))
    text["results"][0][name] = odd
    with pytest.raises(InvalidInputError, match=f"`{name}` is"):
        hc.io.from_json(json.dumps(text))


# In words


def test_the_whole_text_of_a_set_that_is_not_rejected():
    # The interval is Clopper and Pearson's for 2 of 19.
    found = result(alpha=0.01, notes=(RENORMALISED, Note("needless_logits")))
    assert "ece_conf = inf" in str(result(statistic=math.inf))
    assert str(found) == "\n".join(
        [
            "Not rejected (p = 0.15, ece_conf): no evidence against a calibrated combination; the best "
            "combination is off by 12.5 points.",
            "  hypothesis   the convex hull of the members contains a calibrated classifier",
            "  p-value      0.15 (95 % Monte Carlo interval 0.013 to 0.331)",
            "  statistic    ece_conf = 0.18 (critical value inf at alpha = 0.01)",
            "  null         ███ ███ ███ ███ ███ ██▲█  (▲ statistic)",
            "  minimum      ece_conf = 0.125, at these weights:",
            "  weights      0.750 on member 0, 0.250 on member 1 (fitted to these rows; expect worse "
            "calibration on new data)",
            "  run          null recentered; minimizer pairwise, 6000 evaluations; 19 resamples; seed "
            "1267650600228229401496703205377",
            "  data         120 rows, 3 members, 4 classes",
            "  note         3 of 120 rows were renormalised, every member counted (largest deviation "
            "0.0002)",
            "  note         from_logits=True, though every row was a probability vector already",
            "Failing to reject does not prove calibration.",
        ]
    )


def test_the_whole_text_of_a_single_classifier_that_is_rejected():
    one = result(
        weights=np.ones(1),
        statistic=1.0,
        alpha=0.3,
        notes=(),
        converged=False,
        hypothesis="the classifier is calibrated",
    )
    assert str(one) == "\n".join(
        [
            "Rejected (p = 0.05, ece_conf): the classifier is not calibrated; it is off by 12.5 points.",
            "  hypothesis   the classifier is calibrated",
            "  p-value      0.05 (95 % Monte Carlo interval 0 to 0.176)",
            "  statistic    ece_conf = 1 (critical value 0.14 at alpha = 0.3)",
            "  null         █▇▇▇▄                  ▲  (▲ statistic)",
            "  run          null recentered; 19 resamples; seed 1267650600228229401496703205377",
            "  data         120 rows, 1 member, 4 classes",
        ]
    )


def test_a_result_in_a_session_is_a_line_and_in_a_notebook_a_table():
    assert repr(result()) == f"<CalibrationTestResult: {str(result()).splitlines()[0]}>"
    assert repr(minimum()) == f"<MinimizeResult: {str(minimum()).splitlines()[0]}>"
    page = result(members=("<b>", "&", "c"))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.startswith('<div><p><strong style="color:')


def test_a_search_says_what_was_found_and_whether_its_budget_was_spent():
    text = "skce_ul = 0.0625 at 0.500 on member 0, 0.500 on member 1\n(random, 41 evaluations, "
    assert str(minimum()) == text + "budget spent)"
    assert str(minimum(converged=True)) == text + "at a local minimum)"
    assert str(result(converged=False)) == str(result())


def test_what_a_run_that_may_stop_early_asks_to_be_raised():
    stopped = result(settings={"stop_after": 2, "n_resamples": 99})
    assert "; increase `n_resamples`." in str(result(settings={"stop_after": 2, "n_resamples": 19}))
    assert "; increase `n_resamples` and `stop_after`." in str(stopped)


@pytest.mark.parametrize("n_members", [2, 6, 7, 30, 3000])
def test_the_weights_in_words_account_for_all_the_weight(n_members):
    for weights in (np.full(n_members, 1 / n_members), np.eye(n_members)[n_members // 2]):
        lines = (line.strip() for line in str(result(weights=weights)).splitlines())
        words = next(x for x in lines if x.startswith("weights"))
        words = words.removeprefix("weights").partition("(")[0].strip()
        assert not words.startswith(",")
        shares = [float(part.split(" on ")[0]) for part in words.split(", ")]
        assert sum(shares) == pytest.approx(1.0, abs=0.0005 * len(shares))


def test_six_weights_are_named_and_the_others_share_the_rest():
    weights = np.array([0.3, 0.02, 0.2, 0.1, 0.15, 0.12, 0.11, 0.0])
    words = weights_in_words(weights, None)
    shares = [(0.3, 0), (0.2, 2), (0.15, 4), (0.12, 5), (0.11, 6), (0.1, 3)]
    named = ", ".join(f"{w:.3f} on member {m}" for w, m in shares)
    # One that is left over is named as well; two are counted.
    assert words == named + ", 0.020 on member 1"
    weights = np.array([0.3, 0.02, 0.2, 0.1, 0.15, 0.11, 0.1, 0.02])
    assert weights_in_words(weights, None).endswith("0.100 on member 6, 0.040 on 2 others")


def test_equal_weights_stand_in_order_and_tiny_ones_are_not_named():
    assert weights_in_words(np.array([0.5, 0.5]), ("b", "a")) == "0.500 on b, 0.500 on a"
    tiny = np.array([1 - 0.0005, 0.0005])
    assert weights_in_words(tiny, None) == "1.000 on member 0, 0.001 on 1 other"
    assert weights_in_words(np.array([0.9994, 0.0006]), None).endswith("0.001 on member 1")
    assert weights_in_words(np.array([0.9998, 0.0002]), None) == "1.000 on member 0"


def test_names_cannot_command_a_terminal():
    assert printable("a\x1b[31mb") == "a\N{REPLACEMENT CHARACTER}[31mb"
    assert weights_in_words(np.ones(1), ("x\ny",)) == "1.000 on x\N{REPLACEMENT CHARACTER}y"


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


def test_p_values_at_the_ends_of_their_range_can_be_adjusted_and_others_are_refused():
    np.testing.assert_array_equal(hc.adjust([0.0, 1.0]), [0.0, 1.0])
    for bad in ([-0.001], [0.5, 1.001], [math.nan], [math.inf], ["p"], 3):
        with pytest.raises(InvalidInputError, match="`results` must be"):
            hc.adjust(bad)
    with pytest.raises(InvalidInputError, match='`method` must be "holm"'):
        hc.adjust([0.1], method="bonferroni")


@pytest.mark.parametrize("name", ["weights", "null_distribution"])
@pytest.mark.parametrize("value", ["abc", [[1], [1, 2]], {"a": 1}, [None, "x"]])
def test_a_dictionary_without_numbers_is_refused(name, value):
    data = result().to_dict() | {name: value}
    with pytest.raises(InvalidInputError, match=f"`{name}` must be numbers; got .* Pass what"):
        CalibrationTestResult.from_dict(data)
