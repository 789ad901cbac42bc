"""What a pass over the rows adds up. A job knows a block's share; an engine brings blocks and adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.resampling import LEAF, leaf_draws
from hullcal.engines import _block_loops as loops
from hullcal.measures import Measure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Probabilities of a block, so few that they stay in the cache.
_IN_CACHE = 2**16
#: Rows that are added up from zero before their sum joins the others', and at most so many such ranges.
_RANGE, _RANGES = 2**16, 256


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


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows of one leaf: distinct members packed, rows last."""

    members: Floats
    labels: NDArray[np.int32]
    #: The block's first row in the data.
    first: int
    #: How often each row was drawn by each replicate, for a job that draws rows.
    counts: NDArray[np.int32] | None


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A sum over all rows, (n_sums, size) of it, that can be had block by block."""

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

    @abstractmethod
    def add(self, block: Block, sums: Floats) -> None:
        """The block's share."""

    @property
    def drawing(self) -> tuple[NDArray[np.uint64], Integers] | None:
        """Stream and replicates of a job that draws rows with replacement."""
        return None

    def over(self, rows: Rows) -> Floats:
        """Sums over the rows of one range, or of a part of it."""
        sums = np.zeros(self.shape)
        for first, last, counts in self._leaves(rows):
            for block in self._blocks(rows, first, last, counts):
                self.add(block, sums)
        return sums

    def _leaves(self, rows: Rows) -> Iterator[tuple[int, int, NDArray[np.int32] | None]]:
        """Rows of the leaves in turn, with their counts if rows are drawn."""
        per_unit = self.rows_per_unit
        n_units = self.n_samples // per_unit
        leaf_rows = LEAF * per_unit
        end = rows.first + len(rows.labels)
        leaves = range(rows.first // leaf_rows, -(-end // leaf_rows))
        if self.drawing is None:
            for leaf in leaves:
                yield leaf * leaf_rows, (leaf + 1) * leaf_rows, None
            return
        key, replicates = self.drawing
        # An odd last row belongs to no pair, and may be all that a last leaf would have.
        drawn_from = range(leaves.start, min(leaves.stop, -(-n_units // LEAF)))
        draws = leaf_draws(key, replicates, n_units, (drawn_from.start, drawn_from.stop))
        for leaf in leaves:
            counts = np.zeros((len(replicates), LEAF), dtype=np.int32)
            if leaf in drawn_from:
                own = np.ascontiguousarray(draws[:, leaf - leaves.start])
                loops.count_leaf(key, replicates, own, leaf, n_units, counts)
            yield leaf * leaf_rows, (leaf + 1) * leaf_rows, np.repeat(counts, per_unit, axis=1)

    def _blocks(
        self, rows: Rows, begin: int, end: int, counts: NDArray[np.int32] | None
    ) -> Iterator[Block]:
        """The rows of a leaf, a few at a time, and always an even number but at the end of the data."""
        n_members = len(self.positions)
        size = 2
        while size < LEAF and 2 * size * n_members * self.n_classes <= _IN_CACHE:
            size *= 2
        stop = min(end, rows.first + len(rows.labels))
        for first in range(max(begin, rows.first), stop, size):
            last = min(first + size, stop)
            here = slice(first - rows.first, last - rows.first)
            members = np.empty((n_members, self.n_classes, last - first))
            loops.pack(rows.probs[here], self.positions, members)
            own = None if counts is None else counts[:, first - begin : last - begin].copy()
            yield Block(members, rows.labels[here], first, own)


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Labellings and weightings of the rows that are never written down, only how to make them."""

    #: Stream and replicates; without a stream the one case is the data.
    key: NDArray[np.uint64] | None = None
    replicates: Integers
    #: The combination that labels are drawn from; without it rows are drawn, with their labels.
    weights: Floats | None = None

    @classmethod
    def data(cls) -> Cases:
        """The one case of the data themselves."""
        return cls(replicates=np.zeros(1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.replicates)

    def only(self, which: Integers) -> Cases:
        """Some of them."""
        return Cases(key=self.key, replicates=self.replicates[which], weights=self.weights)


@dataclass(frozen=True, kw_only=True)
class _OverCases(Job):
    """A job that looks at every block once for each case."""

    cases: Cases

    @property
    def drawing(self) -> tuple[NDArray[np.uint64], Integers] | None:
        cases = self.cases
        draws_rows = cases.key is not None and cases.weights is None
        return (cases.key, cases.replicates) if draws_rows else None  # type: ignore[return-value]

    def _labels(self, block: Block) -> NDArray[np.int32]:
        """Labels of each case, (n_cases, n_rows)."""
        cases = self.cases
        if cases.key is None or cases.weights is None:
            return np.repeat(block.labels[np.newaxis], len(cases), axis=0)
        cumulative = np.empty(block.members.shape[1:])
        loops.cumulative_at(block.members, cases.weights, cumulative)
        labels = np.empty((len(cases), len(block.labels)), dtype=np.int32)
        loops.draw_block_labels(cumulative, cases.key, cases.replicates, block.first, labels)
        return labels

    def _row_weights(self, block: Block) -> Floats:
        """Weights of the rows of each case, (n_cases, n_rows)."""
        if block.counts is None:
            return np.ones((len(self.cases), len(block.labels)))
        return block.counts.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Residuals(_OverCases):
    """Residual sums of a measure at many weights: moves from a few places, each for one case."""

    measure: Measure
    parameters: Floats
    bases: Floats
    case_of: Integers
    #: Where the moves of each base end.
    ends: Integers
    pairs: Integers
    amounts: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.amounts), self.measure.state_size(self.n_classes)

    def add(self, block: Block, sums: Floats) -> None:
        assert self.measure.accumulate is not None
        loops.residuals(
            self.measure.accumulate,
            block.members,
            self._labels(block),
            self._row_weights(block),
            self.parameters,
            self.measure.scratch_size(self.n_classes, len(block.labels)),
            self.bases,
            self.case_of,
            self.ends,
            self.pairs,
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

    @property
    def drawing(self) -> tuple[NDArray[np.uint64], Integers] | None:
        return None if self.permuted else (self.key, self.replicates)

    def add(self, block: Block, sums: Floats) -> None:
        counts = block.counts
        if counts is None:
            counts = np.ones((len(self.replicates), len(block.labels)), dtype=np.int32)
        most = int(counts.sum(axis=1).max())
        assert self.measure.accumulate is not None
        loops.resampled(
            self.measure.accumulate,
            block.members,
            counts,
            self.parameters,
            self.weights,
            self.key,
            self.replicates,
            block.first,
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

    def add(self, block: Block, sums: Floats) -> None:
        labels, row_weights = self._labels(block), self._row_weights(block)
        loops.em_step(block.members, labels, row_weights, self.at, sums)


@dataclass(frozen=True, kw_only=True)
class Impossible(Job):
    """Rows whose label has probability 0 by every member."""

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def add(self, block: Block, sums: Floats) -> None:
        loops.count_impossible(block.members, block.labels, sums[0])
