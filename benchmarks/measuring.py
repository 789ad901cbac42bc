"""Data, times, tables and targets of all sections."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments import tables

import hullcal as hc

Array = np.ndarray
Set = tuple[Array, Array]


def s1(seed: int, n_samples: int, spread: float, n_members: int = 10) -> Set:
    """The paper's S1, where the hull contains the truth: members (N, M, 10) and labels."""
    sizes = {"n_samples": n_samples, "n_members": n_members, "spread": spread}
    found = hc.simulation.scenario("S1", **sizes, rng=seed)
    return found.probs, found.labels


def plain(seed: int, n_samples: int, n_members: int = 10, n_classes: int = 10) -> Set:
    """Members uniform on the simplex, labels from their mean: any size in no time."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members))
    return probs, hc.simulation.draw_labels(probs.mean(axis=1), rng)


def seconds(call: Callable[[], Any]) -> float:
    """Time of one call, in seconds of processor time.

    All that is timed here computes on one thread and waits for nothing, so this is the wall-clock
    time of an idle machine; on a busy one the wall clock would lengthen a call of seconds more than
    the shortest of many calls of milliseconds, and so flatter the faster side.
    """
    start = time.process_time()
    call()
    return time.process_time() - start


def best_seconds(call: Callable[[], Any], *, at_least: float = 0.5, fewest: int = 3) -> float:
    """Shortest of as many calls as fill `at_least` seconds, `fewest` or more.

    Whatever else a machine does can only lengthen a call, so the shortest says most about the call.
    The caller has made one call before, so that nothing is compiled here.
    """
    times: list[float] = []
    while len(times) < fewest or sum(times) < at_least:
        times.append(seconds(call))
    return min(times)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


@dataclass(frozen=True)
class Target:
    """What must be reached, the figure found, and whether that is enough."""

    name: str
    figure: str
    reached: bool

    def __str__(self) -> str:
        return f"{'reached' if self.reached else 'NOT REACHED':<12} {self.name}: {self.figure}"


def at_least(name: str, figure: float, bound: float) -> Target:
    """A ratio that must not fall below a bound."""
    return Target(f"{name} >= {bound:,g}x", f"{figure:,.4g}x", figure >= bound)


def at_most(name: str, figure: float, bound: float, unit: str = "") -> Target:
    """A figure that must not exceed a bound."""
    return Target(f"{name} <= {bound:,g}{unit}", f"{figure:.3g}{unit}", figure <= bound)


def print_title(title: str) -> None:
    """The question of a section, underlined."""
    print(f"\n{title}\n{'=' * len(title)}", flush=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> None:
    """Aligned columns under a caption."""
    tables.show_lines(list(rows), header, title=caption)


def print_targets(targets: Iterable[Target]) -> None:
    """One line each."""
    for target in targets:
        print(target)
    print(flush=True)
