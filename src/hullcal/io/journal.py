"""Finished work survives: an append-only journal in a folder that one process holds at a time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import refusal
from hullcal.io.writing import write_atomic

JOURNAL, LOCK = "journal.jsonl", ".lock"
FORMAT = 2

#: A block: what it is of (a cell, a part of a test), its first data set or resample, the first after it.
Key = tuple[str, int, int]

_REPAIR = "Choose another folder, or delete this one."


@dataclass
class Journal:
    """Finished blocks of one configuration: a header line, then a line of values for each block.

    A line is on the disk before the next is begun, so only the last can be torn.
    """

    path: Path
    #: What was found on opening and what was added since.
    blocks: dict[Key, Any]
    _file: int
    _torn: OSError | None = None

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        folder: Path,
        configuration: Mapping[str, Any],
        *,
        resume: bool,
        new: bool = False,
        parameter: str = "folder",
    ) -> Iterator[Self]:
        """Hold the journal of a folder that exists, or begin one with all that determines the numbers.

        An existing journal is continued if `resume`, otherwise replaced; if `new`, it is refused, since
        another process has begun it since the caller looked. Messages call the folder `parameter`.
        """
        path = folder / JOURNAL
        with locked(folder, parameter):
            header = _header(configuration, parameter)
            if new and path.exists():
                came = f"{str(folder)!r} with a journal that has just been begun"
                rule, repair = "must not hold a study yet", "Choose another folder."
                raise refusal(parameter, rule, came, repair)
            blocks: dict[Key, Any] = {}
            if resume and path.exists():
                blocks, length = _read(path, header, parameter)
                os.truncate(path, length)  # a line after a torn one would be lost with it
            else:
                write_atomic(path, _line(header), force=True)
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
            try:
                yield cls(path, blocks, file)
            finally:
                os.close(file)

    def append(self, key: Key, columns: Mapping[str, Any]) -> None:
        """Add a finished block; it is on the disk when this returns."""
        if self._torn is not None:
            raise self._torn  # a line after half a line would be lost with it
        line = _line({"block": list(key), "columns": columns}).encode()
        before = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            # A full disk leaves half a line; the journal without it is whole.
            try:
                os.ftruncate(self._file, before)
            except OSError:
                self._torn = error
            raise
        self.blocks[key] = columns


@contextlib.contextmanager
def locked(folder: Path, parameter: str = "folder") -> Iterator[None]:
    """Hold a folder, or refuse it if another process does; the lock dies with its holder."""
    import filelock  # not at the top: most runs have no journal

    check_folder(folder, parameter)
    try:
        lock = filelock.FileLock(folder / LOCK).acquire(blocking=False)
    except filelock.Timeout as error:
        came = f"{str(folder)!r}, which another run holds"
        repair = "Wait for it, or choose another folder."
        raise refusal(parameter, "must not be in use", came, repair) from error
    with lock:
        yield


def check_folder(folder: object, parameter: str) -> Path:
    """Refuse what is no folder for a journal and could not become one, or would lead elsewhere."""
    if not isinstance(folder, str | os.PathLike):
        repair = "Pass the path of a folder, which need not exist."
        raise refusal(parameter, "must be a path", repr(folder), repair)
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise refusal(parameter, "must be a folder", f"the file {str(place)!r}", "Name a folder.")
    for each in place.iterdir() if place.exists() else ():
        odd = each.is_symlink() or not (each.is_file() or each.is_dir())
        if odd and os.path.lexists(each):  # and not a file that another process has just renamed
            repair = "Remove it, or choose another folder."
            came = f"a link, pipe or device {str(each)!r}"
            raise refusal(parameter, "must hold regular files and folders only", came, repair)
    return place


def configuration_of(folder: Path) -> dict[str, Any] | None:
    """The configuration of the folder's journal; None if there is none, or none that can be read."""
    path = folder / JOURNAL
    if not path.is_file():
        return None
    with path.open("rb") as file:
        found = _parsed(file.readline()).get("configuration")
    return found if isinstance(found, dict) else None


def columns_of(columns: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.float64] | None:
    """Columns of a block as one array; None if some are missing, unequal in shape, or no numbers."""
    try:
        found = np.array([columns[name] for name in names], dtype=np.object_)
        # Text is a number only for those that JSON does not have, and a truth value never is.
        texts = {each for each in found.ravel().tolist() if type(each) not in (int, float)}
        return found.astype(np.float64) if texts <= {"inf", "-inf", "nan"} else None
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _header(configuration: Mapping[str, Any], parameter: str) -> dict[str, Any]:
    try:
        text = json.dumps(configuration, sort_keys=True)
    except (TypeError, ValueError) as error:
        repair = f"Leave `{parameter}` out, or name measures and searches by strings."
        rule = "needs settings that can be written down as JSON"
        raise refusal(parameter, rule, str(error), repair) from error
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"format": FORMAT, "hash": digest, "configuration": json.loads(text)}


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True) + "\n"


def _parsed(line: bytes) -> dict[str, Any]:
    """The content of a whole line; empty if there is none."""
    try:
        content = json.loads(line) if line.endswith(b"\n") else {}
        return content if isinstance(content, dict) else {}
    except (ValueError, RecursionError):
        return {}


def _read(path: Path, wanted: Mapping[str, Any], parameter: str) -> tuple[dict[Key, Any], int]:
    """Blocks of a journal with the header that is wanted, and the length of its sound part."""
    lines = path.read_bytes().splitlines(keepends=True)
    found = _parsed(lines[0]) if lines else {}
    if any(type(found.get(name)) is not type(value) for name, value in wanted.items()):
        came = f"{path} without its first line"
        raise refusal(parameter, "needs a journal of hullcal", came, _REPAIR)
    if any(found[name] != wanted[name] for name in ("format", "hash")):
        old, new = ({"format": each["format"], **each["configuration"]} for each in (found, wanted))
        differences = "; ".join(
            f"{name}: {json.dumps(old.get(name))} there, {json.dumps(new.get(name))} now"
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        )
        came = f"another one in {path} ({differences})"
        repair = f"Repeat the options of the first run. {_REPAIR}"
        raise refusal(parameter, "needs the same configuration", came, repair)
    blocks: dict[Key, Any] = {}
    length = len(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        content = _parsed(line)
        if not content and number == len(lines):
            break
        block, columns = content.get("block", ()), content.get("columns")
        kinds = [type(each) for each in block] if isinstance(block, list) else []
        if kinds != [str, int, int] or not isinstance(columns, dict):
            came = f"line {number} of {path} damaged, which no interrupted run does"
            repair = f"Delete that line to compute its block again. {_REPAIR}"
            raise refusal(parameter, "needs a sound journal", came, repair)
        blocks[block[0], block[1], block[2]] = columns
        length += len(line)
    return blocks, length
