"""Lines 1 to 5 of Algorithm 1 for large data: one pass over blocks of rows serves many replicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline
from hullcal._compiled.mixing import cumulate, invert, mix
from hullcal.engines.entries import Entries
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.nulls._base import Floats

#: Mixed probabilities of a block of rows, so few that they stay in the cache.
_IN_CACHE = 100_000
#: Below this many mixed probabilities the data are in the cache anyway, and with fewer classes than
#: these a row is done before its block pays.
_LARGE, _MANY_CLASSES = 2**20, 50
#: Where entries will do, passes pay in data this many times smaller.
_SOONER = 10
#: What a replicate keeps of a row, in probabilities read: rows, levels and their order.
_KEPT = 64
#: A replicate's share of a pass: one of this many where all predictions are mixed, and where entries
#: will do. There a pass costs as much as several hundred replicates' labels, and takes a second or two.
_SHARE, _SHARE_OF_ENTRIES = 16, 320
#: Probabilities of all members in a block of rows, and the fewest rows for which their members are
#: read in good stretches.
_TURNED, _FEWEST_ROWS = 300_000, 64
#: Draws whose bisections run side by side, since a step has to wait for the one before it.
_AT_ONCE = 32
#: Classes whose probabilities in one row stay in the nearest cache.
_NEAR = 256


def work_of(objective: Packed) -> int | None:
    """Probabilities that a replicate reads if passes are worth while, else None.

    The data have to be so large that they should be read as seldom as possible, and the measure has to
    add up over rows in any order, one by one.
    """
    measure = objective.measure
    adds_up = measure.halves_agree() and measure.rows_per_unit == 1
    all_needed = _entries(objective) is None
    enough = _LARGE if all_needed else _LARGE // _SOONER
    large = objective.members[0].size >= enough and objective.n_classes >= _MANY_CLASSES
    if not (adds_up and large):
        return None
    share = _SHARE if all_needed else _SHARE_OF_ENTRIES
    return max(objective.members.size // share, _KEPT * objective.n_samples)


def evaluate(
    objective: Packed, weights: Floats, rows: NDArray[np.uint32], levels: Floats
) -> Floats:
    """g of every replicate: its weights, the rows it drew and the uniform levels of their labels.

    A replicate's sums run over the rows in order, so that neither the other replicates nor threads
    can change a bit.
    """
    entries = _entries(objective)
    states: Iterable[Floats]
    if entries is None:
        states = _states_of_all(objective, weights, rows, levels)
    else:
        states = _states_of_entries(objective, entries, weights, rows, levels)
    finish = objective.measure.finish
    assert finish is not None
    n_samples = objective.n_samples
    return np.array(
        [finish(state, objective.offset, objective.parameters, n_samples) for state in states]
    )


def _entries(objective: Packed) -> Entries | None:
    """The entries, if their measure can take rows that were drawn several times."""
    entries = objective.entries
    return None if entries is None or entries.of_draws is None else entries


def _states_of_entries(
    objective: Packed,
    entries: Entries,
    weights: Floats,
    rows: NDArray[np.uint32],
    levels: Floats,
) -> Iterator[Floats]:
    """Sums of line 5, replicate by replicate, from labels drawn in one pass over the rows."""
    n_members, n_classes, n_samples = objective.members.shape
    n_replicates, n_entries = len(rows), len(entries.rows)
    ends = np.zeros((n_replicates, n_samples + 1), dtype=np.uint32)
    sorted_levels = np.empty(levels.shape)
    _sort(rows, levels, ends, sorted_levels)
    labels = np.empty(rows.shape, dtype=np.int32)
    rests = np.zeros((n_replicates, entries.members.shape[2] - n_entries))
    bounds = np.searchsorted(entries.rows, np.arange(n_samples + 1))
    size = max(_FEWEST_ROWS, _TURNED // (n_members * n_classes))
    block = np.zeros((min(size, n_samples), n_members, n_classes))
    for first in range(0, n_samples, size):
        _turn(objective.members, first, block)
        _draw(block, first, weights, ends, sorted_levels, labels)
        if rests.size > 0:
            # What has an entry is no part of the rests.
            own = slice(bounds[first], bounds[min(first + size, n_samples)])
            block[entries.rows[own] - first, :, entries.classes[own]] = 0.0
            _add_rests(block, first, weights, ends, rests)
    assert entries.of_draws is not None
    mixed = np.empty(entries.members.shape[1:])
    state = np.empty(objective.measure.state_size(n_classes))
    for r in range(n_replicates):
        mix(entries.members, weights[r], mixed)
        mixed[0, n_entries:] = rests[r]
        state[:] = 0.0
        entries.of_draws(
            mixed[0], entries.classes, bounds, ends[r], labels[r], objective.parameters, state
        )
        yield state


@compiled
def _sort(rows, levels, ends, out):  # type: ignore[no-untyped-def]
    """Levels of a replicate by row; those of row n lie between ends[n] and ends[n + 1]."""
    n_samples = rows.shape[1]
    places = np.empty(n_samples, dtype=np.uint32)
    for r in range(rows.shape[0]):
        own = ends[r]
        for n in range(n_samples):
            own[rows[r, n] + 1] += np.uint32(1)
        for n in range(n_samples):
            own[n + 1] += own[n]
            places[n] = own[n]
        for n in range(n_samples):
            row = rows[r, n]
            out[r, places[row]] = levels[r, n]
            places[row] += np.uint32(1)


@compiled
def _turn(members, first, block):  # type: ignore[no-untyped-def]
    """Rows first, first + 1, ... as (row, member, class): what belongs to a row stands together."""
    n_members, n_classes, n_samples = members.shape
    n_rows = min(block.shape[0], n_samples - first)
    for m in range(n_members):
        # Eight classes fill a line of the cache, and their rows are fetched side by side.
        for near in range(0, n_classes, 8):
            for n in range(n_rows):
                for k in range(near, min(near + 8, n_classes)):
                    block[n, m, k] = members[m, k, first + n]


@compiled
def _draw(block, first, weights, ends, levels, labels):  # type: ignore[no-untyped-def]
    """Labels of all draws of a block of rows (line 4).

    The running sums of a combination are the combination of the members', which never decrease: the
    number of those that are not above a level is found by bisection.
    """
    _, n_members, n_classes = block.shape
    n_replicates, n_samples = labels.shape
    running = np.empty((n_classes, n_members))
    replicates, places = np.empty((2, _AT_ONCE), dtype=np.uint32)
    for n in range(first, min(first + block.shape[0], n_samples)):
        _cumulate(block[n - first], running)
        waiting = 0
        for r in range(n_replicates):
            for place in range(ends[r, n], ends[r, n + 1]):
                replicates[waiting], places[waiting] = r, place
                waiting += 1
                if waiting == _AT_ONCE:
                    _bisect(running, weights, levels, replicates, places, labels)
                    waiting = 0
        _bisect(running, weights, levels, replicates[:waiting], places, labels)


@compiled
def _cumulate(row, running):  # type: ignore[no-untyped-def]
    """Running sums over the classes as (class, member): a look at a class reads what stands together."""
    n_members, n_classes = row.shape
    for m in range(n_members):
        running[0, m] = row[m, 0]
    for k in range(1, n_classes):
        for m in range(n_members):
            running[k, m] = running[k - 1, m] + row[m, k]


@compiled_inline
def _combined(running, k, weights, r):  # type: ignore[no-untyped-def]
    total = 0.0
    for m in range(running.shape[1]):
        total += weights[r, m] * running[k, m]
    return total


@compiled
def _bisect(running, weights, levels, replicates, places, labels):  # type: ignore[no-untyped-def]
    """How many classes but the last have a running sum that is not above the level of a draw."""
    n_draws = replicates.shape[0]
    found, level = np.zeros(_AT_ONCE, dtype=np.uint32), np.empty(_AT_ONCE)
    left = running.shape[0] - 1
    for i in range(n_draws):
        r = replicates[i]
        level[i] = levels[r, places[i]] * _combined(running, left, weights, r)
    while left > 0:
        half = np.uint32((left + 1) // 2)
        for i in range(n_draws):
            beyond = found[i] + half
            passed = _combined(running, beyond - np.uint32(1), weights, replicates[i]) <= level[i]
            found[i] = beyond if passed else found[i]
        left -= half
    for i in range(n_draws):
        labels[replicates[i], places[i]] = found[i]


@compiled
def _add_rests(block, first, weights, ends, rests):  # type: ignore[no-untyped-def]
    """Add the block's rows, as often as they were drawn, to the sums of each class."""
    n_members = block.shape[1]
    n_replicates, n_samples = ends.shape[0], ends.shape[1] - 1
    for n in range(first, min(first + block.shape[0], n_samples)):
        row = block[n - first]
        for near in range(0, row.shape[1], _NEAR):
            there = slice(near, near + _NEAR)
            for r in range(n_replicates):
                count = float(ends[r, n + 1] - ends[r, n])
                if count == 0.0:
                    continue
                sums = rests[r, there]
                # Five members a pass spare loads and stores of the sums.
                whole = n_members - n_members % 5
                for m in range(0, whole, 5):
                    a, weight_a = row[m, there], count * weights[r, m]
                    b, weight_b = row[m + 1, there], count * weights[r, m + 1]
                    c, weight_c = row[m + 2, there], count * weights[r, m + 2]
                    d, weight_d = row[m + 3, there], count * weights[r, m + 3]
                    e, weight_e = row[m + 4, there], count * weights[r, m + 4]
                    for k in range(sums.shape[0]):
                        two = weight_a * a[k] + weight_b * b[k]
                        three = weight_c * c[k] + weight_d * d[k] + weight_e * e[k]
                        sums[k] += two + three
                for m in range(whole, n_members):
                    a, weight_a = row[m, there], count * weights[r, m]
                    for k in range(sums.shape[0]):
                        sums[k] += weight_a * a[k]


