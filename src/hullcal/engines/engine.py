"""What an engine is: it takes predictions wherever they are, and answers questions about all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import EngineError
from hullcal.distinct import Distinct
from hullcal.engines.objective import Objective
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.sets import ClassifierSet

__all__ = ["IMPOSSIBLE", "Data", "Engine", "EngineError", "Opened", "Problem", "is_dask"]

#: How the note begins where labels have probability 0 whatever the weights.
IMPOSSIBLE = "every member gives the label"


@dataclass(frozen=True, slots=True)
class Problem:
    """An objective for the data, and the way back from distinct members to the user's."""

    objective: Objective
    distinct: Distinct

    @property
    def packed(self) -> Packed:
        """The objective of data that are in memory."""
        assert isinstance(self.objective, Packed)
        return self.objective

    def notes(self) -> tuple[str, ...]:
        """What the data say that a user should hear."""
        impossible = self.objective.impossible()
        if impossible == 0:
            return ()
        return (
            f"{IMPOSSIBLE} of {impossible} rows probability 0, so the log score of "
            "every combination is infinite; likelihoods leave these rows out",
        )


def is_dask(value: Any) -> bool:
    """Whether this is a collection of dask's; tells without importing dask."""
    return type(value).__module__.partition(".")[0] == "dask"


class Data(ABC):
    """Predictions and labels that were checked, wherever they are."""

    n_samples: int
    n_members: int
    n_classes: int
    members: tuple[str, ...] | None
    #: What was done to the input on the way in.
    notes: tuple[str, ...]
    #: The set itself and its labels, where they are in memory.
    classifiers: ClassifierSet | None = None
    labels: NDArray[np.int32] | None = None
    #: Whether predictions can be packed in memory.
    fits_memory: bool = True

    @abstractmethod
    def check(self, measure: Measure, *, in_memory: bool, draws_rows: bool) -> None:
        """Refuse before any work what these data cannot be asked for.

        `in_memory` says that a search or a null needs the predictions themselves, `draws_rows` that
        replicates are made of drawn rows.
        """

    @abstractmethod
    def problem(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Problem:
        """g of these data as a function of the weights, for what `check` let pass."""


class Engine(ABC):
    """Who evaluates."""

    name: ClassVar[str]

    @abstractmethod
    def open(
        self, probs: Any, labels: Any, *, classes: Any, from_logits: bool, from_log: bool
    ) -> AbstractContextManager[Data]:
        """Check the data and hold them ready for as long as the context lasts."""


@dataclass(frozen=True)
class Opened(Engine):
    """Whoever holds these data already: several tests need them checked but once."""

    name: ClassVar[str] = "opened"
    data: Data

    def open(
        self, probs: Any, labels: Any, *, classes: Any, from_logits: bool, from_log: bool
    ) -> AbstractContextManager[Data]:
        return nullcontext(self.data)
