"""Do predictions lie on the simplex, and if not, what are they more likely to be?"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import InvalidInputError, check_flag, refusal
from hullcal._validation.arrays import Converted, Precision, as_array, check_dtype
from hullcal.notes import Note

# A value outside [0, 1] by this much is rounding and is clipped.
SLACK = 1e-6
# A row sum further from 1 than this is no rounding and no carelessness: another quantity came.
FAR = 0.05
# Weights come from divisions and projections; this is far above their rounding.
WEIGHT_SLACK = 1e-8
# Enough rows to make numpy's overhead small, few enough that a memory map never enters memory.
BLOCK_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Validated predictions, and what was done to the input."""

    probs: NDArray[Any]  # (N, M, K), read-only, native float32 or float64, a view where possible
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
        notes = (Note("needless_logits"),) if _all_clean(_native(array), precision) else ()
        rows = _softmax(array)
    else:
        rows = _exponential(array) if from_log else _native(array)
        if not _all_clean(rows, precision):
            if not from_log:
                hint = "Repair or drop those rows; of log-probabilities, pass `from_log=True`."
                _refuse_any(rows, np.isfinite, hint)
            findings = _audit(rows, precision)
            if findings.out_of_range or findings.n_wrong:
                raise _diagnosis(findings, given, from_log=from_log, n_labels=n_labels)
            if findings.n_outside or findings.n_off:
                rows = _repair(rows, precision, owned=rows is not array)
            notes = findings.notes(precision)
    view = rows.view()  # the flag of the array underneath is the caller's own business
    view.setflags(write=False)
    return Predictions(view, notes)


def check_weights(weights: Any, n_members: int) -> NDArray[np.float64]:
    """The weights of a convex combination as a new array: finite, at least 0, with sum 1."""
    array = as_array(weights, "weights").array
    check_dtype(array, "weights")
    result = array.astype(np.float64)
    with np.errstate(all="ignore"):
        total = float(result.sum())
    fits = result.shape == (n_members,) and bool((result >= 0).all())
    if not (fits and abs(total - 1) <= WEIGHT_SLACK):  # which NaN and infinity fail
        rule = (
            f"must have shape ({n_members},), one weight per member, each at least 0, "
            f"and sum to 1 (within {WEIGHT_SLACK:.0e})"
        )
        came = f"{reprlib.repr(result.tolist())} of shape {result.shape} with sum {total:.12g}"
        repair = "Rescale in float64: `w = np.asarray(weights, float); w / w.sum()`."
        raise refusal("weights", rule, came, repair)
    return result


def check_points(point: Any, n_samples: int, n_classes: int) -> NDArray[Any]:
    """Distributions to compare with the hull of each instance, (N, K), or (K,) for all of them."""
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
    # As they came: renormalising could move a point off the hull it lies in.
    return np.broadcast_to(array, (n_samples, n_classes))


def _with_three_axes(array: NDArray[Any]) -> NDArray[Any]:
    """View the array as (N, M, K), and refuse shapes that leave nothing to do."""
    shape = array.shape
    if array.ndim not in (2, 3) or 0 in shape or shape[-1] == 1:
        rule = "must have shape (n_samples, n_members, n_classes), not empty, of at least 2 classes"
        repair = f"{_BINARY} One row is `probs[None, None, :]`; for four axes see `.reshape(...)`."
        came = f"an empty array of shape {shape}" if 0 in shape else f"shape {shape}"
        raise refusal("probs", rule, came, repair)
    return array[:, None, :] if array.ndim == 2 else array


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """Float32 or float64 in native byte order; the array itself if it is that already."""
    if array.dtype.char not in "fd":
        return array.astype(np.float64, order="C")
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="), order="C")


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut an array into consecutive views of about 8 MB, each with the index of its first row."""
    n_samples, n_members, n_classes = array.shape
    step = max(1, BLOCK_BYTES // (n_members * n_classes * array.itemsize))
    for start in range(0, n_samples, step):
        yield start, array[start : start + step]


def _softmax(array: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the last axis in float64, shifted by the row's maximum so nothing overflows."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        for _, block in blocks(out):
            block -= block.max(axis=-1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=-1, keepdims=True)
    return out


def _exponential(array: NDArray[Any]) -> NDArray[np.float64]:
    """Exponential in float64; minus infinity becomes an exact zero."""
    hint = "With `from_log=True` minus infinity stands for 0; NaN and plus infinity are refused."
    _refuse_any(array, lambda block: block < np.inf, hint)
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        return np.exp(out, out=out)


def _all_clean(array: NDArray[Any], precision: Precision) -> bool:
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
    low: float = np.inf
    high: float = -np.inf
    n_outside: int = 0  # values, by rounding or by more
    worst_left: float = 0.0  # deviation of the sums that are left as they are
    n_off: int = 0  # rows to renormalise
    worst_off: float = 0.0
    n_wrong: int = 0  # rows to refuse
    wrong_sum: float = 1.0  # of the worst of them
    wrong_at: tuple[int, ...] = ()

    @property
    def out_of_range(self) -> bool:
        """Whether some value lies outside [0, 1] by more than rounding."""
        return self.low < -SLACK or self.high > 1 + SLACK

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


def _audit(array: NDArray[Any], precision: Precision) -> Findings:
    """Read every row in float64 and in a fixed order, so that layout cannot change a verdict."""
    found = Findings(n_rows=array.shape[0] * array.shape[1])
    n_classes = array.shape[2]
    for start, block in blocks(array):
        rows = np.array(block, dtype=np.float64, order="C")
        found.low = min(found.low, float(rows.min()))
        found.high = max(found.high, float(rows.max()))
        found.n_outside += int(np.count_nonzero((rows < 0) | (rows > 1)))
        sums = _row_sums(rows)
        deviation = np.abs(sums - 1)
        wrong = deviation > precision.repaired(n_classes)
        off = (deviation > precision.left_alone(n_classes)) & ~wrong
        found.worst_left = deviation[~(wrong | off)].max(initial=found.worst_left)
        found.n_off += int(np.count_nonzero(off))
        found.worst_off = deviation[off].max(initial=found.worst_off)
        found.n_wrong += int(np.count_nonzero(wrong))
        if wrong.any() and deviation.max() > abs(found.wrong_sum - 1):
            found.wrong_sum = float(sums.flat[deviation.argmax()])
            found.wrong_at = _peak(deviation, start)
    return found


def _repair(array: NDArray[Any], precision: Precision, *, owned: bool) -> NDArray[np.float64]:
    """Clip values and renormalise the rows that need it, in float64; other rows keep their bits."""
    out = array.astype(np.float64, order="C", copy=not owned)
    for _, block in blocks(out):
        outside = (block < 0) | (block > 1)
        block[outside] = np.clip(block[outside], 0, 1)  # -0.0 and all else keep their bits
        sums = _row_sums(block)
        off = np.abs(sums - 1) > precision.left_alone(array.shape[2])
        block[off] /= sums[off][:, None]
    return out


def _row_sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows as they are after clipping, so that both passes see the same sums."""
    sums: NDArray[np.float64] = np.add.reduce(np.clip(rows, 0, 1), axis=-1)
    return sums


