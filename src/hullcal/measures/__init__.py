"""Calibration measures: one file each, discovered; `available()` names them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from hullcal._discovery import class_named, class_names, discover, named
from hullcal.measures._base import CustomMeasure, Measure

if TYPE_CHECKING:
    # Found by name when the program runs; a type checker has to be told of them.
    from hullcal.measures.ece_conf import ConfidenceECE as ConfidenceECE
    from hullcal.measures.ece_cwise import ClasswiseECE as ClasswiseECE
    from hullcal.measures.hl_cwise import HosmerLemeshow as HosmerLemeshow
    from hullcal.measures.skce import SKCE as SKCE

__all__ = ["CustomMeasure", "Measure", "available", "resolve"]


@cache
def _registry() -> dict[str, Measure]:
    return discover(sys.modules[__name__], Measure)


def available() -> tuple[str, ...]:
    """Names of the measures that `measure=` accepts.

    >>> print(*available())
    ece_conf ece_conf_smooth ece_cwise ece_cwise_smooth hl_cwise skce_b skce_ul skce_uq
    """
    return tuple(sorted(_registry()))


def resolve(measure: str | Measure | Callable[..., Any]) -> Measure:
    """The measure of a name; a measure or a callable as it is.

    >>> resolve("ece_conf:5")
    ConfidenceECE(n_bins=5, smooth=False)
    """
    if isinstance(measure, Measure):
        return measure
    if callable(measure) and not isinstance(measure, type):
        return CustomMeasure(function=measure)
    alternative = "a Measure or a callable g(probs, labels)"
    return named(measure, _registry(), "measure", alternative, number="n_bins")


def __getattr__(name: str) -> Any:
    """The classes themselves: `measures.SKCE` and so on."""
    return class_named(name, _registry(), __name__)


def __dir__() -> list[str]:
    return [*__all__, *class_names(_registry())]
