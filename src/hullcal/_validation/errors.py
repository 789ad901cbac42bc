"""What a user sees when an input cannot be used, or can be used only with care."""

from __future__ import annotations

__all__ = ["ApproximationWarning", "EngineError", "HullcalWarning", "InvalidInputError", "refusal"]


class InvalidInputError(ValueError):
    """An input breaks a rule; the message names the parameter, the rule, what came, the repair."""


class EngineError(RuntimeError):
    """Who was to evaluate could not: the input is fine, and the same call may well succeed later."""


class HullcalWarning(UserWarning):
    """The call runs, but its result deserves a second look."""


class ApproximationWarning(HullcalWarning):
    """A value was computed by an approximation, since the exact one would take too long."""


# Users catch them by these names, and should read the same in a traceback.
for _kind in (InvalidInputError, EngineError, HullcalWarning, ApproximationWarning):
    _kind.__module__ = "hullcal"


def refusal(name: str, rule: str, came: str, repair: str) -> InvalidInputError:
    """Build an error whose message has the four parts in their usual order.

    Parameters
    ----------
    name : str
        The parameter, without backticks.
    rule : str
        What holds for a valid value; follows the name, as in "must be finite".
    came : str
        What came instead; follows "got".
    repair : str
        One or more whole sentences on how to make it right.

    Returns
    -------
    InvalidInputError
        To be raised by the caller.
    """
    return InvalidInputError(f"`{name}` {rule}; got {came}. {repair}")
