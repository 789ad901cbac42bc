"""Writes the tables that pages show from the raw CSVs beside them: fewer columns, and words.

A table ``name.csv`` becomes ``name_shown.csv``. The raw ones stay as the studies wrote them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

FIGURES = Path(__file__).resolve().parent / "figures"

Record = dict[str, str]
Table = tuple[Sequence[str], Sequence[Sequence[str]]]

WORDS = {
    "as_claimed": "as claimed",
    "one_class": "one class",
    "runners_up": "runners-up exchanged",
}


def rate(text: str) -> str:
    """A share with as many digits as its study can bear: .085, 1."""
    value = float(text)
    return "1" if value == 1 else f"{value:.3f}".lstrip("0")


def grouped(number: str) -> str:
    """A whole number with its thousands apart."""
    return f"{int(number):,}"


def seconds(text: str) -> str:
    """A time to two digits, or three from ten seconds on."""
    value = float(text)
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def memory(text: str) -> str:
    """Memory beyond the input, in units of the input; nothing where it was not measured."""
    return f"{float(text):.2g}" if text else "not measured"


def spread_out(
    records: Iterable[Record],
    by: Sequence[str],
    column: str,
    value: str,
    show: Callable[[str], str],
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Records as a table with a column for every value of one field."""
    records = list(records)
    names = list(dict.fromkeys(each[column] for each in records))
    found = {(tuple(each[name] for name in by), each[column]): each[value] for each in records}
    keys = list(dict.fromkeys(key for key, _ in found))
    lines = [
        (*key, *(show(found[key, name]) if (key, name) in found else "" for name in names))
        for key in keys
    ]
    return names, lines


def nulls(records: list[Record]) -> Table:
    """A row for each world and measure, a column for each null."""
    names, lines = spread_out(records, ("world", "measure"), "null", "rejection_rate", rate)
    return ("data", "measure", *names), lines


def measures(records: list[Record]) -> Table:
    """A row for each number of members and truth, a column for each measure."""
    names, lines = spread_out(records, ("n_members", "truth"), "measure", "rejection_rate", rate)
    return ("members", "truth", *names), [
        (members, WORDS.get(truth, truth), *rates) for members, truth, *rates in lines
    ]


def _ran_by(each: Record) -> str:
    if each["engine"] == "dask":
        return f"{each['threads']} Dask workers"
    return f"{each['threads']} thread{'s' * (each['threads'] != '1')}"


def rows(records: list[Record]) -> Table:
    """Time and memory against the number of rows."""
    return ("rows", "run by", "seconds", "memory / input"), [
        (grouped(each["n"]), _ran_by(each), seconds(each["seconds"]), memory(each["private"]))
        for each in records
    ]


def classes(records: list[Record]) -> Table:
    """Time and memory against the number of classes."""
    return ("classes", "null", "resamples", "seconds", "memory / input"), [
        (
            *(grouped(each["k"]), each["null"], each["n_resamples"]),
            *(seconds(each["seconds"]), memory(each["private"])),
        )
        for each in records
    ]


def members(records: list[Record]) -> Table:
    """Time and memory against the number of members; two were packed when this was measured."""
    return ("members", "seconds", "memory / input"), [
        (
            each["m"] + " (packed)" * (each["m"] == "2"),
            seconds(each["seconds"]),
            memory(each["private"]),
        )
        for each in records
    ]


TABLES: dict[str, Callable[[list[Record]], Table]] = {
    "choosing/nulls": nulls,
    "choosing/measures": measures,
    "scale/rows": rows,
    "scale/classes": classes,
    "scale/members": members,
}


TABLE1 = [
    f"table1/table1_{run}_{by}" for run in ("B5_D100", "B10_D999") for by in ("conf", "cwise")
]


def table1(lines: list[list[str]]) -> Table:
    """Table 1, decisions first, the paper's number and ours in one cell, no column empty."""
    names, *rows = lines
    pairs = [i for i, name in enumerate(names) if name == "ours"]
    kept = [i for i in range(pairs[-1] + 1, len(names)) if any(row[i] for row in rows)]
    header = ["data, net", names[2]]
    header += ["in the authors' way" if names[i] == "as the authors" else names[i] for i in kept]
    header += [names[i - 1].replace(": paper", ": paper / here") for i in pairs]
    return header, [
        [
            *(f"{row[0]} {row[1]}".strip(), row[2]),
            *(row[i] for i in kept),
            *(f"{row[i - 1]} / {row[i]}" for i in pairs),
        ]
        for row in rows
    ]


def write(name: str, table: Table) -> None:
    """Write a table beside the raw one, and say where."""
    place = FIGURES / f"{name}_shown.csv"
    with open(place, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([table[0], *table[1]])
    print(place.relative_to(FIGURES.parent))


def main() -> None:
    """Write all of them."""
    for name, shown in TABLES.items():
        with open(FIGURES / f"{name}.csv", encoding="utf-8", newline="") as file:
            write(name, shown(list(csv.DictReader(file))))
    for name in TABLE1:
        with open(FIGURES / f"{name}.csv", encoding="utf-8", newline="") as file:
            write(name, table1(list(csv.reader(file))))


if __name__ == "__main__":
    main()
