"""How is CSV read, quickly and in bounded memory, with the line of every fault?"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.memory import check_fits
from hullcal.files.names import Name
from hullcal.files.source import Source
from hullcal.io.tables import Batch, Table
from hullcal.io.text import open_text

__all__ = ["open_csv"]

#: Cells that are text at one time.
_CELLS = 200_000
#: Memory that a file takes as numbers and codes, as a multiple of its size.
_GROWTH = 4


@contextmanager
def open_csv(source: Source) -> Iterator[Table]:
    """Read the header of a CSV file, and its lines in batches."""
    check_fits(source, _GROWTH * source.path.stat().st_size)
    with open_text(source) as file:
        reader = csv.reader(file, strict=True)
        header = _header(source, reader)
        yield Table(source, tuple(header), _batches(source, reader, len(header)))


def _header(source: Source, reader: Any) -> list[str]:
    try:
        for record in reader:
            if record:
                return list(record)
    except csv.Error as error:
        raise _broken(source, reader.line_num, error) from error
    raise source.refuse("must begin with names of columns", "blank lines only", "Add a header.")


def _batches(source: Source, reader: Any, width: int) -> Iterator[Batch]:
    size = max(1, _CELLS // max(width, 1))
    records: list[list[str]] = []
    lines: list[int] = []
    try:
        for record in reader:
            if not record:
                continue
            if len(record) != width:
                came = f"{len(record)} cells in line {reader.line_num}"
                rule = f"must have {width} cells in every line, as its header has"
                raise source.refuse(rule, came, "Quote cells that contain commas.")
            records.append(record)
            lines.append(reader.line_num)
            if len(records) == size:
                yield _CsvBatch(source, records, lines)
                records, lines = [], []
    except csv.Error as error:
        raise _broken(source, reader.line_num, error) from error
    if records:
        yield _CsvBatch(source, records, lines)


def _broken(source: Source, line: int, error: csv.Error) -> Exception:
    rule = "must be comma-separated text"
    return source.refuse(rule, f"a fault in line {line} ({error})", "Check the quotes there.")


class _CsvBatch:
    """Some lines of a CSV file, cut into columns."""

    def __init__(self, source: Source, records: list[list[str]], lines: list[int]) -> None:
        self._source, self._lines = source, lines
        self._columns = list(zip(*records, strict=True))

    def names(self, column: int) -> list[Name]:
        cells = self._columns[column]
        if "" in cells:
            line = self._lines[cells.index("")]
            raise self._source.refuse(
                "must have no empty cell", f"one in line {line}", "Fill it, or drop the row."
            )
        return list(cells)

    def numbers(self, column: int) -> NDArray[Any]:
        cells = self._columns[column]
        try:
            if "_" not in "".join(cells):  # Python reads 1_0 as ten; nobody else does
                return np.array([float(cell) for cell in cells])
        except ValueError:
            pass
        line, cell = next(
            (line, cell)
            for line, cell in zip(self._lines, cells, strict=True)
            if "_" in cell or not _is_float(cell)
        )
        came = f"{cell[:40]!r} in line {line}"
        raise self._source.refuse("must hold numbers", came, "Write numbers as 0.25 or 2.5e-1.")


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
