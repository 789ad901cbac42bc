"""What both expected calibration errors share: fields, names, and hat functions for smooth bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline
from hullcal._compiled.mixing import fill
from hullcal._validation import check_flag, check_integer
from hullcal.binning import edges
from hullcal.measures._base import Floats, Measure


@dataclass(frozen=True, kw_only=True)
class ECE(Measure):
    """An expected calibration error over B equal-width bins, or over B + 1 hats."""

    #: The name of the form with bins.
    plain_name: ClassVar[str]
    keeps_places: ClassVar[bool] = True
    n_bins: int = 10
    smooth: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))
        check_flag(self.smooth, "smooth")

    @classmethod
    def defaults(cls) -> tuple[Measure, ...]:
        return cls(), cls(smooth=True)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name tells the smooth form from the usual one."""
        return self.plain_name + "_smooth" * self.smooth

    def settings(self) -> dict[str, Any]:
        # The name says whether the measure is smooth.
        return {name: value for name, value in super().settings().items() if name != "smooth"}

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return edges(self.n_bins)


class _Either:
    def __init__(self, plain: Callable[..., Any], smooth: Callable[..., Any]) -> None:
        self._plain, self._smooth = plain, smooth

    def __get__(self, measure: Any, kind: type) -> Any:
        return self._smooth if measure is not None and measure.smooth else self._plain


def either(plain: Callable[..., Any], smooth: Callable[..., Any]) -> Any:
    """Of two loops the one that the field `smooth` chooses; the class itself has the first."""
    return _Either(plain, smooth)


#: Sums kept for each hat. Neighbouring rows often share a hat, and an addition to a sum has to wait for
#: the last one.
_STRANDS = 8


@compiled_inline
def hat_of(probability, n_hats):  # type: ignore[no-untyped-def]
    """The hat below a probability, and the share of the next one, the other being of the former."""
    scaled = probability * (n_hats - 1)
    # At 1, or by rounding a little above it, there is no further hat.
    hat = min(np.int32(scaled), np.int32(n_hats - 2))
    return hat, scaled - hat


@compiled_inline
def hats_of(probabilities, n_hats, hats, shares):  # type: ignore[no-untyped-def]
    """`hat_of` of every probability."""
    for n in range(probabilities.shape[0]):
        hats[n], shares[n] = hat_of(probabilities[n], n_hats)


@compiled
def add_to_hats(gaps, hats, rest, state):  # type: ignore[no-untyped-def]
    """Add each row's gap to the two hats it is shared between.

    Hat j = 0, ..., B has its top at j/B and its feet at the tops of its neighbours. `state` has one
    entry for each hat; `rest` begins with the shares, and what follows is overwritten.
    """
    n_samples, n_hats = gaps.shape[0], state.shape[0]
    shares = rest[:n_samples]
    sums = rest[n_samples : n_samples + _STRANDS * n_hats]
    fill(sums, 0.0)
    whole = n_samples - n_samples % _STRANDS
    for n in range(0, whole, _STRANDS):
        for s in range(_STRANDS):
            at = np.uint32(s * n_hats) + hats[n + s]
            upper = gaps[n + s] * shares[n + s]
            sums[at] += gaps[n + s] - upper
            sums[at + np.uint32(1)] += upper
    for n in range(whole, n_samples):
        upper = gaps[n] * shares[n]
        sums[hats[n]] += gaps[n] - upper
        sums[hats[n] + np.uint32(1)] += upper
    for s in range(_STRANDS):
        for j in range(n_hats):
            state[j] += sums[s * n_hats + j]
