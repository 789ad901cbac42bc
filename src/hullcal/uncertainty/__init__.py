"""Size of the set: how much epistemic uncertainty its members express, one value per instance."""

from __future__ import annotations

from hullcal.uncertainty.entropy import entropy_bounds, mutual_information
from hullcal.uncertainty.hartley import generalized_hartley
from hullcal.uncertainty.spread import interval_width, tv_diameter
from hullcal.uncertainty.summary import UNITS, Sizes, summary

__all__ = [
    "UNITS",
    "Sizes",
    "entropy_bounds",
    "generalized_hartley",
    "interval_width",
    "mutual_information",
    "summary",
    "tv_diameter",
]
