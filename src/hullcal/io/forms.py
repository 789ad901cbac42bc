"""Tables as arrays: long form has a line for each probability, wide form one for each instance."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io.source import Dataset, Source
from hullcal.io.tables import Name, Table, as_integers, is_number, label_values

__all__ = ["Wide", "labels_in", "read_table"]

_FORMS = (
    "Long form has the columns row,member,class,probability and optionally label, one line per "
    "probability; wide form has one line per instance with columns such as "
    "first:cat,first:dog,second:cat,second:dog (or p_cat,p_dog for one member) and optionally label."
)
_ROLES = {
    **{"row": "row", "instance": "row", "sample": "row", "member": "member", "class": "class"},
    **{"probability": "probability", "prob": "probability", "p": "probability"},
}


def read_table(table: Table, labels_key: str) -> Dataset:
    """Predictions, and labels if there are any, from a table of either form."""
    source, columns = table.source, table.columns
    twice = _first_twice(columns)
    if twice is not None:
        came = f"the column {twice[:60]!r} twice"
        raise source.refuse("must have columns of different names", came, "Rename one.")
    label = _label_column(columns, labels_key)
    others = [i for i in range(len(columns)) if i != label]
    roles = {_ROLES.get(columns[i].strip().lower(), columns[i]): i for i in others}
    if {"row", "member", "class", "probability"} == set(roles) and len(others) == 4:
        data = _read_long(table, roles, label)
    else:
        wide = Wide(table, labels_key)
        probs, labels = wide.read(0, None)
        data = Dataset(probs=probs, labels=labels, classes=wide.classes, members=wide.members)
    if len(data.probs) == 0:
        raise source.refuse("must hold instances", "no line below the header", "Add some.")
    return data


def labels_in(table: Table, labels_key: str) -> list[Name]:
    """Labels from a table: the column `label`, or the only column."""
    columns = table.columns
    place = 0 if len(columns) == 1 else _label_column(columns, labels_key)
    if place is None:
        repair = "Name one of them `label`, or choose one with `labels_key`."
        came = f"the columns {_listed(columns)}"
        raise table.source.refuse("must have a column `label`", came, repair)
    # Without a header, the first label stands in the header's place.
    headless = len(columns) == 1 and is_number(columns[0]) and np.isfinite(float(columns[0]))
    labels: list[Name] = [columns[0].strip()] if headless else []
    for batch in table.batches(0, None):
        labels += batch.names(place)
    return labels


def _label_column(columns: Sequence[str], labels_key: str) -> int | None:
    accepted = {"label", "labels", labels_key.lower()}
    places = [i for i, name in enumerate(columns) if name.strip().lower() in accepted]
    exact = [i for i in places if columns[i] == labels_key]
    return next(iter(exact or places), None)


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in columns[:12])
    return shown + (", ..." if len(columns) > 12 else "")


def _first_twice(values: Sequence[Any]) -> Any:
    return next((value for value, count in Counter(values).items() if count > 1), None)


# Wide form


class Wide:
    """Predictions and labels of an open table of wide form, of which some rows can be read."""

    def __init__(self, table: Table, labels_key: str = "labels") -> None:
        source, names = table.source, table.columns
        self._table = table
        self._label = label = _label_column(names, labels_key)
        others = [i for i in range(len(names)) if i != label]
        pairs = _pairs([names[i] for i in others])
        if pairs is None or (len(names) == 1 and ";" in names[0]):
            raise _no_form(source, names, label)
        place = dict(zip(pairs, others, strict=True))
        members = list(dict.fromkeys(member for member, _ in pairs))
        classes = list(dict.fromkeys(name for _, name in pairs))
        rule = "must have a column for every member and class, once"
        if len(place) < len(pairs):
            came = f"two columns for {reprlib.repr(_first_twice(pairs))}"
            raise source.refuse(rule, came, "Remove one.")
        if len(place) < len(members) * len(classes):
            missing = next(pair for pair in product(members, classes) if pair not in place)
            counts = Counter(name for _, name in pairs)
            alone = [repr(name[:40]) for name in classes if counts[name] == 1]
            hint = f" Only one member has {', '.join(alone[:3])}: mind the spelling."
            repair = f"Add the column.{hint if alone else ''}"
            raise source.refuse(rule, f"none for {reprlib.repr(missing)}", repair)
        self._columns = [place[pair] for pair in product(members, classes)]
        self.labelled = label is not None
        self.members = None if members == [""] else tuple(members)
        self.classes = tuple(as_integers(classes))
        self.labels = None  # no array of their own

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the predictions, if the table knows its rows."""
        axes = (
            (len(self.classes),) if self.members is None else (len(self.members), len(self.classes))
        )
        return (self._table.n_rows or 0, *axes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the predictions."""
        return self.read(0, 0)[0].dtype

    def read(self, start: int, stop: int | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Predictions and labels of the rows from `start` to `stop` - 1, or to the end."""
        rows: list[NDArray[Any]] = []
        labels: list[Name] = []
        for batch in self._table.batches(start, stop):
            rows.append(np.stack([batch.numbers(column) for column in self._columns], axis=1))
            if self._label is not None:
                labels += batch.names(self._label)
        probs = np.concatenate(rows)
        truth = label_values(labels, self.classes) if self.labelled else None
        return probs.reshape(len(probs), *self.shape[1:]), truth


def _pairs(columns: list[str]) -> list[tuple[str, str]] | None:
    """Member and class of each column; None if they follow no known pattern.

    >>> _pairs(["a:cat", "a:dog"]), _pairs(["p_cat", "p_dog"])
    ([('a', 'cat'), ('a', 'dog')], [('', 'cat'), ('', 'dog')])
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


def _no_form(source: Source, columns: Sequence[str], label: int | None) -> Exception:
    """The error for a table of no form, with the most likely reason."""
    others = [name for i, name in enumerate(columns) if i != label]
    strays = [name for name in others if _pairs([name]) is None]
    fitting = [name for name in others if name not in set(strays)]
    if 0 < len(strays) <= len(fitting) / 2 and _pairs(fitting) is not None:
        rule = "must have no other columns than those of a member and a class"
        repair = f"If it holds the labels, pass `labels_key={strays[0]!r}`; otherwise drop it."
        return source.refuse(rule, f"the column {strays[0][:60]!r}", repair)
    hint = ""
    if len(columns) == 1 and ";" in columns[0]:
        hint = " Separate columns by commas."
    elif label is not None and others:
        hint = f" If {others[0][:40]!r} is a class of one member, write p_ before it."
    rule = "must be a table in long or wide form"
    return source.refuse(rule, f"the columns {_listed(columns)}", _FORMS + hint)


# Long form


class _Codes:
    """Numbers for names, by first appearance."""

    def __init__(self) -> None:
        self._table: dict[Name, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, names: Sequence[Name]) -> None:
        """Take the names of some more rows."""
        for name in dict.fromkeys(names):
            self._table.setdefault(name, len(self._table))
        codes = map(self._table.__getitem__, names)
        self._parts.append(np.fromiter(codes, np.int32, len(names)))

    @property
    def names(self) -> list[Name]:
        """The different names."""
        return list(self._table)

    @property
    def array(self) -> NDArray[np.int32]:
        """The number of each row's name."""
        return np.concatenate(self._parts)


def _read_long(table: Table, roles: dict[str, int], label: int | None) -> Dataset:
    """Rows, members and classes in the order in which they first appear."""
    keys = {name: _Codes() for name in ("row", "member", "class")}
    labels = _Codes()
    numbers: list[NDArray[Any]] = []
    for batch in table.batches(0, None):
        for name, codes in keys.items():
            codes.add(batch.names(roles[name]))
        numbers.append(batch.numbers(roles["probability"]))
        if label is not None:
            labels.add(batch.names(label))
    rows, members, classes = keys.values()
    probs = _arranged(table.source, [rows, members, classes], np.concatenate(numbers))
    named = tuple(as_integers(classes.names))
    truth = None
    if label is not None:
        truth = label_values(_one_per_row(table.source, rows, labels), named)
    return Dataset(probs=probs, labels=truth, classes=named, members=tuple(map(str, members.names)))


def _arranged(source: Source, keys: list[_Codes], numbers: NDArray[Any]) -> NDArray[Any]:
    """Put each number where its row, member and class say; each place is taken once."""
    names, codes = [key.names for key in keys], [key.array.astype(np.int64) for key in keys]
    n, m, k = (len(each) for each in names)
    flat = (codes[0] * m + codes[1]) * k + codes[2]
    order = np.argsort(flat, kind="stable")
    placed = flat[order]
    if placed.size == n * m * k and (placed == np.arange(placed.size)).all():
        return np.asarray(numbers[order].reshape(n, m, k))

    def shown(place: int) -> str:
        where = (place // (m * k), place // k % m, place % k)
        return f"({', '.join(reprlib.repr(each[i]) for each, i in zip(names, where, strict=True))})"

    rule = "must hold every (row, member, class) exactly once"
    twice = placed[1:] == placed[:-1]
    if twice.any():
        line = int(order[1:][twice].min())
        came = f"{shown(int(flat[line]))} again in data line {line + 1}"
        raise source.refuse(rule, came, "Remove the duplicate.")
    wrong = placed != np.arange(placed.size)
    missing = int(np.argmax(wrong)) if wrong.any() else placed.size
    raise source.refuse(rule, f"no line for {shown(missing)}", "Add what is missing.")


def _one_per_row(source: Source, rows: _Codes, labels: _Codes) -> list[Name]:
    """The label of each row, which all its lines must share."""
    row, label, names = rows.array, labels.array, labels.names
    first = np.empty(len(rows.names), dtype=np.int32)
    first[row[::-1]] = label[::-1]  # the last writer wins, and that is the first line
    differs = first[row] != label
    if differs.any():
        line = int(np.argmax(differs))
        came = (
            f"{reprlib.repr(names[first[row[line]]])} and {reprlib.repr(names[label[line]])} "
            f"for row {reprlib.repr(rows.names[row[line]])} (data line {line + 1})"
        )
        raise source.refuse("must give one label per row", came, "Make them agree.")
    return [names[i] for i in first.tolist()]
