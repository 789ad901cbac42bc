"""How do lines of (row, member, class, probability) become one array?"""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal.files.names import Name, as_integers, label_values
from hullcal.files.source import Source
from hullcal.io.dataset import Parts
from hullcal.io.tables import Codes, Table

__all__ = ["Long", "read_long"]


class Long(NamedTuple):
    """Where the four columns of long form stand."""

    row: int
    member: int
    cls: int
    probability: int


def read_long(table: Table, places: Long, label: int | None) -> Parts:
    """Read a table of one line per probability.

    Parameters
    ----------
    table : Table
    places : Long
    label : int or None
        The column of labels.

    Returns
    -------
    Parts
        Rows, members and classes in the order in which they first appear.
    """
    source = table.source
    keys = (Codes(), Codes(), Codes())
    labels = Codes()
    numbers: list[NDArray[Any]] = []
    for batch in table.batches:
        for codes, place in zip(keys, places[:3], strict=True):
            codes.add(batch.names(place))
        numbers.append(batch.numbers(places.probability))
        if label is not None:
            labels.add(batch.names(label))
    if not numbers:
        raise source.refuse("must hold instances", "no line below the header", "Add some.")
    probs = _arranged(source, keys, np.concatenate(numbers))
    rows, members, classes = keys
    named = tuple(as_integers(classes.names))
    truth = None
    if label is not None:
        truth = label_values(_one_per_row(source, rows, labels), named)
    return Parts(
        probs=probs,
        labels=truth,
        classes=named,
        members=tuple(str(name) for name in members.names),
    )


def _arranged(
    source: Source, keys: tuple[Codes, Codes, Codes], numbers: NDArray[Any]
) -> NDArray[Any]:
    """Put each number where its row, member and class say; each place is taken once."""
    n, m, k = (len(codes) for codes in keys)
    rows, members, classes = (codes.array for codes in keys)
    if n * m * k == numbers.size:
        flat = (rows.astype(np.int64) * m + members) * k + classes
        taken = np.zeros(numbers.size, dtype=np.bool_)
        taken[flat] = True
        if taken.all():
            probs = np.empty_like(numbers)
            probs[flat] = numbers
            return probs.reshape(n, m, k)
    raise _not_once(source, keys, (rows, members, classes))


def _not_once(
    source: Source, keys: tuple[Codes, Codes, Codes], codes: tuple[NDArray[np.int32], ...]
) -> Exception:
    """Name the first place that is taken twice, or else the first that is empty."""
    _, m, k = (len(each) for each in keys)
    order = np.lexsort(codes[::-1])
    placed = [each[order].astype(np.int64) for each in codes]
    twice = np.logical_and.reduce([each[1:] == each[:-1] for each in placed])
    rule = "must hold every (row, member, class) exactly once"
    if twice.any():
        line = int(order[1:][twice].min())
        where = tuple(int(each[line]) for each in codes)
        came = f"{_shown(keys, where)} again in data line {line + 1}"
        return source.refuse(rule, came, "Remove the duplicate.")
    at = np.arange(order.size)
    expected = (at // (m * k), at // k % m, at % k)
    wrong = np.logical_or.reduce([a != b for a, b in zip(placed, expected, strict=True)])
    first = int(np.argmax(wrong)) if wrong.any() else order.size
    missing = (first // (m * k), first // k % m, first % k)
    return source.refuse(rule, f"no line for {_shown(keys, missing)}", "Add what is missing.")


def _shown(keys: tuple[Codes, Codes, Codes], where: tuple[int, ...]) -> str:
    names = [each.names[i] for each, i in zip(keys, where, strict=True)]
    return "(" + ", ".join(reprlib.repr(name) for name in names) + ")"


def _one_per_row(source: Source, rows: Codes, labels: Codes) -> list[Name]:
    """Give the label of each row, which all its lines must share."""
    row, label = rows.array, labels.array
    first = np.empty(len(rows), dtype=np.int32)
    first[row[::-1]] = label[::-1]  # the last writer wins, and that is the first line
    differs = first[row] != label
    if differs.any():
        line = int(np.argmax(differs))
        names = labels.names
        came = (
            f"{reprlib.repr(names[first[row[line]]])} and {reprlib.repr(names[label[line]])} "
            f"for row {reprlib.repr(rows.names[row[line]])} (data line {line + 1})"
        )
        raise source.refuse("must give one label per row", came, "Make them agree.")
    names = labels.names
    return [names[i] for i in first.tolist()]
