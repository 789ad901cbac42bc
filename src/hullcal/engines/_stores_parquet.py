"""Parquet shards in wide form: one line per instance, columns such as ``member:class``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.engines._stores_base import Array, Shard, Shards, readable
from hullcal.engines._stores_sizes import check_memory
from hullcal.files.names import as_integers, label_values, wide_columns
from hullcal.files.source import Source

_WIDE = (
    "Wide form has columns such as first:cat,first:dog,second:cat,second:dog (or p_cat,p_dog for "
    "one member), and optionally label."
)


@dataclass(frozen=True)
class _Columns:
    """Which columns hold what."""

    #: Members one after the other, classes within them.
    probs: tuple[str, ...]
    label: str | None
    members: tuple[str, ...] | None
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class _Table(Shard):
    """One file."""

    columns: _Columns
    #: Whether labels that are text are numbers written out, in the whole store.
    numbers: bool = False

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        parquet = Source(self.path, "probs").needs("pyarrow.parquet")
        with parquet.ParquetFile(self.path) as file:
            groups, begin, end = _groups(file.metadata, first, last)
            wanted = [*self.columns.probs, *([self.columns.label] if self.columns.label else [])]
            _check_groups(self.path, file.metadata, groups, len(wanted) * self.dtype.itemsize)
            table = file.read_row_groups(groups, columns=wanted, use_threads=False)
        table = table.slice(begin, end - begin)
        if table.num_rows != last - first:
            raise ValueError(f"{table.num_rows} rows where {last - first} were declared")
        probs = np.empty((last - first, len(self.columns.probs)), dtype=self.dtype)
        for place, name in enumerate(self.columns.probs):
            column = table.column(name)
            if column.null_count:
                rule = "must have no empty cell"
                came = f"one in column {name!r} of {str(self.path)!r}"
                raise refusal("probs", rule, came, "Fill it, or drop the row.")
            probs[:, place] = column.to_numpy()
        probs = probs.reshape(last - first, *self.shape[1:])
        return probs, self._labels(table) if self.labelled else None

    def _labels(self, table: Any) -> Array:
        values = table.column(self.columns.label).to_pylist()
        if all(isinstance(value, str) for value in values):
            return self._text_labels(values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array if any(isinstance(value, str) for value in values) else np.array(values)

    def _text_labels(self, values: list[str]) -> Array:
        if not self.numbers:
            return np.array(values)
        labels = label_values(values, self.columns.classes)
        if labels.dtype.kind in "iu":
            return labels
        other = next(v for v in values if label_values([v], self.columns.classes).dtype.kind == "U")
        came = f"numbers and {other[:40]!r} in {str(self.path)!r}"
        raise refusal(
            "labels", "must be all numbers or all names", came, "Write all of them alike."
        )


def open_parquet(files: Sequence[Path]) -> Shards:
    """Read footers; all shards have the columns of the first."""
    source = Source(files[0], "probs")
    parquet, arrow = (source.needs(name) for name in ("pyarrow.parquet", "pyarrow"))
    shards: list[_Table] = []
    for path in files:
        with readable(path), parquet.ParquetFile(path) as file:
            n_rows, schema = file.metadata.num_rows, file.schema_arrow
            columns = _arranged(path, list(schema.names))
            # Not by `to_pandas_dtype`, for which pyarrow before 20 needs pandas.
            kinds = {schema.field(name).type: name for name in columns.probs}
            types = {
                arrow.array([], type=kind).to_numpy(zero_copy_only=False).dtype: kind
                for kind in kinds
            }
            for kind in (kind for dtype, kind in types.items() if dtype.kind not in "biuf"):
                came = f"the type {str(kind)[:60]} in column {kinds[kind][:60]!r} of {str(path)!r}"
                raise refusal("probs", "must hold numbers", came, "Write them as float64.")
        if shards and columns != shards[0].columns:
            came = f"other columns in {str(path)!r} than in {str(files[0])!r}"
            raise refusal("probs", "must be shards with the same columns", came, _WIDE)
        n_classes = len(columns.classes)
        cells = (n_classes,) if columns.members is None else (len(columns.members), n_classes)
        dtype = np.result_type(*types)
        shards.append(_Table(path, (n_rows, *cells), dtype, columns.label is not None, columns))
    known = shards[0].columns
    # Decided once: what a label means must not depend on which rows are read with it.
    store = Shards.of(shards, classes=known.classes, members=known.members)
    first = store.read(0, 1)[1] if known.label is not None and store.n_samples else None
    if first is None or first.dtype.kind != "U":
        return store
    numbers = label_values(first.tolist(), known.classes).dtype.kind in "iu"
    return replace(store, shards=tuple(replace(shard, numbers=numbers) for shard in shards))


def _groups(metadata: Any, first: int, last: int) -> tuple[list[int], int, int]:
    """Row groups that hold these rows, and where the rows are in them."""
    groups, start, skipped = [], 0, 0
    for group in range(metadata.num_row_groups):
        end = start + metadata.row_group(group).num_rows
        if end <= first:
            skipped = end
        elif start < last:
            groups.append(group)
        start = end
    return groups, first - skipped, last - skipped


def _check_groups(path: Path, metadata: Any, groups: Sequence[int], row: int) -> None:
    """Refuse row groups too large to be unpacked, whatever little they are in the file."""
    found = [metadata.row_group(group) for group in groups]
    declared = sum(group.total_byte_size for group in found)
    check_memory(path, max(declared, row * sum(group.num_rows for group in found)))


def _arranged(path: Path, names: list[str]) -> _Columns:
    labels = [name for name in names if name.strip().lower() in ("label", "labels")]
    label = labels[0] if labels else None
    others = [name for name in names if name != label]
    pairs = wide_columns(others)
    place = dict(zip(pairs or [], others, strict=False))
    members = list(dict.fromkeys(member for member, _ in place))
    classes = list(dict.fromkeys(name for _, name in place))
    if not place or len(place) != len(others) or len(place) != len(members) * len(classes):
        shown = ", ".join(repr(name[:40]) for name in names[:12])
        came = f"the columns {shown} in {str(path)!r}"
        raise refusal("probs", "must have a column for every member and class, once", came, _WIDE)
    return _Columns(
        probs=tuple(place[member, name] for member in members for name in classes),
        label=label,
        members=None if members == [""] else tuple(members),
        classes=tuple(as_integers(classes)),
    )
