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
from hullcal.words import (
    direction,
    facts_of,
    headline,
    in_html,
    result_in_words,
    verdict,
    weights_in_words,
)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Note):
        return tuple(note.to_dict() for note in value)
    return value.tolist() if isinstance(value, np.ndarray) else copy.deepcopy(value)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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

        def refused(what: str) -> InvalidInputError:
            return InvalidInputError(f"not a {cls.__name__}: {what}. Pass what `to_dict` gave.")

        if not isinstance(data, Mapping):
            raise refused(f"a dictionary is needed; got {data!r:.80}")
        if odd := sorted({each.name for each in fields(cls)} ^ set(data)):
            raise refused(f"missing or unknown fields {odd}")
        values = dict(data)
        for each in fields(cls):
            name, kind, value = each.name, str(each.type), data[each.name]
            try:
                if kind == "NDArray[np.float64]":
                    values[name] = np.asarray(value, dtype=np.float64)
                elif kind == "tuple[Note, ...]":
                    values[name] = tuple(Note.from_dict(note) for note in value)
                elif kind.startswith("tuple") and value is not None:
                    values[name] = tuple(value)
            except (KeyError, TypeError, ValueError) as error:
                kinds = {"NDArray[np.float64]": "numbers", "tuple[Note, ...]": "known ones"}
                what = kinds.get(kind, "a list")
                raise refused(f"`{name}` must be {what}; got {value!r:.80}") from error
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        # Of fields that are no floats, since 0.0 equals -0.0.
        return hash(tuple(getattr(self, each.name) for each in fields(self) if each.type == "str"))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MinimizeResult(Result):
    """Line 7 of Algorithm 1: the best weights a search found.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
    value : float
        The measure at `weights`.
    n_evaluations : int
    converged : bool
        Whether no step of the search improves the point; that does not prove a global minimum.
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

    def __repr__(self) -> str:
        return f"<MinimizeResult: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        best, how = str(self).split("\n")
        return in_html(best, {"search": how.strip("()")})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Tested(Result):
    """A statistic, its null values and the decision that follows from them."""

    statistic: float
    null_distribution: NDArray[np.float64]
    alpha: float
    hypothesis: str
    weights: NDArray[np.float64]
    settings: dict[str, Any]
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
        """q: a statistic above it is rejected at `alpha`; infinite if D is too small to reject."""
        return pvalues.critical_value(self.null_distribution, self.alpha)

    def decide(self, alpha: float) -> bool:
        """Whether the hypothesis is rejected at any level, from the same run."""
        return self.pvalue <= check_fraction(alpha, "alpha")

    @property
    def headline(self) -> str:
        """Rejected, Not rejected, Borderline, Inconclusive or Impossible."""
        return headline(self)

    def __str__(self) -> str:
        return result_in_words(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {verdict(self)}>"

    def _repr_html_(self) -> str:
        return in_html(verdict(self), facts_of(self), self.headline)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TruthTestResult(_Tested):
    """A likelihood test of "the hull contains the truth".

    Attributes
    ----------
    statistic : float
        Logarithm of the likelihood ratio of alternatives to the likeliest combination, averaged; infinite
        if a label has probability 0 by every member.
    null_distribution : ndarray of shape (n_resamples,)
        The statistic for labels drawn from the likeliest combination.
    log_evalue : float
        Natural logarithm of `evalue`, which can be too large for a float.
    alpha : float
    hypothesis : str
        What was tested, in words.
    weights : ndarray of shape (n_members,)
        The combination of greatest likelihood.
    log_likelihood : float
        Its log-likelihood.
    gap : float
        No combination has a log-likelihood that is larger by more than this.
    temperature : float
        What the logits of that combination should be divided by: above 1 it is overconfident.
    pool : ndarray of shape (1 + n_members,)
        Coefficients of the fitted pool: of the combination itself, then of each member. A member
        with a negative one has more weight in the combination than its predictions deserve.
    surprises : tuple of int
        The ten rows whose labels the combination finds least likely; empty on a cluster.
    surprise_probabilities : ndarray
        The probabilities of these labels.
    impossible : tuple of int
        Rows whose label has probability 0 by every member; empty on a cluster, where a note counts
        them.
    settings : dict
    seed : int
        Gives the same result again as `rng`.
    n_samples, n_classes : int
    members : tuple of str, or None
        Names of the members.
    notes : tuple of Note
    """

    log_evalue: float
    log_likelihood: float
    gap: float
    temperature: float
    pool: NDArray[np.float64]
    surprises: tuple[int, ...]
    surprise_probabilities: NDArray[np.float64]
    impossible: tuple[int, ...]

    @property
    def evalue(self) -> float:
        """Evidence against the hypothesis: at least 1/alpha with probability alpha at most under it."""
        return pvalues.evalue(self.log_evalue)

    @cached_property
    def pvalue(self) -> float:
        """(1 + number of null values that reach the statistic) / (1 + D); min(1, 1/e) if D = 0."""
        if self.n_resamples == 0:
            return math.exp(-max(self.log_evalue, 0.0))
        return super().pvalue

    @cached_property
    def pvalue_interval(self) -> tuple[float, float]:
        """Where the p-value of infinitely many resamples lies, with 95 % confidence."""
        return super().pvalue_interval if self.n_resamples else (self.pvalue, self.pvalue)

    @property
    def direction(self) -> str:
        """Whether the likeliest combination is overconfident, in words."""
        return direction(self.temperature)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrationTestResult(_Tested):
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
        Whether no step of the search improves the point; that does not prove a global minimum.
    seed : int
        Gives the same result again as `rng`.
    n_samples, n_classes : int
    members : tuple of str, or None
        Names of the members.
    notes : tuple of Note
        What was done to the input, and what to know about the run.
    """

    minimum: float
    measure: str
    null: str
    minimizer: str
    n_evaluations: int
    converged: bool


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
