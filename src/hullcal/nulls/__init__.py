"""Reference distributions of the test: one file each, discovered, each for a stated hypothesis."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from hullcal._discovery import class_named, class_names, discover, named
from hullcal.nulls._base import (
    CALIBRATED,
    ONE_CALIBRATED,
    TRUTH,
    Null,
)

if TYPE_CHECKING:
    # Found by name when the program runs; a type checker has to be told of them.
    from hullcal.nulls.maximized import Maximized as Maximized
    from hullcal.nulls.paper import Paper as Paper
    from hullcal.nulls.recentered import Recentered as Recentered
    from hullcal.nulls.refit import Refit as Refit
    from hullcal.nulls.stacked import Stacked as Stacked

__all__ = [
    "CALIBRATED",
    "ONE_CALIBRATED",
    "TRUTH",
    "Null",
    "available",
    "resolve",
]

#: The null where none is named, for predictions that fit into memory, and for larger ones.
USUAL, BEYOND_MEMORY = "stacked", "recentered"


@cache
def _registry() -> dict[str, Null]:
    return discover(sys.modules[__name__], Null)


def available() -> tuple[str, ...]:
    """Names of the nulls that `null=` accepts.

    >>> available()
    ('maximized', 'paper', 'recentered', 'refit', 'stacked')
    """
    return tuple(sorted(_registry()))


def resolve(null: str | Null | None) -> Null:
    """The null of a name; a null as it is; the usual one for None."""
    if null is None:
        null = USUAL
    if isinstance(null, Null):
        return null
    return named(null, _registry(), "null", "a Null")


def __getattr__(name: str) -> Any:
    """The classes themselves: `nulls.Refit` and so on."""
    return class_named(name, _registry(), __name__)


def __dir__() -> list[str]:
    return [*__all__, *class_names(_registry())]
