"""Searches over the simplex (line 7 of Algorithm 1): one file each, discovered."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from hullcal._discovery import class_named, class_names, discover, named
from hullcal.minimizers._base import Minima, Minimizer

if TYPE_CHECKING:
    # Found by name when the program runs; a type checker has to be told of them.
    from hullcal.minimizers.cobyla import Cobyla as Cobyla
    from hullcal.minimizers.exact import Exact as Exact
    from hullcal.minimizers.pairwise import Pairwise as Pairwise
    from hullcal.minimizers.random import Random as Random
    from hullcal.minimizers.slsqp import Slsqp as Slsqp
    from hullcal.minimizers.steepest import Steepest as Steepest

__all__ = ["Minima", "Minimizer", "available", "resolve"]


@cache
def _registry() -> dict[str, Minimizer]:
    return discover(sys.modules[__name__], Minimizer)


def available() -> tuple[str, ...]:
    """Names of the searches that `minimizer=` accepts.

    >>> available()
    ('cobyla', 'exact', 'pairwise', 'random', 'slsqp', 'steepest')
    """
    return tuple(sorted(_registry()))


def resolve(minimizer: str | Minimizer) -> Minimizer:
    """The search of a name; a search as it is.

    >>> resolve("pairwise:200")
    Pairwise(max_evaluations=200)
    """
    if isinstance(minimizer, Minimizer):
        return minimizer
    return named(minimizer, _registry(), "minimizer", "a Minimizer", number="max_evaluations")


def __getattr__(name: str) -> Any:
    """The classes themselves: `minimizers.Pairwise` and so on."""
    return class_named(name, _registry(), __name__)


def __dir__() -> list[str]:
    return [*__all__, *class_names(_registry())]
