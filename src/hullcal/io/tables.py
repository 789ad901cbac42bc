"""Tables, CSV or Parquet: rows in batches that fit into memory, and the place of every fault."""

from __future__ import annotations

import csv
import re
import reprlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import as_integers, label_column, number_columns, wide_form
from hullcal.io.source import Parts, Source, StoredArray

Name = str | int | float
#: The number of each row's name, and the names in the order in which they first appear.
Coded = tuple[NDArray[np.int32], list[Name]]
#: Some rows: the cells of each column, a tuple of text or an array of Arrow, and where the rows stand.
Batch = tuple[Sequence[Any], Sequence[int]]

#: Cells that are Python objects at one time.
_CELLS = 200_000
#: Frames write integers so where some row once had none.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0*)?\Z")


@dataclass(frozen=True)
class Table:
    """An open table, whose columns are known by their places."""

    source: Source
    columns: tuple[str, ...]
    #: One batch or more of some columns, in the rows from `start` to `stop` - 1 or to the end.
    batches: Callable[[Sequence[int], int, int | None], Iterator[Batch]]
    #: None if only reading can tell; then all rows are read, and once.
    n_rows: int | None = None
    #: A comma where columns are separated by semicolons or tabs.
    decimal: str = "."

    def read(
        self, numbers: Sequence[int], names: Sequence[int], start: int = 0, stop: int | None = None
    ) -> tuple[NDArray[Any], list[Coded]]:
        """Columns of numbers, side by side, and columns of names."""
        known: list[dict[Name, int]] = [defaultdict(count().__next__) for _ in names]
        parts = []
        for cells, lines in self.batches([*numbers, *names], start, stop):
            found = [self._numbers(*each, lines) for each in zip(cells, numbers, strict=False)]
            texts = [
                self._names(*each, lines) for each in zip(cells[len(numbers) :], names, strict=True)
            ]
            codes = [
                np.fromiter(map(code.__getitem__, text), np.int32, len(text))
                for code, text in zip(known, texts, strict=True)
            ]
            parts.append((np.stack(found, axis=1) if found else np.empty(0), *codes))
        values, *coded = (np.concatenate(part) for part in zip(*parts, strict=True))
        return values, list(zip(coded, map(list, known), strict=True))

    def _names(self, cells: Any, column: int, lines: Sequence[int]) -> list[Name]:
        """A column as names, none of which is empty."""
        if hasattr(cells, "dictionary"):  # equal strings stay one
            texts = cells.dictionary.to_pylist()
            values: list[Any] = [None if i is None else texts[i] for i in cells.indices.to_pylist()]
        else:
            values = list(cells) if isinstance(cells, tuple) else cells.to_pylist()
        for line, value in zip(lines, values, strict=True):
            if not isinstance(value, str | int | float) or value != value or value == "":
                rule = "must have strings or numbers and no empty cell"
                raise self._refuse(rule, value, column, line)
        return values

    def _numbers(self, cells: Any, column: int, lines: Sequence[int]) -> NDArray[Any]:
        """A column as numbers; an empty cell of Parquet is none, which is not finite."""
        if not isinstance(cells, tuple):
            kind = getattr(cells.type, "value_type", None)  # of text, or lists
            array = np.empty(0, np.str_) if kind else cells.to_numpy(zero_copy_only=False)
            if array.dtype.kind in "biuf":
                return np.asarray(array)
            came = f"the type {kind or cells.type} of column {self.columns[column][:60]!r}"
            raise self.source.refuse("must hold numbers", came, "Write numbers.")
        if self.decimal != ".":
            cells = tuple(cell.replace(self.decimal, ".") for cell in cells)
        with suppress(ValueError):
            if "_" not in "".join(cells):  # Python reads 1_0 as ten; no other program does
                return np.array(cells, dtype=np.float64)
        wrong = next(i for i, cell in enumerate(cells) if not is_number(cell))
        raise self._refuse("must hold numbers", cells[wrong], column, lines[wrong])

    def _refuse(self, rule: str, cell: Any, column: int, line: int) -> Exception:
        came = f"{repr(cell)[:60]} in line {line}, column {self.columns[column][:60]!r},"
        return self.source.refuse(rule, came, "Fill it, or drop the row.")


