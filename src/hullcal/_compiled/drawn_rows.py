"""Rows drawn with replacement, from a tree of row ranges that only the number of rows decides.

How many of N draws fall into the left half of a range is a binomial number with an address of its own
(replicate, node), and so on down to leaves of at most `LEAF` units, whose draws have addresses, too.
Whoever holds a few rows can tell how often they were drawn without knowing the others: no chunking, no
retry and no number of workers changes a draw.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_part
from hullcal._compiled.streams import ROWS, SPLITS, uniform

#: Units (rows, or pairs of rows) in a leaf of the tree.
LEAF = 1024
#: Binomial numbers are found by inversion below this mean, by rejection from it on.
_INVERTED = 10.0


@compiled
def _few(n, p, key, replicate, node):  # type: ignore[no-untyped-def]
    """A binomial number by inversion, for a small n * p: count up until the uniform number is reached."""
    level = uniform(key, SPLITS, replicate, node, 0)
    odds = p / (1.0 - p)
    chance = math.exp(n * math.log1p(-p))
    found = 0
    while level >= chance and found < n:
        level -= chance
        found += 1
        chance *= odds * (n - found + 1) / found
    return found


@compiled
def _many(n, p, key, replicate, node):  # type: ignore[no-untyped-def]
    """A binomial number by transformed rejection (Hörmann 1993, algorithm BTRS), for n * p >= 10."""
    spread = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    surely = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = math.floor((n + 1) * p)
    log_odds = math.log(p / (1.0 - p))
    at_mode = math.lgamma(mode + 1.0) + math.lgamma(n - mode + 1.0)
    trial = 0
    while True:
        u = uniform(key, SPLITS, replicate, node, 2 * trial) - 0.5
        v = uniform(key, SPLITS, replicate, node, 2 * trial + 1)
        trial += 1
        inside = 0.5 - abs(u)
        if inside <= 0.0:
            continue
        found = math.floor((2.0 * a / inside + b) * u + c)
        if found < 0.0 or found > n:
            continue
        if inside >= 0.07 and v <= surely:
            return int(found)
        bound = at_mode - math.lgamma(found + 1.0) - math.lgamma(n - found + 1.0)
        if math.log(v * alpha / (a / (inside * inside) + b)) <= bound + (found - mode) * log_odds:
            return int(found)


@compiled
def _binomial(n, p, key, replicate, node):  # type: ignore[no-untyped-def]
    """How many of n draws hit a share p, 0 < p < 1; the draw belongs to (replicate, node)."""
    smaller = min(p, 1.0 - p)
    if n * smaller < _INVERTED:
        found = _few(n, smaller, key, replicate, node)
    else:
        found = _many(n, smaller, key, replicate, node)
    return found if p <= 0.5 else n - found


def leaf_draws(
    key: NDArray[np.uint64],
    replicates: NDArray[np.int64],
    n_units: int,
    leaves: tuple[int, int] | None = None,
) -> NDArray[np.int64]:
    """How many of the n_units draws of each replicate fall into each leaf, or into leaves a to b - 1.

    Python itself answers where there is but one leaf, so that small data never wait for the splits
    to be compiled.
    """
    n_leaves = -(-n_units // LEAF)
    first, last = leaves or (0, n_leaves)
    out = np.full((len(replicates), last - first), n_units, dtype=np.int64)
    if n_leaves > 1:
        _split(key, replicates, n_units, first, out)
    return out


@compiled
def _split(key, replicates, n_units, first, out):  # type: ignore[no-untyped-def]
    # Ranges still to be split: first leaf, leaves, units, draws, node. One more than the tree is deep
    # at most, since the left half waits while the right one is taken apart.
    waiting = np.empty((64, 5), dtype=np.int64)
    last = first + out.shape[1]
    for r in range(out.shape[0]):
        n_waiting = 1
        root = waiting[0]
        root[0], root[1], root[2], root[3], root[4] = 0, -(-n_units // LEAF), n_units, n_units, 1
        while n_waiting > 0:
            n_waiting -= 1
            begin, leaves, units, draws, node = waiting[n_waiting]
            if begin >= last or begin + leaves <= first:
                continue
            if leaves == 1:
                out[r, begin - first] = draws
                continue
            half = leaves // 2
            units_of_half = half * LEAF
            on_the_left = _binomial(draws, units_of_half / units, key, replicates[r], node)
            left, right = waiting[n_waiting], waiting[n_waiting + 1]
            left[0], left[1], left[2], left[3] = begin, half, units_of_half, on_the_left
            left[4] = 2 * node
            right[0], right[1], right[2] = begin + half, leaves - half, units - units_of_half
            right[3], right[4] = draws - on_the_left, 2 * node + 1
            n_waiting += 2


@compiled_part
def unit_drawn(key, replicate, leaf, draw, n_units):  # type: ignore[no-untyped-def]
    """The unit that a draw of a leaf hits, counted from the leaf's first."""
    size = min(n_units - leaf * LEAF, LEAF)
    return np.uint32(uniform(key, ROWS, replicate, draw, leaf) * size)


@compiled
def draw_rows(key, replicate, draws, rows):  # type: ignore[no-untyped-def]
    """As many rows as `rows` has room for, drawn with replacement, so many from each leaf."""
    n = 0
    for leaf in range(draws.shape[0]):
        for draw in range(draws[leaf]):
            rows[n] = leaf * LEAF + unit_drawn(key, replicate, leaf, draw, rows.shape[0])
            n += 1


@compiled
def draw_rows_in_any_order(key, replicate, rows):  # type: ignore[no-untyped-def]
    """The same where neighbours in the sample matter: every draw may be any row."""
    for n in range(rows.shape[0]):
        rows[n] = np.uint32(uniform(key, ROWS, replicate, n, 0) * rows.shape[0])


def draw_counts(
    key: NDArray[np.uint64], first: int, rows_per_unit: int, counts: NDArray[np.float64]
) -> None:
    """Add how often replicates first, first + 1, ... draw each row, in units of single rows or pairs."""
    replicates = np.arange(first, first + len(counts))
    n_units = counts.shape[1] // rows_per_unit
    _count(key, first, rows_per_unit, leaf_draws(key, replicates, n_units), counts)


@compiled
def _count(key, first, rows_per_unit, draws, counts):  # type: ignore[no-untyped-def]
    # Unsigned, since a row is never counted from the end.
    units = np.empty(counts.shape[1] // rows_per_unit, dtype=np.uint32)
    for replicate in range(counts.shape[0]):
        draw_rows(key, first + replicate, draws[replicate], units)
        for draw in range(units.shape[0]):
            for row in range(units[draw] * rows_per_unit, (units[draw] + 1) * rows_per_unit):
                counts[replicate, row] += 1.0
