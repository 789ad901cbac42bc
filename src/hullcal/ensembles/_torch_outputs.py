"""How does what a network returns become rows of probabilities?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import (
    FLOAT32,
    FLOAT64,
    Converted,
    InvalidInputError,
    Precision,
    all_clean,
    as_array,
    audit,
    exponential,
    refusal,
    repair,
    softmax,
)

__all__ = ["Reading", "check_dtype_name"]

MEANINGS = {
    "logits": "rows that a softmax follows",
    "probs": "rows in [0, 1] that sum to 1",
    "log_probs": "logarithms of rows that sum to 1",
}

# A row sum further from 1 than this is no rounding: another quantity came.
FAR = 0.05


class Reading:
    """Turns outputs into probabilities, and refuses those that are something else.

    Parameters
    ----------
    outputs : {"logits", "probs", "log_probs"} or callable
        What the models return; a callable takes logits out of it.
    dtype : dtype
        float32 or float64; all arithmetic is in float64.
    parameter : str
        The parameter that holds the models, for messages.
    """

    def __init__(self, outputs: Any, dtype: np.dtype[Any], parameter: str) -> None:
        if not callable(outputs) and str(outputs) not in MEANINGS:
            rule = 'must be "logits", "probs", "log_probs" or a callable'
            repair = "A callable takes logits out of the output: `lambda out: out.logits`."
            raise refusal("outputs", rule, repr(outputs), repair)
        self._extract: Callable[[Any], Any] | None = outputs if callable(outputs) else None
        self._kind = "logits" if callable(outputs) else str(outputs)
        self._dtype = dtype
        self._precision = FLOAT32 if dtype == np.float32 else FLOAT64
        self._parameter = parameter
        # Range of one-column logits: if all lie in [0, 1] they may well be probabilities.
        self._low, self._high = np.inf, -np.inf

    @property
    def doubtful(self) -> bool:
        """Whether all outputs were one column of "logits" between 0 and 1."""
        return 0 <= self._low <= self._high <= 1

    def rows(self, output: Any, member: int, start: int) -> NDArray[Any]:
        """Give the probabilities of one batch, (n_rows, n_classes).

        Parameters
        ----------
        output : object
            What the model returned.
        member, start : int
            Which model, and the number of the batch's first row, for messages.
        """
        given = self._numbers(output, member)
        array = given.array
        if array.ndim > 2:
            came = f"shape {array.shape} from member {member}"
            fix = "Take the classification head's output, `outputs=lambda out: ...`."
            rule = "must return outputs of shape (n_rows, n_classes), or one column for two classes"
            raise refusal(self._parameter, rule, came, fix)
        if array.ndim < 2:  # a network for two classes that squeezes its column
            array = array.reshape(-1, 1)
        self._check_finite(array, member, start)
        if array.shape[1] == 0 or len(array) == 0:
            return np.empty((0, max(2, array.shape[1])), dtype=self._dtype)
        if self._kind == "logits":
            result = self._softmax(array, given.precision, member, start)
        else:
            result = self._on_simplex(array, given.precision, member, start)
        with np.errstate(under="ignore"):
            return result[:, 0, :].astype(self._dtype)

    def _numbers(self, output: Any, member: int) -> Converted:
        """Find the array in what the model returned."""
        value = output if self._extract is None else self._extract(output)
        if not (hasattr(value, "detach") or isinstance(value, np.ndarray)):
            came = f"an object of type {type(value).__name__} from member {member}"
            raise refusal("outputs", "must lead to a tensor", came, _way_to_tensor(value))
        given = as_array(value, self._parameter)
        if given.array.dtype.kind != "f":
            came = f"{given.array.dtype} from member {member}"
            fix = "Return scores of all classes, not the chosen class."
            raise refusal(self._parameter, "must return floating-point outputs", came, fix)
        # Comparisons below are exact in float64, and float16 would overflow in sums.
        exact = given.array.astype(np.float64)
        return Converted(exact, given.precision)

    def _check_finite(self, array: NDArray[Any], member: int, start: int) -> None:
        bad = ~np.isfinite(array)
        if self._kind == "log_probs":
            bad &= ~np.isneginf(array)  # the logarithm of a zero
        if bad.any():
            row, column = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
            came = f"{array[row, column]} from member {member}, first in row {start + row}"
            fix = "Check that member's weights and inputs; half precision overflows above 65504."
            raise refusal(self._parameter, "must return finite outputs", came, fix)

    def _softmax(
        self, array: NDArray[np.float64], precision: Precision, member: int, start: int
    ) -> NDArray[np.float64]:
        if array.shape[1] == 1:  # a sigmoid is a softmax over (0, z)
            self._low = min(self._low, float(array.min()))
            self._high = max(self._high, float(array.max()))
            array = np.hstack([np.zeros_like(array), array])
        elif start == 0 and all_clean(array[:, None, :], precision):
            came = f"rows in [0, 1] that sum to 1 from member {member}"
            fix = 'Pass `outputs="probs"`; logits that only look so, `outputs=lambda out: out + 1`.'
            raise refusal("outputs", f'is "logits", {MEANINGS["logits"]}', came, fix)
        return softmax(array[:, None, :])

    def _on_simplex(
        self, array: NDArray[np.float64], precision: Precision, member: int, start: int
    ) -> NDArray[np.float64]:
        """Check rows that should be probabilities, and mend their rounding."""
        cube = array[:, None, :]
        probs = exponential(cube) if self._kind == "log_probs" else cube
        if array.shape[1] == 1:
            probs = np.concatenate([1 - probs, probs], axis=-1)
        if not audit(probs, precision).acceptable:
            raise self._no_probabilities(probs[:, 0, :], array, member, start)
        # Judged in the type of the result: rows as they are there, or divided by their sum.
        return repair(probs.astype(self._dtype), self._precision, owned=True)

    def _no_probabilities(
        self, probs: NDArray[np.float64], outputs: NDArray[np.float64], member: int, start: int
    ) -> InvalidInputError:
        """Name the worst row, and what the outputs are more likely to be."""
        with np.errstate(all="ignore"):
            outside = np.abs(probs - np.clip(probs, 0, 1)).max(axis=-1)
            row = int(np.argmax(np.maximum(outside, np.abs(probs.sum(axis=-1) - 1))))
            off = np.abs(np.exp(outputs).sum(axis=-1) - 1)
        are_logarithms = bool(np.all(outputs <= 0)) and bool(np.all(off < FAR))
        other = "log_probs" if self._kind == "probs" and are_logarithms else "logits"
        shown = ", ".join(f"{value:.4g}" for value in outputs[row, :4])
        more = ", ..." if outputs.shape[1] > 4 else ""
        came = f"({shown}{more}) in row {start + row} of member {member}"
        rule = f'is "{self._kind}", {MEANINGS[self._kind]}'
        return refusal("outputs", rule, came, f'Pass `outputs="{other}"`.')


def _way_to_tensor(value: Any) -> str:
    if isinstance(value, Mapping) and "logits" in value and not hasattr(value, "logits"):
        return "Pass `outputs=lambda out: out['logits']`."
    if isinstance(value, list | tuple) and not hasattr(value, "logits"):
        return "Pass a callable that takes the logits out: `outputs=lambda out: out[0]`."
    return "Pass a callable that takes the logits out: `outputs=lambda out: out.logits`."


def check_dtype_name(dtype: Any) -> np.dtype[Any]:
    """Give float32 or float64, and refuse all else."""
    for allowed in (np.dtype(np.float32), np.dtype(np.float64)):
        with contextlib.suppress(TypeError):
            if dtype is not None and np.dtype(dtype) == allowed:
                return allowed
    repair = "Half precision would move probabilities over bin edges."
    raise refusal("dtype", 'must be "float32" or "float64"', repr(dtype), repair)
