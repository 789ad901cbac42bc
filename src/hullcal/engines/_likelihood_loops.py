"""Loops over rows that look only at the members' probabilities of the labels."""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal._compiled.resampling import LEAF
from hullcal.engines._row_loops import (
    DRAWN_LABELS,
    DRAWN_ROWS,
    count_leaf,
    end_of_block,
    fill_cases,
    pack,
)


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


@compiled
def impossible(probs, positions, labels):  # type: ignore[no-untyped-def]
    """How many rows have a label of probability 0 by every member."""
    found = 0
    for n in range(labels.shape[0]):
        largest = 0.0
        for m in range(positions.shape[0]):
            largest = max(largest, probs[n, positions[m], labels[n]])
        found += int(largest == 0.0)
    return found
