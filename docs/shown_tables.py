"""Writes the tables that pages show from the raw CSVs beside them: fewer columns, and words.

A table ``name.csv`` becomes ``name_shown.csv``. The raw ones stay as the studies wrote them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

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


LEVEL = "0.05"
PROTOCOLS = {"paper": "text", "authors": "scripts"}
#: The test of the truth by a measure has this name among nulls.
TRUTH = {"refit": "truth by the measure", "": "truth by likelihood"}
QUESTION = {"refit": "truth", "recentered": "calibrated"}


def chosen(records: Iterable[Record], **values: str) -> list[Record]:
    """The records that have these values."""
    return [each for each in records if all(each[name] == v for name, v in values.items())]


def setting(each: Record) -> str:
    """The measure with its bins, if it has any."""
    return each["measure"] + (f", B = {each['n_bins']}" if each["n_bins"] else "")


def digits(text: str, n: int = 3) -> str:
    """A number below 1 to some places: .085."""
    return f"{float(text):.{n}f}".removeprefix("0")


def interval(each: Record, name: str, end: str = "") -> str:
    """A number and its 95 % interval."""
    ends = (each[f"{end or name}_{side}"] for side in ("lower", "upper"))
    low, high = (f"{float(value):.3f}".removeprefix("0").replace("-0", "−") for value in ends)
    return f"{f'{float(each[name]):.3f}'.replace('-', '−').replace('0.', '.', 1)} ({low}, {high})"


def errors(records: list[Record]) -> Table:
    """Error rates at the usual level: a row for each measure, a column for each scenario."""
    records = [
        each | {"setting": setting(each), "where": f"{PROTOCOLS[each['part']]}: {each['scenario']}"}
        for each in chosen(records, alpha=LEVEL)
    ]
    names, lines = spread_out(records, ("setting",), "where", "error", rate)
    return ("measure", *names), lines


def switches(records: list[Record]) -> Table:
    """The largest change that each departure makes, of those whose interval leaves out 0."""
    header = ("departure of the scripts", "where", "text", "with it", "change")
    lines = []
    for part in dict.fromkeys(each["part"] for each in records):
        certain = [
            each
            for each in chosen(records, part=part, alpha="0.21")
            if float(each["change_lower"]) > 0 or float(each["change_upper"]) < 0
        ]
        if certain:
            most = max(certain, key=lambda each: abs(float(each["change"])))
            where = f"{most['scenario']}, {setting(most)}"
            errors = (rate(most["error_paper"]), rate(most["error"]))
            lines.append((part.replace("_", " "), where, *errors, interval(most, "change")))
        else:
            lines.append((part.replace("_", " "), "nowhere beyond noise", "", "", ""))
    return header, lines


def candidates(records: list[Record]) -> Table:
    """Nulls that were tried: a row for each, a column for each place and measure."""
    records = [
        each
        | {
            "where": f"{each['place']}: {each['measure'].removeprefix('ece_')}",
            "null": TRUTH.get(each["null"], each["null"]),
        }
        for each in chosen(records, alpha=LEVEL)
    ]
    names, lines = spread_out(records, ("null",), "where", "rejection_rate", rate)
    return ("null", *names), lines


def by_classes(records: list[Record]) -> Table:
    """Levels: a row for each number of classes, a column for each measure and null."""
    records = [
        each | {"test": f"{each['measure']}: {TRUTH.get(each['null'], each['null']).split()[0]}"}
        for each in chosen(records, alpha=LEVEL)
    ]
    names, lines = spread_out(records, ("n_classes",), "test", "rejection_rate", rate)
    return ("K", *names), lines


def axes(records: list[Record]) -> Table:
    """Mean power over the cells: a row for each null, a column for each measure."""
    columns = tuple(dict.fromkeys(each["measure"] for each in records))
    lines = []
    for null in dict.fromkeys(each["null"] for each in records):
        line = [TRUTH.get(null, null)]
        for measure in columns:
            rates = [
                float(r["rejection_rate"]) for r in chosen(records, null=null, measure=measure)
            ]
            line.append(digits(str(sum(rates) / len(rates)), 2))
        lines.append(line)
    return ("null", *columns), lines


def networks(records: list[Record]) -> Table:
    """The best calibrated network, the most accurate one, and the average of all."""
    *alone, average = records
    best = min(alone, key=lambda each: float(each["ece_conf"]))
    accurate = max(alone, key=lambda each: float(each["accuracy"]))
    named = {
        f"{best['network']}, the best calibrated": best,
        f"{accurate['network']}, the most accurate": accurate,
        "average of all": average,
    }
    return ("", "accuracy", "confidence", "log score", "ece_conf", "ece_cwise"), [
        (
            name,
            *(digits(each[column]) for column in ("accuracy", "confidence", "log_score")),
            *(digits(each[column], 4) for column in ("ece_conf", "ece_cwise")),
        )
        for name, each in named.items()
    ]


def whole(records: list[Record]) -> Table:
    """p-values of the whole set: a row for each test, a column for each measure."""
    shown = []
    for each in records:
        told = interval(each, "p")
        if each["evalue"]:
            told += f"; e-value {float(each['evalue']):.1e}"
        shown.append(each | {"test": TRUTH.get(each["null"], each["null"]), "told": told})
    names, lines = spread_out(shown, ("test",), "measure", "told", str)
    return ("test", *names), lines


def splits(records: list[Record]) -> Table:
    """Combinations chosen on one half and judged on the other."""
    header = ("chosen", "accuracy", "log score", "ece_conf", "ece_cwise")
    header += ("rejected by ece_conf", "by ece_cwise")
    names = {"average": "the average", "best network": "the best network by log score"}
    return header, [
        (
            names.get(each["way"], f"smallest {each['way']}"),
            *(digits(each[column]) for column in ("accuracy", "log_score")),
            *(digits(each[column], 4) for column in ("ece_conf", "ece_cwise")),
            *(each[f"{measure}_rejected"] for measure in ("ece_conf", "ece_cwise")),
        )
        for each in records
    ]


def groups(records: list[Record]) -> Table:
    """Validity and size of parts of the set."""
    header = ("set", "members", "smallest ece_conf", "p calibrated", "p truth")
    return (*header, "tv diameter", "upper entropy, nats"), [
        (
            *(each["set"], each["n_members"], digits(each["ece_conf"], 4)),
            *(digits(each[f"ece_conf_{null}_p"], 2) for null in ("recentered", "refit")),
            *(digits(each[size]) for size in ("tv_diameter", "upper_entropy")),
        )
        for each in records
    ]


def growing(records: list[Record]) -> Table:
    """Validity and size as members join."""
    header = ["members", "added"]
    for measure in ("ece_conf", "ece_cwise"):
        header += [f"best {measure}", "p calibrated", "p truth"]
    sizes = ("tv_diameter", "generalized_hartley", "mutual_information", "upper_entropy")
    lines = []
    for each in records:
        line = [each["n_members"], each["set"]]
        for measure in ("ece_conf", "ece_cwise"):
            line.append(digits(each[measure], 4))
            line += [digits(each[f"{measure}_{null}_p"]) for null in ("recentered", "refit")]
        lines.append([*line, *(digits(each[size]) for size in sizes)])
    return (*header, *(size.replace("_", " ") for size in sizes)), lines


def distances(records: list[Record]) -> Table:
    """How far people are from what the networks have."""
    bounds = ("0.01", "0.05", "0.1")
    return ("", "mean", *(f"share within {digits(bound, 2)}" for bound in bounds)), [
        (
            each["distance_to"],
            digits(each["mean"]),
            *(digits(each[f"within {bound}"]) for bound in bounds),
        )
        for each in chosen(records, images="all")
    ]


def origins(records: list[Record]) -> Table:
    """Median p-values by where labels come from."""
    shown = []
    for key in dict.fromkeys((r["labels"], r["measure"], r["null"]) for r in records):
        labels, measure, null = key
        some = chosen(records, labels=labels, measure=measure, null=null)
        middle = median(float(each["p"]) for each in some)
        test = f"{measure}: {QUESTION[null]}"
        shown.append({"labels": labels, "test": test, "p": digits(str(middle), 2)})
    names, lines = spread_out(shown, ("labels",), "test", "p", str)
    return ("labels", *names), lines


TABLES: dict[str, Callable[[list[Record]], Table]] = {
    "type_errors/figure1": errors,
    "type_errors/switches": switches,
    "type_errors/candidates": candidates,
    "type_errors/classes": by_classes,
    "type_errors/nulls_axes": axes,
    "cifar10_networks/networks": networks,
    "cifar10_networks/whole": whole,
    "cifar10_networks/splits": splits,
    "cifar10_networks/groups": groups,
    "cifar10_networks/growing": growing,
    "cifar10_networks/human_distances": distances,
    "cifar10_networks/human_labels": origins,
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
