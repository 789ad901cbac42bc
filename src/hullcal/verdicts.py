"""What one or several tests answer to a question, how large the effect is, and what to do next."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import io, uncertainty
from hullcal._validation import InvalidInputError
from hullcal.effects import TARGET, Detection, Effect
from hullcal.notes import OF_INPUT, Note
from hullcal.objectives.opening import LabelledSet
from hullcal.plots import reliability
from hullcal.plots.canvas import as_svg
from hullcal.results import CalibrationTestResult, TruthTestResult, adjust
from hullcal.sets import ClassifierSet
from hullcal.simplex import uniform
from hullcal.words import (
    BORDERLINE,
    IMPOSSIBLE,
    INCONCLUSIVE,
    NOT_REJECTED,
    REJECTED,
    Verdict,
    headline,
    in_columns,
    in_html,
    measure_in_words,
    plural,
    rows_in_words,
    stopped_early,
    verdict,
    weights_in_words,
)

__all__ = ["QUESTIONS", "Answer", "Assessment", "Assessments"]

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
    "truth": "Are its probabilities the true ones?",
}
#: Headlines in the order in which they decide.
_DECIDING = (IMPOSSIBLE, REJECTED, BORDERLINE, INCONCLUSIVE, NOT_REJECTED)
#: Probabilities beyond which nothing is computed but the tests.
MANY = 2**24
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
    effect : Effect or None
        How far average and best combination are from calibrated.
    detection : Detection or None
        What these rows could have detected, where nothing is rejected.
    """

    question: str
    results: tuple[Tested, ...]
    implied_by: tuple[Answer, ...] = ()
    effect: Effect | None = None
    detection: Detection | None = None

    @cached_property
    def _shown(self) -> list[tuple[float, str, str]]:
        """P-value and headline of each result: those of what implies it, where its p-value is larger.

        The third says from which question they are lent, if they are.
        """
        shown = []
        for i, (result, p) in enumerate(
            zip(self.results, adjust(self.results).tolist(), strict=True)
        ):
            lent, own, whose = None, p, ","
            for other in self.implied_by:
                # Measure by measure if it was tested by measures.
                same = len(other.results) == len(self.results)
                of_other, word, _ = other._shown[i if same else other._deciding]
                if of_other > p:
                    p, lent = of_other, word
                    whose = f", raised to that of the {other.question}; alone {own:.3g} by"
            word = headline(result, p)
            if lent is not None and IMPOSSIBLE not in (word, lent):
                word = lent
            shown.append((p, word, whose))
        return shown

    @property
    def adjusted(self) -> tuple[float, ...]:
        """P-values of the results: Holm's over the measures, and coherent with what implies this."""
        return tuple(p for p, _, _ in self._shown)

    @property
    def headlines(self) -> tuple[str, ...]:
        """A headline for each of the results, from the test whose p-value is shown."""
        return tuple(word for _, word, _ in self._shown)

    @property
    def result(self) -> Tested:
        """The test that decides: the smallest p-value, one in doubt only if no other rejects."""
        return self.results[self._deciding]

    @property
    def _deciding(self) -> int:
        ranks = [(_DECIDING.index(word), p) for p, word, _ in self._shown]
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
    def size(self) -> str | None:
        """How large the error is, in words; None where the measure that decides does not tell."""
        if self.effect is None or getattr(self.result, "measure", None) != self.effect.measure:
            return None
        if self.question == "average":
            return f"it is {self.effect.average}"
        best = self.effect.combination
        return None if best is None else f"the best combination is {best}"

    @property
    def verdict(self) -> Verdict:
        """Headline and p-value, and what follows; where nothing does, what could have been detected."""
        said = verdict(
            self.result,
            self.pvalue if self.pvalue != self.result.pvalue else None,
            word=self.headline,
            size=self.size,
            several=len(self.results) > 1,
            whose=self._shown[self._deciding][2],
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


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """The three questions about one set, and their answers.

    Attributes
    ----------
    data : LabelledSet
        The set and its labels, wherever they are.
    answers : dict of str to Answer
        By question, in the order "average", "calibrated", "truth".
    effect : Effect or None
        How far average and best combination are from calibrated; None beyond memory.
    """

    data: LabelledSet
    answers: dict[str, Answer]
    effect: Effect | None

    @property
    def average(self) -> Answer | None:
        """Is the plain average calibrated? None if not asked."""
        return self.answers.get("average")

    @property
    def calibrated(self) -> Answer | None:
        """Is some combination calibrated? The same as `average` for one classifier."""
        return self.answers.get("calibrated", self.average if self.data.n_members == 1 else None)

    @property
    def truth(self) -> Answer | None:
        """Does the hull contain the truth?"""
        return self.answers.get("truth")

    @property
    def results(self) -> tuple[Tested, ...]:
        """All tests, question by question."""
        return tuple(result for answer in self.answers.values() for result in answer.results)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most important first."""
        return advice(self.answers, self.effect)

    @cached_property
    def classifiers(self) -> ClassifierSet:
        """The set itself, if it is in memory; `labels` are positions of its classes."""
        if self.data.classifiers is None:
            raise InvalidInputError(
                "`engine` must be local where predictions are to be shown or measured; got data that "
                "only workers have seen. Test a part of them that fits into memory."
            )
        return self.data.classifiers.named_by_text()

    @property
    def labels(self) -> NDArray[np.int32]:
        """The labels, if they are in memory."""
        assert self.data.labels is not None
        return self.data.labels

    @cached_property
    def sizes(self) -> uncertainty.Sizes:
        """How large the set is."""
        return uncertainty.summary(self.classifiers)

    @property
    def combination(self) -> Tested | None:
        """The test that found the best combination by the first measure, or the likeliest, if any did."""
        searched = self.answers.get("calibrated", self.answers.get("truth"))
        return None if searched is None or self.data.n_members == 1 else searched.results[0]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Those of `combination`, or of the average where none was searched."""
        best = self.combination
        return uniform(self.data.n_members) if best is None else best.weights

    @property
    def notes(self) -> list[str]:
        """What to know beside the numbers; if it is neither of the input nor of all tests, of which."""
        said: dict[Note, list[str]] = {}
        for question, answer in self.answers.items():
            for result in answer.results:
                for note in result.notes:
                    if note.code == "stopped":  # as asked, and the number of resamples tells
                        continue
                    said.setdefault(note, []).append(f"{question}, {measure_in_words(result)}")
        return [
            f"{'; '.join(who)}: {note}"
            if note.code not in OF_INPUT and len(who) < len(self.results)
            else str(note)
            for note, who in said.items()
        ]

    def asked(self, question: str) -> str:
        """A question in words."""
        one = self.data.n_members == 1
        return ONE_CLASSIFIER[question] if one else QUESTIONS[question]

    def table(self) -> str:
        """Questions, p-values and headlines, a line each."""
        rows = [
            [self.asked(name), f"p = {answer.pvalue:.3g}", answer.headline]
            for name, answer in self.answers.items()
        ]
        return in_columns(rows)

    def summary(self) -> str:
        """The data, the table with a sentence for each question, and what to do next."""
        width = max(len(self.asked(name)) for name in self.answers)
        lines = [self.described, ""]
        for name, answer in self.answers.items():
            head, claim, size = answer.verdict
            lines += _wrapped(head, f"{self.asked(name):<{width}}  ")
            lines += _wrapped(size or claim, "    ")
        lines.append("Next steps" if len(self.advice) > 1 else "Next step")
        for number, step in enumerate(self.advice, 1):
            lines += _wrapped(step, f"  {number}. ")
        return "\n".join(lines)

    @property
    def described(self) -> str:
        """Rows, members and classes."""
        n, m, k = self.data.n_samples, self.data.n_members, self.data.n_classes
        return f"{n:,} {plural(n, 'row')}, {m} {plural(m, 'member')}, {k} classes"

    def to_dict(self) -> dict[str, Any]:
        """Answers, effect and advice as plain values; the results are in `to_json`."""
        return {
            "answers": [answer.to_dict() for answer in self.answers.values()],
            "effect": None if self.effect is None else self.effect.to_dict(),
            "advice": list(self.advice),
        }

    def to_json(self) -> str:
        """All of it as strict JSON, with the results as `hullcal.io.to_json` writes them."""
        return io.to_json(self.results, assessment=self.to_dict())

    def to_csv(self) -> str:
        """The results as CSV, a line for each test, with adjusted p-values."""
        said = [each for answer in self.answers.values() for each in answer.tests]
        return io.to_csv(self.results, answers=said)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        heads = ", ".join(f"{name}: {answer.headline}" for name, answer in self.answers.items())
        return f"<Assessment of {self.described}; {heads}>"

    def _repr_html_(self) -> str:
        facts = {self.asked(name): answer.text for name, answer in self.answers.items()}
        facts |= {f"Next step {i}": step for i, step in enumerate(self.advice, 1)}
        page = in_html(self.described, facts)
        if self.data.classifiers is not None and self.data.classifiers.probs.size <= MANY:
            weights = self.weights if self.data.n_members > 1 else None
            drawn = reliability(self.classifiers, self.labels, weights=weights)
            drawing = as_svg(drawn, "Reliability of the predicted class")
            # Its lines and letters are black, whatever the colours of the notebook.
            page += f'<div style="max-width:22em;background:#ffffff">{drawing}</div>'
        return page


class Assessments(dict[str, Assessment]):
    """Assessments of several sets by name, with one table for all."""

    def table(self) -> str:
        """A line for each set, a column for each question: headline and p-value."""
        return in_columns(self._rows)

    @property
    def _rows(self) -> list[list[str]]:
        asked = {question for each in self.values() for question in each.answers}
        questions = [question for question in QUESTIONS if question in asked]
        rows = [["", *(HEADS[question] for question in questions)]]
        for name, each in self.items():
            cells = (each.answers.get(question) for question in questions)
            words = (f"{a.headline} (p = {a.pvalue:.3g})" if a else "" for a in cells)
            rows.append([name, *words])
        return rows

    def __str__(self) -> str:
        parts = [f"{name}\n{each.summary()}" for name, each in self.items()]
        return "\n\n".join([self.table(), *parts])

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        parts = (f"{in_html(name, {})}{each._repr_html_()}" for name, each in self.items())
        return "".join([f"<table>{table}</table>", *parts])


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=" " * len(indent))


