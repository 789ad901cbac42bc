"""Why an array is not one of probabilities, and what it is more likely to be."""

from __future__ import annotations

import numpy as np

from hullcal._validation.axes import axis_summing_to_one, reordering
from hullcal._validation.errors import InvalidInputError, refusal
from hullcal._validation.foreign import Converted
from hullcal._validation.rows import SLACK, Findings

__all__ = ["diagnosis", "not_finite"]

# A row sum further from 1 than this is no rounding and no carelessness: another quantity came.
FAR = 0.05

_VOTES = (
    "Predicted classes will not do: ask the models for probabilities, as `predict_proba` gives. "
)
_LOGITS = "If these are logits, pass `from_logits=True`."
_LOGS = "All values are at most 0: if these are log-probabilities, pass `from_log=True`."
_NORMALISE = "To accept the rows anyway, pass `probs / probs.sum(axis=-1, keepdims=True)`."


def diagnosis(
    findings: Findings, given: Converted, *, from_log: bool, n_samples: int | None
) -> InvalidInputError:
    """Turn findings that cannot be accepted into the error to raise.

    Parameters
    ----------
    findings : Findings
        What the audit found.
    given : Converted
        The input before any transformation, for a closer look.
    from_log : bool
        Whether the input was taken as log-probabilities.
    n_samples : int or None
        The number of labels, if they are known.

    Returns
    -------
    InvalidInputError
    """
    if from_log and (findings.n_nonfinite or findings.out_of_range):  # exp may overflow
        return _positive_logs(given)
    if findings.n_nonfinite:
        # Minus infinity alone, among values at most 0, is the logarithm of a zero.
        logs = findings.high <= 0 and not bool(np.isnan(given.array).any())
        hint = _LOGS if logs else "Repair or drop those rows before the call."
        return not_finite(findings.n_nonfinite, findings.first_nonfinite, hint)
    if findings.out_of_range:
        return _out_of_range(findings, given)
    return _wrong_sums(findings, given, from_log=from_log, n_samples=n_samples)


def not_finite(count: int, first: tuple[int, ...], hint: str) -> InvalidInputError:
    """Report NaN and infinities with their number and the first place."""
    values = "value" if count == 1 else "values"
    came = f"{count} NaN or infinite {values}, the first at (n, m, k) = {first}"
    return refusal("probs", "must be finite", came, hint)


def _positive_logs(given: Converted) -> InvalidInputError:
    rule = f"must be at most 0 with `from_log=True` (within {SLACK:.0e})"
    came = f"values up to {float(given.array.max()):.4g}"
    hint = "If these are logits, pass `from_logits=True`; if probabilities, pass neither."
    return refusal("probs", rule, came, hint)


def _out_of_range(findings: Findings, given: Converted) -> InvalidInputError:
    low, high = findings.low, findings.high
    rule = f"must lie in [0, 1] (within {SLACK:.0e})"
    came = f"values from {low:.4g} to {high:.4g}"
    if high <= 0:
        return refusal("probs", rule, came, _LOGS if _sum_as_logs(given) else f"{_LOGS} {_LOGITS}")
    if given.array.dtype.kind in "iu" and low >= 0:
        return refusal("probs", rule, came, _VOTES + _common_total(findings) + _LOGITS)
    return refusal("probs", rule, came, _common_total(findings) + _LOGITS)


def _sum_as_logs(given: Converted) -> bool:
    """Whether a first stretch of rows consists of log-probabilities beyond doubt."""
    rows = given.array[:1000].astype(np.float64)
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(np.exp(rows).sum(axis=-1) - 1) <= FAR))


def _common_total(findings: Findings) -> str:
    """Recognise percentages and votes: no negative value, and every row has the same sum."""
    low, high = findings.smallest_sum, findings.largest_sum
    if findings.low < 0 or high <= 0 or high - low > 1e-6 * high:
        return ""
    return f"Every row sums to {high:.6g}: for percentages or votes, divide by that. "


def _wrong_sums(
    findings: Findings, given: Converted, *, from_log: bool, n_samples: int | None
) -> InvalidInputError:
    precision, array = given.precision, given.array
    rule = f"must sum to 1 over the last axis (within {precision.repaired(array.shape[-1]):.1g}"
    rule += f" for {precision.name})"
    n, m = findings.first_wrong
    came = (
        f"{findings.n_wrong} of {findings.n_rows} rows that do not in shape {array.shape}, "
        f"the first at (n, m) = ({n}, {m}) with sum {findings.wrong_sum:.6g}"
    )
    if from_log:
        hint = "Unnormalised log-probabilities are logits: pass `from_logits=True` instead."
        return refusal("probs", rule, came, hint)
    order = _better_order(given, n_samples)
    if order:
        return refusal("probs", rule, came, f"Another axis does sum to 1: pass `{order}`.")
    if findings.worst_wrong <= FAR:
        return refusal("probs", rule, came, _NORMALISE)
    binary = "Probabilities of class 1, one column per member, go through `hullcal.from_binary`. "
    if findings.largest_sum <= 0 <= findings.low:
        return refusal("probs", rule, came, "All values are 0: were they filled in?")
    hint = _common_total(findings) + (binary if array.ndim == 2 else "") + _LOGITS
    return refusal("probs", rule, came, f"{hint} {_NORMALISE}")


def _better_order(given: Converted, n_samples: int | None) -> str:
    """Write the order in which the rows would sum to one, if there is such an order."""
    array, precision = given.array, given.precision
    k_axis = axis_summing_to_one(array, max(precision.repaired(max(array.shape)), 1e-3))
    if k_axis is None:
        return ""
    candidates = [i for i in range(array.ndim) if i != k_axis and array.shape[i] == n_samples]
    return reordering(array.ndim, candidates[0] if candidates else None, k_axis)
