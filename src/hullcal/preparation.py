"""Bring predictions into the shape the tests take: binary problems, held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import (
    BFLOAT16,
    as_array,
    check_dtype,
    check_fraction,
    check_seed,
    paired,
    refusal,
    takes_rng,
)

__all__ = ["from_binary", "split"]


def from_binary(p: Any) -> NDArray[Any]:
    """Turn probabilities of class 1 into predictions over two classes.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_members)
        Or (n_samples,) for one classifier, or a list of M arrays (n_samples,). Values in [0, 1].

    Returns
    -------
    ndarray of shape (n_samples, n_members, 2)
        Class 0 gets ``1 - p``. float32 stays float32, everything else becomes float64.

    Examples
    --------
    >>> from_binary([0.25, 1.0])
    array([[[0.75, 0.25]],
    <BLANKLINE>
           [[0.  , 1.  ]]])
    """
    array = as_array(p, "p", member_ndim=1).array
    check_dtype(array, "p")
    if array.ndim not in (1, 2) or array.size == 0:
        repair = "Predictions over classes, (n_samples, n_members, n_classes), need no conversion."
        rule = "must have shape (n_samples, n_members) or (n_samples,), without an empty axis"
        raise refusal("p", rule, f"shape {array.shape}", repair)
    dtype = np.float32 if array.dtype.char == "f" else np.float64
    ones: NDArray[Any] = array.astype(dtype).reshape(array.shape[0], -1)
    bad = ~((ones >= 0) & (ones <= 1))  # NaN fails both comparisons
    if bad.any():
        n, m = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        came = f"{float(ones[n, m])} at (n, m) = ({n}, {m}) ({np.count_nonzero(bad)} such in all)"
        repair = (
            "Logits first need a sigmoid, `1 / (1 + np.exp(-z))`; rounding, `np.clip(p, 0, 1)`."
        )
        raise refusal("p", "must lie in [0, 1]", came, repair)
    return np.stack([1 - ones, ones], axis=-1)


@takes_rng
def split(
    probs: Any, labels: Any, *, fraction: float = 0.5, rng: Any = 0
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Split rows at random into two disjoint parts, one to choose on and one to test on.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes) or (n_samples, n_classes)
        Or a list of M arrays (n_samples, n_classes). Probabilities or logits; values are not
        checked here.
    labels : array-like of length n_samples
        Any labels.
    fraction : float
        The first part holds ``round(fraction * n_samples)`` rows, but at least one row goes to
        each part.
    rng : None, int or numpy.random.Generator
        Where the choice of rows comes from; the default always makes the same choice.

    Returns
    -------
    (probs_a, labels_a), (probs_b, labels_b)
        Copies, as numpy arrays (bfloat16 tensors stay tensors), with rows in their old order.

    Examples
    --------
    >>> (_, first), (_, second) = split([[0.5, 0.5]] * 4, [0, 1, 0, 1], fraction=0.25)
    >>> len(first), len(second)
    (1, 3)
    """
    fraction = check_fraction(fraction, "fraction")
    given, truth = paired(probs, labels)
    if given.array.ndim not in (2, 3) or len(given.array) < 2:
        rule = "must have at least 2 rows to split, and two or three axes"
        raise refusal("probs", rule, f"shape {given.array.shape}", "Pass more rows.")
    size = min(max(round(fraction * len(truth)), 1), len(truth) - 1)  # neither part is empty
    order = np.random.default_rng(check_seed(rng)).permutation(len(truth))
    first, second = np.sort(order[:size]), np.sort(order[size:])
    # numpy has no bfloat16: as float32 the rows would look far too coarse for their type.
    keep = given.precision is BFLOAT16 and hasattr(probs, "shape")
    rows = probs if keep else given.array
    return (rows[first], truth[first]), (rows[second], truth[second])
