"""The exact null of one combination: g of labels drawn from its own predictions, without a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import F1, F2, INT, U1, driver
from hullcal._compiled.mixing import cumulate, draw_labels
from hullcal.engines.packed import Packed
from hullcal.nulls._base import Floats


def of_combination(
    objective: Packed,
    mixed: Floats,
    key: NDArray[np.uint64],
    n_resamples: int,
    *,
    first: int = 0,
) -> tuple[float, Floats]:
    """g of the data, and of labels drawn from the mixed predictions, replicates first, ... of them."""
    measure = objective.measure
    statistic = measure.evaluate(mixed, objective.labels[0], objective.parameters)
    null = np.empty(n_resamples)
    _label_null(
        measure.value,
        mixed,
        objective.parameters,
        objective.offset,
        *objective.sizes,
        key,
        first,
        null,
    )
    return statistic, null


@driver(F2, F1, F1, INT, INT, U1, INT, F1)
def _label_null(  # type: ignore[no-untyped-def]
    value, mixed, parameters, offset, state_size, scratch_size, key, first, out
):
    n_classes, n_samples = mixed.shape
    cumulative = np.empty((n_classes, n_samples))
    labels = np.empty((1, n_samples), dtype=np.int32)
    ones = np.ones(n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    cumulate(mixed, cumulative)
    for d in range(out.shape[0]):
        draw_labels(cumulative, key, first + d, labels)
        out[d] = value(mixed, labels[0], ones, parameters, offset, state, scratch)
