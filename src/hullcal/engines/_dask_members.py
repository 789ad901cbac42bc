"""Which members differ and in which order, told by chunks and put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.distinct import Distinct

Order = NDArray[np.int8]

#: Rows compared at a time: few at first, where most members differ, then more.
_FIRST, _MOST = 2, 2**14


def order_of_members(probs: NDArray[Any]) -> Order:
    """By (a, b): -1 or 1 as a is smaller or larger where the two first differ, 0 if nowhere."""
    n_members = probs.shape[1]
    distinct: list[int] = []
    owner = np.empty(n_members, dtype=np.int64)
    signs = np.zeros((n_members, n_members), dtype=np.int8)
    for member in range(n_members):
        # A copy of a known member has been compared with all others already.
        for place, known in enumerate(distinct):
            sign = _compared(probs, member, known)
            if sign == 0:
                owner[member] = place
                break
            signs[len(distinct), place], signs[place, len(distinct)] = sign, -sign
        else:
            owner[member] = len(distinct)
            distinct.append(member)
    return signs[np.ix_(owner, owner)]


def _compared(probs: NDArray[Any], a: int, b: int) -> int:
    first, size = 0, _FIRST
    while first < len(probs):
        ours, theirs = probs[first : first + size, a], probs[first : first + size, b]
        different = np.flatnonzero(ours != theirs)
        if different.size:
            place = int(different[0])
            return -1 if ours.ravel()[place] < theirs.ravel()[place] else 1
        first, size = first + size, min(8 * size, _MOST)
    return 0


def distinct_members(orders: Iterable[Order]) -> Distinct:
    """What `Distinct.of` gives for all rows, from the orders of chunks in the order of rows."""
    total: Order | None = None
    for order in orders:
        # Members are told apart where they first differ, so an earlier chunk has the say.
        total = order if total is None else np.where(total == 0, order, total)
    assert total is not None
    signs = total
    return Distinct.compared(len(signs), lambda a, b: int(signs[a, b]))
