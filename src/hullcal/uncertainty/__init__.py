"""Size of the set: how much epistemic uncertainty its members express, one value per instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hullcal.sets import ClassifierSet
from hullcal.uncertainty.entropy import entropy_bounds, mutual_information
from hullcal.uncertainty.spread import MAX_CLASSES, generalized_hartley, interval_width, tv_diameter

__all__ = [
    "UNITS",
    "Sizes",
    "entropy_bounds",
    "generalized_hartley",
    "interval_width",
    "mutual_information",
    "summary",
    "tv_diameter",
]

#: The sizes, and what they are measured in.
UNITS = {
    "mutual_information": "nats",
    "generalized_hartley": "bits",
    "lower_entropy": "nats",
    "upper_entropy": "nats",
    "tv_diameter": "from 0 to 1",
    "interval_width": "from 0 to 1",
}


@dataclass(frozen=True, kw_only=True)
class Sizes(Mapping[str, float]):
    """Averages over the instances; also a mapping, so that `dict(sizes)` is a row of a table.

    The units of the six sizes are in `UNITS`; `approximated` tells whether classes were merged for
    `generalized_hartley`.
    """

    mutual_information: float
    generalized_hartley: float
    lower_entropy: float
    upper_entropy: float
    tv_diameter: float
    interval_width: float
    approximated: bool

    def __getitem__(self, name: str) -> float:
        return vars(self)[name]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))


def summary(probs: Any, *, n_jobs: int = 1) -> Sizes:
    """Every size of the set, averaged over its instances.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
        More than 16 classes are merged for the generalised Hartley measure; a warning and
        `approximated` tell.
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    Sizes

    Examples
    --------
    >>> summary([[[1.0, 0.0], [0.0, 1.0]]]).tv_diameter
    1.0
    """
    classifiers = ClassifierSet.of(probs)
    lower, upper = entropy_bounds(classifiers, n_jobs=n_jobs)
    values = {
        "mutual_information": mutual_information(classifiers, n_jobs=n_jobs),
        "generalized_hartley": generalized_hartley(classifiers, n_jobs=n_jobs),
        "lower_entropy": lower,
        "upper_entropy": upper,
        "tv_diameter": tv_diameter(classifiers, n_jobs=n_jobs),
        "interval_width": interval_width(classifiers, n_jobs=n_jobs),
    }
    means = {name: float(value.mean()) for name, value in values.items()}
    return Sizes(**means, approximated=classifiers.n_classes > MAX_CLASSES)
