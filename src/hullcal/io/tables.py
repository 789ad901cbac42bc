"""Tables, CSV or Parquet: rows in batches that fit into memory, and the place of every fault."""

from __future__ import annotations

import csv
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hullcal.io.source import Dataset, Source

Name = str | int | float

#: Cells that are Python objects at one time.
_CELLS = 200_000
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z")
#: Frames write integers so where some row once had none.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0*)?\Z")


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a table."""

    source: Source
    header: Sequence[str]
    #: Gives a column: a tuple of text, or an array of Arrow.
    column: Callable[[int], Any]
    #: Where the rows stand in the file.
    lines: Sequence[int]

    def names(self, column: int) -> list[Name]:
        """A column as names, none of which is empty."""
        cells = self.column(column)
        if hasattr(cells, "dictionary"):  # equal strings stay one
            texts = cells.dictionary.to_pylist()
            values: list[Any] = [None if i is None else texts[i] for i in cells.indices.to_pylist()]
        else:
            values = list(cells) if isinstance(cells, tuple) else cells.to_pylist()
        for line, value in zip(self.lines, values, strict=True):
            if not isinstance(value, str | int | float) or value != value or value == "":
                raise self._refuse(
                    "must have strings or numbers and no empty cell", value, column, line
                )
        return values

    def numbers(self, column: int) -> NDArray[Any]:
        """A column as numbers; an empty cell of Parquet is none, which is not finite."""
        cells = self.column(column)
        if not isinstance(cells, tuple):
            kind = getattr(cells.type, "value_type", None)  # of text, or lists
            array = np.empty(0, np.str_) if kind else cells.to_numpy(zero_copy_only=False)
            if array.dtype.kind in "biuf":
                return np.asarray(array)
            came = f"the type {kind or cells.type} of column {self.header[column][:60]!r}"
            raise self.source.refuse("must hold numbers", came, "Write numbers.")
        with suppress(ValueError):
            if "_" not in "".join(cells):  # Python reads 1_0 as ten; no other program does
                return np.array(cells, dtype=np.float64)
        wrong = next(i for i, cell in enumerate(cells) if not is_number(cell))
        raise self._refuse("must hold numbers", cells[wrong], column, self.lines[wrong])

    def _refuse(self, rule: str, cell: Any, column: int, line: int) -> Exception:
        came = f"{repr(cell)[:60]} in line {line}, column {self.header[column][:60]!r},"
        return self.source.refuse(rule, came, "Fill it, or drop the row.")


@dataclass(frozen=True)
class Table:
    """An open table."""

    source: Source
    columns: tuple[str, ...]
    #: Batches of the rows from `start` to `stop` - 1, or to the end; the first has none, but types.
    batches: Callable[[int, int | None], Iterator[Batch]]
    #: None if only reading can tell.
    n_rows: int | None = None


def as_integers(names: Sequence[Name]) -> list[Name]:
    """Names as integers if all of them are integers written out; otherwise as they are."""
    if all(isinstance(name, str) and _INTEGER.match(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def label_values(names: Sequence[Name], classes: Sequence[Any] | None) -> NDArray[Any]:
    """Labels that came as text: names if they are classes or a class is in digits, else positions.

    >>> label_values(["1", "0"], ["cat", "dog"]), label_values(["1.0", "0.0"], None)
    (array([1, 0]), array([1, 0]))
    """
    known = set(classes or ())
    # Where digits are a name, they are always one: rows of one file must mean the same.
    numbered = any(isinstance(each, str) and _WHOLE.match(each) for each in known)
    if numbered or all(name in known for name in set(names)):
        return np.array(names)
    if all(isinstance(name, str) and _WHOLE.match(name) for name in names):
        names = [str(name).partition(".")[0] for name in names]
    return np.array(as_integers(names))


@contextmanager
def _text(source: Source) -> Iterator[TextIO]:
    """A text file, UTF-8 with or without a byte order mark, with any line ends."""
    # As numbers and codes, text takes a small multiple of its size.
    source.check_fits(8 * source.path.stat().st_size)
    try:
        with open(source.path, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise source.refuse("must be UTF-8 text", "other bytes", "Save it as UTF-8.") from error


def read_lines(source: Source) -> list[str]:
    """One label per line; blank lines may only stand at the end."""
    with _text(source) as file:
        lines = [line.strip() for line in file]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines or not lines:
        came = f"an empty line {lines.index('') + 1}" if lines else "blank lines only"
        raise source.refuse("must have one label in every line", came, "Fill or remove it.")
    return lines


@contextmanager
def _csv(source: Source) -> Iterator[Table]:
    with _text(source) as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(filter(None, reader), [])
            yield Table(source, tuple(header), lambda _, __: _csv_batches(source, reader, header))
        except csv.Error as error:
            came = f"a fault in line {reader.line_num} ({error})"
            rule = "must be comma-separated text"
            raise source.refuse(rule, came, "Check the quotes.") from error


def _csv_batches(source: Source, reader: Any, header: list[str]) -> Iterator[Batch]:
    rows: list[list[str]] = []
    lines: list[int] = []

    def batch() -> Batch:
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        return Batch(source, header, columns.__getitem__, lines)

    yield batch()
    for record in filter(None, reader):  # blank lines are left out
        if len(record) != len(header):
            came = f"{len(record)} cells in line {reader.line_num}"
            rule = f"must have {len(header)} cells in every line, as its header has"
            raise source.refuse(rule, came, "Quote cells that contain commas.")
        rows.append(record)
        lines.append(reader.line_num)
        if len(rows) * len(header) >= _CELLS:
            yield batch()
            rows, lines = [], []
    yield batch()


def is_number(cell: str) -> bool:
    """Whether text is a number in the way of all programs."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


