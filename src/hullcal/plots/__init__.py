"""Pictures of a set, of a test and of its null, drawn on the Axes they are given."""

from __future__ import annotations

from hullcal.plots.reliability import ReliabilityDisplay, reliability
from hullcal.plots.results import evidence, level_curve, null_distribution, power_curve, weights
from hullcal.plots.sets import average_against_weighted, simplex, size_distribution

__all__ = [
    "ReliabilityDisplay",
    "average_against_weighted",
    "evidence",
    "level_curve",
    "null_distribution",
    "power_curve",
    "reliability",
    "simplex",
    "size_distribution",
    "weights",
]
