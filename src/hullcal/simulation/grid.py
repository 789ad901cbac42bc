"""Which data sets and which tests make up a study?"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import measures, minimizers, nulls
from hullcal._validation import check_fraction, check_integer, check_positive, check_seed, refusal
from hullcal.algorithm import calibration_test, check_level
from hullcal.results import CalibrationTestResult, TruthTestResult
from hullcal.sets import ClassifierSet
from hullcal.simulation import protocols
from hullcal.simulation.scenarios import FIXED, check_name, check_strength, scenario
from hullcal.truth import Refit, truth_test

#: Predictions and labels of one data set.
Data = tuple[NDArray[Any], NDArray[Any]]
#: The tests and the levels of the paper's figures.
PAPER_TESTS = tuple(
    f"calibrated:{measure}:paper"
    for measure in (
        *("ece_conf:5", "ece_conf", "ece_cwise:5", "ece_cwise", "hl_cwise:5", "hl_cwise"),
        "skce_ul",
    )
)
ALPHA = (0.05, 0.13, 0.21, 0.30, 0.38, 0.46, 0.54, 0.62, 0.70, 0.79, 0.87, 0.95)

#: What a test can ask.
QUESTIONS = ("calibrated", "truth")
#: The parts of an answer, in the order of a name, and where they are looked up.
_ROOMS: dict[str, Any] = {"measure": measures, "null": nulls, "minimizer": minimizers}


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A distribution of data sets."""

    name: str  # in messages
    key: str  # in a journal
    stream: tuple[int, ...]  # tells its random numbers from those of other sources
    sizes: tuple[int, int, int]  # N, M and K
    #: Gives predictions and labels of one data set.
    draw: Callable[[np.random.Generator], Data]
    protocol: protocols.Protocol = protocols.PAPER


@dataclass(frozen=True, kw_only=True)
class Test:
    """A question, and how it is answered.

    Studies take tests by name: the question, then a measure, a null and a search behind colons, each
    with a number of bins or evaluations if it has one, as in "calibrated:ece_conf:5:stacked" or
    "truth:ece_cwise:pairwise:100". What is left out is as in `calibration_test` and `truth_test`;
    "truth" alone is the likelihood test. Settings that have no name are given to this class.

    Parameters
    ----------
    question : {"calibrated", "truth"}
        Whether the hull contains a calibrated classifier, or the truth.
    measure, null, minimizer : optional
        As for `calibration_test` and `truth_test`. A null is for "calibrated" alone.

    Examples
    --------
    >>> print(Test.named("calibrated"), Test.named("truth"))
    calibrated:ece_conf:stacked truth
    >>> print(Test(question="truth", measure=measures.SKCE(bandwidth=0.5)))
    truth:skce_ul(bandwidth=0.5)
    """

    __test__: ClassVar[bool] = False  # none of pytest's
    question: str
    measure: Any = None
    null: Any = None
    minimizer: Any = None

    def __post_init__(self) -> None:
        truth = self.question == "truth"
        if self.question not in QUESTIONS:
            rule = f"must ask one of {', '.join(QUESTIONS)}"
            repair = "Name the question first, as in calibrated:ece_conf:stacked or truth."
            raise refusal("test", rule, f"{self.question!r:.80}", repair)
        if truth and not isinstance(self.null, Refit | None):
            came, repair = f"{self.null!r:.80} for truth", "Leave the null out."
            raise refusal("test", "must have a null with calibrated only", came, repair)
        if truth and self.measure is None:
            if self.minimizer is not None:
                repair = "Leave the search out, or name a measure."
                raise refusal("test", "searches by a measure only", "a search without one", repair)
            return
        given = {
            "measure": "ece_conf" if self.measure is None else self.measure,
            "minimizer": "steepest" if self.minimizer is None else self.minimizer,
            "null": Refit() if truth else self.null or nulls.USUAL,
        }
        for name, value in given.items():
            object.__setattr__(self, name, _ROOMS[name].resolve(value))

    @classmethod
    def named(cls, name: str | Test) -> Test:
        """The test of a name; a test as it is."""
        if isinstance(name, Test):
            return name
        question, *parts = str(name).split(":")
        found = {}
        for part, room in _ROOMS.items():
            if parts and parts[0] in room.available():
                n_words = 1 + (parts[1:2] != [] and parts[1].isdigit())
                found[part] = ":".join(parts[:n_words])
                del parts[:n_words]
        if parts and question in QUESTIONS:
            known = [each for room in _ROOMS.values() for each in room.available()]
            near = difflib.get_close_matches(parts[0], known, n=1)
            repair = f"Choose from: {', '.join(known)}."
            if near and near[0] != parts[0]:
                repair = f"Did you mean {near[0]}?"
            rule = "takes a measure, a null and a search behind its question, in this order"
            raise refusal("test", rule, f"{parts[0]!r:.80} in {name!r:.80}", repair)
        return cls(question=question, **found)

    def __str__(self) -> str:
        """The shortest name, with settings in parentheses where no name says them."""
        parts = [self.question]
        if self.measure is not None:
            parts.append(_in_words(self.measure, measures))
            parts += [_in_words(self.null, nulls)] * (self.question == "calibrated")
            if self.minimizer != minimizers.resolve("steepest"):
                parts.append(_in_words(self.minimizer, minimizers))
        return ":".join(parts)

    def columns(self) -> dict[str, Any]:
        """What a table calls it; None or an empty name where a part plays none."""
        if self.measure is None:
            likelihood = {"measure": "likelihood", "n_bins": None, "null": "", "minimizer": ""}
            return {"question": self.question} | likelihood
        return {
            "question": self.question,
            "measure": _in_words(self.measure, measures, leave_out="n_bins"),
            "n_bins": getattr(self.measure, "n_bins", None),
            "null": _in_words(self.null, nulls),
            "minimizer": _in_words(self.minimizer, minimizers),
        }

    def under(self, protocol: protocols.Protocol) -> Test:
        """The test as a protocol has it."""
        if self.measure is None:
            return self
        return replace(self, measure=protocol.measure(self.measure), null=protocol.null(self.null))

    def check(self, source: Source) -> None:
        """Refuse now what would be refused on the first data set."""
        test = self.under(source.protocol)
        if test.measure is None:
            return
        search = test.minimizer.budgeted(in_test=True)
        test.measure.check(source.sizes[0])
        search.check(test.measure, source.sizes[1])
        test.null.check(test.measure, search)

    def run(
        self, probs: ArrayLike | ClassifierSet, labels: ArrayLike | None, **how: Any
    ) -> CalibrationTestResult | TruthTestResult:
        """The result of `calibration_test` or `truth_test`, to which `how` goes."""
        if self.measure is None:
            return truth_test(probs, labels, **how)
        how |= {"measure": self.measure, "minimizer": self.minimizer}
        if self.question == "truth":
            return truth_test(probs, labels, **how)
        return calibration_test(probs, labels, null=self.null, **how)


