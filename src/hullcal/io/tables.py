"""Tables, CSV or Parquet: rows in batches that fit into memory, and the place of every fault."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from hullcal.io.source import Source

__all__ = ["TABLES", "Batch", "Name", "Table", "as_integers", "label_values", "read_lines"]

Name = str | int | float

#: Cells that are Python objects at one time.
_CELLS = 200_000
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z")
#: Frames write integers so where some row once had none.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0*)?\Z")


class Batch(Protocol):
    """Some consecutive rows of a table."""

    def names(self, column: int) -> list[Name]:
        """A column as names, none of which is empty."""

    def numbers(self, column: int) -> NDArray[Any]:
        """A column as numbers."""


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
    """Names as integers if all of them are integers written out; otherwise as they are.

    Text does not tell ``1`` from ``"1"``, and numeric labels from another file mean the former.
    """
    if all(isinstance(name, str) and _INTEGER.match(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def label_values(names: Sequence[Name], classes: Sequence[Any] | None) -> NDArray[Any]:
    """Labels that came as text, in the type of the classes, if there are any.

    Labels that are among the classes stay names, and so do all labels where some class is written
    in digits; otherwise labels that are all written as integers, or as floats without a fraction,
    are positions.

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
        try:  # the error itself counts from somewhere inside the file
            source.path.read_bytes().decode()
        except UnicodeDecodeError as whole:
            came = f"other bytes, the first at position {whole.start},"
            raise source.refuse("must be UTF-8 text", came, "Save it as UTF-8.") from error
        raise


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
        records = _records(source, reader)
        header = next(records, None)
        if header is None:
            rule = "must begin with names of columns"
            raise source.refuse(rule, "blank lines only", "Add a header.")
        yield Table(
            source, tuple(header), lambda _, __: _csv_batches(source, reader, records, header)
        )


def _records(source: Source, reader: Any) -> Iterator[list[str]]:
    """Lines that are not blank."""
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        came = f"a fault in line {reader.line_num} ({error})"
        raise source.refuse("must be comma-separated text", came, "Check the quotes.") from error


def _csv_batches(
    source: Source, reader: Any, records: Iterator[list[str]], header: list[str]
) -> Iterator[Batch]:
    width = len(header)
    yield _CsvBatch(source, [()] * width, [])
    rows: list[list[str]] = []
    lines: list[int] = []
    for record in records:
        if len(record) != width:
            came = f"{len(record)} cells in line {reader.line_num}"
            rule = f"must have {width} cells in every line, as its header has"
            raise source.refuse(rule, came, "Quote cells that contain commas.")
        rows.append(record)
        lines.append(reader.line_num)
        if len(rows) * width >= _CELLS:
            yield _CsvBatch(source, list(zip(*rows, strict=True)), lines)
            rows, lines = [], []
    if rows:
        yield _CsvBatch(source, list(zip(*rows, strict=True)), lines)


@dataclass(frozen=True)
class _CsvBatch:
    source: Source
    columns: list[tuple[str, ...]]
    lines: list[int]

    def names(self, column: int) -> list[Name]:
        cells = self.columns[column]
        if "" in cells:
            came = f"one in line {self.lines[cells.index('')]}"
            raise self.source.refuse("must have no empty cell", came, "Fill it, or drop the row.")
        return list(cells)

    def numbers(self, column: int) -> NDArray[Any]:
        cells = self.columns[column]
        try:
            if "_" not in "".join(cells):  # Python reads 1_0 as ten; no other program does
                return np.array([float(cell) for cell in cells], dtype=np.float64)
        except ValueError:
            pass
        line, cell = next(
            pair for pair in zip(self.lines, cells, strict=True) if not is_number(pair[1])
        )
        came = f"{cell[:40]!r} in line {line}"
        raise self.source.refuse("must hold numbers", came, "Write numbers as 0.25 or 2.5e-1.")


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
    with parquet.ParquetFile(source.path) as file:
        schema = file.schema_arrow
        text = [each.name for each in schema if arrow.types.is_string(each.type)]
    # Repeated strings stay references to a dictionary, which may hold long ones.
    with parquet.ParquetFile(source.path, read_dictionary=text) as file:
        columns, n_rows = tuple(schema.names), file.metadata.num_rows
        yield Table(
            source, columns, lambda start, stop: _parquet_batches(source, file, start, stop), n_rows
        )


def _parquet_batches(source: Source, file: Any, start: int, stop: int | None) -> Iterator[Batch]:
    """Only row groups that hold some of the rows are read."""
    metadata, width = file.metadata, max(1, file.metadata.num_columns)
    stop = metadata.num_rows if stop is None else stop
    groups: list[int] = []
    declared = end = place = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        begin, end = end, end + group.num_rows
        if begin < stop and start < end:
            place = place if groups else begin
            groups.append(number)
            declared += group.total_byte_size
    # Columns packed as dictionaries or runs unfold, to 8 bytes a cell and more.
    source.check_fits(max(declared, 16 * (stop - start) * width))
    yield _ParquetBatch(source, file.schema_arrow.empty_table(), 0)
    size = max(1, _CELLS // width)
    for batch in file.iter_batches(batch_size=size, row_groups=groups, use_threads=False):
        first, last = max(start - place, 0), min(stop - place, batch.num_rows)
        if first < last:
            yield _ParquetBatch(source, batch.slice(first, last - first), place + first)
        place += batch.num_rows
    if place < stop:
        raise ValueError(f"{max(0, place - start)} rows where {stop - start} were declared")


@dataclass(frozen=True)
class _ParquetBatch:
    source: Source
    batch: Any
    start: int

    def names(self, column: int) -> list[Name]:
        cells = self.batch.column(column)
        if hasattr(cells, "dictionary"):
            texts = cells.dictionary.to_pylist()
            values: list[Any] = [None if i is None else texts[i] for i in cells.indices.to_pylist()]
        else:
            values = cells.to_pylist()
        for i, value in enumerate(values):
            if not isinstance(value, str | int | float) or value != value or value == "":
                raise self._refuse("must hold strings or numbers as names", repr(value), column, i)
        return values

    def numbers(self, column: int) -> NDArray[Any]:
        cells = self.batch.column(column)
        if cells.null_count:
            first = int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
            raise self._refuse("must have no empty cell", "one", column, first)
        kind = self.batch.schema.field(column).type
        if hasattr(kind, "value_type"):  # text, or lists
            raise self._refuse("must hold numbers", f"the type {kind.value_type}", column, 0)
        # An empty table has columns in pieces, and these take no such option.
        options = {} if hasattr(cells, "chunks") else {"zero_copy_only": False}
        array: NDArray[Any] = cells.to_numpy(**options)
        if array.dtype.kind not in "biuf":
            raise self._refuse("must hold numbers", f"the type {kind}", column, 0)
        return array

    def _refuse(self, rule: str, came: str, column: int, row: int) -> Exception:
        name = self.batch.schema.names[column]
        where = f"{came[:60]} in column {name[:60]!r}, data line {self.start + row + 1},"
        return self.source.refuse(rule, where, "Fill it, or drop the row.")


TABLES: dict[str, Callable[[Source], AbstractContextManager[Table]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
}
