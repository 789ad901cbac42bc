"""Which members of a set differ, in an order of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct members in lexicographic order of their predictions.

    An order taken from the predictions themselves makes every sum over members, every search and
    every draw of weights indifferent to the order in which members were given.

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
        n_members = probs.shape[1]
        # The first few numbers tell most members apart.
        n_rows = max(1, 16 // probs.shape[2])
        head = probs[:n_rows].transpose(1, 0, 2).reshape(n_members, -1)
        order = np.lexsort(head.T[::-1])
        sorted_head = head[order]
        if (sorted_head[1:] != sorted_head[:-1]).any(axis=1).all():
            return cls(order, np.argsort(order))

        def compare(a: int, b: int) -> int:
            different = np.flatnonzero(probs[:, a, :] != probs[:, b, :])
            if different.size == 0:
                return 0
            n, k = divmod(int(different[0]), probs.shape[2])
            return -1 if probs[n, a, k] < probs[n, b, k] else 1

        return cls.compared(n_members, compare)

    @classmethod
    def compared(cls, n_members: int, compare: Callable[[int, int], int]) -> Distinct:
        """Sort members by a comparison, -1, 0 or 1; those that it calls equal are one."""
        owner = np.empty(n_members, dtype=np.int64)
        positions: list[int] = []
        for member in sorted(range(n_members), key=functools.cmp_to_key(compare)):
            if not positions or compare(member, positions[-1]) != 0:
                positions.append(member)
            owner[member] = len(positions) - 1
        return cls(np.array(positions), owner)

    @property
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
