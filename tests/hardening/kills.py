"""A run is killed at moments that nobody chose, and resumed: does it end as if it had not been?"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hardening.subjects import files_in, predictions

__all__ = ["RUNS", "SIGNALS", "USUAL", "Kills", "kill_often"]

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: How the program ends once it minds the signal, and how the system ends it before.
_CODES = {
    signal.SIGKILL: (-9, -9),
    signal.SIGTERM: (4, -15),
    signal.SIGINT: (130, -2),
}
_SOON = 0.6


@dataclass(frozen=True)
class Run:
    """A command that keeps a journal, run inside the folder to which it writes.

    Attributes
    ----------
    words : str
        Its arguments.
    again : str
        Further ones where there is a journal.
    journals : str
        The folder of journals.
    last : str
        What it writes near its end.
    """

    words: str
    again: str
    journals: str
    last: str


RUNS = {
    "simulate": Run(
        "simulate --scenario calibrated -m ece_conf -N 60 -R 800 --jobs 2 --output study",
        " --resume",
        journals="study",
        last="study/rates.csv",
    ),
    # Without workers, whose start takes longer than all of its blocks.
    "small study": Run(
        "simulate --scenario calibrated -m ece_conf -N 60 -R 600 -D 39 --jobs 1 --output study",
        " --resume",
        journals="study",
        last="study/rates.csv",
    ),
    "test": Run(
        "test ../predictions.npz -D 4000 --seed 1 --jobs 2 --format json --output r.json "
        "--report r.html --journal kept",
        " --resume --force",
        journals="kept",
        last="r.json",
    ),
}
#: The runs that take turns where none is named.
USUAL = ("simulate", "test")


@dataclass
class Kills:
    """What happened.

    Attributes
    ----------
    hits : Counter
        Signals that met a running program, by run, signal and whether there was a journal.
    finished : int
        Runs that came to their end after all, and were compared.
    orphans : int
        Temporary files of killed programs, which had no time to remove them.
    """

    hits: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    finished: int = 0
    orphans: int = 0

    @property
    def total(self) -> int:
        """How many signals met a running program."""
        return self.hits.total()


def kill_often(
    times: int,
    place: Path,
    *,
    seed: int = 0,
    runs: tuple[str, ...] = USUAL,
    signals: tuple[signal.Signals, ...] = SIGNALS,
    say: Callable[[str], None] = lambda words: None,
) -> Kills:
    """Send so many signals to running programs, and compare what they leave in the end.

    Parameters
    ----------
    times : int
    place : Path
        An empty folder to work in.
    seed : int
        Of signals and delays; when they arrive depends on the machine as well.
    runs : tuple of str
        Names in RUNS, one after the other.
    signals : tuple
        SIGKILL is drawn twice as often as the others.
    say : callable
        Told of every signal.
    """
    rng = random.Random(seed)
    found = Kills()
    _write_predictions(place / "predictions.npz")
    whole = {name: _undisturbed(name, place / f"whole-{name}") for name in runs}
    rounds = 0
    while found.total < times:
        # Where every signal comes too late there is nothing to be learnt.
        assert rounds < 20 * times, f"{found.total} signals in {rounds} runs"
        name = runs[rounds % len(runs)]
        rounds += 1
        folder = place / "disturbed"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # The last signals go to the rest of a run as well, so every one of them is followed to its end.
        budget = min(times - found.total, rng.randint(2, 8))
        for _ in range(budget):
            number = rng.choice([*signals, *[s for s in signals if s is signal.SIGKILL]])
            ended = _disturbed(name, folder, number, rng, found)
            say(f"{name}: {number.name} {ended}, {found.total} so far")
            if ended == "came too late":
                break
        _finish(name, folder, whole[name], found)
        say(f"{name}: finished, all files as those of an undisturbed run")
    return found


def _write_predictions(path: Path) -> None:
    import numpy as np

    probs, labels = predictions()
    np.savez(path, probs=np.tile(probs, (10, 1, 1)), labels=np.tile(labels, 10))


def _undisturbed(name: str, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    process, said = _start(name, folder, resume=False)
    assert process.wait(timeout=600) == 0, said.read_text()
    return _without_temporaries(files_in(folder))


def _start(name: str, folder: Path, *, resume: bool) -> tuple[subprocess.Popen[bytes], Path]:
    words = RUNS[name].words + RUNS[name].again * resume
    said = folder.with_name(folder.name + ".said")
    # A session of its own, so that Ctrl-C reaches workers as from a terminal; and no pipe, which
    # workers that outlive their parent would hold open.
    with open(said, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "hullcal", *words.split()],
            cwd=folder,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
        )
    return process, said


def _disturbed(
    name: str, folder: Path, number: signal.Signals, rng: random.Random, found: Kills
) -> str:
    """Start or resume a run and send it a signal; say when that arrived."""
    before = _journals(name, folder)
    process, said = _start(name, folder, resume=bool(before))
    try:
        if rng.random() < 0.8:
            _wait_for_growth(process, name, folder, before)
            time.sleep(rng.uniform(0, _SOON))
        else:
            time.sleep(rng.uniform(0, 3))
        # An older journal says nothing of this program, which may still be reading its options.
        kept = _journals(name, folder) != before
        late = process.poll() is not None
        with contextlib.suppress(ProcessLookupError):
            if number is signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        code = process.wait(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # workers of a program that was killed
    words = said.read_text()
    if late or code == 0:
        assert code == 0, words
        return "came too late"
    found.hits[name, number.name, "with a journal" if kept else "before"] += 1
    minded, unminded = _CODES[number]
    assert code in ((minded,) if kept and not _complete(name, folder) else (minded, unminded)), (
        f"{number.name} ended {name} with {code}: {words}"
    )
    if code == minded and code > 0:
        assert "Traceback" not in words, words
        assert not kept or "continue with --resume" in words, words
    _check_nothing_lost(before, _journals(name, folder))
    return "met a journal" if kept else "came before there was a journal"


def _wait_for_growth(
    process: subprocess.Popen[bytes], name: str, folder: Path, before: dict[str, list[bytes]]
) -> None:
    size = sum(map(len, before.values()))
    while process.poll() is None:
        if sum(map(len, _journals(name, folder).values())) > size:
            return
        time.sleep(0.01)


def _journals(name: str, folder: Path) -> dict[str, list[bytes]]:
    """Whole lines of all journals, by folder."""
    return {
        str(path.parent): [
            line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
        ]
        for path in sorted((folder / RUNS[name].journals).rglob("journal.jsonl"))
    }


def _check_nothing_lost(before: dict[str, list[bytes]], after: dict[str, list[bytes]]) -> None:
    for journal, lines in before.items():
        assert after[journal][: len(lines)] == lines, f"{journal} lost lines that it had"


def _complete(name: str, folder: Path) -> bool:
    """Whether the last file of a run is there; what comes then is the end of the interpreter."""
    return (folder / RUNS[name].last).exists()


def _finish(name: str, folder: Path, whole: dict[str, bytes], found: Kills) -> None:
    before = _journals(name, folder)
    process, said = _start(name, folder, resume=bool(before))
    assert process.wait(timeout=600) == 0, said.read_text()
    _check_nothing_lost(before, _journals(name, folder))
    files = files_in(folder)
    own = _without_temporaries(files)
    found.orphans += len(files) - len(own)
    assert sorted(own) == sorted(whole), f"{sorted(own)} instead of {sorted(whole)}"
    for path, content in whole.items():
        if path.endswith("journal.jsonl"):
            # Blocks are put away in the order in which they are finished.
            assert sorted(own[path].splitlines()) == sorted(content.splitlines()), path
        else:
            # A page names the command that made it, which may have gone on.
            again = RUNS[name].again.encode()
            assert own[path].replace(again, b"") == content, (
                f"{path} differs from an undisturbed run's"
            )
    found.finished += 1


def _without_temporaries(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if not path.endswith(".tmp")}