def advice(answers: dict[str, Answer], effect: Effect | None) -> tuple[str, ...]:
    """What to do next, the most important first."""
    steps: list[str] = []
    heads = {name: answer.headline for name, answer in answers.items()}
    truth = answers["truth"].result if "truth" in answers else None
    if isinstance(truth, TruthTestResult) and truth.impossible:
        steps.append(
            f"Check the labels of {rows_in_words(truth.impossible)} (counted from 0): their probability "
            "is 0 under every member. If they are right, the members are too certain."
        )
    off = [name for name, head in heads.items() if head in (REJECTED, IMPOSSIBLE)]
    if effect is not None and "average" in off:
        named = next(
            (each.result.members for each in answers.values() if each.result.members), None
        )
        steps += _repairs(effect, calibrated="calibrated" not in off, members=named)
    if "calibrated" in off:
        steps.append(
            "No weights repair this set: recalibrate its members before combining them, or add "
            "members that err in other ways."
        )
    if isinstance(truth, TruthTestResult) and "truth" in off and not truth.impossible:
        if truth.n_members > 1:
            steps.append(
                "No one weighting explains the labels, so the members' range may miss the true "
                "probabilities."
            )
        if truth.surprises:
            steps.append(
                "Look at the least likely labels (wrong?): "
                f"{rows_in_words(truth.surprises)} (counted from 0)."
            )
    if BORDERLINE in heads.values():
        results = [result for answer in answers.values() for result in answer.results]
        n = 10 * (max(result.n_resamples for result in results) + 1) - 1
        # Those that stopped early would stop there again.
        also = f" and `stop_after={n}`" * any(map(stopped_early, results))
        steps.append(f"Repeat with `n_resamples={n}`{also}, to decide what is borderline.")
    if INCONCLUSIVE in heads.values():
        steps.append(
            'Repeat with `null="stacked"`: there are too few rows per bin for "recentered".'
        )
    if not any(answer.rejected for answer in answers.values()):
        steps += _to_learn_more(answers)
    return tuple(steps)


