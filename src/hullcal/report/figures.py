"""Which figures a report shows: drawn by `hullcal.plots`, and embedded as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal import plots
from hullcal.assessment import Assessment
from hullcal.binning import event_table
from hullcal.plots.canvas import as_svg
from hullcal.results import TruthTestResult
from hullcal.sets import ClassifierSet
from hullcal.verdicts import Tested
from hullcal.words import measure_in_words, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows behind figures that look at every instance; more would not be seen.
ROWS = 20_000


class ClassGap(NamedTuple):
    """A class by itself: how often it came true, and what combination and average say of it."""

    k: int
    frequency: float
    mean: float
    mean_of_average: float
    gap: float
    gap_of_average: float


def class_gaps(
    classifiers: ClassifierSet, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
) -> list[ClassGap]:
    """All classes, the largest gap of the combination first; gaps are the terms of Eq. 5."""
    average = classifiers.mean()
    mixed = average if weights is None else classifiers.mix(weights)
    found = []
    for k in range(classifiers.n_classes):
        came_true, p, q = labels == k, mixed[:, k], average[:, k]
        gaps = event_table(p, came_true).gap, event_table(q, came_true).gap
        found.append(ClassGap(k, came_true.mean(), p.mean(), q.mean(), *gaps))
    return sorted(found, key=lambda each: -each.gap)


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


def figures(
    assessment: Assessment, gaps: list[ClassGap], *, part: str
) -> dict[str, list[tuple[str, str]]]:
    """Markup and captions for each place on the page, in the order of reading; the worst class first."""
    from matplotlib import style

    places = ("argument", "tests", "classes", "members", "size")
    shown: dict[str, list[tuple[str, str]]] = {place: [] for place in places}
    with style.context("default"):  # whatever the user's own settings are
        for place, ax, words in _drawn(assessment, gaps):
            caption = printable(words)
            shown[place].append((as_svg(ax, caption, part), caption))
    return shown


def _drawn(assessment: Assessment, gaps: list[ClassGap]) -> Iterator[tuple[str, Axes, str]]:
    classifiers, labels = some_rows(assessment)
    several = classifiers.n_members > 1
    best = assessment.combination
    weights = None if best is None else best.weights
    likeliest = isinstance(best, TruthTestResult)
    name = "combination that fits the labels best" if likeliest else "best calibrated combination"
    whose = "the plain average, each member faint," if several else "the classifier"
    yield (
        "argument",
        plots.reliability(classifiers, labels),
        f"Reliability of {whose} with the band in which it would lie if calibrated.",
    )
    if best is not None:
        yield (
            "argument",
            plots.reliability(classifiers, labels, weights=weights),
            f"Reliability of the {name} with its band, and of the average.",
        )
    for number, (question, result) in enumerate(_shown_nulls(assessment)):
        yield (
            "tests" if number else "argument",
            plots.null_distribution(result),
            f"“{assessment.asked(question)}” by {measure_in_words(result)}: the statistic among its "
            f"values if {result.hypothesis}.",
        )
    for rank, each in zip(("largest", "2nd largest"), gaps, strict=False):
        both = f" for the {name}, {each.gap_of_average:.3g} for the average" if best else ""
        yield (
            "classes",
            plots.reliability(classifiers, labels, weights=weights, class_index=each.k),
            f"Reliability of class {class_name(classifiers, each.k)}, with the {rank} gap of "
            f"{len(gaps)} classes: {each.gap:.3g}{both}.",
        )
    if best is not None:
        yield "argument", plots.weights(best), f"Weights of the {name}."
        yield (
            "members",
            plots.average_against_weighted(classifiers, labels, best.weights),
            f"Members, their average and the {name}. Weights are fitted to these rows; expect "
            "worse calibration on new data.",
        )
    if several:
        yield (
            "size",
            plots.size_distribution(classifiers, labels),
            "Total-variation diameter of the set where its average is right and where it is wrong.",
        )
    if several and classifiers.n_classes == 3:
        yield (
            "size",
            plots.simplex(classifiers, weights=weights),
            f"The first row: members, their hull, the average{f' and the {name}' if best else ''}.",
        )


def _shown_nulls(assessment: Assessment) -> list[tuple[str, Tested]]:
    """Tests by question, the deciding one first.

    A figure gives the p-value of its test alone. Where that is below the p-value of a hypothesis
    that implies its own, the test does not decide, and has no figure.
    """
    order = ["calibrated", "truth", "average"]
    if assessment.data.n_members == 1:
        order.reverse()
    found: list[tuple[str, Tested]] = []
    for question in order:
        if question not in assessment.answers:
            continue
        answer = assessment.answers[question]
        least = max((each.pvalue for each in answer.implied_by), default=0.0)
        first = sorted(answer.results, key=lambda result: result is not answer.result)
        found += [(question, result) for result in first if result.pvalue >= least]
    return found


def class_name(classifiers: ClassifierSet, k: int) -> str:
    """The class as captions and tables call it."""
    return str(k if classifiers.classes is None else classifiers.classes[k])
