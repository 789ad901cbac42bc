"""How the instances of a set are visited: in blocks, on threads, each by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_jobs
from hullcal.sets import ClassifierSet
from hullcal.threads import blocks, in_order

Floats = NDArray[np.float64]

#: Probabilities of a block of instances: small enough for the second-level cache.
_BLOCK = 50_000


def per_instance(
    loop: Callable[..., None], probs: Any, *arguments: Any, n_values: int = 1, n_jobs: int
) -> Floats:
    """Values of every instance, (n_samples, n_values): loop(members (n, M, K), *arguments, out)."""
    members = ClassifierSet.of(probs).probs
    n_samples, n_members, n_classes = members.shape
    out = np.empty((n_samples, n_values))

    def block(bounds: tuple[int, int]) -> None:
        first, last = bounds
        # Blocks are copied one at a time, so that float32 and memory maps never become one array.
        rows = np.ascontiguousarray(members[first:last], dtype=np.float64)
        loop(rows, *arguments, out[first:last])

    size = max(1, _BLOCK // (n_members * n_classes))
    for _ in in_order(block, blocks(0, n_samples, size), n_jobs=check_jobs(n_jobs)):
        pass
    return out
