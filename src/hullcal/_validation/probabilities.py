"""Do predictions lie on the simplex, and if not, what are they more likely to be?"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import check_flag
from hullcal._validation.arrays import Converted, Precision, as_array, check_dtype
from hullcal._validation.errors import InvalidInputError, refusal
from hullcal.notes import Note

# A value outside [0, 1] by this much is rounding and is clipped.
SLACK = 1e-6
# A row sum further from 1 than this is no rounding and no carelessness: another quantity came.
FAR = 0.05
# Enough rows to make numpy's overhead small, few enough that a memory map never enters memory.
BLOCK_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Validated predictions: read-only (N, M, K), and what was done to the input, in words.

    They are float32 or float64 in native byte order, and a view of the input wherever that could
    be used as it came.
    """

    probs: NDArray[Any]
    notes: tuple[Note, ...] = ()


def check_probs(
    probs: Any, *, from_logits: bool = False, from_log: bool = False, n_labels: int | None = None
) -> Predictions:
    """Validate the predictions of a set, (N, M, K), of one classifier, (N, K), or a list of those.

    Row sums off by at most ``4 * K * eps`` of the input's type are left bit for bit, so that
    values on a bin edge stay there. Rows off by up to 1e-3 (float16, bfloat16), 1e-4 (float32) or
    1e-6 (float64) more are renormalised in float64, and the result says so. The number of labels,
    where it is known, helps to say which axis holds the samples. The input is never modified.

    >>> check_probs([[0.25, 0.75], [0.5, 0.5]]).probs.shape
    (2, 1, 2)
    """
    check_flag(from_logits, "from_logits")
    check_flag(from_log, "from_log")
    if from_logits and from_log:
        rule = "and `from_log` exclude each other"
        raise refusal("from_logits", rule, "True for both", "Pass only the one that applies.")
    given = as_array(probs, "probs", member_ndim=2)
    check_dtype(given.array, "probs")
    array, precision = _with_three_axes(given.array), given.precision
    notes: tuple[Note, ...] = ()
    if from_logits:
        # An infinite logit is a fault of the model, not a probability of 0 or 1.
        _refuse_any(array, np.isfinite, "Repair the logits, or drop those rows.")
        if all_clean(_native(array), precision):
            notes = (Note("needless_logits"),)
        return Predictions(_locked(softmax(array)), notes)
    if from_log:
        hint = (
            "With `from_log=True` minus infinity stands for 0; NaN and plus infinity are refused."
        )
        _refuse_any(array, lambda block: block < np.inf, hint)
    rows = exponential(array) if from_log else _native(array)
    if not all_clean(rows, precision):
        findings = audit(rows, precision)
        if not findings.acceptable:
            raise _diagnosis(findings, given, from_log=from_log, n_labels=n_labels)
        if findings.n_outside or findings.n_off:
            rows = repair(rows, precision, owned=rows is not array)
        notes = findings.notes(precision)
    return Predictions(_locked(rows), notes)


def check_points(point: Any, n_samples: int, n_classes: int) -> NDArray[Any]:
    """Distributions to compare with the hull of each instance, (N, K), or (K,) for all of them.

    They are given as they came: renormalising could move a point off the hull it lies in.
    """
    array = as_array(point, "point").array
    if array.shape not in ((n_classes,), (n_samples, n_classes)):
        rule = f"must have shape ({n_samples}, {n_classes}), or ({n_classes},) for every instance"
        repair = "Give one distribution over the classes for each instance."
        raise refusal("point", rule, f"shape {array.shape}", repair)
    try:
        check_probs(np.atleast_2d(array))
    except InvalidInputError as error:
        rule = "must hold distributions over the classes: numbers of at least 0 with sum 1"
        repair = "Divide each by its sum, or see whether the axes are in order."
        raise refusal("point", rule, reprlib.repr(array.tolist()), repair) from error
    return np.broadcast_to(array, (n_samples, n_classes))


