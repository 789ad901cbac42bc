"""Everything that writes: what it is called with, and what it must leave behind."""

import contextlib
import functools
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import hullcal as hc
from hullcal.cli import run as program

JOURNAL = "journal.jsonl"


class Refused(Exception):
    """A command ended with a code that is not 0; holds the code and what was said."""

    def __init__(self, code, said):
        super().__init__(f"exit code {code}: {said}")
        self.code, self.said = code, said


@dataclass(frozen=True)
class Subject:
    """One way to write files.

    `act(folder, again)` writes into the folder; `again` says that it goes on after a fault, as far as
    it knows how to. `products` are whole or not there; `journal` is the folder of finished work. A
    `command` ends with exit codes and words, and not with exceptions.
    """

    act: Callable[[Path, bool], None]
    products: tuple[str, ...]
    journal: str | None = None
    command: bool = False


@functools.cache
def predictions(n=40):
    """Three members around a truth, and labels from it."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=n)
    probs = 0.8 * truth[:, None] + 0.2 * rng.dirichlet([1, 1, 1], size=(n, 3))
    return probs, np.array([rng.choice(3, p=p) for p in truth])


@functools.cache
def _result():
    return hc.calibration_test(*predictions(), n_resamples=19, rng=1)


def _json(folder, again):
    hc.io.write_json([_result()], folder / "r.json", force=(folder / "r.json").exists())


def _test(folder, again):
    found = hc.calibration_test(*predictions(), n_resamples=99, rng=1, journal=folder / "journal")
    hc.io.write_json([found], folder / "r.json", force=(folder / "r.json").exists())


def _command(line, products, journal=None):
    """The program in this process; goes on as its messages say."""

    def act(folder, again):
        # Predictions lie beside the folder, which the faulty disk does not hold.
        data = folder.with_name("predictions.npz")
        if not data.exists():
            np.savez(data, probs=predictions()[0], labels=predictions()[1])
        words = line.format(data=data, folder=folder).split(" ")
        resumed = again and journal is not None and any((folder / journal).rglob(JOURNAL))
        old = any((folder / product).exists() for product in products)
        # The folder of a study is its journal and its output: it is gone on with, or begun anew.
        words += ["--resume"] * resumed + ["--force"] * (
            old and not (resumed and journal == "study")
        )
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                program(words)
        except SystemExit as end:
            if end.code:
                raise Refused(int(end.code), said.getvalue()) from end

    return Subject(act, products, journal, command=True)


_TESTED = (
    "test {data} --question calibrated -D 19 --alpha 0.1 --seed 1 --jobs 1 --format json "
    "--output {folder}/r.json"
)
_STUDIED = (
    "simulate --scenario S1 --test calibrated:ece_conf:paper:pairwise:8 -N 10 -M 2 -K 2 -R 3 -D 19 "
    "--alpha 0.5 --jobs 1 --output {folder}/study"
)
SUBJECTS = {
    "results as JSON": Subject(_json, ("r.json",)),
    "journal of a test": Subject(_test, ("r.json",), "journal"),
    "hullcal test": _command(_TESTED + " --report {folder}/r.html", ("r.json", "r.html")),
    "hullcal test --journal": _command(_TESTED + " --journal {folder}/kept", ("r.json",), "kept"),
    "hullcal weights": _command("weights {data} --seed 1 --output {folder}/w.txt", ("w.txt",)),
    "hullcal simulate": _command(
        _STUDIED, tuple(f"study/{name}" for name in hc.simulation.study.NAMES), "study"
    ),
}


@contextlib.contextmanager
def quiet():
    """Few resamples and few rows have their notes, which are not the subject here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        yield


def files_in(folder):
    """All that is there, by name; locks aside, which stay by design."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }
