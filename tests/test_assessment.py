"""What is said of several measures at once: who speaks, how surely, and what a rejection is."""

import dataclasses

import numpy as np
import pytest

from hullcal.assessment import Assessment
from hullcal.pvalues import DOUBT
from test_results import result


def by(measure, count, *, doubtful=False, **changes):
    """A test of which `count` of 99 null values reach the statistic, so that p = (1 + count) / 100."""
    notes = (f"{DOUBT}: and so on",) if doubtful else ()
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
        "No: the data speak against the claim that H (adjusted p = 0.02 by bins)."
    )


def test_of_several_without_doubt_the_smallest_p_value_is_heard():
    results = by("cells", 0, doubtful=True), by("pairs", 3), by("bins", 0)
    assert "(adjusted p = 0.03 by bins)" in said(*results)


def test_it_is_unclear_only_where_all_that_reject_are_in_doubt():
    unclear = said(by("cells", 0, doubtful=True), by("more", 1, doubtful=True), by("bins", 30))
    assert unclear == (
        "Unclear: the data seem to speak against the claim that H (adjusted p = 0.03 by cells), but "
        "with too few rows for cells by null recentered; ask null stacked."
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
    assert not Assessment(None, (by("cells", 30, doubtful=True),)).rejected("recentered")
