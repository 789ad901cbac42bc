"""What do names in tables mean: integers, positions, members and classes, or themselves?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Name", "Wide", "as_integers", "label_values", "wide_columns"]

Name = str | int | float
#: Member and class of each column.
Wide = list[tuple[str, str]]

_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z")
#: Frames write integers so where some row once had none.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0*)?\Z")


def as_integers(names: Sequence[Name]) -> list[Name]:
    """Give names as integers if all of them are integers written out; otherwise as they are.

    Text does not tell ``1`` from ``"1"``, and numeric labels from another file mean the former.
    """
    if all(isinstance(name, str) and _INTEGER.match(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def label_values(names: Sequence[Name], classes: Sequence[Any] | None) -> NDArray[Any]:
    """Give labels that came as text in the type of the classes, if there are any.

    Parameters
    ----------
    names : sequence
        One label per instance.
    classes : sequence or None
        Names of the classes. Labels that are among them stay names, and so do all labels where some
        name is written in digits; otherwise labels that are all written as integers, or as floats
        without a fraction, are positions.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> label_values(["1", "0"], ["cat", "dog"]), label_values(["1.0", "0.0"], None)
    (array([1, 0]), array([1, 0]))
    """
    known = set(classes or ())
    # Where digits are a name, they are always one: some rows of a file must not mean what others do not.
    numbered = any(isinstance(each, str) and _WHOLE.match(each) for each in known)
    if numbered or all(name in known for name in set(names)):
        return np.array(names)
    if all(isinstance(name, str) and _WHOLE.match(name) for name in names):
        names = [str(name).partition(".")[0] for name in names]
    return np.array(as_integers(names))


def wide_columns(columns: list[str]) -> Wide | None:
    """Split names of columns into members and classes; None if they follow no known pattern.

    >>> wide_columns(["a:cat", "a:dog"])
    [('a', 'cat'), ('a', 'dog')]
    >>> wide_columns(["p_cat", "p_dog"])
    [('', 'cat'), ('', 'dog')]
    """
    names = [name.strip() for name in columns]
    for separator in (":", "/"):
        # The last separator splits, since members more often contain one than classes do.
        pairs = [tuple(part.strip() for part in name.rpartition(separator)) for name in names]
        if names and all(member and cls for member, _, cls in pairs):
            return [(member, cls) for member, _, cls in pairs]
    if names and all(name.startswith("p_") and len(name) > 2 for name in names):
        return [("", name[2:]) for name in names]
    return None
