"""What a study found, as tables in the terminal and as tidy files."""

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]


def where(rows: Rows, **values: Any) -> Rows:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def column(rows: Rows, name: str) -> list[Any]:
    """One value of each row."""
    return [row[name] for row in rows]


def write(rows: Rows, path: Path, columns: Sequence[str] | None = None) -> None:
    """A line for each row; a parameter that plays no part is left empty."""
    names = tuple(rows[0]) if columns is None else columns
    write_lines([[_short(row[name]) for name in names] for row in rows], path, names)


def write_lines(lines: Sequence[Sequence[Any]], path: Path, headings: Sequence[str]) -> None:
    """Lines as they are, under headings that need not differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(headings)
        table.writerows(lines)
    print(f"wrote {path}")


def show(rows: Rows, columns: Sequence[str], *, title: str) -> None:
    """Aligned columns; numbers with three digits."""
    show_lines([[_plain(row[column]) for column in columns] for row in rows], columns, title=title)


def show_lines(lines: Sequence[Sequence[str]], headings: Sequence[str], *, title: str) -> None:
    """Text in aligned columns."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    print(f"\n{title}")
    for line in (headings, *lines):
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    print(flush=True)


def interval(row: dict[str, Any], name: str, digits: int = 3) -> str:
    """A number with its 95 % interval; that of `error_rate` stands in `error_lower` and `error_upper`.

    >>> interval({"error": 0.05, "error_lower": 0.038, "error_upper": 0.065}, "error")
    '.050 (.038, .065)'
    """
    end = name.removesuffix("_rate")
    values = (row[name], row[f"{end}_lower"], row[f"{end}_upper"])
    middle, low, high = (f"{value:.{digits}f}".replace("0.", ".", 1) for value in values)
    return f"{middle} ({low}, {high})"


def with_intervals(rows: Rows, *names: str, digits: int = 3) -> Rows:
    """Rows whose numbers of these names are replaced by the text of `interval`."""
    return [row | {name: interval(row, name, digits) for name in names} for row in rows]


def timed(name: str, call: Callable[[], Any]) -> Any:
    """What a call gives, after printing how long it took."""
    began = time.perf_counter()
    found = call()
    print(f"{name} took {in_words(time.perf_counter() - began)}", flush=True)
    return found


def in_words(seconds: float) -> str:
    """A time for people.

    >>> in_words(4000)
    '1 h 6 min'
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
