"""Everything that is not data: counts, levels, switches, weights, seeds and choices of members."""

from __future__ import annotations

import contextlib
import math
import numbers
import operator
import os
import reprlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arrays import as_array, check_dtype
from hullcal._validation.errors import refusal, shown

# Weights come from divisions and projections; this is far above their rounding.
WEIGHT_SLACK = 1e-8
# Of a seed, which results and journals write out.
_MOST_BITS = 4096
# Of a fresh seed: few enough for every reader of JSON, many of which know doubles only.
_FRESH_BITS = 48


def check_integer(value: Any, name: str, minimum: int) -> int:
    """A count as int; integral floats count, booleans do not."""
    number = _whole_number(value)
    if number is None or number < minimum:
        rule = f"must be an integer of at least {minimum}"
        raise refusal(name, rule, shown(value), f"Pass for example `{name}={max(minimum, 10)}`.")
    return number


def _whole_number(value: Any) -> int | None:
    """The integer a value stands for; None if it stands for none."""
    if isinstance(value, bool | np.bool_):
        return None
    with contextlib.suppress(TypeError):
        return operator.index(value)
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return int(value)
    return None


def check_fraction(value: Any, name: str) -> float:
    """A number strictly between 0 and 1, such as a level."""
    return _below(value, 1, name, "must lie strictly between 0 and 1", "0.05")


def check_positive(value: Any, name: str) -> float:
    """A finite number above 0, such as a bandwidth."""
    return _below(value, math.inf, name, "must be a finite number greater than 0", "1.0")


def _below(value: Any, bound: float, name: str, rule: str, example: str) -> float:
    number = math.nan  # which passes no comparison
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not 0 < number < bound:
        raise refusal(name, rule, shown(value), f"Pass for example `{name}={example}`.")
    return number


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither True nor False: the text "False" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise refusal(name, "must be True or False", repr(value), f"Pass `{name}=True`.")


def check_jobs(value: Any) -> int:
    """Number of threads: a positive integer, or -1 for one a core, as far as we may have them.

    A scheduler says how many cores are ours, and OMP_NUM_THREADS or NUMBA_NUM_THREADS, which joblib
    sets in its workers, how many threads are wished.
    """
    number = _whole_number(value)
    if number is None or (number < 1 and number != -1):
        rule = "must be an integer of at least 1, or -1 for all cores"
        raise refusal("n_jobs", rule, shown(value), "Pass for example `n_jobs=-1`.")
    if number != -1:
        return number
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    wished = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]
    return min([cores, *(int(number) for number in wished if number.isdecimal() and int(number))])


def check_seed(rng: Any) -> int:
    """The one non-negative integer from which every stream of a run is derived.

    None draws 48 fresh bits; an integer of up to 4,096 bits is kept as it is; a Generator gives
    128 bits, least significant word first.
    """
    if rng is None:
        return secrets.randbits(_FRESH_BITS)
    if isinstance(rng, np.random.Generator):
        words = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        return sum(int(word) << (32 * i) for i, word in enumerate(words))
    is_integer = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if is_integer and 0 <= rng < 1 << _MOST_BITS:
        return int(rng)
    kinds = "None, a `numpy.random.Generator` or a non-negative integer"
    repair = "Pass for example `rng=0` or `rng=np.random.default_rng(0)`."
    raise refusal("rng", f"must be {kinds} of up to {_MOST_BITS} bits", shown(rng), repair)


def check_weights(weights: Any, n_members: int) -> NDArray[np.float64]:
    """The weights of a convex combination as a new array: finite, at least 0, with sum 1."""
    array = as_array(weights, "weights").array
    check_dtype(array, "weights")
    if array.shape != (n_members,):
        rule = f"must have shape ({n_members},), one weight per member"
        raise refusal("weights", rule, f"shape {array.shape}", "Give every member its weight.")
    result = array.astype(np.float64)
    bad = ~(np.isfinite(result) & (result >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        repair = "Weights of a convex combination are never negative: set them to 0 and rescale."
        came = f"{float(result[first])} at index {first}"
        raise refusal("weights", "must be finite and at least 0", came, repair)
    total = float(result.sum())
    if abs(total - 1) > WEIGHT_SLACK:
        repair = "Rescale in float64: `w = np.asarray(weights, float); w / w.sum()`."
        rule = f"must sum to 1 (within {WEIGHT_SLACK:.0e})"
        raise refusal("weights", rule, f"a sum of {total:.12g}", repair)
    return result


def check_members(names: Any, n_members: int) -> tuple[str, ...] | None:
    """The names of the members in the order of the middle axis: different strings, or None."""
    if names is None:
        return None
    listed: list[Any] = []
    if not isinstance(names, str | bytes):
        with contextlib.suppress(TypeError):
            listed = list(names)
    strings = tuple(str(name) for name in listed if isinstance(name, str))
    if len(listed) == len(strings) == len(set(strings)) == n_members:
        return strings
    rule = f"must be {n_members} different strings, one per member"
    twice = [name for name in strings if strings.count(name) > 1]
    came = f"{twice[0]!r} twice" if twice else shown(names)
    repair = "Pass a list of names in the order of the middle axis of `probs`."
    raise refusal("members", rule, came, repair)


def check_selection(which: Any, n_members: int, names: tuple[str, ...] | None) -> list[int]:
    """Positions of the chosen members: by number, by name, a slice, a mask, or a single one."""
    if isinstance(which, slice):
        chosen = list(range(n_members))[which]
    else:
        entries = [which] if isinstance(which, str) or np.ndim(which) == 0 else list(which)
        if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
            if len(entries) != n_members:
                rule = f"must have {n_members} entries if it is a mask"
                came = f"{len(entries)} of them"
                raise refusal("which", rule, came, "Give one for each member.")
            entries = [m for m, kept in enumerate(entries) if kept]
        chosen = [_position(entry, n_members, names) for entry in entries]
    if not chosen or len(set(chosen)) < len(chosen):
        twice = [m for m in chosen if chosen.count(m) > 1]
        came = f"member {twice[0]} twice" if twice else "none"
        repair = "A hull needs a point, and a copy adds nothing to it."
        raise refusal("which", "must choose at least one member, and each once", came, repair)
    return chosen


def _position(entry: Any, n_members: int, names: tuple[str, ...] | None) -> int:
    if isinstance(entry, str):
        if names is not None and entry in names:
            return names.index(entry)
        known = "the members have no names" if names is None else reprlib.repr(names)
        repair = f"Known are: {known}."
    elif isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if -n_members <= entry < n_members:
            return int(entry) % n_members
        repair = f"Members are numbered from 0 to {n_members - 1}."
    else:
        repair = "Use numbers, names, a slice or a mask."
    raise refusal("which", "must name members of the set", reprlib.repr(entry), repair)
