"""Lines 1 to 5 of Algorithm 1 for large data: one pass over blocks of rows serves many replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._compiled.mixing import cumulate, invert, mix
from hullcal.engines.objective import Objective
from hullcal.measures import Measure
from hullcal.nulls._base import Floats

#: Mixed probabilities of a block of rows, so few that they stay in the cache.
_IN_CACHE = 100_000
#: Below this many mixed probabilities the data are in the cache anyway, and with fewer classes than
#: these a row is done before its block pays.
_LARGE, _MANY_CLASSES = 2**20, 50
#: What a replicate keeps of a row, in probabilities read: rows, levels and their order.
_KEPT = 64


def work_of(objective: Objective) -> int | None:
    """Probabilities that a replicate reads if passes are worth while, else None.

    The data have to be so large that they should be read as seldom as possible, and the measure has to
    add up over rows in any order, one by one.
    """
    measure = objective.measure
    adds_up = measure.halves_agree() and measure.rows_per_unit == 1
    large = objective.members[0].size >= _LARGE and objective.n_classes >= _MANY_CLASSES
    if not (adds_up and large):
        return None
    # A pass serves several replicates, each of which mixes all predictions.
    return max(objective.members.size // 16, _KEPT * objective.n_samples)


def evaluate(
    objective: Objective, weights: Floats, rows: NDArray[np.uint32], levels: Floats
) -> Floats:
    """g of every replicate: its weights, the rows it drew and the uniform levels of their labels.

    Blocks of rows are fixed by the data, and a replicate's sums run over them in order, so that
    neither the other replicates nor threads can change a bit.
    """
    measure, members = objective.measure, objective.members
    _, n_classes, n_samples = members.shape
    order = np.argsort(rows, axis=1, kind="stable")
    rows = np.take_along_axis(rows, order, axis=1)
    levels = np.take_along_axis(levels, order, axis=1)
    states = np.zeros((len(rows), measure.state_size(n_classes)))
    size = max(1, _IN_CACHE // n_classes)
    firsts = np.arange(0, n_samples, size, dtype=rows.dtype)
    bounds = np.array([[*np.searchsorted(own, firsts), n_samples] for own in rows])
    for b, first in enumerate(firsts):
        block = np.ascontiguousarray(members[:, :, first : first + size])
        mixed = np.empty(block.shape[1:])
        for r, state in enumerate(states):
            mine = slice(*bounds[r, b : b + 2])
            if mine.start < mine.stop:
                mix(block, weights[r], mixed)
                _add(measure, mixed, rows[r, mine] - first, levels[r, mine], objective, state)
    assert measure.finish is not None
    return np.array(
        [
            measure.finish(state, objective.offset, objective.parameters, n_samples)
            for state in states
        ]
    )


def _add(
    measure: Measure,
    mixed: Floats,
    rows: NDArray[np.integer],
    levels: Floats,
    objective: Objective,
    state: Floats,
) -> None:
    """The drawn rows of one block, with labels drawn from them (line 4), into the sums of line 5."""
    n_classes, n_rows = len(mixed), len(rows)
    drawn, cumulative = np.empty((2, n_classes, n_rows))
    labels = np.empty(n_rows, dtype=np.int32)
    _take(mixed, rows.astype(np.int64), drawn)
    cumulate(drawn, cumulative)
    invert(cumulative, levels, labels)
    scratch = np.zeros(measure.scratch_size(n_classes, n_rows))
    assert measure.accumulate is not None
    measure.accumulate(drawn, labels, np.ones(n_rows), objective.parameters, state, scratch)


@compiled
def _take(mixed, rows, out):  # type: ignore[no-untyped-def]
    for k in range(mixed.shape[0]):
        for n in range(rows.shape[0]):
            out[k, n] = mixed[k, rows[n]]
