"""What a test and a search give back: data, what follows from it, and words for it."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hullcal import pvalues
from hullcal._validation import InvalidInputError, check_fraction
from hullcal.notes import Note
from hullcal.words import result_in_words, weights_in_words


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Note):
        return tuple(note.to_dict() for note in value)
    return value.tolist() if isinstance(value, np.ndarray) else copy.deepcopy(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Frozen data with a dictionary form that JSON can hold."""

    def __post_init__(self) -> None:
        for each in fields(self):
            # A copy: whoever passed the value goes on writing to it, and changes no result.
            value = copy.deepcopy(getattr(self, each.name))
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, each.name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickle does not say that an array is frozen.
        self.__dict__.update(state)
        self.__post_init__()

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain Python values; infinities stay floats."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The result that `to_dict` described."""
        names = {each.name for each in fields(cls)}
        if not isinstance(data, Mapping):
            raise InvalidInputError(
                f"not a {cls.__name__}: a dictionary is needed; got {data!r:.80}. "
                "Pass what `to_dict` gave."
            )
        if set(data) != names:
            odd = sorted(names ^ set(data))
            raise InvalidInputError(
                f"not a {cls.__name__}: missing or unknown fields {odd}. Pass what `to_dict` gave."
            )
        values = dict(data)
        for name in {"weights", "null_distribution"} & names:
            try:
                values[name] = np.asarray(values[name], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"not a {cls.__name__}: `{name}` must be numbers; got {values[name]!r:.80}. "
                    "Pass what `to_dict` gave."
                ) from error
        if "members" in names and values["members"] is not None:
            values["members"] = tuple(values["members"])
        try:
            values["notes"] = tuple(Note.from_dict(note) for note in values["notes"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"not a {cls.__name__}: `notes` must be known ones; got {values['notes']!r:.80}. "
                "Pass what `to_dict` gave."
            ) from error
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        # Of fields that are no floats, since 0.0 equals -0.0.
        return hash(tuple(getattr(self, each.name) for each in fields(self) if each.type == "str"))


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimizeResult(Result):
    """Line 7 of Algorithm 1: the best weights a search found.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
    value : float
        The measure at `weights`.
    n_evaluations : int
    converged : bool
        Whether the search could not improve the point by its own steps; no proof of a global minimum.
    measure, minimizer : str
    settings : dict
        Settings of measure and minimizer.
    seed : int
        Gives the same answer again as `rng`.
    members : tuple of str, or None
        Names of the members.
    notes : tuple of Note
        What was done to the input.
    """

    weights: NDArray[np.float64]
    value: float
    n_evaluations: int
    converged: bool
    measure: str
    minimizer: str
    settings: dict[str, Any]
    seed: int
    members: tuple[str, ...] | None = None
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        end = "at a local minimum" if self.converged else "budget spent"
        return (
            f"{self.measure} = {self.value:.6g} at "
            f"{weights_in_words(self.weights, self.members)}\n"
            f"({self.minimizer}, {self.n_evaluations} evaluations, {end})"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationTestResult(Result):
    """A test of a classifier set: Algorithm 1 from statistic to decision.

    Attributes
    ----------
    statistic : float
        t, what is compared with the null values. Under the null "paper" that is the minimum. Nulls that
        search every replicate compare a mean over points where the search ended, which a few rows
        move less than the smallest of them. Under "maximized" it is the measure where the p-value is
        largest.
    minimum : float
        The measure at `weights`, the smallest value that the search found over the hull (null
        "maximized": the statistic).
    weights : ndarray of shape (n_members,)
        The combination with that value. Fitted to the tested rows; expect worse calibration on new
        data.
    null_distribution : ndarray of shape (n_resamples,)
        Values of the statistic under the hypothesis.
    alpha : float
    hypothesis : str
        What was tested, in words.
    measure, null, minimizer : str
    settings : dict
        Settings of measure, minimizer and null, and of the run.
    n_evaluations : int
        Evaluations of the measure in the search of the data and in all replicates together.
    converged : bool
        Whether the search on the data could not improve the point by its own steps; no proof of a
        global minimum.
    seed : int
        Gives the same result again as `rng`.
    n_samples, n_classes : int
    members : tuple of str, or None
        Names of the members.
    notes : tuple of Note
        What was done to the input, and what to know about the run.
    """

    statistic: float
    minimum: float
    weights: NDArray[np.float64]
    null_distribution: NDArray[np.float64]
    alpha: float
    hypothesis: str
    measure: str
    null: str
    minimizer: str
    settings: dict[str, Any]
    n_evaluations: int
    converged: bool
    seed: int
    n_samples: int
    n_classes: int
    members: tuple[str, ...] | None = None
    notes: tuple[Note, ...] = ()

    @property
    def n_resamples(self) -> int:
        """D, the number of null values."""
        return len(self.null_distribution)

    @property
    def n_members(self) -> int:
        """M, the number of members."""
        return len(self.weights)

    @cached_property
    def pvalue(self) -> float:
        """(1 + number of null values that reach the statistic) / (1 + D)."""
        return pvalues.monte_carlo(self.statistic, self.null_distribution)

    @cached_property
    def pvalue_interval(self) -> tuple[float, float]:
        """Where the p-value of infinitely many resamples lies, with 95 % confidence.

        That is the error of the resamples alone. Under the null `maximized` the weights were chosen by
        the same resamples, and a run that stopped early chose their number, so there it is a guide and
        no more.
        """
        count = int(pvalues.exceeds(self.null_distribution, self.statistic).sum())
        return pvalues.interval(count, self.n_resamples)

    @property
    def rejected(self) -> bool:
        """The decision at `alpha`."""
        return self.decide(self.alpha)

    @property
    def critical_value(self) -> float:
        """q: a statistic above it is rejected at `alpha`."""
        return pvalues.critical_value(self.null_distribution, self.alpha)

    def decide(self, alpha: float) -> bool:
        """Whether the hypothesis is rejected at any level, from the same run."""
        return self.pvalue <= check_fraction(alpha, "alpha")

    @property
    def too_close_to_call(self) -> bool:
        """Whether more resamples could change the decision."""
        low, high = self.pvalue_interval
        return low <= self.alpha <= high

    @property
    def doubtful(self) -> bool:
        """Whether a note says that the p-value may be too small."""
        return any(note.code == "too_few_rows" for note in self.notes)

    def __str__(self) -> str:
        return result_in_words(self)


def adjust(results: Sequence[Any], *, method: str = "holm") -> NDArray[np.float64]:
    """Adjusted p-values of several tests, in their order.

    Parameters
    ----------
    results : sequence of results, or of p-values
    method : {"holm"}
        Rejecting where the adjusted p-value is at most alpha keeps the chance of any false
        rejection below alpha, whatever the dependence between the tests.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    if method != "holm":
        raise InvalidInputError(f'`method` must be "holm"; got {method!r}. Leave it out.')
    try:
        raw = [float(getattr(result, "pvalue", result)) for result in results]
    except (TypeError, ValueError):
        raw = [math.nan]
    if not all(0.0 <= p <= 1.0 for p in raw):
        raise InvalidInputError(
            f"`results` must be a sequence of results or of p-values in [0, 1]; got {results!r:.100}. "
            "Pass for example `[first, second]`."
        )
    return pvalues.holm(raw)
