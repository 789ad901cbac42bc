"""All sizes of a set at once, averaged over its instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from hullcal.sets import ClassifierSet
from hullcal.uncertainty.entropy import entropy_bounds, mutual_information
from hullcal.uncertainty.hartley import generalized_hartley, is_approximate
from hullcal.uncertainty.spread import interval_width, tv_diameter

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

    Attributes
    ----------
    mutual_information : float
        Nats.
    generalized_hartley : float
        Bits.
    lower_entropy, upper_entropy : float
        Nats.
    tv_diameter, interval_width : float
        From 0 to 1.
    approximated : bool
        Whether classes were merged for `generalized_hartley`.
    """

    mutual_information: float
    generalized_hartley: float
    lower_entropy: float
    upper_entropy: float
    tv_diameter: float
    interval_width: float
    approximated: bool

    def __getitem__(self, name: str) -> float:
        if name not in set(self):
            raise KeyError(name)
        return getattr(self, name)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


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
    return Sizes(
        mutual_information=float(mutual_information(classifiers, n_jobs=n_jobs).mean()),
        generalized_hartley=float(generalized_hartley(classifiers, n_jobs=n_jobs).mean()),
        lower_entropy=float(lower.mean()),
        upper_entropy=float(upper.mean()),
        tv_diameter=float(tv_diameter(classifiers, n_jobs=n_jobs).mean()),
        interval_width=float(interval_width(classifiers, n_jobs=n_jobs).mean()),
        approximated=is_approximate(classifiers.n_classes),
    )
