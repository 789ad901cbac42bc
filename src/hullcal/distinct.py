"""Which members of a set differ, numbered by what they predict and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A trait that has a logarithm, in the place of 0.
_LEAST = 1e-300
#: Rows that are compared, or whose traits are added up, at a time.
_ROWS = 2**14


@dataclass(frozen=True)
class Distinct:
    """The distinct members, numbered by their traits.

    The numbering does not change with the order in which rows, members or classes were given, and so
    neither does any sum over members, any search or any draw of weights.

    Attributes
    ----------
    positions : ndarray of shape (n_distinct,)
        Where each distinct member stands among the user's; of copies, the first in sorting order.
    owner : ndarray of shape (n_members,)
        For each of the user's members, which distinct one it is.
    """

    positions: NDArray[np.int64]
    owner: NDArray[np.int64]

    @classmethod
    def of(cls, probs: NDArray[Any]) -> Distinct:
        """Compare the members of predictions (n_samples, n_members, n_classes)."""
        found = cls.ranked([ranks(probs)])
        return found.numbered(traits(probs, found.positions))

    @classmethod
    def ranked(cls, parts: Sequence[Sequence[int]]) -> Distinct:
        """From the ranks of members in consecutive parts of the rows; earlier parts count more."""
        found = np.unique(np.array(parts), axis=1, return_index=True, return_inverse=True)
        return cls(found[1], found[2].ravel())

    def numbered(self, of_distinct: NDArray[np.float64]) -> Distinct:
        """The same members, numbered by their traits; equal traits stay in the order of before.

        Their sums over the classes come first, then the traits of single classes, the largest first.
        """
        keys = np.column_stack([np.sort(of_distinct, axis=1), of_distinct.sum(axis=1)])
        # To ten digits, since the last ones of a sum differ with the order of rows.
        order = np.lexsort(np.round(np.log(np.maximum(keys, _LEAST)), 10).T)
        return Distinct(self.positions[order], np.argsort(order)[self.owner])

    @cached_property
    def copies(self) -> NDArray[np.int64]:
        """How often each distinct member was given."""
        return np.bincount(self.owner)

    def merge(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the distinct members from those of the user's."""
        return np.bincount(self.owner, weights).astype(np.float64, copy=False)

    def share(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the user's members from those of the distinct ones; copies share equally.

        The last copy takes what is left, so that merging gives the same weights bit for bit.
        """
        shares = weights[self.owner] / self.copies[self.owner]
        for member in np.flatnonzero(self.copies > 1):
            *others, last = np.flatnonzero(self.owner == member)
            taken = 0.0
            for copy in others:
                taken += shares[copy]
            shares[last] = weights[member] - taken
        return shares


def ranks(probs: NDArray[Any]) -> list[int]:
    """The members of some rows in lexicographic order; those that are equal have one rank."""
    ranked = [0] * probs.shape[1]
    first, size = 0, 2  # few rows at first, which tell most members apart
    while first < len(probs) and len(set(ranked)) < len(ranked):
        rows = probs[first : first + size] + 0.0  # -0.0 becomes 0.0
        # The bytes of non-negative doubles, the highest first, are in the order of the numbers.
        content = [rows[:, m].astype(">f8").tobytes() for m in range(len(ranked))]
        keys = list(zip(ranked, content, strict=True))
        rank_of = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        ranked = [rank_of[key] for key in keys]
        first, size = first + size, min(8 * size, _ROWS)
    return ranked


def traits(probs: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""For each distinct member and class k :math:`\sum_i p_{ik} (p_{ik} + \sqrt{\bar p_{ik}})`.

    :math:`\bar p` is the mean of the distinct members. It tells members apart even if they are votes,
    which all have the same squares.
    """
    # A set is made and described without numba, which takes its time to load.
    from hullcal._compiled.mixing import add_traits

    total = np.zeros((len(positions), probs.shape[2]))
    for first in range(0, len(probs), _ROWS):
        rows = probs[first : first + _ROWS]
        if rows.dtype not in (np.float32, np.float64) or not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(rows, dtype=np.float64)
        add_traits(rows, positions, total)
    return total
