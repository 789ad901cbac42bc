"""Which few numbers tell one data set from another, and from itself in another order of rows?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal.engines.jobs import Job, Rows

Floats = NDArray[np.float64]

#: 2^64 over the golden ratio: its multiples, modulo 2^64, lie evenly and in no simple order.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)


def fingerprint_of(chances: Floats, first: int) -> Floats:
    """Sums of the members' probabilities of the labels, (2, n_members): plain, and by place.

    `chances` are those of consecutive rows, (n_rows, n_members), the first of them being row `first`.
    Draws belong to row numbers, so the same rows in another order are other data.
    """
    places = np.arange(first, first + len(chances), dtype=np.uint64) * _STRIDE
    sums: Floats = np.stack([chances.sum(axis=0), (places / 2.0**64) @ chances])
    return sums


@dataclass(frozen=True, kw_only=True)
class Fingerprint(Job):
    """Both sums over all rows."""

    @property
    def shape(self) -> tuple[int, int]:
        return 2, len(self.positions)

    def _add(self, rows: Rows, sums: Floats) -> None:
        n = np.arange(len(rows.labels))[:, np.newaxis]
        chances = rows.probs[n, self.positions, rows.labels[:, np.newaxis]]
        sums += fingerprint_of(chances.astype(np.float64), rows.first)
