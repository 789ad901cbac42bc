"""How is text read: UTF-8 with or without a byte order mark, any line ends, and where it fails?"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from hullcal.files.memory import check_fits
from hullcal.files.source import Source

__all__ = ["open_text", "read_lines"]


@contextmanager
def open_text(source: Source) -> Iterator[TextIO]:
    """Open a text file; a byte that is no UTF-8 is an error with its position."""
    try:
        with open(source.path, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        came = f"other bytes, the first at position {_first_bad_byte(source)},"
        raise source.refuse("must be UTF-8 text", came, "Save it as UTF-8.") from error


def _first_bad_byte(source: Source) -> int:
    """Find the byte; the error itself counts from somewhere inside the file."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    before = 0
    with open(source.path, "rb") as file:
        while True:
            block = file.read(1 << 20)
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return before - pending + error.start
            before += len(block)
            if not block:
                return before


def read_lines(source: Source) -> list[str]:
    """Read one label per line; blank lines may only stand at the end."""
    check_fits(source, 8 * source.path.stat().st_size)
    with open_text(source) as file:
        lines = [line.strip() for line in file]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        came = f"an empty line {lines.index('') + 1}"
        raise source.refuse("must have one label in every line", came, "Fill or remove it.")
    if not lines:
        raise source.refuse("must have one label in every line", "blank lines only", "Add some.")
    return lines