def _with_three_axes(array: NDArray[Any]) -> NDArray[Any]:
    """View the array as (N, M, K), and refuse shapes that leave nothing to do."""
    shape = array.shape
    rule = "must have shape (n_samples, n_members, n_classes)"
    if array.ndim not in (2, 3):
        repair = "Bring it to three axes with `.reshape(n_samples, n_members, n_classes)`."
        if array.ndim < 2:
            repair = "One row is `probs[None, None, :]`; for class 1, use `hullcal.from_binary(p)`."
        raise refusal("probs", rule, f"shape {shape}", repair)
    if shape[-1] == 1:
        rule, came = f"{rule} with at least 2 classes", f"shape {shape}, a single class"
        repair = "Probabilities of class 1 alone go through `hullcal.from_binary(p)`."
        raise refusal("probs", rule, came, repair)
    if 0 in shape:
        came = f"an empty array of shape {shape}"
        raise refusal("probs", rule, came, "Check how the rows were selected.")
    return array[:, None, :] if array.ndim == 2 else array


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Float32 or float64 in native byte order; the array itself if it is that already."""
    if array.dtype.char not in "fd":
        return array.astype(np.float64, order="C")
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="), order="C")


def _locked(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view; the flag of the array underneath is the caller's own business."""
    view = array.view()
    view.setflags(write=False)
    return view


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut an array into consecutive views of about 8 MB, each with the index of its first row."""
    n_samples, n_members, n_classes = array.shape
    step = max(1, BLOCK_BYTES // (n_members * n_classes * array.itemsize))
    for start in range(0, n_samples, step):
        yield start, array[start : start + step]


def softmax(array: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the last axis in float64, shifted by the row's maximum so nothing overflows."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        for _, block in blocks(out):
            block -= block.max(axis=-1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=-1, keepdims=True)
    return out


def exponential(array: NDArray[Any]) -> NDArray[np.float64]:
    """Exponential in float64; minus infinity becomes an exact zero."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        return np.exp(out, out=out)


def all_clean(array: NDArray[Any], precision: Precision) -> bool:
    """Whether every row is beyond doubt a probability vector; False only asks for an audit.

    Sums run in the array's own type and in whatever order BLAS likes, whose error stays below
    K * eps. Half of the 4 * K * eps that are left alone is therefore on the safe side.
    """
    n_classes = array.shape[2]
    ones = np.ones(n_classes, dtype=array.dtype)
    margin = min(precision.left_alone(n_classes) / 2, precision.limit)
    for _, block in blocks(array):
        rows = block.reshape(-1, n_classes)
        # NaN makes every comparison false. Only values in [0, 1] are summed, so no sum can warn.
        low, high = np.minimum.reduce(rows, axis=None), np.maximum.reduce(rows, axis=None)
        if not (low >= 0 and high <= 1):
            return False
        sums = rows @ ones
        if not (np.minimum.reduce(sums) >= 1 - margin and np.maximum.reduce(sums) <= 1 + margin):
            return False
    return True


@dataclass(slots=True)
class Findings:
    """What a careful reading of all rows found; filled in block by block."""

    n_rows: int
    n_nonfinite: int = 0
    first_nonfinite: tuple[int, ...] = ()
    low: float = np.inf
    high: float = -np.inf
    smallest_sum: float = np.inf
    largest_sum: float = -np.inf
    n_outside: int = 0  # values, by rounding or by more
    worst_left: float = 0.0  # deviation of the sums that are left as they are
    n_off: int = 0  # rows to renormalise
    worst_off: float = 0.0
    n_wrong: int = 0  # rows to refuse
    first_wrong: tuple[int, ...] = ()
    wrong_sum: float = np.nan
    worst_wrong: float = 0.0

    @property
    def out_of_range(self) -> bool:
        """Whether some value lies outside [0, 1] by more than rounding."""
        return self.low < -SLACK or self.high > 1 + SLACK

    @property
    def acceptable(self) -> bool:
        """Whether every row can be used, as it is or mended."""
        return not (self.n_nonfinite or self.out_of_range or self.n_wrong)

    def notes(self, precision: Precision) -> tuple[Note, ...]:
        """Say what was mended, and what was left although it is coarse."""
        notes = []
        if self.n_outside:
            notes.append(Note("clipped", {"n_values": self.n_outside, "slack": SLACK}))
        if self.n_off:
            found = {"n_rows": self.n_off, "of_rows": self.n_rows, "deviation": self.worst_off}
            notes.append(Note("renormalised", found))
        if self.worst_left > precision.limit:
            left = {"precision": precision.name, "deviation": self.worst_left}
            notes.append(Note("sums_left", left))
        return tuple(notes)


