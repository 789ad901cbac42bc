"""From an address to a file: go on where a broken transfer stopped."""

from __future__ import annotations

import time
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError

from experiments.deep_ensembles.downloads import asking
from experiments.deep_ensembles.downloads.errors import Unanswered
from hullcal.progress import Report

__all__ = ["receive"]

_BLOCK = 1 << 18
_MEBIBYTE = 1 << 20


def receive(url: str, part: Path, report: Report | None = None) -> None:
    """Bring the bytes behind an address into a file that may hold the first of them already.

    Whether they are the right ones is not asked here. What has come stays if the rest does not.
    """
    most, fruitless = _size(part), 0
    while True:
        try:
            if _pull(url, part, report):
                return
            trouble = "the transfer broke off"
        except asking.BROKEN as error:
            trouble = str(error) or type(error).__name__
            if _beyond_the_end(error):
                part.unlink()
            elif not asking.passing(error):
                raise Unanswered(f"{asking.shown(url)} cannot be read: {trouble}.") from error
        # Measured against the most there ever was: a server that always starts again and always
        # breaks off must not keep us for ever.
        fruitless = 0 if _size(part) > most else fruitless + 1
        most = max(most, _size(part))
        if fruitless >= asking.ATTEMPTS:
            raise Unanswered(f"{asking.shown(url)} cannot be read: {trouble}.")
        time.sleep(asking.PAUSE)


def _pull(url: str, part: Path, report: Report | None) -> bool:
    """One request; True if it brought all that was left."""
    start = _size(part)
    with asking.answer_of(url, {"Range": f"bytes={start}-"} if start else {}) as answer:
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            if not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                part.unlink(missing_ok=True)
                return False
        else:
            start = 0  # the server sends the whole file, whatever was asked
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else None
        done = start
        with part.open("ab" if start else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                if report is not None and total is not None:
                    report(done // _MEBIBYTE, total // _MEBIBYTE)
    # Python's reader takes a connection that closes early for the end of the file.
    return total is None or done >= total


def _beyond_the_end(error: Exception) -> bool:
    """More bytes are here than there, so they are not the beginning of that file."""
    refused = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    return isinstance(error, HTTPError) and error.code == refused


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