def _repairs(effect: Effect, *, calibrated: bool, members: tuple[str, ...] | None) -> list[str]:
    """Two ways to better probabilities: a temperature, and weights."""
    average, best = effect.average, effect.combination
    whose = "average" if len(effect.weights) > 1 else "classifier"
    if average.temperature > _MISLEADING:
        return [
            "Check that labels and classes are in the same order: the predictions say next to nothing "
            "about these labels."
        ]
    errors = f"error {100 * average.error:.1f} to {100 * average.recalibrated:.1f} points"
    little = "little" if average.direction else "nothing"
    steps = [
        f"Recalibrate the {whose}: divide its logits by {average.temperature:.2f}, that is, raise its "
        f"probabilities to the power {1 / average.temperature:.2f} and normalise ({errors} on these "
        "rows)."
        if average.repaired
        else f"A temperature of {average.temperature:.2f} repairs {little} ({errors}): try another "
        "calibrator."
    ]
    if best is None or not calibrated or best.error >= average.error:
        return steps
    if best.accuracy < average.accuracy - _DEAR:
        cost = f"lower the accuracy from {average.accuracy:.1%} to {best.accuracy:.1%}"
        prefer = "prefer the temperature" if average.repaired else "prefer another calibrator"
        return [*steps, f"Other weights would {cost}: {prefer}."]
    shown = weights_in_words(effect.weights, members)
    return [
        *steps,
        f"Or use the weights {shown}, and check them on new data (error "
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
