"""What both expected calibration errors share: fields, names, and where a probability is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline
from hullcal._validation import check_flag, check_integer
from hullcal.binning import bin_indices, edges
from hullcal.measures._base import Floats, Measure, Trait

#: Classes up to which a label is compared with all of them, rather than looked up.
FEW_CLASSES = 16


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


#: Sums kept for each cell: an addition has to wait for the one before it.
_STRANDS = 8


@compiled
def of_cells(probabilities, classes, cells, shares, n_cells, drawn, out):  # type: ignore[no-untyped-def]
    """Sum over cells of |hits - expected| / N for each labelling, a column of `drawn`.

    Every row has one entry in each row of `probabilities`: of a class, in a cell. With `shares`, which
    may be empty, the share of an entry belongs to the next cell. Either all classes have entries, in
    order, or every row has one. Labels are compared by whole vectors of labellings, and what does not
    depend on them is added up once. Hits of whole cells are counted, so that no order of additions
    matters.
    """
    n_entries, n_samples = probabilities.shape
    n_labellings = drawn.shape[1]
    smooth = shares.shape[0] > 0
    strands = np.zeros((_STRANDS, n_cells))
    for n in range(n_samples):
        strand = strands[n % _STRANDS]
        for e in range(n_entries):
            p, cell = probabilities[e, n], cells[e, n]
            upper = p * shares[e, n] if smooth else 0.0
            strand[cell] += p - upper
            if smooth:
                strand[cell + np.uint32(1)] += upper
    if smooth:
        hits = np.zeros((n_cells, n_labellings))
        _add_shares(classes, cells, shares, drawn, hits)
    else:
        counts = np.zeros((n_cells, n_labellings), dtype=np.int32)
        _count(classes, cells, drawn, counts)
        hits = counts.astype(np.float64)
    for d in range(n_labellings):
        out[d] = 0.0
    for cell in range(n_cells):
        expected = 0.0
        for strand in range(_STRANDS):
            expected += strands[strand, cell]
        own = hits[cell]
        for d in range(n_labellings):
            out[d] += abs(own[d] - expected)
    for d in range(n_labellings):
        out[d] /= n_samples


@compiled
def _count(classes, cells, drawn, counts):  # type: ignore[no-untyped-def]
    """How often each entry's class is drawn, by cell."""
    n_entries, n_samples = classes.shape
    n_labellings = drawn.shape[1]
    if n_labellings == 1:
        for n in range(n_samples):
            label = drawn[n, 0]
            entry = np.uint32(label) if n_entries > 1 else np.uint32(0)
            counts[cells[entry, n], 0] += np.int32(classes[entry, n] == label)
        return
    for n in range(n_samples):
        labels = drawn[n]
        for e in range(n_entries):
            own, k = counts[cells[e, n]], classes[e, n]
            for d in range(n_labellings):
                own[d] += np.int32(labels[d] == k)


@compiled
def _add_shares(classes, cells, shares, drawn, hits):  # type: ignore[no-untyped-def]
    """The same, an entry being shared out between two cells."""
    n_entries, n_samples = classes.shape
    for n in range(n_samples):
        labels = drawn[n]
        for e in range(n_entries):
            cell, k, upper = cells[e, n], classes[e, n], shares[e, n]
            below, above = hits[cell], hits[cell + np.uint32(1)]
            for d in range(labels.shape[0]):
                hit = np.float64(labels[d] == k)
                below[d] += hit * (1.0 - upper)
                above[d] += hit * upper
