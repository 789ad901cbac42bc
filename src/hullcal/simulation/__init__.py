"""Simulated classifier sets, and studies of how often tests err on them."""

from __future__ import annotations

from hullcal.simulation import protocols
from hullcal.simulation.grid import Grid
from hullcal.simulation.running import StudyError, WorkerDied
from hullcal.simulation.scenarios import HOLDS, Simulated, scenario
from hullcal.simulation.study import Study, run, wilson

# Last, since a file of the same name stands where the function is to stand.
from hullcal.simulation.boundary import boundary, in_hull  # isort: skip
from hullcal.simulation.power import Power, power  # isort: skip

__all__ = [
    "scenario",
    "Simulated",
    "HOLDS",
    "in_hull",
    "boundary",
    "power",
    "Power",
    "Grid",
    "run",
    "Study",
    "StudyError",
    "WorkerDied",
    "wilson",
    "protocols",
]
