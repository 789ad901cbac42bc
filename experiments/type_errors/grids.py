"""Which data sets and which tests does each study consist of?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import hullcal as hc
from experiments import named
from hullcal.simulation import Grid

#: The seven settings of the paper's figures, in the order of their legend.
SETTINGS = (
    *("skce_ul", "hl_cwise:5", "hl_cwise:10", "ece_conf:5", "ece_conf:10"),
    *("ece_cwise:5", "ece_cwise:10"),
)
SCENARIOS = ("S1", "S2", "S3")
#: How each of the paper's figures differs from Figure 1.
PAPER_FIGURES: dict[str, dict[str, Any]] = {
    "figure1": {},
    "supplement1": {"spread": 0.1},
    "supplement2": {"n_members": 100},
    "supplement3": {"n_classes": 100},
}
#: The text names COBYLA and allows any search; ours is faster and finds more. The scripts use COBYLA.
SEARCHES: dict[str, Any] = {"paper": "steepest", "authors": hc.minimizers.Cobyla(library="nlopt")}
#: Of the studies of nulls: one that every null can use.
SEARCH = "steepest"

#: Where a departure can show: scenarios and measures. One that is not listed is run everywhere.
_REACH: dict[str, dict[str, tuple[str, ...]]] = {
    "sparse_weights": {"scenario": ("S1",)},
    "corner_outside": {"scenario": ("S2", "S3")},
    "carried_mixing": {"scenario": ("S2", "S3")},
    "two_sided": {"measure": ("skce_ul",)},
    "gaussian_kernel": {"measure": ("skce_ul",)},
    "first_class_bins": {"measure": ("hl_cwise:5", "hl_cwise:10")},
    "right_closed_bins": {"measure": ("ece_conf:5", "ece_conf:10")},
}
_TOGETHER = ("corner_outside", "carried_mixing")

NULLS = ("paper", "maximized", "recentered", "stacked", "refit")
#: Those that search every replicate.
SEARCHING = ("recentered", "stacked", "refit")
#: What one axis at a time departs from.
CENTRE: dict[str, Any] = {"n_samples": 100, "n_members": 10, "n_classes": 10, "spread": 1.0}
AXES: dict[str, tuple[Any, ...]] = {
    "spread": (0.01, 0.1, 1.0),
    "n_samples": (100, 500, 1000),
    "n_members": (2, 10, 50),
}
S2_STRENGTHS = (0.3, 1.0)
S3_STRENGTHS = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
EVERYWHERE = ("ece_conf", "ece_cwise", "skce_ul")
AT_THE_CENTRE = ("hl_cwise", "skce_uq", "skce_b")
#: Data sets where a hypothesis is true and where it is not, by N. A level needs more of them than a
#: power, and with N grows the time that one takes.
_DATASETS = {100: (150, 25), 500: (80, 20), 1000: (60, 15)}
_DATASETS_AT_THE_CENTRE = (200, 100)
_DATASETS_OF_SLOW_MEASURES = (60, 20)
_DATASETS_CALIBRATED = {150: 200, 300: 200, 1000: 80}
#: What all these numbers are in proportion to.
WHOLE = 200


class Part(NamedTuple):
    """A grid of a study, under the name that its folder and its rows get."""

    name: str
    grid: Grid


def tests(measures: Sequence[str], nulls: Sequence[str], minimizer: Any) -> list[Any]:
    """Every measure with every null, by one search."""
    plain = [hc.simulation.Test.named(named(g, null)) for g in measures for null in nulls]
    search = hc.minimizers.resolve(minimizer)
    return [replace(test, minimizer=search) for test in plain]


def paper_figure(name: str, protocol: str, n_datasets: int, n_resamples: int = 100) -> Part:
    """Figure 1 of the paper or one of its supplement, as its text or the authors' scripts have it."""
    grid = Grid(
        scenario=SCENARIOS,
        test=tests(SETTINGS, ("paper",), SEARCHES[protocol]),
        protocol=protocol,
        n_datasets=n_datasets,
        n_resamples=n_resamples,
        **PAPER_FIGURES[name],
    )
    return Part(protocol, grid)


def switches(n_datasets: int, n_resamples: int = 100) -> list[Part]:
    """The paper's text, then every departure alone, then the scripts; the text comes first."""
    sizes = {"n_datasets": n_datasets, "n_resamples": n_resamples}

    def part(name: str, protocol: str, search: str = "paper", **reach: Any) -> Part:
        asked = tests(reach.pop("measure", SETTINGS), ("paper",), SEARCHES[search])
        where = {"scenario": SCENARIOS, "test": asked, "protocol": protocol}
        return Part(name, Grid(**(where | sizes | reach)))

    return [
        part("paper", "paper"),
        *(
            part(switch, f"paper+{switch}", **_REACH.get(switch, {}))
            for switch in hc.simulation.protocols.SWITCHES
        ),
        part("+".join(_TOGETHER), "+".join(("paper", *_TOGETHER)), **_REACH[_TOGETHER[0]]),
        part("cobyla", "paper", "authors"),
        part("all, with cobyla", "authors", "authors"),
    ]


def nulls(n_datasets: int = WHOLE, n_resamples: int = 99) -> list[Part]:
    """All nulls side by side: the centre first.

    Numbers of data sets are those above, in the proportion of `n_datasets` to 200.
    """
    common = {"n_resamples": n_resamples, "alpha": (0.05, 0.2)}

    def share(number: int) -> int:
        return max(1, round(number * n_datasets / WHOLE))

    def parts(
        name: str, numbers: tuple[int, int], measures: tuple[str, ...], **sizes: Any
    ) -> list[Part]:
        settings = CENTRE | sizes | common | {"test": tests(measures, NULLS, SEARCH)}
        hypotheses: dict[str, dict[str, Any]] = {
            "level": {"scenario": ("S1", "S1_vertex")},
            "S2": {"scenario": "S2", "strength": S2_STRENGTHS},
            "S3": {"scenario": "S3", "strength": S3_STRENGTHS},
        }
        return [
            Part(
                f"{name} {label}",
                Grid(**settings, **what, n_datasets=share(numbers[label != "level"])),
            )
            for label, what in hypotheses.items()
        ]

    found = parts("centre", _DATASETS_AT_THE_CENTRE, EVERYWHERE)
    found += parts("slow", _DATASETS_OF_SLOW_MEASURES, AT_THE_CENTRE)
    for axis, values in AXES.items():
        for value in values:
            if value != CENTRE[axis]:
                numbers = _DATASETS[value if axis == "n_samples" else CENTRE["n_samples"]]
                found += parts(f"{axis}={value}", numbers, EVERYWHERE, **{axis: value})
    for n_samples, number in _DATASETS_CALIBRATED.items():
        asked = tests(EVERYWHERE, NULLS, SEARCH)
        where = {"scenario": "calibrated", "n_samples": n_samples, "n_datasets": share(number)}
        found.append(Part(f"calibrated n_samples={n_samples}", Grid(test=asked, **where, **common)))
    return found


def classes(n_datasets: int = 100, n_resamples: int = 59) -> Part:
    """Levels where classes are many: S1 at the paper's spread, cells by the hundred."""
    grid = Grid(
        scenario="S1",
        n_classes=(3, 10, 30, 100),
        test=tests(("ece_conf", "ece_cwise"), SEARCHING, SEARCH),
        n_datasets=n_datasets,
        n_resamples=n_resamples,
        alpha=(0.05, 0.2),
    )
    return Part("classes", grid)
