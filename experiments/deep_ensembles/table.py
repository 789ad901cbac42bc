"""Table 1 as text and as CSV: our rows, and the paper's beside them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.deep_ensembles.rows import ALPHA, MEASURES, NULLS

Rows = list[dict[str, Any]]
PUBLISHED = Path(__file__).with_name("published.csv")
_PLACE = ("dataset", "architecture", "classifier")
#: A comparison has one line for a classifier and a measure; the paper's cells come first.
HEADINGS = (
    *("data", "net", "classifier"),
    *("accuracy of the average: paper", "ours", "ECE of the average: paper", "ours"),
    *("accuracy, weighted: paper", "ours", "ECE, weighted: paper", "ours"),
    *("rejected: paper", "as the authors", "null paper", "recentered", "refit"),
)


def published() -> dict[tuple[str, str, str], dict[str, str]]:
    """The paper's Table 1, by data set, architecture and classifier."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["dataset"], row["architecture"], row["classifier"]): row for row in rows}


def columns(rows: Rows) -> list[str]:
    """All that a row can have, in the order of Table 1."""
    names = [*_PLACE, "n_calibration", "n_test", "n_classes", "accuracy"]
    for measure in MEASURES:
        names.append(f"ece_{measure}")
        for null in (*NULLS, "authors"):
            told = (f"p_{measure}_{null}", f"doubtful_{measure}_{null}")
            names += [name for name in told if name in rows[0]]
        names += [f"accuracy_{measure}", f"weighted_ece_{measure}"]
    return [*names, "sha256"]


def write(rows: Rows, path: Path) -> None:
    """Our rows as CSV, values to four places as in the paper."""
    names = columns(rows)
    _write(path, names, [[_cell(name, row[name]) for name in names] for row in rows])


def write_beside(rows: Rows, path: Path) -> None:
    """What a reader compares, a file for each measure."""
    for measure in MEASURES:
        lines = [beside(row, measure) for row in rows]
        _write(path.with_stem(f"{path.stem}_{measure}"), HEADINGS, lines)


def beside(row: dict[str, Any], measure: str) -> list[str]:
    """The paper's cells and ours, decisions in words with our p-values."""
    place = tuple(str(row[name]) for name in _PLACE)
    theirs = published()[place]
    cells = list(place)
    values = ("accuracy", f"ece_{measure}", f"accuracy_{measure}", f"weighted_ece_{measure}")
    for name in values:
        cells += [_short(float(theirs[name])), _short(row[name])]
    cells.append(theirs[f"rejected_{measure}"])
    for null in ("authors", *NULLS):
        p = row.get(f"p_{measure}_{null}")
        doubtful = row.get(f"doubtful_{measure}_{null}", False)
        cells.append("" if p is None else _decision(p) + "?" * doubtful)
    return cells


def show(rows: Rows, title: str) -> None:
    """The comparison in the terminal."""
    for measure, kind in MEASURES.items():
        print(f"\n{title}, {kind.name}")
        lines = [beside(row, measure) for row in rows]
        cells = zip(HEADINGS, *lines, strict=True)
        widths = [max(len(cell) for cell in column) for column in cells]
        for line in (HEADINGS, *lines):
            padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            print("  ".join(padded).rstrip())
        decided = len(HEADINGS) - len(NULLS) - 2
        for column in range(decided + 1, len(HEADINGS)):
            same = [line[decided] == line[column].split()[0] for line in lines if line[column]]
            if same:
                print(f"{HEADINGS[column]}: {sum(same)} of {len(same)} decisions are the paper's")
    print("?: too few rows for so many cells, the p-value may be too small")


def _decision(p: float) -> str:
    return f"{'yes' if p <= ALPHA else 'no'} ({f'{p:.3f}'.removeprefix('0')})"


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def _cell(name: str, value: Any) -> str:
    if name.startswith("p_"):
        return f"{value:.4g}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _write(path: Path, headings: Sequence[str], lines: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(headings)
        table.writerows(lines)
