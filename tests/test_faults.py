"""Disks that fail, signals, and many calls in one process; `python -m hardening` does more of it."""

import ctypes
import errno
import io
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc
from hardening.disks import sweep, under_a_limit
from hardening.faulty import FAULTS, Disk
from hardening.kills import kill_often
from hardening.soak import combinations
from hardening.subjects import predictions
from hullcal import cli
from hullcal.cli.running import ending
from hullcal.io.journal import Journal, _line, locked

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of Linux")

TORN, SHORT = "full in the middle of a write", "short"
#: All faults for what is quick; the others are swept by `python -m hardening faults`.
SWEEPS = [
    *(
        (name, *how)
        for name in ("results as JSON", "hullcal weights")
        for how in itertools.product(FAULTS, (False, True))
    ),
    *(("journal of a test", fault, False) for fault in (TORN, SHORT)),
    *((name, TORN, False) for name in ("hullcal test --journal", "hullcal simulate")),
]


# Every call that writes fails once


@linux
@pytest.mark.parametrize(("name", "fault", "old"), SWEEPS)
def test_whichever_call_fails_files_are_whole_and_a_second_run_ends_as_the_first_would(
    name, fault, old, tmp_path
):
    points, errors = sweep(name, fault, tmp_path, old=old)
    assert points > 0
    assert (errors > 0) == (fault != "short")


def test_the_sweep_notices_a_file_that_is_written_in_place(tmp_path, monkeypatch):
    def careless(path, content, *, force=False):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(file, content.encode())
        os.close(file)

    monkeypatch.setattr(hc.io.results, "write_atomic", careless)
    with pytest.raises(AssertionError, match=r"old=True: r\.json"):
        sweep("results as JSON", "full", tmp_path, old=True)


def test_the_sweep_notices_a_writer_that_takes_a_short_write_for_a_whole_one(tmp_path, monkeypatch):
    def one_write(journal, key, columns):
        os.write(journal._file, _line({"block": list(key), "columns": columns}).encode())
        journal.blocks[key] = columns

    monkeypatch.setattr(Journal, "append", one_write)
    with pytest.raises(AssertionError, match=r"short, call \d+, old=False: study/journal.jsonl"):
        sweep("hullcal simulate", "short", tmp_path)


@linux
@pytest.mark.parametrize("name", ["results as JSON", "journal of a test"])
def test_a_limit_on_the_size_of_files_is_felt_and_survived(name, tmp_path):
    assert under_a_limit(name, tmp_path, steps=4) > 4


def test_a_journal_that_could_not_be_opened_does_not_keep_its_lock(tmp_path):
    def begin(n=None):
        disk = Disk(tmp_path, FAULTS["full"], n)
        with disk.mounted(), Journal.open(tmp_path, {"a": 1}, resume=False):
            return disk.calls

    begin()  # the lock is there from now on
    # The last file that is opened is the journal itself.
    last = max(i for i, call in enumerate(begin()) if call == "open")
    with pytest.raises(OSError, match="No space") as held:
        begin(last)
    assert held.value.errno == errno.ENOSPC
    with locked(tmp_path):
        pass


def test_after_half_a_line_that_stays_a_journal_takes_no_other(tmp_path):
    class Worn(Disk):
        """Writes half a line, fails to take it back, and then works again."""

        def spoils(self, name, size=0):
            self.calls.append(name)
            if self.calls == ["write"]:
                return size // 2
            if len(self.calls) <= 3:
                raise OSError(errno.EIO, "worn")
            return None

    with Journal.open(tmp_path, {"a": 1}, resume=False) as journal:
        disk = Worn(tmp_path, FAULTS["broken"])
        disk.own.add(journal._file)
        with disk.mounted():
            for first in range(2):
                with pytest.raises(OSError, match="worn"):
                    journal.append(("cell", first, first + 1), {"p": [0.5]})
    with Journal.open(tmp_path, {"a": 1}, resume=True) as journal:
        assert journal.blocks == {}


