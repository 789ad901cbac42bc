"""Disks that are really full: a limit on the size of files, and a small file system in memory."""

from __future__ import annotations

import errno
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hardening.subjects import SUBJECTS, Refused, Subject, files_in, quiet
from hardening.sweep import attempt, check_end, check_left, prepared, undisturbed

__all__ = ["limited", "on_a_small_disk", "room_for", "under_a_limit"]

_WORDS = {errno.EFBIG: "File too large", errno.ENOSPC: "No space left on device"}
_PAGE = 4096


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size; the system says EFBIG, as Python is asked to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def under_a_limit(name: str, place: Path, *, steps: int = 12) -> tuple[int, int]:
    """Run a subject under limits from 0 to the size of its largest file.

    Returns
    -------
    tuple of int
        How many limits were set, and how many of them were felt.
    """
    subject = SUBJECTS[name]
    with quiet():
        whole = undisturbed(subject, place / "whole")
        sizes = {len(content) for content in whole.values()}
        largest = max(sizes)
        # At the edges of every file, and at steps between them.
        limits = sorted({0, 1, *(s - 1 for s in sizes), *range(0, largest, largest // steps + 1)})
        felt = 0
        for limit in (*limits, largest):
            folder = place / "disk"
            before = prepared(subject, folder, old=False)
            where = f"{name}, files of at most {limit} bytes"
            with room_for(limit):
                felt += _fails(subject, folder, errno.EFBIG, where)
            check_left(subject, files_in(folder), before, whole, where)
            subject.act(folder, True)
            check_end(subject, folder, whole, None, where)
        assert felt == len(limits), f"{name}: {len(limits)} limits are too small, {felt} were felt"
    return len(limits) + 1, felt


def on_a_small_disk(name: str, place: Path) -> tuple[int, int]:
    """Run a subject on a file system of one page, two pages and so on, until it fits.

    Needs the right to mount; `limited` takes it in a namespace of its own.
    """
    subject = SUBJECTS[name]
    disk = place / "disk"
    disk.mkdir()
    with quiet():
        whole = undisturbed(subject, place / "whole")
        pages = felt = 0
        while pages == felt:
            pages += 1
            _mount(disk, f"size={pages * _PAGE}")
            try:
                where = f"{name}, a disk of {pages} pages"
                failed = _fails(subject, disk, errno.ENOSPC, where)
                check_left(subject, files_in(disk), {}, whole, where)
                if failed:
                    felt += 1
                    _mount(disk, "remount,size=64m")
                    subject.act(disk, True)
                check_end(subject, disk, whole, None, where)
            finally:
                subprocess.run(["umount", "-l", disk], check=True)
    return pages, felt


def _mount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=True)


def _fails(subject: Subject, folder: Path, number: int, where: str) -> bool:
    error = attempt(subject, folder)
    if error is None:
        return False
    if subject.command:
        assert isinstance(error, Refused), f"{where}: {error!r}"
        assert error.code == 4, f"{where}: {error}"
        assert _WORDS[number] in error.said, f"{where}: {error}"
        assert "Traceback" not in error.said, where
    else:
        assert isinstance(error, OSError), f"{where}: {error!r}"
        assert error.errno == number, f"{where}: {error!r}"
    return True


def limited(place: Path) -> Iterator[str]:
    """All subjects under both; a line for each.

    Raises
    ------
    AssertionError
        If one did not end as it should. That nobody may mount here is no failure, and is said.
    """
    for name in SUBJECTS:
        folder = place / "limit"
        folder.mkdir()
        limits, felt = under_a_limit(name, folder)
        shutil.rmtree(folder)
        yield f"{name}: {limits} limits on the size of files, {felt} too small for it"
    # Asked apart, so that whatever goes wrong afterwards is a failure.
    why_not = _cannot_mount(place)
    if why_not:
        yield f"small disks: left out, since nobody may mount here ({why_not})"
        return
    done = _in_a_namespace(sys.executable, "-m", "hardening.limits", str(place))
    yield from done.stdout.splitlines()
    assert done.returncode == 0, f"small disks, exit code {done.returncode}: {done.stderr.strip()}"


def _cannot_mount(place: Path) -> str:
    """What the system says to whoever wants to mount something; nothing if it lets them."""
    tried = place / "tried"
    tried.mkdir()
    try:
        done = _in_a_namespace("mount", "-t", "tmpfs", "none", str(tried))
    except FileNotFoundError as error:
        return str(error)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""


def _in_a_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["unshare", "-Urm", *command], capture_output=True, text=True)


def main(place: Path) -> None:
    """Run all subjects on small disks."""
    for name in SUBJECTS:
        folder = place / name.replace(" ", "-")
        folder.mkdir()
        pages, felt = on_a_small_disk(name, folder)
        print(f"{name}: disks of 1 to {pages} pages, {felt} too small for it", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
