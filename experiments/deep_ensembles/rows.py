"""One row of Table 1: the tests of a classifier on calibration rows, its measures on test rows."""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import hullcal as hc
from experiments.deep_ensembles.classifiers import Kind, predictions
from hullcal.engines.local import LocalData
from hullcal.minimizers import Cobyla
from hullcal.simulation import protocols

ALPHA = 0.05
#: The authors' split into calibration and test rows.
SPLIT_SEED = 2022
MEASURES = {"conf": hc.ConfidenceECE, "cwise": hc.ClasswiseECE}
NULLS = ("paper", "recentered", "refit")
#: Another number makes kept rows be made anew.
_FORM = 1


@dataclass(frozen=True)
class Setting:
    """Bins and resamples: as the authors ran it, and as one would today."""

    n_bins: int
    n_resamples: int
    #: Whether the authors' own way (their switches, COBYLA) is run as well.
    authors: bool


SETTINGS = (Setting(5, 100, True), Setting(10, 999, False))


@dataclass(frozen=True)
class Halves:
    """Calibration rows, checked and packed once for all tests, and test rows."""

    held: LocalData
    later: hc.ClassifierSet
    later_labels: NDArray[np.integer]
    average: NDArray[np.floating]

    @classmethod
    def of(cls, probs: NDArray[np.floating], labels: NDArray[np.integer]) -> "Halves":
        """The authors' split."""
        calibration, test = train_test_split(
            np.arange(len(labels)), test_size=0.5, random_state=SPLIT_SEED
        )
        held = LocalData(*hc.ClassifierSet.with_labels(probs[calibration], labels[calibration]))
        later = hc.ClassifierSet(probs[test])
        return cls(held, later, labels[test], later.mean())


def rows(
    kind: Kind, folder: Path, settings: Sequence[Setting], *, n_jobs: int, seed: int = 0
) -> list[dict[str, Any]]:
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
    found: list[dict[str, Any]] = []
    halves: Halves | None = None
    for setting in settings:
        kept = folder / f"{kind.file}_B{setting.n_bins}_D{setting.n_resamples}.json"
        if kept.exists():
            known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
            if {name: known.get(name) for name in made_of} == made_of:
                found.append(known)
                continue
        began = time.perf_counter()
        halves = Halves.of(probs, labels) if halves is None else halves
        made = _row(kind, halves, setting, n_jobs, seed) | made_of
        made["seconds"] = time.perf_counter() - began
        unfinished = kept.with_suffix(".part")
        unfinished.write_text(json.dumps(made), encoding="utf-8")
        os.replace(unfinished, kept)
        found.append(made)
    return found


def _row(kind: Kind, halves: Halves, setting: Setting, n_jobs: int, seed: int) -> dict[str, Any]:
    """All cells of a row."""
    held, later, labels = halves.held, halves.later, halves.later_labels
    found: dict[str, Any] = {
        "classifier": kind.name,
        "n_calibration": held.n_samples,
        "n_test": len(labels),
        "n_members": held.n_members,
        "n_classes": held.n_classes,
        "n_bins": setting.n_bins,
        "n_resamples": setting.n_resamples,
        "accuracy": later.accuracy(labels, weights="mean"),
    }
    for name, measure in MEASURES.items():
        g = measure(n_bins=setting.n_bins)
        found[f"ece_{name}"] = g(halves.average, labels)
        found |= _tests(name, g, setting, held, n_jobs, seed)
        weights = np.array(found[f"weights_{name}"])
        found[f"accuracy_{name}"] = later.accuracy(labels, weights=weights)
        found[f"weighted_ece_{name}"] = g(later.mix(weights), labels)
    return found


def _tests(
    name: str,
    g: Any,
    setting: Setting,
    held: LocalData,
    n_jobs: int,
    seed: int,
) -> dict[str, Any]:
    """p-values of all nulls; the weights are those of line 7, the same for all of them."""
    found: dict[str, Any] = {}
    common = {
        "n_resamples": setting.n_resamples,
        "alpha": ALPHA,
        "rng": seed,
        "n_jobs": n_jobs,
        "engine": hc.engines.Opened(held),
    }
    for null in NULLS:
        result = hc.calibration_test((), (), measure=g, null=null, **common)
        found[f"p_{name}_{null}"] = result.pvalue
        found[f"doubtful_{name}_{null}"] = result.doubtful
        found[f"weights_{name}"] = result.weights.tolist()
    found[f"statistic_{name}"] = result.statistic
    if setting.authors:
        protocol = protocols.AUTHORS
        result = hc.calibration_test(
            (),
            (),
            measure=protocol.measure(g),
            null=protocol.null(hc.nulls.Paper()),
            minimizer=Cobyla(),
            **common,
        )
        found[f"p_{name}_authors"] = protocol.smallest_level(result)
    return found