def _peak(values: NDArray[Any], start: int) -> tuple[int, ...]:
    """Where the first of the largest values stands, in a block that begins at row `start`."""
    n, *rest = (int(i) for i in np.unravel_index(int(np.argmax(values)), values.shape))
    return (start + n, *rest)


def _refuse_any(array: NDArray[Any], usable: Callable[[NDArray[Any]], Any], hint: str) -> None:
    """Refuse entries that cannot be used, with their number and the first place."""
    count = 0
    first: tuple[int, ...] = ()
    for start, block in blocks(array):
        bad = ~usable(block)
        if bad.any():
            count += int(np.count_nonzero(bad))
            first = first or _peak(bad, start)
    if count:
        came = f"{count} NaN or infinite value{'s' * (count > 1)}, the first at (n, m, k) = {first}"
        raise refusal("probs", "must be finite", came, hint)


_BINARY = "Probabilities of class 1 alone go through `hullcal.from_binary(p)`."
_LOGITS = "If these are logits, pass `from_logits=True`; divide percentages and votes by their sum."


def _diagnosis(
    found: Findings, given: Converted, *, from_log: bool, n_labels: int | None
) -> InvalidInputError:
    """Turn findings that cannot be accepted into the error to raise."""
    array = given.array
    if from_log and found.out_of_range:
        rule = f"must be at most 0 with `from_log=True` (within {SLACK:.0e})"
        hint = "If these are logits, pass `from_logits=True`; if probabilities, pass neither."
        return refusal("probs", rule, f"values up to {float(array.max()):.4g}", hint)
    if found.out_of_range:
        hint = f"{_LOGITS} Predicted classes are not enough: take `predict_proba`."
        if found.high <= 0:
            hint = f"If these are log-probabilities, pass `from_log=True`. {_LOGITS}"
        came = f"values from {found.low:.4g} to {found.high:.4g}"
        return refusal("probs", f"must lie in [0, 1] (within {SLACK:.0e})", came, hint)
    within = f"{given.precision.repaired(array.shape[-1]):.1g} for {given.precision.name}"
    came = (
        f"{found.n_wrong} of {found.n_rows} rows that do not in shape {array.shape}, "
        f"the worst at (n, m) = {found.wrong_at} with sum {found.wrong_sum!r}"
    )
    hint = "To accept the rows anyway, pass `probs / probs.sum(axis=-1, keepdims=True)`."
    if from_log:
        hint = "Unnormalised log-probabilities are logits: pass `from_logits=True` instead."
    elif order := order_that_fits(given, n_labels):
        hint = f"Another axis does sum to 1: pass `{order}`."
    elif abs(found.wrong_sum - 1) > FAR:
        hint = f"{_LOGITS} {_BINARY} {hint}"
    return refusal("probs", f"must sum to 1 over the last axis (within {within})", came, hint)


def order_that_fits(given: Converted, n_labels: int | None, *, raw: bool = False) -> str:
    """Write the order of axes that puts samples first and classes last; empty if there is no better."""
    # Classes are on the axis whose values sum to one, which logits (`raw`) do not.
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
    """Write how samples come to the front and classes to the back; None where an axis is not known."""
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