def audit(array: NDArray[Any], precision: Precision) -> Findings:
    """Read every row in float64 and in a fixed order, so that layout cannot change a verdict."""
    found = Findings(n_rows=array.shape[0] * array.shape[1])
    with np.errstate(all="ignore"):
        for start, block in blocks(array):
            _read(found, np.array(block, dtype=np.float64, order="C"), start, precision)
    return found


def _read(found: Findings, rows: NDArray[np.float64], start: int, precision: Precision) -> None:
    bad = ~np.isfinite(rows)
    if bad.any():
        found.n_nonfinite += int(np.count_nonzero(bad))
        found.first_nonfinite = found.first_nonfinite or _first(bad, start)
    found.low = float(np.fmin(found.low, np.fmin.reduce(rows, axis=None)))
    found.high = float(np.fmax(found.high, np.fmax.reduce(rows, axis=None)))
    found.n_outside += int(np.count_nonzero((rows < 0) | (rows > 1)))
    as_given = np.add.reduce(rows, axis=-1)
    found.smallest_sum = min(found.smallest_sum, float(as_given.min()))
    found.largest_sum = max(found.largest_sum, float(as_given.max()))
    sums = _row_sums(rows)
    deviation = np.abs(sums - 1)
    wrong = deviation > precision.repaired(rows.shape[2])
    off = (deviation > precision.left_alone(rows.shape[2])) & ~wrong
    found.worst_left = deviation[~(wrong | off)].max(initial=found.worst_left)
    found.n_off += int(np.count_nonzero(off))
    found.worst_off = deviation[off].max(initial=found.worst_off)
    if wrong.any():
        found.n_wrong += int(np.count_nonzero(wrong))
        found.worst_wrong = deviation[wrong].max(initial=found.worst_wrong)
        if not found.first_wrong:
            found.first_wrong, found.wrong_sum = _first(wrong, start), float(sums[wrong][0])


def repair(array: NDArray[Any], precision: Precision, *, owned: bool) -> NDArray[np.float64]:
    """Clip values and renormalise the rows that need it, in float64; other rows keep their bits.

    Every value and row was audited to be within what is mended; a caller's array is copied first.
    """
    out = array.astype(np.float64, order="C", copy=not owned)
    for _, block in blocks(out):
        outside = (block < 0) | (block > 1)
        block[outside] = np.clip(block[outside], 0, 1)  # -0.0 and all else keep their bits
        sums = _row_sums(block)
        off = np.abs(sums - 1) > precision.left_alone(array.shape[2])
        block[off] /= sums[off][:, None]
    return out


