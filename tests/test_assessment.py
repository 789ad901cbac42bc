"""What is said of several measures at once: who speaks, how surely, and what a rejection is."""

import dataclasses

import numpy as np
import pytest

import hullcal as hc
from hullcal import InvalidInputError
from hullcal.assessment import Assessment, assess
from hullcal.cli import testing
from hullcal.notes import Note
from test_results import result

DOUBT = Note("too_few_rows", {"share": 0.5})


def by(measure, count, *, doubtful=False, **changes):
    """A test of which `count` of 99 null values reach the statistic, so that p = (1 + count) / 100."""
    notes = (DOUBT,) if doubtful else ()
    null = np.arange(99.0)
    changes = {"alpha": 0.05, "hypothesis": "H", "null": "recentered", "settings": {}} | changes
    return result(
        measure=measure, statistic=98.5 - count, null_distribution=null, notes=notes, **changes
    )


def said(*results):
    """The sentence of a single null; where the predictions are does not matter to it."""
    (sentence,) = Assessment(None, results).sentences()
    return sentence


def test_a_measure_without_doubt_is_heard_before_a_smaller_p_value_in_doubt():
    assert said(by("cells", 0, doubtful=True), by("bins", 1)) == (
        "No: the data speak against the claim that H (adjusted p = 0.02 by bins). It is too close to "
        "call; raise the resamples."
    )


def test_of_several_without_doubt_the_smallest_p_value_is_heard():
    results = by("cells", 0, doubtful=True), by("pairs", 3), by("bins", 0)
    assert "(adjusted p = 0.03 by bins)" in said(*results)


def test_it_is_unclear_only_where_all_that_reject_are_in_doubt():
    unclear = said(by("cells", 0, doubtful=True), by("more", 1, doubtful=True), by("bins", 30))
    assert unclear == (
        "Unclear: the data seem to speak against the claim that H (adjusted p = 0.03 by cells), but "
        "with too few rows for cells by null recentered; ask null stacked. It is too close to call; "
        "raise the resamples."
    )
    assert said(by("cells", 0, doubtful=True)).startswith("Unclear: the data seem to")


def test_where_nothing_rejects_the_smallest_p_value_is_heard_whatever_the_doubt():
    assert said(by("bins", 80), by("cells", 30, doubtful=True)) == (
        "Perhaps: the data do not speak against the claim that H (adjusted p = 0.62 by cells)."
    )


@pytest.mark.parametrize(
    ("settings", "also"), [({}, ""), ({"stop_after": 9}, " and what they stop after")]
)
def test_a_level_inside_the_interval_is_too_close_to_call(settings, also):
    near = by("bins", 5, settings=settings)
    assert said(near) == (
        "Perhaps: the data do not speak against the claim that H (p = 0.06 by bins). "
        f"It is too close to call; raise the resamples{also}."
    )
    assert "too close" not in said(dataclasses.replace(near, alpha=0.01))


def test_each_null_has_its_own_sentence_and_its_own_doubt():
    pairs = [by("cells", 0, doubtful=True), by("cells", 0, null="refit"), by("bins", 30)]
    found = Assessment(None, tuple(pairs))
    first, second = found.sentences()
    assert first.startswith("Unclear: ")
    assert second == "No: the data speak against the claim that H (p = 0.01 by cells)."


def test_what_is_unclear_is_still_a_rejection():
    found = Assessment(None, (by("cells", 0, doubtful=True), by("bins", 30)))
    assert found.sentences()[0].startswith("Unclear: ")
    assert found.rejected("recentered")
    assert found.unclear("recentered")
    assert not Assessment(None, (by("cells", 30, doubtful=True),)).rejected("recentered")


def test_a_real_set_is_not_called_miscalibrated_by_a_p_value_in_doubt():
    data = hc.simulation.scenario("S1", n_samples=100, n_members=3, n_classes=40, rng=1)
    settings = {"nulls": ["recentered", "refit"], "n_resamples": 19, "alpha": 0.1, "rng": 0}
    found = assess(data.probs, data.labels, measures=["ece_cwise"], **settings)
    assert found.rejected("recentered")
    assert found.sentences()[0].startswith("Unclear: the data seem to speak against")
    assert found.sentences()[1].startswith("Perhaps:")


def test_a_rejection_without_doubt_and_no_rejection_are_clear():
    assert not Assessment(None, (by("cells", 0, doubtful=True), by("bins", 0))).unclear(
        "recentered"
    )
    assert not Assessment(None, (by("cells", 30, doubtful=True),)).unclear("recentered")


def test_the_best_combination_is_that_of_the_smallest_value_by_the_first_measure():
    settings = {"measure": {"n_bins": 10}}
    # By what the measure is there, not by the statistic: that is the larger one of the best.
    own = {"settings": settings, "weights": np.array([0.0, 1.0])}
    elsewhere = by("bins", 60, null="maximized", minimum=0.3, **own)
    best = by("bins", 50, minimum=0.2, settings=settings, weights=np.array([1.0, 0.0]))
    finer = by("bins", 90, minimum=0.1, settings={"measure": {"n_bins": 20}})
    other = by("cells", 95, minimum=0.1, settings=settings)
    found = Assessment(None, (elsewhere, best, finer, other))
    assert found.best is best
    np.testing.assert_array_equal(found.weights, [1.0, 0.0])


@pytest.mark.parametrize("journal", [5, "file"])
def test_a_journal_is_a_folder(journal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=r"`journal` must be a (path|folder)"):
        assess(np.full((4, 2, 2), 0.5), [0, 1, 0, 1], n_resamples=9, journal=journal)


