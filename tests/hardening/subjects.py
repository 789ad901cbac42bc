"""Everything that writes: what it is called with, and what it must leave behind."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hullcal as hc
from hullcal.cli import run as program

__all__ = ["SUBJECTS", "Refused", "Subject", "predictions"]


class Refused(Exception):
    """A command ended with a code that is not 0; holds the code and what was said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {said}")
        self.code, self.said = code, said


@dataclass(frozen=True)
class Subject:
    """One way to write files.

    Attributes
    ----------
    act : callable
        act(folder, again) writes into the folder; `again` says that it goes on after a fault, as far
        as it knows how to.
    products : tuple of str
        Files that are whole or not there, under the folder.
    replaces : bool
        Whether it is run over older files as well, which a fault must leave as they were.
    command : bool
        Whether it ends with exit codes and words, and not with exceptions.
    journal : str or None
        The folder in which finished work is kept.
    """

    act: Callable[[Path, bool], Any]
    products: tuple[str, ...]
    replaces: bool = True
    command: bool = False
    journal: str | None = None


@functools.cache
def predictions() -> tuple[Any, Any]:
    """Three members around a truth, and labels from it."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=40)
    probs = 0.8 * truth[:, None] + 0.2 * rng.dirichlet([1, 1, 1], size=(40, 3))
    return probs, np.array([rng.choice(3, p=p) for p in truth])


@functools.cache
def _result() -> Any:
    return hc.calibration_test(*predictions(), n_resamples=19, rng=1)


def _json(folder: Path, again: bool) -> None:
    hc.io.write_json([_result()], folder / "r.json", force=(folder / "r.json").exists())


def _csv(folder: Path, again: bool) -> None:
    hc.io.write_csv([_result()], folder / "r.csv", force=(folder / "r.csv").exists())


def _page(folder: Path, again: bool) -> None:
    assessed = hc.assessment.assess(*predictions(), n_resamples=19, rng=1)
    path = folder / "r.html"
    hc.io.write_atomic(path, hc.report.render(assessed), force=path.exists())


def _study(folder: Path, again: bool) -> None:
    grid = hc.simulation.Grid(
        scenario=("S1", "S3"),
        measure="ece_conf:5",
        minimizer="pairwise:8",
        **{"n_samples": 10, "n_members": 2, "n_classes": 2, "n_resamples": 19, "n_datasets": 3},
        alpha=0.5,
    )
    how = _going_on(folder / "study", again)
    hc.simulation.run(grid, folder=folder / "study", n_jobs=1, **dict.fromkeys(how, True))


def _going_on(study: Path, again: bool) -> list[str]:
    """Resume what has a journal, start over where there is something else."""
    if again and (study / "journal.jsonl").exists():
        return ["resume"]
    return ["force"] if (study / "tests.csv").exists() else []


def _test(folder: Path, again: bool) -> None:
    found = hc.calibration_test(*predictions(), n_resamples=99, rng=1, journal=folder / "journal")
    path = folder / "r.json"
    hc.io.write_json([found], path, force=path.exists())


def _call(*words: Any) -> None:
    """Run the program in this process."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            program([str(word) for word in words])
    except SystemExit as end:
        if end.code:
            raise Refused(int(end.code), said.getvalue()) from end


def _input(folder: Path) -> Path:
    """Predictions beside the folder, which the faulty disk does not hold."""
    path = folder.with_name("predictions.npz")
    if not path.exists():
        probs, labels = predictions()
        np.savez(path, probs=probs, labels=labels)
    return path


def _command(name: str, *words: Any, **outputs: str) -> Callable[[Path, bool], None]:
    def act(folder: Path, again: bool) -> None:
        files = [word for option, to in outputs.items() for word in (f"--{option}", folder / to)]
        force = ["--force"] if any((folder / to).exists() for to in outputs.values()) else []
        _call(name, _input(folder), *words, "--seed", 1, *files, *force)

    return act


def _kept(folder: Path, again: bool) -> None:
    words = ["-D", 19, "--seed", 1, "--jobs", 1, "--format", "json", "--journal", folder / "kept"]
    words += ["--output", folder / "r.json"]
    words += ["--force"] if (folder / "r.json").exists() else []
    # As the message says: with --resume if there is a journal, and otherwise as before.
    kept = again and any((folder / "kept").rglob("journal.jsonl"))
    _call("test", _input(folder), *words, *["--resume"] * kept)


def _simulate(folder: Path, again: bool) -> None:
    words = ["--scenario", "S1", "-m", "ece_conf", "-N", 10, "-M", 2, "-K", 2, "-R", 3, "-D", 19]
    words += ["--minimizer", "pairwise:8", "--alpha", 0.5, "--jobs", 1]
    how = [f"--{name}" for name in _going_on(folder / "study", again)]
    _call("simulate", *words, "--output", folder / "study", *how)


_TABLES = tuple(f"study/{name}" for name in hc.simulation.study.NAMES)
_OUTPUTS = {"output": "r.json", "report": "r.html"}

SUBJECTS = {
    "results as JSON": Subject(_json, ("r.json",)),
    "results as CSV": Subject(_csv, ("r.csv",)),
    "report": Subject(_page, ("r.html",)),
    "study": Subject(_study, _TABLES, journal="study"),
    "journal of a test": Subject(_test, ("r.json",), journal="journal"),
    "hullcal test": Subject(
        _command("test", "-D", 19, "--jobs", 1, "--format", "json", **_OUTPUTS),
        ("r.json", "r.html"),
        command=True,
    ),
    "hullcal test --journal": Subject(_kept, ("r.json",), journal="kept", command=True),
    "hullcal weights": Subject(_command("weights", output="w.txt"), ("w.txt",), command=True),
    "hullcal simulate": Subject(_simulate, _TABLES, journal="study", command=True),
}


@contextlib.contextmanager
def quiet() -> Any:
    """Few resamples and few rows have their notes, which are not the subject here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        yield


def files_in(folder: Path) -> dict[str, bytes]:
    """All that is there, by name; locks aside, which stay by design."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def n_open() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))
