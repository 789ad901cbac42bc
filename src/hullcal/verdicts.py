"""What one or several tests answer to a question, how large the effect is, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hullcal.effects import TARGET, Detection, Effect
from hullcal.results import CalibrationTestResult, TruthTestResult, adjust
from hullcal.words import (
    BORDERLINE,
    IMPOSSIBLE,
    INCONCLUSIVE,
    NOT_REJECTED,
    REJECTED,
    Verdict,
    headline,
    measure_in_words,
    rows_in_words,
    verdict,
    weights_in_words,
)

__all__ = ["QUESTIONS", "Answer"]

Tested = CalibrationTestResult | TruthTestResult

#: The questions in the order of asking; for one classifier the first reads differently.
QUESTIONS = {
    "average": "Is the plain average calibrated?",
    "calibrated": "Is some combination calibrated?",
    "truth": "Does the hull contain the truth?",
}
#: The same over the columns of a table.
HEADS = {"average": "average", "calibrated": "some combination", "truth": "truth in the hull"}
ONE_CLASSIFIER = {
    "average": "Is the classifier calibrated?",
    "calibrated": "Is the classifier calibrated?",
    "truth": "Do labels follow the classifier?",
}
#: The accuracy that weights may cost.
_DEAR = 0.01
#: A temperature beyond which nothing is left of the predictions.
_MISLEADING = 20.0


@dataclass(frozen=True)
class Answer:
    """The tests of one question, and what they say together.

    Attributes
    ----------
    question : {"average", "calibrated", "truth"}
    results : tuple of results
        One for each measure; the likelihood test for "truth".
    implied_by : tuple of Answer
        About hypotheses that imply this one, as H0' implies H0: no p-value here is below theirs.
    detection : Detection or None
        What these rows could have detected, where nothing is rejected.
    size, sized_by : str or None
        How large the effect is, in words, and by which measure.
    """

    question: str
    results: tuple[Tested, ...]
    implied_by: tuple[Answer, ...] = ()
    detection: Detection | None = None
    size: str | None = None
    sized_by: str | None = None

    @cached_property
    def adjusted(self) -> tuple[float, ...]:
        """P-values of the results: Holm's over the measures, and coherent with what implies this."""
        own = adjust(self.results).tolist()
        return tuple(max(each) for each in zip(own, *self._implied, strict=True))

    @property
    def _implied(self) -> list[tuple[float, ...]]:
        """The p-values of what implies this, measure by measure if it was tested by measures."""
        n = len(self.results)
        return [
            each.adjusted if len(each.results) == n else (each.pvalue,) * n
            for each in self.implied_by
        ]

    @cached_property
    def headlines(self) -> tuple[str, ...]:
        """A headline for each of the results, from the test whose p-value is shown."""
        found = []
        own = adjust(self.results).tolist()
        for i, (result, shown) in enumerate(zip(self.results, self.adjusted, strict=True)):
            word = headline(result, shown)
            if shown > own[i] and word != IMPOSSIBLE:
                lenders = zip(self.implied_by, self._implied, strict=True)
                lender = next(answer for answer, p in lenders if p[i] == shown)
                lent = lender.headlines[i] if len(lender.results) > i else lender.headline
                word = word if lent == IMPOSSIBLE else lent
            found.append(word)
        return tuple(found)

    @property
    def result(self) -> Tested:
        """The test that decides: the smallest p-value, one in doubt only if no other rejects."""
        return self.results[self._deciding]

    @property
    def _deciding(self) -> int:
        order = {IMPOSSIBLE: 0, REJECTED: 1, BORDERLINE: 2, INCONCLUSIVE: 3, NOT_REJECTED: 4}
        ranks = [(order[head], p) for head, p in zip(self.headlines, self.adjusted, strict=True)]
        return ranks.index(min(ranks))

    @property
    def pvalue(self) -> float:
        """The adjusted p-value of the test that decides."""
        return self.adjusted[self._deciding]

    @property
    def headline(self) -> str:
        """Rejected, Not rejected, Borderline, Inconclusive or Impossible."""
        return self.headlines[self._deciding]

    @property
    def rejected(self) -> bool:
        """Whether some adjusted p-value is at most alpha, or some label is impossible."""
        return min(self.adjusted) <= self.result.alpha or self.headline == IMPOSSIBLE

    @property
    def verdict(self) -> Verdict:
        """Headline and p-value, and what follows; where nothing does, what could have been detected."""
        changed = self.pvalue != self.result.pvalue
        p = self.pvalue if changed else None
        own = getattr(self.result, "measure", None) == self.sized_by
        said = verdict(
            self.result,
            p,
            word=self.headline,
            size=self.size if own else None,
            several=len(self.results) > 1,
        )
        if self.headline == NOT_REJECTED and self.detection is not None:
            said = said._replace(size="; ".join(filter(None, [said.size, str(self.detection)])))
        return said

    @property
    def text(self) -> str:
        """The verdict in words."""
        return str(self.verdict)

    @property
    def tests(self) -> list[dict[str, Any]]:
        """Each test with its adjusted p-value and its headline, as plain values."""
        each = zip(self.results, self.adjusted, self.headlines, strict=True)
        return [
            {
                "question": self.question,
                "measure": measure_in_words(result),
                "pvalue": p,
                "unadjusted_pvalue": result.pvalue,
                "headline": word,
                "rejected": p <= result.alpha or word == IMPOSSIBLE,
            }
            for result, p, word in each
        ]

    def __repr__(self) -> str:
        return f"<Answer: {QUESTIONS[self.question]} {self.text}>"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, without its results."""
        return {
            "question": self.question,
            "hypothesis": self.result.hypothesis,
            "headline": self.headline,
            "rejected": self.rejected,
            "pvalue": self.pvalue,
            "text": self.text,
            "tests": self.tests,
            "detection": None if self.detection is None else self.detection._asdict(),
        }


def advice(answers: dict[str, Answer], effect: Effect | None) -> tuple[str, ...]:
    """What to do next, the most important first."""
    steps: list[str] = []
    heads = {name: answer.headline for name, answer in answers.items()}
    truth = answers["truth"].result if "truth" in answers else None
    if isinstance(truth, TruthTestResult) and truth.impossible:
        steps.append(
            f"Check the labels of {rows_in_words(truth.impossible)} (counted from 0): their probability "
            "is 0 under every member."
        )
    off = [name for name, head in heads.items() if head in (REJECTED, IMPOSSIBLE)]
    if effect is not None and "average" in off:
        steps += _repairs(effect, calibrated="calibrated" not in off, members=_members(answers))
    if "calibrated" in off:
        steps.append(
            "No weights repair this set: recalibrate its members before combining them, or add "
            "members that err in other ways."
        )
    if isinstance(truth, TruthTestResult) and "truth" in off and not truth.impossible:
        if truth.n_members > 1:
            steps.append(
                "Do not take the range of the members as bounds of the true probabilities."
            )
        if truth.surprises:
            steps.append(
                f"Check the least likely labels: {rows_in_words(truth.surprises)} (counted from 0)."
            )
    if BORDERLINE in heads.values():
        results = [result for answer in answers.values() for result in answer.results]
        n = 10 * (max(result.n_resamples for result in results) + 1) - 1
        # Those that stopped early would stop there again.
        stopped = any(r.n_resamples < r.settings.get("n_resamples", 0) for r in results)
        also = f" and `stop_after={n}`" * stopped
        steps.append(f"Repeat with `n_resamples={n}`{also}, to decide what is borderline.")
    if INCONCLUSIVE in heads.values():
        steps.append(
            'Repeat with `null="stacked"`: there are too few rows per bin for "recentered".'
        )
    if not any(answer.rejected for answer in answers.values()):
        steps += _to_learn_more(answers)
    return tuple(steps)


def _members(answers: dict[str, Answer]) -> tuple[str, ...] | None:
    return next((each.result.members for each in answers.values() if each.result.members), None)


def _repairs(effect: Effect, *, calibrated: bool, members: tuple[str, ...] | None) -> list[str]:
    """Two ways to better probabilities: a temperature, and weights."""
    average, best = effect.average, effect.combination
    whose = "average" if best is not None else "classifier"
    if average.temperature > _MISLEADING:
        return [
            "Check that labels and classes are in the same order: the predictions say next to nothing "
            "about these labels."
        ]
    steps = []
    if average.recalibrated < average.error:
        steps.append(
            f"Recalibrate the {whose}: divide its logits by {average.temperature:.2f}, that is, raise "
            f"its probabilities to the power {1 / average.temperature:.2f} and normalise (error "
            f"{100 * average.error:.1f} to {100 * average.recalibrated:.1f} points on these rows)."
        )
    if best is None or not calibrated or best.error >= average.error:
        return steps
    if best.accuracy < average.accuracy - _DEAR:
        cost = f"{best.accuracy:.1%} against {average.accuracy:.1%}"
        prefer = "prefer the temperature" if steps else "gather more members"
        return [*steps, f"The best weights cost accuracy, {cost}: {prefer}."]
    shown = weights_in_words(effect.weights, members)
    return [
        *steps,
        f"{'Or use' if steps else 'Use'} the weights {shown}, and check them on new data (error "
        f"{100 * best.error:.1f} points on these rows).",
    ]


def _to_learn_more(answers: dict[str, Answer]) -> list[str]:
    """What failing to reject is worth, and how many rows would be worth more."""
    weakest = min(
        (each.detection for each in answers.values() if each.detection is not None),
        key=lambda found: (-found.temperature, found.power),
        default=None,
    )
    said = "Failing to reject does not prove calibration"
    if weakest is None:
        return [f"{said}."]
    if weakest.power >= TARGET:
        return [f"{said}, but a temperature of {weakest.temperature:g} or more would have shown."]
    needed = weakest.n_needed
    rows = "far more rows" if needed is None else f"about {needed:,} rows"
    return [
        f"{said}. Gather {rows} to detect a temperature of {weakest.temperature:g} with power "
        f"{TARGET:g}."
    ]
