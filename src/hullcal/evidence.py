"""The e-value of "the hull contains the truth": exact for every number of rows, without resampling.

Rows are predicted one block after another by classifiers that were fitted on earlier rows only. If the
labels follow some combination of the members, the likelihood of these predictions divided by the
largest likelihood of any combination is at least 20 with probability 1/20 at most, at whatever time one
looks (Wasserman, Ramdas and Balakrishnan 2020; Ville's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._validation import InvalidInputError
from hullcal.alternatives import (
    POOL,
    TEMPERATURE,
    Sums,
    alternatives,
    at_combination,
    fit_alternative,
    temperature_of,
)
from hullcal.likelihood import fit_mixture
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import ArrayPasses, Cases, Job, Passes, Rows
from hullcal.objectives.opening import LabelledSet

#: Rows that predictors are fitted on at most, and probabilities in them; later rows are predicted by
#: the last ones.
MOST_FITTED, _MOST_NUMBERS = 8192, 2**24
#: Rows before the first fit, and by what share of themselves they grow before the next.
_FIRST_FIT, _GROWTH = 10, 4
#: Pseudo-rows at the plain average, and those behind each alternative, more than where nothing is to be
#: predicted by it.
_AT_MEAN, _RIDGES = 5.0, (5.0, 20.0, 20.0, 20.0)
#: What the last step of such a fit gains at most.
_CLOSE = 1e-4
#: Part of the seed of orders.
_STREAM = 0x65766964656E6365


@dataclass(frozen=True)
class Predictors:
    """Classifiers fitted on the first so many rows, for each number: alternatives to a combination."""

    #: (n_fits, n_members).
    weights: Floats
    #: Of each alternative, (n_fits, n_coefficients).
    coefficients: tuple[Floats, ...]

    @classmethod
    def fitted(cls, passes: Passes, numbers: Sequence[int]) -> Predictors:
        """From the first so many rows, all together; from none, they are the plain average."""
        rows, cases = np.array(numbers)[:, np.newaxis], Cases.first_rows(np.array(numbers))
        likeliest, n_members = fit_mixture(passes, cases).weights, len(passes.positions)
        weights = (rows * likeliest + _AT_MEAN / n_members) / (rows + _AT_MEAN)
        pool = at_combination(passes, cases, weights, POOL)
        coefficients = [
            fit_alternative(passes, cases, weights, kind, _RIDGES[kind], pool, close=_CLOSE)
            for kind in alternatives(passes.n_classes)
        ]
        return cls(weights, tuple(coefficients))

    @property
    def temperature(self) -> float:
        """What the last combination's logits are divided by; above 1 it was overconfident."""
        return temperature_of(self.coefficients[TEMPERATURE][-1, 0])

    def log_scores(self, passes: Passes, first: Sequence[int], last: Sequence[int]) -> Floats:
        """Log-likelihoods of the rows first to last - 1 of each fit, (n_alternatives, n_fits)."""
        cases = Cases.first_rows(np.array([*last, *first]))
        weights = np.tile(self.weights, (2, 1))
        ends = [
            Sums.of(passes, cases, weights, kind, np.tile(each, (2, 1)), wanted=0).likelihoods
            for kind, each in enumerate(self.coefficients)
        ]
        up_to_last, up_to_first = np.split(np.array(ends), 2, axis=1)
        return up_to_last - up_to_first