def _row_sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows as they are after clipping, so that `audit` and `repair` see the same sums."""
    sums: NDArray[np.float64] = np.add.reduce(np.clip(rows, 0, 1), axis=-1)
    return sums


def _first(mask: NDArray[np.bool_], start: int) -> tuple[int, ...]:
    """Where the first entry is marked, in a block that begins at row `start`; empty if nowhere."""
    if not mask.any():
        return ()
    n, *rest = (int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
    return (start + n, *rest)


def _refuse_any(array: NDArray[Any], usable: Callable[[NDArray[Any]], Any], hint: str) -> None:
    """Refuse entries that cannot be transformed, with their number and the first place."""
    count = 0
    first: tuple[int, ...] = ()
    for start, block in blocks(array):
        bad = ~usable(block)
        count += int(np.count_nonzero(bad))
        first = first or _first(bad, start)
    if count:
        raise _not_finite(count, first, hint)


def _not_finite(count: int, first: tuple[int, ...], hint: str) -> InvalidInputError:
    values = "value" if count == 1 else "values"
    came = f"{count} NaN or infinite {values}, the first at (n, m, k) = {first}"
    return refusal("probs", "must be finite", came, hint)


_VOTES = (
    "Predicted classes are not enough: ask the models for probabilities, as `predict_proba` gives. "
)
_LOGITS = "If these are logits, pass `from_logits=True`."
_LOGS = "All values are at most 0: if these are log-probabilities, pass `from_log=True`."
_BINARY = "Probabilities of class 1, one column per member, go through `hullcal.from_binary`. "
_NORMALISE = "To accept the rows anyway, pass `probs / probs.sum(axis=-1, keepdims=True)`."


def _diagnosis(
    found: Findings, given: Converted, *, from_log: bool, n_labels: int | None
) -> InvalidInputError:
    """Turn findings that cannot be accepted into the error to raise."""
    array = given.array
    if from_log and (found.n_nonfinite or found.out_of_range):  # exp may overflow
        rule = f"must be at most 0 with `from_log=True` (within {SLACK:.0e})"
        hint = "If these are logits, pass `from_logits=True`; if probabilities, pass neither."
        return refusal("probs", rule, f"values up to {float(array.max()):.4g}", hint)
    if found.n_nonfinite:
        # Minus infinity alone, among values at most 0, is the logarithm of a zero.
        logs = found.high <= 0 and not bool(np.isnan(array).any())
        hint = _LOGS if logs else "Repair or drop those rows before the call."
        return _not_finite(found.n_nonfinite, found.first_nonfinite, hint)
    if found.out_of_range:
        rule = f"must lie in [0, 1] (within {SLACK:.0e})"
        hint = _common_total(found) + _LOGITS
        if found.high <= 0:
            hint = f"{_LOGS} {_LOGITS}"
        elif array.dtype.kind in "iu" and found.low >= 0:
            hint = _VOTES + hint
        return refusal("probs", rule, f"values from {found.low:.4g} to {found.high:.4g}", hint)
    within = f"{given.precision.repaired(array.shape[-1]):.1g} for {given.precision.name}"
    n, m = found.first_wrong
    came = (
        f"{found.n_wrong} of {found.n_rows} rows that do not in shape {array.shape}, "
        f"the first at (n, m) = ({n}, {m}) with sum {found.wrong_sum:.6g}"
    )
    if from_log:
        hint = "Unnormalised log-probabilities are logits: pass `from_logits=True` instead."
    elif order := order_that_fits(given, n_labels):
        hint = f"Another axis does sum to 1: pass `{order}`."
    elif found.worst_wrong <= FAR:
        hint = _NORMALISE
    elif found.largest_sum <= 0 <= found.low:
        hint = "All values are 0: were they filled in?"
    else:
        binary = _BINARY if array.ndim == 2 else ""
        hint = f"{_common_total(found)}{binary}{_LOGITS} {_NORMALISE}"
    return refusal("probs", f"must sum to 1 over the last axis (within {within})", came, hint)


def _common_total(found: Findings) -> str:
    """Recognise percentages and votes: no negative value, and every row has the same sum."""
    low, high = found.smallest_sum, found.largest_sum
    if found.low < 0 or high <= 0 or high - low > 1e-6 * high:
        return ""
    return f"Every row sums to {high:.6g}: for percentages or votes, divide by that. "


def order_that_fits(given: Converted, n_labels: int | None, *, raw: bool = False) -> str:
    """Write the order of axes that puts samples first and classes last; empty if there is no better.

    Classes are on the axis whose values sum to one, which logits (`raw`) do not; samples are on
    the axis that is as long as the labels.
    """
    array, k_axis = given.array, None
    if not raw and array.dtype.kind in "biuf":
        tolerance = max(given.precision.repaired(max(array.shape)), 1e-3)
        with np.errstate(all="ignore"):
            for axis in range(array.ndim):
                sums = np.add.reduce(array, axis=axis, dtype=np.float64)
                k_axis = axis if np.all(np.abs(sums - 1) <= tolerance) else k_axis
    others = (axis for axis in range(array.ndim) if axis != k_axis)
    n_axis = next((axis for axis in others if array.shape[axis] == n_labels), None)
    if n_axis is None and n_labels is not None:
        return ""
    return reordering(array.ndim, n_axis, k_axis)


def reordering(ndim: int, n_axis: int | None, k_axis: int | None) -> str:
    """Write the expression that brings samples to the front and classes to the back.

    Where one of them is not known (None), the order of the remaining axes is kept. Empty if the
    order is right already.
    """
    rest = [axis for axis in range(ndim) if axis not in (n_axis, k_axis)]
    front = [n_axis] if n_axis is not None else [rest.pop(0)]
    back = [k_axis] if k_axis is not None else [rest.pop()]
    order = (*front, *rest, *back)
    if order == tuple(range(ndim)):
        return ""
    axes = np.empty(range(ndim))  # its shape tells where each axis has gone
    for source, target in permutations(range(ndim), 2):
        if np.moveaxis(axes, source, target).shape == order:
            return f"np.moveaxis(probs, {source}, {target})"
    return f"np.transpose(probs, {order})"
