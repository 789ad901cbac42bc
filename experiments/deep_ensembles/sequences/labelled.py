"""Which sequences of which classes make up a data set?"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hullcal import InvalidInputError

__all__ = ["Labelled", "balanced", "first_classes"]


@dataclass(frozen=True)
class Labelled:
    """Sequences, and the class of each by name."""

    sequences: list[str]
    labels: list[str]

    def __post_init__(self) -> None:
        if len(self.sequences) != len(self.labels):
            raise InvalidInputError(
                f"`labels` must name one class for each sequence; got {len(self.labels)} labels for "
                f"{len(self.sequences)} sequences. Leave out what has no label."
            )

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, sorted."""
        return tuple(sorted(set(self.labels)))


def balanced(
    pairs: Iterable[tuple[str, str]], *, min_count: int, max_count: int, seed: int
) -> Labelled:
    """Take each sequence once, and from `min_count` to `max_count` sequences of a class.

    A sequence that comes with two labels is left out: no classifier could tell which is right.

    Parameters
    ----------
    pairs : iterable of (sequence, label)
    min_count : int
        Classes with fewer sequences are left out.
    max_count : int
        Of classes with more sequences, that many are drawn.
    seed : int
        Of the draws; classes come sorted, so nothing else decides.

    Returns
    -------
    Labelled
        Class by class.
    """
    if not 1 <= min_count <= max_count:
        raise InvalidInputError(
            f"`min_count` must be from 1 to `max_count`; got {min_count} and {max_count}. "
            f"Exchange or change them."
        )
    label_of: dict[str, str | None] = {}
    for sequence, label in pairs:
        same = label_of.setdefault(sequence, label) == label
        label_of[sequence] = label if same else None
    groups: dict[str, list[str]] = defaultdict(list)
    for sequence, only in label_of.items():
        if only is not None:
            groups[only].append(sequence)
    rng = np.random.default_rng(seed)
    chosen = Labelled([], [])
    for label, group in sorted(groups.items()):
        if len(group) >= min_count:
            drawn = np.sort(rng.permutation(len(group))[:max_count])
            chosen.sequences.extend(group[i] for i in drawn)
            chosen.labels.extend([label] * len(drawn))
    return chosen


def first_classes(labelled: Labelled, n_classes: int) -> Labelled:
    """Keep the sequences of the first few classes in the order of their names."""
    if not 2 <= n_classes <= len(labelled.classes):
        raise InvalidInputError(
            f"`n_classes` must be from 2 to the {len(labelled.classes)} classes that there are; "
            f"got {n_classes}. Leave it out for all of them."
        )
    kept = set(labelled.classes[:n_classes])
    pairs = zip(labelled.sequences, labelled.labels, strict=True)
    return Labelled(*map(list, zip(*(pair for pair in pairs if pair[1] in kept), strict=True)))
