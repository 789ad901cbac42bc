"""Are predictions on the simplex, and if not, what are they more likely to be?"""

from __future__ import annotations

import mmap
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import InvalidInputError, check_flag, refusal
from hullcal._validation.arrays import (
    Given,
    Precision,
    as_array,
    as_predictions,
    check_dtype,
    order_that_fits,
)
from hullcal.notes import Note

# A value outside [0, 1] by this much is rounding and is clipped.
SLACK = 1e-6
# A row sum further from 1 than this is no rounding and no carelessness: another quantity came.
FAR = 0.05
# Weights come from divisions and projections; this is far above their rounding.
WEIGHT_SLACK = 1e-8
# Enough rows to make numpy's overhead small, few enough that a memory map never enters memory.
BLOCK_BYTES = 8 * 2**20

_BINARY = "Probabilities of class 1 alone go through `hullcal.from_binary(p)`."
_LOGITS = "If these are logits, pass `from_logits=True`."
_DIVIDE = "To divide every row by its sum, pass `normalize=True`."


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Validated predictions, what was done to the input, and names that came with it."""

    probs: NDArray[Any]  # (N, M, K), read-only, native float32 or float64, a view where possible
    notes: tuple[Note, ...] = ()
    members: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None


def check_probs(
    probs: Any,
    *,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
    n_labels: int | None = None,
) -> Predictions:
    """Validate the predictions of a set, (N, M, K), of one classifier, (N, K), or a list of those.

    Row sums off by at most ``4 * K * eps`` of the input's type are left bit for bit, so that
    values on a bin edge stay there. Rows off by up to 1e-3 (float16, bfloat16) or 1e-4 (float32,
    float64) more, or by anything with `normalize`, are renormalised in float64, and the result says
    so. The number of labels, where it is known, helps to say which axis holds the samples. The input
    is never modified.

    >>> check_probs([[0.25, 0.75], [0.5, 0.5]]).probs.shape
    (2, 1, 2)
    """
    flags = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    for name, flag in flags.items():
        check_flag(flag, name)
    passed = [name for name, flag in flags.items() if flag]
    if len(passed) > 1:
        rule, repair = f"and `{passed[1]}` exclude each other", "Pass only the one that applies."
        raise refusal(passed[0], rule, "True for both", repair)
    given = as_predictions(probs)
    check_dtype(given.array, "probs")
    array, precision = _with_three_axes(given.array), given.precision
    rows = _native(array)
    notes: tuple[Note, ...] = ()
    if from_logits:
        # An infinite logit is a fault of the model, not a probability of 0 or 1.
        _refuse_any(array, np.isfinite, "Repair the logits, or drop those rows.")
        if _all_clean(rows, precision):
            notes = (Note("needless_logits"),)
        rows = _softmax(array)
    elif from_log:
        hint = (
            "With `from_log=True` minus infinity stands for 0; NaN and plus infinity are refused."
        )
        _refuse_any(array, lambda block: block < np.inf, hint)
        with np.errstate(under="ignore", over="ignore"):
            rows = np.exp(array, dtype=np.float64, order="C")
    if not (from_logits or _all_clean(rows, precision)):
        if not from_log:
            hint = "Repair or drop those rows; of log-probabilities, pass `from_log=True`."
            _refuse_any(rows, np.isfinite, hint)
        found = _audit(rows, precision, normalize=normalize)
        # An error in a variable here would keep the caller's arrays alive by its own traceback.
        _refuse_findings(found, given, from_log=from_log, normalize=normalize, n_labels=n_labels)
        notes = found.notes(precision)
        if found.n_outside or found.off.any():
            rows = rows.astype(np.float64, order="C")
            _clip(rows)
            rows[found.off] /= found.sums[found.off][:, None]
    view = rows.view()  # the flag of the array underneath is the caller's own business
    view.setflags(write=False)
    return Predictions(view, notes, given.members, given.classes)


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
        check_whole(array)
        yield start, array[start : start + step]


def check_whole(array: NDArray[Any]) -> mmap.mmap | None:
    """The file to which an array is mapped, if any, refused if it has been cut short meanwhile.

    The system ends a process that reads what is missing, without a word.
    """
    mapped: object = array
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    if not isinstance(mapped, mmap.mmap):
        return None
    if mapped.size() < len(mapped):
        came = f"one of {len(mapped)} bytes cut to {mapped.size()}"
        rule, repair = "must be a file that nobody changes", "Write it again, and start again."
        raise refusal("probs", rule, came, repair)
    return mapped


def _softmax(array: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the last axis in float64, shifted by the row's maximum so nothing overflows."""
    out = np.array(array, dtype=np.float64, order="C")
    with np.errstate(under="ignore", over="ignore"):
        for _, block in blocks(out):
            block -= block.max(axis=-1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=-1, keepdims=True)
    return out


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


