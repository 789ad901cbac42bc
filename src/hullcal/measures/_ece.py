"""What both expected calibration errors share: fields, names, and where a probability is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled_inline
from hullcal._validation import check_flag, check_integer
from hullcal.binning import bin_indices, edges
from hullcal.measures._base import Floats, Measure, Trait


@dataclass(frozen=True, kw_only=True)
class ECE(Measure):
    """An expected calibration error over B equal-width bins, or over B + 1 hats.

    Hat j = 0, ..., B has its top at j/B and its feet at the tops of its neighbours.
    """

    #: The name of the form with bins.
    plain_name: ClassVar[str]
    traits: ClassVar[frozenset[Trait]] = frozenset({"residual", "places"})
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
        return {"n_bins": self.n_bins}

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        # The last edge of bins is infinite, the last top of a hat is not: so loops tell them apart.
        return np.arange(self.n_bins + 1) / self.n_bins if self.smooth else edges(self.n_bins)


@compiled_inline
def is_smooth(edges):  # type: ignore[no-untyped-def]
    """Whether parameters are the tops of hats, and not the edges of bins."""
    return edges[-1] < np.inf


@compiled_inline
def hat_of(probability, n_hats):  # type: ignore[no-untyped-def]
    """The hat below a probability, and the share of the next one, the other being of the former."""
    scaled = probability * (n_hats - 1)
    # At 1, or by rounding a little above it, there is no further hat.
    hat = min(np.int32(scaled), np.int32(n_hats - 2))
    return hat, scaled - hat


@compiled_inline
def places_of(probabilities, edges, places, shares):  # type: ignore[no-untyped-def]
    """The bin of every probability, or the hat below it with the share of the next one."""
    if is_smooth(edges):
        for n in range(probabilities.shape[0]):
            places[n], shares[n] = hat_of(probabilities[n], edges.shape[0])
    else:
        bin_indices(probabilities, edges, places)
