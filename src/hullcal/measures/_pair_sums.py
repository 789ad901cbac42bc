"""SKCE over all pairs from sums over pairs of rows, in whatever portions these were added."""

from __future__ import annotations

from hullcal.measures._all_pairs import mean_b, mean_uq
from hullcal.measures._base import Floats

#: What is added up: h over all ordered pairs, rows paired with themselves included, and over the latter.
PAIR_SUMS = 2


def finish_uq(sums: Floats, n_samples: int) -> float:
    """Eq. 7."""
    return float(mean_uq(sums[0], sums[1], n_samples))


def finish_b(sums: Floats, n_samples: int) -> float:
    """The V-statistic."""
    return float(mean_b(sums[0], n_samples))
