"""What a study leaves in its folder; the same bytes for the same study, however it was run."""

from __future__ import annotations

import importlib
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io import write_atomic
from hullcal.io.results import versions
from hullcal.io.writing import as_text, csv_line

if TYPE_CHECKING:
    from hullcal.simulation.grid import Grid
    from hullcal.simulation.study import Study

__all__ = ["NAMES", "as_array", "configuration", "rates_csv", "tests_csv", "write"]

NAMES = ("tests.csv", "tests.parquet", "rates.csv", "manifest.json")
#: Numbers that are whole where there are any.
_WHOLE = "n_bins"
_OPTIONS = {
    "n_samples": "--samples",
    "n_members": "--members",
    "n_classes": "--classes",
    "n_datasets": "--datasets",
    "n_resamples": "--resamples",
}


def configuration(grid: Grid) -> dict[str, Any]:
    """All that a number depends on: the grid, and the versions of what computes."""
    return {**grid.configuration(), **versions()}


def write(study: Study, folder: Path) -> None:
    """Write everything, each file whole or not at all; what was there is replaced."""
    contents: dict[str, str | bytes] = {
        "tests.csv": tests_csv(study),
        "rates.csv": rates_csv(study.rates()),
        "manifest.json": manifest(study.grid),
    }
    parquet = _parquet(study)
    if parquet is not None:
        contents["tests.parquet"] = parquet
    for name, content in contents.items():
        write_atomic(folder / name, content, force=True)


def manifest(grid: Grid) -> str:
    """How to get the same numbers again. It says no times, so that it is the same again, too."""
    content = {"configuration": configuration(grid), "command": command(grid)}
    return json.dumps(content, indent=2) + "\n"


def command(grid: Grid) -> str | None:
    """The command that runs this grid; None if a measure or search has no name there."""
    words = ["hullcal", "simulate"]
    for name, value in grid.configuration().items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                return None
            words += [_OPTIONS.get(name, f"--{name}"), str(each)]
    return shlex.join(words)


def tests_csv(study: Study) -> str:
    """One line for each test."""
    columns = [
        [_cell(value, whole=name == _WHOLE) for value in column.tolist()]
        for name, column in study.tests.items()
    ]
    return _csv(list(study.tests), list(zip(*columns, strict=True)))


def rates_csv(rows: Sequence[dict[str, Any]]) -> str:
    """One line for each cell, way of testing and level."""
    return _csv(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def as_array(values: Sequence[Any]) -> NDArray[Any]:
    """Text, or numbers with NaN for those that are missing."""
    if any(value is None for value in values):
        return np.array([math.nan if value is None else float(value) for value in values])
    return np.array(values)


def _cell(value: Any, *, whole: bool = False) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return as_text(value)
    return str(int(value)) if whole else str(value)


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(csv_line(cells) for cells in (header, *rows))


def _parquet(study: Study) -> bytes | None:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        return None
    # A number that has no meaning is missing there.
    columns = {
        name: arrow.array(column, from_pandas=True)
        if column.dtype.kind == "f"
        else arrow.array(column.tolist())
        for name, column in study.tests.items()
    }
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())
