"""Files in, results out."""

from __future__ import annotations

from hullcal.io.reading import read
from hullcal.io.results import (
    from_json,
    read_json,
    schema,
    to_csv,
    to_json,
    write_csv,
    write_json,
)
from hullcal.io.source import Dataset
from hullcal.io.writing import check_output, write_atomic

__all__ = [
    "Dataset",
    "read",
    "to_json",
    "from_json",
    "write_json",
    "read_json",
    "schema",
    "to_csv",
    "write_csv",
    "check_output",
    "write_atomic",
]
