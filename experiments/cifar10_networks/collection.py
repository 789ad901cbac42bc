"""What is looked at: the networks' predictions, the labels, and people's label distributions."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hullcal as hc

#: GoogLeNet is the first Inception network; other families show in the names.
_FAMILY = {"googlenet": "inception"}


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Rows of all three are the same images in the same order."""

    networks: hc.ClassifierSet
    labels: NDArray[np.int64]
    humans: NDArray[np.float64]  # (n_samples, n_classes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the networks."""
        assert self.networks.members is not None
        return self.networks.members


def read(predictions: Path, humans: Path, rows: int | None = None) -> Collection:
    """Both files, or their first rows."""
    with np.load(predictions, allow_pickle=False) as data:
        probs, labels, members = data["probs"], data["labels"], data["members"]
    with np.load(humans, allow_pickle=False) as data:
        opinions = data["probs"]
    expected = (probs.shape[0], probs.shape[2])
    if opinions.shape != expected:
        raise hc.InvalidInputError(
            f"`humans` must have shape (n_samples, n_classes) = {expected}, one distribution for each "
            f"row of `predictions`; got {opinions.shape}. Pass the file of the same images."
        )
    return Collection(
        networks=hc.ClassifierSet(probs[:rows], members=members),
        labels=labels[:rows].astype(np.int64),
        humans=_normalised(opinions[:rows]),
    )


def families(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Networks by family, in the order of the file.

    >>> families(("resnet18", "googlenet", "resnet_orig", "inception_v3"))
    {'resnet': ['resnet18', 'resnet_orig'], 'inception': ['googlenet', 'inception_v3']}
    """
    found: dict[str, list[str]] = {}
    for name in names:
        stem = re.split(r"[\d_]", name, maxsplit=1)[0]
        found.setdefault(_FAMILY.get(stem, stem), []).append(name)
    return found


def _normalised(probs: NDArray[np.floating]) -> NDArray[np.float64]:
    doubles = probs.astype(np.float64)
    return doubles / doubles.sum(axis=-1, keepdims=True)
