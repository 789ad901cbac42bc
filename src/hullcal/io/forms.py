"""Which of the two forms has a table, and which predictions does it hold?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hullcal.files.names import Name, wide_columns
from hullcal.files.source import Source
from hullcal.io.dataset import Parts
from hullcal.io.long_form import Long, read_long
from hullcal.io.tables import Table
from hullcal.io.wide_form import read_wide

__all__ = ["label_column", "labels_in", "parts_in"]

_FORMS = (
    "Long form has the columns row,member,class,probability and optionally label, one line per "
    "probability; wide form has one line per instance with columns such as "
    "first:cat,first:dog,second:cat,second:dog (or p_cat,p_dog for one member) and optionally label."
)
_ROLES = {
    "row": "row",
    "instance": "row",
    "sample": "row",
    "member": "member",
    "class": "class",
    "probability": "probability",
    "prob": "probability",
    "p": "probability",
}


class _Header(NamedTuple):
    label: int | None
    others: list[int]


def parts_in(table: Table, labels_key: str) -> Parts:
    """Read predictions, and labels if there are any, from a table of either form.

    Parameters
    ----------
    table : Table
    labels_key : str
        Another name for the column `label`.

    Returns
    -------
    Parts
    """
    source, columns = table.source, table.columns
    _check_distinct(source, columns)
    header = _header(columns, labels_key)
    roles = {_ROLES.get(columns[i].strip().lower(), columns[i]): i for i in header.others}
    if {"row", "member", "class", "probability"} == set(roles) and len(header.others) == 4:
        places = Long(roles["row"], roles["member"], roles["class"], roles["probability"])
        return read_long(table, places, header.label)
    semicolons = len(columns) == 1 and ";" in columns[0]
    wide = wide_columns([columns[i] for i in header.others])
    strays = _strays([columns[i] for i in header.others])
    if strays:
        rule = "must have no other columns than those of a member and a class"
        repair = f"If it holds the labels, pass `labels_key={strays[0]!r}`; otherwise drop it."
        raise source.refuse(rule, f"the column {strays[0][:60]!r}", repair)
    if wide is None or semicolons:
        shown = ", ".join(repr(name[:40]) for name in columns[:12])
        more = ", ..." if len(columns) > 12 else ""
        hint = " Separate columns by commas." if semicolons else ""
        if header.label is not None and header.others and not hint:
            hint = f" If {columns[header.others[0]][:40]!r} is a class of one member, write p_ before it."
        rule = "must be a table in long or wide form"
        raise source.refuse(rule, f"the columns {shown}{more}", _FORMS + hint)
    return read_wide(table, wide, header.others, header.label)


def _strays(names: list[str]) -> list[str]:
    """The columns that keep a table from being of wide form, if they are few."""
    if wide_columns(names) is not None:
        return []
    strays = [name for name in names if wide_columns([name]) is None]
    others = [name for name in names if name not in strays]
    return strays if len(strays) <= len(others) / 2 and wide_columns(others) is not None else []


def labels_in(table: Table, labels_key: str) -> list[Name]:
    """Read labels from a table: the column `label`, or the only column."""
    source, columns = table.source, table.columns
    place = label_column(columns, labels_key)
    if place is None and len(columns) == 1:
        place = 0
    if place is None:
        shown = ", ".join(repr(name[:40]) for name in columns[:12])
        repair = "Name one of them `label`, or choose one with `labels_key`."
        raise source.refuse("must have a column `label`", f"the columns {shown}", repair)
    labels: list[Name] = []
    # Without a header, the first label stands in the header's place.
    if place == 0 and len(columns) == 1 and _is_number(columns[0]):
        labels.append(columns[0].strip())
    for batch in table.batches:
        labels += batch.names(place)
    return labels


def label_column(columns: tuple[str, ...], labels_key: str) -> int | None:
    """Find the column of labels."""
    accepted = {"label", "labels", labels_key.lower()}
    places = [i for i, name in enumerate(columns) if name.strip().lower() in accepted]
    exact = [i for i in places if columns[i] == labels_key]
    return (exact or places or [None])[0]  # type: ignore[list-item]


def _header(columns: tuple[str, ...], labels_key: str) -> _Header:
    label = label_column(columns, labels_key)
    return _Header(label, [i for i in range(len(columns)) if i != label])


def _check_distinct(source: Source, columns: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            came = f"the column {name[:60]!r} twice"
            raise source.refuse("must have columns of different names", came, "Rename one.")
        seen.add(name)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
