"""What a study found, as a table in the terminal and as a tidy file."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.type_errors.running import Rows

#: What identifies a rate, and the rate: the columns of every file of rates.
RATE_COLUMNS = (
    *("part", "scenario", "n_samples", "n_members", "n_classes", "spread", "strength"),
    *("protocol", "measure", "n_bins", "null", "minimizer", "alpha", "kind"),
    *("error", "error_lower", "error_upper"),
    *("rejection_rate", "rejection_lower", "rejection_upper", "n_datasets"),
)


def write(rows: Rows, path: Path, columns: Sequence[str] = RATE_COLUMNS) -> None:
    """A line for each row; a parameter that plays no part is left empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows([_short(row[column]) for column in columns] for row in rows)
    print(f"wrote {path}")


def show(rows: Rows, columns: Sequence[str], *, title: str) -> None:
    """Aligned columns; rates with three decimals."""
    lines = [columns, *([_plain(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n{title}")
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    print(flush=True)


def setting(row: dict[str, Any]) -> str:
    """The measure with its bins, where it has any: "ece_conf:5"."""
    return row["measure"] if row["n_bins"] is None else f"{row['measure']}:{row['n_bins']}"


def interval(row: dict[str, Any], name: str = "error") -> str:
    """A rate with its 95 % interval.

    >>> interval({"error": 0.05, "error_lower": 0.038, "error_upper": 0.065})
    '.050 (.038, .065)'
    """
    ends = (row[name], row[_end(name, "lower")], row[_end(name, "upper")])
    middle, low, high = (f"{value:.3f}".replace("0.", ".", 1) for value in ends)
    return f"{middle} ({low}, {high})"


def difference(changed: dict[str, Any], plain: dict[str, Any]) -> dict[str, float]:
    """Newcombe's 95 % interval for the change of an error rate, from Wilson's of both.

    It is meant for independent data sets; where both rates come from the same ones, as with another
    search, it is wider than need be.
    """
    change = changed["error"] - plain["error"]
    below = changed["error"] - changed["error_lower"], plain["error_upper"] - plain["error"]
    above = changed["error_upper"] - changed["error"], plain["error"] - plain["error_lower"]
    return {
        "change": change,
        "change_lower": change - math.hypot(*below),
        "change_upper": change + math.hypot(*above),
    }


def _end(name: str, end: str) -> str:
    return f"{name.removesuffix('_rate')}_{end}"


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
