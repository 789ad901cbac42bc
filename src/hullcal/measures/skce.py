"""SKCE: is the whole probability vector calibrated? Kernel estimators that need no bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_value
from hullcal._validation import InvalidInputError
from hullcal.kernels import Kernel, kernel_factors, kernel_named
from hullcal.measures._all_pairs import WORKSPACE, pack, packed_size, value_b, value_uq
from hullcal.measures._base import Floats, Measure


@dataclass(frozen=True, kw_only=True)
class SKCE(Measure):
    r"""Squared kernel calibration error (Eqs. 7 and 8; Widmann et al. 2019).

    With :math:`h_{ij} = (p_i - y_i)^\top \Gamma(p_i, p_j) (p_j - y_j)`, the estimators are

    - ``"ul"``: :math:`\lfloor N/2 \rfloor^{-1} \sum_i h_{2i-1,2i}` over consecutive disjoint pairs
      (an odd last row is dropped; the order of rows matters). Signed. Cost: N·K.
    - ``"uq"``: :math:`\binom{N}{2}^{-1} \sum_{i<j} h_{ij}` over all pairs. Signed. Cost: N²·K, in
      blocks: never an N×N array.
    - ``"b"``: :math:`N^{-2} \sum_{i,j} h_{ij}`, biased; never negative with the
      exponential kernel. Cost: N²·K.

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
    differentiable: ClassVar[bool] = True
    easily_searched: ClassVar[bool] = True
    min_samples: ClassVar[int] = 2
    estimator: Literal["ul", "uq", "b"] = "ul"
    bandwidth: float | Literal["median"] = 1.0
    kernel: str | Kernel = "exponential"

    def __post_init__(self) -> None:
        if self.estimator not in ("ul", "uq", "b"):
            raise InvalidInputError(
                f'`estimator` must be "ul", "uq" or "b"; got {self.estimator!r:.80}. Pass one of them.'
            )
        kernel = kernel_named(self.kernel, self.bandwidth)
        if kernel is self.kernel and self.bandwidth not in (1.0, kernel.bandwidth):
            raise InvalidInputError(
                f"`bandwidth` must be left out beside a Kernel, which has its own; got "
                f"{self.bandwidth!r} beside {kernel!r}. Give it to the kernel."
            )
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
        return {"ul": _value_ul, "uq": value_uq, "b": value_b}[self.estimator]

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

    @property
    def order_matters(self) -> bool:  # type: ignore[override]
        """Neighbours make the disjoint pairs."""
        return self.estimator == "ul"

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
        return WORKSPACE + packed_size(n_classes, n_samples)

    def no_offset(self, n_classes: int) -> Floats:
        return np.zeros(1 if self.estimator == "ul" else 0)

    def offset_at(self, mixed: Floats, labels: NDArray[np.int32], parameters: Floats) -> Floats:
        if self.estimator == "ul":
            return super().offset_at(mixed, labels, parameters)
        # The rows at the offset, packed once for all evaluations, and the squared norm of their mean.
        offset = np.zeros(packed_size(*mixed.shape) + 1)
        pack(mixed, labels, np.ones(len(labels)), parameters, offset[:-1])
        offset[-1] = SKCE(estimator="b").evaluate(mixed, labels, parameters)
        return offset


@compiled_value
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


@compiled_value
def _value_ul(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = 0.0
    _accumulate_ul(mixed, labels, row_weights, parameters, state, scratch)
    return _finish_ul(state, offset, parameters, mixed.shape[1])
