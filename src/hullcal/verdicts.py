"""Which sentence answers a question, where one or several measures were asked?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hullcal import measures
from hullcal.nulls import ONE_CALIBRATED, TRUTH
from hullcal.results import CalibrationTestResult

__all__ = ["Answer", "Heard", "answer", "heard", "sentence"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said if one test speaks for its null; the level decides which of it.

    Attributes
    ----------
    rejecting : str
        At levels that the adjusted p-value reaches.
    standing : str
        At the others.
    close : str
        What either is followed by where more resamples could change the decision.
    """

    rejecting: str
    standing: str
    close: str


class Heard(NamedTuple):
    """One test of a question: its p-value adjusted for the others, itself, and what it would say."""

    adjusted: float
    result: CalibrationTestResult
    answer: Answer

    @property
    def rejects(self) -> bool:
        """Whether it does, after adjustment."""
        return self.adjusted <= self.result.alpha

    @property
    def close(self) -> bool:
        """Whether more resamples could change that."""
        # What adjustment multiplies the p-value by, and so whatever else it could have been.
        factor = self.adjusted / self.result.pvalue
        low, high = (factor * end for end in self.result.pvalue_interval)
        return low <= self.result.alpha <= high


def answer(result: CalibrationTestResult, adjusted: float, *, several: bool) -> Answer:
    """What a test says; `several` says that its p-value was adjusted for others."""
    hypothesis, null = result.hypothesis, result.null
    figure = f"{'adjusted p' if several else 'p'} = {adjusted:.3g} by {result.measure}"
    rejecting = f"No: the data speak against the claim that {hypothesis} ({figure})."
    if result.doubtful:
        rejecting = (
            f"Unclear: the data seem to speak against the claim that {hypothesis} ({figure}), but "
            f"with too few rows for {result.measure} by null {null}; ask null stacked."
        )
    standing = f"Perhaps: the data do not speak against the claim that {hypothesis} ({figure})."
    if any(note.code == "impossible" for note in result.notes):
        standing += _impossible(result)
    also = " and what they stop after" if "stop_after" in result.settings else ""
    close = f" It is too close to call; raise the resamples{also}."
    return Answer(rejecting, standing, close)


def _impossible(result: CalibrationTestResult) -> str:
    """What it means for the claim that labels were ruled out by every member."""
    known = result.measure in measures.available()
    # Of the classes that are not predicted, calibrated confidence claims nothing.
    claims = known and measures.resolve(result.measure).notion != "confidence"
    if result.hypothesis != TRUTH and not claims:
        return ""
    who = "it" if result.hypothesis == ONE_CALIBRATED else "every combination"
    return f" Strictly speaking no: some labels came true to which {who} gives probability 0."


def heard(tests: Sequence[Heard]) -> Heard:
    """The test that speaks for all of one question."""
    # The report's script decides so too, at the level of its slider.
    rejecting = [each for each in tests if each.rejects]
    # A doubt of one measure is none of another that rejects as well.
    certain = [each for each in rejecting if not each.result.doubtful]
    return min(certain or rejecting or tests, key=lambda each: each.adjusted)


def sentence(tests: Sequence[Heard]) -> str:
    """What it says."""
    one = heard(tests)
    said = one.answer.rejecting if one.rejects else one.answer.standing
    return said + one.answer.close * one.close
