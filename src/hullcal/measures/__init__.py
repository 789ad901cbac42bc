"""Calibration measures: one file each, discovered; `available()` names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hullcal._discovery import Registry
from hullcal.measures._base import CustomMeasure, Measure
from hullcal.measures._base import Trait as Trait

if TYPE_CHECKING:
    # Found by name when the program runs; listed here for type checkers.
    from hullcal.measures.ece_conf import ConfidenceECE as ConfidenceECE
    from hullcal.measures.ece_cwise import ClasswiseECE as ClasswiseECE
    from hullcal.measures.hl_cwise import HosmerLemeshow as HosmerLemeshow
    from hullcal.measures.skce import SKCE as SKCE

__all__ = ["CustomMeasure", "Measure", "available", "resolve"]


_registry = Registry(__name__, Measure, "measure", number="n_bins")
available = _registry.available


def resolve(measure: str | Measure | Callable[..., Any]) -> Measure:
    """The measure of a name; a measure or a callable as it is.

    >>> resolve("ece_conf:5")
    ConfidenceECE(n_bins=5, smooth=False)
    """
    if callable(measure) and not isinstance(measure, type | Measure):
        return CustomMeasure(function=measure)
    return _registry.resolve(measure)  # type: ignore[arg-type]  # a class is refused there


# The classes themselves, such as `measures.SKCE`.
__getattr__ = _registry.class_named
__dir__ = _registry.listed
