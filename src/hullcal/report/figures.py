"""Which figures a report shows, and what is said beneath them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal.assessment import Assessment
from hullcal.plots._text import clipped
from hullcal.report import of_sets, of_tests
from hullcal.report.classes import ClassGap
from hullcal.report.svg import Panel
from hullcal.sets import ClassifierSet

#: Rows behind figures that look at every instance; more would not be seen.
ROWS = 20_000

#: Classes with a diagram of their own, by gap; with that of the predicted class, two rows of three.
_RANKS = ("largest", "2nd largest", "3rd largest", "4th largest", "5th largest")


@dataclass(frozen=True, slots=True)
class Figure:
    """Markup and caption."""

    markup: str
    caption: str


def figures(assessment: Assessment, gaps: Sequence[ClassGap]) -> dict[str, list[Figure]]:
    """In the order of reading, under their headings; `gaps` are the classes, the worst first."""
    classifiers, labels = some_rows(assessment)
    plan = {
        "p-values and null distributions": _of_tests(assessment),
        "Reliability": _of_reliability(classifiers, labels, assessment, gaps),
    }
    if classifiers.n_members > 1:
        plan["Members and size"] = _of_members(classifiers, labels, assessment)
    return {
        heading: [Figure(panel.markup(caption), caption) for panel, caption in panels]
        for heading, panels in plan.items()
    }


def some_rows(assessment: Assessment) -> tuple[ClassifierSet, NDArray[np.int32]]:
    """As many rows as a picture can show."""
    classifiers, labels = assessment.classifiers, assessment.labels
    if classifiers.n_samples > ROWS:
        # Not the first ones: files are often sorted by class.
        rows = np.linspace(0, classifiers.n_samples - 1, ROWS).astype(np.int64)
        classifiers = ClassifierSet(
            classifiers.probs[rows], members=classifiers.members, classes=classifiers.classes
        )
        labels = labels[rows]
    return classifiers, labels


def _of_tests(assessment: Assessment) -> Iterator[tuple[Panel, str]]:
    yield (
        of_tests.level_curve(assessment.results),
        "p-values with their Monte Carlo intervals: levels to the right of a dot reject, before "
        "adjustment for several measures.",
    )
    for result in assessment.results:
        yield (
            of_tests.null_distribution(result),
            f"{clipped(result.measure)}, {clipped(result.null)}: the statistic among its values "
            f"if {result.hypothesis}.",
        )


def _of_reliability(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    assessment: Assessment,
    gaps: Sequence[ClassGap],
) -> Iterator[tuple[Panel, str]]:
    weights, name = assessment.weights, assessment.combination
    if classifiers.n_members == 1:
        shown = "the classifier, and the band in which it would lie if calibrated."
    else:
        shown = (
            f"each member faint, the average, and the {name} by {clipped(assessment.best.measure)} "
            "with the band in which it would lie if calibrated."
        )
    yield (
        of_sets.reliability(classifiers, labels, weights),
        f"Reliability of the predicted class: {shown}",
    )
    for rank, each in zip(_RANKS, gaps, strict=False):
        yield (
            of_sets.reliability(classifiers, labels, weights, each.index),
            f"Reliability of class {class_name(classifiers, each.index)}, with the {rank} gap of "
            f"{len(gaps)} classes: {_gaps_in_words(assessment, each)}.",
        )


def _gaps_in_words(assessment: Assessment, each: ClassGap) -> str:
    if assessment.best.n_members == 1:
        return f"{each.gap:.3g}"
    of_average = f"{each.gap_of_average:.3g} for the average"
    return f"{each.gap:.3g} for the {assessment.combination}, {of_average}"


def _of_members(
    classifiers: ClassifierSet, labels: NDArray[np.int32], assessment: Assessment
) -> Iterator[tuple[Panel, str]]:
    best, name = assessment.best, assessment.combination
    yield (
        of_tests.weights(best),
        f"Weights of the {name} by {clipped(best.measure)}.",
    )
    yield (
        of_sets.average_against_weighted(classifiers, labels, assessment.weights),
        f"Members, their average and the {name}. Weights are fitted to these rows; "
        "expect worse calibration on new data.",
    )
    yield (
        of_sets.size_distribution(classifiers, labels),
        "Total-variation diameter of the set where its average is right and where it is wrong.",
    )
    if classifiers.n_classes == 3:
        yield (
            of_sets.simplex(classifiers, assessment.weights),
            f"The first row: members, their hull, the average and the {name}.",
        )


def class_name(classifiers: ClassifierSet, k: int) -> str:
    """The class as figures and tables call it."""
    return str(k) if classifiers.classes is None else clipped(classifiers.classes[k], longest=80)
