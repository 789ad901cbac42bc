"""One classifier: the result of a classical test, label resampling, and Hosmer–Lemeshow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._validation import check_flag, check_fraction, refusal, takes_rng, warn
from hullcal.measures import HosmerLemeshow, Measure
from hullcal.notes import Note
from hullcal.nulls import ONE_CALIBRATED
from hullcal.results import CalibrationTestResult, Result
from hullcal.sets import ClassifierSet
from hullcal.truth import truth_test
from hullcal.words import in_html, plural


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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

    @property
    def _facts(self) -> dict[str, str]:
        freedom = self.degrees_of_freedom
        return {
            "Hypothesis": self.hypothesis,
            "p-value": f"{self.pvalue:.4g}   ({self.test})",
            "Statistic": f"{self.statistic:.6g}"
            + ("" if freedom is None else f"   ({freedom} degrees of freedom)"),
            "Data": f"{self.n_samples} {plural(self.n_samples, 'row')}, {self.n_classes} classes",
        }

    def __str__(self) -> str:
        lines = [f"{name:<13}{fact}" for name, fact in self._facts.items()]
        return "\n".join(lines + [f"Note         {note}" for note in self.notes])

    def __repr__(self) -> str:
        return f"<ClassicalTestResult: p = {self.pvalue:.4g}, {self.test}>"

    def _repr_html_(self) -> str:
        return in_html(self.test, self._facts)


def one_classifier(
    probs: Any, labels: Any, **options: Any
) -> tuple[ClassifierSet, NDArray[np.int32]]:
    """A set of one member, and the positions of the labels."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels, **options)
    if classifiers.n_members > 1:
        rule = "must be the predictions of one classifier, (n_samples, n_classes)"
        repair = "A set goes to `hullcal.calibration_test`; its average is `probs.mean(axis=1)`."
        raise refusal("probs", rule, f"{classifiers.n_members} members", repair)
    return classifiers, truth


@takes_rng
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
    normalize: bool = False,
) -> CalibrationTestResult:
    """Test whether one classifier is calibrated, by any measure.

    Rows stay fixed, and labels are drawn from the predictions again and again; the p-value is the
    share of draws whose measure reaches that of the data (Vaicenavicius et al. 2019, Section 4.2).
    This is `truth_test` of a set of one member by that measure, number for number.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    measure, n_resamples, alpha, rng, n_jobs, progress, classes, from_logits, from_log, normalize
        As in `calibration_test`.

    Returns
    -------
    CalibrationTestResult

    Examples
    --------
    >>> resampling_test([[0.9, 0.1]] * 50, [0, 1] * 25, n_resamples=99, rng=0).pvalue
    0.01
    """
    read = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    classifiers, truth = one_classifier(probs, labels, classes=classes, **read)
    found = truth_test(
        classifiers,
        truth,
        measure=measure,
        n_resamples=n_resamples,
        alpha=alpha,
        rng=rng,
        n_jobs=n_jobs,
        progress=progress,
    )
    assert isinstance(found, CalibrationTestResult)
    return found


def hosmer_lemeshow(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    n_bins: int = 10,
    fitted: bool = False,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
) -> ClassicalTestResult:
    r"""Test whether every class comes true as often as claimed, by Hosmer and Lemeshow's statistic.

    .. math:: \sum_{k=1}^{K} \sum_{j=1}^{B} |\mathcal{B}_{jk}|
              \frac{(o(\mathcal{B}_{jk}) - \mathrm{p}(\mathcal{B}_{jk}))^2}{\mathrm{p}(\mathcal{B}_{jk})}

    over equal-frequency bins of each class, which is Eqs. 3 and 4 of the paper scaled by counts. For
    two classes, bins of equal size and no ties it is the textbook's statistic. Under the hypothesis
    it is referred to a chi-squared distribution with (K-1)·B degrees of freedom. Rows that tie across
    a cut are shared by its bins, whose counts then depend on each other: the test becomes
    conservative, with a warning.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    n_bins : int
        B.
    fitted : bool
        Whether the model was fitted to these very rows, which takes two degrees of freedom from each
        class: (K-1)(B-2). On held-out rows that would reject far too often.
    classes, from_logits, from_log, normalize
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
    read = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    classifiers, truth = one_classifier(probs, labels, classes=classes, **read)
    check_flag(fitted, "fitted")
    predictions = classifiers.probs[:, 0, :]
    n_samples, n_classes = predictions.shape
    freedom = (n_classes - 1) * (measure.n_bins - 2 if fitted else measure.n_bins)
    if freedom < 1:
        rule = "must be at least 3 with `fitted=True`, which takes two degrees of freedom per class"
        raise refusal("n_bins", rule, str(measure.n_bins), "Use more bins.")
    bins = np.array_split(np.sort(predictions.astype(np.float64), axis=0), measure.n_bins)
    _warn_of_poor_approximation(bins)
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


def _warn_of_poor_approximation(bins: list[NDArray[np.float64]]) -> None:
    """Small counts by Cochran's rule (none below 1, a fifth below 5), and rows shared over a cut."""
    repair = 'Use fewer bins, or `resampling_test` with measure="hl_cwise".'
    # Rows that tie may stand on either side of a cut: their probabilities are equal.
    expected = np.array([part.sum(axis=0) for part in bins if len(part)])
    below = int((expected < 5.0).sum())
    if expected.min() < 1.0 or below > 0.2 * expected.size:
        warn(
            f"{below} of {expected.size} expected counts are below 5, the smallest is "
            f"{expected.min():.2g}: the chi-squared approximation may be poor. {repair}"
        )
    cuts = [(left[-1], right[0]) for left, right in pairwise(bins) if len(right)]
    if shared := sum(int((last == first).sum()) for last, first in cuts):
        warn(
            f"equal predictions straddle {shared} of the {len(cuts) * bins[0].shape[1]} cuts between "
            f"bins, which makes the chi-squared test conservative. {repair}"
        )
