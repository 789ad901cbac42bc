"""For test suites: fail where a set of classifiers is found miscalibrated."""

from __future__ import annotations

from typing import Any

from hullcal._validation import InvalidInputError
from hullcal.assessment import Assessment, assess

__all__ = ["assert_calibrated"]


def assert_calibrated(
    probs: Any, labels: Any, *, question: str = "calibrated", rng: int = 0, **options: Any
) -> Assessment:
    """Raise AssertionError, with the verdict and what to do next, if a question is answered by no.

    Parameters
    ----------
    probs, labels : as in `assess`
    question : {"calibrated", "average", "truth"}
        Whether some combination is calibrated, the plain average, or whether the hull contains the
        truth.
    rng : int
        Seed. A fixed one, so that the same predictions pass or fail every time.
    **options
        Those of `assess`, such as `measures`, `n_resamples` and `alpha`.

    Returns
    -------
    Assessment
        For further checks.

    Examples
    --------
    >>> import numpy as np
    >>> members = np.random.default_rng(0).dirichlet([1, 1], size=(200, 3))
    >>> labels = members.mean(axis=1).argmax(axis=1)  # too often as predicted
    >>> assert_calibrated(members, labels, question="average")
    Traceback (most recent call last):
        ...
    AssertionError: Rejected (p = 0.001, ece_conf): the plain average is not calibrated; ...
    """
    found = assess(probs, labels, questions=question, rng=rng, **options)
    if not isinstance(found, Assessment):
        raise InvalidInputError(
            "`probs` must be one set of predictions; got several. Call `assert_calibrated` for each."
        )
    failed = [answer.text for answer in found.answers.values() if answer.rejected]
    if failed:
        raise AssertionError("\n".join([*failed, *found.advice]))
    return found
