"""A run is killed at moments that nobody chose, and resumed: does it end as if it had not been?"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from hardening.subjects import files_in, predictions

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

    `again` are further words where there is a journal; `last` is what it writes near its end.
    """

    words: str
    again: str
    journals: str
    last: str


_STUDY = "simulate --scenario calibrated --test calibrated:ece_conf:paper -N 60 --output study"
_TEST = "test ../predictions.npz -D 4000 --seed 1 --jobs 2 --format json --output r.json"
RUNS = {
    "simulate": Run(f"{_STUDY} -R 800 --jobs 2", " --resume", "study", "study/rates.csv"),
    # Without workers, whose start takes longer than all of its blocks.
    "small study": Run(f"{_STUDY} -R 600 -D 39 --jobs 1", " --resume", "study", "study/rates.csv"),
    "test": Run(f"{_TEST} --report r.html --journal kept", " --resume --force", "kept", "r.json"),
}
#: The runs that take turns where none is named.
USUAL = ("simulate", "test")


@dataclass
class Kills:
    """What happened.

    `hits` are signals that met a running program, by run, signal and whether there was a journal;
    `finished` are runs that came to their end after all, and were compared; `orphans` are temporary
    files of killed programs, which had no time to remove them.
    """

    hits: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    finished: int = 0
    orphans: int = 0


def kill_often(times, place, *, seed=0, runs=USUAL, signals=SIGNALS, say=lambda words: None):
    """Send so many signals to running programs, and compare what they leave in the end.

    Signals and delays follow the seed; when they arrive depends on the machine as well. SIGKILL is
    drawn twice as often as the others.
    """
    rng = random.Random(seed)
    found = Kills()
    probs, labels = predictions()
    np.savez(
        place / "predictions.npz", probs=np.tile(probs, (10, 1, 1)), labels=np.tile(labels, 10)
    )
    whole = {name: _undisturbed(name, place / f"whole-{name}") for name in runs}
    rounds = 0
    while found.hits.total() < times:
        # Where every signal comes too late there is nothing to be learnt.
        assert rounds < 20 * times, f"{found.hits.total()} signals in {rounds} runs"
        name = runs[rounds % len(runs)]
        rounds += 1
        folder = place / "disturbed"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # The last signals go to the rest of a run as well, so every one of them is followed to its end.
        budget = min(times - found.hits.total(), rng.randint(2, 8))
        for _ in range(budget):
            number = rng.choice([*signals, *[s for s in signals if s is signal.SIGKILL]])
            ended = _disturbed(name, folder, number, rng, found)
            say(f"{name}: {number.name} {ended}, {found.hits.total()} so far")
            if ended == "came too late":
                break
        _finish(name, folder, whole[name], found)
        say(f"{name}: finished, all files as those of an undisturbed run")
    return found


def _undisturbed(name, folder):
    folder.mkdir()
    process, said = _start(name, folder, resume=False)
    assert process.wait(timeout=600) == 0, said.read_text()
    return files_in(folder)


def _start(name, folder, *, resume):
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


def _disturbed(name, folder, number, rng, found):
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
    # Once the last file of a run is there, what comes is the end of the interpreter.
    at_work = kept and not (folder / RUNS[name].last).exists()
    expected = (minded,) if at_work else (minded, unminded)
    assert code in expected, f"{number.name} ended {name} with {code}: {words}"
    if code == minded and code > 0:
        assert "Traceback" not in words, words
        assert not kept or "continue with --resume" in words, words
    _check_nothing_lost(before, _journals(name, folder))
    return "met a journal" if kept else "came before there was a journal"


def _wait_for_growth(process, name, folder, before):
    size = sum(map(len, before.values()))
    while process.poll() is None:
        if sum(map(len, _journals(name, folder).values())) > size:
            return
        time.sleep(0.01)


def _journals(name, folder):
    """Whole lines of all journals, by folder."""
    return {
        str(path.parent): [
            line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
        ]
        for path in sorted((folder / RUNS[name].journals).rglob("journal.jsonl"))
    }


def _check_nothing_lost(before, after):
    for journal, lines in before.items():
        assert after[journal][: len(lines)] == lines, f"{journal} lost lines that it had"


def _finish(name, folder, whole, found):
    before = _journals(name, folder)
    process, said = _start(name, folder, resume=bool(before))
    assert process.wait(timeout=600) == 0, said.read_text()
    _check_nothing_lost(before, _journals(name, folder))
    files = files_in(folder)
    own = {path: content for path, content in files.items() if not path.endswith(".tmp")}
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
