"""Is a switch on or off? Nothing else will do: the text "False" would count as True."""

from __future__ import annotations

from typing import Any

import numpy as np

from hullcal._validation.errors import refusal


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither True nor False.

    Parameters
    ----------
    value : bool
    name : str
        The parameter the message speaks of.
    """
    if not isinstance(value, bool | np.bool_):
        raise refusal(name, "must be True or False", repr(value), f"Pass `{name}=True`.")
