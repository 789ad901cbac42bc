"""Pictures of a set, of a test and of its null: one figure per file, drawn on the Axes it is given."""

from __future__ import annotations

from hullcal.plots.average_against_weighted import average_against_weighted
from hullcal.plots.level_curve import level_curve
from hullcal.plots.null_distribution import null_distribution
from hullcal.plots.power_curve import power_curve
from hullcal.plots.reliability import reliability
from hullcal.plots.simplex import simplex
from hullcal.plots.size_distribution import size_distribution
from hullcal.plots.weights import weights

__all__ = [
    "average_against_weighted",
    "level_curve",
    "null_distribution",
    "power_curve",
    "reliability",
    "simplex",
    "size_distribution",
    "weights",
]
