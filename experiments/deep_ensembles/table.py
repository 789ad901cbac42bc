"""Table 1 as text and as CSV: our rows, and the paper's beside them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.deep_ensembles.rows import ALPHA, NULLS

Rows = list[dict[str, Any]]
PUBLISHED = Path(__file__).with_name("published.csv")
_PLACE = ("dataset", "architecture", "classifier")
_VALUES = ("accuracy", "ece_conf", "ece_cwise")


def published() -> dict[tuple[str, str, str], dict[str, str]]:
    """The paper's Table 1, by data set, architecture and classifier."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["dataset"], row["architecture"], row["classifier"]): row for row in rows}


def columns(rows: Rows) -> list[str]:
    """All that a row can have, in the order of Table 1."""
    names = [*_PLACE, "n_calibration", "n_test", "n_classes", *_VALUES]
    for measure in ("conf", "cwise"):
        nulls = [*NULLS, "authors"]
        names += [f"p_{measure}_{null}" for null in nulls if f"p_{measure}_{null}" in rows[0]]
        names += [f"accuracy_{measure}", f"weighted_ece_{measure}"]
    return [*names, "sha256"]


def write(rows: Rows, path: Path) -> None:
    """Our rows as CSV, values to four places as in the paper."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = columns(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        table.writerows([[_cell(name, row[name]) for name in names] for row in rows])


def write_beside(rows: Rows, path: Path) -> None:
    """What a reader compares: the paper's cells and ours, decisions in words."""
    theirs = published()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADINGS)
        for row in rows:
            table.writerow(beside(row, theirs[tuple(row[name] for name in _PLACE)]))


HEADINGS = (
    *("data", "net", "classifier", "acc.: paper", "ours"),
    *("ECE conf: paper", "ours", "ECE cwise: paper", "ours"),
    *("conf rejected: paper", "as the authors", "paper null", "recentered", "refit"),
    *("cwise rejected: paper", "as the authors", "paper null", "recentered", "refit"),
)


def beside(row: dict[str, Any], theirs: dict[str, str]) -> list[str]:
    """One line of the comparison."""
    cells = [str(row[name]) for name in _PLACE]
    for name in _VALUES:
        cells += [_short(float(theirs[name])), _short(row[name])]
    for measure in ("conf", "cwise"):
        cells.append(theirs[f"rejected_{measure}"])
        for null in ("authors", *NULLS):
            p = row.get(f"p_{measure}_{null}")
            doubtful = row.get(f"doubtful_{measure}_{null}", False)
            cells.append("" if p is None else _decision(p) + "?" * doubtful)
    return cells


def _decision(p: float) -> str:
    return f"{'yes' if p <= ALPHA else 'no'} ({p:.3f})".replace("0.", ".")


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def show(rows: Rows, title: str) -> None:
    """The comparison in the terminal."""
    theirs = published()
    lines = [beside(row, theirs[tuple(row[name] for name in _PLACE)]) for row in rows]
    print(f"\n{title}; a question mark: too few rows for so many cells, the p-value is too small")
    _print_table(HEADINGS, lines)
    weighted = ("accuracy_conf", "weighted_ece_conf", "accuracy_cwise", "weighted_ece_cwise")
    print("\nWeighted averages on the test rows, weights from the calibration rows: paper's / ours")
    _print_table(
        (*_PLACE, *weighted),
        [
            [
                *(str(row[name]) for name in _PLACE),
                *(
                    f"{_short(float(theirs[tuple(row[p] for p in _PLACE)][name]))} / {_short(row[name])}"
                    for name in weighted
                ),
            ]
            for row in rows
        ],
    )


def _print_table(headings: Sequence[str], lines: list[list[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(headings, *lines, strict=True)]
    for line in (headings, *lines):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def _cell(name: str, value: Any) -> str:
    if name.startswith("p_"):
        return f"{value:.4g}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
