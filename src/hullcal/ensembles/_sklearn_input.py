"""How does scikit-learn look at an X, in every version that this package takes?"""

from __future__ import annotations

from typing import Any

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.5 has it as a method, under older names

    def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Do what the function of the same name does from 1.6 on."""
        if "ensure_all_finite" in options:
            options["force_all_finite"] = options.pop("ensure_all_finite")
        if "skip_check_array" in options:
            options["cast_to_ndarray"] = not options.pop("skip_check_array")
        return estimator._validate_data(X, y, **options)


def plain(estimator: Any, X: Any, *, dtype: Any = None) -> Any:
    """X as an array or a compressed matrix, its columns checked against those the estimator knows.

    Ensembles that convert X before they fit their members have members without feature names, which
    would warn of a data frame.
    """
    return validate_data(
        estimator,
        X,
        reset=False,
        dtype=dtype,
        accept_sparse=["csr", "csc"],
        ensure_all_finite=False,  # whether a member takes missing values is for the member to say
    )


def note_columns(estimator: Any, X: Any, y: Any) -> None:
    """Keep number and names of the columns, as every `fit` does; a missing y is an error."""
    validate_data(estimator, X, y, skip_check_array=True)