def _states_of_all(
    objective: Packed, weights: Floats, rows: NDArray[np.uint32], levels: Floats
) -> Floats:
    """Sums of line 5 where all mixed predictions are needed."""
    measure, members = objective.measure, objective.members
    _, n_classes, n_samples = members.shape
    order = np.argsort(rows, axis=1, kind="stable")
    rows = np.take_along_axis(rows, order, axis=1)
    levels = np.take_along_axis(levels, order, axis=1)
    states = np.zeros((len(rows), measure.state_size(n_classes)))
    size = max(1, _IN_CACHE // n_classes)
    firsts = np.arange(0, n_samples, size, dtype=rows.dtype)
    bounds = np.array([[*np.searchsorted(own, firsts), n_samples] for own in rows])
    for b, first in enumerate(firsts):
        block = np.ascontiguousarray(members[:, :, first : first + size])
        mixed = np.empty(block.shape[1:])
        for r, state in enumerate(states):
            mine = slice(*bounds[r, b : b + 2])
            if mine.start < mine.stop:
                mix(block, weights[r], mixed)
                _add(measure, mixed, rows[r, mine] - first, levels[r, mine], objective, state)
    return states


def _add(
    measure: Measure,
    mixed: Floats,
    rows: NDArray[np.integer],
    levels: Floats,
    objective: Packed,
    state: Floats,
) -> None:
    """The drawn rows of one block, with labels drawn from them (line 4), into the sums of line 5."""
    n_classes, n_rows = len(mixed), len(rows)
    drawn, cumulative = np.empty((2, n_classes, n_rows))
    labels = np.empty(n_rows, dtype=np.int32)
    _take(mixed, rows.astype(np.int64), drawn)
    cumulate(drawn, cumulative)
    invert(cumulative, levels, labels)
    scratch = np.zeros(measure.scratch_size(n_classes, n_rows))
    assert measure.accumulate is not None
    measure.accumulate(drawn, labels, np.ones(n_rows), objective.parameters, state, scratch)


@compiled
def _take(mixed, rows, out):  # type: ignore[no-untyped-def]
    for k in range(mixed.shape[0]):
        for n in range(rows.shape[0]):
            out[k, n] = mixed[k, rows[n]]
