"""How do results become a table that a spreadsheet can open without running anything?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hullcal.files.spreadsheet import as_text, csv_line
from hullcal.files.writing import write_atomic
from hullcal.io.result_fields import entry_of
from hullcal.io.results_json import as_list
from hullcal.results import CalibrationTestResult, Result, adjust

__all__ = ["to_csv", "write_csv"]

_COLUMNS = (
    "kind",
    "measure",
    "null",
    "hypothesis",
    "statistic",
    "minimum",
    "critical_value",
    "pvalue",
    "adjusted_pvalue",
    "rejected",
    "alpha",
    "n_resamples",
    "seed",
    "n_samples",
    "n_members",
    "n_classes",
    "weights",
    "members",
    "adjusted_rejected",
)


def to_csv(results: Result | Sequence[Result]) -> str:
    """Write results as CSV, one line each.

    Parameters
    ----------
    results : result, or sequence of results

    Returns
    -------
    str
        With a header. `adjusted_pvalue` is Holm's over the tests of one null, and
        `adjusted_rejected` the decision by it; `rejected` is that of the test alone. `weights`
        are joined by semicolons; `members` are a JSON list. Text that a spreadsheet would take for a
        formula begins with an apostrophe.
    """
    listed = as_list(results)
    families: dict[Any, list[int]] = {}
    for i, result in enumerate(listed):
        if hasattr(result, "pvalue"):
            families.setdefault(getattr(result, "null", None), []).append(i)
    adjusted: dict[int, Any] = {}
    for family in families.values():
        values = adjust([listed[i] for i in family]).tolist()
        adjusted |= dict(zip(family, values, strict=True))
    lines = [csv_line(_COLUMNS)]
    for i, result in enumerate(listed):
        data = _row(entry_of(result)) | {"adjusted_pvalue": adjusted.get(i)}
        if isinstance(result, CalibrationTestResult):
            data["adjusted_rejected"] = adjusted[i] <= result.alpha
        lines.append(csv_line(_cell(data.get(column)) for column in _COLUMNS))
    return "".join(lines)


def write_csv(results: Result | Sequence[Result], path: Any, *, force: bool = False) -> None:
    """Write results to a CSV file (see `to_csv`), whole or not at all."""
    write_atomic(path, to_csv(results), force=force)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    """Bring the fields of every kind of result under the same columns."""
    row = dict(entry)
    if "test" in row:  # a classical test, which is of one classifier
        row |= {"measure": row["test"], "n_members": 1}
        row["n_resamples"] = len(row["null_distribution"]) or None
    if row["kind"] == "minimize":
        row |= {"statistic": row["value"], "minimum": row["value"]}
        row["n_members"] = len(row["weights"])
    if row.get("members") is not None:
        row["members"] = json.dumps(row["members"], ensure_ascii=False)
    for name in ("statistic", "minimum", "critical_value", "pvalue"):
        if name in row:
            row[name] = _Number(row[name])
    if "weights" in row:  # adding 0 takes the sign from a negative zero
        row["weights"] = _Number(";".join(repr(float(weight) + 0.0) for weight in row["weights"]))
    return row


class _Number(str):
    """A cell of digits, or a word for what has none; never a formula, whatever its sign."""

    __slots__ = ()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, _Number):
        return as_text(value)
    return str(value)
