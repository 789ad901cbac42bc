"""What a user sees when an input cannot be used, or can be used only with care."""

from __future__ import annotations

import reprlib
import sys
import warnings


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


def warn(message: str, category: type[Warning] = HullcalWarning) -> None:
    """A warning that points at the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hullcal."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """A value as a message shows it, with its type where the value alone would mislead."""
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write out long ones
    kind = type(value)
    text = reprlib.repr(value)
    return text if kind in (int, float, type(None)) else f"{text} ({kind.__name__})"
