"""An objective over blocks of rows: every answer is a pass over them, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.drawn_rows import LEAF, leaf_draws
from hullcal._validation import check_whole
from hullcal.measures import Measure
from hullcal.objectives import _row_loops as loops
from hullcal.objectives.base import (
    EM_ITERATIONS,
    EM_TOLERANCE,
    START_ITERATIONS,
    Draw,
    Floats,
    Integers,
    Objective,
    fingerprint_of,
)
from hullcal.simplex import settled
from hullcal.threads import in_order

#: Probabilities of a block, so few that they stay in the cache.
_IN_CACHE = 2**16
#: Rows that are added up from zero before their sum joins the others', at least, and an even number,
#: since no pair of rows may be in two ranges; and at most so many such ranges.
_RANGE, _RANGES = 2**13, 256
#: Bytes of sums that one pass may return.
_SUMS = 2**27
#: Replicates searched in step, and those of `resampled`: a pass over the rows serves them all.
TOGETHER, _RESAMPLED_TOGETHER = 16, 128


def range_size(n_samples: int) -> int:
    """Rows in a range. Sums over ranges are added in order, and no backend may cut them elsewhere."""
    size = _RANGE
    while size * _RANGES < n_samples:
        size *= 2
    return size


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Predictions (n_rows, n_all_members, n_classes) and labels of consecutive rows of the data."""

    probs: NDArray[np.floating]
    labels: NDArray[np.int32]
    first: int

    def readable(self) -> Rows:
        """The same, copied only if the compiled loops could not read them as they are."""
        probs = self.probs
        if probs.dtype not in (np.float32, np.float64) or not probs.flags.c_contiguous:
            probs = np.ascontiguousarray(probs, dtype=np.float64)
        return Rows(probs, np.ascontiguousarray(self.labels), self.first)


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Labellings and weightings of the rows that are never written down, only how to make them."""

    kind: int
    replicates: Integers
    key: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    #: The combination that labels are drawn from.
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def data(cls) -> Cases:
        """The one case of the data themselves."""
        return cls(kind=loops.DATA, replicates=np.zeros(1, dtype=np.int64))

    @classmethod
    def labels(cls, weights: Floats, key: NDArray[np.uint64], first: int, last: int) -> Cases:
        """Labels of replicates first to last - 1, drawn from the combination."""
        replicates = np.arange(first, last)
        return cls(kind=loops.DRAWN_LABELS, replicates=replicates, key=key, weights=weights)

    @classmethod
    def rows(cls, key: NDArray[np.uint64], first: int, last: int) -> Cases:
        """Rows of replicates first to last - 1, drawn with their labels."""
        return cls(kind=loops.DRAWN_ROWS, replicates=np.arange(first, last), key=key)

    @classmethod
    def first_rows(cls, numbers: Integers) -> Cases:
        """The first so many rows of the data, for each number."""
        return cls(kind=loops.FIRST_ROWS, replicates=numbers)

    def __len__(self) -> int:
        return len(self.replicates)

    def only(self, which: Integers) -> Cases:
        """Some of them."""
        return replace(self, replicates=self.replicates[which])


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """Sums over all rows, of the given shape, that can be had a few rows at a time."""

    n_samples: int
    n_classes: int
    #: Where the distinct members stand among the user's.
    positions: Integers
    #: Rows that stay together when rows are drawn.
    rows_per_unit: int = 1

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Of the sums."""

    def over(self, rows: Rows) -> Floats:
        """Sums over the rows of one range."""
        sums = np.zeros(self.shape)
        self._add(rows.readable(), sums)
        return sums

    @abstractmethod
    def _add(self, rows: Rows, sums: Floats) -> None:
        """Add the share of these rows."""

    @property
    def _block_rows(self) -> int:
        """Rows whose packed members stay in the cache; an even number, since pairs stay together."""
        size = 2
        while size < LEAF and 2 * size * len(self.positions) * self.n_classes <= _IN_CACHE:
            size *= 2
        return size

    @property
    def _n_units(self) -> int:
        return self.n_samples // self.rows_per_unit

    def _draws(self, key: NDArray[np.uint64], replicates: Integers, rows: Rows) -> Integers:
        """How many draws fall into each leaf of these rows, (n_leaves, n_replicates)."""
        leaf_rows = LEAF * self.rows_per_unit
        first = rows.first // leaf_rows
        last = -(-(rows.first + len(rows.labels)) // leaf_rows)
        # An odd last row belongs to no pair, and may be all that a last leaf would have.
        drawn_from = min(last, -(-self._n_units // LEAF))
        draws = np.zeros((last - first, len(replicates)), dtype=np.int64)
        draws[: drawn_from - first] = leaf_draws(
            key, replicates, self._n_units, (first, drawn_from)
        ).T
        return draws

    def _arguments(self, cases: Cases, rows: Rows) -> tuple[Any, ...]:
        """What the loops must know of these rows, and to make their cases."""
        draws = np.zeros((0, 0), dtype=np.int64)
        if cases.kind == loops.DRAWN_ROWS:
            draws = self._draws(cases.key, cases.replicates, rows)
        given = rows.probs, self.positions, rows.labels, rows.first, self._block_rows
        own = cases.kind, cases.key, cases.replicates, cases.weights
        return *given, *own, draws, self._n_units, self.rows_per_unit


@dataclass(frozen=True, kw_only=True)
class _Residuals(Job):
    """Residual sums of a measure after moves from some bases, each for one case.

    Moves are those of `Objective.moves`; without a column of them, the sums at the bases themselves.
    """

    cases: Cases
    measure: Measure
    parameters: Floats
    bases: Floats
    case_of: Integers
    amounts: Floats

    @property
    def shape(self) -> tuple[int, int]:
        n_bases, n_moves = self.amounts.shape
        return n_bases * max(1, n_moves), self.measure.state_size(self.n_classes)

    def _add(self, rows: Rows, sums: Floats) -> None:
        assert self.measure.accumulate is not None
        loops.residuals(
            self.measure.accumulate,
            *self._arguments(self.cases, rows),
            self.parameters,
            self.measure.scratch_size(self.n_classes, self._block_rows),
            int("places" in self.measure.traits),
            self.bases,
            self.case_of,
            self.amounts,
            sums,
        )


@dataclass(frozen=True, kw_only=True)
class _Resampled(Job):
    """Lines 2, 4 and 5 of Algorithm 1: residual sums of replicates, each at weights of its own."""

    measure: Measure
    parameters: Floats
    key: NDArray[np.uint64]
    replicates: Integers
    weights: Floats
    #: Whether every row is drawn once, in some order that no sum depends on.
    permuted: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.replicates), self.measure.state_size(self.n_classes)

    def _add(self, rows: Rows, sums: Floats) -> None:
        assert self.measure.accumulate is not None
        draws = np.zeros((0, 0), dtype=np.int64)
        if not self.permuted:
            draws = self._draws(self.key, self.replicates, rows)
        most = max(self._block_rows, int(draws.max(initial=0)))
        loops.resampled(
            self.measure.accumulate,
            rows.probs,
            self.positions,
            rows.first,
            self._block_rows,
            self.key,
            self.replicates,
            draws,
            self._n_units,
            int(self.permuted),
            self.weights,
            self.parameters,
            self.measure.scratch_size(self.n_classes, most),
            sums,
        )


@dataclass(frozen=True, kw_only=True)
class _EmStep(Job):
    """One step of EM at each case's weights: gains of the members, log-likelihood, weight of the rows."""

    cases: Cases
    at: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cases), len(self.positions) + 2

    def _add(self, rows: Rows, sums: Floats) -> None:
        loops.em(self.at, sums, *self._arguments(self.cases, rows))


@dataclass(frozen=True, kw_only=True)
class _Fingerprint(Job):
    """See `fingerprint_of`."""

    @property
    def shape(self) -> tuple[int, int]:
        return 3, len(self.positions)

    def _add(self, rows: Rows, sums: Floats) -> None:
        sums += fingerprint_of(rows.probs[:, self.positions], rows.labels, rows.first)


class Passes(ABC):
    """Who passes over the rows: this machine's threads, or workers that hold chunks of them."""

    n_samples: int
    n_classes: int
    #: Where the distinct members stand among the user's.
    positions: Integers
    #: How many times over a job's sums are held before they are added.
    n_returned: int = 1

    @abstractmethod
    def total(self, job: Job) -> Floats:
        """The job's sums over all rows."""

    @property
    def sizes(self) -> dict[str, Any]:
        """What every job over these rows needs to know."""
        n_samples, n_classes = self.n_samples, self.n_classes
        return {"n_samples": n_samples, "n_classes": n_classes, "positions": self.positions}

    def fingerprint(self) -> Floats:
        """A few numbers that other data, or the same in another order, would hardly have."""
        return self.total(_Fingerprint(**self.sizes)).ravel()


class ArrayPasses(Passes):
    """Threads over ranges of the rows of an array, which is read where it is."""

    def __init__(
        self,
        probs: NDArray[np.floating],
        labels: NDArray[np.int32],
        positions: Integers | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.n_samples, n_members, self.n_classes = probs.shape
        self.positions = np.arange(n_members) if positions is None else positions
        self._probs, self._labels, self._n_jobs = probs, labels, n_jobs
        # Those that threads work on, and those that wait to be added.
        self.n_returned = 2 * n_jobs

    def total(self, job: Job) -> Floats:
        size = range_size(self.n_samples)

        def over(first: int) -> Floats:
            check_whole(self._probs)
            rows = slice(first, first + size)
            return job.over(Rows(self._probs[rows], self._labels[rows], first))

        total = np.zeros(job.shape)
        # In order, so that the number of threads cannot change a bit.
        for sums in in_order(over, range(0, self.n_samples, size), n_jobs=self._n_jobs):
            total += sums
        return total


@dataclass(eq=False)
class Chunked(Objective):
    """g by passes; cases are drawn anew in each of them."""

    measure: Measure
    copies: Integers
    passes: Passes
    parameters: Floats
    offset: Floats
    cases: Cases = field(default_factory=Cases.data)

    def __post_init__(self) -> None:
        self.n_members, self.n_cases = len(self.passes.positions), len(self.cases)
        self.n_classes, self.n_samples = self.passes.n_classes, self.passes.n_samples

    @classmethod
    def of(cls, measure: Measure, copies: Integers, passes: Passes) -> Chunked:
        """The data's objective, for a measure that adds up over rows."""
        parameters = measure.parameters_without_average()
        assert parameters is not None
        return cls(measure, copies, passes, parameters, measure.no_offset(passes.n_classes))

    def together(self, n_evaluations: int | None) -> int:
        return _RESAMPLED_TOGETHER if n_evaluations is None else TOGETHER

    def threads(self, wanted: int) -> int:
        return 1

    @property
    def _common(self) -> dict[str, Any]:
        return {**self.passes.sizes, "rows_per_unit": self.measure.rows_per_unit}

    def at(self, weights: Floats) -> Floats:
        cases = np.arange(self.n_cases)
        return self.values(np.repeat(weights[np.newaxis], len(cases), axis=0), cases)

    def moves(self, bases: Floats, cases: Integers, amounts: Floats) -> Floats:
        # In as few passes as sums leave room for.
        n_moves = max(1, amounts.shape[1])
        at_once = max(1, self._most_sums // n_moves)
        values = np.empty((len(bases), n_moves))
        for first in range(0, len(bases), at_once):
            here = slice(first, first + at_once)
            states = self._states(bases[here], cases[here], amounts[here])
            values[here] = self._finished(states).reshape(-1, n_moves)
        if amounts.shape[1] > 0:
            values[amounts == 0.0] = np.inf
        return values

    @property
    def _most_sums(self) -> int:
        """How many values one pass may be asked for."""
        size = 8 * self.measure.state_size(self.n_classes) * self.passes.n_returned
        return max(1, _SUMS // size)

    def _states(self, bases: Floats, cases: Integers, amounts: Floats) -> Floats:
        # Only the cases that are asked for have to be drawn.
        wanted, case_of = np.unique(cases, return_inverse=True)
        job = _Residuals(
            measure=self.measure,
            parameters=self.parameters,
            cases=self.cases.only(wanted),
            bases=np.ascontiguousarray(bases),
            case_of=case_of.astype(np.int64),
            amounts=np.ascontiguousarray(amounts),
            **self._common,
        )
        return self.passes.total(job)

    def _finished(self, states: Floats) -> Floats:
        finish = self.measure.finish
        assert finish is not None
        return np.array(
            [finish(state, self.offset, self.parameters, self.n_samples) for state in states]
        )

    def resampled(
        self, key: NDArray[np.uint64], replicates: Integers, weights: Floats, *, permuted: bool
    ) -> Floats:
        values = np.empty(len(replicates))
        for first in range(0, len(replicates), self._most_sums):
            here = slice(first, first + self._most_sums)
            job = _Resampled(
                measure=self.measure,
                parameters=self.parameters,
                key=key,
                replicates=replicates[here],
                weights=weights[here],
                permuted=permuted,
                **self._common,
            )
            values[here] = self._finished(self.passes.total(job))
        return values

    def likeliest(self) -> Floats:
        weights = np.full((self.n_cases, self.n_members), 1.0 / self.n_members)
        for _ in range(START_ITERATIONS):
            weights, _, _ = self._em(self.cases, weights)
        return settled(weights)[:, np.newaxis]

    def maximum_likelihood(self) -> Floats:
        weights = np.full((1, self.n_members), 1.0 / self.n_members)
        previous, first = -np.inf, self.cases.only(np.zeros(1, dtype=np.int64))
        for _ in range(EM_ITERATIONS):
            better, score, total = self._em(first, weights)
            if total[0] == 0.0 or score[0] - previous < EM_TOLERANCE * total[0]:
                break
            weights, previous = better, score[0]
        found: Floats = weights[0]
        return found

    def impossible(self) -> int:
        # A step of EM leaves these rows out.
        _, _, total = self._em(Cases.data(), np.full((1, self.n_members), 1.0 / self.n_members))
        return self.n_samples - round(float(total[0]))

    def _em(self, cases: Cases, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights after a step of EM from these, log-likelihoods at these, and weights of all rows."""
        sums = self.passes.total(_EmStep(cases=cases, at=weights, **self._common))
        better = weights * sums[:, : self.n_members]
        norms = better.sum(axis=1, keepdims=True)
        better = np.where(norms > 0.0, better / np.where(norms > 0.0, norms, 1.0), weights)
        return better, sums[:, -2], sums[:, -1]

    def recentered(self, weights: Floats) -> Chunked:
        nothing = self.measure.no_offset(self.n_classes)
        data = replace(self, cases=Cases.data(), offset=nothing)
        states = data._states(weights[np.newaxis], np.zeros(1, dtype=np.int64), np.zeros((1, 0)))
        data._finished(states)
        return replace(self, offset=states[0, : len(nothing)].copy())

    def fingerprint(self) -> Floats:
        return self.passes.fingerprint()

    def drawing_labels(self, weights: Floats, key: NDArray[np.uint64]) -> Draw:
        return lambda first, last: replace(self, cases=Cases.labels(weights, key, first, last))

    def drawing_rows(self, key: NDArray[np.uint64]) -> Draw:
        return lambda first, last: replace(self, cases=Cases.rows(key, first, last))
