"""What results say, character by character, at the places where they begin to say something else."""

import math

import numpy as np
import pytest

import hullcal as hc
from hullcal import CalibrationTestResult, InvalidInputError, MinimizeResult
from hullcal.words import printable, weights_in_words
from test_results import result as by_hand


def result(**changes):
    """The same result by hand, with a seed that is soon read, and two notes."""
    own = {
        "settings": {"measure": {"n_bins": 10}},
        "seed": 7,
        "notes": ("rows were renormalised", "and sorted"),
    }
    return by_hand(**{**own, **changes})


def test_the_whole_text_of_a_set_that_is_not_rejected():
    # The interval is Clopper and Pearson's for 2 of 19.
    assert str(result()) == "\n".join(
        [
            "Hypothesis   the convex hull of the members contains a calibrated classifier",
            "Verdict      not rejected at alpha = 0.05  (too close to call: raise n_resamples)",
            "             (which is not proof that the hypothesis is true)",
            "p-value      0.15   (95 % Monte Carlo interval 0.01301 to 0.3314)",
            "Statistic    ece_conf = 0.18   (critical value 0.19)",
            "Minimum      ece_conf = 0.125, at these weights:",
            "Weights      0.750 on member 0, 0.250 on member 1",
            "             fitted to these rows; expect worse calibration on new data",
            "Run          null recentered, 19 resamples; minimizer pairwise, 6000 evaluations",
            "Data         120 rows, 3 members, 4 classes; seed 7",
            "Note         rows were renormalised",
            "Note         and sorted",
        ]
    )


def test_the_whole_text_of_a_single_classifier_that_is_rejected():
    one = result(weights=np.ones(1), statistic=1.0, alpha=0.3, notes=(), converged=False)
    assert str(one) == "\n".join(
        [
            "Hypothesis   the convex hull of the members contains a calibrated classifier",
            "Verdict      REJECTED at alpha = 0.3",
            "p-value      0.05   (95 % Monte Carlo interval 0 to 0.1765)",
            "Statistic    ece_conf = 1   (critical value 0.14)",
            "Run          null recentered, 19 resamples",
            "Data         120 rows, 1 member, 4 classes; seed 7",
        ]
    )


def test_a_search_that_ran_out_says_so_at_its_end():
    minimum = MinimizeResult(
        weights=np.array([0.5, 0.5]),
        value=0.0625,
        n_evaluations=41,
        converged=False,
        measure="skce_ul",
        minimizer="random",
        settings={},
        seed=3,
    )
    text = "skce_ul = 0.0625 at 0.500 on member 0, 0.500 on member 1\n(random, 41 evaluations, "
    assert str(minimum) == text + "budget spent)"


def test_what_a_run_that_may_stop_early_asks_to_be_raised():
    stopped = result(settings={"stop_after": 2})
    assert "(too close to call: raise n_resamples and stop_after)" in str(stopped)


@pytest.mark.parametrize("end", [0, 1])
def test_a_level_at_an_end_of_the_interval_is_too_close_to_call(end):
    at = result().pvalue_interval[end]
    beyond = [-1e-9, 1e-9][end]
    assert result(alpha=at).too_close_to_call
    assert not result(alpha=at + beyond).too_close_to_call


def test_a_note_of_doubt_makes_a_result_doubtful():
    doubt = "too few rows for so many cells: and so on"
    assert not result().doubtful
    assert result(notes=("something", doubt)).doubtful
    assert not result(notes=("not " + doubt,)).doubtful


def test_six_weights_are_named_and_the_others_share_the_rest():
    weights = np.array([0.3, 0.02, 0.2, 0.1, 0.15, 0.12, 0.11, 0.0])
    words = weights_in_words(weights, None)
    shares = [(0.3, 0), (0.2, 2), (0.15, 4), (0.12, 5), (0.11, 6), (0.1, 3)]
    named = ", ".join(f"{w:.3f} on member {m}" for w, m in shares)
    # One that is left over is named as well; two are counted.
    assert words == named + ", 0.020 on member 1"
    weights = np.array([0.3, 0.02, 0.2, 0.1, 0.15, 0.11, 0.1, 0.02])
    assert weights_in_words(weights, None).endswith("0.100 on member 6, 0.040 on 2 others")


def test_equal_weights_stand_in_the_order_of_members():
    assert weights_in_words(np.array([0.5, 0.5]), ("b", "a")) == "0.500 on b, 0.500 on a"


def test_weights_too_small_to_print_are_not_named():
    tiny = np.array([1 - 0.0005, 0.0005])
    assert weights_in_words(tiny, None) == "1.000 on member 0, 0.001 on 1 others"
    assert weights_in_words(np.array([0.9994, 0.0006]), None).endswith("0.001 on member 1")
    assert weights_in_words(np.array([0.9998, 0.0002]), None) == "1.000 on member 0"


def test_names_cannot_command_a_terminal():
    assert printable("a\x1b[31mb") == "a\N{REPLACEMENT CHARACTER}[31mb"
    assert weights_in_words(np.ones(1), ("x\ny",)) == "1.000 on x\N{REPLACEMENT CHARACTER}y"


def test_arrays_of_a_result_cannot_be_written_to_and_its_dictionary_is_a_copy():
    one = result()
    with pytest.raises(ValueError, match="read-only"):
        one.weights[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        one.null_distribution[0] = 1.0
    one.to_dict()["settings"]["measure"]["n_bins"] = 3
    assert one.settings == {"measure": {"n_bins": 10}}


def test_a_dictionary_of_other_fields_is_refused_by_their_names():
    fields = result().to_dict()
    del fields["seed"]
    fields["sead"] = 1
    with pytest.raises(InvalidInputError, match=r"unknown fields \['sead', 'seed'\]"):
        CalibrationTestResult.from_dict(fields)
    with pytest.raises(InvalidInputError, match="a dictionary is needed; got 3"):
        CalibrationTestResult.from_dict(3)
    again = CalibrationTestResult.from_dict({**result().to_dict(), "members": ["a", "b", "c"]})
    assert again.members == ("a", "b", "c")
    assert again.notes == ("rows were renormalised", "and sorted")
    assert result() != again
    assert result() == result()


def test_p_values_at_the_ends_of_their_range_can_be_adjusted():
    np.testing.assert_array_equal(hc.adjust([0.0, 1.0]), [0.0, 1.0])
    for bad in ([-0.001], [1.001], [math.nan], ["p"], 3):
        with pytest.raises(InvalidInputError, match="`results` must be"):
            hc.adjust(bad)
    with pytest.raises(InvalidInputError, match='`method` must be "holm"'):
        hc.adjust([0.1], method="bonferroni")
