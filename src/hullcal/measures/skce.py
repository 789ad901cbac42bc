"""SKCE: is the whole probability vector calibrated? Kernel estimators that need no bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._validation import InvalidInputError
from hullcal.kernels import Kernel, kernel_factors, kernel_named
from hullcal.measures._base import Floats, Measure


@dataclass(frozen=True, kw_only=True)
class SKCE(Measure):
    r"""Squared kernel calibration error (Eqs. 7 and 8; Widmann et al. 2019).

    With :math:`h_{ij} = (p_i - y_i)^\top \Gamma(p_i, p_j) (p_j - y_j)`, the estimators are

    - ``"ul"``: :math:`\lfloor N/2 \rfloor^{-1} \sum_i h_{2i-1,2i}` over consecutive disjoint pairs
      (an odd last row is dropped; the order of rows matters). Signed. Cost: N·K.
    - ``"uq"``: :math:`\binom{N}{2}^{-1} \sum_{i<j} h_{ij}` over all pairs. Signed. Cost: N²·K, in
      blocks: never an N×N array.
    - ``"b"``: :math:`N^{-2} \sum_{i,j} h_{ij}`, biased and never negative. Cost: N²·K.

    Large positive values mean miscalibration. The residual is the mean of h for ``"ul"``; for the
    others it is the mean of :math:`\Gamma(\cdot, p_i)(p_i - y_i)`, an element of the kernel's Hilbert
    space, and an offset is subtracted by kernel algebra.

    Parameters
    ----------
    estimator : {"ul", "uq", "b"}
    bandwidth : float or "median"
        Scale of the kernel named by `kernel`.
    kernel : {"exponential", "gaussian"} or Kernel
        A kernel value brings its own bandwidth.

    Examples
    --------
    >>> SKCE(estimator="b")([[1.0, 0.0]] * 2, [0, 1])
    0.5
    >>> SKCE(estimator="uq")([[1.0, 0.0]] * 2, [0, 1])
    0.0
    """

    notion: ClassVar[str] = "strong"
    smooth: ClassVar[bool] = True
    min_samples: ClassVar[int] = 2
    estimator: Literal["ul", "uq", "b"] = "ul"
    bandwidth: float | Literal["median"] = 1.0
    kernel: str | Kernel = "exponential"

    def __post_init__(self) -> None:
        if self.estimator not in ("ul", "uq", "b"):
            raise InvalidInputError(
                f'`estimator` must be "ul", "uq" or "b"; got {self.estimator!r}.'
            )
        kernel = kernel_named(self.kernel, self.bandwidth)
        if isinstance(self.kernel, str):
            object.__setattr__(self, "bandwidth", kernel.bandwidth)

    @classmethod
    def defaults(cls) -> tuple[Measure, ...]:
        return cls(estimator="ul"), cls(estimator="uq"), cls(estimator="b")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The measure's name carries its estimator."""
        return f"skce_{self.estimator}"

    @property
    def value(self) -> Callable[..., float]:  # type: ignore[override]
        """The compiled loop of the estimator."""
        return {"ul": _value_ul, "uq": _value_uq, "b": _value_b}[self.estimator]

    @property
    def accumulate(self) -> Callable[..., None] | None:  # type: ignore[override]
        """Disjoint pairs add up over blocks of an even number of rows; all pairs do not."""
        return _accumulate_ul if self.estimator == "ul" else None

    @property
    def finish(self) -> Callable[..., float] | None:  # type: ignore[override]
        """The second half of the additive loop."""
        return _finish_ul if self.estimator == "ul" else None

    @property
    def rows_per_unit(self) -> int:  # type: ignore[override]
        """A pair stays together when rows are resampled."""
        return 2 if self.estimator == "ul" else 1

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.array(kernel_named(self.kernel, self.bandwidth).parameters(average))

    def settings(self) -> dict[str, Any]:
        kernel = kernel_named(self.kernel, self.bandwidth)
        return {
            "estimator": self.estimator,
            "bandwidth": kernel.bandwidth,
            "kernel": kernel.name,
        }

    def state_size(self, n_classes: int) -> int:
        return 1

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        if self.estimator == "ul":
            return 3 * (n_samples // 2)
        return (2 * n_classes + 1) * n_samples + 4 * _BLOCK

    def no_offset(self, n_classes: int) -> Floats:
        return np.zeros(1 if self.estimator == "ul" else 0)

    def offset_at(self, mixed: Floats, labels: NDArray[np.int32], parameters: Floats) -> Floats:
        if self.estimator == "ul":
            return super().offset_at(mixed, labels, parameters)
        errors = mixed.copy()
        errors[labels, np.arange(len(labels))] -= 1.0
        squared_norm = SKCE(estimator="b").evaluate(mixed, labels, parameters)
        return np.concatenate([[squared_norm], mixed.ravel(), errors.ravel()])


@compiled
def _accumulate_ul(mixed, labels, row_weights, parameters, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_pairs = n_samples // 2
    distance, product = scratch[:n_pairs], scratch[n_pairs : 2 * n_pairs]
    distance[:] = 0.0
    product[:] = 0.0
    for k in range(n_classes):
        for i in range(n_pairs):
            p, q = mixed[k, 2 * i], mixed[k, 2 * i + 1]
            distance[i] += 0.5 * abs(p - q)
            product[i] += p * q
    kernel_factors(distance, parameters[0], parameters[1], scratch[2 * n_pairs : 3 * n_pairs])
    for i in range(n_pairs):
        a, b = labels[2 * i], labels[2 * i + 1]
        error = product[i] - mixed[b, 2 * i] - mixed[a, 2 * i + 1] + int(a == b)
        state[0] += row_weights[2 * i] * error * distance[i]


@compiled
def _finish_ul(state, offset, parameters, n_samples):  # type: ignore[no-untyped-def]
    state[0] /= n_samples // 2
    return state[0] - offset[0]


@compiled
def _value_ul(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = 0.0
    _accumulate_ul(mixed, labels, row_weights, parameters, state, scratch)
    return _finish_ul(state, offset, parameters, mixed.shape[1])


#: Columns of a block of pairs: small enough for the first-level cache.
_BLOCK = 256
#: Loops over columns are fastest over a multiple of this.
_STRIDE = 16


@compiled
def _row_against_block(  # type: ignore[no-untyped-def]
    p, error, i, others, other_errors, start, distance, product, parameters, scratch
):
    """Leave Γ(p_i, q_j) <error_i, error_j> in `product`, for as many rows j from `start` as it holds."""
    n_classes = p.shape[0]
    # Unsigned, since a column is never counted from the end.
    start, size = np.uint64(start), np.uint64(product.shape[0])
    distance[:] = 0.0
    product[:] = 0.0
    # Three classes a pass spare loads and stores of the sums; distances and products each have a
    # loop, since one over both reads too many arrays for a compiler to see that none overlap.
    k = 0
    while k + 2 < n_classes:
        a, b, c = others[k], others[k + 1], others[k + 2]
        p_a, p_b, p_c = p[k, i], p[k + 1, i], p[k + 2, i]
        for j in range(size):
            gap = abs(p_a - a[start + j]) + abs(p_b - b[start + j]) + abs(p_c - c[start + j])
            distance[j] += gap
        a, b, c = other_errors[k], other_errors[k + 1], other_errors[k + 2]
        e_a, e_b, e_c = error[k, i], error[k + 1, i], error[k + 2, i]
        for j in range(size):
            product[j] += e_a * a[start + j] + e_b * b[start + j] + e_c * c[start + j]
        k += 3
    while k < n_classes:
        p_a, e_a = p[k, i], error[k, i]
        for j in range(size):
            distance[j] += abs(p_a - others[k, start + j])
        for j in range(size):
            product[j] += e_a * other_errors[k, start + j]
        k += 1
    for j in range(size):
        distance[j] *= 0.5
    kernel_factors(distance, parameters[0], parameters[1], scratch[:size])
    for j in range(size):
        product[j] *= distance[j]


@compiled
def _sum_of_pairs(p, error, row_weights, parameters, scratch):  # type: ignore[no-untyped-def]
    """Sum over rows i < j of the weights' product times h_ij."""
    n_rows = p.shape[1]
    distance, product = scratch[:_BLOCK], scratch[_BLOCK : 2 * _BLOCK]
    sums, rest = scratch[2 * _BLOCK : 3 * _BLOCK], scratch[3 * _BLOCK :]
    total = 0.0
    for start in range(0, n_rows, _BLOCK):
        stop = min(start + _BLOCK, n_rows)
        sums[:] = 0.0
        for i in range(stop - 1):
            first = max(start, i + 1)
            # A few columns too many, not added below, cost less than an odd number of them.
            begin = max(start, stop - -(-(stop - first) // _STRIDE) * _STRIDE)
            size = stop - begin
            _row_against_block(
                p, error, i, p, error, begin, distance[:size], product[:size], parameters, rest
            )
            weight = row_weights[i]
            for j in range(first, stop):
                sums[j - start] += weight * product[j - begin]
        for j in range(start, stop):
            total += row_weights[j] * sums[j - start]
    return total


@compiled
def _sum_across(p, error, row_weights, others, other_errors, parameters, scratch):  # type: ignore[no-untyped-def]
    """Sum over rows i of one sample and j of another of i's weight times h_ij."""
    n_others = others.shape[1]
    distance, product = scratch[:_BLOCK], scratch[_BLOCK : 2 * _BLOCK]
    sums, rest = scratch[2 * _BLOCK : 3 * _BLOCK], scratch[3 * _BLOCK :]
    total = 0.0
    for start in range(0, n_others, _BLOCK):
        size = min(_BLOCK, n_others - start)
        sums[:] = 0.0
        for i in range(p.shape[1]):
            _row_against_block(
                p, error, i, others, other_errors, start, distance[:size], product[:size],
                parameters, rest,
            )  # fmt: skip
            weight = row_weights[i]
            for j in range(size):
                sums[j] += weight * product[j]
        total += sums[:size].sum()
    return total


@compiled
def _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, unbiased):  # type: ignore[no-untyped-def]
    """Squared norm of the mean (recentred) element; without its diagonal if `unbiased`."""
    n_classes, n_samples = mixed.shape
    # Rows that a bootstrap left out take no part: the others are packed side by side.
    n_rows = 0
    for n in range(n_samples):
        n_rows += int(row_weights[n] > 0.0)
    size = n_classes * n_rows
    p = scratch[:size].reshape(n_classes, n_rows)
    error = scratch[size : 2 * size].reshape(n_classes, n_rows)
    weights = scratch[2 * size : 2 * size + n_rows]
    scratch = scratch[(2 * n_classes + 1) * n_samples :]
    row = 0
    for n in range(n_samples):
        if row_weights[n] > 0.0:
            weights[row] = row_weights[n]
            for k in range(n_classes):
                p[k, row] = mixed[k, n]
                error[k, row] = mixed[k, n]
            error[labels[n], row] -= 1.0
            row += 1
    diagonal, copies = 0.0, 0.0
    for row in range(n_rows):
        square = 0.0
        for k in range(n_classes):
            square += error[k, row] ** 2
        diagonal += weights[row] * square
        # Two copies of a row are a pair like any other.
        copies += weights[row] * (weights[row] - 1.0) * square
    pairs = copies + 2.0 * _sum_of_pairs(p, error, weights, parameters, scratch)
    if unbiased:
        squared_norm = pairs / (n_samples * (n_samples - 1.0))
    else:
        squared_norm = (pairs + diagonal) / (n_samples * float(n_samples))
    if offset.shape[0] == 0:
        return squared_norm
    # Every element f has the data's mean element R subtracted: the mean of <f - R, g - R> over the
    # same pairs is the mean of <f, g>, less twice the mean of <f, R>, plus |R|^2.
    size = n_classes * n_samples
    other = offset[1 : 1 + size].reshape(n_classes, n_samples)
    other_error = offset[1 + size :].reshape(n_classes, n_samples)
    cross = _sum_across(p, error, weights, other, other_error, parameters, scratch)
    return squared_norm - 2.0 * cross / (n_samples * float(n_samples)) + offset[0]


@compiled
def _value_uq(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, True)
    return state[0]


@compiled
def _value_b(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, False)
    return state[0]
