"""Labels that the given members get wrong by a stated amount, and how far from the hypothesis that is."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import HullcalWarning, InvalidInputError, check_positive, refusal
from hullcal.algorithm import minimize
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.sets import ClassifierSet
from hullcal.simulation.draws import labels

__all__ = ["AMOUNTS", "Alternative", "check_amount", "distance"]

Floats = NDArray[np.float64]

#: The kinds of miscalibration, each with the amount taken when none is given.
AMOUNTS = {"temperature": 1.5, "corner": 0.2, "closest": 0.2}
#: Rows on which the distance is taken: of a measure that sums over rows, and of one over pairs.
_ROWS, _ROWS_OF_PAIRS = 20_000, 1_000
#: Probabilities that these rows may hold.
_ROOM = 10_000_000


def check_amount(miscalibration: Any, amount: Any) -> float:
    """A size of miscalibration, checked; the usual one for None."""
    if not isinstance(miscalibration, str) or miscalibration not in AMOUNTS:
        names = ", ".join(AMOUNTS)
        raise InvalidInputError(
            f"`miscalibration` must be one of {names}; got {miscalibration!r:.80}. Mind the spelling."
        )
    if amount is None:
        return AMOUNTS[miscalibration]
    if miscalibration == "temperature":
        return check_positive(amount, "amount")
    real = isinstance(amount, numbers.Real) and not isinstance(amount, bool)
    if real and 0 <= amount <= 1:
        return float(amount)
    rule = f"must lie in [0, 1] for {miscalibration}, being the share of the way to the corner"
    raise refusal("amount", rule, f"{amount!r:.80}", "Pass for example `amount=0.2`.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternative:
    r"""Rows of given predictions, with labels that follow p_w only up to a miscalibration.

    .. math::

        \eta_k \propto p_{w,k}^{1/T}, \qquad \eta = (1 - a) \, p_w + a \, e_c

    The first is the temperature T = `amount`; in the second, with a = `amount`, c is a random class
    of each row ("corner") or the most probable one, the first of several ("closest").

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes)
    mixed : ndarray of shape (n_samples, n_classes)
        p_w, the combination that would be calibrated.
    miscalibration : str
    amount : float
    """

    probs: NDArray[Any]
    mixed: Floats
    miscalibration: str
    amount: float

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions and labels of a data set; rows repeat only where there are too few."""
        total = len(self.mixed)
        rows = rng.choice(total, size=n_samples, replace=n_samples > total)
        return self.probs[rows], labels(self.truth(rows, rng), rng)

    def truth(self, rows: NDArray[Any], rng: np.random.Generator) -> Floats:
        """What the labels of these rows follow."""
        mixed = self.mixed[rows]
        if self.miscalibration == "temperature":
            return _tempered(mixed, self.amount)
        n_classes = mixed.shape[1]
        if self.miscalibration == "corner":
            classes = rng.integers(n_classes, size=len(rows))
        else:
            classes = mixed.argmax(axis=1)
        corners = classes[:, np.newaxis] == np.arange(n_classes)
        truth: Floats = (1.0 - self.amount) * mixed + self.amount * corners
        return truth


def _tempered(mixed: Floats, temperature: float) -> Floats:
    """Proportional to mixed ** (1 / temperature), in logarithms; a class of 0 keeps 0."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.log(mixed)
        powers = np.exp((logs - logs.max(axis=1, keepdims=True)) / temperature)
    tempered: Floats = powers / powers.sum(axis=1, keepdims=True)
    return tempered


def distance(
    alternative: Alternative,
    measure: Measure,
    minimizer: Minimizer,
    rng: np.random.Generator,
    seed: int,
) -> dict[str, float]:
    """How far the alternative is from the hypothesis, on many rows.

    Parameters
    ----------
    alternative : Alternative
    measure, minimizer : Measure, Minimizer
    rng : numpy.random.Generator
        Draws the rows and labels.
    seed : int
        Of the searches.

    Returns
    -------
    dict
        `n_samples` of the rows; the measure `at_weights`, that is of p_w; its `minimum` over all
        combinations; and `by_chance`, the minimum where labels follow p_w itself, which is not 0 for
        a measure that is never negative.
    """
    total, n_members, n_classes = alternative.probs.shape
    pairwise = measure.accumulate is None and not hasattr(measure, "n_bins")
    n_rows = _ROWS_OF_PAIRS if pairwise else _ROWS
    n_rows = max(min(n_rows, _ROOM // (n_members * n_classes)), _ROWS_OF_PAIRS)
    # As evenly as can be: where all rows find a place, hardly any chance but that of labels is left.
    rows = rng.permutation(np.resize(rng.permutation(total), n_rows))
    mixed = alternative.mixed[rows]
    classifiers = ClassifierSet(alternative.probs[rows])
    off = labels(alternative.truth(rows, rng), rng).astype(np.int32)
    calibrated = labels(mixed, rng).astype(np.int32)
    columns, parameters = np.ascontiguousarray(mixed.T), measure.parameters(classifiers.mean())

    def smallest(drawn: NDArray[np.int32]) -> tuple[float, float]:
        at_weights = measure.evaluate(columns, drawn, parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HullcalWarning)
            found = minimize(classifiers, drawn, measure=measure, minimizer=minimizer, rng=seed)
        # A search need not pass through the very weights of p_w.
        return at_weights, min(found.value, at_weights)

    at_weights, minimum = smallest(off)
    return {
        "n_samples": n_rows,
        "at_weights": at_weights,
        "minimum": minimum,
        "by_chance": smallest(calibrated)[1],
    }
