"""The three questions at once: coherent p-values, one headline each, effects, and what to do next."""

import csv
import dataclasses
import io
import json
import math
import re

import numpy as np
import pytest
from scipy.stats import norm

import hullcal as hc
from hullcal import InvalidInputError, pvalues
from hullcal.assessment import Assessments, assess
from hullcal.effects import Detection, Effect, Quality, fitted_temperature, rows_needed
from hullcal.notes import Note
from hullcal.simulation.scenarios import draw_labels, tempered
from hullcal.verdicts import Answer, advice
from hullcal.words import CALIBRATED, evalue_in_words
from test_results import result

DOUBT = Note("too_few_rows", {"share": 0.5})
IMPOSSIBLE = Note("impossible", {"n_rows": 3, "refutes": True})


def by(measure, count, *, notes=(), **changes):
    """A test of which `count` of 99 null values reach the statistic, so that p = (1 + count) / 100."""
    fixed = {"alpha": 0.05, "hypothesis": CALIBRATED, "settings": {}}
    values = {"statistic": 98.5 - count, "null_distribution": np.arange(99.0)}
    return result(measure=measure, notes=notes, **fixed | values | changes)


def calibrated(*results, **more):
    return Answer("calibrated", results, **more)


def truth(count, **more):
    return Answer("truth", (by("likelihood", count),), **more)


def near_a_truth(n=300, temperature=1.0, seed=0):
    """Members around a truth whose average, at a temperature, is the law of the labels."""
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet([1, 1, 1], size=n)
    members = 0.7 * centre[:, None] + 0.3 * rng.dirichlet([1, 1, 1], size=(n, 4))
    law = tempered(members.mean(axis=1), temperature)
    return members, np.array([rng.choice(3, p=p) for p in law])


@pytest.fixture(scope="module")
def sound():
    """What is found of members whose average is the truth."""
    return assess(*near_a_truth(n=60), n_resamples=72, rng=0)


@pytest.fixture(scope="module")
def sharpened():
    """What is found of members that are far too sure of themselves."""
    members, labels = near_a_truth(temperature=3.0)
    return assess(members, labels, n_resamples=99, rng=0)


# Headlines


@pytest.mark.parametrize(
    ("count", "notes", "expected"),
    [
        (0, (), "Rejected"),
        (50, (), "Not rejected"),
        (3, (), "Borderline"),
        (7, (), "Borderline"),
        (0, (DOUBT,), "Inconclusive"),
        (50, (DOUBT,), "Not rejected"),
        (50, (IMPOSSIBLE,), "Impossible"),
        (50, (Note("impossible", {"n_rows": 3, "refutes": False}),), "Not rejected"),
    ],
)
def test_a_headline_is_one_of_five_words(count, notes, expected):
    found = by("bins", count, notes=notes)
    assert found.headline == expected
    assert calibrated(found).headline == expected
    assert calibrated(found).text.startswith(f"{expected} (p = ")


def test_a_level_inside_the_interval_of_the_adjusted_p_value_is_borderline():
    # Of six measures p = .05 is adjusted to .3, far from .05; of two p = .02 is adjusted to .04, near.
    six = calibrated(by("a", 4), *(by(name, 90) for name in "bcdef"))
    assert six.adjusted[0] == pytest.approx(0.3)
    assert six.headline == "Not rejected"
    two = calibrated(by("b", 1), by("c", 90))
    assert (two.headline, two.pvalue) == ("Borderline", pytest.approx(0.04))
    assert "increase `n_resamples`" in two.text


def test_the_smallest_p_value_decides_unless_it_is_in_doubt():
    few = {"null_distribution": np.arange(999.0), "statistic": 999.0}
    results = by("cells", 0, notes=(DOUBT,), **few), by("pairs", 60), by("bins", 0, **few)
    found = calibrated(*results)
    assert found.result is results[2]
    assert found.headline == "Rejected"
    in_doubt = calibrated(*results[:2])
    assert in_doubt.headline == "Inconclusive"
    assert in_doubt.rejected
    assert calibrated(by("bins", 80), by("cells", 30)).result.measure == "cells"


