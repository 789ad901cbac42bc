"""Downloads: the registry's program brings a file, its sha256 decides, and only wanted files come out."""

import gzip
import hashlib
import io
import lzma
import os
import pickle
import random
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles import downloads  # noqa: E402
from experiments.deep_ensembles.downloads import (  # noqa: E402
    SOURCES,
    ArraysOnly,
    DownloadError,
    Source,
    fetch,
    unpacked,
)

pytestmark = pytest.mark.deep

SDIST, WHEEL = "toy-1.0.tar.gz", "toy-1.0-py3-none-any.whl"
GOOD = {"toy/a.txt": b"alpha", "toy/b.txt": b"beta" * 9}
EVIL = {"../evil": b"x", "/evil": b"x", "toy/../../evil": b"x", "elsewhere/a.txt": b"x"}
BYTES = random.Random(0).randbytes(1_000_000)


def zipped(files, links=()):
    """`links` are names of symbolic links."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in links:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, "/etc/passwd")
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files, links=()):
    """`links` are triples of name, tar's letter for the kind, and where it leads."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def tgz(files, links=()):
    return gzip.compress(tarred(files, links))


def deb(data, name="data.tar.xz"):
    """The three parts of a Debian package; the second has an odd size, to be padded."""
    out = b"!<arch>\n"
    for part, content in (("debian-binary", b"2.0\n"), ("control.tar.gz", b"odd"), (name, data)):
        head = f"{part:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        out += head.encode() + content + b"\n" * (len(content) % 2)
    return out


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def known(cache, monkeypatch):
    """Makes a package one of the sources, and puts it into the cache unless told otherwise."""

    def make(content, filename=SDIST, *, registry="PyPI", members=None, by_hand=True):
        digest = hashlib.sha256(content).hexdigest()
        source = Source(
            registry, "toy", "1.0", filename, digest, members or dict.fromkeys(GOOD, None)
        )
        monkeypatch.setitem(SOURCES, "toy", source)
        if by_hand:
            (cache / "packages" / "toy").mkdir(parents=True)
            (cache / "packages" / "toy" / filename).write_bytes(content)
        return source

    return make


@pytest.mark.parametrize(
    ("content", "filename"),
    [
        (zipped(EVIL | GOOD), WHEEL),
        (tgz(EVIL | GOOD, [("toy/a.txt~", tarfile.SYMTYPE, "/")]), SDIST),
        (deb(lzma.compress(tarred({f"./{n}": b for n, b in (EVIL | GOOD).items()}))), "toy.deb"),
        (deb(gzip.compress(tarred(GOOD)), "data.tar.gz/"), "toy.deb"),
    ],
    ids=["zip", "tar.gz", "deb with xz", "deb with gz"],
)
def test_only_the_wanted_files_come_out_side_by_side(content, filename, cache, known):
    known(content, filename)
    found = {path.name: path.read_bytes() for path in unpacked("toy").iterdir()}
    assert found == {"a.txt": b"alpha", "b.txt": b"beta" * 9}
    assert not list(cache.parent.rglob("evil"))


