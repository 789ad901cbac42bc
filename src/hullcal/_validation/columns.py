"""Columns of a table: which member and class each of them holds, and which one holds labels."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hullcal._validation.arguments import InvalidInputError

_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z")
#: What data frames call their row numbers: in front in CSV, there read back, and in Parquet.
_IN_FRONT, _ANYWHERE = ("", "Unnamed: 0"), "__index_level_0__"


@dataclass(frozen=True)
class Wide:
    """Places of the columns of a table in wide form, in the order of members and then classes."""

    places: list[int]
    #: None for a single member without a name.
    members: tuple[str, ...] | None
    classes: tuple[Any, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """Shape of a row."""
        n_classes = (len(self.classes),)
        return n_classes if self.members is None else (len(self.members), *n_classes)


def as_integers(names: Sequence[Any]) -> list[Any]:
    """Names as integers if all of them are integers written out; otherwise as they are."""
    if all(isinstance(name, str) and _INTEGER.match(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def label_column(columns: Sequence[str], labels_key: str = "labels") -> int | None:
    """Place of the column of labels, if there is one."""
    accepted = {"label", "labels", labels_key.lower()}
    places = [i for i, name in enumerate(columns) if name.strip().lower() in accepted]
    exact = [i for i in places if columns[i] == labels_key]
    return next(iter(exact or places), None)


def number_columns(columns: Sequence[str], label: int | None) -> list[int]:
    """Places of all columns but the labels and the row numbers of a data frame."""
    first = 1 if columns and columns[0].strip() in _IN_FRONT else 0
    return [i for i in range(first, len(columns)) if i != label and columns[i] != _ANYWHERE]


def wide_form(
    columns: Sequence[str],
    places: Sequence[int],
    refuse: Callable[[str, str, str], InvalidInputError],
) -> Wide | None:
    """Wide form: a column for every member and class, once; None if columns are named otherwise."""
    pairs = _pairs([columns[i].strip() for i in places])
    if pairs is None:
        return None
    place = dict(zip(pairs, places, strict=True))
    members = tuple(dict.fromkeys(member for member, _ in pairs))
    classes = list(dict.fromkeys(name for _, name in pairs))
    rule = "must have a column for every member and class, once"
    if len(place) < len(pairs):
        (twice, _), *_ = Counter(pairs).most_common(1)
        raise refuse(rule, f"two columns for {reprlib.repr(twice)}", "Remove one.")
    if len(place) < len(members) * len(classes):
        missing = next(pair for pair in product(members, classes) if pair not in place)
        raise refuse(
            rule, f"none for {reprlib.repr(missing)}", "Add the column, or correct its name."
        )
    return Wide(
        places=[place[pair] for pair in product(members, classes)],
        members=None if members == ("",) else members,
        classes=tuple(as_integers(classes)),
    )


def _pairs(names: list[str]) -> list[tuple[str, str]] | None:
    """Member and class of each column; None if they follow no known pattern."""
    for separator in (":", "/"):
        # The last separator splits, since members more often contain one than classes do.
        pairs = [tuple(part.strip() for part in name.rpartition(separator)) for name in names]
        if names and all(member and cls for member, _, cls in pairs):
            return [(member, cls) for member, _, cls in pairs]
    if names and all(name.startswith("p_") and len(name) > 2 for name in names):
        return [("", name[2:]) for name in names]
    return None
