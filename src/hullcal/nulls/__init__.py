"""Reference distributions of the test: one file each, discovered, each for a stated hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hullcal._discovery import Registry
from hullcal.nulls._base import CALIBRATED, ONE_CALIBRATED, TRUTH, Null

if TYPE_CHECKING:
    # Found by name when the program runs; listed here for type checkers.
    from hullcal.nulls.maximized import Maximized as Maximized
    from hullcal.nulls.paper import Paper as Paper
    from hullcal.nulls.recentered import Recentered as Recentered
    from hullcal.nulls.stacked import Stacked as Stacked

__all__ = ["CALIBRATED", "ONE_CALIBRATED", "TRUTH", "Null", "available", "resolve"]

#: The null where none is named, for predictions that fit into memory, and for larger ones.
USUAL, BEYOND_MEMORY = "stacked", "recentered"


_registry = Registry(__name__, Null, "null")
available = _registry.available
resolve = _registry.resolve
# The classes themselves, such as `nulls.Stacked`.
__getattr__ = _registry.class_named
__dir__ = _registry.listed