# Signals


@linux
def test_a_study_that_is_killed_at_random_ends_as_if_it_had_not_been(tmp_path):
    found = kill_often(2, tmp_path, seed=3, runs=("small study",), signals=(signal.SIGKILL,))
    assert found.hits.total() == 2
    assert found.finished >= 1


#: A signal that comes while a library calls back into Python, as numba does during compilation.
SWALLOWING = """
import ctypes, sys, time
import hullcal
from hullcal.cli import run

own = hullcal.minimize

def until_the_signal():
    print("now", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.01)

def minimize(*data, **how):
    ctypes.CFUNCTYPE(None)(until_the_signal)()
    return own(*data, **how)

hullcal.minimize = minimize
run(["weights", "predictions.npz", "--seed", "1"])
"""


@linux
def test_a_signal_that_a_callback_swallowed_is_not_forgotten(tmp_path):
    probs, labels = predictions()
    np.savez(tmp_path / "predictions.npz", probs=probs, labels=labels)
    with subprocess.Popen(
        [sys.executable, "-c", SWALLOWING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stderr.readline() == "now\n"
        process.send_signal(signal.SIGTERM)
        printed, told = process.communicate(timeout=300)
    # What was found was printed before anybody asked; the code tells that the end was another.
    assert len(printed.splitlines()) == 3
    said = "hullcal: stopped by a signal; that was noticed only when all was done"
    assert told.splitlines()[-1] == said
    assert process.returncode == 4


class Deaf(io.StringIO):
    """A stdout that says only in the end that nobody listens."""

    def flush(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_what_could_not_be_printed_in_the_end_is_said(monkeypatch, capsys):
    monkeypatch.setattr(cli.main, "main", lambda *_, **__: 1)
    monkeypatch.setattr(sys, "stdout", Deaf())
    with pytest.raises(SystemExit) as end:
        cli.run([])
    assert end.value.code == 4
    assert "No space left on device" in capsys.readouterr().err


def test_a_signal_that_a_callback_swallowed_prints_no_traceback(capsys):
    def interrupted():
        raise KeyboardInterrupt

    def run():
        with ending():
            ctypes.CFUNCTYPE(None)(interrupted)()
            interrupted()

    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 130
    assert capsys.readouterr().err == "hullcal: interrupted; nothing was written\n"


# Many calls in one process

#: Megabytes: 70 tests may keep some 30 kB each unseen. On a busy machine one and a bit was seen.
BOUND = 2.0


SOAKING = """
import json, os
from hardening.soak import combinations, soak
kept = []
def leak(i):
    if i > 270:
        kept.append((bytearray(b"x") * 400_000, os.dup(0)))  # too large for free places
assert len(combinations()) < 200  # so that all code has been loaded by then
found = soak((200, 270, 290), leak=leak)
print(json.dumps([found[270].since(found[200]), found[290].since(found[270])]))
"""


@linux
def test_memory_files_and_threads_stay_as_they_are_until_a_leak_is_planted():
    # In a process of its own, with one heap: what ran before and other threads leave their traces.
    places = os.pathsep.join(("tests", *filter(None, [os.environ.get("PYTHONPATH")])))
    done = subprocess.run(
        [sys.executable, "-c", SOAKING],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"MALLOC_ARENA_MAX": "1", "PYTHONPATH": places},
    )
    assert done.returncode == 0, done.stderr
    (memory, files, threads), (planted, more_files, _) = json.loads(done.stdout.splitlines()[-1])
    assert memory < BOUND
    assert files <= 0
    assert threads <= 0
    assert planted > BOUND
    assert more_files == 20


def test_every_measure_null_and_search_has_its_turn():
    for place, names in enumerate(
        ((*hc.measures.available(), "function"), hc.nulls.available(), hc.minimizers.available())
    ):
        assert {triple[place] for triple in combinations()} == set(names)
