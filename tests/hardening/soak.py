"""Ten thousand tests in one process: do memory, open files and threads stay as they are?"""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import hullcal as hc

__all__ = ["Level", "Soak", "soak"]

#: Searches with few evaluations: what is held after a call does not depend on how long it took.
_SEARCHES = {
    "cobyla": hc.minimizers.Cobyla(max_evaluations=6),
    "exact": hc.minimizers.Exact(),
    "pairwise": hc.minimizers.Pairwise(max_evaluations=30),
    "random": hc.minimizers.Random(max_evaluations=20),
    "slsqp": hc.minimizers.Slsqp(max_evaluations=6),
    "steepest": hc.minimizers.Steepest(max_evaluations=6),
}
_SIDE = 50


@dataclass(frozen=True)
class Level:
    """What a process holds.

    Attributes
    ----------
    memory : float
        Megabytes that are its own, not shared with others.
    files, threads : int
        Open files; threads of Python and of libraries.
    """

    memory: float
    files: int
    threads: int


@dataclass(frozen=True)
class Soak:
    """Levels by the number of tests that had been run."""

    levels: dict[int, Level]

    def change(self, first: int, last: int) -> Level:
        """What was held more after `last` tests than after `first`."""
        before, after = self.levels[first], self.levels[last]
        return Level(
            after.memory - before.memory, after.files - before.files, after.threads - before.threads
        )


def combinations() -> list[tuple[str, str, str]]:
    """All measures, nulls and searches that go together, a function of the user's among them."""
    names = (*hc.measures.available(), "function")
    triples = itertools.product(names, hc.nulls.available(), hc.minimizers.available())
    return [triple for triple in triples if _go_together(*triple)]


def _go_together(measure: str, null: str, search: str) -> bool:
    g = hc.measures.resolve(_brier() if measure == "function" else measure)
    try:
        _SEARCHES[search].check(g, 2)
        hc.nulls.resolve(null).check(g, _SEARCHES[search])
    except hc.InvalidInputError:
        return False
    return True


def soak(
    marks: Sequence[int],
    *,
    leak: Callable[[int], object] = lambda i: None,
    say: Callable[[str], None] = lambda words: None,
) -> Soak:
    """Run tests and see what is held.

    Parameters
    ----------
    marks : sequence of int
        Numbers of tests after which to look; as many are run as the last one says. The first should
        leave room to load code and for buffers to find their size.
    leak : callable
        Called with its number after every test; here a leak can be planted.
    say : callable
        Told of levels on the way.
    """
    levels = {}
    turns = itertools.cycle(combinations())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        for i in range(1, max(marks) + 1):
            _one(i, *next(turns))
            leak(i)
            if i % _SIDE == 0:
                _beside(i)
            if i in marks:
                levels[i] = level()
                say(f"{i} tests: {levels[i]}")
    return Soak(levels)


def _one(i: int, measure: str, null: str, search: str) -> None:
    rng = np.random.default_rng(i)
    n_rows, n_members = 20 + i % 17, 2 if search == "exact" else 2 + i % 3
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=(n_rows, n_members))
    labels = rng.integers(0, 3, n_rows)
    hc.calibration_test(
        probs,
        labels,
        measure=_brier() if measure == "function" else measure,
        null=null,
        minimizer=_SEARCHES[search],
        n_resamples=5,
        alpha=0.5,
        rng=i,
        n_jobs=1 + i % 2,
    )


def _brier() -> Callable[[Any, Any], float]:
    """A function that was never seen before, as a closure in a user's loop is."""

    def brier(probs: Any, labels: Any) -> float:
        return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1).mean())

    return brier


def _beside(i: int) -> None:
    """What people do with a test: a journal, an assessment, a page, a file and pictures."""
    rng = np.random.default_rng(i)
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=(40, 3))
    labels = rng.integers(0, 3, 40)
    with tempfile.TemporaryDirectory() as folder:
        found = hc.calibration_test(
            probs, labels, n_resamples=19, rng=i, journal=os.path.join(folder, "journal")
        )
        hc.io.write_json([found], os.path.join(folder, "r.json"))
        assessed = hc.assessment.assess(probs, labels, n_resamples=19, rng=i)
        hc.io.write_atomic(os.path.join(folder, "r.html"), hc.report.render(assessed))
    for draw in _drawings(found, probs, labels):
        draw(Figure().subplots())


def _drawings(found: Any, probs: Any, labels: Any) -> Iterator[Callable[[Any], Any]]:
    yield lambda ax: hc.plots.null_distribution(found, ax=ax)
    yield lambda ax: hc.plots.weights(found, ax=ax)
    yield lambda ax: hc.plots.reliability(probs, labels, ax=ax)


def level() -> Level:
    """What this process holds now."""
    gc.collect()
    with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
        sizes = [line.split() for line in lines]
    # Clean pages are those of libraries, and private only for as long as no other process has them.
    own = sum(int(size[1]) for size in sizes if size[0] == "Private_Dirty:")
    return Level(
        memory=own / 1024,
        files=len(os.listdir("/proc/self/fd")),
        threads=max(threading.active_count(), len(os.listdir("/proc/self/task"))),
    )
