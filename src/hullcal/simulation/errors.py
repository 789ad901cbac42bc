"""How often does one test err in one scenario?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.simulation.grid import Grid
from hullcal.simulation.study import run

__all__ = ["ErrorRates", "error_rates"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorRates:
    """Errors of a test among simulated data sets, by level.

    Attributes
    ----------
    alpha : ndarray
        The levels.
    rejection_rate : ndarray
        Share of the data sets in which the hypothesis was rejected.
    error : ndarray
        Share in which the test erred: rejections for "Type I", the others for "Type II".
    kind : str
        "Type I" if what the null tests is true of the scenario, otherwise "Type II".
    lower, upper : ndarray
        Wilson's 95 % interval of `error`.
    pvalues : ndarray of shape (n_datasets,)
    n_datasets : int
    seed : int
        Gives the same rates again as `rng`.
    settings : dict
        What was drawn and how it was tested.
    """

    alpha: NDArray[np.float64]
    rejection_rate: NDArray[np.float64]
    error: NDArray[np.float64]
    kind: str
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    pvalues: NDArray[np.float64]
    n_datasets: int
    seed: int
    settings: dict[str, Any]

    def __str__(self) -> str:
        lines = [
            ", ".join(f"{name}={value}" for name, value in self.settings.items()),
            f"{self.kind} error in {self.n_datasets} data sets, with 95 % intervals",
            " alpha  rejected  error  interval",
        ]
        columns = (self.alpha, self.rejection_rate, self.error, self.lower, self.upper)
        lines += [
            f"{alpha:6.3g}  {rejected:8.3f}  {error:5.3f}  {low:.3f} to {high:.3f}"
            for alpha, rejected, error, low, high in zip(*columns, strict=True)
        ]
        return "\n".join(lines)


def error_rates(
    *,
    scenario: str = "S1",
    measure: str | Measure = "ece_conf",
    null: str = "stacked",
    minimizer: str | Minimizer = "steepest",
    n_datasets: int = 1000,
    alpha: float | Iterable[float] = (0.05, 0.2),
    n_samples: int = 100,
    n_members: int = 10,
    n_classes: int = 10,
    spread: float = 0.01,
    strength: float = 1.0,
    protocol: str = "paper",
    n_resamples: int = 100,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> ErrorRates:
    """Error rates of one test in one scenario, from simulated data sets.

    Parameters are those of `Grid`, one value each (`alpha` may be several), and of `run`; `rng` is
    the seed. The numbers are those that `run` gives for a grid with this cell.

    Returns
    -------
    ErrorRates

    Examples
    --------
    >>> rates = error_rates(scenario="S2", null="paper", n_datasets=20, alpha=0.95, rng=0)
    >>> rates.kind, rates.error.shape
    ('Type II', (1,))
    """
    settings: dict[str, Any] = {
        "scenario": scenario,
        "measure": measure,
        "null": null,
        "minimizer": minimizer,
        "n_samples": n_samples,
        "n_members": n_members,
        "n_classes": n_classes,
        "spread": spread,
        "strength": strength,
        "protocol": protocol,
    }
    for name, value in settings.items():
        if isinstance(value, list | tuple | np.ndarray):
            raise InvalidInputError(
                f"`{name}` must be one value; got {value!r:.80}. Several make a Grid, for `run`."
            )
    grid = Grid(**settings, n_datasets=n_datasets, n_resamples=n_resamples, alpha=alpha, seed=rng)
    study = run(grid, n_jobs=n_jobs, progress=progress)
    rows = study.rates()

    def column(name: str) -> NDArray[np.float64]:
        values = np.array([row[name] for row in rows], dtype=np.float64)
        values.flags.writeable = False
        return values

    seed: Any = grid.seed
    return ErrorRates(
        alpha=column("alpha"),
        rejection_rate=column("rejection_rate"),
        error=column("error"),
        kind=rows[0]["kind"],
        lower=column("error_lower"),
        upper=column("error_upper"),
        pvalues=study.tests["pvalue"],
        n_datasets=grid.n_datasets,
        seed=seed,
        settings=grid.cells[0].described() | grid.tests[0].described(),
    )
