"""How is Parquet read, in batches?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.memory import check_fits
from hullcal.files.names import Name
from hullcal.files.source import Source
from hullcal.io.tables import Batch, Table

__all__ = ["open_parquet"]

#: Cells that are Python objects at one time.
_CELLS = 200_000


@contextmanager
def open_parquet(source: Source) -> Iterator[Table]:
    """Read the columns of a Parquet file, and its rows in batches."""
    parquet = source.needs("pyarrow.parquet")
    with parquet.ParquetFile(source.path) as file:
        metadata, columns = file.metadata, tuple(file.schema_arrow.names)
        groups = range(metadata.num_row_groups)
        declared = sum(metadata.row_group(i).total_byte_size for i in groups)
        # Columns packed as dictionaries or runs unfold, to 8 bytes a cell and more.
        check_fits(source, max(declared, 16 * metadata.num_rows * len(columns)))
        yield Table(source, columns, _batches(source, file, len(columns)))


def _batches(source: Source, file: Any, width: int) -> Iterator[Batch]:
    start = 0
    for batch in file.iter_batches(batch_size=max(1, _CELLS // max(width, 1)), use_threads=False):
        if batch.num_rows:
            yield _ParquetBatch(source, batch, start)
        start += batch.num_rows


class _ParquetBatch:
    """Some rows of a Parquet file."""

    def __init__(self, source: Source, batch: Any, start: int) -> None:
        self._source, self._batch, self._start = source, batch, start

    def names(self, column: int) -> list[Name]:
        values = self._batch.column(column).to_pylist()
        for i, value in enumerate(values):
            if not isinstance(value, str | int | float) or value != value or value == "":
                raise self._refuse("must hold strings or numbers as names", repr(value), column, i)
        return values  # type: ignore[no-any-return]

    def numbers(self, column: int) -> NDArray[Any]:
        values = self._batch.column(column)
        if values.null_count:
            first = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise self._refuse("must have no empty cell", "one", column, first)
        array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        if array.dtype.kind not in "biuf":
            raise self._refuse("must hold numbers", f"the type {values.type}", column, 0)
        return array

    def _refuse(self, rule: str, came: str, column: int, row: int) -> Exception:
        name = self._batch.schema.names[column]
        where = f"{came[:60]} in column {name[:60]!r}, data line {self._start + row + 1},"
        return self._source.refuse(rule, where, "Fill it, or drop the row.")