# Coherence: the truth inside the hull is a calibrated combination


@pytest.mark.parametrize("own", [0, 2, 40, 90])
@pytest.mark.parametrize("average", [0, 3, 90])
@pytest.mark.parametrize("inside", [0, 2, 40, 90])
def test_no_p_value_for_calibrated_is_below_those_of_what_implies_it(own, average, inside):
    others = Answer("average", (by("bins", average),)), truth(inside)
    found = calibrated(by("bins", own), by("pairs", 95), implied_by=others)
    assert found.pvalue == max(hc.adjust(found.results)[0], *(each.pvalue for each in others))
    assert found.rejected <= all(each.rejected for each in others)
    if found.pvalue in (others[0].pvalue, others[1].pvalue):
        assert found.headline in {each.headline for each in (*others, found.result)}


def test_coherence_goes_measure_by_measure():
    mean = Answer("average", (by("a", 0), by("b", 49)))
    found = calibrated(by("a", 29), by("b", 1), implied_by=(mean, truth(0)))
    assert found.adjusted == pytest.approx((0.3, 0.5))
    assert found.headline == "Not rejected"


def test_a_p_value_that_is_lent_says_from_where_and_what_the_test_found_alone(sound):
    others = Answer("average", (by("bins", 92),)), truth(2)
    found = calibrated(by("bins", 48), implied_by=others)
    assert found.text.startswith(
        "Not rejected (p = 0.93, raised to that of the average; alone 0.49 by bins): "
    )
    assert found.to_dict()["tests"][0]["unadjusted_pvalue"] == 0.49
    whole = dataclasses.replace(sound, answers={"calibrated": found})
    assert "that of the average; alone 0.49 by bins)" in " ".join(whole.summary().split())
    assert max(map(len, whole.summary().splitlines())) <= 100
    own = calibrated(by("bins", 95), implied_by=others)
    assert own.text.startswith("Not rejected (p = 0.96, bins): ")


def test_no_output_of_an_assessment_is_incoherent(sound):
    """By chance the measure finds less likely what the likelihood does not: p = .15 and .59 here."""
    own, shown = sound.calibrated.result.pvalue, sound.calibrated.pvalue
    assert own < sound.truth.pvalue == shown
    answers = json.loads(sound.to_json())["assessment"]["answers"]
    rows = list(csv.DictReader(io.StringIO(sound.to_csv())))
    for each in (answers, rows):
        p = {one["question"]: float(one["pvalue"]) for one in each}
        assert p["calibrated"] == shown >= max(p["truth"], p["average"])
    average, calibrated, truth = json.loads(sound.to_json())["results"]
    assert calibrated["pvalue"] == shown >= max(average["pvalue"], truth["pvalue"])
    assert calibrated["unadjusted_pvalue"] == own
    assert calibrated["rejected"] == sound.calibrated.rejected
    pages = sound.table(), sound.summary(), sound._repr_html_(), hc.report.render(sound)
    for page in pages:
        assert page.count(f"{shown:.3g}") >= 2
        lent = f"that of the truth; alone {own:.3g} by ece_conf)"
        assert (lent in " ".join(page.split())) == (page != sound.table())
        assert f"p = {own:.3g}" not in page


# The whole


def test_three_answers_of_a_set_that_contains_the_truth(sound):
    assert list(sound.answers) == ["average", "calibrated", "truth"]
    for answer in sound.answers.values():
        assert answer.headline == "Not rejected"
        assert "60 rows detect a temperature of 1.5 (an error of " in answer.text
    assert sound.advice[0].startswith("Failing to reject does not prove calibration")


