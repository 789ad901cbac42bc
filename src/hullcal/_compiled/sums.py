"""Sums in four strands: without fastmath an addition has to wait for the one before it."""

from __future__ import annotations

from hullcal._compiled.jit import compiled


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
