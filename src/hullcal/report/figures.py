"""Which figures a report shows: drawn by `hullcal.plots`, and embedded as SVG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from hullcal import plots
from hullcal.assessment import Assessment
from hullcal.plots.reliability import curve
from hullcal.sets import ClassifierSet
from hullcal.words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rows behind figures that look at every instance; more would not be seen.
ROWS = 20_000

#: Classes with a diagram of their own, by gap; with that of the predicted class, two rows of three.
_RANKS = ("largest", "2nd largest", "3rd largest", "4th largest", "5th largest")


class ClassGap(NamedTuple):
    """A class by itself: how often it came true, and what combination and average say of it."""

    k: int
    frequency: float
    mean: float
    mean_of_average: float
    gap: float
    gap_of_average: float


def class_gaps(
    classifiers: ClassifierSet, labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> list[ClassGap]:
    """All classes, the largest gap of the combination first; gaps are the terms of Eq. 5."""
    mixed, average = classifiers.mix(weights), classifiers.mean()
    found = []
    for k in range(classifiers.n_classes):
        came_true, p, q = labels == k, mixed[:, k], average[:, k]
        gaps = curve(p, came_true).gap, curve(q, came_true).gap
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
    """Markup and captions in the order of reading, under their headings; the worst class first."""
    from matplotlib import style

    shown: dict[str, list[tuple[str, str]]] = {}
    with style.context("default"):  # whatever the user's own settings are
        for heading, ax, words in _drawn(assessment, gaps):
            caption = printable(words)
            shown.setdefault(heading, []).append((_embedded(ax, caption, part), caption))
    return shown


def _drawn(assessment: Assessment, gaps: list[ClassGap]) -> Iterator[tuple[str, Axes, str]]:
    classifiers, labels = some_rows(assessment)
    best, weights, name = assessment.best, assessment.weights, assessment.combination
    heading = "p-values and null distributions"
    yield (
        heading,
        plots.level_curve(assessment.results),
        "p-values with their Monte Carlo intervals: levels to the right of a dot reject, before "
        "adjustment for several measures.",
    )
    for result in assessment.results:
        yield (
            heading,
            plots.null_distribution(result),
            f"{result.measure}, {result.null}: the statistic among its values if "
            f"{result.hypothesis}.",
        )
    heading, several = "Reliability", classifiers.n_members > 1
    whose = "the classifier, and the band in which it would lie if calibrated."
    if several:
        whose = (
            f"each member faint, the average, and the {name} by {best.measure} with the band in "
            "which it would lie if calibrated."
        )
    yield (
        heading,
        plots.reliability(classifiers, labels, weights=weights),
        f"Reliability of the predicted class: {whose}",
    )
    for rank, each in zip(_RANKS, gaps, strict=False):
        of_average = f" for the {name}, {each.gap_of_average:.3g} for the average"
        yield (
            heading,
            plots.reliability(classifiers, labels, weights=weights, class_index=each.k),
            f"Reliability of class {class_name(classifiers, each.k)}, with the {rank} gap of "
            f"{len(gaps)} classes: {each.gap:.3g}{of_average if several else ''}.",
        )
    if not several:
        return
    heading = "Members and size"
    yield heading, plots.weights(best), f"Weights of the {name} by {best.measure}."
    yield (
        heading,
        plots.average_against_weighted(classifiers, labels, weights),
        f"Members, their average and the {name}. Weights are fitted to these rows; expect worse "
        "calibration on new data.",
    )
    yield (
        heading,
        plots.size_distribution(classifiers, labels),
        "Total-variation diameter of the set where its average is right and where it is wrong.",
    )
    if classifiers.n_classes == 3:
        yield (
            heading,
            plots.simplex(classifiers, weights=weights),
            f"The first row: members, their hull, the average and the {name}.",
        )


def class_name(classifiers: ClassifierSet, k: int) -> str:
    """The class as captions and tables call it."""
    return str(k if classifiers.classes is None else classifiers.classes[k])


def _embedded(ax: Axes, caption: str, part: str) -> str:
    """The drawing without styles, which a strict Content-Security-Policy would block.

    Colours become attributes, so that the page's own style sheet can follow light and dark.
    """
    import matplotlib as mpl

    file, figure = io.BytesIO(), cast("Figure", ax.figure)
    # Identifiers follow from the salt, and no two figures of a page share theirs.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": f"{part!a}, {caption}"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Letters that matplotlib's font lacks, browsers have.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in root.iter():
        parent.tag = parent.tag.rpartition("}")[2]
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
        for declaration in parent.attrib.pop("style", "").split("; "):
            name, _, value = declaration.partition(": ")
            if name not in ("", "font-family"):
                parent.set(name, value)
        if parent.tag == "g":
            parent.attrib.pop("id", None)
        if link := parent.attrib.pop("{http://www.w3.org/1999/xlink}href", None):
            parent.set("href", link)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": caption}
    return ElementTree.tostring(root, encoding="unicode")
