"""Features of many images, computed once: what is interrupted goes on where it stopped."""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from torch import nn

import hullcal as hc
from experiments.deep_ensembles.images.image_files import ImageFiles
from experiments.deep_ensembles.images.inference import (
    Images,
    Report,
    check_images,
    extract,
    reporter,
)

__all__ = ["cached_features", "extract", "images_md5", "weights_sha256"]


def cached_features(
    name: str,
    factory: Callable[[], nn.Module],
    images: Images,
    path: str | Path,
    *,
    size: int,
    normalise: bool = True,
    dtype: DTypeLike = np.float16,
    rows_per_block: int = 2000,
    progress: bool | Report = False,
) -> NDArray[np.floating]:
    """Read features from a folder, or compute them there with `extract`.

    Each block of rows is written under a temporary name and renamed. At the end one file
    `{name}_{size}px.npy` holds all rows, and `{name}_{size}px.json` says what they are; features of
    other images, weights or settings under the same name are refused.

    Parameters
    ----------
    name : str
        Of the images and the network, as in "cifar10_test_mobilenet_v2".
    factory : callable
        Gives the network.
    images : ndarray of uint8, shape (n, height, width, 3), or ImageFiles
        Files are all decoded once before the first block, so that a damaged one is named at once.
    path : str or Path
        The folder; made if need be.
    size, normalise, dtype, progress
        As for `extract`.
    rows_per_block : int
        How much an interruption may cost. A run must be taken up with the number it began with.

    Returns
    -------
    ndarray of shape (n, D)
        The same bits whether or not it was interrupted, given the same number of threads.
    """
    total = check_images(images, size)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise hc.InvalidInputError(
            f"`name` must be letters, digits, _, - and dots; got {name!r}. It becomes a file's name."
        )
    if rows_per_block < 1:
        raise hc.InvalidInputError(
            f"`rows_per_block` must be at least 1; got {rows_per_block}. Leave it out for the default."
        )
    folder = Path(path)
    network = factory()
    what = {
        "name": name,
        "network": type(network).__name__,
        "weights_sha256": weights_sha256(network),
        "images_md5": images_md5(images),
        "rows": total,
        "size": size,
        "normalise": normalise,
        "dtype": str(np.dtype(dtype)),
    }
    whole, manifest = (folder / f"{name}_{size}px{suffix}" for suffix in (".npy", ".json"))
    if manifest.exists():
        return _finished(whole, manifest, what)
    blocks = folder / f"{name}_{size}px.blocks"
    _begin(blocks, images, what | {"rows_per_block": rows_per_block})
    report = reporter(progress)
    parts = []
    for start in range(0, total, rows_per_block):
        stop = min(start + rows_per_block, total)
        part = blocks / f"{start:08d}.npy"
        if not _is_whole(part, stop - start):
            chosen = _slice(images, start, stop)
            values = extract(network, chosen, size=size, normalise=normalise, dtype=dtype)
            hc.io.write_atomic(part, _npy(values), force=True)
        parts.append(part)
        report(stop, total)
    columns = _join(parts, whole, total)
    said = what | {"columns": columns, "sha256": _sha256(whole)}
    hc.io.write_atomic(manifest, json.dumps(said, indent=1) + "\n", force=True)
    shutil.rmtree(blocks, ignore_errors=True)
    return np.load(whole)


def weights_sha256(network: nn.Module) -> str:
    """Fingerprint of all parameters and buffers with their names."""
    whole = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        values = tensor.detach().cpu().contiguous().numpy()
        whole.update(f"{name} {values.dtype} {values.shape}\n".encode())
        whole.update(values.tobytes())
    return whole.hexdigest()


def images_md5(images: Images) -> str:
    """Fingerprint of the pixels of an array, or of the bytes of the files."""
    if isinstance(images, ImageFiles):
        return images.md5()
    return hashlib.md5(np.ascontiguousarray(images), usedforsecurity=False).hexdigest()


def _finished(whole: Path, manifest: Path, what: dict[str, Any]) -> NDArray[np.floating]:
    said = json.loads(manifest.read_text())
    _must_agree(said, what, manifest)
    if not whole.is_file() or _sha256(whole) != said.get("sha256"):
        raise hc.InvalidInputError(
            f"`path` must hold features as they were written; got {whole}, which was changed or lost. "
            f"Delete {manifest.name} there to compute them again."
        )
    return np.load(whole)


def _begin(blocks: Path, images: Images, what: dict[str, Any]) -> None:
    journal = blocks / "what.json"
    if journal.exists():
        _must_agree(json.loads(journal.read_text()), what, journal)
        return
    if isinstance(images, ImageFiles):
        images.check()
    blocks.mkdir(parents=True, exist_ok=True)
    hc.io.write_atomic(journal, json.dumps(what, indent=1) + "\n", force=True)


def _must_agree(said: dict[str, Any], what: dict[str, Any], file: Path) -> None:
    other = [
        f"{key} {said.get(key)!r}, not {what[key]!r}" for key in what if said.get(key) != what[key]
    ]
    if other:
        raise hc.InvalidInputError(
            f"`path` must hold features of the same images, network and settings; got {file} with "
            f"{'; '.join(other)}. Choose another `name` or folder, or delete that file's features."
        )


def _slice(images: Images, start: int, stop: int) -> Images:
    return (
        images.subset(np.arange(start, stop))
        if isinstance(images, ImageFiles)
        else images[start:stop]
    )


def _is_whole(part: Path, rows: int) -> bool:
    """Whether a block is there in full; a damaged one is computed again."""
    try:
        return len(np.load(part, mmap_mode="r")) == rows
    except (OSError, ValueError, EOFError):
        return False


def _npy(values: NDArray[np.floating]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _join(parts: list[Path], whole: Path, rows: int) -> int:
    """Copy blocks one by one into the final file; give its number of columns."""
    first = np.load(parts[0], mmap_mode="r")
    shape = (rows, first.shape[1])
    temporary = whole.with_name(f".{whole.name}.tmp")
    joined = np.lib.format.open_memmap(temporary, mode="w+", dtype=first.dtype, shape=shape)
    start = 0
    for part in parts:
        block = np.load(part)
        joined[start : start + len(block)] = block
        start += len(block)
    joined.flush()
    del joined
    os.replace(temporary, whole)
    return shape[1]


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
