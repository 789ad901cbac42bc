"""Simulated classifier sets, and studies of how often tests err on them."""

from __future__ import annotations

from hullcal.simulation import protocols
from hullcal.simulation.grid import Grid, Test
from hullcal.simulation.scenarios import HOLDS, Simulated, boundary, draw_labels, in_hull, scenario
from hullcal.simulation.study import Study, StudyError, WorkerDied, run, wilson

# Last, since a file of the same name stands where the function is to stand.
from hullcal.simulation.power import Power, power  # isort: skip

__all__ = [
    "scenario",
    "Simulated",
    "HOLDS",
    "draw_labels",
    "in_hull",
    "boundary",
    "power",
    "Power",
    "Grid",
    "Test",
    "run",
    "Study",
    "StudyError",
    "WorkerDied",
    "wilson",
    "protocols",
]
