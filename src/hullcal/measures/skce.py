"""SKCE: is the whole probability vector calibrated? Kernel estimators that need no bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_value
from hullcal._compiled.mixing import dot
from hullcal._validation import refusal, unknown
from hullcal.kernels import Kernel, kernel_factors, kernel_named, row_scale, scaled_factors
from hullcal.measures._base import Floats, Measure, Trait


@dataclass(frozen=True, kw_only=True)
class SKCE(Measure):
    r"""Squared kernel calibration error (Eqs. 7 and 8; Widmann et al. 2019).

    With :math:`h_{ij} = (p_i - y_i)^\top \Gamma(p_i, p_j) (p_j - y_j)`, the estimators are

    - ``"ul"``: :math:`\lfloor N/2 \rfloor^{-1} \sum_i h_{2i-1,2i}` over consecutive disjoint pairs
      (an odd last row is dropped; the order of rows matters). Signed. Cost: N·K.
    - ``"uq"``: :math:`\binom{N}{2}^{-1} \sum_{i<j} h_{ij}` over all pairs. Signed. Cost: N²·K, in
      blocks: never an N×N array.
    - ``"b"``: :math:`N^{-2} \sum_{i,j} h_{ij}`, biased; never negative with the
      exponential kernel. Cost: N²·K.

    Large positive values mean miscalibration. The residual is the mean of h for ``"ul"``; for the
    others it is the mean of :math:`\Gamma(\cdot, p_i)(p_i - y_i)`, an element of the kernel's Hilbert
    space, and an offset is subtracted by kernel algebra.

    Parameters
    ----------
    estimator : {"ul", "uq", "b"}
    bandwidth : float or "median"
        Scale of the kernel named by `kernel`.
    kernel : {"exponential", "gaussian"} or Kernel
        A kernel value brings its own bandwidth.

    Examples
    --------
    >>> SKCE(estimator="b")([[1.0, 0.0]] * 2, [0, 1])
    0.5
    >>> SKCE(estimator="uq")([[1.0, 0.0]] * 2, [0, 1])
    0.0
    """

    notion: ClassVar[str] = "strong"
    min_samples: ClassVar[int] = 2
    estimator: Literal["ul", "uq", "b"] = "ul"
    bandwidth: float | Literal["median"] = 1.0
    kernel: str | Kernel = "exponential"

    def __post_init__(self) -> None:
        if self.estimator not in ("ul", "uq", "b"):
            raise unknown("estimator", self.estimator, ("ul", "uq", "b"))
        kernel = kernel_named(self.kernel, self.bandwidth)
        if kernel is self.kernel and self.bandwidth not in (1.0, kernel.bandwidth):
            rule, came = "must be left out beside a Kernel", f"{self.bandwidth!r} beside {kernel!r}"
            raise refusal("bandwidth", rule, came, "Give it to the kernel.")
        object.__setattr__(self, "bandwidth", kernel.bandwidth)

    @classmethod
    def defaults(cls) -> tuple[Measure, ...]:
        return cls(estimator="ul"), cls(estimator="uq"), cls(estimator="b")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The measure's name carries its estimator."""
        return f"skce_{self.estimator}"

    @property
    def value(self) -> Callable[..., float]:  # type: ignore[override]
        """The compiled loop of the estimator."""
        return _value_ul if self.estimator == "ul" else _value_of_pairs

    @property
    def accumulate(self) -> Callable[..., None] | None:  # type: ignore[override]
        """Disjoint pairs add up over blocks of an even number of rows; all pairs do not."""
        return _accumulate_ul if self.estimator == "ul" else None

    @property
    def finish(self) -> Callable[..., float] | None:  # type: ignore[override]
        """The second half of the additive loop."""
        return _finish_ul if self.estimator == "ul" else None

    @property
    def rows_per_unit(self) -> int:  # type: ignore[override]
        """A pair stays together when rows are resampled."""
        return 2 if self.estimator == "ul" else 1

    @property
    def traits(self) -> frozenset[Trait]:  # type: ignore[override]
        """Neighbours make the disjoint pairs, so that their order matters."""
        ordered: tuple[Trait, ...] = ("ordered",) if self.estimator == "ul" else ()
        return frozenset(("residual", "derivatives", *ordered))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        kernel = kernel_named(self.kernel, self.bandwidth)
        return np.array([*kernel.parameters(average), self.estimator == "uq"])

    def settings(self) -> dict[str, Any]:
        kernel = kernel_named(self.kernel, self.bandwidth)
        return {
            "estimator": self.estimator,
            "bandwidth": kernel.bandwidth,
            "kernel": kernel.name,
        }

    def state_size(self, n_classes: int) -> int:
        return 1

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        if self.estimator == "ul":
            return 3 * (n_samples // 2)
        return _WORKSPACE + _packed_size(n_classes, n_samples)

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        return _of_labellings_ul if self.estimator == "ul" else _of_labellings_of_pairs

    def no_offset(self, n_classes: int) -> Floats:
        return np.zeros(1 if self.estimator == "ul" else 0)

    def offset_at(self, mixed: Floats, labels: NDArray[np.int32], parameters: Floats) -> Floats:
        if self.estimator == "ul":
            return super().offset_at(mixed, labels, parameters)
        # The rows at the offset, packed once for all evaluations, and the squared norm of their mean.
        offset = np.zeros(_packed_size(*mixed.shape) + 1)
        _pack(mixed, labels, np.ones(len(labels)), parameters, offset[:-1])
        offset[-1] = SKCE(estimator="b").evaluate(mixed, labels, parameters * [1.0, 1.0, 0.0])
        return offset


@compiled_value
def _accumulate_ul(mixed, labels, row_weights, parameters, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_pairs = n_samples // 2
    distance, product = scratch[:n_pairs], scratch[n_pairs : 2 * n_pairs]
    distance[:] = 0.0
    product[:] = 0.0
    for k in range(n_classes):
        for i in range(n_pairs):
            p, q = mixed[k, 2 * i], mixed[k, 2 * i + 1]
            distance[i] += 0.5 * abs(p - q)
            product[i] += p * q
    kernel_factors(distance, parameters[0], parameters[1], scratch[2 * n_pairs : 3 * n_pairs])
    for i in range(n_pairs):
        a, b = labels[2 * i], labels[2 * i + 1]
        error = product[i] - mixed[b, 2 * i] - mixed[a, 2 * i + 1] + int(a == b)
        state[0] += row_weights[2 * i] * error * distance[i]


@compiled
def _finish_ul(state, offset, parameters, n_samples):  # type: ignore[no-untyped-def]
    state[0] /= n_samples // 2
    return state[0] - offset[0]


@compiled_value
def _value_ul(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    state[0] = 0.0
    _accumulate_ul(mixed, labels, row_weights, parameters, state, scratch)
    return _finish_ul(state, offset, parameters, mixed.shape[1])


@compiled_value
def _of_labellings_ul(mixed, drawn, parameters, out):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_pairs, n_labellings = n_samples // 2, drawn.shape[1]
    factor, product, scratch = np.zeros((3, n_pairs))
    for k in range(n_classes):
        for i in range(n_pairs):
            p, q = mixed[k, 2 * i], mixed[k, 2 * i + 1]
            factor[i] += 0.5 * abs(p - q)
            product[i] += p * q
    kernel_factors(factor, parameters[0], parameters[1], scratch)
    first, second = np.empty((2, n_classes))
    for d in range(n_labellings):
        out[d] = 0.0
    for i in range(n_pairs):
        for k in range(n_classes):
            first[k], second[k] = factor[i] * mixed[k, 2 * i], factor[i] * mixed[k, 2 * i + 1]
        both, same = factor[i] * product[i], factor[i]
        a, b = drawn[2 * i], drawn[2 * i + 1]
        for d in range(n_labellings):
            out[d] += both - first[b[d]] - second[a[d]] + (same if a[d] == b[d] else 0.0)
    for d in range(n_labellings):
        out[d] /= n_pairs


# All pairs of rows, block by block: never an N×N array.

#: Rows of a packed block: small enough for the first-level cache.
_COLUMNS = 128
#: Numbers from a class to the next in a packed block; with a power of two they would share cache lines.
_SPACING = _COLUMNS + 8
#: Pairs computed at a time: two rows with the rows of a block.
_BLOCK = 2 * _COLUMNS
#: Scratch of the sums, beside the packed rows.
_WORKSPACE = 4 * _BLOCK
#: Packed rows are filled up to a multiple of this, as many as one instruction takes.
_STRIDE = 4
# Unsigned, since nothing packed is counted from the end.
_1, _2, _3, _4, _5 = (np.uint64(k * _SPACING) for k in range(1, 6))


def _packed_size(n_classes: int, n_rows: int) -> int:
    """Numbers in the packed blocks of so many rows."""
    return 2 * n_classes * _SPACING * -(-n_rows // _COLUMNS)


@compiled
def _place(row, n_classes):  # type: ignore[no-untyped-def]
    """Where a packed row's first class stands."""
    return row // _COLUMNS * (2 * n_classes * _SPACING) + row % _COLUMNS


@compiled
def _pack(mixed, labels, row_weights, parameters, packed):  # type: ignore[no-untyped-def]
    """Put the rows of positive weight side by side, block by block, and return their number.

    A block holds its rows' probabilities class by class, scaled for the kernel, and then the weighted
    errors w (p - e_y). The classes of a block are a fixed number apart, which is how a compiler sees
    that loops over several of them can be vectorised.
    """
    n_classes, n_samples = mixed.shape
    scale = row_scale(parameters[0], parameters[1])
    errors = np.uint64(n_classes) * _1
    n_rows = 0
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
    # Rows that add nothing, up to a whole stride.
    for row in range(n_rows, -(-n_rows // _STRIDE) * _STRIDE):
        at = np.uint64(_place(row, n_classes))
        for _ in range(2 * n_classes):
            packed[at] = 0.0
            at += _1
    return n_rows


@compiled
def _meet(rows, at, columns, begin, n_classes, size, distances, out):  # type: ignore[no-untyped-def]
    """L1 distances, or inner products, of two rows, one after the other, with `size` columns."""
    next_at = at + np.uint64(1)
    for j in range(size + size):
        out[j] = 0.0
    # Two rows and five classes a pass spare loads of columns, and loads and stores of the sums. One loop
    # over distances and products would need more registers than there are.
    k = 0
    while k + 4 < n_classes:
        a0, b0, c0 = rows[at], rows[at + _1], rows[at + _2]
        d0, e0 = rows[at + _3], rows[at + _4]
        a1, b1, c1 = rows[next_at], rows[next_at + _1], rows[next_at + _2]
        d1, e1 = rows[next_at + _3], rows[next_at + _4]
        if distances:
            for j in range(size):
                i = begin + j
                a, b, c = columns[i], columns[i + _1], columns[i + _2]
                d, e = columns[i + _3], columns[i + _4]
                out[j] += abs(a0 - a) + abs(b0 - b) + abs(c0 - c) + abs(d0 - d) + abs(e0 - e)
                out[size + j] += abs(a1 - a) + abs(b1 - b) + abs(c1 - c) + abs(d1 - d) + abs(e1 - e)
        else:
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
            out[j] += abs(a0 - a) if distances else a0 * a
            out[size + j] += abs(a1 - a) if distances else a1 * a
        k, at, next_at, begin = k + 1, at + _1, next_at + _1, begin + _1


@compiled
def _sum_of_pairs(rows, n_rows, others, n_others, n_classes, parameters, same, workspace):  # type: ignore[no-untyped-def]
    """Sum of h_ij, weighted, over packed rows i and others j; each pair once if they are the same."""
    factors, products = workspace[:_BLOCK], workspace[_BLOCK : 2 * _BLOCK]
    scratch, sums = workspace[2 * _BLOCK : 3 * _BLOCK], workspace[3 * _BLOCK :]
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
            _meet(rows, at, others, begin, n_classes, size, True, factors)
            _meet(rows, at + errors, others, begin + errors, n_classes, size, False, products)
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


@compiled_value
def _value_of_pairs(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    """Squared norm of the mean (recentred) element; without its diagonal for the U-statistic."""
    n_classes, n_samples = mixed.shape
    workspace, rows = scratch[:_WORKSPACE], scratch[_WORKSPACE:]
    n_rows = _pack(mixed, labels, row_weights, parameters, rows)
    pairs = _sum_of_pairs(rows, n_rows, rows, n_rows, n_classes, parameters, True, workspace)
    n_pairs = n_samples * float(n_samples)
    if parameters[2] != 0.0:
        # A draw is no pair with itself; two draws of the same row are a pair like any other.
        diagonal = 0.0
        for n in range(n_samples):
            square = 1.0 - 2.0 * mixed[labels[n], n]
            for k in range(n_classes):
                square += mixed[k, n] ** 2
            diagonal += row_weights[n] * square
        state[0] = (pairs - diagonal) / (n_samples * (n_samples - 1.0))
    else:
        state[0] = pairs / n_pairs
    if offset.shape[0] > 0:
        # Every element f has the data's mean element R subtracted: the mean of <f - R, g - R> over
        # the same pairs is the mean of <f, g>, less twice the mean of <f, R>, plus |R|^2.
        cross = _sum_of_pairs(
            rows, n_rows, offset[:-1], n_samples, n_classes, parameters, False, workspace
        )
        state[0] = state[0] - 2.0 * cross / n_pairs + offset[-1]
    return state[0]


#: Rows of a block that are finished before the next: small enough for the first-level cache.
_STRIP = 16


@compiled_value
def _of_labellings_of_pairs(mixed, drawn, parameters, out):  # type: ignore[no-untyped-def]
    """g of several labellings of the same predictions, where every row counts once.

    With c = Γp, the sum over all pairs is that of p·c, less twice that of c at the labels, plus the
    kernel of rows with the same label. Only this last sum takes pairs of rows for each labelling, one
    pair in K; blocks of the kernel are computed once for all labellings. No labelling changes the
    value of another.
    """
    n_classes, n_samples = mixed.shape
    n_labellings = drawn.shape[1]
    n_blocks = -(-n_samples // _COLUMNS)
    packed = np.empty(2 * n_classes * _SPACING * n_blocks)
    labels = drawn.T.copy()
    _pack(mixed, labels[0], np.ones(n_samples), parameters, packed)
    order = np.empty((n_labellings, n_samples), dtype=np.uint32)
    begins = np.zeros((n_labellings, n_blocks + 1, n_classes), dtype=np.uint32)
    for c in range(n_labellings):
        _sort_by_label(labels[c], order[c], begins[c])
    block, scratch = np.empty(_COLUMNS * _COLUMNS), np.empty(_STRIP * _COLUMNS)
    pair = np.empty(_BLOCK)
    expected = np.zeros((n_classes, n_samples))
    same_label = np.zeros(n_labellings)
    for bj in range(n_blocks):
        j0, j1 = bj * _COLUMNS, min((bj + 1) * _COLUMNS, n_samples)
        size = np.uint64(j1 - j0)
        for bi in range(bj + 1):
            i0, i1 = bi * _COLUMNS, min((bi + 1) * _COLUMNS, n_samples)
            for first in range(i0, i1, _STRIP):
                last = min(first + _STRIP, i1)
                strip = block[(first - i0) * (j1 - j0) : (last - i0) * (j1 - j0)]
                for i in range(first, last, 2):
                    at, begin = np.uint64(_place(i, n_classes)), np.uint64(_place(j0, n_classes))
                    _meet(packed, at, packed, begin, n_classes, size, True, pair)
                    row = np.uint64(i - first) * size
                    for j in range(size + size if i + 1 < last else size):
                        strip[row + j] = pair[j]
                scaled_factors(strip, parameters[0], parameters[1], scratch)
                _add_products(strip, mixed, first, last, expected, j0, j1)
                if bi < bj:
                    n_rows = np.uint64(last - first)
                    for i in range(n_rows):
                        for j in range(size):
                            scratch[j * n_rows + i] = strip[i * size + j]
                    _add_products(scratch, mixed, j0, j1, expected, first, last)
            for c in range(n_labellings):
                same_label[c] += _sum_of_same(block, size, order[c], begins[c], bi, bj)
    both = 0.0
    for k in range(n_classes):
        both += dot(mixed[k], expected[k])
    for c in range(n_labellings):
        own = labels[c]
        one, diagonal = 0.0, 0.0
        for n in range(n_samples):
            one += expected[own[n], n]
            diagonal += mixed[own[n], n]
        pairs = both - 2.0 * one + 2.0 * same_label[c] + n_samples
        if parameters[2] != 0.0:
            squares = 0.0
            for k in range(n_classes):
                squares += dot(mixed[k], mixed[k])
            diagonal = squares - 2.0 * diagonal + n_samples
            out[c] = (pairs - diagonal) / (n_samples * (n_samples - 1.0))
        else:
            out[c] = pairs / (n_samples * float(n_samples))


@compiled
def _add_products(block, p, i0, i1, out, j0, j1):  # type: ignore[no-untyped-def]
    """out[k, j] += sum of block[i, j] p[k, i] over i, rows and columns being those of a block."""
    size = np.uint64(j1 - j0)
    whole = i1 - (i1 - i0) % 4
    for k in range(p.shape[0]):
        own, sums = p[k], out[k, j0:j1]
        row = np.uint64(0)
        # Four rows a pass spare loads and stores of the sums.
        for i in range(i0, whole, 4):
            a, b, c, d = own[i], own[i + 1], own[i + 2], own[i + 3]
            r1, r2 = row + size, row + size + size
            r3 = r2 + size
            for j in range(size):
                two = block[row + j] * a + block[r1 + j] * b
                sums[j] += two + (block[r2 + j] * c + block[r3 + j] * d)
            row = r3 + size
        for i in range(whole, i1):
            for j in range(size):
                sums[j] += block[row + j] * own[i]
            row += size


@compiled
def _sort_by_label(labels, order, begins):  # type: ignore[no-untyped-def]
    """Rows by label and then in order, as places in their block, and where each block's begin."""
    one = np.uint32(1)
    for n in range(labels.shape[0]):
        begins[n // _COLUMNS + 1, labels[n]] += one
    total = np.uint32(0)
    for k in range(begins.shape[1]):
        begins[0, k] = total
        for b in range(1, begins.shape[0]):
            begins[b, k] += begins[b - 1, k]
        total = begins[begins.shape[0] - 1, k]
    places = begins[0].copy()
    for n in range(labels.shape[0]):
        order[places[labels[n]]] = n % _COLUMNS
        places[labels[n]] += one


@compiled
def _sum_of_same(block, size, order, begins, bi, bj):  # type: ignore[no-untyped-def]
    """Sum of the kernel over pairs of rows with the same label, i in block bi before j in block bj."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for k in range(begins.shape[1]):
        rows, columns = (
            order[begins[bi, k] : begins[bi + 1, k]],
            order[begins[bj, k] : begins[bj + 1, k]],
        )
        if bi == bj:
            for a in range(rows.shape[0]):
                row = rows[a] * size
                for b in range(a):
                    s0 += block[row + columns[b]]
            continue
        whole = rows.shape[0] - rows.shape[0] % 4
        for a in range(0, whole, 4):
            r0, r1 = rows[a] * size, rows[a + 1] * size
            r2, r3 = rows[a + 2] * size, rows[a + 3] * size
            for b in range(columns.shape[0]):
                column = columns[b]
                s0 += block[r0 + column]
                s1 += block[r1 + column]
                s2 += block[r2 + column]
                s3 += block[r3 + column]
        for a in range(whole, rows.shape[0]):
            row = rows[a] * size
            for b in range(columns.shape[0]):
                s0 += block[row + columns[b]]
    return (s0 + s1) + (s2 + s3)