CORRUPT = {
    "symbolic link": (tgz(GOOD, [("toy/a.txt", tarfile.SYMTYPE, "/etc/passwd")]), SDIST, "regular"),
    "link in a zip": (zipped({}, ["toy/a.txt"]), WHEEL, "regular"),
    "missing": (tgz({"toy/a.txt": b"alpha"}), SDIST, "does not hold toy/b.txt"),
    "cut off": (tgz({"toy/a.txt": BYTES})[:-200_000], SDIST, "cannot be unpacked"),
    "no data": (deb(b"data", "other.tar"), "toy.deb", r"no part named data\.tar"),
    "no container": (b"not a package", "toy.deb", "must begin with"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_package_that_is_not_as_it_should_be_leaves_nothing(case, cache, known):
    content, filename, message = CORRUPT[case]
    known(content, filename)
    with pytest.raises(DownloadError, match=message):
        unpacked("toy")
    assert list((cache / "unpacked").iterdir()) == []


def test_a_member_with_another_sha256_than_pinned_is_refused(known):
    known(tgz(GOOD), members={"toy/a.txt": hashlib.sha256(b"other").hexdigest()})
    with pytest.raises(DownloadError, match=r"toy/a\.txt .* has another sha256"):
        unpacked("toy")


def test_what_is_unpacked_needs_its_package_no_more_and_another_version_its_own(cache, known):
    known(tgz(GOOD))
    folder = unpacked("toy")
    (cache / "packages" / "toy" / SDIST).unlink()
    assert unpacked("toy") == folder
    (cache / "packages" / "toy").rmdir()
    known(tgz({"toy/a.txt": b"new", "toy/b.txt": b""}))
    assert (unpacked("toy") / "a.txt").read_bytes() == b"new"


def test_a_wrong_file_put_there_by_hand_is_refused_and_kept(cache, known):
    known(tgz(GOOD))
    package = cache / "packages" / "toy" / SDIST
    package.write_bytes(b"other")
    with pytest.raises(DownloadError, match="is another file; delete it"):
        fetch("toy")
    assert package.exists()


@pytest.mark.parametrize(
    ("registry", "filename", "program"),
    [("npm", "toy-1.0.tgz", "npm"), ("Debian", "toy.deb", "apt-get"), ("PyPI", WHEEL, "pip")],
)
def test_the_registry_s_program_brings_a_file_and_its_sha256_decides(
    registry, filename, program, known, monkeypatch
):
    known(b"the right bytes", filename, registry=registry, by_hand=False)
    commands = []

    def runs(content):
        def run(command, *, cwd, **options):
            commands.append(command)
            (cwd / filename).write_bytes(content)

        return run

    monkeypatch.setattr(subprocess, "run", runs(b"other bytes"))
    with pytest.raises(DownloadError, match=r"is another file.*by hand and put it"):
        fetch("toy")
    monkeypatch.setattr(subprocess, "run", runs(b"the right bytes"))
    assert fetch("toy").read_bytes() == fetch("toy").read_bytes() == b"the right bytes"
    assert len(commands) == 2
    assert program in commands[0]


def test_a_source_distribution_is_found_through_the_index_and_not_run(known, tmp_path, monkeypatch):
    content = tgz(GOOD)
    known(content, by_hand=False)
    page = tmp_path / "simple" / "toy" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{SDIST}#sha256=0">x</a>')
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / SDIST).write_bytes(content)
    opened = downloads.urlopen
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    # A file has no page at the address of its folder.
    monkeypatch.setattr(
        downloads,
        "urlopen",
        lambda url, timeout: opened(url + "index.html" * url.endswith("/"), timeout=timeout),
    )
    assert fetch("toy").read_bytes() == content
    page.write_text("nothing here")
    (fetch("toy")).unlink()
    with pytest.raises(DownloadError, match=rf"does not list {SDIST}"):
        fetch("toy")


def test_without_the_program_the_error_says_what_to_get(cache, known, monkeypatch):
    known(b"bytes", "toy.deb", registry="Debian", by_hand=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DownloadError, match=r"failed: .*apt-get.*get toy\.deb") as error:
        fetch("toy")
    assert str(cache / "packages" / "toy") in str(error.value)


def read_pickle(content):
    return ArraysOnly(io.BytesIO(content)).load()


@pytest.mark.parametrize("protocol", [3, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_of_arrays_is_read(protocol):
    tree = {"a": {"kernel": np.arange(6.0).reshape(2, 3), "bias": np.float32(1.5)}, "b": [1, "x"]}
    read = read_pickle(pickle.dumps(tree, protocol))
    np.testing.assert_array_equal(read["a"]["kernel"], [[0, 1, 2], [3, 4, 5]])
    assert (read["a"]["bias"], read["b"]) == (1.5, [1, "x"])


def test_a_pickle_written_by_an_old_numpy_is_read():
    new = pickle.dumps(np.arange(3), 3)
    assert b"numpy._core.multiarray" in new
    old = new.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    np.testing.assert_array_equal(read_pickle(old), [0, 1, 2])


class _Command:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"echo > {self.path}",)


def test_a_pickle_that_would_run_a_command_is_refused_by_name(tmp_path):
    target = tmp_path / "proof"
    content = pickle.dumps([np.arange(3), _Command(target)])
    with pytest.raises(pickle.UnpicklingError, match=r"asks for (posix|nt)\.system"):
        read_pickle(content)
    assert not target.exists()
    pickle.loads(content)  # the file does what we fear
    assert target.exists()


@pytest.mark.parametrize("name", SOURCES)
def test_a_real_source_holds_the_files_we_know(name):
    """In the user's own cache: some are too large to be brought for each run of the tests."""
    sizes = {
        "cifar10": {"test_batch.png": 23141302, "test_lables.json": 20001},
        "mobilenet_v2": {"mobilenet_v2-b0353104.pth": 14212972},
        "vgg16_trunk": {"vgg16.ckpt": 58866625},
        "silva": {"SSURef_93.fasta.nsq": 75568499},
        "swissprot": {"goasp.fasta.psq": 170940656, "goasp_annot.dat": 31815091},
    }
    try:
        folder = unpacked(name)
    except DownloadError as error:
        pytest.skip(f"the registry cannot be reached: {error}")
    assert {file: (folder / file).stat().st_size for file in sizes[name]} == sizes[name]
