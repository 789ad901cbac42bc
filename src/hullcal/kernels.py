"""The matrix-valued kernels of SKCE: a scalar function of the total variation times the identity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._compiled.exponential import decays, short_decays
from hullcal._compiled.jit import compiled
from hullcal._validation import InvalidInputError, check_positive, unknown

#: Rows that enter the median heuristic at most.
MEDIAN_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class Kernel:
    r"""A kernel :math:`\Gamma(p, p') = \gamma(\mathrm{TV}(p, p'))\, I_K`, TV being half the L1 distance.

    Parameters
    ----------
    bandwidth : float or "median"
        The divisor in the exponent; "median" takes the median total variation over pairs of
        rows of the average member (of 1,000 rows at most), once per data set.
    """

    name: ClassVar[str]
    #: What the compiled loops know it by.
    form: ClassVar[float]
    bandwidth: float | Literal["median"] = 1.0

    def __post_init__(self) -> None:
        if self.bandwidth != "median":
            object.__setattr__(self, "bandwidth", check_positive(self.bandwidth, "bandwidth"))

    def __call__(self, p: ArrayLike, q: ArrayLike) -> float:
        """The scalar factor for two probability vectors."""
        if self.bandwidth == "median":
            raise InvalidInputError(
                '`bandwidth="median"` is known only once there are data; '
                "give a number to evaluate a kernel by itself."
            )
        distance = 0.5 * float(np.abs(np.subtract(p, q)).sum())
        return float(kernel_factor(distance, self.form, float(self.bandwidth)))

    def parameters(self, average: NDArray[np.floating]) -> tuple[float, float]:
        """Form and bandwidth for the compiled loops; `average` is the mean member (N, K)."""
        if self.bandwidth == "median":
            return self.form, median_total_variation(average)
        return self.form, float(self.bandwidth)


@dataclass(frozen=True, kw_only=True)
class ExponentialTV(Kernel):
    r""":math:`\exp(-\mathrm{TV}(p, p')/\nu)`, the paper's kernel for :math:`\nu = 1`.

    >>> ExponentialTV()([1, 0], [0, 1]) == math.exp(-1)
    True
    """

    name: ClassVar[str] = "exponential"
    form: ClassVar[float] = 0.0


@dataclass(frozen=True, kw_only=True)
class GaussianTV(Kernel):
    r""":math:`\exp(-\mathrm{TV}(p, p')^2/h)`; the authors' scripts use it with :math:`h = 2`.

    >>> GaussianTV(bandwidth=2.0)([1, 0], [0, 1]) == math.exp(-0.5)
    True
    """

    name: ClassVar[str] = "gaussian"
    form: ClassVar[float] = 1.0


def kernel_named(kernel: str | Kernel, bandwidth: float | Literal["median"]) -> Kernel:
    """The kernel of a name, or the kernel itself."""
    forms = {form.name: form for form in (ExponentialTV, GaussianTV)}
    if isinstance(kernel, ExponentialTV | GaussianTV):
        return kernel
    if not isinstance(kernel, str) or kernel not in forms:
        raise unknown("kernel", kernel, sorted(forms), ", or a Kernel")
    return forms[kernel](bandwidth=bandwidth)


def median_total_variation(average: NDArray[np.floating]) -> float:
    """Median total variation over pairs of 1,000 rows at most; 1 where it would be 0.

    Of more rows those are taken that lie evenly in the order of their predictions, so that no order in
    which rows or classes were given changes the median.
    """
    rows = np.asarray(average, dtype=np.float64)
    if len(rows) > MEDIAN_ROWS:
        order = np.lexsort(np.hstack([rows, np.sort(rows, axis=1)]).T)
        rows = rows[order[np.linspace(0, len(rows) - 1, MEDIAN_ROWS).astype(np.int64)]]
    distances = [0.5 * np.abs(rows[i + 1 :] - rows[i]).sum(axis=1) for i in range(len(rows) - 1)]
    median = float(np.median(np.concatenate(distances))) if distances else 0.0
    # A constant predictor has no scale of its own; any bandwidth gives the same kernel there.
    return median if median > 0.0 else 1.0


@compiled
def kernel_factor(distance, form, bandwidth):  # type: ignore[no-untyped-def]
    """The scalar factor of the kernel at a total variation."""
    if form == 0.0:
        return math.exp(-distance / bandwidth)
    return math.exp(-distance * distance / bandwidth)


@compiled
def kernel_factors(distances, form, bandwidth, scratch):  # type: ignore[no-untyped-def]
    """kernel_factor of many total variations, in their place; `scratch` is of the same size."""
    if form == 0.0:
        for i in range(distances.shape[0]):
            distances[i] /= bandwidth
    else:
        for i in range(distances.shape[0]):
            distances[i] = distances[i] * distances[i] / bandwidth
    _decays(distances, bandwidth, scratch)


@compiled
def row_scale(form, bandwidth):  # type: ignore[no-untyped-def]
    """What to multiply probabilities by before `scaled_factors` of their L1 distances."""
    # An infinite factor would turn probabilities of 0 into NaN.
    return min(0.5 / (bandwidth if form == 0.0 else math.sqrt(bandwidth)), 1e300)


@compiled
def scaled_factors(distances, form, bandwidth, scratch):  # type: ignore[no-untyped-def]
    """kernel_factors of rows that were multiplied by `row_scale`, from their L1 distances."""
    if form != 0.0:
        for i in range(distances.shape[0]):
            distances[i] *= distances[i]
    _decays(distances, bandwidth, scratch)


@compiled
def _decays(exponents, bandwidth, scratch):  # type: ignore[no-untyped-def]
    # A total variation is at most 1.
    if bandwidth >= 1.0:
        short_decays(exponents)
    else:
        decays(exponents, scratch)
