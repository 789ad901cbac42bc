"""Searches over the simplex (line 7 of Algorithm 1): one file each, discovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hullcal._discovery import Registry
from hullcal.minimizers._base import Minima, Minimizer

if TYPE_CHECKING:
    # Found by name when the program runs; listed here for type checkers.
    from hullcal.minimizers.cobyla import Cobyla as Cobyla
    from hullcal.minimizers.exact import Exact as Exact
    from hullcal.minimizers.pairwise import Pairwise as Pairwise
    from hullcal.minimizers.random import Random as Random
    from hullcal.minimizers.slsqp import Slsqp as Slsqp
    from hullcal.minimizers.steepest import Steepest as Steepest

__all__ = ["Minima", "Minimizer", "available", "resolve"]


_registry = Registry(__name__, Minimizer, "minimizer", number="max_evaluations")
available = _registry.available
resolve = _registry.resolve
# The classes themselves, such as `minimizers.Pairwise`.
__getattr__ = _registry.class_named
__dir__ = _registry.listed
