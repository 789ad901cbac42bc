"""What a user sees when an input cannot be used, and checks of all that is not data: counts, seeds."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import math
import numbers
import operator
import os
import reprlib
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Of a seed, which results and journals write out; Python refuses to write much longer integers.
_MOST_BITS = 4096
# Of what is counted; more would not even be an array's length.
_MOST = 2**48


class InvalidInputError(ValueError):
    """An input breaks a rule; the message names the parameter, the rule, what came, the repair."""


class EngineError(RuntimeError):
    """The backend failed: the input is fine, and the same call may succeed later."""


class HullcalWarning(UserWarning):
    """The call runs, but its result deserves a second look."""


class ApproximationWarning(HullcalWarning):
    """A value was computed by an approximation, since the exact one would take too long."""


# Users catch them by these names, and should read the same in a traceback.
for _kind in (InvalidInputError, EngineError, HullcalWarning, ApproximationWarning):
    _kind.__module__ = "hullcal"


def refusal(name: str, rule: str, came: str, repair: str) -> InvalidInputError:
    """The error to raise: `name` must follow the rule; got what came. Repair, in sentences."""
    return InvalidInputError(f"`{name}` {rule}; got {came}. {repair}")


def unknown(what: str, given: object, known: Iterable[str], also: str = "") -> InvalidInputError:
    """The error to raise for a name that is none of those there are."""
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return InvalidInputError(
        f"Unknown {what} {given!r:.80}. Choose from: {', '.join(names)}{also}.{hint}"
    )


def warn(message: str, category: type[Warning] = HullcalWarning) -> None:
    """A warning that points at the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hullcal."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """A value as a message shows it, with its type where the value alone would mislead."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"
    plain = value is None or type(value) in (int, float)
    return reprlib.repr(value) + ("" if plain else f" ({type(value).__name__})")


def check_integer(value: Any, name: str, minimum: int) -> int:
    """A count as int; integral floats count, booleans do not."""
    number = _whole_number(value)
    if number is None or not minimum <= number <= _MOST:
        rule = f"must be an integer of at least {minimum}"
        if number is not None and number > _MOST:
            rule = f"must be an integer from {minimum} to 2**48"
        raise refusal(name, rule, shown(value), f"Pass for example `{name}={max(minimum, 10)}`.")
    return number


def _whole_number(value: Any) -> int | None:
    """The integer a value stands for; None if it stands for none."""
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)
    with contextlib.suppress(TypeError):
        return None if isinstance(value, bool) else operator.index(value)
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
    """Number of threads: a positive integer, or -1 for one a core, as far as we may have them."""
    number = _whole_number(value)
    if number is None or (number < 1 and number != -1):
        rule = "must be an integer of at least 1, or -1 for all cores"
        raise refusal("n_jobs", rule, shown(value), "Pass for example `n_jobs=-1`.")
    if number != -1:
        return number
    try:
        cores = len(os.sched_getaffinity(0))  # a scheduler may leave us fewer than there are
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    # Joblib sets these in its workers.
    wished = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")]
    return min([cores, *(int(number) for number in wished if number.isdecimal() and int(number))])


def check_seed(rng: Any) -> int:
    """The one non-negative integer from which every stream of a run is derived."""
    if rng is None:
        return secrets.randbits(48)  # few enough for readers of JSON that know doubles only
    if isinstance(rng, np.random.Generator):
        words = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        return sum(int(word) << (32 * i) for i, word in enumerate(words))
    is_integer = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if is_integer and 0 <= rng < 1 << _MOST_BITS:
        return int(rng)
    kinds = "None, a `numpy.random.Generator` or a non-negative integer"
    repair = "Pass for example `rng=0` or `rng=np.random.default_rng(0)`."
    raise refusal("rng", f"must be {kinds} of up to {_MOST_BITS} bits", shown(rng), repair)


#: What arguments are called elsewhere, and on the command line: what that is, and an example of ours.
_ELSEWHERE = {
    "random_state": ("the seed is called `rng`. Pass for example", "rng=0"),
    "seed": ("the seed is called `rng`. Pass for example", "rng=0"),
    "logits": ("for logits pass", "from_logits=True"),
    "log": ("for log-probabilities pass", "from_log=True"),
    "measure": ("several are possible: pass", 'measures=["ece_conf"]'),
}


def takes_rng(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Answer names that arguments have elsewhere, as a seed has, with the names they have here."""
    own = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*args: Given.args, **named: Given.kwargs) -> Result:
        for other in _ELSEWHERE.keys() & named.keys() - own.keys():
            said, example = _ELSEWHERE[other]
            if example.partition("=")[0] in own:
                raise TypeError(
                    f"{function.__name__}() has no argument `{other}`; {said} `{example}`."
                )
        return function(*args, **named)

    return checked


def check_members(names: Any, n_members: int) -> tuple[str, ...] | None:
    """The names of the members in the order of the middle axis: different strings, or None."""
    if names is None:
        return None
    listed: tuple[Any, ...] = ()
    if not isinstance(names, str | bytes):
        with contextlib.suppress(TypeError):
            listed = tuple(names)
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
    numbers = np.arange(n_members)
    place = dict(zip(names or (), numbers, strict=False))
    with contextlib.suppress(IndexError, KeyError, TypeError, ValueError):
        if isinstance(which, slice):
            chosen = numbers[which]
        else:
            entries = [which] if isinstance(which, str) or np.ndim(which) == 0 else list(which)
            chosen = numbers[[place[each] if isinstance(each, str) else each for each in entries]]
        if 0 < len(chosen) == len(set(chosen.tolist())):
            return [int(m) for m in chosen]
    known = f"0 to {n_members - 1}" if names is None else reprlib.repr(names)
    rule = "must choose members of the set, at least one and each once"
    repair = f"The members are {known}; use numbers, names, a slice or a mask."
    raise refusal("which", rule, reprlib.repr(which), repair)
