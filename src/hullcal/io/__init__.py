"""Files in, results out."""

from __future__ import annotations

from hullcal.files.writing import check_output, write_atomic
from hullcal.io.dataset import Dataset
from hullcal.io.reading import read
from hullcal.io.results_csv import to_csv, write_csv
from hullcal.io.results_json import from_json, read_json, to_json, write_json

__all__ = [
    "Dataset",
    "read",
    "to_json",
    "from_json",
    "write_json",
    "read_json",
    "to_csv",
    "write_csv",
    "check_output",
    "write_atomic",
]
