"""Disks that fail: is what is left whole, and does a second run end as if nothing had been?

A sweep lets every call fail once, on a disk that is made up. A limit on the size of files is real.
"""

import errno
import gc
import os
import resource
import shutil
from contextlib import contextmanager

from hardening.faulty import FAULTS, Disk
from hardening.subjects import JOURNAL, SUBJECTS, Refused, files_in, quiet


def n_open():
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


class Trial:
    """A subject in a folder where something fails, and what must hold afterwards."""

    def __init__(self, name, place):
        self.name, self.subject, self.folder = name, SUBJECTS[name], place / "disk"
        (place / "whole").mkdir()
        self.subject.act(place / "whole", False)
        self.whole = files_in(place / "whole")

    def prepare(self, *, old=False):
        """Make the folder anew, with older products in it or with none."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for product in self.subject.products if old else ():
            path = self.folder / product
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")

    def run(self, where, number, around):
        """Act while something fails; whether it ended with an error, which must be this one."""
        self.before, self.opened = files_in(self.folder), n_open()
        try:
            with around:
                self.subject.act(self.folder, False)
        except (OSError, Refused) as error:
            self._check_error(error, number, where)
            self._check_left(where)
            # While the error is still held, as in an `except` clause that tries once more.
            self.subject.act(self.folder, True)
            failed = True
        else:
            failed = False
            self._check_left(where)
        self._check_end(where)
        return failed

    def _check_error(self, error, number, where):
        assert number is not None, f"{where}: a short write is no error, got {error!r}"
        if not self.subject.command:
            assert isinstance(error, OSError), f"{where}: {error!r}"
            assert error.errno == number, f"{where}: {error!r}"
            return
        assert isinstance(error, Refused), f"{where}: {error!r}"
        journal = self.subject.journal
        kept = journal is not None and any((self.folder / journal).rglob(JOURNAL))
        # A disk that fails is something to go on with only where there is a journal.
        assert error.code == (2 if number == errno.EIO and not kept else 4), f"{where}: {error}"
        last = error.said.strip().splitlines()[-1]
        assert last.startswith("hullcal: "), f"{where}: {error}"
        assert os.strerror(number) in last, f"{where}: {error}"
        assert "Traceback" not in error.said, where
        assert journal is None or ("--resume" in last) == kept, f"{where}: {error}"

    def _check_left(self, where):
        """Every file is as before or as it shall be, and none is there that nobody asked for."""
        left = files_in(self.folder)
        for name, content in left.items():
            if name.endswith(JOURNAL):
                # Whole lines of the undisturbed run, and at most a torn one after them.
                known = self.whole[name].splitlines(keepends=True)
                lines = content.splitlines(keepends=True)
                assert all(line in known for line in lines[:-1]), f"{where}: {name}"
            else:
                assert name in self.subject.products, f"{where}: {name} was left behind"
                assert content in (self.before.get(name), self.whole[name]), f"{where}: {name}"
        # A study that starts over takes the tables of the old one away first.
        lost = set() if self.subject.journal else set(self.before) - set(left)
        assert not lost, f"{where}: lost {lost}"

    def _check_end(self, where):
        """All files are those of an undisturbed run; no more are open than before."""
        found = files_in(self.folder)
        assert sorted(found) == sorted(self.whole), f"{where}: {sorted(found)}"
        for name, content in self.whole.items():
            assert found[name] == content, f"{where}: {name} differs from an undisturbed run's"
        if n_open() > self.opened:
            gc.collect()  # too slow to do where nothing is suspected
        assert n_open() <= self.opened, f"{where}: {n_open() - self.opened} files more are open"


def sweep(name, fault, place, *, old=False):
    """Let call after call of a subject fail; how many there were, and how many ended in an error.

    `old` says whether complete files, of an earlier run, are there before.
    """
    points = errors = 0
    with quiet():
        trial = Trial(name, place)
        while True:
            trial.prepare(old=old)
            disk = Disk(trial.folder, FAULTS[fault], points)
            where = f"{name}, {fault}, call {points}, old={old}"
            errors += trial.run(where, FAULTS[fault].number, disk.mounted())
            if points >= len(disk.calls):
                return points, errors
            points += 1


@contextmanager
def _room_for(size):
    """Let no file of this process grow beyond a size; the system says EFBIG, as Python is asked to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def under_a_limit(name, place, *, steps=12):
    """Run a subject under limits that are all too small; how many there were."""
    with quiet():
        trial = Trial(name, place)
        sizes = {len(content) for content in trial.whole.values()}
        step = max(sizes) // steps + 1
        # At the edges of every file, and at steps between them.
        limits = sorted({0, 1, *(size - 1 for size in sizes), *range(0, max(sizes), step)})
        for limit in limits:
            trial.prepare()
            where = f"{name}, files of at most {limit} bytes"
            assert trial.run(where, errno.EFBIG, _room_for(limit)), f"{where}: not felt"
    return len(limits)
