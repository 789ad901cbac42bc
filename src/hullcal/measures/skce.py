"""SKCE: is the whole probability vector calibrated? Kernel estimators that need no bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._validation import InvalidInputError
from hullcal.kernels import Kernel, kernel_factor, kernel_named
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
        kernel_named(self.kernel, self.bandwidth)

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

    def state_size(self, n_classes: int) -> int:
        return 1

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return n_samples if self.estimator == "ul" else n_classes * n_samples + 2 * _BLOCK

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
            distance[i] += abs(p - q)
            product[i] += p * q
    for i in range(n_pairs):
        a, b = labels[2 * i], labels[2 * i + 1]
        error = product[i] - mixed[b, 2 * i] - mixed[a, 2 * i + 1] + int(a == b)
        factor = kernel_factor(0.5 * distance[i], parameters[0], parameters[1])
        state[0] += row_weights[2 * i] * error * factor


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


@compiled
def _row_against_block(  # type: ignore[no-untyped-def]
    p, error, i, others, other_errors, start, stop, parameters, row_weights, distance, product
):
    """Sum over rows j in [start, stop) of row_weights[j] * Γ(p_i, q_j) * <error_i, error_j>."""
    distance[:] = 0.0
    product[:] = 0.0
    for k in range(p.shape[0]):
        p_i, e_i = p[k, i], error[k, i]
        for j in range(start, stop):
            distance[j - start] += abs(p_i - others[k, j])
            product[j - start] += e_i * other_errors[k, j]
    total = 0.0
    for j in range(start, stop):
        factor = kernel_factor(0.5 * distance[j - start], parameters[0], parameters[1])
        total += row_weights[j] * product[j - start] * factor
    return total


@compiled
def _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, unbiased):  # type: ignore[no-untyped-def]
    """Squared norm of the mean (recentred) element; without its diagonal if `unbiased`."""
    n_classes, n_samples = mixed.shape
    error = scratch[: n_classes * n_samples].reshape(n_classes, n_samples)
    distance = scratch[n_classes * n_samples : n_classes * n_samples + _BLOCK]
    product = scratch[n_classes * n_samples + _BLOCK :]
    error[:] = mixed
    for n in range(n_samples):
        error[labels[n], n] -= 1.0
    diagonal, copies = 0.0, 0.0
    for n in range(n_samples):
        square = 0.0
        for k in range(n_classes):
            square += error[k, n] ** 2
        diagonal += row_weights[n] * square
        # Two copies of a row are a pair like any other.
        copies += row_weights[n] * (row_weights[n] - 1.0) * square
    pairs = copies
    for start in range(0, n_samples, _BLOCK):
        stop = min(start + _BLOCK, n_samples)
        for i in range(stop - 1):
            if row_weights[i] > 0.0:
                pairs += 2.0 * row_weights[i] * _row_against_block(
                    mixed, error, i, mixed, error, max(start, i + 1), stop, parameters,
                    row_weights, distance, product,
                )  # fmt: skip
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
    ones = np.ones(n_samples)
    cross = 0.0
    for start in range(0, n_samples, _BLOCK):
        stop = min(start + _BLOCK, n_samples)
        for i in range(n_samples):
            if row_weights[i] > 0.0:
                cross += row_weights[i] * _row_against_block(
                    mixed, error, i, other, other_error, start, stop, parameters, ones,
                    distance, product,
                )  # fmt: skip
    return squared_norm - 2.0 * cross / (n_samples * float(n_samples)) + offset[0]


@compiled
def _value_uq(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, True)
    return state[0]


@compiled
def _value_b(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, False)
    return state[0]
