"""How far apart are the members? Total variation, widths of intervals, generalised Hartley."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._compiled.mixing import fill
from hullcal._compiled.sums import dot
from hullcal._validation import ApproximationWarning, check_jobs, warn
from hullcal.sets import ClassifierSet
from hullcal.threads import blocks, in_order

Floats = NDArray[np.float64]

#: Probabilities of a block of instances: small enough for the second-level cache.
_BLOCK = 50_000
#: Classes up to which the generalised Hartley measure visits all subsets.
MAX_CLASSES = 16


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


def generalized_hartley(probs: Any, *, n_jobs: int = 1) -> Floats:
    r"""Expected log2 of the number of classes left open.

    .. math:: \sum_{A} m(A) \log_2 |A|, \qquad
              m(A) = \sum_{B \subseteq A} (-1)^{|A \setminus B|} \nu(B), \qquad
              \nu(B) = \min_m P_m(B)

    Exchanging the sums leaves a factor for each size of subset,

    .. math:: \sum_B c_{|B|}\, \nu(B), \qquad
              c_b = \sum_{j=0}^{K-b} \binom{K-b}{j} (-1)^j \log_2 (b + j),

    so that no Möbius transform is run. The first member alone would have size 0, so ν may be replaced by
    :math:`\nu - P_1 \le 0`, which is 0 for all classes together. All other factors are negative: nothing
    cancels, and a further member, which can only lower ν, can only raise the sum.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
        With more than 16 classes, an instance keeps the 15 classes with the largest max_m p and
        merges the others into one; an `ApproximationWarning` says so.
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    ndarray of shape (n_samples,)
        Bits, from 0 (the members agree) to log2 K (they leave everything open).
        Cost: N·M·2^K.

    Examples
    --------
    >>> generalized_hartley([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    array([1., 0.])
    """
    classifiers = ClassifierSet.of(probs)
    if classifiers.n_classes > MAX_CLASSES:
        warn(
            f"generalized_hartley visits all subsets of at most {MAX_CLASSES} classes; of these "
            f"{classifiers.n_classes}, each instance keeps its {MAX_CLASSES - 1} most probable ones "
            "and merges the others into one.",
            ApproximationWarning,
        )
    factors = _factors(min(classifiers.n_classes, MAX_CLASSES))
    return per_instance(_hartley, classifiers, factors, n_jobs=n_jobs)[:, 0]


@cache
def _factors(n_classes: int) -> Floats:
    """c_|B| of every subset B, its members being the bits of its number; 0 for the empty set."""
    with decimal.localcontext() as context:
        # The sum alternates; forty digits leave every factor correct to the last bit.
        context.prec = 40
        logs = [decimal.Decimal(size).ln() for size in range(1, n_classes + 1)]
        two = decimal.Decimal(2).ln()
        by_size = [0.0]
        for size in range(1, n_classes + 1):
            others = n_classes - size
            terms = (
                (-1) ** j * math.comb(others, j) * logs[size + j - 1] for j in range(others + 1)
            )
            by_size.append(float(sum(terms) / two))
    return np.array([by_size[subset.bit_count()] for subset in range(2**n_classes)])


@compiled
def _keep_most_probable(members, kept):  # type: ignore[no-untyped-def]
    """Fill `kept` with the members' most probable classes, and with all others as the last one."""
    n_members, n_classes = members.shape
    places, largest = np.full(n_classes, kept.shape[1] - 1), np.zeros(n_classes)
    for m in range(n_members):
        for k in range(n_classes):
            largest[k] = max(largest[k], members[m, k])
    for place in range(kept.shape[1] - 1):
        best = np.argmax(largest)
        places[best] = place
        largest[best] = -1.0
    for m in range(n_members):
        fill(kept[m], 0.0)
        for k in range(n_classes):
            kept[m, places[k]] += members[m, k]


@compiled
def _below_the_first(table, sums, lower):  # type: ignore[no-untyped-def]
    """How far the smallest probability of each subset of the classes is below the first member's."""
    fill(lower, 0.0)
    for m in range(1, table.shape[0]):
        sums[0] = 0.0
        size = 1
        for k in range(table.shape[1]):
            # Subsets that contain class k are those of the classes before it, and k.
            difference = table[m, k] - table[0, k]
            for subset in range(size):
                sums[size + subset] = sums[subset] + difference
            size *= 2
        for subset in range(size):
            lower[subset] = min(lower[subset], sums[subset])


@compiled
def _hartley(members, factors, out):  # type: ignore[no-untyped-def]
    n_samples, n_members, n_classes = members.shape
    kept = np.empty((n_members, min(n_classes, MAX_CLASSES)))
    sums, lower = np.empty(factors.shape[0]), np.empty(factors.shape[0])
    for n in range(n_samples):
        table = members[n]
        if n_classes > MAX_CLASSES:
            _keep_most_probable(table, kept)
            table = kept
        _below_the_first(table, sums, lower)
        # All classes together have probability 1, up to rounding that must not count.
        out[n, 0] = max(dot(factors[:-1], lower[:-1]), 0.0)
