"""The loops of SKCE over all pairs of rows, block by block: never an N×N array."""

from __future__ import annotations

import numpy as np

from hullcal._compiled.jit import compiled, compiled_value
from hullcal.kernels import kernel_factors, row_scale, scaled_factors

#: Rows of a packed block: small enough for the first-level cache.
_COLUMNS = 128
#: Numbers from a class to the next in a packed block; with a power of two they would share cache lines.
_SPACING = _COLUMNS + 8
#: Pairs computed at a time: two rows with the rows of a block.
BLOCK = 2 * _COLUMNS
#: Scratch of the sums, beside the packed rows.
WORKSPACE = 4 * BLOCK
#: Packed rows are filled up to a multiple of this, as many as one instruction takes.
_STRIDE = 4
# Unsigned, since nothing packed is counted from the end.
_1, _2, _3, _4, _5 = (np.uint64(k * _SPACING) for k in range(1, 6))


def packed_size(n_classes: int, n_rows: int) -> int:
    """Numbers in the packed blocks of so many rows."""
    return 2 * n_classes * _SPACING * -(-n_rows // _COLUMNS)


@compiled
def _place(row, n_classes):  # type: ignore[no-untyped-def]
    """Where a packed row's first class stands."""
    return row // _COLUMNS * (2 * n_classes * _SPACING) + row % _COLUMNS


@compiled
def pack(mixed, labels, row_weights, parameters, packed):  # type: ignore[no-untyped-def]
    """Put the rows of positive weight side by side, block by block, and return their number.

    A block holds its rows' probabilities class by class, scaled for the kernel, and then the weighted
    errors w (p - e_y). The classes of a block are a fixed number apart, which is how a compiler sees
    that loops over several of them can be vectorised.
    """
    n_rows = pack_more(mixed, labels, row_weights, parameters, 0, packed)
    fill_up(mixed.shape[0], n_rows, packed)
    return n_rows


@compiled
def pack_more(mixed, labels, row_weights, parameters, n_rows, packed):  # type: ignore[no-untyped-def]
    """Pack rows behind `n_rows` others, and return the number of all."""
    n_classes, n_samples = mixed.shape
    scale = row_scale(parameters[0], parameters[1])
    errors = np.uint64(n_classes) * _1
    for n in range(n_samples):
        weight = row_weights[n]
        # Rows that a bootstrap left out take no part.
        if weight > 0.0:
            at = np.uint64(_place(n_rows, n_classes))
            of_label = at + errors + np.uint64(labels[n]) * _1
            for k in range(n_classes):
                packed[at] = scale * mixed[k, n]
                packed[at + errors] = weight * mixed[k, n]
                at += _1
            packed[of_label] -= weight
            n_rows += 1
    return n_rows


@compiled
def fill_up(n_classes, n_rows, packed):  # type: ignore[no-untyped-def]
    """Rows that add nothing, up to a whole stride."""
    for row in range(n_rows, -(-n_rows // _STRIDE) * _STRIDE):
        at = np.uint64(_place(row, n_classes))
        for _ in range(2 * n_classes):
            packed[at] = 0.0
            at += _1


@compiled
def squared_errors(mixed, labels, row_weights):  # type: ignore[no-untyped-def]
    """Sum of |p - e_y|^2, weighted: what rows paired with themselves add up to."""
    n_classes, n_samples = mixed.shape
    total = 0.0
    for n in range(n_samples):
        square = 1.0 - 2.0 * mixed[labels[n], n]
        for k in range(n_classes):
            square += mixed[k, n] ** 2
        total += row_weights[n] * square
    return total


@compiled
def _distances(rows, at, columns, begin, n_classes, size, out):  # type: ignore[no-untyped-def]
    """L1 distances of two rows, one after the other, from `size` columns."""
    next_at = at + np.uint64(1)
    for j in range(size + size):
        out[j] = 0.0
    # Two rows and five classes a pass spare loads of columns, and loads and stores of the sums.
    k = 0
    while k + 4 < n_classes:
        a0, b0, c0 = rows[at], rows[at + _1], rows[at + _2]
        d0, e0 = rows[at + _3], rows[at + _4]
        a1, b1, c1 = rows[next_at], rows[next_at + _1], rows[next_at + _2]
        d1, e1 = rows[next_at + _3], rows[next_at + _4]
        for j in range(size):
            i = begin + j
            a, b, c = columns[i], columns[i + _1], columns[i + _2]
            d, e = columns[i + _3], columns[i + _4]
            out[j] += abs(a0 - a) + abs(b0 - b) + abs(c0 - c) + abs(d0 - d) + abs(e0 - e)
            out[size + j] += abs(a1 - a) + abs(b1 - b) + abs(c1 - c) + abs(d1 - d) + abs(e1 - e)
        k, at, next_at, begin = k + 5, at + _5, next_at + _5, begin + _5
    while k < n_classes:
        a0, a1 = rows[at], rows[next_at]
        for j in range(size):
            a = columns[begin + j]
            out[j] += abs(a0 - a)
            out[size + j] += abs(a1 - a)
        k, at, next_at, begin = k + 1, at + _1, next_at + _1, begin + _1


@compiled
def _products(rows, at, columns, begin, n_classes, size, out):  # type: ignore[no-untyped-def]
    """Inner products of two rows, one after the other, with `size` columns; see `_distances`.

    One loop over distances and products would need more registers than there are.
    """
    next_at = at + np.uint64(1)
    for j in range(size + size):
        out[j] = 0.0
    k = 0
    while k + 4 < n_classes:
        a0, b0, c0 = rows[at], rows[at + _1], rows[at + _2]
        d0, e0 = rows[at + _3], rows[at + _4]
        a1, b1, c1 = rows[next_at], rows[next_at + _1], rows[next_at + _2]
        d1, e1 = rows[next_at + _3], rows[next_at + _4]
        for j in range(size):
            i = begin + j
            a, b, c = columns[i], columns[i + _1], columns[i + _2]
            d, e = columns[i + _3], columns[i + _4]
            out[j] += a0 * a + b0 * b + c0 * c + d0 * d + e0 * e
            out[size + j] += a1 * a + b1 * b + c1 * c + d1 * d + e1 * e
        k, at, next_at, begin = k + 5, at + _5, next_at + _5, begin + _5
    while k < n_classes:
        a0, a1 = rows[at], rows[next_at]
        for j in range(size):
            a = columns[begin + j]
            out[j] += a0 * a
            out[size + j] += a1 * a
        k, at, next_at, begin = k + 1, at + _1, next_at + _1, begin + _1


@compiled
def sum_of_pairs(rows, n_rows, others, n_others, n_classes, parameters, same, workspace):  # type: ignore[no-untyped-def]
    """Sum of h_ij, weighted, over packed rows i and others j; each pair once if they are the same."""
    factors, products = workspace[:BLOCK], workspace[BLOCK : 2 * BLOCK]
    scratch, sums = workspace[2 * BLOCK : 3 * BLOCK], workspace[3 * BLOCK :]
    errors = np.uint64(n_classes) * _1
    filled = -(-n_others // _STRIDE) * _STRIDE
    total = 0.0
    for start in range(0, n_others, _COLUMNS):
        stop = min(start + _COLUMNS, filled)
        for j in range(_COLUMNS):
            sums[j] = 0.0
        for i in range(0, min(stop, n_rows) if same else n_rows, 2):
            first = max(start, i // _STRIDE * _STRIDE) if same else start
            size = np.uint64(stop - first)
            at, begin = np.uint64(_place(i, n_classes)), np.uint64(_place(first, n_classes))
            _distances(rows, at, others, begin, n_classes, size, factors)
            _products(rows, at + errors, others, begin + errors, n_classes, size, products)
            scaled_factors(factors[: size + size], parameters[0], parameters[1], scratch)
            if same and first <= i:
                # Rows of one stride meet in both orders, and with themselves.
                for j in range(np.uint64(_STRIDE)):
                    products[j] *= 0.5
                    products[size + j] *= 0.5
            begin = np.uint64(first - start)
            for j in range(size):
                pair = factors[j] * products[j] + factors[size + j] * products[size + j]
                sums[begin + j] += pair
        for j in range(_COLUMNS):
            total += sums[j]
    return 2.0 * total if same else total


@compiled
def mean_uq(pairs, diagonal, n_samples):  # type: ignore[no-untyped-def]
    """The mean over pairs of different rows, from the sum over all pairs and that of the diagonal."""
    return (pairs - diagonal) / (n_samples * (n_samples - 1.0))


@compiled
def mean_b(pairs, n_samples):  # type: ignore[no-untyped-def]
    """The mean over all pairs."""
    return pairs / (n_samples * float(n_samples))


@compiled
def _all_pairs(mixed, labels, row_weights, parameters, offset, scratch, unbiased):  # type: ignore[no-untyped-def]
    """Squared norm of the mean (recentred) element; without its diagonal if `unbiased`."""
    n_classes, n_samples = mixed.shape
    workspace, rows = scratch[:WORKSPACE], scratch[WORKSPACE:]
    n_rows = pack(mixed, labels, row_weights, parameters, rows)
    pairs = sum_of_pairs(rows, n_rows, rows, n_rows, n_classes, parameters, True, workspace)
    if unbiased:
        # A draw is no pair with itself; two draws of the same row are a pair like any other.
        squared_norm = mean_uq(pairs, squared_errors(mixed, labels, row_weights), n_samples)
    else:
        squared_norm = mean_b(pairs, n_samples)
    if offset.shape[0] == 0:
        return squared_norm
    # Every element f has the data's mean element R subtracted: the mean of <f - R, g - R> over the
    # same pairs is the mean of <f, g>, less twice the mean of <f, R>, plus |R|^2.
    cross = sum_of_pairs(
        rows, n_rows, offset[:-1], n_samples, n_classes, parameters, False, workspace
    )
    return squared_norm - 2.0 * cross / (n_samples * float(n_samples)) + offset[-1]


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


@compiled
def pair_terms(p, error, first, parameters, out, scratch):  # type: ignore[no-untyped-def]
    """h_ij of the rows from `first` on, as many as `out` has room for, with all rows."""
    n_classes, n_rows = p.shape
    for i in range(out.shape[0]):
        for start in range(0, n_rows, BLOCK):
            begin, size = np.uint64(start), np.uint64(min(BLOCK, n_rows - start))
            distance, product = scratch[:size], scratch[BLOCK : BLOCK + size]
            for j in range(size):
                distance[j] = 0.0
                product[j] = 0.0
            for k in range(n_classes):
                p_k, error_k = 0.5 * p[k, first + i], error[k, first + i]
                for j in range(size):
                    distance[j] += abs(p_k - 0.5 * p[k, begin + j])
                for j in range(size):
                    product[j] += error_k * error[k, begin + j]
            kernel_factors(distance, parameters[0], parameters[1], scratch[2 * BLOCK :])
            for j in range(size):
                out[i, begin + j] = distance[j] * product[j]
