"""The loops of SKCE over all pairs of rows, block by block: never an N×N array."""

from __future__ import annotations

import numpy as np

from hullcal._compiled.jit import compiled, compiled_value
from hullcal.kernels import kernel_factors

#: Columns of a block of pairs: small enough for the first-level cache.
BLOCK = 256
#: Loops over columns are fastest over a multiple of this.
_STRIDE = 16


@compiled
def _row_against_block(  # type: ignore[no-untyped-def]
    p, error, i, others, other_errors, start, distance, product, parameters, scratch
):
    """Leave Γ(p_i, q_j) <error_i, error_j> in `product`, for as many rows j from `start` as it holds."""
    n_classes = p.shape[0]
    # Unsigned, since a column is never counted from the end.
    start, size = np.uint64(start), np.uint64(product.shape[0])
    distance[:] = 0.0
    product[:] = 0.0
    # Three classes a pass spare loads and stores of the sums; distances and products each have a
    # loop, since one over both reads too many arrays for a compiler to see that none overlap.
    k = 0
    while k + 2 < n_classes:
        a, b, c = others[k], others[k + 1], others[k + 2]
        p_a, p_b, p_c = p[k, i], p[k + 1, i], p[k + 2, i]
        for j in range(size):
            gap = abs(p_a - a[start + j]) + abs(p_b - b[start + j]) + abs(p_c - c[start + j])
            distance[j] += gap
        a, b, c = other_errors[k], other_errors[k + 1], other_errors[k + 2]
        e_a, e_b, e_c = error[k, i], error[k + 1, i], error[k + 2, i]
        for j in range(size):
            product[j] += e_a * a[start + j] + e_b * b[start + j] + e_c * c[start + j]
        k += 3
    while k < n_classes:
        p_a, e_a = p[k, i], error[k, i]
        for j in range(size):
            distance[j] += abs(p_a - others[k, start + j])
        for j in range(size):
            product[j] += e_a * other_errors[k, start + j]
        k += 1
    for j in range(size):
        distance[j] *= 0.5
    kernel_factors(distance, parameters[0], parameters[1], scratch[:size])
    for j in range(size):
        product[j] *= distance[j]


@compiled
def pair_terms(p, error, first, parameters, out, scratch):  # type: ignore[no-untyped-def]
    """h_ij of the rows from `first` on, as many as `out` has room for, with all rows."""
    n_rows = p.shape[1]
    for i in range(out.shape[0]):
        for start in range(0, n_rows, BLOCK):
            stop = min(start + BLOCK, n_rows)
            size = stop - start
            _row_against_block(
                p, error, first + i, p, error, start, scratch[:size], out[i, start:stop],
                parameters, scratch[BLOCK:],
            )  # fmt: skip


@compiled
def _sum_of_pairs(p, error, row_weights, parameters, scratch):  # type: ignore[no-untyped-def]
    """Sum over rows i < j of the weights' product times h_ij."""
    n_rows = p.shape[1]
    distance, product = scratch[:BLOCK], scratch[BLOCK : 2 * BLOCK]
    sums, rest = scratch[2 * BLOCK : 3 * BLOCK], scratch[3 * BLOCK :]
    total = 0.0
    for start in range(0, n_rows, BLOCK):
        stop = min(start + BLOCK, n_rows)
        sums[:] = 0.0
        for i in range(stop - 1):
            first = max(start, i + 1)
            # A few columns too many, not added below, cost less than an odd number of them.
            begin = max(start, stop - -(-(stop - first) // _STRIDE) * _STRIDE)
            size = stop - begin
            _row_against_block(
                p, error, i, p, error, begin, distance[:size], product[:size], parameters, rest
            )
            weight = row_weights[i]
            for j in range(first, stop):
                sums[j - start] += weight * product[j - begin]
        for j in range(start, stop):
            total += row_weights[j] * sums[j - start]
    return total


@compiled
def _sum_across(p, error, row_weights, others, other_errors, parameters, scratch):  # type: ignore[no-untyped-def]
    """Sum over rows i of one sample and j of another of i's weight times h_ij."""
    n_others = others.shape[1]
    distance, product = scratch[:BLOCK], scratch[BLOCK : 2 * BLOCK]
    sums, rest = scratch[2 * BLOCK : 3 * BLOCK], scratch[3 * BLOCK :]
    total = 0.0
    for start in range(0, n_others, BLOCK):
        size = min(BLOCK, n_others - start)
        sums[:] = 0.0
        for i in range(p.shape[1]):
            _row_against_block(
                p, error, i, others, other_errors, start, distance[:size], product[:size],
                parameters, rest,
            )  # fmt: skip
            weight = row_weights[i]
            for j in range(size):
                sums[j] += weight * product[j]
        total += sums[:size].sum()
    return total


@compiled
def _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, unbiased):  # type: ignore[no-untyped-def]
    """Squared norm of the mean (recentred) element; without its diagonal if `unbiased`."""
    n_classes, n_samples = mixed.shape
    # Rows that a bootstrap left out take no part: the others are packed side by side.
    n_rows = 0
    for n in range(n_samples):
        n_rows += int(row_weights[n] > 0.0)
    size = n_classes * n_rows
    p = scratch[:size].reshape(n_classes, n_rows)
    error = scratch[size : 2 * size].reshape(n_classes, n_rows)
    weights = scratch[2 * size : 2 * size + n_rows]
    scratch = scratch[(2 * n_classes + 1) * n_samples :]
    row = 0
    for n in range(n_samples):
        if row_weights[n] > 0.0:
            weights[row] = row_weights[n]
            for k in range(n_classes):
                p[k, row] = mixed[k, n]
                error[k, row] = mixed[k, n]
            error[labels[n], row] -= 1.0
            row += 1
    diagonal, copies = 0.0, 0.0
    for row in range(n_rows):
        square = 0.0
        for k in range(n_classes):
            square += error[k, row] ** 2
        diagonal += weights[row] * square
        # Two copies of a row are a pair like any other.
        copies += weights[row] * (weights[row] - 1.0) * square
    pairs = copies + 2.0 * _sum_of_pairs(p, error, weights, parameters, scratch)
    if unbiased:
        squared_norm = pairs / (n_samples * (n_samples - 1.0))
    else:
        squared_norm = (pairs + diagonal) / (n_samples * float(n_samples))
    if offset.shape[0] == 0:
        return squared_norm
    # Every element f has the data's mean element R subtracted: the mean of <f - R, g - R> over the
    # same pairs is the mean of <f, g>, less twice the mean of <f, R>, plus |R|^2.
    size = n_classes * n_samples
    other = offset[1 : 1 + size].reshape(n_classes, n_samples)
    other_error = offset[1 + size :].reshape(n_classes, n_samples)
    cross = _sum_across(p, error, weights, other, other_error, parameters, scratch)
    return squared_norm - 2.0 * cross / (n_samples * float(n_samples)) + offset[0]


@compiled_value
def value_uq(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    """Eq. 7, each pair once."""
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, True)
    return state[0]


@compiled_value
def value_b(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    """The V-statistic, rows paired with themselves included."""
    state[0] = _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, False)
    return state[0]
