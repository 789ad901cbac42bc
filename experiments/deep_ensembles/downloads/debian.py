"""Where the archive that apt is set up for keeps a file."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

from experiments.deep_ensembles.downloads.clients import asked, found
from experiments.deep_ensembles.downloads.errors import DownloadError, Unanswered, Unreachable
from experiments.deep_ensembles.downloads.sources import Source

__all__ = ["address", "command"]


def address(source: Source) -> str:
    """The address of the pinned version, if apt's lists hold it."""
    wanted = f"{source.package}={source.version}"
    program = found("apt-get")
    try:
        printed = asked([program, "download", "--print-uris", wanted])
    except DownloadError as error:
        raise Unreachable(
            f"apt does not know {wanted}: {error} If its lists are empty or old, run "
            f"`apt-get update`."
        ) from error
    for line in printed.splitlines():
        words = shlex.split(line)
        if len(words) < 3 or not words[1].endswith(".deb"):
            continue
        announced = next((word[7:] for word in words[3:] if word.startswith("SHA256:")), None)
        if announced not in (None, source.sha256):
            raise DownloadError(
                f"apt's archive has another {source.filename}: sha256 {announced} instead of "
                f"{source.sha256}."
            )
        if urlsplit(words[0]).scheme not in ("http", "https"):
            raise Unanswered(f"only apt-get can read {words[0]}.")
        return words[0]
    raise Unanswered(f"apt-get names no address for {wanted}.")


def command(source: Source) -> list[str] | None:
    """How apt-get itself would bring the file, without installing it."""
    return [found("apt-get"), "download", "--quiet", f"{source.package}={source.version}"]