def test_its_numbers_are_those_of_the_single_tests():
    members, labels = near_a_truth(n=60)
    options = {"n_resamples": 72, "rng": 1}
    found = assess(members, labels, stop_after=None, **options)
    average = hc.classical.resampling_test(hc.ClassifierSet(members).mean(), labels, **options)
    np.testing.assert_array_equal(found.average.result.null_distribution, average.null_distribution)
    assert found.calibrated.result == hc.calibration_test(members, labels, **options)
    assert found.truth.result == hc.truth_test(members, labels, **options)


def test_overconfident_members_are_told_by_how_much(sharpened):
    assert sharpened.average.headline == sharpened.truth.headline == "Rejected"
    assert "overconfident" in sharpened.average.text
    quality = sharpened.effect.average
    assert quality.temperature == pytest.approx(3.0, rel=0.35)
    assert quality.interval[0] < quality.error < quality.interval[1]
    assert sharpened.effect.combination.interval is None
    assert quality.recalibrated < quality.error
    assert f"divide its logits by {quality.temperature:.2f}" in sharpened.advice[0]


def test_the_error_of_the_effect_is_that_of_the_measure():
    members, labels = near_a_truth(n=100)
    found = assess(members, labels, measures="ece_cwise", n_resamples=72, rng=1)
    average, best = found.effect.average, found.effect.combination
    own = hc.ClasswiseECE()
    assert average.error == own(members.mean(axis=1), labels)
    assert best.error == pytest.approx(found.calibrated.result.minimum, abs=1e-12)
    assert average.accuracy == (members.mean(axis=1).argmax(axis=1) == labels).mean()
    likelihood = hc.truth_test(members.mean(axis=1), labels, n_resamples=0)
    assert average.temperature == pytest.approx(likelihood.temperature, rel=1e-6)


def test_a_summary_is_short_and_has_the_answers_and_the_next_step(sharpened):
    lines = sharpened.summary().splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 100
    assert lines[0] == "300 rows, 4 members, 3 classes"
    assert sum("Rejected (" in line for line in lines) == 3
    assert any(line.startswith("Next step") for line in lines)
    assert len(sharpened.table().splitlines()) == 3
    assert len(repr(sharpened)) < 200


def test_a_notebook_shows_words_and_a_drawing_and_takes_names_as_text():
    members, labels = near_a_truth(n=60)
    named = hc.ClassifierSet(members, members=["<script>alert(1)</script>", *"bcd"])
    page = assess(named, labels, questions="truth", n_resamples=72, rng=0)._repr_html_()
    assert "<svg" in page
    assert "<script" not in page
    assert "Does the hull contain the truth?" in page


def test_a_notebook_shows_the_table_of_several_sets_first_and_drawings_on_white(sound):
    page = Assessments({"<b>": sound, "second": sound})._repr_html_()
    table = page.partition("</table>")[0]
    cells = re.findall("<td>(.*?)</td>", table)
    assert cells[:4] == ["", "average", "some combination", "truth in the hull"]
    assert cells[4:6] == ["&lt;b&gt;", f"Not rejected (p = {sound.average.pvalue:.3g})"]
    assert len(cells) == 12
    assert "<b>" not in page
    for each in (page, sound._repr_html_(), sound.truth.result._repr_html_()):
        assert 'aria-label=""' not in each
        assert not re.search(r"<strong[^>]*></strong>|<table></table>", each)
        assert each.count("<svg") == each.count("background:#ffffff")


def test_json_reads_back_and_keeps_the_answers(sharpened):
    written = json.loads(sharpened.to_json())
    assert hc.io.from_json(sharpened.to_json()) == list(sharpened.results)
    assert [each["headline"] for each in written["assessment"]["answers"]] == ["Rejected"] * 3
    assert written["assessment"]["advice"] == list(sharpened.advice)
    assert written["assessment"]["effect"]["average"]["error"] == sharpened.effect.average.error


