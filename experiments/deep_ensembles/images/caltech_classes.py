"""Which of the 101 Caltech classes are two views of one thing, so that 97 remain?

The paper's Table of data sets has K = 97. Four pairs of classes show the same object twice, whole and
in part, and merging them gives that number; the paper does not say so, and this is our reading.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import hullcal as hc

#: Name after merging, and the two classes it stands for.
PAIRS = {
    "Faces": ("Faces", "Faces_easy"),
    "cougar": ("cougar_body", "cougar_face"),
    "crocodile": ("crocodile", "crocodile_head"),
    "flamingo": ("flamingo", "flamingo_head"),
}


def merged(
    labels: NDArray[np.integer], classes: Sequence[str]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Give labels and names with each pair as one class, which stands where its first one stood."""
    missing = [name for pair in PAIRS.values() for name in pair if name not in classes]
    if missing:
        raise hc.InvalidInputError(
            f"`classes` must hold both classes of each pair to merge them; got none called "
            f"{', '.join(missing)}. Take the whole of Caltech-101, or `merged=False`."
        )
    new_name = {old: new for new, pair in PAIRS.items() for old in pair}
    names = [new_name.get(name, name) for name in classes]
    kept = tuple(dict.fromkeys(names))
    position = np.array([kept.index(name) for name in names], dtype=np.int64)
    return position[labels], kept
