"""Loops over rows as they lie in memory, a block at a time: a pass for many cases and weights.

A block is so small that its packed members stay in the cache, and lies within one leaf of the tree from
which rows are drawn.
"""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.drawn_rows import LEAF, unit_drawn
from hullcal._compiled.jit import (
    ACCUMULATE,
    F1,
    F2,
    GIVEN_LABELS,
    GIVEN_PROBS,
    INT,
    L1,
    L2,
    U1,
    compiled,
    compiled_part,
    driver,
)
from hullcal._compiled.mixing import SAME, blend, copy, cumulate, end_of_group, fill, invert, mix
from hullcal._compiled.streams import LABELS, uniform

#: Cases: the data themselves, labels drawn from a combination, rows drawn with their labels, and the
#: first so many rows of the data.
DATA, DRAWN_LABELS, DRAWN_ROWS, FIRST_ROWS = range(4)


@compiled
def pack(probs, begin, end, positions, members):  # type: ignore[no-untyped-def]
    """Some rows of predictions (n_rows, n_all, n_classes): members at these positions, rows last."""
    for m in range(positions.shape[0]):
        position = np.uint64(positions[m])  # never counted from the end
        for k in range(members.shape[1]):
            own = members[m, k]
            for n in range(end - begin):
                own[n] = probs[begin + n, position, k]


