"""The paper's study as written and as run: every known difference between the two is one switch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal import pvalues
from hullcal._compiled.jit import compiled_value
from hullcal._validation import unknown
from hullcal.binning import edges, part_size
from hullcal.measures import SKCE, ConfidenceECE, HosmerLemeshow, Measure, Trait
from hullcal.nulls import Null, Paper
from hullcal.results import CalibrationTestResult, TruthTestResult


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Which departures of the authors' scripts from the paper's text are followed.

    ``Protocol()`` is the text. A protocol has a name that says all: "paper", "authors" (every
    switch on), "paper+two_sided" (one alone), "authors-two_sided" (all but one).

    Attributes
    ----------
    sparse_weights : bool
        S1 draws its weights from Dirichlet(1/M, ...) instead of uniformly.
    corner_outside : bool
        Where p_e is outside the hull, or the whole ray inside, the boundary index is wrong: it names
        the corner, or p_e. The boundary is also rounded down to the line search's 99 steps.
    carried_mixing : bool
        Every instance but the first mixes class by class with the truth of the one before; a result
        that is no distribution has the most probable class as its label.
    permuted_rows : bool
        Line 2 of Algorithm 1 permutes the rows instead of drawing them with replacement.
    two_sided : bool
        The decision compares the statistic's absolute value.
    first_class_bins : bool
        Hosmer–Lemeshow bins every class by the probability of the first, and sums counts.
    gaussian_kernel : bool
        SKCE with exp(-TV²/2) in place of exp(-TV).
    right_closed_bins : bool
        Confidence bins are closed on the right.
    interpolated_quantile : bool
        The critical value interpolates between null values, and equality does not reject.
    """

    sparse_weights: bool = False
    corner_outside: bool = False
    carried_mixing: bool = False
    permuted_rows: bool = False
    two_sided: bool = False
    first_class_bins: bool = False
    gaussian_kernel: bool = False
    right_closed_bins: bool = False
    interpolated_quantile: bool = False

    @property
    def name(self) -> str:
        """The shortest name that `resolve` understands."""
        on = [switch for switch in SWITCHES if getattr(self, switch)]
        off = [switch for switch in SWITCHES if switch not in on]
        return "+".join(["paper", *on]) if len(on) <= len(off) else "-".join(["authors", *off])

    def of_data(self) -> Protocol:
        """The protocol with the switches alone that concern the data, not their tests."""
        switches = ("sparse_weights", "corner_outside", "carried_mixing")
        return Protocol(**{switch: getattr(self, switch) for switch in switches})

    def measure(self, measure: Measure) -> Measure:
        """The measure as this protocol computes it."""
        if self.right_closed_bins and type(measure) is ConfidenceECE and not measure.smooth:
            return RightClosedECE(n_bins=measure.n_bins)
        if self.first_class_bins and type(measure) is HosmerLemeshow:
            return FirstClassHosmerLemeshow(n_bins=measure.n_bins)
        if self.gaussian_kernel and type(measure) is SKCE:
            return SKCE(estimator=measure.estimator, kernel="gaussian", bandwidth=2.0)
        return measure

    def null(self, null: Null) -> Null:
        """The null as this protocol draws it."""
        if self.permuted_rows and isinstance(null, Paper):
            return replace(null, rows="permuted")
        return null

    def smallest_level(self, result: CalibrationTestResult | TruthTestResult) -> float:
        """The smallest level at which this protocol rejects: its p-value, in other words."""
        statistic = abs(result.statistic) if self.two_sided else result.statistic
        decide = _above_quantile if self.interpolated_quantile else pvalues.monte_carlo
        return decide(statistic, result.null_distribution)


#: The differences, in the order in which the definitions list them.
SWITCHES = tuple(field.name for field in fields(Protocol))
PAPER = Protocol()
AUTHORS = Protocol(**dict.fromkeys(SWITCHES, True))


def resolve(protocol: str | Protocol) -> Protocol:
    """The protocol of a name; a protocol as it is.

    >>> resolve("paper+two_sided").two_sided, resolve("authors-two_sided").two_sided
    (True, False)
    """
    if isinstance(protocol, Protocol):
        return protocol
    for base, sign in ((PAPER, "+"), (AUTHORS, "-")):
        name, *switches = str(protocol).split(sign)
        if name == base.name and set(switches) <= set(SWITCHES):
            return replace(base, **dict.fromkeys(switches, sign == "+"))
    names = "paper", "authors", "paper+SWITCH", "authors-SWITCH"
    raise unknown("protocol", protocol, names, f"; with a SWITCH from {', '.join(SWITCHES)}")


def _above_quantile(statistic: float, null: NDArray[np.float64]) -> float:
    """The level above which the statistic exceeds the interpolated (1 - level)-quantile."""
    # That quantile falls linearly between sorted null values as the level rises, so the statistic's own
    # place between them gives the level; a level must be larger than it to reject.
    ordered = np.sort(null)
    if not statistic > ordered[0]:
        return 1.0
    if statistic > ordered[-1]:
        return 0.0
    # The first null value that is not below the statistic, and the gap it closes.
    place = int(np.searchsorted(ordered, statistic, side="left"))
    low, high = ordered[place - 1], ordered[place]
    share = (statistic - low) / (high - low) if np.isfinite(high) else 0.0
    # A statistic just above the least null value leaves 1 - 0 after rounding, and no level is above 1.
    return min(1.0, float(np.nextafter(1.0 - (place - 1 + share) / (len(null) - 1), 2.0)))


@dataclass(frozen=True, kw_only=True)
class RightClosedECE(ConfidenceECE):
    """Confidence ECE on bins ((j-1)/B, j/B]."""

    def parameters(self, average: NDArray[np.floating]) -> NDArray[np.float64]:
        # A value on an edge is below the next larger double, and so falls into the bin on the left.
        return np.nextafter(edges(self.n_bins), np.inf)


@dataclass(frozen=True, kw_only=True)
class FirstClassHosmerLemeshow(HosmerLemeshow):
    """Hosmer–Lemeshow with the bins of the first class for all classes, on counts; ties are cut."""

    traits: ClassVar[frozenset[Trait]] = frozenset({"ordered"})


@compiled_value
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_bins = int(parameters[0])
    order = np.argsort(1.0 - mixed[0], kind="mergesort")[::-1]
    total = 0.0
    first = 0
    for j in range(n_bins):
        last = first + part_size(j, n_samples, n_bins)  # type: ignore[no-untyped-call]
        for k in range(n_classes):
            observed, expected = 0.0, 0.0
            for i in range(first, last):
                observed += int(labels[order[i]] == k)
                expected += mixed[k, order[i]]
            # The scripts leave the quotient of a cell without expectation undefined.
            if expected > 0.0:
                total += (observed - expected) ** 2 / expected
        first = last
    return total


FirstClassHosmerLemeshow.value = staticmethod(_value)