def test_plain_values_are_plain(sound, sharpened):
    def kinds(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            return set().union(*map(kinds, value))
        return {type(value)}

    assert kinds([sound.to_dict(), sharpened.to_dict()]) <= {str, float, int, bool, type(None)}


def test_several_measures_are_adjusted_within_a_question():
    members, labels = near_a_truth(temperature=2.0)
    found = assess(members, labels, measures=["ece_conf", "ece_conf:5"], n_resamples=146, rng=0)
    results = found.calibrated.results
    own = [max(p, found.truth.pvalue, found.average.pvalue) for p in hc.adjust(results)]
    assert list(found.calibrated.adjusted) == own
    written = json.loads(found.to_json())["assessment"]["answers"]
    assert [each["question"] for each in written] == ["average", "calibrated", "truth"]
    tests = written[0]["tests"]
    assert [each["measure"] for each in tests] == ["ece_conf", "ece_conf:5"]
    assert [each["pvalue"] for each in tests] == hc.adjust(found.average.results).tolist()
    unadjusted = [each.pvalue for each in found.average.results]
    assert [each["unadjusted_pvalue"] for each in tests] == unadjusted
    assert len(found.truth.results) == 1
    names = [row["measure"] for row in csv.DictReader(io.StringIO(found.to_csv()))]
    assert names == ["ece_conf", "ece_conf:5"] * 2 + ["likelihood"]


def test_several_sets_are_one_table_and_of_one_classifier_two_questions_are_the_same(sound):
    members, labels = near_a_truth(n=60)
    found = assess({"one": members[:, :1], "all": members}, labels, n_resamples=72, rng=0)
    assert isinstance(found, Assessments)
    assert found["all"].results == sound.results
    assert repr(found) == found.table()
    head, *rows = found.table().splitlines()
    assert head.split() == ["average", "some", "combination", "truth", "in", "the", "hull"]
    assert [row.split()[0] for row in rows] == ["one", "all"]
    one = found["one"]
    assert list(one.answers) == ["average", "truth"]
    assert one.calibrated is one.average
    assert "Is the classifier calibrated?" in one.summary()
    assert "combination" not in one.summary()


def test_where_members_do_not_differ_the_truth_implies_a_calibrated_average():
    """By chance the measure finds less likely here what the likelihood does not: p = .01 and .91."""
    probs = np.random.default_rng(240).dirichlet([1, 1, 1], size=60)
    labels = draw_labels(probs, np.random.default_rng(340))
    for members in (probs, np.stack([probs, probs], axis=1)):
        found = assess(members, labels, n_resamples=99, rng=0)
        own = found.average.result.pvalue
        assert own < found.truth.pvalue == found.average.pvalue == found.calibrated.pvalue
        assert found.average.headline == "Not rejected"


@pytest.mark.parametrize("question", ["average", "calibrated", "truth"])
def test_a_question_alone_is_answered_alone(question, sound):
    found = assess(*near_a_truth(n=60), questions=question, n_resamples=72, rng=0)
    assert list(found.answers) == [question]
    assert found.results == sound.answers[question].results
    assert found.summary()
    assert found._repr_html_()
    assert found.weights.sum() == pytest.approx(1.0)


def test_a_measure_may_be_a_function():
    def brier(probs, labels):
        return float(((probs - np.eye(3)[labels]) ** 2).sum(axis=1).mean())

    options = {"questions": "average", "measures": brier, "n_resamples": 72, "rng": 0}
    found = assess(*near_a_truth(n=60), **options)
    assert [each.measure for each in found.average.results] == ["brier"]


def test_members_by_name_are_one_set(sound):
    members, labels = near_a_truth(n=60)
    named = {name: members[:, m] for m, name in enumerate("abcd")}
    found = assess(named, labels, n_resamples=72, rng=0, questions="truth").truth.result
    assert found.members == tuple("abcd")
    np.testing.assert_array_equal(found.weights, sound.truth.result.weights)


def test_data_frames_by_name_are_several_sets():
    pandas = pytest.importorskip("pandas")
    members, labels = near_a_truth(n=60)
    columns = [f"{m}:{k}" for m in "abcd" for k in range(3)]
    wide = pandas.DataFrame(members.reshape(60, -1), columns=columns)
    how = {"questions": "truth", "n_resamples": 72, "rng": 0}
    found = assess({"first": wide, "second": members}, labels, **how)
    weights = [each.truth.result.weights for each in found.values()]
    np.testing.assert_array_equal(*weights)
    assert found["first"].truth.result.members == tuple("abcd")


# What is refused or raised


def test_members_and_sets_by_name_are_not_mixed():
    members, labels = near_a_truth(n=60)
    with pytest.raises(InvalidInputError, match="got both, members such as 'one'"):
        assess({"all": members, "one": members[:, 0]}, labels)


@pytest.mark.parametrize("name", ["measures", "questions"])
@pytest.mark.parametrize("nothing", [(), [], None, 5])
def test_nothing_to_ask_is_refused(name, nothing):
    with pytest.raises(InvalidInputError, match=f"`{name}` must name at least one; got"):
        assess(np.full((4, 2, 2), 0.5), [0, 1, 0, 1], **{name: nothing})


def test_an_unknown_question_is_refused_with_those_there_are():
    with pytest.raises(
        InvalidInputError, match=r"Unknown question 'mean'\. Choose from: average, "
    ):
        assess(np.full((4, 2, 2), 0.5), [0, 1, 0, 1], questions="mean")


@pytest.mark.parametrize("journal", [5, "file"])
def test_a_journal_is_a_folder(journal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=r"`journal` must be a (path|folder)"):
        assess(np.full((4, 2, 2), 0.5), [0, 1, 0, 1], n_resamples=72, journal=journal)


@pytest.mark.parametrize(
    ("measures", "least"), [("ece_conf", 72), (["ece_conf", "ece_cwise"], 146)]
)
def test_resamples_too_few_to_reject_are_raised_with_a_warning_at_the_caller(measures, least):
    probs, labels = np.full((40, 2, 2), [[0.4, 0.6], [0.7, 0.3]]), [0, 1] * 20
    options = {"questions": "average", "measures": measures, "rng": 0}
    with pytest.warns(hc.HullcalWarning, match=f"; {least} are run instead") as told:
        found = assess(probs, labels, n_resamples=least - 1, **options)
    assert {each.filename for each in told} == {__file__}
    assert {each.n_resamples for each in found.results} == {least}
    # The smallest p-value is below .05 with far fewer, and its interval with these.
    n_measures = least // 72
    low, high = (n_measures * pvalues.interval(0, n)[1] for n in (least, least - 1))
    assert low <= 0.05 < high
    for words in (f"to {least}", "of even the smallest p-value would contain `alpha`"):
        assert words in assess.__doc__
    assess(probs, labels, n_resamples=least, **options)


@pytest.mark.parametrize(
    ("measure", "refuted"),
    [("ece_conf", False), ("ece_cwise", True), ("skce_ul", True), (lambda p, y: 0.0, False)],
    ids=["confidence", "classwise", "strong", "own"],
)
def test_a_label_that_every_member_rules_out_is_impossible_where_calibration_forbids_it(
    measure, refuted
):
    """Of classes that are not predicted calibrated confidence claims nothing."""
    probs = np.tile([0.6, 0.4, 0.0], (60, 2, 1))
    probs[:, 0, :2] = [0.5, 0.5]
    labels = np.tile([0, 1], 30)
    labels[7] = 2
    found = assess(probs, labels, measures=[measure], n_resamples=72, rng=0)
    assert (found.calibrated.headline == "Impossible") is refuted
    assert found.truth.headline == "Impossible"
    assert found.truth.rejected
    assert "row 7" in found.truth.text
    assert found.advice[0].startswith("Check the labels of row 7 (counted from 0)")


def test_a_note_says_whose_it_is_unless_it_is_everybodys(sound):
    shared = Note("renormalised", {"n_rows": 3, "of_rows": 60, "deviation": 0.001})

    def noted(answer, *notes):
        results = tuple(dataclasses.replace(each, notes=notes) for each in answer.results)
        return dataclasses.replace(answer, results=results)

    # The average is made of members that were renormalised before, and has no such note.
    answers = sound.answers | {"calibrated": noted(sound.calibrated, shared, DOUBT)}
    answers["truth"] = noted(sound.truth, shared)
    assert dataclasses.replace(sound, answers=answers).notes == [
        str(shared),
        f"calibrated, ece_conf: {DOUBT}",
    ]


# How large, and how many rows


def test_a_temperature_that_was_applied_is_found_again():
    rng = np.random.default_rng(0)
    law = rng.dirichlet([1, 1, 1], size=4000)
    labels = np.array([rng.choice(3, p=p) for p in law], dtype=np.int32)
    found = fitted_temperature(hc.ClassifierSet(tempered(law, 0.5)), labels)
    assert found == pytest.approx(2.0, rel=0.06)


def test_labels_against_the_predictions_are_called_so():
    members, labels = near_a_truth(n=200)
    found = assess(
        members**4 / (members**4).sum(2, keepdims=True), (labels + 1) % 3, n_resamples=99
    )
    assert found.effect.average.temperature >= 100.0
    assert found.truth.result.temperature >= 100.0
    assert found.truth.result.direction == "overconfident"
    assert found.advice[0].startswith("Check that labels and classes are in the same order")


def test_rows_needed_are_those_of_a_normal_statistic():
    share = (norm.ppf(0.8) + norm.ppf(0.95)) / norm.ppf(0.95)
    assert rows_needed(0.5, 100, 0.05) == math.ceil(100 * share**2)
    assert rows_needed(0.9, 100, 0.05) == 100
    assert rows_needed(0.08, 100, 0.05) is None


def test_power_that_is_told_is_that_of_the_test():
    """Twenty label sets from the same law, each tested in full, against the power that was told."""
    members, labels = near_a_truth(n=100)
    told = assess(members, labels, questions="average", n_resamples=99, rng=0).average.detection
    law = tempered(members.mean(axis=1), 1.5)
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        drawn = [rng.choice(3, p=p) for p in law]
        found = hc.classical.resampling_test(members.mean(axis=1), drawn, n_resamples=99, rng=seed)
        rejected += found.rejected
    assert told.power == pytest.approx(rejected / 60, abs=0.25)


def quality(error, accuracy=0.9, temperature=1.5, left=0.25):
    return Quality(error, (error / 2, error * 2), accuracy, temperature, left * error)


@pytest.mark.parametrize(
    ("left", "temperature", "word", "step"),
    [
        (0.5, 1.5, "overconfident", "Recalibrate the average: divide its logits by 1.50, "),
        (
            0.9,
            1.5,
            "partly overconfident",
            "A temperature of 1.50 repairs little (error 10.0 to 9.0 ",
        ),
        (
            0.6,
            0.8,
            "partly underconfident",
            "A temperature of 0.80 repairs little (error 10.0 to 6.0",
        ),
        (1.2, 1.1, "", "A temperature of 1.10 repairs nothing (error 10.0 to 12.0 points): try an"),
        (0.9, 1.01, "", "A temperature of 1.01 repairs nothing"),
    ],
)
def test_a_temperature_is_advised_only_if_it_takes_away_half_of_the_error(
    left, temperature, word, step
):
    one = quality(0.1, temperature=temperature, left=left)
    assert one.direction == word
    assert (", ".join(filter(None, [word, "accuracy"]))) in str(one)
    answers = {"average": Answer("average", (by("ece_conf", 0),))}
    steps = advice(answers, Effect("ece_conf", one, quality(0.2), np.full(3, 1 / 3)))
    assert steps[0].startswith(step)
    dear = Effect("ece_conf", one, quality(0.01, accuracy=0.7), np.full(3, 1 / 3))
    *_, last = advice(answers | {"calibrated": calibrated(by("ece_conf", 60))}, dear)
    prefer = "the temperature" if left == 0.5 else "another calibrator"
    assert last.endswith(f": prefer {prefer}.")


def test_the_average_of_several_is_called_so_where_it_alone_is_asked_about():
    answers = {"average": Answer("average", (by("ece_conf", 0),))}
    for n_members, whose in ((1, "classifier"), (3, "average")):
        effect = Effect("ece_conf", quality(0.1), None, np.full(n_members, 1 / n_members))
        assert advice(answers, effect)[0].startswith(f"Recalibrate the {whose}: ")


def test_one_row_is_no_several():
    said = [str(Detection(1.5, 0.1, 0.2, n, None)) for n in (1, 2)]
    assert [each.partition(" a ")[0] for each in said] == ["1 row detects", "2 rows detect"]


@pytest.mark.parametrize(
    ("best", "words"),
    [
        (quality(0.01), "Or use the weights"),
        (
            quality(0.01, accuracy=0.7),
            "Other weights would lower the accuracy from 90.0% to 70.0%",
        ),
    ],
)
def test_weights_are_advised_unless_they_cost_accuracy(best, words):
    average = Answer("average", (by("ece_conf", 0),))
    effect = Effect("ece_conf", quality(0.1), best, np.array([0.75, 0.25, 0.0]))
    steps = advice({"average": average, "calibrated": calibrated(by("ece_conf", 60))}, effect)
    assert steps[0].startswith("Recalibrate the average: divide its logits by 1.50")
    assert steps[1].startswith(words)


def test_a_rejected_truth_is_one_weighting_for_all_rows_and_no_range_row_by_row():
    """The truth lies between the members in every row, with weights that differ by row."""
    logits = np.random.default_rng(0).uniform(-3.0, 3.0, size=(1000, 1))
    members = 1.0 / (1.0 + np.exp(-logits * [1 / 3, 3.0]))
    share = np.where(abs(logits[:, 0]) < 1.0, 0.9, 0.1)
    truth = (1.0 - share) * members[:, 0] + share * members[:, 1]
    labels = np.random.default_rng(1).random(1000) < truth
    probs = np.stack([1.0 - members, members], axis=2)
    found = assess(probs, labels, questions="truth", n_resamples=99, rng=0)
    assert ((members.min(axis=1) < truth) & (truth < members.max(axis=1))).all()
    assert found.truth.headline == "Rejected"
    (step,) = [step for step in found.advice if "range" in step]
    assert step.startswith("No one weighting explains the labels")


def test_the_e_value_stands_beside_the_truth_whatever_it_is(sound, sharpened):
    for found in (sound, sharpened):
        (line,) = [each for each in found.summary().splitlines() if "contain the truth" in each]
        value = evalue_in_words(found.truth.result.log_evalue)
        assert line.endswith(f", likelihood; e-value {value})")
    assert sound.truth.result.evalue < 20.0 < sharpened.truth.result.evalue


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.001, "below 0.01"),
        (0.0123, "0.012"),
        (1.26, "1.3"),
        (19.6, "20"),
        (99.6, "100"),
        (123456, "120000"),
        (2e8, "10^8.3"),
        (math.inf, "infinite"),
    ],
)
def test_an_e_value_has_two_digits_at_most(value, words):
    assert evalue_in_words(math.log(value)) == words


