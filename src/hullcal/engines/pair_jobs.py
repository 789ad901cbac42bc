"""What pairs of rows add up to. A job knows the share of two ranges; an engine brings them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import TypeVar

import numpy as np

from hullcal.engines import _pair_loops as loops
from hullcal.engines._row_loops import DRAWN_ROWS
from hullcal.engines.jobs import Floats, Residuals, Rows
from hullcal.measures._all_pairs import packed_size
from hullcal.measures._pair_sums import PAIR_SUMS

Range = TypeVar("Range")

#: Rows of a block, at most and at least: the pairs of two blocks outweigh the making of both.
_ROWS, _FEWEST_ROWS = 1024, 128
#: Numbers of packed moves that are held at a time, of either block.
_HELD = 2**21


@dataclass(frozen=True, kw_only=True)
class PairSums(Residuals):
    """Sums of SKCE over pairs of rows at many weights: moves from a few places, each for one case.

    A move has two: h_ij over all ordered pairs, rows paired with themselves included, and over the
    latter alone. Cases are the data or labels drawn from a combination; rows are never drawn.
    """

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.amounts), PAIR_SUMS

    def between(self, rows: Rows, others: Rows) -> Floats:
        """Sums over the pairs of two ranges, in both orders; all pairs of one if they are the same.

        The same range has to be the same object, or the same rows of the data.
        """
        assert self.cases.kind != DRAWN_ROWS
        same = rows is others or rows.first == others.first
        rows = rows.readable()
        others = rows if same else others.readable()
        sums = np.zeros(self.shape)
        for moves, some in self._groups():
            some._add_pairs(rows, others, same, sums[moves])
        return sums

    def _add(self, rows: Rows, sums: Floats) -> None:
        raise TypeError("pairs of rows do not add up over rows; ask for `between`.")

    def _add_pairs(self, rows: Rows, others: Rows, same: bool, sums: Floats) -> None:
        size = self._rows_of_block
        room = packed_size(self.n_classes, size)
        packed, packed_others = np.empty((2, len(sums), room))
        for begin in range(0, len(rows.labels), size):
            end = min(begin + size, len(rows.labels))
            squares = np.zeros(len(sums))
            self._pack(rows, begin, end, packed, squares)
            if same:
                sums[:, 1] += squares
                self._meet(packed, end - begin, packed, end - begin, True, sums)
            for start in range(end if same else 0, len(others.labels), size):
                stop = min(start + size, len(others.labels))
                self._pack(others, start, stop, packed_others, squares)
                self._meet(packed, end - begin, packed_others, stop - start, False, sums)

    def _pack(self, rows: Rows, begin: int, end: int, packed: Floats, squares: Floats) -> None:
        cases = self.cases
        loops.packed_moves(
            rows.probs,
            self.positions,
            rows.labels,
            rows.first,
            begin,
            end,
            self._block_rows,
            cases.kind,
            cases.key,
            cases.replicates,
            cases.weights,
            self.parameters,
            self.bases,
            self.case_of,
            self.ends,
            self.pairs,
            self.amounts,
            packed,
            squares,
        )

    def _meet(
        self, packed: Floats, n_rows: int, others: Floats, n_others: int, same: bool, sums: Floats
    ) -> None:
        loops.add_pairs(
            packed, n_rows, others, n_others, self.n_classes, self.parameters, same, sums
        )

    @property
    def _rows_of_block(self) -> int:
        size = _ROWS
        while size > _FEWEST_ROWS and packed_size(self.n_classes, size) > _HELD:
            size //= 2
        return size

    def _groups(self) -> Iterator[tuple[slice, PairSums]]:
        """So many moves at a time that their packed blocks can be held; only cases that they ask for."""
        room = packed_size(self.n_classes, self._rows_of_block)
        at_a_time = max(1, _HELD // room)
        for first in range(0, len(self.amounts), at_a_time):
            last = min(first + at_a_time, len(self.amounts))
            # From the base of the first of these moves to that of the last.
            begin, end = np.searchsorted(self.ends, [first, last - 1], side="right")
            bases = slice(int(begin), int(end) + 1)
            wanted, case_of = np.unique(self.case_of[bases], return_inverse=True)
            moves = slice(first, last)
            yield (
                moves,
                replace(
                    self,
                    cases=self.cases.only(wanted),
                    bases=self.bases[bases],
                    case_of=case_of.astype(np.int64),
                    ends=np.minimum(self.ends[bases], last) - first,
                    pairs=self.pairs[moves],
                    amounts=self.amounts[moves],
                ),
            )


def pair_total(
    ranges: Sequence[Range],
    read: Callable[[Range], Rows],
    job: PairSums,
    *,
    in_order: Callable[
        [Callable[[tuple[int, int]], Floats], Iterable[tuple[int, int]]], Iterable[Floats]
    ] = map,
) -> Floats:
    """The job's sums over all pairs of rows; `ranges` are disjoint and hold all rows.

    `in_order` calls a function of two places in `ranges`, the second not before the first, on all pairs
    of them, in any manner, and gives results in order: no manner can change a bit.
    """

    def between(places: tuple[int, int]) -> Floats:
        first, second = places
        rows = read(ranges[first])
        return job.between(rows, rows if first == second else read(ranges[second]))

    total = np.zeros(job.shape)
    for sums in in_order(between, pairs_of(len(ranges))):
        total += sums
    return total


def pairs_of(n_ranges: int) -> Iterator[tuple[int, int]]:
    """Places of two ranges, each pair once and a range with itself too, in the order of their sum."""
    return combinations_with_replacement(range(n_ranges), 2)
