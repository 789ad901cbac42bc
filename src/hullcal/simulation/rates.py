"""How often do tests err? Rejections counted, with the interval that so many data sets allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import nulls
from hullcal._validation import refusal
from hullcal.nulls import TRUTH, Null
from hullcal.simulation.scenarios import HOLDS

#: The 97.5 % quantile of the standard normal distribution.
_Z = 1.959963984540054


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a proportion.

    Unlike the usual interval it keeps its coverage where errors are rare, and is never empty.

    >>> low, high = wilson(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.037)
    """
    if not 0 <= count <= total or total < 1:
        rule = "must lie between 0 and `total`, and `total` be at least 1"
        raise refusal("count", rule, f"{count} and {total}", "Are they exchanged?")
    share, square = count / total, _Z * _Z / total
    middle = (share + square / 2.0) / (1.0 + square)
    half = _Z / (1.0 + square) * math.sqrt(share * (1.0 - share) / total + square / (4.0 * total))
    # At the ends the two terms are equal, and rounding must not show.
    return (
        0.0 if count == 0 else max(0.0, middle - half),
        1.0 if count == total else min(1.0, middle + half),
    )


def kind_of_error(scenario: str, null: str | Null) -> str:
    """Which error a test can make: of the first kind where what it tests is true of the data.

    >>> kind_of_error("calibrated", "recentered"), kind_of_error("calibrated", "refit")
    ('Type I', 'Type II')
    """
    holds = HOLDS[scenario]
    asks_for_truth = nulls.resolve(null).hypothesis == TRUTH
    return "Type I" if (holds.truth if asks_for_truth else holds.calibrated) else "Type II"


def rates_of(kind: str, pvalues: ArrayLike, alpha: Sequence[float]) -> list[dict[str, Any]]:
    """Rejections and errors among the tests of one cell, one row a level."""
    values: NDArray[np.float64] = np.asarray(pvalues, dtype=np.float64)
    rows = []
    for level in alpha:
        rejections, total = int(np.count_nonzero(values <= level)), values.size
        low, high = wilson(rejections, total)
        errors = rejections if kind == "Type I" else total - rejections
        # Counted anew rather than taken from 1, so that an error rate of 0 is 0.
        error_low, error_high = wilson(errors, total)
        rows.append(
            {
                "alpha": level,
                "rejections": rejections,
                "n_datasets": total,
                "rejection_rate": rejections / total,
                "rejection_lower": low,
                "rejection_upper": high,
                "kind": kind,
                "error": errors / total,
                "error_lower": error_low,
                "error_upper": error_high,
            }
        )
    return rows
