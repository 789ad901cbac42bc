"""Add the members of a set one by one; print, tabulate and draw its validity and its size.

    python -m experiments.valid_and_small predictions.npz --out docs/figures

The file holds `probs` (n_samples, n_members, n_classes), `labels`, and `members`, their names. Members
are added in the order of the file. The page "Valid and small" of the documentation shows the outcome
for 14 networks on the CIFAR-10 test images, whose predictions were published with Widmann et al.
(2019).
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

import hullcal as hc

MEASURES = ("ece_conf", "ece_cwise")
NULLS = ("recentered", "refit")
SIZES = ("tv_diameter", "generalized_hartley", "mutual_information", "upper_entropy")
ALPHA = 0.05


def row_of(
    classifiers: hc.ClassifierSet, labels: np.ndarray, n_resamples: int, seed: int, n_jobs: int
) -> dict[str, Any]:
    """Validity and size of one set."""
    assert classifiers.members is not None
    row: dict[str, Any] = {"n_members": classifiers.n_members, "added": classifiers.members[-1]}
    row["accuracy"] = classifiers.accuracy(labels, weights="mean")
    for measure in MEASURES:
        best = hc.minimize(classifiers, labels, measure=measure, rng=seed)
        row[measure] = best.value
        for null in NULLS:
            result = hc.calibration_test(
                classifiers,
                labels,
                measure=measure,
                null=null,
                n_resamples=n_resamples,
                rng=seed,
                n_jobs=n_jobs,
            )
            row[f"{measure} {null}"] = result.pvalue
    sizes = hc.uncertainty.summary(classifiers, n_jobs=n_jobs)
    return row | {name: sizes[name] for name in SIZES}


def in_words(row: dict[str, Any]) -> str:
    """One line of the table in the terminal."""
    tests = "  ".join(f"{row[f'{m} {n}']:>6.3f}" for m in MEASURES for n in NULLS)
    values = "  ".join(f"{row[m]:.4f}" for m in MEASURES)
    sizes = "  ".join(f"{row[name]:.3f}" for name in SIZES)
    return f"{row['n_members']:>2} {row['added']:<14} {row['accuracy']:.3f}  {values}  {tests}  {sizes}"


def write_table(rows: list[dict[str, Any]], path: Path) -> None:
    """What the documentation includes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(
            [
                *("members", "added"),
                *("best ece_conf", "p calibrated", "p truth"),
                *("best ece_cwise", "p calibrated", "p truth"),
                *(name.replace("_", " ") for name in SIZES),
            ]
        )
        for row in rows:
            tests = [
                cell
                for measure in MEASURES
                for cell in (
                    f"{row[measure]:.4f}",
                    *(f"{row[f'{measure} {null}']:.3f}" for null in NULLS),
                )
            ]
            sizes = [f"{row[name]:.3f}" for name in SIZES]
            table.writerow([row["n_members"], row["added"], *tests, *sizes])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """p-values above, sizes below, both against the number of members."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Fixed names of elements and no date: the same rows give the same file.
    with mpl.rc_context({"svg.hashsalt": "hullcal", "font.size": 9}):
        figure = Figure(figsize=(6.3, 5.0), layout="constrained")
        valid, small = figure.subplots(2, 1, sharex=True)
        members = [row["n_members"] for row in rows]
        styles = zip(("#0072B2", "#D55E00"), MEASURES, ("o", "s"), strict=True)
        for colour, measure, marker in styles:
            for null, line in zip(NULLS, ("-", "--"), strict=True):
                valid.plot(
                    members,
                    [row[f"{measure} {null}"] for row in rows],
                    line,
                    color=colour,
                    marker=marker,
                    markersize=4,
                    label=f"{measure}, {null}",
                )
        valid.axhline(ALPHA, color="black", linewidth=0.8, linestyle=":")
        valid.text(members[0], ALPHA, r"$\alpha$ = .05", va="bottom")
        valid.set_yscale("log")
        valid.set_ylabel("p-value")
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4, "frameon": False}
        valid.legend(**above, fontsize="small", columnspacing=1.0)
        greys = zip(
            SIZES, ("o", "s", "^", "v"), ("black", "#009E73", "#CC79A7", "#56B4E9"), strict=True
        )
        for name, marker, colour in greys:
            values = [row[name] for row in rows]
            small.plot(
                members,
                values,
                color=colour,
                marker=marker,
                markersize=4,
                label=name.replace("_", " "),
            )
        small.set_ylabel("mean size (Hartley in bits)")
        small.set_xlabel("members")
        small.set_xticks(members)
        small.legend(**above, fontsize="small", columnspacing=1.0)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
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
    arguments = parser.parse_args()
    with np.load(arguments.predictions, allow_pickle=False) as data:
        classifiers = hc.ClassifierSet(data["probs"], members=data["members"])
        labels = data["labels"].astype(np.int64)
    print("   added          acc    best conf, cwise  p conf (2), p cwise (2)         sizes")
    rows = []
    for n_members in range(1, classifiers.n_members + 1):
        subset = classifiers.subset(slice(n_members))
        rows.append(row_of(subset, labels, arguments.resamples, arguments.seed, arguments.jobs))
        print(in_words(rows[-1]), flush=True)
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_table(rows, arguments.out / "valid_and_small.csv")
        draw(rows, arguments.out / "valid_and_small.svg")


if __name__ == "__main__":
    main()