@contextmanager
def _parquet(source: Source) -> Iterator[Table]:
    parquet, arrow = source.needs("pyarrow.parquet"), source.needs("pyarrow")
    schema = parquet.read_schema(source.path)
    # Repeated strings stay references to a dictionary, which may hold long ones.
    text = [each.name for each in schema if arrow.types.is_string(each.type)]
    with parquet.ParquetFile(source.path, read_dictionary=text) as file:

        def batches(start: int, stop: int | None) -> Iterator[Batch]:
            empty = arrow.RecordBatch.from_pylist([], file.schema_arrow)
            yield Batch(source, schema.names, empty.column, [])
            end = file.metadata.num_rows if stop is None else stop
            for place, batch in _parquet_rows(source, file, start, end):
                lines = range(place + 1, place + 1 + batch.num_rows)
                yield Batch(source, schema.names, batch.column, lines)

        yield Table(source, tuple(schema.names), batches, file.metadata.num_rows)


def _parquet_rows(source: Source, file: Any, start: int, stop: int) -> Iterator[tuple[int, Any]]:
    """Rows in batches, each with its first; only row groups that hold some of them are read."""
    metadata, width = file.metadata, max(1, file.metadata.num_columns)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    ends = list(accumulate((group.num_rows for group in groups), initial=0))
    wanted = [i for i in range(len(groups)) if ends[i] < stop and start < ends[i + 1]]
    # Columns packed as dictionaries or runs unfold, to 8 bytes a cell and more.
    declared = sum(groups[i].total_byte_size for i in wanted)
    source.check_fits(max(declared, 16 * (stop - start) * width))
    place, size = ends[wanted[0]] if wanted else 0, max(1, _CELLS // width)
    for batch in file.iter_batches(batch_size=size, row_groups=wanted, use_threads=False):
        first, last = max(start - place, 0), min(stop - place, batch.num_rows)
        if first < last:
            yield place + first, batch.slice(first, last - first)
        place += batch.num_rows
    if place < stop:
        raise ValueError(f"{max(0, place - start)} rows where {stop - start} were declared")


TABLES: dict[str, Callable[[Source], AbstractContextManager[Table]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
}


# Long form has a line for each probability, wide form one for each instance

_FORMS = (
    "Long form has the columns row,member,class,probability and optionally label, one line per "
    "probability; wide form has one line per instance with columns such as "
    "first:cat,first:dog,second:cat,second:dog (or p_cat,p_dog for one member) and optionally label, "
    "which `labels_key` may name. Separate columns by commas, and drop all others."
)
_ROLES = {
    **{"row": "row", "instance": "row", "sample": "row", "member": "member", "class": "class"},
    **{"probability": "probability", "prob": "probability", "p": "probability"},
}


def read_table(table: Table, labels_key: str) -> Dataset:
    """Predictions, and labels if there are any, from a table of either form."""
    columns = table.columns
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
        raise table.source.refuse("must hold instances", "no line below the header", "Add some.")
    return data


def labels_in(table: Table, labels_key: str) -> list[Name]:
    """Labels from a table: the column `label`, or the only column."""
    columns = table.columns
    place = 0 if len(columns) == 1 else _label_column(columns, labels_key)
    if place is None:
        repair = "Name one of them `label`, or choose one with `labels_key`."
        raise table.source.refuse("must have a column `label`", _listed(columns), repair)
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
    shown = ", ".join(repr(name[:40]) for name in columns[:12]) or "none"
    return f"the columns {shown}{', ...' if len(columns) > 12 else ''}"


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
            raise source.refuse("must be a table in long or wide form", _listed(names), _FORMS)
        place = dict(zip(pairs, others, strict=True))
        members = list(dict.fromkeys(member for member, _ in pairs))
        classes = list(dict.fromkeys(name for _, name in pairs))
        rule = "must have a column for every member and class, once"
        if len(place) < len(pairs):
            (twice, _), *_ = Counter(pairs).most_common(1)
            raise source.refuse(rule, f"two columns for {reprlib.repr(twice)}", "Remove one.")
        if len(place) < len(members) * len(classes):
            missing = next(pair for pair in product(members, classes) if pair not in place)
            repair = "Add the column, or mind the spelling."
            raise source.refuse(rule, f"none for {reprlib.repr(missing)}", repair)
        self._columns = [place[pair] for pair in product(members, classes)]
        self.labelled = label is not None
        self.members = None if members == [""] else tuple(members)
        self.classes = tuple(as_integers(classes))
        self.labels = None  # no array of their own
        axes = (len(members), len(classes)) if self.members else (len(classes),)
        #: Without rows where the table does not know their number.
        self.shape = (table.n_rows or 0, *axes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the predictions, which only some reading tells."""
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
    """Member and class of each column; None if they follow no known pattern."""
    names = [name.strip() for name in columns]
    for separator in (":", "/"):
        # The last separator splits, since members more often contain one than classes do.
        pairs = [tuple(part.strip() for part in name.rpartition(separator)) for name in names]
        if names and all(member and cls for member, _, cls in pairs):
            return [(member, cls) for member, _, cls in pairs]
    if names and all(name.startswith("p_") and len(name) > 2 for name in names):
        return [("", name[2:]) for name in names]
    return None


# Long form


class _Codes(dict[Name, int]):
    """Numbers for names, by first appearance."""

    def __missing__(self, name: Name) -> int:
        self[name] = len(self)
        return self[name]

    def of(self, names: Sequence[Name]) -> NDArray[np.int32]:
        """The number of each name."""
        return np.fromiter(map(self.__getitem__, names), np.int32, len(names))


def _read_long(table: Table, roles: dict[str, int], label: int | None) -> Dataset:
    """Rows, members and classes in the order in which they first appear."""
    places = [roles[name] for name in ("row", "member", "class")]
    places += [] if label is None else [label]
    known = [_Codes() for _ in places]
    parts = [
        (
            *(codes.of(batch.names(i)) for i, codes in zip(places, known, strict=True)),
            batch.numbers(roles["probability"]),
        )
        for batch in table.batches(0, None)
    ]
    *codes, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = [list(each) for each in known]
    probs = _arranged(table.source, names[:3], codes[:3], numbers)
    classes = tuple(as_integers(names[2]))
    truth = None
    if label is not None:
        named = _one_per_row(table.source, names[::3], codes[0], codes[3])
        truth = label_values(named, classes)
    return Dataset(probs=probs, labels=truth, classes=classes, members=tuple(map(str, names[1])))


def _arranged(
    source: Source, names: list[list[Name]], codes: list[NDArray[Any]], numbers: NDArray[Any]
) -> NDArray[Any]:
    """Put each number where its row, member and class say; each place is taken once."""
    n, m, k = (len(each) for each in names)
    flat = (codes[0].astype(np.int64) * m + codes[1]) * k + codes[2]
    order = np.argsort(flat, kind="stable")
    placed = flat[order]
    wrong = np.flatnonzero(placed != np.arange(placed.size))
    if placed.size == n * m * k and not wrong.size:
        return np.asarray(numbers[order].reshape(n, m, k))
    first = int(wrong[0]) if wrong.size else placed.size
    came, place, repair = "no line for", first, "Add what is missing."
    if wrong.size and placed[first] < first:
        place, repair = int(placed[first]), "Remove the duplicate."
        came = f"a second line, data line {order[first] + 1}, for"
    where = (names[0][place // (m * k)], names[1][place // k % m], names[2][place % k])
    rule = "must hold every (row, member, class) exactly once"
    raise source.refuse(rule, f"{came} {reprlib.repr(where)}", repair)


def _one_per_row(
    source: Source, names: list[list[Name]], row: NDArray[Any], label: NDArray[Any]
) -> list[Name]:
    """The label of each row, which all its lines must share."""
    rows, labels = names
    first = np.empty(len(rows), dtype=np.int32)
    first[row[::-1]] = label[::-1]  # the last writer wins, and that is the first line
    differs = first[row] != label
    if differs.any():
        line = int(np.argmax(differs))
        both = reprlib.repr(labels[first[row[line]]]), reprlib.repr(labels[label[line]])
        where = f"row {reprlib.repr(rows[row[line]])} (data line {line + 1})"
        came = f"{' and '.join(both)} for {where}"
        raise source.refuse("must give one label per row", came, "Make them agree.")
    return [labels[i] for i in first.tolist()]