def test_a_borderline_answer_is_to_be_repeated_with_more_resamples():
    steps = advice({"calibrated": calibrated(by("bins", 4))}, None)
    assert steps == ("Repeat with `n_resamples=999`, to decide what is borderline.",)
    early = {"stop_after": 4, "n_resamples": 9999}
    steps = advice({"calibrated": calibrated(by("bins", 4, settings=early))}, None)
    assert "`n_resamples=999` and `stop_after=999`" in steps[0]


@pytest.mark.parametrize(("temperature", "true"), [(1.0, 0.0), (1.5, 0.075), (2.5, 0.149)])
def test_an_interval_holds_the_error_of_new_rows(temperature, true):
    """The true errors are those of 200,000 rows in ten bins; the interval may be too wide."""
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet([1, 1, 1], size=200)
        labels = draw_labels(tempered(probs, temperature), rng).astype(np.int32)
        low, high = Quality.of(
            hc.ClassifierSet(probs), labels, hc.ConfidenceECE(), fitted=False
        ).interval
        held += low <= true <= high
    assert held >= 34  # 99 % of binomial counts at .95 are


# Odd inputs


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_assessed(dtype, sound):
    members, labels = near_a_truth(n=60)
    options = {"questions": "average", "n_resamples": 72, "rng": 0}
    found = assess(members.astype(dtype), labels, **options)
    assert found.effect.average.error == pytest.approx(sound.effect.average.error, abs=0.02)


