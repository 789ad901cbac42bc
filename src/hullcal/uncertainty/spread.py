"""How far apart are the members? Total variation, widths of intervals, generalised Hartley."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import ApproximationWarning, check_jobs, warn
from hullcal.sets import ClassifierSet
from hullcal.threads import blocks, in_order

Floats = NDArray[np.float64]

#: Classes up to which the generalised Hartley measure visits all subsets.
MAX_CLASSES = 16


def per_instance(
    size: Callable[[Floats], Floats], probs: Any, *, n_jobs: int, n_numbers: int | None = None
) -> Floats:
    """What `size` gives for every instance, in blocks; `n_numbers` is what it needs for one.

    It gets members of shape (n_members, n_classes, n): arithmetic runs over the instances.
    """
    members = ClassifierSet.of(probs).probs
    n_numbers = n_numbers or members[0].size

    def of_block(bounds: tuple[int, int]) -> Floats:
        # Blocks are converted one at a time, so that float32 and memory maps never become one array.
        rows = members[slice(*bounds)].transpose(1, 2, 0)
        return size(np.ascontiguousarray(rows, dtype=np.float64))

    # Numbers of a block fit the second-level cache; fewer than eight instances leave vector units idle.
    bounds = blocks(0, len(members), max(8, 200_000 // n_numbers))
    return np.concatenate(list(in_order(of_block, bounds, n_jobs=check_jobs(n_jobs))))


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

    def diameter(members: Floats) -> Floats:
        widest = np.zeros(members.shape[2])
        for m in range(1, len(members)):
            distances = np.abs(members[m] - members[:m]).sum(axis=1)
            np.maximum(widest, distances.max(axis=0), out=widest)
        return 0.5 * widest

    return per_instance(diameter, probs, n_jobs=n_jobs)


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

    def width(members: Floats) -> Floats:
        return (members.max(axis=0) - members.min(axis=0)).mean(axis=0)  # type: ignore[no-any-return]

    return per_instance(width, probs, n_jobs=n_jobs)


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
    size = partial(_hartley, factors=factors)
    return per_instance(size, classifiers, n_jobs=n_jobs, n_numbers=len(factors))


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


def _hartley(members: Floats, factors: Floats) -> Floats:
    if members.shape[1] > MAX_CLASSES:
        members = _with_rare_classes_merged(members)
    _, n_classes, n_samples = members.shape
    sums, lowest = np.zeros((2, 2**n_classes, n_samples))
    for difference in members[1:] - members[0]:
        for k in range(n_classes):
            # Subsets that contain class k are those of the classes before it, and k.
            here, with_k = slice(2**k), slice(2**k, 2 ** (k + 1))
            np.add(sums[here], difference[k], out=sums[with_k])
        np.minimum(lowest, sums, out=lowest)
    # All classes together have probability 1, up to rounding that must not count.
    sizes: Floats = (lowest[:-1] * factors[:-1, None]).sum(axis=0)
    return sizes.clip(min=0.0)


def _with_rare_classes_merged(members: Floats) -> Floats:
    """The most probable classes of each instance, and all others as one."""
    order = np.argsort(-members.max(axis=0), axis=0, kind="stable")[None]
    ranked = np.take_along_axis(members, order, axis=1)
    kept, others = ranked[:, : MAX_CLASSES - 1], ranked[:, MAX_CLASSES - 1 :]
    return np.concatenate([kept, others.sum(axis=1, keepdims=True)], axis=1)
