"""Mixed predictions, what is drawn from them, and sums over them; rows are the inner loop everywhere."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline
from hullcal._compiled.streams import LABELS, uniforms


@compiled
def mix(members, weights, mixed):  # type: ignore[no-untyped-def]
    """mixed = sum of weights[m] * members[m].

    Differences from the member of the largest weight are added up in order of m. So nothing is rounded
    where members agree, nor at a vertex, and a probability on the edge of a bin stays there. Equal
    weights are an average, which is that of counts where members are votes.
    """
    n_members, n_classes, n_samples = members.shape
    used = np.empty(n_members, dtype=np.int64)
    n_used, largest, equal = 0, 0, True
    for m in range(n_members):
        largest = m if weights[m] > weights[largest] else largest
    for m in range(n_members):
        equal &= weights[m] == 0.0 or weights[m] == weights[largest]
        if weights[m] != 0.0 and m != largest:
            used[n_used] = m
            n_used += 1
    for k in range(n_classes):
        base = members[largest, k]
        copy(base, mixed[k])
        u = 0
        # Three members a pass spare loads and stores of the sum without changing its order.
        while u + 2 < n_used:
            a, weight_a = members[used[u], k], weights[used[u]]
            b, weight_b = members[used[u + 1], k], weights[used[u + 1]]
            c, weight_c = members[used[u + 2], k], weights[used[u + 2]]
            if equal:
                for n in range(n_samples):
                    mixed[k, n] = mixed[k, n] + a[n] + b[n] + c[n]
            else:
                for n in range(n_samples):
                    p = base[n]
                    mixed[k, n] = (
                        mixed[k, n]
                        + weight_a * (a[n] - p)
                        + weight_b * (b[n] - p)
                        + weight_c * (c[n] - p)
                    )
            u += 3
        while u < n_used:
            a, weight_a = members[used[u], k], weights[used[u]]
            for n in range(n_samples):
                mixed[k, n] += a[n] if equal else weight_a * (a[n] - base[n])
            u += 1
        if equal:
            for n in range(n_samples):
                mixed[k, n] /= n_used + 1


@compiled
def shift(mixed, members, gaining, losing, step, out):  # type: ignore[no-untyped-def]
    """out = mixed + step * (gaining - losing member), the rank-one change of a pairwise move.

    Classes and rows are one flat axis. Members come by number, since cutting them out of their array
    would cost a small evaluation a tenth of its time.
    """
    for i in range(mixed.shape[0]):
        out[i] = mixed[i] + step * (members[gaining, i] - members[losing, i])


@compiled
def blend(mixed, members, member, amount, out):  # type: ignore[no-untyped-def]
    """out = mixed + amount * (member - mixed): a move towards it, or away if amount < 0."""
    for i in range(mixed.shape[0]):
        out[i] = mixed[i] + amount * (members[member, i] - mixed[i])


@compiled
def end_of_group(bases, amounts, first):  # type: ignore[no-untyped-def]
    """Where the bases end that are, with their moves, the same as the first: replicates at a start."""
    last = first + 1
    while last < bases.shape[0]:
        for m in range(bases.shape[1]):
            if bases[last, m] != bases[first, m]:
                return last
        for c in range(amounts.shape[1]):
            if amounts[last, c] != amounts[first, c]:
                return last
        last += 1
    return last


@compiled
def fill(target, value):  # type: ignore[no-untyped-def]
    """Every entry = value; a loop compiles in a fraction of the time a slice assignment takes."""
    for i in range(target.shape[0]):
        target[i] = value


@compiled
def copy(source, target):  # type: ignore[no-untyped-def]
    """target = source, entry by entry."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@compiled
def add(source, target):  # type: ignore[no-untyped-def]
    """target += source, entry by entry."""
    for i in range(source.shape[0]):
        target[i] += source[i]


#: Marks in `scratch` that predictions are those of the last call: no number that a loop would leave.
SAME = 1.0e-300 / 3.0


@compiled_inline
def again(scratch):  # type: ignore[no-untyped-def]
    """Whether the caller has marked the predictions as those of the last call; takes the mark away."""
    marked = scratch[-1] == SAME
    scratch[-1] = 0.0
    return marked


@compiled_inline
def all_once(row_weights):  # type: ignore[no-untyped-def]
    """Whether every row counts once."""
    others = 0
    for n in range(row_weights.shape[0]):
        others += int(row_weights[n] != 1.0)
    return others == 0


# Sums in four strands: without fastmath an addition has to wait for the one before it.


@compiled
def absolute_distance(a, b):  # type: ignore[no-untyped-def]
    """Sum of |a[i] - b[i]|."""
    size = a.shape[0]
    whole = size - size % 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 4):
        s0 += abs(a[i] - b[i])
        s1 += abs(a[i + 1] - b[i + 1])
        s2 += abs(a[i + 2] - b[i + 2])
        s3 += abs(a[i + 3] - b[i + 3])
    for i in range(whole, size):
        s0 += abs(a[i] - b[i])
    return (s0 + s1) + (s2 + s3)


@compiled
def dot(a, b):  # type: ignore[no-untyped-def]
    """Sum of a[i] * b[i]."""
    size = a.shape[0]
    whole = size - size % 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, size):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@compiled
def cumulate(mixed, out):  # type: ignore[no-untyped-def]
    """Running sums over the classes."""
    n_classes, n_samples = mixed.shape
    for n in range(n_samples):
        out[0, n] = mixed[0, n]
    for k in range(1, n_classes):
        for n in range(n_samples):
            out[k, n] = out[k - 1, n] + mixed[k, n]


