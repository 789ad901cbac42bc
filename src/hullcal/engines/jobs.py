"""What a pass over the rows adds up. A job knows a block's share; an engine brings blocks and adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.resampling import LEAF, leaf_draws
from hullcal.engines import _row_loops as loops
from hullcal.engines._likelihood_loops import em, impossible
from hullcal.measures import Measure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Probabilities of a block, so few that they stay in the cache.
_IN_CACHE = 2**16
#: Rows that are added up from zero before their sum joins the others', at least, and an even number,
#: since no pair of rows may be in two ranges; and at most so many such ranges.
_RANGE, _RANGES = 2**13, 256


def range_size(n_samples: int) -> int:
    """Rows in a range. Sums over ranges are added in order, and no engine may cut them elsewhere."""
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
class Job(ABC):
    """A sum over all rows, of the given shape, that can be had a few rows at a time."""

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


_NO_KEY, _NO_WEIGHTS = np.zeros(2, dtype=np.uint64), np.zeros(0)


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Labellings and weightings of the rows that are never written down, only how to make them."""

    kind: int
    replicates: Integers
    key: NDArray[np.uint64] = field(default_factory=_NO_KEY.copy)
    #: The combination that labels are drawn from.
    weights: Floats = field(default_factory=_NO_WEIGHTS.copy)

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

    def __len__(self) -> int:
        return len(self.replicates)

    def only(self, which: Integers) -> Cases:
        """Some of them."""
        return replace(self, replicates=self.replicates[which])


@dataclass(frozen=True, kw_only=True)
class _OverCases(Job):
    """A job that looks at rows once for each case."""

    cases: Cases

    def _case_arguments(self, rows: Rows) -> tuple[Any, ...]:
        """What the loops must know to make the cases of these rows."""
        cases, kind = self.cases, self.cases.kind
        draws = np.zeros((0, 0), dtype=np.int64)
        if kind == loops.DRAWN_ROWS:
            draws = self._draws(cases.key, cases.replicates, rows)
        return (
            kind,
            cases.key,
            cases.replicates,
            cases.weights,
            draws,
            self._n_units,
            self.rows_per_unit,
        )


@dataclass(frozen=True, kw_only=True)
class Residuals(_OverCases):
    """Residual sums of a measure after moves from some bases, each for one case.

    Moves are those of `Objective.moves`; without a column of them, the sums at the bases themselves.
    """

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
            rows.probs,
            self.positions,
            rows.labels,
            rows.first,
            self._block_rows,
            *self._case_arguments(rows),
            self.parameters,
            self.measure.scratch_size(self.n_classes, self._block_rows),
            int(self.measure.keeps_places),
            self.bases,
            self.case_of,
            self.amounts,
            sums,
        )


@dataclass(frozen=True, kw_only=True)
class Resampled(Job):
    """Lines 2 to 5 of Algorithm 1: residual sums of replicates, each at weights of its own."""

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
class EmStep(_OverCases):
    """One step of EM at each case's weights: gains of the members, log-likelihood, weight of the rows."""

    at: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cases), len(self.positions) + 2

    def _add(self, rows: Rows, sums: Floats) -> None:
        em(
            self.at,
            sums,
            rows.probs,
            self.positions,
            rows.labels,
            rows.first,
            self._block_rows,
            *self._case_arguments(rows),
        )


@dataclass(frozen=True, kw_only=True)
class Impossible(Job):
    """Rows whose label has probability 0 by every member."""

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def _add(self, rows: Rows, sums: Floats) -> None:
        sums[0, 0] += impossible(rows.probs, self.positions, rows.labels)