def is_number(cell: str) -> bool:
    """Whether text is a number in the way of all programs."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


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


@contextmanager
def _txt(source: Source) -> Iterator[Table]:
    """One label in each line; blank lines may only stand at the end."""
    with _text(source) as file:
        lines = [line.strip() for line in file]
    while lines and not lines[-1]:
        lines.pop()
    yield Table(source, ("label",), lambda *_: iter([([tuple(lines)], range(1, len(lines) + 1))]))


@contextmanager
def _csv(source: Source) -> Iterator[Table]:
    with _text(source) as file:
        reader = csv.reader(file, strict=True)

        def batches(places: Sequence[int], start: int, stop: int | None) -> Iterator[Batch]:
            rows: list[list[str]] = []
            lines: list[int] = []
            for record in filter(None, reader):  # blank lines are left out
                if len(record) != len(header):
                    came = f"{len(record)} cells in line {reader.line_num}"
                    rule = f"must have {len(header)} cells in every line, as its header has"
                    raise source.refuse(rule, came, "Quote cells that contain commas.")
                rows.append([record[place] for place in places])
                lines.append(reader.line_num)
                if len(rows) * len(header) >= _CELLS:
                    yield list(zip(*rows, strict=True)), lines
                    rows, lines = [], []
            yield list(zip(*rows, strict=True)) or [()] * len(places), lines

        try:
            header, decimal = next(filter(None, reader), []), "."
            other = next((mark for mark in ";\t" if len(header) == 1 and mark in header[0]), None)
            if other is not None:
                # As spreadsheets write it wherever the comma separates the digits.
                file.seek(0)
                reader = csv.reader(file, delimiter=other, strict=True)
                header, decimal = next(filter(None, reader), []), ","
            yield Table(source, tuple(header), batches, decimal=decimal)
        except csv.Error as error:
            came = f"a fault in line {reader.line_num} ({error})"
            rule = "must be text separated by commas"
            raise source.refuse(rule, came, "Check the quotes.") from error


@contextmanager
def _parquet(source: Source) -> Iterator[Table]:
    arrow, dataset = source.needs("pyarrow"), source.needs("pyarrow.dataset")
    columns = dataset.dataset(source.path, format="parquet").schema.names
    # Repeated strings stay references to a dictionary, which may hold long ones.
    encoded = dataset.ParquetFileFormat(dictionary_columns=columns)
    (file,) = dataset.dataset(source.path, format=encoded).get_fragments()
    n_rows = file.metadata.num_rows

    def batches(places: Sequence[int], start: int, stop: int | None) -> Iterator[Batch]:
        stop, names = n_rows if stop is None else stop, [columns[place] for place in places]
        schema = arrow.schema([file.physical_schema.field(name) for name in names])
        yield arrow.RecordBatch.from_pylist([], schema).columns, []  # which has the types
        # Only row groups that hold some of the rows are read.
        groups = file.row_groups  # made anew at every look
        ends = list(accumulate((group.num_rows for group in groups), initial=0))
        wanted = [i for i, end in enumerate(ends[1:]) if ends[i] < stop and start < end]
        # Columns packed as dictionaries or runs unfold, to 8 bytes a cell and more.
        declared = sum(groups[i].total_byte_size for i in wanted)
        source.check_fits(max(declared, 16 * (stop - start) * len(columns)))
        place = ends[wanted[0]] if wanted else 0
        options = {"batch_size": max(1, _CELLS // len(columns)), "use_threads": False}
        for batch in file.subset(row_group_ids=wanted).to_batches(columns=names, **options):
            first, last = max(start - place, 0), min(stop - place, batch.num_rows)
            if first < last:
                lines = range(place + first + 1, place + last + 1)
                yield batch.slice(first, last - first).columns, lines
            place += batch.num_rows
        if place < stop:
            raise ValueError(f"{max(0, place - start)} rows where {stop - start} were declared")

    yield Table(source, tuple(columns), batches, n_rows)


TABLES: dict[str, Callable[[Source], AbstractContextManager[Table]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".txt": _txt,
}


# Long form has a line for each probability, wide form one for each instance

_FORMS = (
    "Long form has the columns row,member,class,probability and optionally label, one line per "
    "probability; wide form has one line per instance with columns such as "
    "first:cat,first:dog,second:cat,second:dog (or p_cat,p_dog for one member) and optionally label, "
    "which `labels_key` may name. Separate columns by commas, semicolons or tabs; drop all others."
)
_ROLES = {
    **{"row": "row", "instance": "row", "sample": "row", "member": "member", "class": "class"},
    **{"probability": "probability", "prob": "probability", "p": "probability"},
}


def parts_of(table: Table, labels_key: str, *, long: bool) -> Parts:
    """Predictions, and labels if there are any, in a table of wide or, if allowed, of long form."""
    columns = table.columns
    label = label_column(columns, labels_key)
    others = number_columns(columns, label)
    roles = {_ROLES.get(columns[i].strip().lower(), columns[i]): i for i in others}
    labels = [] if label is None else [label]
    if long and {"row", "member", "class", "probability"} == set(roles) and len(others) == 4:
        return _long(table, roles, labels)
    return _wide(table, others, labels)


def labels_in(table: Table, labels_key: str, classes: Sequence[Any] | None) -> NDArray[Any]:
    """Labels from a table: the column `label`, or the only column."""
    columns = table.columns
    place = 0 if len(columns) == 1 else label_column(columns, labels_key)
    if place is None:
        repair = "Name one of them `label`, or choose one with `labels_key`."
        raise table.source.refuse("must have a column `label`", _listed(columns), repair)
    # Without a header, the first label stands in the header's place.
    headless = len(columns) == 1 and is_number(columns[0]) and np.isfinite(float(columns[0]))
    ((codes, names),) = table.read([], [place])[1]
    first = [columns[0].strip()] if headless else []
    return label_values([*first, *(names[i] for i in codes)], classes)


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in columns[:12]) or "none"
    return f"the columns {shown}{', ...' if len(columns) > 12 else ''}"


def _wide(table: Table, others: Sequence[int], label: Sequence[int]) -> Parts:
    """Predictions in a column for each member and class; the rows of Parquet stay in the file."""
    source = table.source
    form = wide_form(table.columns, others, source.refuse)
    if form is None:
        rule = "must be a table in long or wide form"
        raise source.refuse(rule, _listed(table.columns), _FORMS)
    places, axes, classes = form.places, form.axes, form.classes

    def probs(start: int, stop: int) -> NDArray[Any]:
        return table.read(places, [], start, stop)[0].reshape(-1, *axes)

    def labels(start: int, stop: int) -> NDArray[Any]:
        ((codes, found),) = table.read([], label, start, stop)[1]
        return label_values(found, classes)[codes]

    n_rows = table.n_rows
    if n_rows is None:
        values, coded = table.read(places, label)
        named = [label_values(found, classes)[codes] for codes, found in coded]
        truth = [StoredArray.held(source, each) for each in named]
        stored = StoredArray.held(source, values.reshape(-1, *axes))
    else:
        # What labels are, only some reading tells.
        kinds = [labels(0, min(1, n_rows)).dtype for _ in label]
        truth = [StoredArray(source, (n_rows,), kind, labels) for kind in kinds]
        stored = StoredArray(source, (n_rows, *axes), probs(0, 0).dtype, probs)
    return Parts(stored, truth[0] if truth else None, classes, form.members)


def _long(table: Table, roles: dict[str, int], label: Sequence[int]) -> Parts:
    """Rows, members and classes in the order in which they first appear."""
    places = [roles[name] for name in ("row", "member", "class")]
    numbers, coded = table.read([roles["probability"]], [*places, *label])
    source = table.source
    probs = _arranged(source, coded[:3], numbers[:, 0])
    classes = tuple(as_integers(coded[2][1]))
    truth = None
    if label:
        codes = _one_per_row(source, coded[0], coded[3])
        truth = StoredArray.held(source, label_values(coded[3][1], classes)[codes])
    members = tuple(map(str, coded[1][1]))
    return Parts(StoredArray.held(source, probs), truth, classes, members)


def _arranged(source: Source, coded: list[Coded], numbers: NDArray[Any]) -> NDArray[Any]:
    """Put each number where its row, member and class say; each place is taken once."""
    (row, rows), (member, members), (cls, classes) = coded
    n, m, k = len(rows), len(members), len(classes)
    flat = (row.astype(np.int64) * m + member) * k + cls
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
    where = (rows[place // (m * k)], members[place // k % m], classes[place % k])
    rule = "must hold every (row, member, class) exactly once"
    raise source.refuse(rule, f"{came} {reprlib.repr(where)}", repair)


def _one_per_row(source: Source, rows: Coded, labels: Coded) -> NDArray[np.int32]:
    """The label of each row, which all its lines must share."""
    (row, names), (label, texts) = rows, labels
    first = np.empty(len(names), dtype=np.int32)
    first[row[::-1]] = label[::-1]  # the last writer wins, and that is the first line
    differs = first[row] != label
    if differs.any():
        line = int(np.argmax(differs))
        both = reprlib.repr(texts[first[row[line]]]), reprlib.repr(texts[label[line]])
        where = f"row {reprlib.repr(names[row[line]])} (data line {line + 1})"
        came = f"{' and '.join(both)} for {where}"
        raise source.refuse("must give one label per row", came, "Make them agree.")
    return first