@compiled_part
def end_of_block(begin, first, n_rows, block_rows, rows_per_unit):  # type: ignore[no-untyped-def]
    """Where the block that begins here ends: no block reaches into another leaf."""
    leaf_rows = LEAF * rows_per_unit
    end_of_leaf = ((first + begin) // leaf_rows + 1) * leaf_rows - first
    return min(min(begin + block_rows, end_of_leaf), n_rows)


@compiled
def count_leaf(key, replicates, draws, leaf, n_units, counts):  # type: ignore[no-untyped-def]
    """How often each unit of a leaf was drawn by each replicate, given its draws in the leaf."""
    most = 0
    for r in range(replicates.shape[0]):
        most = max(most, draws[r])
    units = np.empty(most, dtype=np.uint32)
    for r in range(replicates.shape[0]):
        # Drawn first and counted then: the former is done several at a time.
        for draw in range(draws[r]):
            units[draw] = unit_drawn(key, replicates[r], leaf, draw, n_units)
        own = counts[r]
        for unit in range(own.shape[0]):
            own[unit] = 0
        for draw in range(draws[r]):
            own[units[draw]] += 1


@compiled
def fill_cases(  # type: ignore[no-untyped-def]
    kind,
    members,
    labels,
    row,
    key,
    replicates,
    weights,
    counts,
    rows_per_unit,
    case_labels,
    case_weights,
):
    """Labels and row weights of all cases in a block that begins at this row of the data."""
    n_classes, n_rows = members.shape[1:]
    if kind == DRAWN_LABELS:
        cumulative = np.empty((n_classes, n_rows))
        mixed = np.empty((n_classes, n_rows))
        levels = np.empty(n_rows)
        mix(members, weights, mixed)
        cumulate(mixed, cumulative)
        for case in range(case_labels.shape[0]):
            for n in range(n_rows):
                levels[n] = uniform(key, LABELS, replicates[case], row + n, 0)
            invert(cumulative, levels, case_labels[case])
            fill(case_weights[case], 1.0)
        return
    # The first row of the block among those of its leaf.
    offset = row % (LEAF * rows_per_unit)
    for case in range(case_labels.shape[0]):
        for n in range(n_rows):
            case_labels[case, n] = labels[n]
        if kind == DRAWN_ROWS:
            for n in range(n_rows):
                case_weights[case, n] = counts[case, (offset + n) // rows_per_unit]
        elif kind == FIRST_ROWS:
            for n in range(n_rows):
                case_weights[case, n] = 1.0 if row + n < replicates[case] else 0.0
        else:
            fill(case_weights[case], 1.0)


@driver(
    GIVEN_PROBS, L1, GIVEN_LABELS, INT, INT, INT, U1, L1, F1, L2, INT, INT, F1, INT, INT, F2, L1, F2, F2,
    loop=ACCUMULATE,
)  # fmt: skip
def residuals(  # type: ignore[no-untyped-def]
    accumulate, probs, positions, labels, first, block_rows,
    kind, key, replicates, label_weights, draws, n_units, rows_per_unit,
    parameters, scratch_size, keeps_places, bases, cases, amounts, states,
):  # fmt: skip
    """Add rows to the residual sums of all moves, base by base, or of the bases themselves."""
    n_rows, _, n_classes = probs.shape
    n_members, n_cases, n_moves = positions.shape[0], replicates.shape[0], amounts.shape[1]
    room = np.empty(n_members * n_classes * block_rows)
    labels_room = np.empty(n_cases * block_rows, dtype=np.int32)
    weights_room = np.empty(n_cases * block_rows)
    base_room, trial_room = np.empty(n_classes * block_rows), np.empty(n_classes * block_rows)
    scratch = np.zeros(scratch_size)
    counts = np.zeros((n_cases if kind == DRAWN_ROWS else 0, LEAF), dtype=np.int32)
    first_leaf = first // (LEAF * rows_per_unit)
    leaf = -1
    begin = 0
    while begin < n_rows:
        end = end_of_block(begin, first, n_rows, block_rows, rows_per_unit)
        n_block = end - begin
        size = n_classes * n_block
        members = room[: n_members * size].reshape(n_members, n_classes, n_block)
        pack(probs, begin, end, positions, members)
        own_leaf = (first + begin) // (LEAF * rows_per_unit)
        if kind == DRAWN_ROWS and own_leaf != leaf:
            leaf = own_leaf
            count_leaf(key, replicates, draws[leaf - first_leaf], leaf, n_units, counts)
        case_labels = labels_room[: n_cases * n_block].reshape(n_cases, n_block)
        case_weights = weights_room[: n_cases * n_block].reshape(n_cases, n_block)
        fill_cases(
            kind, members, labels[begin:end], first + begin, key, replicates, label_weights, counts,
            rows_per_unit, case_labels, case_weights,
        )  # fmt: skip
        flat_members = members.reshape(n_members, size)
        base, flat_trial = base_room[:size], trial_room[:size]
        trial = flat_trial.reshape(n_classes, n_block)
        group = 0
        while group < bases.shape[0]:
            last = end_of_group(bases, amounts, group)
            mix(members, bases[group], base.reshape(n_classes, n_block))
            for c in range(max(1, n_moves)):
                if n_moves == 0:
                    copy(base, flat_trial)
                elif amounts[group, c] == 0.0:
                    continue
                else:
                    blend(base, flat_members, np.uint64(c // 2), amounts[group, c], flat_trial)
                for b in range(group, last):
                    y, w = case_labels[cases[b]], case_weights[cases[b]]
                    if keeps_places != 0 and b > group:
                        scratch[-1] = SAME
                    accumulate(trial, y, w, parameters, states[b * max(1, n_moves) + c], scratch)
            group = last
        begin = end


@compiled
def _expand(counts, rows, copies):  # type: ignore[no-untyped-def]
    """Each row as often as it was drawn, its copies numbered; how many that are.

    Four copies are written whatever the count, since guessing it would go wrong too often: there is
    room for four more than all of them.
    """
    place = 0
    for n in range(counts.shape[0]):
        count = counts[n]
        for number in range(4):
            rows[place + number] = n
            copies[place + number] = number
        for number in range(4, count):
            rows[place + number] = n
            copies[place + number] = number
        place += count
    return place


@driver(GIVEN_PROBS, L1, INT, INT, U1, L1, L2, INT, INT, F2, F1, INT, F2, loop=ACCUMULATE)
def resampled(  # type: ignore[no-untyped-def]
    accumulate, probs, positions, first, block_rows, key, replicates, draws, n_units, permuted,
    weights, parameters, scratch_size, states,
):  # fmt: skip
    """Lines 2 to 5 of Algorithm 1: rows as often as they were drawn, labels drawn for each copy."""
    n_rows, _, n_classes = probs.shape
    n_members, n_replicates = positions.shape[0], replicates.shape[0]
    room = np.empty(n_members * n_classes * block_rows)
    mixed_room = np.empty(n_classes * block_rows)
    counts = np.ones((n_replicates, LEAF), dtype=np.int32)
    most = block_rows
    for r in range(n_replicates):
        for leaf in range(draws.shape[0]):
            most = max(most, draws[leaf, r])
    # Unsigned, since a row is never counted from the end.
    rows, copies = np.empty(most + 4, dtype=np.uint32), np.empty(most + 4, dtype=np.uint32)
    all_levels, ones = np.empty(most), np.ones(most)
    all_labels = np.empty(most, dtype=np.int32)
    drawn_room, cumulative_room = np.empty(n_classes * most), np.empty(n_classes * most)
    scratch = np.zeros(scratch_size)
    first_leaf = first // LEAF
    leaf = -1
    begin = 0
    while begin < n_rows:
        end = end_of_block(begin, first, n_rows, block_rows, 1)
        n_block = end - begin
        members = room[: n_members * n_classes * n_block].reshape(n_members, n_classes, n_block)
        mixed = mixed_room[: n_classes * n_block].reshape(n_classes, n_block)
        pack(probs, begin, end, positions, members)
        row = first + begin
        if permuted == 0 and row // LEAF != leaf:
            leaf = row // LEAF
            count_leaf(key, replicates, draws[leaf - first_leaf], leaf, n_units, counts)
        for r in range(n_replicates):
            n_drawn = _expand(counts[r, row % LEAF : row % LEAF + n_block], rows, copies)
            if n_drawn == 0:
                continue
            mix(members, weights[r], mixed)
            levels, labels = all_levels[:n_drawn], all_labels[:n_drawn]
            for i in range(n_drawn):
                levels[i] = uniform(key, LABELS, replicates[r], row + rows[i], copies[i])
            drawn = drawn_room[: n_classes * n_drawn].reshape(n_classes, n_drawn)
            cumulative = cumulative_room[: n_classes * n_drawn].reshape(n_classes, n_drawn)
            for k in range(n_classes):
                own, taken = mixed[k], drawn[k]
                for i in range(n_drawn):
                    taken[i] = own[rows[i]]
            cumulate(drawn, cumulative)
            invert(cumulative, levels, labels)
            accumulate(drawn, labels, ones[:n_drawn], parameters, states[r], scratch)
        begin = end


@compiled
def _em_step(chances, row_weights, weights, sums):  # type: ignore[no-untyped-def]
    """Add rows to one case's sums; `chances` are the members' probabilities of their labels."""
    n_members = weights.shape[0]
    for n in range(chances.shape[0]):
        own = chances[n]
        scale = 0.0
        for m in range(n_members):
            scale = max(scale, own[m])
        # A row to which every member gives probability 0 carries no information.
        if scale == 0.0 or row_weights[n] == 0.0:
            continue
        # The scale of a row cancels; scaled to 1, no row's likelihood can underflow.
        likelihood = 0.0
        for m in range(n_members):
            own[m] /= scale
            likelihood += weights[m] * own[m]
        if likelihood > 0.0:
            ratio = row_weights[n] / likelihood
            for m in range(n_members):
                sums[m] += ratio * own[m]
            sums[n_members] += row_weights[n] * math.log(likelihood)
            sums[n_members + 1] += row_weights[n]


@compiled
def em(  # type: ignore[no-untyped-def]
    at, sums, probs, positions, labels, first, block_rows,
    kind, key, replicates, label_weights, draws, n_units, rows_per_unit,
):  # fmt: skip
    """Add rows to each case's EM sums: gains of the members, log-likelihood, weight of the rows."""
    n_rows, _, n_classes = probs.shape
    n_members, n_cases = positions.shape[0], replicates.shape[0]
    # Only labels that are drawn need all classes.
    drawing = kind == DRAWN_LABELS
    room = np.empty(n_members * n_classes * block_rows if drawing else 0)
    labels_room = np.empty(n_cases * block_rows, dtype=np.int32)
    weights_room = np.empty(n_cases * block_rows)
    chances = np.empty((block_rows, n_members))
    counts = np.zeros((n_cases if kind == DRAWN_ROWS else 0, LEAF), dtype=np.int32)
    first_leaf = first // (LEAF * rows_per_unit)
    leaf = -1
    begin = 0
    while begin < n_rows:
        end = end_of_block(begin, first, n_rows, block_rows, rows_per_unit)
        n_block = end - begin
        used = n_members * n_classes * n_block if drawing else 0
        members = room[:used].reshape(n_members if drawing else 0, n_classes, n_block)
        if drawing:
            pack(probs, begin, end, positions, members)
        own_leaf = (first + begin) // (LEAF * rows_per_unit)
        if kind == DRAWN_ROWS and own_leaf != leaf:
            leaf = own_leaf
            count_leaf(key, replicates, draws[leaf - first_leaf], leaf, n_units, counts)
        case_labels = labels_room[: n_cases * n_block].reshape(n_cases, n_block)
        case_weights = weights_room[: n_cases * n_block].reshape(n_cases, n_block)
        fill_cases(
            kind, members, labels[begin:end], first + begin, key, replicates, label_weights, counts,
            rows_per_unit, case_labels, case_weights,
        )  # fmt: skip
        for case in range(n_cases):
            for n in range(n_block):
                for m in range(n_members):
                    chances[n, m] = probs[begin + n, positions[m], case_labels[case, n]]
            _em_step(chances[:n_block], case_weights[case], at[case], sums[case])
        begin = end
