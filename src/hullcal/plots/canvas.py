"""Where a plot is drawn, in which colours, and how names, values and bins are shown there."""

from __future__ import annotations

import io
import math
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import refusal
from hullcal.words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

#: Width in inches of one column of a journal's page.
COLUMN = 3.35

#: Size in points of names and numbers inside a plot.
SMALL = 7.0

# Colours of Okabe and Ito, which colour-blind readers tell apart, and greys. No plot relies on them
# alone. The style sheet of the report gives each its shade for a dark page.
BLACK, BLUE, SKY, GREEN, VERMILION = "#000000", "#0072B2", "#56B4E9", "#009E73", "#D55E00"
GREY, PALE = "#8C8C8C", "#DDDDDD"

#: For every text that holds a name: no TeX, whatever the user's settings say, and `as_typed` undone.
PLAIN: dict[str, Any] = {"usetex": False, "parse_math": True}

#: Attributes of a drawing that hold places, numbers longer than these need, and those that a group
#: hands down.
_PLACES = {"d", "x", "y", "transform"}
_LONG = re.compile(r"-?\d+\.\d{3,}")
_INHERITED = {"fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width"}


def axes_or_new(ax: Axes | None, *, height: float, **options: Any) -> Axes:
    """Give `ax` back as it is, or the Axes of a new Figure that pyplot knows nothing of.

    At the end of a notebook's cell new Axes show their picture, which pyplot does for Axes it has made.
    """
    # Here, since importing hullcal must not wait for matplotlib.
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if ax is not None:
        if not isinstance(ax, Axes):
            raise refusal(
                "ax",
                "must be a matplotlib Axes or None",
                type(ax).__name__,
                "Of an array of Axes, pass one.",
            )
        return ax
    fresh: Axes = Figure(figsize=(COLUMN, height), layout="constrained").add_subplot(**options)
    fresh.tick_params(labelsize=SMALL)
    fresh.locator_params(axis="x", nbins=6)  # or long numbers would touch
    for axis in (fresh.xaxis, fresh.yaxis):
        axis.label.set_fontsize(SMALL + 1)
    for side in ("top", "right"):
        if side in fresh.spines:
            fresh.spines[side].set_visible(False)
    vars(fresh)["_repr_png_"] = partial(_picture, fresh)
    return fresh


def _picture(ax: Axes) -> bytes:
    file = io.BytesIO()
    cast("Figure", ax.figure).savefig(file, format="png", dpi=144)
    return file.getvalue()


def legend_above(
    ax: Axes, *, columns: int = 1, lift: float = 0.02, from_right: bool = False
) -> Legend:
    """Set the legend over the Axes, where it cannot hide data.

    From the right side it may reach over long row labels; from the left it begins with the axis.
    """
    legend = ax.legend(
        loc="lower right" if from_right else "lower left",
        bbox_to_anchor=(float(from_right), 1.0 + lift),
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        borderaxespad=0.0,
        borderpad=0.0,
        labelspacing=0.3,
        columnspacing=1.0,
        handlelength=1.9,
    )
    for text in legend.get_texts():
        text.set(**PLAIN)
    return legend


def rows_of(ax: Axes, names: list[str]) -> None:
    """Let the y axis have a row for each name, the first on top."""
    ax.set_yticks(range(len(names)), labels=names, fontsize=SMALL, **PLAIN)
    ax.set_ylim(len(names) - 0.4, -0.6)


def write_beside(ax: Axes, words: str, x: float, y: float) -> None:
    """Words to the right of a point."""
    place: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points"}
    ax.annotate(words, (x, y), va="center", fontsize=SMALL, annotation_clip=False, **place)


def as_typed(name: object, *, longest: int = 24) -> str:
    r"""Text that matplotlib shows as the name, never as mathematics, on one line.

    A long name loses its middle, since names often differ at their ends.

    Examples
    --------
    >>> as_typed("cost in $"), as_typed("a" * 30 + "7", longest=9)
    ('cost in \\$', 'aaaa…aaa7')
    """
    shown = printable(str(name))
    if len(shown) > longest:
        head = longest // 2
        shown = f"{shown[:head]}…{shown[head + 1 - longest :]}"
    return shown.replace("$", r"\$")


def number(value: float) -> str:
    """A value for a legend: three digits, and infinity in words.

    >>> number(0.12345), number(math.inf), number(-math.inf)
    ('0.123', 'infinite', 'minus infinite')
    """
    return f"{value:.3g}".replace("inf", "infinite").replace("-infinite", "minus infinite")


def histogram_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of 5 to 40 equal bins, about the square root of the number of values.

    Values that are all the same, or nearly, get one bin around them; no values get [0, 1].

    >>> histogram_edges(np.array([2.0, 2.0]))
    array([1.9, 2.1])
    """
    if len(values) == 0:
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, 1e-300):
        pad = 0.05 * size or 0.05
        return np.array([low - pad, high + pad])
    n_bins = min(max(math.ceil(math.sqrt(len(values))), 5), 40)
    return np.linspace(low, high, n_bins + 1)


def as_svg(ax: Axes, caption: str = "", part: str = "") -> str:
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
        parent.tail = None
        if parent.tag != "text":
            parent.text = None
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
        for declaration in parent.attrib.pop("style", "").split("; "):
            name, _, value = declaration.partition(": ")
            if name not in ("", "font-family"):
                parent.set(name, value)
        for name in _PLACES & parent.attrib.keys():
            short = _LONG.sub(lambda found: f"{float(found[0]):.2f}", parent.attrib[name])
            parent.set(name, " ".join(short.split()))
        if parent.tag == "g":
            parent.attrib.pop("id", None)
        if link := parent.attrib.pop("{http://www.w3.org/1999/xlink}href", None):
            parent.set("href", link)
    for group in root.iter("g"):
        marks = list(group) if len(group.findall("use")) == len(group) > 1 else []
        for name, value in list(marks[0].attrib.items()) if marks else ():
            # Said once, what all of them share: a seventh of a page.
            if all(mark.get(name) == value for mark in marks) and name in _INHERITED:
                group.set(name, value)
                for mark in marks:
                    del mark.attrib[name]
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": caption}
    return ElementTree.tostring(root, encoding="unicode")
