"""Everything that is not data: counts, levels, weights and seeds."""

from __future__ import annotations

import math
import numbers
import operator
import os
import reprlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.errors import refusal
from hullcal._validation.foreign import as_array
from hullcal._validation.probabilities import check_dtype

__all__ = [
    "check_fraction",
    "check_integer",
    "check_jobs",
    "check_positive",
    "check_seed",
    "check_weights",
]

# Weights come from divisions and projections; this is far above their rounding.
WEIGHT_SLACK = 1e-8
# Of a seed, which results and journals write out.
_MOST_BITS = 4096
_FRESH_BITS = 48


def check_integer(value: Any, name: str, minimum: int) -> int:
    """Validate a count.

    Parameters
    ----------
    value : int
        Or anything integral; booleans are not counts.
    name : str
        The parameter the message speaks of.
    minimum : int
        Smallest value allowed.

    Returns
    -------
    int
    """
    number = _whole_number(value)
    if number is None or number < minimum:
        rule = f"must be an integer of at least {minimum}"
        raise refusal(name, rule, _shown(value), f"Pass for example `{name}={max(minimum, 10)}`.")
    return number


def _whole_number(value: Any) -> int | None:
    """Give the integer a value stands for; None if it stands for none."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return int(value)
    return None


def check_fraction(value: Any, name: str) -> float:
    """Validate a number strictly between 0 and 1, such as a level.

    Parameters
    ----------
    value : float
        The number.
    name : str
        The parameter the message speaks of.

    Returns
    -------
    float
    """
    number = _real(value)
    if not 0 < number < 1:
        rule = "must lie strictly between 0 and 1"
        raise refusal(name, rule, _shown(value), f"Pass for example `{name}=0.05`.")
    return number


def check_positive(value: Any, name: str) -> float:
    """Validate a finite number above 0, such as a bandwidth.

    Parameters
    ----------
    value : float
        The number.
    name : str
        The parameter the message speaks of.

    Returns
    -------
    float
    """
    number = _real(value)
    if not 0 < number < math.inf:
        rule = "must be a finite number greater than 0"
        raise refusal(name, rule, _shown(value), f"Pass for example `{name}=1.0`.")
    return number


def _real(value: Any) -> float:
    """Give a real number as float; NaN, which passes no comparison, for everything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: object) -> str:
    """Show a value in a message, with its type where the value alone would mislead."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write out long ones
    shown = reprlib.repr(value)
    return shown if type(value) in (int, float, type(None)) else f"{shown} ({type(value).__name__})"


def check_weights(weights: Any, n_members: int) -> NDArray[np.float64]:
    """Validate the weights of a convex combination.

    Parameters
    ----------
    weights : array-like of shape (n_members,)
        Finite, at least 0, with sum 1 within 1e-8.
    n_members : int
        M.

    Returns
    -------
    ndarray of float64 and shape (n_members,)
        A new array.
    """
    array = as_array(weights, "weights").array
    check_dtype(array, "weights")
    if array.shape != (n_members,):
        rule = f"must have shape ({n_members},), one weight per member"
        raise refusal("weights", rule, f"shape {array.shape}", "Give every member its weight.")
    result = array.astype(np.float64)
    bad = ~(np.isfinite(result) & (result >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        rule = "must be finite and at least 0"
        repair = "Weights of a convex combination are never negative: set them to 0 and rescale."
        raise refusal("weights", rule, f"{float(result[first])} at index {first}", repair)
    total = float(result.sum())
    if abs(total - 1) > WEIGHT_SLACK:
        repair = "Rescale in float64: `w = np.asarray(weights, float); w / w.sum()`."
        rule = f"must sum to 1 (within {WEIGHT_SLACK:.0e})"
        raise refusal("weights", rule, f"a sum of {total:.12g}", repair)
    return result


def check_jobs(value: Any) -> int:
    """Number of threads: a positive integer, or -1 for one a core, as far as we may have them.

    A scheduler says how many cores are ours, and OMP_NUM_THREADS or NUMBA_NUM_THREADS, which joblib
    sets in its workers, how many threads are wished.
    """
    number = _whole_number(value)
    if number is None or (number < 1 and number != -1):
        rule = "must be an integer of at least 1, or -1 for all cores"
        raise refusal("n_jobs", rule, _shown(value), "Pass for example `n_jobs=-1`.")
    if number != -1:
        return number
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    wished = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]
    return min([cores, *(int(number) for number in wished if number.isdecimal() and int(number))])


def check_seed(rng: Any) -> int:
    """Give the one integer from which every stream of a run is derived.

    Parameters
    ----------
    rng : None, int or numpy.random.Generator
        None draws 48 fresh bits; an integer of up to 4,096 bits is kept as it is; a Generator is
        asked once for 128 bits, least significant word first.

    Returns
    -------
    int
        Non-negative. The same integer gives the same results.
    """
    if rng is None:
        # Few enough bits for every reader of JSON, many of which know doubles only.
        return secrets.randbits(_FRESH_BITS)
    if isinstance(rng, np.random.Generator):
        words = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        return sum(int(word) << (32 * i) for i, word in enumerate(words))
    is_integer = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if is_integer and 0 <= rng < 1 << _MOST_BITS:
        return int(rng)
    rule = (
        "must be None, a `numpy.random.Generator` or a non-negative integer of up to "
        f"{_MOST_BITS} bits"
    )
    repair = "Pass for example `rng=0` or `rng=np.random.default_rng(0)`."
    raise refusal("rng", rule, _shown(rng), repair)
