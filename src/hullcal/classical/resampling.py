"""Consistency resampling of Vaicenavicius et al. (2019): labels redrawn from the predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hullcal.algorithm import calibration_test
from hullcal.classical._input import one_classifier
from hullcal.measures import Measure
from hullcal.results import CalibrationTestResult


def resampling_test(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    n_resamples: int = 999,
    alpha: float = 0.05,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
) -> CalibrationTestResult:
    """Test whether one classifier is calibrated, by any measure.

    Rows stay fixed, and labels are drawn from the predictions again and again; the p-value is the
    share of draws whose measure reaches that of the data (Vaicenavicius et al. 2019, Section 4.2).
    This is `calibration_test` of a set of one member with ``null="refit"``, number for number.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    measure, n_resamples, alpha, rng, n_jobs, progress, classes, from_logits, from_log
        As in `calibration_test`.

    Returns
    -------
    CalibrationTestResult

    Examples
    --------
    >>> resampling_test([[0.9, 0.1]] * 50, [0, 1] * 25, n_resamples=99, rng=0).pvalue
    0.01
    """
    classifiers, truth = one_classifier(
        probs, labels, classes=classes, from_logits=from_logits, from_log=from_log
    )
    return calibration_test(
        classifiers,
        truth,
        measure=measure,
        null="refit",
        n_resamples=n_resamples,
        alpha=alpha,
        rng=rng,
        n_jobs=n_jobs,
        progress=progress,
    )