def test_what_is_close_is_judged_after_adjustment():
    far, near = by("a", 4), by("b", 1)
    # Of six measures p = .05 is adjusted to .3, far from .05; of two p = .02 is adjusted to .04, near.
    six = Assessment(None, (far, *(by(name, 90) for name in "bcdef")))
    assert six.adjusted[0] == pytest.approx(0.3)
    assert "too close" not in six.sentences()[0]
    two = Assessment(None, (near, by("c", 90)))
    assert two.rejected("recentered")
    assert two.sentences()[0].endswith("It is too close to call; raise the resamples.")


def test_a_note_says_whose_it_is_unless_it_is_everybodys():
    shared = Note("impossible", {"n_rows": 3})
    one, two = by("a", 4, doubtful=True), by("b", 1)
    results = [dataclasses.replace(each, notes=(*each.notes, shared)) for each in (one, two)]
    assert Assessment(None, tuple(results)).notes() == [
        f"a, recentered: {DOUBT}",
        str(shared),
    ]


def test_the_truth_gives_no_label_the_probability_0():
    probs = np.full((12, 2, 3), [0.5, 0.5, 0.0])
    labels = np.array([0, 1] * 5 + [2, 2])
    found = assess(probs, labels, n_resamples=19, rng=0)
    calibrated, truth = found.sentences()
    assert "probability 0" not in calibrated
    assert "came true to which every combination gives probability 0" in truth


def test_resamples_that_cannot_reject_after_adjustment_are_remarked():
    probs, labels = np.full((40, 2, 2), 0.5), [0, 1] * 20
    options = {"measures": ["ece_conf", "ece_cwise"], "nulls": ["refit"], "rng": 0}
    with pytest.warns(hc.HullcalWarning, match="adjusted for 2 measures.* could is 39"):
        assess(probs, labels, n_resamples=38, **options)
    assess(probs, labels, n_resamples=39, **options)


def test_one_measure_and_one_null_need_no_list():
    probs, labels = np.full((20, 2, 2), [[0.4, 0.6], [0.7, 0.3]]), [0, 1] * 10
    options = {"n_resamples": 19, "rng": 0}
    one = assess(probs, labels, measures="ece_conf", nulls="refit", **options)
    several = assess(probs, labels, measures=["ece_conf"], nulls=["refit"], **options)
    assert one.results == several.results
    for measure in (hc.ConfidenceECE(n_bins=5), lambda p, y: float(p[0, 0])):
        found = assess(probs, labels, measures=measure, nulls=hc.nulls.Refit(), **options)
        assert len(found.results) == 1


@pytest.mark.parametrize("name", ["measures", "nulls"])
@pytest.mark.parametrize("nothing", [(), [], None, 5])
def test_nothing_to_ask_is_refused(name, nothing):
    with pytest.raises(InvalidInputError, match=f"`{name}` must name at least one; got"):
        assess(np.full((4, 2, 2), 0.5), [0, 1, 0, 1], **{name: nothing})


def test_the_weights_of_maximized_alone_are_not_called_the_best():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], size=(60, 3)), rng.integers(3, size=60)
    options = {"n_resamples": 19, "rng": 0}
    alone = assess(probs, labels, nulls="maximized", **options)
    beside = assess(probs, labels, nulls=["maximized", "refit"], **options)
    for shown in (testing.table, hc.report.render):
        assert "ombination with the largest p-value" in shown(alone)
        assert "est combination" not in shown(alone)
        assert "est combination" in shown(beside)
        assert "largest p-value" not in shown(beside).replace("where the p-value is largest", "")


@pytest.mark.parametrize(
    ("measure", "said"),
    [("ece_conf", False), ("ece_cwise", True), ("skce_ul", True), (lambda p, y: 0.0, False)],
    ids=["confidence", "classwise", "strong", "own"],
)
@pytest.mark.parametrize("n_members", [1, 2])
def test_what_every_member_rules_out_is_told_where_the_notion_of_calibration_forbids_it(
    measure, said, n_members
):
    """Of classes that are not predicted calibrated confidence claims nothing."""
    probs = np.tile([0.6, 0.4, 0.0], (60, n_members, 1))
    probs[:, 0, :2] = [0.5, 0.5]
    labels = np.tile([0, 1], 30)
    labels[0] = 2
    found = assess(probs, labels, measures=[measure], nulls="stacked", n_resamples=19, rng=0)
    (sentence,) = found.sentences()
    assert sentence.startswith("Perhaps")
    who = "every combination" if n_members > 1 else "it"
    forbidden = f"Strictly speaking no: some labels came true to which {who} gives probability 0."
    assert (forbidden in sentence) is said


def test_too_many_predictions_are_not_mixed_by_the_way(monkeypatch):
    probs, labels = np.full((20, 2, 2), [[0.4, 0.6], [0.7, 0.3]]), [0, 1] * 10
    found = assess(probs, labels, nulls="refit", n_resamples=19, rng=0)
    assert "The plain average has accuracy 0.5" in testing.table(found)
    monkeypatch.setattr(testing, "_MANY", probs.size - 1)
    assert "accuracy" not in testing.table(found)


def test_a_warning_points_at_whoever_called():
    probs, labels = np.full((20, 2, 2), [[0.4, 0.6], [0.7, 0.3]]), [0, 1] * 10
    with pytest.warns(hc.HullcalWarning, match="no p-value of 9 resamples") as told:
        assess(probs, labels, nulls="refit", n_resamples=9, rng=0)
    assert {each.filename for each in told} == {__file__}
