"""Which figures a report shows, and what is said beneath them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from hullcal import plots
from hullcal.assessment import Assessment
from hullcal.report.svg import inline
from hullcal.sets import ClassifierSet

#: Rows behind figures that look at every instance; more would not be seen.
_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Figure:
    """Markup and caption."""

    markup: str
    caption: str


def figures(assessment: Assessment, name: str) -> list[Figure]:
    """In the order of reading; `name` tells them from those of other sets on the page."""
    return [
        Figure(inline(draw().figure, f"{name}f{number}", caption), caption)
        for number, (draw, caption) in enumerate(_plan(assessment))
    ]


def _plan(assessment: Assessment) -> Iterator[tuple[Callable[[], Any], str]]:
    """What to draw, and what to say of it."""
    classifiers, labels, weights = assessment.classifiers, assessment.labels, assessment.weights
    if classifiers.n_samples > _ROWS:
        rows = slice(0, _ROWS)
        classifiers = ClassifierSet(classifiers.probs[rows], members=classifiers.members)
        labels = labels[rows]
    first = assessment.results[0]
    for result in assessment.results:
        yield (
            partial(plots.null_distribution, result),
            f"{result.measure}, {result.null}: the statistic among its values if "
            f"{result.hypothesis}.",
        )
    yield (
        partial(plots.level_curve, assessment.results),
        "p-values with their Monte Carlo intervals: levels to the right of a dot reject.",
    )
    yield (
        partial(plots.reliability, classifiers, labels, weights=weights),
        "Reliability of the predicted class: each member faint, the average, and the best "
        f"combination by {first.measure} with the band in which it would lie if calibrated.",
    )
    yield (
        partial(plots.reliability, classifiers, labels, weights=weights, class_index=0),
        "The same for the first class by itself.",
    )
    if classifiers.n_members == 1:
        return
    yield partial(plots.weights, first), f"Weights of the best combination by {first.measure}."
    yield (
        partial(plots.average_against_weighted, classifiers, labels, weights),
        "Members, their average and the best combination. Weights chosen on these rows look "
        "better here than elsewhere.",
    )
    yield (
        partial(plots.size_distribution, classifiers, labels),
        "Total-variation diameter of the set where its average is right and where it is wrong.",
    )
    if classifiers.n_classes == 3:
        yield (
            partial(plots.simplex, classifiers, weights=weights),
            "The first row: members, their hull, the average and the best combination.",
        )
