"""What is finished survives: an append-only journal of a study or a test, a line for each block of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, refusal
from hullcal.files.lock import locked
from hullcal.files.writing import write_atomic

__all__ = ["JOURNAL", "Journal", "Words", "check_folder", "columns_of", "configuration_of"]

JOURNAL = "journal.jsonl"
FORMAT = 1

#: A block: what it is of (a cell, a part of a test), its first data set or resample, the first after it.
Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Words:
    """How messages call what the user passed, and what they advise where a journal is of no use."""

    folder: str = "folder"
    resume: str = "resume"
    start_over: str = "start over with `force=True`"


_OF_A_STUDY = Words()


class Journal:
    """Finished blocks of one configuration, in a folder that belongs to one process at a time.

    The first line holds the format, the configuration and its hash; every further line a block, under
    a checksum. A line is on the disk before the next is begun, so only the last can be torn.

    Attributes
    ----------
    blocks : dict
        What was found on opening and what was added since, by block.
    """

    def __init__(
        self, path: Path, blocks: dict[Key, Any], file: int, stack: contextlib.ExitStack
    ) -> None:
        self.path = path
        self.blocks = blocks
        self._file = file
        self._stack = stack
        self._torn: OSError | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        configuration: Mapping[str, Any],
        *,
        resume: bool,
        new: bool = False,
        words: Words = _OF_A_STUDY,
    ) -> Self:
        """Open the folder's journal, or begin one.

        Parameters
        ----------
        folder : Path
            Exists.
        configuration : mapping
            All that determines the numbers.
        resume : bool
            Whether a journal that is there is continued; otherwise it is replaced.
        new : bool
            Whether there must be none: another process may have begun one since somebody looked.
        words : Words
            For messages.

        Raises
        ------
        InvalidInputError
            If another process has the folder, or the journal is damaged or of another configuration.
        """
        path = folder / JOURNAL
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(folder, words.folder))
            header = _header(configuration, words)
            if new and path.exists():
                raise InvalidInputError(
                    f"`{words.folder}` must not hold a study yet; got {str(folder)!r} with a "
                    "journal that has just been begun. Choose another folder."
                )
            if resume and path.exists():
                blocks, length = _read(path, header, words)
                # What follows a torn line would be lost with it.
                os.truncate(path, length)
            else:
                blocks = {}
                write_atomic(path, _line(header), force=True)
            # Here, not in `__init__`: if it fails, the lock is given back at once.
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
            stack.callback(os.close, file)
            return cls(path, blocks, file, stack.pop_all())

    def append(self, key: Key, columns: Mapping[str, Any]) -> None:
        """Add a finished block; it is on the disk when this returns."""
        if self._torn is not None:
            # Another thread's line after half a line would be lost with it.
            raise self._torn
        line = _line({"block": list(key), "columns": columns}).encode()
        before = os.fstat(self._file).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            # A full disk leaves half a line; the journal without it is whole.
            try:
                os.ftruncate(self._file, before)
            except OSError:
                self._torn = error
            raise
        self.blocks[key] = columns

    def close(self) -> None:
        """Leave the folder to others."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_folder(folder: object, parameter: str) -> Path:
    """Refuse what is no folder for a journal, and could not become one."""
    if not isinstance(folder, str | os.PathLike):
        repair = "Pass the path of a folder, which need not exist."
        raise refusal(parameter, "must be a path", repr(folder), repair)
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise refusal(parameter, "must be a folder", f"the file {str(place)!r}", "Name a folder.")
    return place


def configuration_of(folder: Path) -> dict[str, Any] | None:
    """The configuration of the folder's journal; None if there is none, or none that can be read."""
    path = folder / JOURNAL
    if not path.exists():
        return None
    with path.open("rb") as file:
        first = _parsed(file.readline())
    found = None if first is None else first.get("configuration")
    return found if isinstance(found, dict) else None


def columns_of(columns: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.float64] | None:
    """Columns of a block as one array; None if some are missing, unequal in shape, or no numbers."""
    try:
        found = np.array([columns[name] for name in names], dtype=np.object_)
        return found.astype(np.float64) if all(map(_is_number, found.flat)) else None
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _is_number(value: object) -> bool:
    # Truth values are not, nor is other text than what stands for numbers that JSON does not have.
    return type(value) in (int, float) or value in ("inf", "-inf", "nan")


def _header(configuration: Mapping[str, Any], words: Words) -> dict[str, Any]:
    try:
        text = json.dumps(configuration, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"`{words.folder}` needs settings that can be written down as JSON; got {error}. Leave "
            f"`{words.folder}` out, or name measures and searches by strings."
        ) from error
    return {
        "format": FORMAT,
        "hash": hashlib.sha256(text.encode()).hexdigest(),
        "configuration": json.loads(text),
    }


def _line(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()[:16]
    return json.dumps({"sha256": checksum, **content}, sort_keys=True) + "\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is not, byte for byte, what was written."""
    try:
        content = json.loads(line)
        del content["sha256"]
        # Numbers are written so that they read back as the same ones, and so is the line.
        return content if _line(content).encode() == line else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _read(path: Path, header: Mapping[str, Any], words: Words) -> tuple[dict[Key, Any], int]:
    """Blocks of a journal, and the length of its sound part."""
    lines = path.read_bytes().splitlines(keepends=True)
    first = _parsed(lines[0]) if lines else None
    if first is None:
        raise _damaged(path, 1, words)
    _check_same(first, header, path, words)
    blocks: dict[Key, Any] = {}
    length = len(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        content = _parsed(line)
        if content is None and number == len(lines):
            break
        try:
            assert content is not None
            cell, begin, end = content["block"]
            columns = content["columns"]
            if (type(cell), type(begin), type(end), type(columns)) != (str, int, int, dict):
                raise TypeError("a checksum vouches for what was written, not for who wrote it")
            blocks[cell, begin, end] = columns
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise _damaged(path, number, words) from error
        length += len(line)
    return blocks, length


def _check_same(
    found: Mapping[str, Any], wanted: Mapping[str, Any], path: Path, words: Words
) -> None:
    if "format" not in found:
        raise _damaged(path, 1, words)
    if found["format"] != wanted["format"]:
        raise InvalidInputError(
            f"`{words.resume}` needs a journal of format {wanted['format']}; got format "
            f"{found['format']!r} in {path}. Use the version of hullcal that wrote it, or another "
            "folder."
        )
    if found.get("hash") == wanted["hash"]:
        return
    if type(found.get("hash")) is not str or type(found.get("configuration")) is not dict:
        raise _damaged(path, 1, words)
    old, new = found["configuration"], wanted["configuration"]
    differences = [
        f"{name}: {json.dumps(old.get(name))} there, {json.dumps(new.get(name))} now"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    raise InvalidInputError(
        f"`{words.resume}` needs the same configuration; got {path} of configuration "
        f"{found['hash'][:12]}, and this is {wanted['hash'][:12]} ({'; '.join(differences)}). "
        f"Repeat the options of the first run, choose another folder, or {words.start_over}."
    )


def _damaged(path: Path, number: int, words: Words) -> InvalidInputError:
    if number == 1:
        return InvalidInputError(
            f"`{words.resume}` needs a journal of hullcal; got {path} without its first line. Choose "
            f"another folder, or {words.start_over}."
        )
    return InvalidInputError(
        f"`{words.resume}` needs a sound journal; got line {number} of {path} damaged, which no "
        f"interrupted run does. Delete that line to compute its block again, or {words.start_over}."
    )
