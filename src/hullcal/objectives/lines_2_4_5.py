"""Lines 2, 4 and 5 of Algorithm 1 in memory: replicates drawn from combinations of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.drawn_rows import draw_rows, draw_rows_in_any_order, leaf_draws
from hullcal._compiled.jit import F1, F2, F3, INT, L1, L2, U1, compiled, compiled_inline, driver
from hullcal._compiled.mixing import cumulate, invert, mix
from hullcal._compiled.streams import LABELS, ROWS, uniform
from hullcal.objectives.base import Floats

if TYPE_CHECKING:
    from hullcal.objectives.memory import InMemory


#: Ways of line 2.
_RESAMPLE, _RESAMPLE_IN_ANY_ORDER, _PERMUTE = range(3)


def lines_2_4_5(
    objective: InMemory,
    key: NDArray[np.uint64],
    replicates: NDArray[np.int64],
    weights: Floats,
    *,
    permuted: bool,
) -> Floats:
    """g of every replicate: rows drawn, and labels for them from the combination at its weights."""
    in_any_order = "ordered" in objective.measure.traits
    how = _PERMUTE if permuted else _RESAMPLE_IN_ANY_ORDER if in_any_order else _RESAMPLE
    draws = leaf_draws(key, replicates, objective.n_samples)
    if work_of_passes(objective) is not None:
        rows = np.empty((len(replicates), objective.n_samples), dtype=np.uint32)
        levels = np.empty(rows.shape)
        for r, d in enumerate(replicates):
            _line_2(key, d, how, draws[r], rows[r], levels[r])
        return _in_passes(objective, weights, rows, levels)
    out = np.empty(len(replicates))
    data = objective.members, objective.parameters, objective.offset, *objective.sizes
    _one_by_one(objective.measure.value, *data, key, replicates, weights, how, draws, out)
    return out


@compiled
def _permute(key, replicate, rows):  # type: ignore[no-untyped-def]
    """Fisher and Yates's shuffle of all rows."""
    for n in range(rows.shape[0]):
        rows[n] = n
    for n in range(rows.shape[0] - 1, 0, -1):
        other = int(uniform(key, ROWS, replicate, n, 1) * (n + 1))
        rows[n], rows[other] = rows[other], rows[n]


@compiled
def _line_2(key, d, how, draws, rows, levels):  # type: ignore[no-untyped-def]
    """Rows of replicate d, with the uniform levels of the labels that line 4 will give them."""
    n_samples = rows.shape[0]
    if how == _PERMUTE:
        _permute(key, d, rows)
    elif how == _RESAMPLE_IN_ANY_ORDER:
        draw_rows_in_any_order(key, d, rows)
    else:
        draw_rows(key, d, draws, rows)
    # A row drawn twice is two rows: the label of its c-th copy has its own number.
    seen = np.zeros(n_samples, dtype=np.uint32)
    for n in range(n_samples):
        levels[n] = uniform(key, LABELS, d, rows[n], seen[rows[n]])
        seen[rows[n]] += np.uint32(1)


@driver(F3, F1, F1, INT, INT, U1, L1, F2, INT, L2, F1)
def _one_by_one(  # type: ignore[no-untyped-def]
    value, members, parameters, offset, state_size, scratch_size,
    key, replicates, weights, how, draws, out,
):  # fmt: skip
    _, n_classes, n_samples = members.shape
    mixed = np.empty((n_classes, n_samples))
    drawn = np.empty((n_classes, n_samples))
    cumulative = np.empty((n_classes, n_samples))
    # Unsigned, since a row is never counted from the end.
    rows = np.empty(n_samples, dtype=np.uint32)
    levels = np.empty(n_samples)
    labels = np.empty(n_samples, dtype=np.int32)
    ones = np.ones(n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    for r in range(out.shape[0]):
        _line_2(key, replicates[r], how, draws[r], rows, levels)
        # Line 4.
        mix(members, weights[r], mixed)
        for k in range(n_classes):
            for n in range(n_samples):
                drawn[k, n] = mixed[k, rows[n]]
        cumulate(drawn, cumulative)
        invert(cumulative, levels, labels)
        # Line 5.
        out[r] = value(drawn, labels, ones, parameters, offset, state, scratch)


#: Many classes in large data: predictions are read as seldom as possible, in one pass for many
#: replicates, if the measure needs few entries of them.
_MANY_CLASSES, _LARGE = 50, 100_000
#: What a replicate keeps of a row, in probabilities read, and its share of a pass over them: one of
#: this many. A pass costs as much as several hundred replicates' labels, and takes a second or two.
_KEPT, _SHARE = 64, 320
#: Probabilities of all members in a block of rows, and the fewest rows for which their members are
#: read in good stretches.
_TURNED, _FEWEST_ROWS = 300_000, 64
#: Draws whose bisections run side by side, since a step has to wait for the one before it.
_AT_ONCE = 32
#: Classes whose probabilities in one row stay in the nearest cache.
_NEAR = 256


def work_of_passes(objective: InMemory) -> int | None:
    """Probabilities that a replicate reads if passes are worth while, else None."""
    entries, measure = objective.entries, objective.measure
    if entries is None or entries.of_draws is None or not measure.halves_agree():
        return None
    if objective.n_classes < _MANY_CLASSES or objective.members[0].size < _LARGE:
        return None
    return max(objective.members.size // _SHARE, _KEPT * objective.n_samples)


def _in_passes(
    objective: InMemory, weights: Floats, rows: NDArray[np.uint32], levels: Floats
) -> Floats:
    """g of every replicate: its weights, the rows it drew and the uniform levels of their labels.

    Labels are drawn in one pass over the rows. A replicate's sums run over the rows in order, so that
    neither the other replicates nor threads can change a bit.
    """
    entries, finish = objective.entries, objective.measure.finish
    assert entries is not None
    assert entries.of_draws is not None
    assert finish is not None
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
    out = np.empty(n_replicates)
    mixed = np.empty(entries.members.shape[1:])
    state = np.empty(objective.measure.state_size(n_classes))
    for r in range(n_replicates):
        mix(entries.members, weights[r], mixed)
        mixed[0, n_entries:] = rests[r]
        state[:] = 0.0
        entries.of_draws(
            mixed[0], entries.classes, bounds, ends[r], labels[r], objective.parameters, state
        )
        out[r] = finish(state, objective.offset, objective.parameters, n_samples)
    return out


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
