"""Every call fails once: is what is left whole, and does a second run end as if nothing had been?"""

from __future__ import annotations

import errno
import gc
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardening.faulty import FAULTS, Disk
from hardening.subjects import SUBJECTS, Refused, Subject, files_in, n_open, quiet

__all__ = [
    "Sweep",
    "attempt",
    "check_end",
    "check_left",
    "every",
    "prepared",
    "sweep",
    "undisturbed",
]

JOURNAL = "journal.jsonl"


@dataclass
class Sweep:
    """What a sweep over all calls of one subject came to.

    Attributes
    ----------
    points : int
        Calls that were made to fail, each in a run of its own.
    errors : int
        How many of these runs ended with an error; the others did without the call.
    """

    points: int = 0
    errors: int = 0


def sweep(name: str, fault: str, place: Path, *, old: bool = False) -> Sweep:
    """Let call after call of a subject fail, until a run has fewer calls than that.

    Parameters
    ----------
    name, fault : str
        Of SUBJECTS and FAULTS.
    place : Path
        An empty folder to work in.
    old : bool
        Whether complete files, of an earlier run, are there before.
    """
    subject, kind = SUBJECTS[name], FAULTS[fault]
    found = Sweep()
    with quiet():
        whole = undisturbed(subject, place / "whole")
        while True:
            folder = place / "disk"
            before = prepared(subject, folder, old=old)
            disk = Disk(folder, kind, found.points)
            opened = n_open()
            with disk.mounted():
                error = attempt(subject, folder)
            if found.points >= len(disk.calls):
                check_end(subject, folder, whole, opened, "without a fault")
                return found
            where = f"{name}, {fault}, call {found.points} ({disk.failed[:1]}), old={old}"
            found.points += 1
            found.errors += error is not None
            if error is not None:
                _check_error(subject, error, kind.number, folder, where)
            else:
                check_end(subject, folder, whole, opened, f"{where}, which was no error")
            check_left(subject, files_in(folder), before, whole, where)
            # While the error is still held, as in an `except` clause that tries once more.
            subject.act(folder, True)
            error = None
            check_end(subject, folder, whole, opened, where)


def undisturbed(subject: Subject, folder: Path) -> dict[str, bytes]:
    """Files of a run to which nothing happens."""
    folder.mkdir()
    subject.act(folder, False)
    return files_in(folder)


def prepared(subject: Subject, folder: Path, *, old: bool) -> dict[str, bytes]:
    """Files of a folder made anew, with older products in it or with none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for product in subject.products if old else ():
        path = folder / product
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    return files_in(folder)


def attempt(subject: Subject, folder: Path) -> BaseException | None:
    """Run once; the error, if it ends with one."""
    try:
        subject.act(folder, False)
    except (OSError, Refused) as error:
        return error
    return None


def _check_error(
    subject: Subject, error: BaseException, number: int | None, folder: Path, where: str
) -> None:
    assert number is not None, f"{where}: a short write is no error, got {error!r}"
    if not subject.command:
        assert isinstance(error, OSError), f"{where}: {error!r}"
        assert error.errno == number, f"{where}: {error!r}"
        return
    assert isinstance(error, Refused), f"{where}: {error!r}"
    kept = subject.journal is not None and any((folder / subject.journal).rglob(JOURNAL))
    # A disk that fails is something to go on with only where there is a journal.
    expected = 4 if number == errno.ENOSPC or kept else 2
    assert error.code == expected, f"{where}: {error}"
    last = error.said.strip().splitlines()[-1]
    words = {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}[number]
    assert last.startswith("hullcal: "), f"{where}: {error}"
    assert words in last, f"{where}: {error}"
    assert "Traceback" not in error.said, where
    if subject.journal is not None:
        assert ("--resume" in last) == kept, f"{where}: {error}"


def check_left(
    subject: Subject,
    left: dict[str, bytes],
    before: dict[str, bytes],
    whole: dict[str, bytes],
    where: str,
) -> None:
    """Every file is as before or as it shall be, and none is there that nobody asked for."""
    for name, content in left.items():
        if name.endswith(JOURNAL):
            # Whole lines of the undisturbed run, and at most a torn one after them.
            lines = content.splitlines(keepends=True)
            known = whole[name].splitlines(keepends=True)
            assert all(line in known for line in lines[:-1]), f"{where}: {name}"
        else:
            assert name in subject.products, f"{where}: {name} was left behind"
            assert content in (before.get(name), whole[name]), f"{where}: {name} is neither"
    # A study that starts over takes the tables of the old one away first.
    lost = set() if subject.journal else set(before) - set(left)
    assert not lost, f"{where}: lost {lost}"


def check_end(
    subject: Subject, folder: Path, whole: dict[str, bytes], opened: int | None, where: str
) -> None:
    """All files are those of an undisturbed run; no more are open than before."""
    found = files_in(folder)
    assert sorted(found) == sorted(whole), f"{where}: {sorted(found)} instead of {sorted(whole)}"
    for name, content in whole.items():
        assert found[name] == content, f"{where}: {name} differs from an undisturbed run's"
    if opened is None:
        return
    if n_open() > opened:
        gc.collect()  # too slow to do where nothing is suspected
    assert n_open() <= opened, f"{where}: {n_open() - opened} files more are open"


def every() -> Any:
    """All sweeps there are."""
    for name, subject in SUBJECTS.items():
        for old in (False, True) if subject.replaces else (False,):
            for fault in FAULTS:
                yield name, fault, old