@compiled
def draw_labels(cumulative, key, first, labels):  # type: ignore[no-untyped-def]
    """Labels of replicates first, first + 1, ...: one a row, from its distribution."""
    levels = np.empty(labels.shape[1])
    for replicate in range(labels.shape[0]):
        uniforms(key, LABELS, first + replicate, levels)
        invert(cumulative, levels, labels[replicate])


@compiled
def invert(cumulative, levels, labels):  # type: ignore[no-untyped-def]
    """Labels at uniform levels: the number of classes whose running sum is not above the level."""
    n_classes, n_samples = cumulative.shape
    for n in range(n_samples):
        levels[n] *= cumulative[n_classes - 1, n]
        labels[n] = 0
    for k in range(n_classes - 1):
        for n in range(n_samples):
            labels[n] += np.int32(cumulative[k, n] <= levels[n])


#: Running sums that stand between two of those looked at first.
_STRIDE = 32


def turned(cumulative: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The running sums of each row together, and every 32nd of them: what `draw_of_many` looks at."""
    running = np.ascontiguousarray(cumulative.T)
    return running, np.ascontiguousarray(running[:, _STRIDE - 1 : -1 : _STRIDE])


@compiled
def draw_of_many(running, some, key, first, labels):  # type: ignore[no-untyped-def]
    """The labels of `draw_labels`, where classes are many.

    Running sums never decrease, so that those which are not above a level come first: counting some
    of them says among which the others have to be counted.
    """
    n_samples, n_classes = running.shape
    levels = np.empty(n_samples)
    for replicate in range(labels.shape[0]):
        uniforms(key, LABELS, first + replicate, levels)
        for n in range(n_samples):
            level = levels[n] * running[n, n_classes - 1]
            passed = 0
            for i in range(some.shape[1]):
                passed += int(some[n, i] <= level)
            label = _STRIDE * passed
            for k in range(label, min(label + _STRIDE, n_classes - 1)):
                label += int(running[n, k] <= level)
            labels[replicate, n] = label


@compiled
def maximum_likelihood(members, labels, row_weights, max_iterations, tolerance, out):  # type: ignore[no-untyped-def]
    """EM for the mixture likelihood from uniform weights.

    Rows to which every member gives probability 0 carry no information and are left out. With a
    negative `tolerance` the logarithms are spared and all iterations are run.
    """
    n_members, _, n_samples = members.shape
    by_member = np.empty((n_members, n_samples))
    by_row = np.empty((n_samples, n_members))
    likelihood = np.zeros(n_samples)
    for m in range(n_members):
        for n in range(n_samples):
            by_member[m, n] = members[m, labels[n], n]
            likelihood[n] = max(likelihood[n], by_member[m, n])
    # The scale of a row cancels; scaled to 1, no row's likelihood can underflow.
    for n in range(n_samples):
        scale = likelihood[n] if likelihood[n] > 0.0 else 1.0
        for m in range(n_members):
            by_member[m, n] /= scale
            by_row[n, m] = by_member[m, n]
    gains = np.empty(n_members)
    fill(out, 1.0 / n_members)
    total = 0.0
    previous = -np.inf
    for _ in range(max_iterations):
        fill(likelihood, 0.0)
        for m in range(n_members):
            weight = out[m]
            for n in range(n_samples):
                likelihood[n] += weight * by_member[m, n]
        if tolerance >= 0.0:
            score = 0.0
            total = 0.0
            for n in range(n_samples):
                if likelihood[n] > 0.0 and row_weights[n] > 0.0:
                    score += row_weights[n] * math.log(likelihood[n])
                    total += row_weights[n]
            if total == 0.0 or score - previous < tolerance * total:
                break
            previous = score
        for n in range(n_samples):
            likelihood[n] = row_weights[n] / likelihood[n] if likelihood[n] > 0.0 else 0.0
        fill(gains, 0.0)
        for n in range(n_samples):
            ratio = likelihood[n]
            for m in range(n_members):
                gains[m] += ratio * by_row[n, m]
        norm = 0.0
        for m in range(n_members):
            gains[m] *= out[m]
            norm += gains[m]
        if norm == 0.0:
            break
        for m in range(n_members):
            out[m] = gains[m] / norm


@compiled
def maximum_likelihoods(members, labels, row_weights, n_iterations, out):  # type: ignore[no-untyped-def]
    """So many steps for each case; `out` is (n_cases, n_members)."""
    for case in range(out.shape[0]):
        maximum_likelihood(members, labels[case], row_weights[case], n_iterations, -1.0, out[case])


@compiled
def add_traits(probs, positions, out):  # type: ignore[no-untyped-def]
    """Add rows of predictions to the traits of some members; see `hullcal.distinct.traits`."""
    n_rows, _, n_classes = probs.shape
    n_members = positions.shape[0]
    roots = np.empty(n_classes)
    for n in range(n_rows):
        fill(roots, 0.0)
        for m in range(n_members):
            own = probs[n, positions[m]]
            for k in range(n_classes):
                roots[k] += own[k]
        for k in range(n_classes):
            roots[k] = math.sqrt(roots[k] / n_members)
        for m in range(n_members):
            own = probs[n, positions[m]]
            for k in range(n_classes):
                p = np.float64(own[k])
                out[m, k] += p * (p + roots[k])
