"""Which figures a report shows, and what is said beneath them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from hullcal import plots
from hullcal.assessment import Assessment
from hullcal.report.svg import inline

#: Rows behind figures that look at every instance; more would not be seen.
_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Figure:
    """Markup and caption."""

    markup: str
    caption: str


def figures(assessment: Assessment) -> list[Figure]:
    """In the order of reading."""
    drawn = []
    for number, (draw, width, height, caption) in enumerate(_plan(assessment)):
        drawn.append(Figure(_markup(draw, width, height, f"f{number}", caption), caption))
    return drawn


Plan = tuple[Callable[..., Any], float, float, str]


def _plan(assessment: Assessment) -> Iterator[Plan]:
    classifiers, labels, weights = assessment.classifiers, assessment.labels, assessment.weights
    if classifiers.n_samples > _ROWS:
        kept = slice(0, _ROWS)
        classifiers, labels = type(classifiers)(classifiers.probs[kept]), labels[kept]
    first = assessment.results[0]
    for result in assessment.results:
        yield (
            partial(plots.null_distribution, result),
            3.35,
            2.3,
            f"{result.measure}, {result.null}: the statistic among its values if "
            f"{result.hypothesis}.",
        )
    yield (
        lambda ax: plots.level_curve(assessment.results, ax=ax),
        6.7,
        0.9 + 0.3 * len(assessment.results),
        "p-values with their Monte Carlo intervals: levels to the right of a dot reject.",
    )
    yield (
        lambda ax: plots.reliability(classifiers, labels, weights=weights, ax=ax),
        3.35,
        3.2,
        "Reliability of the predicted class: each member faint, the average, and the best "
        f"combination by {first.measure} with the band in which it would lie if calibrated.",
    )
    if classifiers.n_members > 1:
        yield (
            lambda ax: plots.weights(first, ax=ax),
            3.35,
            0.8 + 0.2 * min(classifiers.n_members, 21),
            f"Weights of the best combination by {first.measure}.",
        )
        yield (
            lambda ax: plots.average_against_weighted(classifiers, labels, weights, ax=ax),
            3.35,
            2.6,
            "Members, their average and the best combination. Weights chosen on these rows look "
            "better here than elsewhere.",
        )
        yield (
            lambda ax: plots.size_distribution(classifiers, labels, ax=ax),
            3.35,
            2.3,
            "Total-variation diameter of the set where its average is right and where it is wrong.",
        )


def _markup(
    draw: Callable[..., Any], width: float, height: float, name: str, description: str
) -> str:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout="constrained")
    draw(ax=canvas.add_subplot())
    return inline(canvas, name, description)
