"""How are names and weights written into a sentence?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["printable", "weights_in_words"]

#: Members shown by name.
_SHOWN = 6


def printable(text: str) -> str:
    """A user's name without characters that a terminal would obey or a page would swallow."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def weights_in_words(weights: NDArray[np.float64], members: tuple[str, ...] | None) -> str:
    """The largest weights by member, and how much the others share."""
    order = np.argsort(-weights, kind="stable")
    # One more takes no more room than saying that there is one.
    most = _SHOWN + (np.count_nonzero(weights) == _SHOWN + 1)
    shown = [m for m in order[:most] if weights[m] > 0.0005]
    words = [
        f"{weights[m]:.3f} on {f'member {m}' if members is None else printable(members[m])}"
        for m in shown
    ]
    rest = math.fsum(weights[order[len(shown) :]])
    n_rest = int(np.count_nonzero(weights)) - len(shown)
    if n_rest > 0 and rest >= 0.0005:
        words.append(f"{rest:.3f} on {n_rest} others")
    return ", ".join(words)
