"""Do the rows of an (N, M, K) array lie on the simplex, and what to mend if they nearly do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.foreign import Precision

__all__ = [
    "SLACK",
    "Findings",
    "all_clean",
    "audit",
    "blocks",
    "exponential",
    "find",
    "repair",
    "softmax",
]

# A value outside [0, 1] by this much is rounding and is clipped.
SLACK = 1e-6

# Enough rows to make numpy's overhead small, few enough that a memory map never enters memory.
BLOCK_BYTES = 8 * 2**20


@dataclass(slots=True)
class Findings:
    """What a careful reading of all rows found; filled in block by block."""

    n_rows: int
    n_nonfinite: int = 0
    first_nonfinite: tuple[int, ...] = ()
    low: float = np.inf
    high: float = -np.inf
    n_outside: int = 0
    n_off: int = 0
    worst_off: float = 0.0
    worst_left: float = 0.0
    n_wrong: int = 0
    first_wrong: tuple[int, ...] = ()
    wrong_sum: float = np.nan
    worst_wrong: float = 0.0
    smallest_sum: float = np.inf
    largest_sum: float = -np.inf

    @property
    def acceptable(self) -> bool:
        """Whether every row can be used, as it is or mended."""
        return not (self.n_nonfinite or self.out_of_range or self.n_wrong)

    @property
    def out_of_range(self) -> bool:
        """Whether some value lies outside [0, 1] by more than rounding."""
        return self.low < -SLACK or self.high > 1 + SLACK


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut an array into consecutive views of about 8 MB, each with the index of its first row."""
    n_samples, n_members, n_classes = array.shape
    step = max(1, BLOCK_BYTES // (n_members * n_classes * array.itemsize))
    for start in range(0, n_samples, step):
        yield start, array[start : start + step]


def find(
    array: NDArray[Any], bad: Callable[[NDArray[Any]], NDArray[np.bool_]]
) -> tuple[int, tuple[int, ...]]:
    """Count the entries that `bad` marks, and give the index of the first (empty if none)."""
    count = 0
    first: tuple[int, ...] = ()
    for start, block in blocks(array):
        mask = bad(block)
        if mask.any():
            count += int(np.count_nonzero(mask))
            first = first or _first(mask, start)
    return count, first


def all_clean(array: NDArray[Any], precision: Precision) -> bool:
    """Whether every row is beyond doubt a probability vector; False only asks for an audit.

    Sums run in the array's own type and in whatever order BLAS likes, whose error stays below
    K * eps. Half of the 4 * K * eps that are left alone is therefore on the safe side.
    """
    n_classes = array.shape[2]
    ones = np.ones(n_classes, dtype=array.dtype)
    margin = min(precision.left_alone(n_classes) / 2, precision.limit)
    for _, block in blocks(array):
        rows = block.reshape(-1, n_classes)
        # NaN makes every comparison false. Only values in [0, 1] are summed, so no sum can warn.
        low, high = np.minimum.reduce(rows, axis=None), np.maximum.reduce(rows, axis=None)
        if not (low >= 0 and high <= 1):
            return False
        sums = rows @ ones
        if not (np.minimum.reduce(sums) >= 1 - margin and np.maximum.reduce(sums) <= 1 + margin):
            return False
    return True


def audit(array: NDArray[Any], precision: Precision) -> Findings:
    """Read every row in float64 and in a fixed order, so that layout cannot change a verdict."""
    findings = Findings(n_rows=array.shape[0] * array.shape[1])
    with np.errstate(all="ignore"):
        for start, block in blocks(array):
            rows = np.array(block, dtype=np.float64, order="C")
            _audit_values(findings, rows, start)
            if not findings.n_nonfinite:
                _audit_sums(findings, rows, start, precision)
    return findings


def _audit_values(findings: Findings, rows: NDArray[np.float64], start: int) -> None:
    bad = ~np.isfinite(rows)
    if bad.any():
        findings.n_nonfinite += int(np.count_nonzero(bad))
        findings.first_nonfinite = findings.first_nonfinite or _first(bad, start)
    findings.low = float(np.fmin(findings.low, np.fmin.reduce(rows, axis=None)))
    findings.high = float(np.fmax(findings.high, np.fmax.reduce(rows, axis=None)))
    findings.n_outside += int(np.count_nonzero((rows < 0) | (rows > 1)))


def _audit_sums(
    findings: Findings, rows: NDArray[np.float64], start: int, precision: Precision
) -> None:
    n_classes = rows.shape[2]
    sums = _row_sums(rows)
    deviation = np.abs(sums - 1)
    wrong = deviation > precision.repaired(n_classes)
    off = (deviation > precision.left_alone(n_classes)) & ~wrong
    left = ~(wrong | off)
    findings.n_off += int(np.count_nonzero(off))
    findings.worst_off = max(findings.worst_off, _largest(deviation[off]))
    findings.worst_left = max(findings.worst_left, _largest(deviation[left]))
    as_given = np.add.reduce(rows, axis=-1)
    findings.smallest_sum = min(findings.smallest_sum, float(as_given.min()))
    findings.largest_sum = max(findings.largest_sum, float(as_given.max()))
    if wrong.any():
        findings.n_wrong += int(np.count_nonzero(wrong))
        findings.worst_wrong = max(findings.worst_wrong, _largest(deviation[wrong]))
        if not findings.first_wrong:
            findings.first_wrong = _first(wrong, start)
            findings.wrong_sum = float(sums[wrong][0])


def _row_sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows as they are after clipping, so that `audit` and `repair` see the same sums."""
    sums: NDArray[np.float64] = np.add.reduce(np.clip(rows, 0, 1), axis=-1)
    return sums


def _first(mask: NDArray[np.bool_], start: int) -> tuple[int, ...]:
    n, *rest = (int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
    return (start + n, *rest)


def _largest(values: NDArray[np.float64]) -> float:
    return float(values.max(initial=0.0))


def repair(array: NDArray[Any], precision: Precision, *, owned: bool) -> NDArray[np.float64]:
    """Clip values and renormalise the rows that need it, in float64; other rows keep their bits.

    Parameters
    ----------
    array : ndarray of shape (N, M, K)
        Already audited: every value and every row is within what is mended.
    precision : Precision
        The precision in which the numbers were made.
    owned : bool
        Whether `array` is ours to write to; a caller's array is copied first.

    Returns
    -------
    ndarray of shape (N, M, K)
    """
    n_classes = array.shape[2]
    out = array.astype(np.float64, order="C", copy=not owned)
    for _, block in blocks(out):
        outside = (block < 0) | (block > 1)
        block[outside] = np.clip(block[outside], 0, 1)  # -0.0 and all else keep their bits
        sums = _row_sums(block)
        off = np.abs(sums - 1) > precision.left_alone(n_classes)
        block[off] /= sums[off][:, None]
    return out


def softmax(array: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the last axis in float64, shifted by the row's maximum so nothing overflows."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        for _, block in blocks(out):
            block -= block.max(axis=-1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=-1, keepdims=True)
    return out


def exponential(array: NDArray[Any]) -> NDArray[np.float64]:
    """Exponential in float64; minus infinity becomes an exact zero."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        for _, block in blocks(out):
            np.exp(block, out=block)
    return out
