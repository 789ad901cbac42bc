"""The Hosmer–Lemeshow test with its chi-squared p-value."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._validation import HullcalWarning, InvalidInputError, check_flag
from hullcal.classical._input import one_classifier
from hullcal.classical.result import ClassicalTestResult
from hullcal.measures.hl_cwise import HosmerLemeshow
from hullcal.nulls import ONE_CALIBRATED


def hosmer_lemeshow(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    n_bins: int = 10,
    fitted: bool = False,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
) -> ClassicalTestResult:
    r"""Test whether every class comes true as often as claimed, by Hosmer and Lemeshow's statistic.

    .. math:: \sum_{k=1}^{K} \sum_{j=1}^{B} |\mathcal{B}_{jk}|
              \frac{(o(\mathcal{B}_{jk}) - \mathrm{p}(\mathcal{B}_{jk}))^2}{\mathrm{p}(\mathcal{B}_{jk})}

    over equal-frequency bins of each class, which is Eqs. 3 and 4 of the paper scaled by counts. For
    two classes, bins of equal size and no ties it is the textbook's statistic. Under the hypothesis
    it is referred to a chi-squared distribution with (K-1)·B degrees of freedom. Rows that tie across
    a cut are shared by its bins, whose counts then depend on each other: the test becomes too timid,
    and a warning says so.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    n_bins : int
        B.
    fitted : bool
        Whether the model was fitted to these very rows, which takes two degrees of freedom from each
        class: (K-1)(B-2). On held-out rows that would reject far too often.
    classes, from_logits, from_log
        As in `calibration_test`.

    Returns
    -------
    ClassicalTestResult

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 50)
    >>> y = np.tile([1, 0, 0, 0, 0, 1, 1, 1, 1, 0], 10)
    >>> hosmer_lemeshow(np.column_stack([1 - p, p]), np.sort(y), n_bins=2).degrees_of_freedom
    2
    """
    from scipy.special import chdtrc

    measure = HosmerLemeshow(n_bins=n_bins)
    classifiers, truth = one_classifier(
        probs, labels, classes=classes, from_logits=from_logits, from_log=from_log
    )
    check_flag(fitted, "fitted")
    predictions = classifiers.probs[:, 0, :]
    n_samples, n_classes = predictions.shape
    freedom = (n_classes - 1) * (measure.n_bins - 2 if fitted else measure.n_bins)
    if freedom < 1:
        raise InvalidInputError(
            f"`n_bins` must be at least 3 with `fitted=True`, which takes two degrees of freedom from "
            f"each class; got {measure.n_bins}. Use more bins."
        )
    bins = np.array_split(np.sort(predictions.astype(np.float64), axis=0), measure.n_bins)
    _warn_of_small_counts(bins)
    _warn_of_ties(bins)
    mixed = np.ascontiguousarray(predictions.T, dtype=np.float64)
    residuals = measure.offset_at(mixed, truth, measure.parameters(predictions))
    sizes = np.array([len(part) for part in bins])
    statistic = float((sizes * residuals.reshape(n_classes, measure.n_bins) ** 2).sum())
    return ClassicalTestResult(
        statistic=statistic,
        pvalue=float(chdtrc(freedom, statistic)),
        test="Hosmer–Lemeshow, chi-squared",
        hypothesis=ONE_CALIBRATED,
        degrees_of_freedom=freedom,
        settings={"n_bins": measure.n_bins, "fitted": bool(fitted)},
        n_samples=n_samples,
        n_classes=n_classes,
        notes=classifiers.notes,
    )


def _warn_of_small_counts(bins: list[NDArray[np.float64]]) -> None:
    """Cochran's rule: no expected count below 1, and at most a fifth of them below 5."""
    # Rows that tie may stand on either side of a cut: their probabilities are equal.
    expected = np.array([part.sum(axis=0) for part in bins if len(part)])
    below = int((expected < 5.0).sum())
    if expected.min() >= 1.0 and below <= 0.2 * expected.size:
        return
    warnings.warn(
        f"{below} of {expected.size} expected counts are below 5, the smallest is "
        f"{expected.min():.2g}: the chi-squared approximation may be poor. Use fewer bins, or "
        '`resampling_test` with measure="hl_cwise".',
        HullcalWarning,
        stacklevel=3,
    )


def _warn_of_ties(bins: list[NDArray[np.float64]]) -> None:
    """Rows shared over a cut make cells that are not independent."""
    cuts = [(left[-1], right[0]) for left, right in pairwise(bins) if len(right)]
    shared = sum(int((last == first).sum()) for last, first in cuts)
    if shared == 0:
        return
    warnings.warn(
        f"equal predictions straddle {shared} of the {len(cuts) * bins[0].shape[1]} cuts between bins, "
        "which makes the chi-squared test too timid. Use fewer bins, or `resampling_test` with "
        'measure="hl_cwise".',
        HullcalWarning,
        stacklevel=3,
    )
