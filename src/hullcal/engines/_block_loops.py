"""Loops over one block of rows: all that a pass does there for many cases and many weights."""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.jit import F1, F2, F3, I2, INT, L1, L2, U1, block_driver, compiled
from hullcal._compiled.mixing import cumulate, fill, invert, mix, shift
from hullcal._compiled.resampling import unit_drawn
from hullcal._compiled.streams import LABELS, uniform


@compiled
def pack(probs, positions, members):  # type: ignore[no-untyped-def]
    """Members at these positions of a block (n_rows, n_all, n_classes), rows last, in float64."""
    n_rows, _, n_classes = probs.shape
    for m in range(positions.shape[0]):
        position = np.uint64(positions[m])  # never counted from the end
        for k in range(n_classes):
            own = members[m, k]
            for n in range(n_rows):
                own[n] = probs[n, position, k]


@compiled
def cumulative_at(members, weights, cumulative):  # type: ignore[no-untyped-def]
    """Running sums over the classes of a combination."""
    mixed = np.empty(members.shape[1:])
    mix(members, weights, mixed)
    cumulate(mixed, cumulative)


@compiled
def draw_block_labels(cumulative, key, replicates, first, labels):  # type: ignore[no-untyped-def]
    """Labels of the block's rows, which begin at row `first` of the data, for each replicate."""
    levels = np.empty(labels.shape[1])
    for r in range(labels.shape[0]):
        for n in range(levels.shape[0]):
            levels[n] = uniform(key, LABELS, replicates[r], first + n, 0)
        invert(cumulative, levels, labels[r])


@compiled
def count_leaf(key, replicates, draws, leaf, n_units, counts):  # type: ignore[no-untyped-def]
    """How often each unit of a leaf was drawn by each replicate, given its draws in the leaf."""
    for r in range(counts.shape[0]):
        own = counts[r]
        for unit in range(own.shape[0]):
            own[unit] = 0
        for draw in range(draws[r]):
            own[unit_drawn(key, replicates[r], leaf, draw, n_units)] += 1


@block_driver(F3, I2, F2, F1, INT, F2, L1, L1, L2, F1, F2)
def residuals(  # type: ignore[no-untyped-def]
    accumulate, members, labels, row_weights, parameters, scratch_size,
    bases, cases, ends, pairs, amounts, states,
):  # fmt: skip
    """Add the block to the residual sums of all moves; move i of base b stands before ends[b]."""
    n_members, n_classes, n_rows = members.shape
    size = n_classes * n_rows
    flat_members = members.reshape(n_members, size)
    base, flat_trial = np.empty(size), np.empty(size)
    trial = flat_trial.reshape(n_classes, n_rows)
    scratch = np.zeros(scratch_size)
    begin = 0
    for b in range(bases.shape[0]):
        y, w = labels[cases[b]], row_weights[cases[b]]
        mix(members, bases[b], base.reshape(n_classes, n_rows))
        for i in range(begin, ends[b]):
            gaining, losing = np.uint64(pairs[i, 0]), np.uint64(pairs[i, 1])
            shift(base, flat_members, gaining, losing, amounts[i], flat_trial)
            accumulate(trial, y, w, parameters, states[i], scratch)
        begin = ends[b]


@compiled
def _expand(counts, rows, copies):  # type: ignore[no-untyped-def]
    """Each row as often as it was drawn, its copies numbered; how many that are.

    Four copies are written whatever the count, since guessing it would go wrong too often: there is
    room for three more than all of them.
    """
    place = 0
    for n in range(counts.shape[0]):
        count = counts[n]
        for copy in range(4):
            rows[place + copy] = n
            copies[place + copy] = copy
        for copy in range(4, count):
            rows[place + copy] = n
            copies[place + copy] = copy
        place += count
    return place


@block_driver(F3, I2, F1, F2, U1, L1, INT, INT, F2)
def resampled(  # type: ignore[no-untyped-def]
    accumulate, members, counts, parameters, weights, key, replicates, first, scratch_size, states
):
    """Lines 2 to 5 of Algorithm 1 on a block: rows as often as they were drawn, labels drawn for each."""
    n_classes, n_rows = members.shape[1:]
    mixed = np.empty((n_classes, n_rows))
    scratch = np.zeros(scratch_size)
    most = 0
    for r in range(counts.shape[0]):
        most = max(most, counts[r].sum())
    # Unsigned, since a row is never counted from the end.
    rows, copies = np.empty(most + 4, dtype=np.uint32), np.empty(most + 4, dtype=np.uint32)
    all_levels, ones = np.empty(most), np.ones(most)
    all_labels = np.empty(most, dtype=np.int32)
    room, more_room = np.empty(n_classes * most), np.empty(n_classes * most)
    for r in range(counts.shape[0]):
        n_drawn = _expand(counts[r], rows, copies)
        if n_drawn == 0:
            continue
        mix(members, weights[r], mixed)
        levels, labels = all_levels[:n_drawn], all_labels[:n_drawn]
        for i in range(n_drawn):
            levels[i] = uniform(key, LABELS, replicates[r], first + rows[i], copies[i])
        drawn = room[: n_classes * n_drawn].reshape(n_classes, n_drawn)
        cumulative = more_room[: n_classes * n_drawn].reshape(n_classes, n_drawn)
        for k in range(n_classes):
            own, taken = mixed[k], drawn[k]
            for i in range(n_drawn):
                taken[i] = own[rows[i]]
        cumulate(drawn, cumulative)
        invert(cumulative, levels, labels)
        accumulate(drawn, labels, ones[:n_drawn], parameters, states[r], scratch)


@compiled
def em_step(members, labels, row_weights, weights, sums):  # type: ignore[no-untyped-def]
    """Add the block to each case's EM sums: gains of the members, log-likelihood, weight of the rows.

    Rows to which every member gives probability 0 carry no information and are left out; the scale
    of a row cancels, and scaled to 1 no row's likelihood can underflow.
    """
    n_members, _, n_rows = members.shape
    own = np.empty((n_rows, n_members))
    likelihood = np.empty(n_rows)
    for case in range(labels.shape[0]):
        fill(likelihood, 0.0)
        for m in range(n_members):
            for n in range(n_rows):
                own[n, m] = members[m, labels[case, n], n]
                likelihood[n] = max(likelihood[n], own[n, m])
        for n in range(n_rows):
            scale = likelihood[n]
            weight = row_weights[case, n]
            if scale == 0.0 or weight == 0.0:
                continue
            total = 0.0
            for m in range(n_members):
                own[n, m] /= scale
                total += weights[case, m] * own[n, m]
            if total > 0.0:
                for m in range(n_members):
                    sums[case, m] += weight / total * own[n, m]
                sums[case, n_members] += weight * math.log(total)
                sums[case, n_members + 1] += weight


@compiled
def count_impossible(members, labels, sums):  # type: ignore[no-untyped-def]
    """Rows whose label has probability 0 by every member."""
    for n in range(labels.shape[0]):
        largest = 0.0
        for m in range(members.shape[0]):
            largest = max(largest, members[m, labels[n], n])
        sums[0] += int(largest == 0.0)