def next_fit(n_rows: int) -> int:
    """At how many rows to fit again, after a fit on so many (or none)."""
    return n_rows + max(_FIRST_FIT // 2, n_rows // _GROWTH) if n_rows else _FIRST_FIT


def log_mean(numerators: Floats) -> float:
    """The logarithm of the average of e-values, from their logarithms."""
    largest = float(numerators.max())
    return largest + math.log(float(np.exp(numerators - largest).mean()))


def log_evalue(
    data: LabelledSet, passes: Passes, log_bound: float, seed: int, n_orders: int = 1
) -> float:
    """The log e-value of data, given the certified bound on their log-likelihood.

    Rows are taken in an order made of their predictions and the seed, so that no order of rows, members
    or classes changes it. Rows that predictions cannot tell apart are taken at random, since no order
    may depend on labels. E-values of several orders are averaged. Of more rows than predictors are
    fitted on, so many, drawn by the seed, come first; the others are predicted by the last fit. Then
    another order of the rows acts like another seed.
    """
    # No stream that labels are likely to have been drawn from with the same seed.
    rng = np.random.default_rng([seed, _STREAM])
    n_samples, n_members = passes.n_samples, len(passes.positions)
    sample = np.arange(n_samples)
    n_fitted = max(_FIRST_FIT, _MOST_NUMBERS // (n_members * passes.n_classes))
    n_fitted = min(MOST_FITTED, n_fitted)
    if n_samples > n_fitted:
        sample = np.sort(rng.choice(n_samples, n_fitted, replace=False, shuffle=False))
    probs, labels = _gathered(data, passes, sample)
    average = probs.mean(axis=1, dtype=np.float64)
    ends = [0]
    while ends[-1] < len(sample):
        ends.append(next_fit(ends[-1]))
    ends[-1] = len(sample)
    numerators = []
    for _ in range(n_orders):
        order = np.lexsort((rng.random(len(sample)), _addresses(average, rng)))
        ordered = ArrayPasses(probs[order], labels[order])
        predictors = Predictors.fitted(ordered, ends[:-1])
        numerators.append(predictors.log_scores(ordered, ends[:-1], ends[1:]).sum(axis=1))
    if n_samples > len(sample):
        # All other rows are predicted from the whole sample, whatever its order.
        final = Predictors.fitted(ordered, [len(sample)])
        rest = final.log_scores(passes, [0], [n_samples])[:, 0]
        rest -= final.log_scores(ordered, [0], [len(sample)])[:, 0]
        numerators = [each + rest for each in numerators]
    return log_mean(np.array(numerators) - log_bound)


def _gathered(
    data: LabelledSet, passes: Passes, sample: NDArray[np.int64]
) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
    """Predictions and labels of some rows."""
    if data.classifiers is not None and data.labels is not None:
        probs = data.classifiers.probs[sample[:, np.newaxis], passes.positions]
        return Rows(probs, data.labels[sample], 0).readable().probs, data.labels[sample]
    rows = passes.total(_Gathered(sample=sample, **passes.sizes))
    probs = rows[:, 1:].reshape(len(sample), len(passes.positions), passes.n_classes)
    return probs, rows[:, 0].astype(np.int32)


def _addresses(average: Floats, rng: np.random.Generator) -> NDArray[np.uint64]:
    """A random number for each row that depends on its average prediction and the seed alone."""
    bits = np.sort(average, axis=1).view(np.uint64)
    factors = rng.integers(2**63, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed: NDArray[np.uint64] = ((bits ^ (bits >> np.uint64(29))) * factors).sum(
        axis=1, dtype=np.uint64
    )
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


@dataclass(frozen=True, kw_only=True)
class _Gathered(Job):
    """Labels and predictions of some rows, which other ranges add nothing to."""

    sample: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.sample), 1 + len(self.positions) * self.n_classes

    def _add(self, rows: Rows, sums: Floats) -> None:
        ends = np.searchsorted(self.sample, [rows.first, rows.first + len(rows.labels)])
        here = slice(*ends)
        own = self.sample[here] - rows.first
        sums[here, 0] = rows.labels[own]
        sums[here, 1:] = rows.probs[own][:, self.positions].reshape(len(own), -1)


def combine_evalues(evalues: ArrayLike) -> float:
    """The e-value of several independent sets of data: the product of theirs.

    Parameters
    ----------
    evalues : sequence of e-values, or of results with an `evalue`
        Of disjoint sets of rows. E-values of the same rows may only be averaged.

    Examples
    --------
    >>> combine_evalues([4.0, 5.0, 1.0])
    20.0
    """
    try:
        values = np.array([float(getattr(each, "evalue", each)) for each in np.atleast_1d(evalues)])
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if not (len(values) and (values >= 0.0).all()):
        raise InvalidInputError(
            "`evalues` must be e-values of at least 0, or results that have one; got "
            f"{evalues!r:.100}. Pass for example `[first, second]`."
        )
    if np.isinf(values).any() and (values == 0.0).any():
        raise InvalidInputError(
            "`evalues` must not hold both 0 and infinity, whose product is not defined; got "
            f"{evalues!r:.100}. Look at the sets one by one."
        )
    return float(np.prod(values))