@dataclass(frozen=True, slots=True, eq=False)
class _Findings:
    """What a careful reading found: sums of all rows, (N, M), and which of them are off."""

    low: float
    high: float
    n_outside: int  # values outside [0, 1], by rounding or by more
    sums: NDArray[np.float64]
    off: NDArray[np.bool_]  # to renormalise
    wrong: NDArray[np.bool_]  # to refuse

    def worst(self, rows: NDArray[np.bool_]) -> float:
        """The largest deviation from 1 among some rows."""
        return float(np.abs(self.sums[rows] - 1).max(initial=0.0))

    def notes(self, precision: Precision) -> tuple[Note, ...]:
        """Say what was mended, and what was left although it is coarse."""
        notes = []
        if self.n_outside and self.high <= 1 + SLACK:
            notes.append(Note("clipped", {"n_values": self.n_outside, "slack": SLACK}))
        if n_rows := int(self.off.sum()):
            sizes = {"n_rows": n_rows, "of_rows": self.off.size}
            notes.append(Note("renormalised", sizes | {"deviation": self.worst(self.off)}))
        left = self.worst(~self.off)
        if left > precision.limit:
            notes.append(Note("sums_left", {"precision": precision.name, "deviation": left}))
        return tuple(notes)


def _audit(array: NDArray[Any], precision: Precision, *, normalize: bool) -> _Findings:
    """Read every row in float64 and in a fixed order, so that layout cannot change a verdict."""
    low, high, n_outside = np.inf, -np.inf, 0
    sums = np.empty(array.shape[:2])
    for start, block in blocks(array):
        rows = np.array(block, dtype=np.float64, order="C")
        low, high = min(low, float(rows.min())), max(high, float(rows.max()))
        n_outside += int(np.count_nonzero((rows < 0) | (rows > 1)))
        _clip(rows)
        with np.errstate(over="ignore"):
            sums[start : start + len(rows)] = np.add.reduce(rows, axis=-1)
    deviation = np.abs(sums - 1)
    repaired = np.inf if normalize else precision.repaired(array.shape[2])
    wrong = (deviation > repaired) | ~((sums > 0) & (sums < np.inf))
    off = (deviation > precision.left_alone(array.shape[2])) & ~wrong
    return _Findings(low, high, n_outside, sums, off, wrong)


def _clip(rows: NDArray[np.float64]) -> None:
    """Take rounding from the values outside [0, 1]; -0.0 and all else keep their bits."""
    rows[rows < 0] = 0.0
    rows[(rows > 1) & (rows <= 1 + SLACK)] = 1.0


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


def _refuse_findings(
    found: _Findings, given: Given, *, from_log: bool, normalize: bool, n_labels: int | None
) -> None:
    """Refuse findings that cannot be accepted."""
    array = given.array
    too_high = found.high > 1 + SLACK
    if from_log and too_high:
        rule = f"must be at most 0 with `from_log=True` (within {SLACK:.0e})"
        hint = "If these are logits, pass `from_logits=True`; if probabilities, pass neither."
        raise refusal("probs", rule, f"values up to {float(array.max()):.4g}", hint)
    if found.low < -SLACK or (too_high and not normalize):
        hint = f"{_LOGITS} Predicted classes are not enough: take `predict_proba`."
        if found.high <= 0:
            hint = f"If these are log-probabilities, pass `from_log=True`. {_LOGITS}"
        elif found.low >= -FAR and found.high <= 1 + FAR:
            hint = f"If this is rounding, pass `np.clip(probs, 0, 1)`. {_LOGITS}"
        elif found.low >= 0:
            hint += " If they are percentages or votes, pass `normalize=True`."
        rule = f"must lie in [0, 1] (within {SLACK:.0e})"
        raise refusal("probs", rule, f"values from {found.low:.4g} to {found.high:.9g}", hint)
    n_wrong = int(found.wrong.sum())
    far = found.worst(found.off | found.wrong) > FAR
    order = order_of(given, n_labels) if n_wrong or (normalize and far) else ""
    turned = f"Another axis does sum to 1: pass `{order}`."
    if not n_wrong:
        rule = "must have the classes on the last axis"
        if order:
            raise refusal("probs", rule, f"shape {array.shape}", turned)
        return
    within = f"{given.precision.repaired(array.shape[-1]):.1g} for {given.precision.name}"
    rule = f"must sum to 1 over the last axis (within {within})"
    hint = f"{_LOGITS} {_BINARY} {_DIVIDE}" if far else _DIVIDE
    n_columns = array.shape[-1]
    m = round(min(float(found.sums.mean()), n_columns))
    if m > 1 and n_columns % m == 0 and np.all(abs(found.sums - m) < FAR):
        hint = (
            f"So do {m} members side by side: pass `probs.reshape(-1, {m}, {n_columns // m})`, or name "
            "the columns of a frame member:class."
        )
    if normalize:
        rule, hint = "must have a positive and finite sum in every row", "Drop the other rows."
    elif from_log:
        hint = "Unnormalised log-probabilities are logits: pass `from_logits=True` instead."
    at = _peak(np.where(found.wrong, np.abs(found.sums - 1), -1.0), 0)
    came = (
        f"{n_wrong} of {found.wrong.size} rows with another sum (shape {array.shape}), "
        f"the worst at (n, m) = {at} with sum {float(found.sums[at])!r}"
    )
    raise refusal("probs", rule, came, turned if order and not from_log else hint)


def order_of(given: Given, n_labels: int | None, *, raw: bool = False) -> str:
    """The order of axes that fits, judged by sums along them, but of logits (`raw`)."""
    array, summed = given.array, []
    if not raw and array.dtype.kind in "biuf":
        tolerance = max(given.precision.repaired(max(array.shape)), 1e-3)
        with np.errstate(all="ignore"):
            for axis in range(array.ndim):
                sums = np.add.reduce(array, axis=axis, dtype=np.float64)
                if np.all(np.abs(sums - 1) <= tolerance):
                    summed.append(axis)
    return order_that_fits(array.shape, n_labels, summed)
