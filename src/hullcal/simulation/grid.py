"""Which data sets and which tests make up a study?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import measures, minimizers, nulls
from hullcal._validation import (
    InvalidInputError,
    check_fraction,
    check_integer,
    check_positive,
    check_seed,
    refusal,
)
from hullcal.algorithm import check_level
from hullcal.simulation import protocols
from hullcal.simulation.running import Source, Way
from hullcal.simulation.scenarios import FIXED, check_name, check_strength, scenario

#: The levels of the paper's figures.
ALPHA = (0.05, 0.13, 0.21, 0.30, 0.38, 0.46, 0.54, 0.62, 0.70, 0.79, 0.87, 0.95)

#: The axes of a test, and where their names are looked up.
_ROOMS: dict[str, Any] = {"measure": measures, "null": nulls, "minimizer": minimizers}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One distribution of data sets, under one protocol; None where a parameter plays no part."""

    scenario: str
    n_samples: int
    n_members: int
    n_classes: int
    spread: float | None
    strength: float | None
    protocol: str

    def source(self) -> Source:
        """Where its data sets come from."""
        protocol = protocols.resolve(self.protocol)
        # Protocols that make the same data share their streams, so that only the tests differ.
        words = replace(self, protocol=protocol.of_data().name).key
        return Source(
            name=str(self),
            key=self.key,
            stream=(int(words[:8], 16), int(words[8:], 16)),
            sizes=(self.n_samples, self.n_members, self.n_classes),
            draw=self.draw,
            protocol=protocol,
        )

    @property
    def key(self) -> str:
        """64 bits of this cell's own, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions and labels of a data set."""
        data = scenario(self.scenario, rng=rng, **self._given())
        return data.probs, data.labels

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self._given().items())
        return f"{self.scenario} ({given})"

    def _given(self) -> dict[str, Any]:
        values = asdict(self).items()
        return {key: each for key, each in values if key != "scenario" and each is not None}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A study: every combination of data, each tested in every combination of ways.

    Every axis takes one value or several. All tests of a cell see the same data sets, and a cell's
    data sets depend on nothing but the seed and the cell, so that a larger grid repeats a smaller one.

    Parameters
    ----------
    scenario : str or sequence of str
        "S1", "S1_vertex", "S2", "S3" or "calibrated"; see `hullcal.simulation.scenario`.
    n_samples, n_members, n_classes : int or sequence of int
        N, M, K. The scenario "calibrated" has M = K = 2 whatever is said here.
    spread, strength : float or sequence of float
        u, and how far the truth may go towards the corner; a scenario that does not know them has
        one cell for all their values.
    protocol : str or sequence of str
        "paper", "authors", or one of these with switches; see `hullcal.simulation.protocols`.
    measure, null, minimizer : str, Measure, Null or Minimizer, or sequence of them
        As in "ece_conf:5" for five bins, or "steepest:60" for a budget of 60 evaluations a start.
    n_datasets, n_resamples : int
        R, data sets in a cell, and D, null values of a test.
    alpha : float or sequence of float
        Levels at which errors are counted.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> grid = Grid(scenario=("S1", "S3"), measure="ece_conf:5", strength=(0.5, 1.0), n_datasets=10)
    >>> len(grid.cells), len(grid.tests), grid.n_tests
    (3, 1, 30)
    """

    scenario: str | Iterable[str] = ("S1", "S2", "S3")
    n_samples: int | Iterable[int] = 100
    n_members: int | Iterable[int] = 10
    n_classes: int | Iterable[int] = 10
    spread: float | Iterable[float] = 0.01
    strength: float | Iterable[float] = 1.0
    protocol: str | Iterable[str] = "paper"
    measure: str | measures.Measure | Iterable[str | measures.Measure] = (
        *("ece_conf:5", "ece_conf:10", "ece_cwise:5", "ece_cwise:10"),
        *("hl_cwise:5", "hl_cwise:10", "skce_ul"),
    )
    null: str | nulls.Null | Iterable[str | nulls.Null] = "paper"
    minimizer: str | minimizers.Minimizer | Iterable[str | minimizers.Minimizer] = "steepest"
    n_datasets: int = 1000
    n_resamples: int = 100
    alpha: float | Iterable[float] = ALPHA
    seed: int | np.random.Generator | None = 0

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any], Any]] = {
            "scenario": lambda value: check_name(value, "scenario"),
            "n_samples": lambda value: check_integer(value, "n_samples", 1),
            "n_members": lambda value: check_integer(value, "n_members", 1),
            "n_classes": lambda value: check_integer(value, "n_classes", 2),
            "spread": lambda value: check_positive(value, "spread"),
            "strength": check_strength,
            "protocol": lambda value: protocols.resolve(value).name,
            **{name: room.resolve for name, room in _ROOMS.items()},
            "alpha": lambda value: check_fraction(value, "alpha"),
        }
        for name, check in checks.items():
            values = [check(value) for value in several(getattr(self, name), name)]
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        for name in ("n_datasets", "n_resamples"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name, 1))
        drawn = self.seed is None or isinstance(self.seed, np.random.Generator)
        seed = check_seed(self.seed) if drawn else check_integer(self.seed, "seed", 0)
        object.__setattr__(self, "seed", seed)
        for cell, test in product(self.cells, self.tests):
            test.check(cell.source())
        levels: Any = self.alpha
        check_level(min(levels), self.n_resamples)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The distributions of data, each once: some differ only in what their scenario ignores."""
        names = [field.name for field in fields(Cell)]
        found = []
        for each in product(*(getattr(self, name) for name in names)):
            values = dict(zip(names, each, strict=True))
            found.append(Cell(**(values | FIXED.get(values["scenario"], {}))))
        return tuple(dict.fromkeys(found))

    @cached_property
    def tests(self) -> tuple[Way, ...]:
        """The ways in which every data set is tested."""
        parts = product(*(getattr(self, name) for name in _ROOMS))
        return tuple(Way(**dict(zip(_ROOMS, each, strict=True))) for each in parts)

    @property
    def n_tests(self) -> int:
        """How many tests the study runs."""
        return len(self.cells) * len(self.tests) * self.n_datasets

    def names(self) -> list[dict[str, Any]]:
        """What a table calls the tests of each cell: settings show where the plain name has others."""
        ways = []
        for test in self.tests:
            budget = test.minimizer.max_evaluations
            way = {
                "measure": label(test.measure, measures),
                "n_bins": getattr(test.measure, "n_bins", None),
                "null": label(test.null, nulls),
                "minimizer": test.minimizer.name + ("" if budget is None else f":{budget}"),
            }
            ways.append(way)
        return [asdict(cell) | way for cell, way in product(self.cells, ways)]

    def configuration(self) -> dict[str, Any]:
        """All that determines the numbers, as JSON can hold it."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value, room = getattr(self, field.name), _ROOMS.get(field.name)
            if isinstance(value, tuple):
                value = [each if room is None else _spec(each, room) for each in value]
            values[field.name] = value
        return values


def several(values: Any, name: str) -> list[Any]:
    """One value or several, as a list; None is no value."""
    one = isinstance(values, str) or not isinstance(values, Iterable)
    found = [values] if one or getattr(values, "ndim", 1) == 0 else list(values)
    if not found or any(value is None for value in found):
        raise refusal(name, "must have at least one value", "none", "Leave it out.")
    return found


def label(value: measures.Measure | nulls.Null, room: Any) -> str:
    """The name of a measure or null, with what its plain name does not say, but for the bins."""
    own, name = value.settings(), value.name
    own.pop("n_bins", None)
    plain = room.resolve(name).settings() if name in room.available() else {}
    # A callable's only setting is its name.
    odd = [f"{key}={each}" for key, each in own.items() if each not in (plain.get(key), name)]
    return f"{name}({', '.join(odd)})" if odd else name


def _spec(value: Any, room: Any) -> Any:
    """The name that gives a value again, as in ``ece_conf:5``, or its settings where none does."""
    number = getattr(value, "n_bins", getattr(value, "max_evaluations", None))
    name = value.name if number is None else f"{value.name}:{number}"
    try:
        if room.resolve(name) == value:
            return name
    except InvalidInputError:
        pass
    return {"name": value.name, "settings": value.settings()}
