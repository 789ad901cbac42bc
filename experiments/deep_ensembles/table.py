"""Table 1: tests on calibration rows, measures on test rows, and the paper's numbers beside them."""

import csv
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import hullcal as hc
from experiments import named, tables
from experiments.deep_ensembles.training import Kind, predictions
from experiments.tables import Rows

ALPHA = 0.05
#: The authors' split into calibration and test rows.
SPLIT_SEED = 2022
MEASURES = {"conf": hc.ConfidenceECE, "cwise": hc.ClasswiseECE}
NULLS = ("paper", "recentered", "stacked", "refit")
#: Another number makes kept rows be made anew.
_FORM = 3

_PLACE = ("dataset", "architecture", "classifier")
#: A comparison has one line for a classifier and a measure; the paper's cells come first.
HEADINGS = (
    *("data", "net", "classifier"),
    *("accuracy of the average: paper", "ours", "ECE of the average: paper", "ours"),
    *("accuracy, weighted: paper", "ours", "ECE, weighted: paper", "ours"),
    *("rejected: paper", "as the authors", "null paper", "recentered", "stacked"),
    *("truth by the measure", "truth by likelihood"),
)
_DECIDED = HEADINGS.index("rejected: paper")


@dataclass(frozen=True)
class Setting:
    """Bins and resamples: as the authors ran it, and as one would today."""

    n_bins: int
    n_resamples: int
    #: Whether the authors' own way (their switches, COBYLA) is run as well.
    authors: bool


SETTINGS = (Setting(5, 100, True), Setting(10, 999, False))


def rows(kind: Kind, folder: Path, settings: Sequence[Setting], *, n_jobs: int, seed: int) -> Rows:
    """A row for every setting, from a file if the same predictions were tested before."""
    probs, digest = predictions(kind, folder)
    labels = np.load(folder / "labels.npy")
    made_of = {
        "sha256": digest,
        "labels": hashlib.sha256(labels.tobytes()).hexdigest(),
        "nulls": list(NULLS),
        "seed": seed,
        "form": _FORM,
    }
    found: Rows = []
    for setting in settings:
        kept = folder / f"{kind.file}_B{setting.n_bins}_D{setting.n_resamples}.json"
        known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        if any(known.get(name) != value for name, value in made_of.items()):
            began = time.perf_counter()
            known = {"classifier": kind.name} | row(probs, labels, setting, n_jobs, seed) | made_of
            known["seconds"] = time.perf_counter() - began
            hc.io.write_atomic(kept, json.dumps(known), force=True)
        found.append(known)
    return found


def row(
    probs: NDArray[np.floating],
    labels: NDArray[np.integer],
    setting: Setting,
    n_jobs: int,
    seed: int,
) -> dict[str, Any]:
    """All cells of a row: the first half of the authors' split is tested, the second judges."""
    first, second = train_test_split(np.arange(len(labels)), test_size=0.5, random_state=SPLIT_SEED)
    held, later = hc.ClassifierSet(probs[first]), hc.ClassifierSet(probs[second])
    truth = labels[second]
    found: dict[str, Any] = {
        "n_calibration": len(first),
        "n_test": len(second),
        "n_members": held.n_members,
        "n_classes": held.n_classes,
        "n_bins": setting.n_bins,
        "n_resamples": setting.n_resamples,
        "accuracy": later.accuracy(truth, weights="mean"),
    }
    options = {"n_resamples": setting.n_resamples, "alpha": ALPHA, "rng": seed, "n_jobs": n_jobs}
    for name, measure in MEASURES.items():
        g = measure(n_bins=setting.n_bins)
        found[f"ece_{name}"] = g(later.mean(), truth)
        for null in NULLS:
            test = hc.simulation.Test.named(named(f"{g.name}:{setting.n_bins}", null))
            result = test.run(held, labels[first], **options)
            found[f"p_{name}_{null}"] = result.pvalue
            doubts = [note for note in result.notes if note.code == "too_few_rows"]
            found[f"doubtful_{name}_{null}"] = bool(doubts)
        if setting.authors:
            scripts = hc.simulation.protocols.AUTHORS
            theirs = hc.calibration_test(
                held,
                labels[first],
                measure=scripts.measure(g),
                null=scripts.null(hc.nulls.Paper()),
                minimizer="cobyla",
                **options,
            )
            found[f"p_{name}_authors"] = scripts.smallest_level(theirs)
        # The weights are those of line 7, the same for all nulls.
        found[f"accuracy_{name}"] = later.accuracy(truth, weights=result.weights)
        found[f"weighted_ece_{name}"] = g(later.mix(result.weights), truth)
    likelihood = hc.truth_test(held, labels[first], **options)
    return found | {"p_truth": likelihood.pvalue, "evalue": likelihood.evalue}


@cache
def published() -> dict[tuple[str, str, str], dict[str, str]]:
    """The paper's Table 1, by data set, architecture and classifier."""
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return {(line["dataset"], line["architecture"], line["classifier"]): line for line in lines}


def write(found: Rows, path: Path) -> None:
    """Our rows as CSV, values to four places as in the paper, and a comparison for each measure."""
    names = [*_PLACE, "n_calibration", "n_test", "n_classes", "accuracy"]
    for measure in MEASURES:
        names.append(f"ece_{measure}")
        for null in (*NULLS, "authors"):
            told = (f"p_{measure}_{null}", f"doubtful_{measure}_{null}")
            names += [name for name in told if name in found[0]]
        names += [f"accuracy_{measure}", f"weighted_ece_{measure}"]
    names += ["p_truth", "evalue", "sha256"]
    lines = [[_cell(name, line[name]) for name in names] for line in found]
    tables.write_lines(lines, path, names)
    for measure in MEASURES:
        lines = [beside(line, measure) for line in found]
        tables.write_lines(lines, path.with_stem(f"{path.stem}_{measure}"), HEADINGS)


def beside(line: dict[str, Any], measure: str) -> list[str]:
    """The paper's cells and ours, decisions in words with our p-values."""
    place = (line["dataset"], line["architecture"], line["classifier"])
    theirs = published()[place]
    cells = list(place)
    for name in ("accuracy", f"ece_{measure}", f"accuracy_{measure}", f"weighted_ece_{measure}"):
        cells += [f"{float(value):.4f}".removeprefix("0") for value in (theirs[name], line[name])]
    cells.append(theirs[f"rejected_{measure}"])
    for null in ("authors", *NULLS):
        p = line.get(f"p_{measure}_{null}")
        doubtful = line.get(f"doubtful_{measure}_{null}", False)
        cells.append("" if p is None else _decision(p) + "?" * doubtful)
    return [*cells, _decision(line["p_truth"])]


def show(found: Rows, title: str) -> None:
    """The comparison in the terminal."""
    for measure in MEASURES:
        lines = [beside(line, measure) for line in found]
        tables.show_lines(lines, HEADINGS, title=f"{title}, ece_{measure}")
        for column in range(_DECIDED + 1, len(HEADINGS)):
            same = [line[_DECIDED] == line[column].split()[0] for line in lines if line[column]]
            if same:
                print(f"{HEADINGS[column]}: {sum(same)} of {len(same)} decisions are the paper's")
    print("?: too few rows for so many cells, the p-value may be too small")


def _decision(p: float) -> str:
    return f"{'yes' if p <= ALPHA else 'no'} ({f'{p:.3f}'.removeprefix('0')})"


def _cell(name: str, value: Any) -> str:
    if name.startswith("p_") or name == "evalue":
        return f"{value:.4g}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
