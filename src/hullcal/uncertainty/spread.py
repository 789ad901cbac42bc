"""How far apart are the members? Total variation between them, and widths of their intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._validation import check_jobs
from hullcal.sets import ClassifierSet
from hullcal.threads import blocks, in_order

Floats = NDArray[np.float64]

#: Probabilities of a block of instances: small enough for the second-level cache.
_BLOCK = 50_000


def per_instance(
    loop: Callable[..., None], probs: Any, *arguments: Any, n_values: int = 1, n_jobs: int
) -> Floats:
    """Values of every instance, (n_samples, n_values): loop(members (n, M, K), *arguments, out)."""
    members = ClassifierSet.of(probs).probs
    n_samples, n_members, n_classes = members.shape
    out = np.empty((n_samples, n_values))

    def block(bounds: tuple[int, int]) -> None:
        first, last = bounds
        # Blocks are copied one at a time, so that float32 and memory maps never become one array.
        rows = np.ascontiguousarray(members[first:last], dtype=np.float64)
        loop(rows, *arguments, out[first:last])

    size = max(1, _BLOCK // (n_members * n_classes))
    for _ in in_order(block, blocks(0, n_samples, size), n_jobs=check_jobs(n_jobs)):
        pass
    return out


def tv_diameter(probs: Any, *, n_jobs: int = 1) -> Floats:
    r"""Largest total variation between two members, which is that between any two points of the hull.

    .. math:: \max_{i,j} \tfrac{1}{2} \lVert p^{(i)} - p^{(j)} \rVert_1

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    ndarray of shape (n_samples,)
        From 0 (the members agree) to 1. Cost: N·M²·K.

    Examples
    --------
    >>> tv_diameter([[[1.0, 0.0], [0.25, 0.75]]])
    array([0.75])
    """
    return per_instance(_tv_diameter, probs, n_jobs=n_jobs)[:, 0]


def interval_width(probs: Any, *, n_jobs: int = 1) -> Floats:
    r"""Mean over the classes of the width of the probability interval that the members span.

    .. math:: \frac{1}{K} \sum_{k} \bigl(\max_m p^{(m)}_k - \min_m p^{(m)}_k\bigr)

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    ndarray of shape (n_samples,)
        From 0 to 1. Cost: N·M·K.

    Examples
    --------
    >>> interval_width([[[1.0, 0.0], [0.25, 0.75]]])
    array([0.75])
    """
    return per_instance(_interval_width, probs, n_jobs=n_jobs)[:, 0]


@compiled
def _tv_diameter(members, out):  # type: ignore[no-untyped-def]
    n_samples, n_members, n_classes = members.shape
    for n in range(n_samples):
        widest = 0.0
        for i in range(n_members):
            for j in range(i):
                distance = 0.0
                for k in range(n_classes):
                    distance += abs(members[n, i, k] - members[n, j, k])
                widest = max(widest, distance)
        out[n, 0] = 0.5 * widest


@compiled
def _interval_width(members, out):  # type: ignore[no-untyped-def]
    n_samples, n_members, n_classes = members.shape
    for n in range(n_samples):
        total = 0.0
        for k in range(n_classes):
            low = high = members[n, 0, k]
            for m in range(1, n_members):
                low, high = min(low, members[n, m, k]), max(high, members[n, m, k])
            total += high - low
        out[n, 0] = total / n_classes
