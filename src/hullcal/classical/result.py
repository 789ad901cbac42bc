"""What a classical test gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_fraction
from hullcal.notes import Note
from hullcal.results import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassicalTestResult(Result):
    """A test of one classifier whose p-value comes from theory.

    Attributes
    ----------
    statistic : float
    pvalue : float
    test : str
        Whose test it is, and by which approximation.
    hypothesis : str
        What was tested, in words.
    degrees_of_freedom : int or None
        Of the chi-squared distribution, where there is one.
    null_distribution : ndarray
        Bootstrap values of the statistic; empty where theory gives the distribution.
    settings : dict
    n_samples, n_classes : int
    seed : int or None
        Gives the same result again as `rng`, where there is chance in it.
    notes : tuple of Note
    """

    statistic: float
    pvalue: float
    test: str
    hypothesis: str
    settings: dict[str, Any]
    n_samples: int
    n_classes: int
    degrees_of_freedom: int | None = None
    null_distribution: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    seed: int | None = None
    notes: tuple[Note, ...] = ()

    def decide(self, alpha: float) -> bool:
        """Whether the hypothesis is rejected at a level."""
        return self.pvalue <= check_fraction(alpha, "alpha")

    def __str__(self) -> str:
        freedom = self.degrees_of_freedom
        lines = [
            f"Hypothesis   {self.hypothesis}",
            f"p-value      {self.pvalue:.4g}   ({self.test})",
            f"Statistic    {self.statistic:.6g}"
            + ("" if freedom is None else f"   ({freedom} degrees of freedom)"),
            f"Data         {self.n_samples} rows, {self.n_classes} classes",
        ]
        return "\n".join(lines + [f"Note         {note}" for note in self.notes])
