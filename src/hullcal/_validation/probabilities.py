"""Is this an array of predicted probabilities, and if not, what is it more likely to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.diagnosis import diagnosis, not_finite
from hullcal._validation.errors import refusal
from hullcal._validation.flags import check_flag
from hullcal._validation.foreign import Converted, Precision, as_array
from hullcal._validation.rows import (
    SLACK,
    Findings,
    all_clean,
    audit,
    exponential,
    find,
    repair,
    softmax,
)

__all__ = ["Predictions", "check_converted", "check_dtype", "check_probs"]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Validated predictions of M classifiers for N samples and K classes.

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes)
        float32 or float64 in native byte order, read-only. It is a view of the input wherever
        the input could be used as it came.
    notes : tuple of str
        What was done to the input, in words; empty if nothing was.
    """

    probs: NDArray[Any]
    notes: tuple[str, ...] = ()


def check_probs(probs: Any, *, from_logits: bool = False, from_log: bool = False) -> Predictions:
    """Validate the predictions of a set of classifiers.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        Or (n_samples, n_classes) for one classifier, or a list of M arrays (n_samples, n_classes).
        Any package's arrays will do. The input is never modified.
    from_logits : bool
        Apply a softmax over classes, in float64.
    from_log : bool
        Exponentiate, in float64; minus infinity stands for probability 0.

    Returns
    -------
    Predictions

    Raises
    ------
    InvalidInputError
        If the input is not what it should be.

    Notes
    -----
    Row sums off by at most ``4 * K * eps`` of the input's type are left bit for bit, so that
    values on a bin edge stay there. Rows off by up to 1e-3 (float16, bfloat16), 1e-4 (float32) or
    1e-6 (float64) more are renormalised in float64, and the result says so.

    Examples
    --------
    >>> check_probs([[0.25, 0.75], [0.5, 0.5]]).probs.shape
    (2, 1, 2)
    """
    given = as_array(probs, "probs", member_ndim=2)
    return check_converted(given, from_logits=from_logits, from_log=from_log)


def check_converted(
    given: Converted, *, from_logits: bool, from_log: bool, n_samples: int | None = None
) -> Predictions:
    """Validate predictions that are a numpy array already.

    Parameters
    ----------
    given : Converted
        The array, and the precision in which its numbers were made.
    from_logits, from_log : bool
        As in `check_probs`.
    n_samples : int, optional
        The number of labels, which helps to say where the samples are.

    Returns
    -------
    Predictions
    """
    for name, flag in {"from_logits": from_logits, "from_log": from_log}.items():
        check_flag(flag, name)
    if from_logits and from_log:
        rule = "and `from_log` exclude each other"
        raise refusal("from_logits", rule, "True for both", "Pass only the one that applies.")
    check_dtype(given.array, "probs")
    array = _with_three_axes(given.array)
    if from_logits:
        return _from_logits(array, given.precision)
    if from_log:
        return _from_log(given, array)
    native, owned = _native(array)
    return _on_simplex(native, given, owned=owned, n_samples=n_samples)


_FORBIDDEN = {
    "O": ("python objects", "Convert with `.astype(float)`."),
    "c": ("complex numbers", "Take `.real` if the imaginary part is zero."),
    "V": ("a structured or raw type", "Take its columns apart and stack them."),
    "M": ("dates", "Check which array was passed."),
    "m": ("time differences", "Check which array was passed."),
}


def check_dtype(array: NDArray[Any], name: str) -> None:
    """Refuse every type that is not boolean, integer or floating."""
    kind = array.dtype.kind
    if kind in "fiub":
        return
    what, repair_ = _FORBIDDEN.get(kind, ("strings", "Convert with `.astype(float)`."))
    came = f"{what} (dtype {array.dtype!s:.60}) in an array of shape {array.shape}"
    raise refusal(name, "must hold real numbers", came, repair_)