def _in_words(value: Any, room: Any, leave_out: str = "") -> str:
    """The name of a measure, null or search, with what its plain name does not say."""
    own, name = value.settings(), value.name
    own.pop(leave_out, None)
    usual = room.resolve(name).settings() if name in room.available() else {}
    # A callable's only setting is its name.
    odd = {key: each for key, each in own.items() if each not in (usual.get(key), name)}
    if len(odd) == 1 and odd.keys() <= {"n_bins", "max_evaluations"}:
        return f"{name}:{odd.popitem()[1]}"
    return f"{name}({', '.join(f'{key}={each}' for key, each in odd.items())})" if odd else name


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
        given = {name: each for name, each in asdict(self).items() if each is not None}
        name, protocol = given.pop("scenario"), protocols.resolve(self.protocol)
        # Protocols that make the same data share their streams, so that only the tests differ.
        words = replace(self, protocol=protocol.of_data().name).key
        return Source(
            name=f"{name} ({', '.join(f'{key}={each}' for key, each in given.items())})",
            key=self.key,
            stream=(int(words[:8], 16), int(words[8:], 16)),
            sizes=(self.n_samples, self.n_members, self.n_classes),
            draw=partial(_drawn, name, given),
            protocol=protocol,
        )

    @property
    def key(self) -> str:
        """64 bits of this cell's own, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _drawn(name: str, given: dict[str, Any], rng: np.random.Generator) -> Data:
    data = scenario(name, rng=rng, **given)
    return data.probs, data.labels


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
    test : str or Test, or sequence of them
        As in "truth" or "calibrated:ece_conf:5:stacked"; see `Test`.
    n_datasets, n_resamples : int
        R, data sets in a cell, and D, null values of a test.
    alpha : float or sequence of float
        Levels at which errors are counted.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> grid = Grid(scenario=("S1", "S3"), test="truth", strength=(0.5, 1.0), n_datasets=10)
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
    test: str | Test | Iterable[str | Test] = PAPER_TESTS
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
            "test": Test.named,
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
        for cell, each in product(self.cells, self.tests):
            each.check(cell.source())
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

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests of every data set."""
        return cast(tuple[Test, ...], self.test)

    @property
    def n_tests(self) -> int:
        """How many tests the study runs."""
        return len(self.cells) * len(self.tests) * self.n_datasets

    def names(self) -> list[dict[str, Any]]:
        """What a table calls the tests of each cell."""
        tests = [test.columns() for test in self.tests]
        return [asdict(cell) | test for cell, test in product(self.cells, tests)]

    def configuration(self) -> dict[str, Any]:
        """All that determines the numbers, as JSON can hold it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
        return values | {"test": [str(test) for test in self.tests]}


def several(values: Any, name: str) -> list[Any]:
    """One value or several, as a list; None is no value."""
    one = isinstance(values, str) or not isinstance(values, Iterable)
    found = [values] if one or getattr(values, "ndim", 1) == 0 else list(values)
    if not found or any(value is None for value in found):
        raise refusal(name, "must have at least one value", "none", "Leave it out.")
    return found
