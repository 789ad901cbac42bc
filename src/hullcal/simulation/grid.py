"""Which data sets and which tests make up a study?"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np

from hullcal import pvalues
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_fraction,
    check_integer,
    check_positive,
    check_seed,
)
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.simulation import protocols
from hullcal.simulation.scenarios import HOLDS, Simulated, scenario
from hullcal.simulation.specs import Test, measure_of, minimizer_of, null_of

__all__ = ["ALPHA", "Cell", "Grid"]

#: The levels of the paper's figures.
ALPHA = (0.05, 0.13, 0.21, 0.30, 0.38, 0.46, 0.54, 0.62, 0.70, 0.79, 0.87, 0.95)

#: What a scenario takes no notice of, and what it has instead: cells that differ there are one cell.
_FIXED: dict[str, dict[str, Any]] = {
    "S1": {"strength": None},
    "S1_vertex": {"strength": None},
    "calibrated": {"n_members": 2, "n_classes": 2, "spread": None, "strength": None},
}
_DATA, _TEST = 0, 1

Value = TypeVar("Value")


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

    @cached_property
    def key(self) -> str:
        """64 bits of this cell's own, in hexadecimal; no other cell of any grid matters to them."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def draw(self, seed: int, r: int) -> Simulated:
        """Data set r."""
        fixed = _FIXED.get(self.scenario, {})
        wanted = {
            name: value
            for name, value in asdict(self).items()
            if name not in fixed and name != "scenario"
        }
        rng = np.random.default_rng(self._stream(seed, r, _DATA))
        return scenario(self.scenario, rng=rng, **wanted)

    def test_seed(self, seed: int, r: int) -> int:
        """The seed of every test of data set r: measures and nulls are compared on common draws."""
        words = self._stream(seed, r, _TEST).generate_state(4)
        return sum(int(word) << (32 * i) for i, word in enumerate(words))

    def _stream(self, seed: int, r: int, purpose: int) -> np.random.SeedSequence:
        # Protocols that make the same data share them, so that only their tests differ.
        data = replace(self, protocol=protocols.resolve(self.protocol).of_data().name)
        # Words of the spawn key cannot run into those of the seed, which numpy pads.
        high, low = int(data.key[:8], 16), int(data.key[8:], 16)
        return np.random.SeedSequence(seed, spawn_key=(high, low, r, purpose))

    def described(self) -> dict[str, Any]:
        """What plays a part here, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        given = self.described()
        name = given.pop("scenario")
        return f"{name} ({', '.join(f'{key}={value}' for key, value in given.items())})"


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
    measure : str, Measure, or sequence of them
        As in "ece_conf", or "ece_conf:5" for five bins.
    null : str or sequence of str
    minimizer : str, Minimizer, or sequence of them
        As in "steepest", or "steepest:60" for a budget of 60 evaluations a start.
    n_datasets : int
        R, data sets in a cell.
    n_resamples : int
        D, null values of a test.
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
    measure: str | Measure | Iterable[str | Measure] = (
        *("ece_conf:5", "ece_conf:10", "ece_cwise:5", "ece_cwise:10"),
        *("hl_cwise:5", "hl_cwise:10", "skce_ul"),
    )
    null: str | Iterable[str] = "paper"
    minimizer: str | Minimizer | Iterable[str | Minimizer] = "steepest"
    n_datasets: int = 1000
    n_resamples: int = 100
    alpha: float | Iterable[float] = ALPHA
    seed: int | np.random.Generator | None = 0

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any], Any]] = {
            "scenario": _scenario,
            "n_samples": lambda value: check_integer(value, "n_samples", 1),
            "n_members": lambda value: check_integer(value, "n_members", 1),
            "n_classes": lambda value: check_integer(value, "n_classes", 2),
            "spread": lambda value: check_positive(value, "spread"),
            "strength": _strength,
            "protocol": lambda value: protocols.resolve(value).name,
            "measure": measure_of,
            "null": null_of,
            "minimizer": minimizer_of,
            "alpha": lambda value: check_fraction(value, "alpha"),
        }
        for name, check in checks.items():
            object.__setattr__(self, name, _several(getattr(self, name), name, check))
        for name in ("n_datasets", "n_resamples"):
            object.__setattr__(self, name, check_integer(getattr(self, name), name, 1))
        object.__setattr__(self, "seed", _seed(self.seed))
        for cell, test in product(self.cells, self.tests):
            test.check(cell.n_samples, cell.n_members, protocols.resolve(cell.protocol))
        levels: Any = self.alpha
        if pvalues.rejections_allowed(self.n_resamples, min(levels)) == 0:
            warnings.warn(
                f"no p-value of {self.n_resamples} resamples can be {min(levels):g} or less, so "
                f"nothing is rejected at that level; the smallest `n_resamples` that could is "
                f"{pvalues.smallest_n_resamples(min(levels))}.",
                HullcalWarning,
                stacklevel=3,
            )

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The distributions of data, each once."""
        names = [field.name for field in fields(Cell)]
        every = (
            dict(zip(names, values, strict=True))
            for values in product(*(getattr(self, name) for name in names))
        )
        return tuple(
            dict.fromkeys(Cell(**(values | _FIXED.get(values["scenario"], {}))) for values in every)
        )

    @cached_property
    def tests(self) -> tuple[Test, ...]:
        """The ways in which every data set is tested."""
        measures: Any = self.measure
        searches: Any = self.minimizer
        return tuple(
            Test(measure=measure, null=null, minimizer=minimizer)
            for measure, null, minimizer in product(measures, self.null, searches)
        )

    @property
    def n_tests(self) -> int:
        """How many tests the study runs."""
        return len(self.cells) * len(self.tests) * self.n_datasets

    def configuration(self) -> dict[str, Any]:
        """All that determines the numbers, as JSON can hold it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("measure", "minimizer"):
            values[name] = [each.described() for each in values[name]]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def _several(values: Any, name: str, check: Callable[[Any], Value]) -> tuple[Value, ...]:
    """One value or several, each checked, none twice."""
    several = isinstance(values, Iterable) and not isinstance(values, str)
    single = not several or getattr(values, "ndim", 1) == 0
    checked = tuple(dict.fromkeys(check(value) for value in ((values,) if single else values)))
    if not checked:
        raise InvalidInputError(f"`{name}` must have at least one value; got none. Leave it out.")
    return checked


def _scenario(name: Any) -> str:
    if isinstance(name, str) and name in HOLDS:
        return name
    raise InvalidInputError(
        f"`scenario` must be one of {', '.join(HOLDS)}; got {name!r:.80}. Mind the spelling."
    )


def _strength(value: Any) -> float:
    number = check_positive(value, "strength")
    if number > 1.0:
        raise InvalidInputError(
            f"`strength` must be at most 1, which leads to the corner; got {number!r}. "
            "Pass for example `strength=1.0`."
        )
    return number


def _seed(seed: Any) -> int:
    if seed is None or isinstance(seed, np.random.Generator):
        return check_seed(seed)
    return check_integer(seed, "seed", 0)
