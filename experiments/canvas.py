"""Colours, marks and sizes of all figures, and files that do not change from run to run."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

#: Width in inches of a page.
PAGE = 6.75
SMALL = 7.0
GREY = "#8C8C8C"
LEVEL: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": ":", "zorder": 1}

# Colours of Okabe and Ito; in greyscale marks and lines tell curves apart.
MEASURES: dict[str, dict[str, Any]] = {
    "skce_ul": {"color": "#000000", "marker": "D"},
    "skce_uq": {"color": "#CC79A7", "marker": "P"},
    "skce_b": {"color": "#E69F00", "marker": "X"},
    "hl_cwise": {"color": "#D55E00", "marker": "^"},
    "ece_conf": {"color": "#0072B2", "marker": "o"},
    "ece_cwise": {"color": "#009E73", "marker": "s"},
}
NULLS: dict[str, dict[str, Any]] = {
    "paper": {"color": "#000000", "marker": "o", "linestyle": ":"},
    "maximized": {"color": "#56B4E9", "marker": "v", "linestyle": "-."},
    "recentered": {"color": "#0072B2", "marker": "s", "linestyle": "-"},
    "stacked": {"color": "#D55E00", "marker": "D", "linestyle": "--"},
    "refit": {"color": "#009E73", "marker": "^", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
}


@contextmanager
def drawing(path: Path, height: float, width: float = PAGE) -> Iterator[Figure]:
    """A figure to draw on, written at the end: the same data give the same file."""
    settings = {
        "font.family": "DejaVu Sans",
        "font.size": SMALL + 1,
        "axes.labelsize": SMALL + 1,
        "axes.titlesize": SMALL + 1,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "legend.handlelength": 2.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.linewidth": 1.1,
        "lines.markersize": 3.5,
        "svg.fonttype": "none",
        "svg.hashsalt": "hullcal",
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        page = io.StringIO()
        figure.savefig(page, format="svg", metadata={"Date": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_shortened(page.getvalue()), encoding="utf-8")
    print(f"wrote {path}")


def _shortened(svg: str) -> str:
    """The same to a hundredth of a point; what stands between tags is text and stays as it is."""

    def rounded(tag: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])

    return re.sub(r"<[^>]*>", rounded, svg)


def legend_above(figure: Figure, ax: Any, columns: int) -> None:
    """One legend for all panels, of what one of them shows."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.2)


def bars(ax: Any, x: Any, rows: Any, name: str, **style: Any) -> None:
    """Rates with their intervals as thin bars; all of these are one path, which keeps files small."""
    end = name.removesuffix("_rate")
    ends = np.array([[row[f"{end}_lower"], row[f"{end}_upper"], np.nan] for row in rows])
    thin = {"color": style["color"], "linewidth": 0.5, "marker": "", "zorder": 1.5}
    ax.plot(np.repeat(x, 3), ends.ravel(), **thin)
    ax.plot(x, [row[name] for row in rows], **style)
