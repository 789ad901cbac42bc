"""Add the members of a set one by one; print, tabulate and draw its validity and its size.

    python -m experiments.valid_and_small predictions.npz --out docs/figures

The file holds `probs` (n_samples, n_members, n_classes), `labels`, and `members`, their names. Members
are added in the order of the file. The page "Valid and small" of the documentation shows the outcome
for 14 networks on the CIFAR-10 test images, whose predictions were published with Widmann et al.
(2019).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hullcal as hc
from experiments import named
from experiments.canvas import drawing
from experiments.tables import Rows, show_lines, write_lines

MEASURES = ("ece_conf", "ece_cwise")
#: Questions, and the null of their tests.
QUESTIONS = {"calibrated": "recentered", "truth": "refit"}
SIZES = ("tv_diameter", "generalized_hartley", "mutual_information", "upper_entropy")
HEADINGS = (
    *("members", "added"),
    *(
        heading
        for measure in MEASURES
        for heading in (f"best {measure}", *(f"p {question}" for question in QUESTIONS))
    ),
    *(name.replace("_", " ") for name in SIZES),
)
ALPHA = 0.05


def row_of(
    classifiers: hc.ClassifierSet, labels: np.ndarray, n_resamples: int, seed: int, n_jobs: int
) -> dict[str, Any]:
    """Validity and size of one set."""
    assert classifiers.members is not None
    row: dict[str, Any] = {"members": classifiers.n_members, "added": classifiers.members[-1]}
    options = {"n_resamples": n_resamples, "rng": seed, "n_jobs": n_jobs}
    for measure in MEASURES:
        row[measure] = hc.minimize(classifiers, labels, measure=measure, rng=seed).value
        for question, null in QUESTIONS.items():
            test = hc.simulation.Test.named(named(measure, null))
            row[f"{measure} {question}"] = test.run(classifiers, labels, **options).pvalue
    sizes = hc.uncertainty.summary(classifiers, n_jobs=n_jobs)
    return row | {name: sizes[name] for name in SIZES}


def line_of(row: dict[str, Any]) -> list[str]:
    """A row in the words of the documentation: values to four places, all else to three."""
    return [
        str(value) if name in ("members", "added") else f"{value:.{4 if name in MEASURES else 3}f}"
        for name, value in row.items()
    ]


def draw(rows: Rows, path: Path) -> None:
    """p-values above, sizes below, both against the number of members."""
    with drawing(path, height=5.0, width=6.3) as figure:
        valid, small = figure.subplots(2, 1, sharex=True)
        members = [row["members"] for row in rows]

        def line(ax: Any, name: str, label: str, style: str, colour: str, marker: str) -> None:
            values = [row[name] for row in rows]
            ax.plot(members, values, style, color=colour, marker=marker, label=label)

        for measure, colour, marker in zip(MEASURES, ("#0072B2", "#D55E00"), "os", strict=True):
            for question, style in zip(QUESTIONS, ("-", "--"), strict=True):
                label = f"{measure}, {question}"
                line(valid, f"{measure} {question}", label, style, colour, marker)
        colours = ("black", "#009E73", "#CC79A7", "#56B4E9")
        for name, marker, colour in zip(SIZES, "os^v", colours, strict=True):
            line(small, name, name.replace("_", " "), "-", colour, marker)
        valid.axhline(ALPHA, color="black", linewidth=0.8, linestyle=":")
        valid.text(members[0], ALPHA, r"$\alpha$ = .05", va="bottom")
        valid.set_yscale("log")
        valid.set_ylabel("p-value")
        small.set_ylabel("mean size (Hartley in bits)")
        small.set_xlabel("members")
        small.set_xticks(members)
        for ax in (valid, small):
            ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, add member by member, write."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.valid_and_small",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("predictions", type=Path, help=".npz with probs, labels and members")
    parser.add_argument("--out", type=Path, help="folder for the table and the figure")
    parser.add_argument("-D", "--resamples", type=int, default=199, metavar="D")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="threads; -1 for all cores")
    given = parser.parse_args(arguments)
    with np.load(given.predictions, allow_pickle=False) as data:
        classifiers = hc.ClassifierSet(data["probs"], members=data["members"])
        labels = data["labels"].astype(np.int64)
    rows = []
    for n_members in range(1, classifiers.n_members + 1):
        subset = classifiers.subset(slice(n_members))
        rows.append(row_of(subset, labels, given.resamples, given.seed, given.jobs))
        print(*line_of(rows[-1]), flush=True)
    lines = [line_of(row) for row in rows]
    show_lines(lines, HEADINGS, title="Validity and size")
    if given.out is not None:
        write_lines(lines, given.out / "valid_and_small.csv", HEADINGS)
        draw(rows, given.out / "valid_and_small.svg")


if __name__ == "__main__":
    main()