def _with_three_axes(array: NDArray[Any]) -> NDArray[Any]:
    """View the array as (N, M, K), and refuse shapes that leave nothing to do."""
    shape = array.shape
    rule = "must have shape (n_samples, n_members, n_classes)"
    if array.ndim not in (2, 3):
        repairs = {
            0: "A single number is not a prediction.",
            1: "One row is `probs[None, None, :]`; probabilities of class 1 go through "
            "`hullcal.from_binary(p)`.",
        }
        merge = "Bring it to three axes with `.reshape(n_samples, n_members, n_classes)`."
        raise refusal("probs", rule, f"shape {shape}", repairs.get(array.ndim, merge))
    if shape[-1] == 1:
        came = f"shape {shape}, a single class"
        single = "Probabilities of class 1 alone go through `hullcal.from_binary(p)`."
        raise refusal("probs", f"{rule} with at least 2 classes", came, single)
    if 0 in shape:
        came = f"an empty array of shape {shape}"
        raise refusal("probs", rule, came, "Check how the rows were selected.")
    return array[:, None, :] if array.ndim == 2 else array


def _native(array: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """Give float32 or float64 in native byte order, and whether that took a copy."""
    dtype = array.dtype
    if dtype.char in "fd":
        if dtype.isnative:
            return array, False
        return array.astype(dtype.newbyteorder("="), order="C"), True
    return array.astype(np.float64, order="C"), True


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Lock a view; the flag of the array underneath is the caller's own business."""
    view = array.view()
    view.setflags(write=False)
    return view


def _from_logits(array: NDArray[Any], precision: Precision) -> Predictions:
    """Softmax; an infinite logit is a fault of the model, not a probability of 0 or 1."""
    count, first = find(array, _is_not_finite)
    if count:
        raise not_finite(count, first, "Repair the logits, or drop those rows.")
    notes: tuple[str, ...] = ()
    if all_clean(_native(array)[0], precision):
        notes = ("from_logits=True, though every row was a probability vector already",)
    return Predictions(_read_only(softmax(array)), notes)


def _from_log(given: Converted, array: NDArray[Any]) -> Predictions:
    """Exponentiate; the rows must then be probability vectors like any other."""
    count, first = find(array, _is_no_logarithm)
    if count:
        hint = (
            "With `from_log=True` minus infinity stands for 0; NaN and plus infinity are refused."
        )
        raise not_finite(count, first, hint)
    return _on_simplex(exponential(array), given, owned=True, from_log=True)


def _is_not_finite(block: NDArray[Any]) -> NDArray[np.bool_]:
    finite: NDArray[np.bool_] = np.isfinite(block)
    return ~finite


def _is_no_logarithm(block: NDArray[Any]) -> NDArray[np.bool_]:
    fine: NDArray[np.bool_] = np.less(block, np.inf)
    return ~fine


def _on_simplex(
    array: NDArray[Any],
    given: Converted,
    *,
    owned: bool,
    from_log: bool = False,
    n_samples: int | None = None,
) -> Predictions:
    """Pass rows that are probability vectors, mend what is rounding, refuse the rest."""
    precision = given.precision
    if all_clean(array, precision):
        return Predictions(_read_only(array))
    findings = audit(array, precision)
    if not findings.acceptable:
        raise diagnosis(findings, given, from_log=from_log, n_samples=n_samples)
    if findings.n_outside or findings.n_off:
        array = repair(array, precision, owned=owned)
    return Predictions(_read_only(array), _notes(findings, precision))


def _notes(findings: Findings, precision: Precision) -> tuple[str, ...]:
    """Say what was mended, and what was left although it is coarse."""
    notes = []
    if findings.n_outside:
        values = "1 value was" if findings.n_outside == 1 else f"{findings.n_outside} values were"
        notes.append(f"{values} outside [0, 1] by at most {SLACK:.0e} and clipped")
    if findings.n_off:
        notes.append(
            f"{findings.n_off} of {findings.n_rows} rows were renormalised "
            f"(largest deviation {findings.worst_off:.1g})"
        )
    if findings.worst_left > precision.limit:
        notes.append(
            f"row sums were left as they came, within {precision.name} rounding "
            f"(largest deviation {findings.worst_left:.1g})"
        )
    return tuple(notes)