def test_the_null_that_maximises_says_nothing_of_what_it_could_detect():
    members, labels = near_a_truth(n=60)
    found = assess(members, labels, null="maximized", n_resamples=72, rng=0)
    assert found.calibrated.headline == "Not rejected"
    assert found.calibrated.detection is None


@pytest.mark.parametrize("names", [["../out", "a"], ["", "a"], [1, "1"]])
def test_names_of_sets_differ_and_stay_inside_the_journal(names, tmp_path):
    members, labels = near_a_truth(n=30)
    with pytest.raises(InvalidInputError, match="`probs` must have names that differ"):
        assess(dict.fromkeys(names, members), labels, journal=tmp_path / "j")
    assert not list(tmp_path.glob("out*"))


def test_an_assertion_fails_with_the_verdict_of_whatever_is_rejected():
    members, labels = near_a_truth(temperature=3.0)
    options = {"n_resamples": 99}
    with pytest.raises(AssertionError, match=r"^Rejected .*: the plain average is not calibrated"):
        hc.testing.assert_calibrated(members, labels, question="average", **options)
    with pytest.raises(AssertionError, match="Rejected"):
        hc.testing.assert_calibrated(members, labels, question=["calibrated", "truth"], **options)
    fine = near_a_truth(n=100)
    assert not hc.testing.assert_calibrated(*fine, **options).calibrated.rejected
    with pytest.raises(InvalidInputError, match="must be one set"):
        hc.testing.assert_calibrated({"a": fine[0]}, fine[1], **options)


@pytest.mark.parametrize("alpha", [1e-7, 1e-300, 5e-324])
def test_a_level_that_no_number_of_resamples_decides_is_refused_at_once(alpha):
    members, labels = near_a_truth(n=20)
    with pytest.raises(hc.InvalidInputError, match="`alpha` must be one that 1,000,000 resamples"):
        assess(members, labels, alpha=alpha)


@pytest.mark.parametrize("n_measures", [1, 2])
def test_resamples_are_raised_to_the_fewest_that_decide(n_measures):
    members, labels = near_a_truth(n=20)
    # Clopper and Pearson's upper end for 0 of 71 is beyond .05, and for 0 of 145 beyond .025.
    least = {1: 72, 2: 146}[n_measures]
    high = [n_measures * pvalues.interval(0, n)[1] for n in (least - 1, least)]
    assert high[0] > 0.05 >= high[1]
    measures = ["ece_conf", "ece_conf:5"][:n_measures]
    with pytest.warns(hc.HullcalWarning, match=f"cannot decide at 0.05.*; {least} are run instead"):
        assess(members, labels, measures=measures, n_resamples=1, rng=0)
