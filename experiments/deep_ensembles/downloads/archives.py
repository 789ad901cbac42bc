"""The wanted files of a package, one after the other, whatever it is packed with."""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Collection, Generator
from contextlib import closing
from pathlib import Path
from typing import IO

from experiments.deep_ensembles.downloads.debian_container import data_archive
from experiments.deep_ensembles.downloads.errors import DownloadError

__all__ = ["members_of"]

Members = Generator[tuple[str, IO[bytes]], None, None]


def members_of(package: Path, wanted: Collection[str]) -> Members:
    """Pairs of a wanted path and its bytes, each to be read before the next is asked for.

    Names are only ever compared with the wanted ones, never used as a place to write to. A wanted
    name that is a link, a folder or a device is refused; of two with one name the first counts.
    """
    name = package.name
    if name.endswith((".whl", ".zip")):
        yield from _of_zip(package, wanted)
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(package, "r|gz") as archive:
            yield from _of_tar(archive, wanted)
    elif name.endswith(".deb"):
        with (
            package.open("rb") as file,
            tarfile.open(fileobj=data_archive(file), mode="r|*") as archive,
        ):
            yield from _of_tar(archive, wanted)
    else:
        raise DownloadError(f"{name} ends in nothing that can be unpacked.")


def _of_zip(package: Path, wanted: Collection[str]) -> Members:
    with zipfile.ZipFile(package) as archive:
        left = set(wanted)
        for entry in archive.infolist():
            if entry.filename in left:
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG):  # 0: packed on a system without such kinds
                    raise _irregular(entry.filename)
                left.remove(entry.filename)
                with archive.open(entry) as file:
                    yield entry.filename, file


def _of_tar(archive: tarfile.TarFile, wanted: Collection[str]) -> Members:
    left = set(wanted)
    for entry in archive:
        path = entry.name.removeprefix("./")
        if path in left:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is None:
                raise _irregular(path)
            left.remove(path)
            with closing(file):
                yield path, file
        if not left:
            return  # the rest need not even be decompressed


def _irregular(path: str) -> DownloadError:
    return DownloadError(f"{path} in the package is not a regular file, so it is not unpacked.")
