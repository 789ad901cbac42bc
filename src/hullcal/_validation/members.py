"""Members of a set: their names, a choice of them, and points to compare with their hull."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.errors import InvalidInputError, refusal
from hullcal._validation.foreign import as_array
from hullcal._validation.probabilities import check_probs

__all__ = ["check_members", "check_points", "check_selection"]


def check_members(names: Any, n_members: int) -> tuple[str, ...] | None:
    """Validate the names of the members.

    Parameters
    ----------
    names : sequence of M different strings, or None
        In the order of the middle axis.
    n_members : int
        M.

    Returns
    -------
    tuple of str, or None
    """
    if names is None:
        return None
    rule = f"must be {n_members} different strings, one per member"
    repair = "Name the members in the order of the middle axis of `probs`."
    if isinstance(names, str | bytes):
        raise refusal("members", rule, "a single string", "Wrap it in a list.")
    try:
        listed = list(names)
    except TypeError as error:
        raise refusal("members", rule, reprlib.repr(names), repair) from error
    if not all(isinstance(name, str) for name in listed):
        other = next(name for name in listed if not isinstance(name, str))
        raise refusal("members", rule, f"{reprlib.repr(other)}, which is no string", repair)
    if len(listed) != n_members:
        raise refusal("members", rule, f"{len(listed)} names", repair)
    if len(set(listed)) < n_members:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise refusal("members", rule, f"{twice!r} twice", "Rename the duplicate.")
    return tuple(str(name) for name in listed)


def check_selection(which: Any, n_members: int, names: tuple[str, ...] | None) -> list[int]:
    """Validate a choice of members.

    Parameters
    ----------
    which : list of int, list of str, slice, or mask of M booleans
        A single number or name chooses one member.
    n_members : int
        M.
    names : tuple of str or None
        Names that may be used.

    Returns
    -------
    list of int
        Positions from 0 to M - 1, in the order given; never empty.
    """
    if isinstance(which, slice):
        chosen = list(range(n_members))[which]
    else:
        single = isinstance(which, str) or np.ndim(which) == 0
        entries = [which] if single else list(which)
        chosen = _positions(entries, n_members, names)
    if len(set(chosen)) < len(chosen):
        twice = next(m for m in chosen if chosen.count(m) > 1)
        rule = "must choose each member once"
        raise refusal("which", rule, f"member {twice} twice", "A copy adds nothing to a hull.")
    if not chosen:
        raise refusal("which", "must choose at least one member", "none", "A hull needs a point.")
    return chosen


def _positions(entries: list[Any], n_members: int, names: tuple[str, ...] | None) -> list[int]:
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n_members:
            rule = f"must have {n_members} entries if it is a mask"
            raise refusal("which", rule, f"{len(entries)} of them", "Give one for each member.")
        return [m for m, kept in enumerate(entries) if kept]
    return [_position(entry, n_members, names) for entry in entries]


def _position(entry: Any, n_members: int, names: tuple[str, ...] | None) -> int:
    if isinstance(entry, str):
        if names is None or entry not in names:
            known = "the members have no names" if names is None else reprlib.repr(names)
            raise _unknown(f"{entry!r}", f"Known are: {known}.")
        return names.index(entry)
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if -n_members <= entry < n_members:
            return int(entry) % n_members
        raise _unknown(f"{entry}", f"Members are numbered from 0 to {n_members - 1}.")
    raise _unknown(f"{reprlib.repr(entry)}", "Use numbers, names, a slice or a mask.")


def _unknown(came: str, repair: str) -> InvalidInputError:
    return refusal("which", "must name members of the set", came, repair)


def check_points(point: Any, n_samples: int, n_classes: int) -> NDArray[Any]:
    """Validate distributions to compare with the hull of each instance.

    Parameters
    ----------
    point : array-like of shape (n_samples, n_classes)
        Or (n_classes,), the same for every instance.
    n_samples, n_classes : int
        Sizes of the set.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        As they came: renormalising could move a point off the hull it lies in.
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
