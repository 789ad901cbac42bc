"""Ten thousand tests in one process: do memory, open files and threads stay as they are?"""

import gc
import itertools
import os
import tempfile
import threading
import warnings
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import hullcal as hc

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


class Level(NamedTuple):
    """What a process holds: megabytes that are its own, open files, and threads."""

    memory: float
    files: int
    threads: int

    def since(self, before):
        """What is held more than before."""
        return Level(*(now - then for now, then in zip(self, before, strict=True)))


def combinations():
    """All measures, nulls and searches that go together, a function of the user's among them."""
    names = (*hc.measures.available(), "function")
    triples = itertools.product(names, hc.nulls.available(), hc.minimizers.available())
    return [triple for triple in triples if _go_together(*triple)]


def _go_together(measure, null, search):
    g = hc.measures.resolve(_brier() if measure == "function" else measure)
    try:
        _SEARCHES[search].check(g, 2)
        hc.nulls.resolve(null).check(g, _SEARCHES[search])
    except hc.InvalidInputError:
        return False
    return True


def soak(marks, *, leak=lambda i: None, say=lambda words: None):
    """Run as many tests as the last mark says; levels by the number of tests run, at every mark.

    The first mark should leave room to load code and for buffers to find their size. `leak` is called
    with its number after every test; there a leak can be planted.
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
    return levels


def _one(i, measure, null, search):
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


def _brier():
    """A function that was never seen before, as a closure in a user's loop is."""

    def brier(probs, labels):
        return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1).mean())

    return brier


def _beside(i):
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
    hc.plots.null_distribution(found, ax=Figure().subplots())
    hc.plots.weights(found, ax=Figure().subplots())
    hc.plots.reliability(probs, labels, ax=Figure().subplots())


def level():
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
