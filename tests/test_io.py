"""Files in, results out: every kind gives the same numbers, and every bad file an error."""

import builtins
import csv
import errno
import importlib
import io as stdio
import json
import math
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import hullcal
import io_files
from hullcal import InvalidInputError, io
from hullcal.classical import ClassicalTestResult
from hullcal.io import source, tables
from hullcal.notes import Note
from hullcal.results import CalibrationTestResult
from io_files import CLASSES, LABELS, MEMBERS, PROBS, WRITERS, K, N
from test_results import minimum, result


def refused(path, *words, **options):
    """The message with which a file is refused, which names it."""
    with pytest.raises(InvalidInputError) as caught:
        io.read(path, **options)
    message = str(caught.value)
    assert Path(path).name in message
    for word in words:
        assert word in message, message
    return message


def written(folder, name):
    path = folder / name
    WRITERS[name](path)
    return path


# --- every kind of file -------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_numbers_and_is_left_as_it_was(tmp_path, name):
    path = written(tmp_path, name)
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    before = [each.read_bytes() for each in files]
    data = io.read(path)
    assert [each.read_bytes() for each in files] == before
    np.testing.assert_array_equal(data.probs, PROBS)
    assert data.probs.dtype == np.float64
    assert not data.probs.flags.writeable
    assert data.sources == (str(path),)
    kind = path.suffix.lower()
    assert isinstance(data.probs, np.memmap) == (kind == ".npy")
    silent = kind in (".npy", ".zarr")
    assert data.classes == (None if silent else CLASSES)
    assert data.members == (None if silent else MEMBERS)
    if kind == ".npy":
        assert data.labels is None
    else:
        truth = hullcal.ClassifierSet(data.probs, classes=data.classes).labels(data.labels)
        np.testing.assert_array_equal(truth, LABELS)


def test_keys_choose_other_arrays_and_a_missing_key_lists_those_there_are(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, test=PROBS, truth=LABELS)
    assert io.read(path, probs_key="test", needs_labels=False).labels is None
    data = io.read(path, probs_key="test", labels_key="truth")
    np.testing.assert_array_equal(data.probs, PROBS)
    np.testing.assert_array_equal(data.labels, LABELS)
    refused(path, "'probs'", "'test', 'truth'", "probs_key")
    refused(path, "'y'", "labels_key", probs_key="test", labels_key="y")


def test_the_only_array_is_the_predictions_whatever_its_name(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/inside"] = PROBS
    np.testing.assert_array_equal(io.read(tmp_path / "a.h5").probs, PROBS)


# --- tables -------------------------------------------------------------------------------------


TABLES = {
    "long form in any order": (
        "p,sample,CLASS,Member\n.4,x,b,1\n.6,x,a,1\n.3,y,a,1\n.7,y,b,1\n",
        ([[[0.4, 0.6]], [[0.7, 0.3]]], ("1",), ("b", "a"), None),
    ),
    "wide form": (
        "a:x,a:y,b:x,b:y,label\n.1,.9,.2,.8,y\n",
        ([[[0.1, 0.9], [0.2, 0.8]]], ("a", "b"), ("x", "y"), ["y"]),
    ),
    "slashes": ("a/x,a/y\r.1,.9\r", ([[[0.1, 0.9]]], ("a",), ("x", "y"), None)),
    "one member": (
        "p_x,p_y,Label\r\n.1,.9,x\r\n\r\n.2,.8,y\r\n",
        ([[0.1, 0.9], [0.2, 0.8]], None, ("x", "y"), ["x", "y"]),
    ),
    "classes in digits": ("p_1,p_0,label\n.5,.5,0\n", ([[0.5, 0.5]], None, (1, 0), [0])),
    "classes partly in digits": (
        "p_1,p_x,label\n.5,.5,1\n",
        ([[0.5, 0.5]], None, ("1", "x"), ["1"]),
    ),
    "positions as floats": ("p_a,p_b,label\n.5,.5,1.0\n", ([[0.5, 0.5]], None, ("a", "b"), [1])),
    "semicolons": (
        "a:x;a:y;label\n0,1;0,9;x\n0.5;.5;y\n",
        ([[[0.1, 0.9]], [[0.5, 0.5]]], ("a",), ("x", "y"), ["x", "y"]),
    ),
    "tabs": (
        "a:x\ta:y\tlabel\n0,1\t0.9\tx\n",
        ([[[0.1, 0.9]]], ("a",), ("x", "y"), ["x"]),
    ),
    "row numbers of a frame": (",p_x,p_y\n0,.1,.9\n", ([[0.1, 0.9]], None, ("x", "y"), None)),
    "row numbers read back": (
        "Unnamed: 0,a:x,a:y\n0,.1,.9\n",
        ([[[0.1, 0.9]]], ("a",), ("x", "y"), None),
    ),
    "row numbers beside long form": (
        ",row,member,class,p\n0,1,a,x,.4\n1,1,a,y,.6\n",
        ([[[0.4, 0.6]]], ("a",), ("x", "y"), None),
    ),
    "fractions": ("p_a,p_b,label\n.5,.5,1.5\n", ([[0.5, 0.5]], None, ("a", "b"), ["1.5"])),
}


@pytest.mark.parametrize("case", TABLES)
def test_what_a_table_says(tmp_path, case):
    text, (probs, members, classes, labels) = TABLES[case]
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = io.read(path)
    np.testing.assert_array_equal(data.probs, probs)
    assert (data.members, data.classes) == (members, classes)
    assert (None if data.labels is None else data.labels.tolist()) == labels


LONG = "row,member,class,probability\n"
BAD_TABLES = {
    "neither form": ("a,b\n1,2\n", ["row,member,class,probability", "p_cat"]),
    "two decimal marks": ("a:x;a:y\n1.000,5;0\n", ["'1.000.5' in line 2"]),
    "blank lines": ("\n\n\n", ["the columns none"]),
    "an underscore": ("p_a,p_b\n.5,1_0\n", ["'1_0'", "line 2"]),
    "a column twice": ("p_a,p_a\n.5,.5\n", ["two columns", "'a'"]),
    "a missing column": ("a:x,a:y,b:x\n.5,.5,1\n", ["'b'", "'y'"]),
    "a line twice": (LONG + "1,a,x,1\n1,a,y,0\n1,a,x,1\n", ["('1', 'a', 'x')", "data line 3"]),
    "one missing, one twice": (LONG + "1,a,x,1\n1,a,x,0\n2,a,x,1\n2,a,y,0\n", ["data line 2"]),
    "an empty name": (LONG + "1,,x,1\n", ["empty cell", "line 2"]),
    "two labels for a row": (
        "row,member,class,p,label\n1,a,x,1,x\n1,a,y,0,y\n",
        ["'x' and 'y'", "row '1'"],
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_table_with_a_fault_is_refused_with_its_place(tmp_path, case):
    text, words = BAD_TABLES[case]
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    refused(path, *words)


def test_bytes_that_are_no_utf8_are_refused_wherever_they_stand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"p_a,p_b\n" + b".5,.5\n" * 20_000 + b"\xff,1\n")
    refused(path, "UTF-8")


def test_a_long_csv_takes_memory_for_its_numbers_and_not_for_its_text(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_CELLS", 4_000)
    places = [f"{n:020d},{m},{k}" for n in range(2_000) for m in "ab" for k in "0123456789"]
    path = tmp_path / "a.csv"
    path.write_text("row,member,class,p\n" + "".join(f"{place},0.1000000000\n" for place in places))
    tracemalloc.start()
    data = io.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.probs.shape == (2_000, 2, 10)
    # As Python strings, the cells of a line take about 250 bytes.
    assert peak < 100 * len(places)


def test_row_numbers_of_a_frame_in_parquet_are_left_out(tmp_path):
    columns = io_files.wide_columns() | {"__index_level_0__": list(range(N))}
    io_files.write_parquet(tmp_path / "a.parquet", columns)
    np.testing.assert_array_equal(io.read(tmp_path / "a.parquet").probs, PROBS)


def test_parquet_with_empty_cells_or_odd_types_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    io_files.write_parquet(path, {"p_a": ["x"], "p_b": ["y"]})
    refused(path, "numbers", "string", "'p_a'")
    long = {"row": [1, None], "member": ["a", "a"], "class": ["x", "x"], "p": [1.0, 1.0]}
    io_files.write_parquet(path, long)
    refused(path, "'row'", "line 2")
    io_files.write_parquet(path, long | {"row": [1, 2]})
    assert io.read(path).probs.shape == (2, 1, 1)
    io_files.write_parquet(path, {"p_a": [0.5, None], "p_b": [0.5, 1.0]})
    with pytest.raises(InvalidInputError, match=r"finite.*\(1, 0, 0\)"):
        hullcal.ClassifierSet(io.read(path).probs)


# --- labels -------------------------------------------------------------------------------------


def write_labels(path, values):
    kind, values = path.suffix, list(values)
    if kind == ".npy":
        np.save(path, np.array(values))
    elif kind == ".npz":
        np.savez(path, labels=np.array(values), other=np.zeros(3))
    elif kind == ".parquet":
        io_files.write_parquet(path, {"id": list(range(len(values))), "label": values})
    elif kind == ".txt":
        path.write_bytes("\r\n".join(map(str, values)).encode("utf-8-sig") + b"\n\n")
    else:
        path.write_text("id,label\n" + "".join(f"{i},{y}\n" for i, y in enumerate(values)))


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "txt", "parquet"])
@pytest.mark.parametrize(
    "values", [[0, 3, 1, 2, 0, 0, 3], list("abcdaab")], ids=["numbers", "names"]
)
def test_labels_from_a_file_of_their_own_count_instead(tmp_path, kind, values):
    write_labels(tmp_path / f"y.{kind}", values)
    data = io.read(written(tmp_path, "plain.npz"), labels=tmp_path / f"y.{kind}")
    assert data.labels.tolist() == values
    assert data.sources == (str(tmp_path / "plain.npz"), str(tmp_path / f"y.{kind}"))


@pytest.mark.parametrize("text", ["1\n0\n", "y\n1\n0\n", "label\n1.\n0.00\n"])
def test_labels_in_a_single_column_with_or_without_a_header(tmp_path, text):
    (tmp_path / "y.csv").write_text(text)
    np.save(tmp_path / "p.npy", np.eye(2))
    assert io.read(tmp_path / "p.npy", labels=tmp_path / "y.csv").labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "write", "words"),
    [
        ("y.npy", lambda path: np.save(path, 3), "a single value"),
        ("y.txt", lambda path: path.write_text("a\n\nb\n"), "no empty cell.*line 2"),
        ("y.csv", lambda path: path.write_text("a,b\n1,2\n"), "column `label`"),
    ],
)
def test_labels_that_do_not_fit_are_refused_with_the_name_of_their_file(
    tmp_path, name, write, words
):
    write(tmp_path / name)
    with pytest.raises(InvalidInputError, match=rf"`labels`.*{words}.*{name}"):
        io.read(written(tmp_path, "plain.npy"), labels=tmp_path / name)


# --- one file per member ------------------------------------------------------------------------


def test_files_of_single_members_are_stacked_and_named_after_the_files(tmp_path):
    np.save(tmp_path / "first.npy", PROBS[:, 0])
    np.savez(tmp_path / "second.npz", probs=PROBS[:, 1], labels=LABELS)
    header = ",".join(f"p_{k}" for k in range(K))
    np.savetxt(
        tmp_path / "third.csv", PROBS[:, 2], fmt="%.17g", delimiter=",", header=header, comments=""
    )
    files = [tmp_path / name for name in ("first.npy", "second.npz", "third.csv")]
    data = io.read(member_files=files)
    np.testing.assert_array_equal(data.probs, PROBS)
    np.testing.assert_array_equal(data.labels, LABELS)
    assert data.members == ("first", "second", "third")
    assert data.sources == tuple(map(str, files))


def test_members_of_one_name_are_told_apart(tmp_path):
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "probs.npy")
        np.save(files[-1], PROBS[:, 0])
    assert io.read(member_files=files).members == ("a/probs", "b/probs")
    assert io.read(member_files=[files[0]] * 2).members == ("a/probs", "a/probs-2")


def test_members_that_do_not_fit_together_are_refused_with_both_files(tmp_path):
    np.save(tmp_path / "one.npy", PROBS[:, 0])
    np.save(tmp_path / "two.npy", PROBS[:3, 0])
    np.savez(tmp_path / "three.npz", probs=PROBS[:, 0], classes=list("abcd"))
    np.savez(tmp_path / "four.npz", probs=PROBS[:, 0], classes=list("abdc"))
    for pair in (["one.npy", "two.npy"], ["three.npz", "four.npz"]):
        with pytest.raises(InvalidInputError) as caught:
            io.read(member_files=[tmp_path / name for name in pair])
        assert all(name in str(caught.value) for name in pair)
    with pytest.raises(InvalidInputError, match=r"one member each.*plain\.npz"):
        io.read(member_files=[tmp_path / "one.npy", written(tmp_path, "plain.npz")])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither"),
        ({"path": "a.npy", "member_files": ["b.npy"]}, "both"),
        ({"path": PROBS}, "ndarray"),
        ({"path": ""}, "path of a file"),
        ({"path": "a\0b.npy"}, "path of a file"),
        ({"path": "~no-such-user/probs.npy"}, "path of a file"),
        ({"member_files": 5}, "`member_files` must be paths of files"),
    ],
)
def test_predictions_are_named_in_exactly_one_way(files, words):
    with pytest.raises(InvalidInputError, match=words):
        io.read(**files)


# --- bad files ----------------------------------------------------------------------------------

KINDS = [".npy", ".npz", ".h5", ".hdf5", ".zarr", ".safetensors", ".csv", ".parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_files_folders_and_pipes_are_refused(tmp_path, kind):
    refused(tmp_path / f"none{kind}", "File not found: ")
    (tmp_path / f"folder{kind}").mkdir()
    refused(tmp_path / f"folder{kind}")
    os.mkfifo(tmp_path / f"one{kind}")
    refused(tmp_path / f"one{kind}", "a pipe or device")


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"x")
    refused(tmp_path / "a.xlsx", "'.xlsx'", *KINDS)


class Bomb:
    def __reduce__(self):
        return (builtins.exec, ("raise SystemExit('unpickled')",))


def test_an_archive_of_pytorch_is_not_unpickled(tmp_path):
    with zipfile.ZipFile(tmp_path / "torch.npz", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    refused(tmp_path / "torch.npz", "contains Python objects")


PICKLE = {"id": "pickle", "protocol": 5}


@pytest.mark.parametrize(
    "codecs",
    [
        {"filters": [PICKLE]},
        {"compressor": PICKLE},
        {"dtype": "|O", "fill_value": None, "filters": [PICKLE]},
        {"filters": [{"id": "base64"}]},
    ],
    ids=str,
)
def test_a_zarr_codec_that_could_unpickle_is_refused_before_it_decodes(tmp_path, codecs):
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("probs", data=PROBS, compressors=None)
    metadata = path / "probs" / ".zarray"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | codecs))
    for chunk in (path / "probs").glob("0*"):
        chunk.write_bytes(pickle.dumps(Bomb()))
    refused(path)


def test_hdf5_that_points_to_other_files_is_refused(tmp_path):
    np.save(tmp_path / "secret.npy", PROBS)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        outside = [(str(tmp_path / "secret.npy"), 128, PROBS.nbytes)]
        file.create_dataset("probs", shape=PROBS.shape, dtype="f8", external=outside)
    refused(path, "other files")
    io_files.write_hdf5(tmp_path / "b.h5")
    with h5py.File(path, "w") as file:
        file["probs"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "/probs")
    refused(path, "must hold an array 'probs'")


def test_hdf5_strings_of_variable_length_are_refused_with_the_way_to_write_them(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["probs"], file["labels"] = PROBS, ["a"] * N
    refused(tmp_path / "a.h5", "'/labels'", "np.char.encode")


@pytest.mark.parametrize("dtype", ["c16", "M8[s]", [("a", "f8")]], ids=str)
def test_predictions_that_are_no_numbers_are_refused(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.zeros((2, 2), dtype=dtype))
    refused(tmp_path / "a.npy", "numbers")


@pytest.mark.parametrize("package", ["pyarrow", "zarr", "h5py", "safetensors"])
def test_a_missing_package_is_named_with_the_way_to_get_it(tmp_path, monkeypatch, package):
    kind = {"pyarrow": "long.parquet", "zarr": "two.zarr", "h5py": "plain.h5"}
    path = written(tmp_path, kind.get(package, "plain.safetensors"))
    real = importlib.import_module

    def absent(name, *rest):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    refused(path, f"`pip install {package}`")


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in WRITERS if not name.lower().endswith(".npy")])
def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch, name):
    path = written(tmp_path, name)
    monkeypatch.setattr(source, "available", lambda: 100)
    refused(path, "GB needed", "GB available")


def test_a_mapped_file_may_be_larger_than_memory(tmp_path, monkeypatch):
    path = written(tmp_path, "plain.npy")
    monkeypatch.setattr(source, "available", lambda: 100)
    np.testing.assert_array_equal(io.read(path).probs, PROBS)
    np.save(tmp_path / "one.npy", PROBS[:, 0])
    with pytest.raises(InvalidInputError, match="GB needed"):
        io.read(member_files=[tmp_path / "one.npy"] * 3)


def test_hdf5_and_zarr_that_declare_a_terabyte_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("probs", shape=(10**6, 125, 1000), chunks=(1, 125, 1000), dtype="f8")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("probs", shape=(10**6, 125, 1000), chunks=(1, 125, 1000), dtype="f8")
    group = zarr.open_group(tmp_path / "b.zarr", mode="w")
    group.create_array("probs", shape=(2, 2, 2), chunks=(10**6, 125, 1000), dtype="f8")
    for name in ("a.h5", "a.zarr", "b.zarr"):
        assert "1e+03 GB needed" in refused(tmp_path / name)


def test_a_container_may_take_less_than_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_GROUP", tmp_path)
    unbounded = source.available()
    assert unbounded > 10**6
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("other 5\ninactive_file 200000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert source.available() == pytest.approx(unbounded, rel=0.5)
    (tmp_path / "memory.max").write_text("1000000\n")
    assert source.available() == 500_000
    (tmp_path / "memory.current").write_text("3000000\n")
    assert source.available() == 0
    monkeypatch.setattr(source, "_numbers", lambda path: {})
    assert source.available() is None


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [False, "no"])
def test_an_existing_file_is_kept_unless_forced(force, tmp_path):
    path = tmp_path / "a.json"
    io.write_atomic(path, "old")
    for call in (io.check_output, partial(io.write_atomic, content="new")):
        with pytest.raises(InvalidInputError, match="force"):
            call(path, force=force)
    assert path.read_text() == "old"
    path.chmod(0o640)
    io.write_atomic(path, b"new", force=True)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place, words in {
        tmp_path / "none" / "a.json": "Folder not found: .*none",
        tmp_path: "must be a file",
        "/dev/null": "must be a file",
        tmp_path / "loop": "link loop",
        tmp_path / ("測" * 90): "a name of at most 255 bytes",
    }.items():
        with pytest.raises(InvalidInputError, match=words):
            io.check_output(place, force=True)
    assert io.check_output(tmp_path / "a.json") == tmp_path / "a.json"
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(InvalidInputError, match="permission"):
        io.check_output(tmp_path / "a.json")


def test_a_link_is_followed_and_the_mode_is_the_users_own(tmp_path):
    path = tmp_path / ("測" * 83 + ".txt")  # 253 bytes
    io.write_atomic(path, "old")
    (tmp_path / "link").symlink_to(path)
    io.write_atomic(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == "new"
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_ctrl_c_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    def stopped(descriptor):
        raise KeyboardInterrupt

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        io.write_atomic(tmp_path / "a", "new", force=True)
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    path, real = tmp_path / "a.json", os.fsync

    def somebody_else(descriptor):
        path.write_text("theirs")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", somebody_else)
    with pytest.raises(InvalidInputError, match="must not exist"):
        io.write_atomic(path, "ours")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_file_system_without_links_is_written_too(tmp_path, monkeypatch):
    def unsupported(*arguments):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", unsupported)
    io.write_atomic(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


# --- results ------------------------------------------------------------------------------------

ODD = ("=cmd|'/c calc'!A0", 'a "quoted", one;\r\n', "NaN", "</script>", "\udcff", "Ω\x00")
TEST = result(
    statistic=math.inf,
    minimum=-0.25,
    weights=np.array([0.1, 0.2, 0.7, 0.0, 0.0, -0.0]),
    null_distribution=np.array([0.1, 1 / 3, math.inf, -math.inf]),
    hypothesis="@some combination is calibrated",
    measure="\t=HYPERLINK()",
    settings={"measure": {"bandwidth": math.inf, "function": "NaN", "n": None}, "minimizer": {}},
    seed=2**127 + 1,
    members=ODD,
    notes=(Note("too_few_rows", {"share": math.inf}),),
)
CLASSICAL = ClassicalTestResult(
    statistic=-1.5,
    pvalue=0.25,
    test="-Widmann",
    hypothesis="the classifier is calibrated",
    settings={"n_bins": np.int64(10), "fitted": False, "size": np.float32(0.5)},
    n_samples=10,
    n_classes=2,
    degrees_of_freedom=9,
)
SEARCH = minimum(weights=np.array([1.0]), value=0.25)
RESULTS = [TEST, CLASSICAL, SEARCH]


def strict(text):
    def constant(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=constant)


def test_json_is_strict_and_gives_equal_results_again(tmp_path):
    text = io.to_json(RESULTS)
    document = strict(text)
    assert document["version"] == hullcal.__version__
    kinds = [each["kind"] for each in document["results"]]
    assert kinds == ["calibration_test", "classical_test", "minimize"]
    assert document["results"][0]["statistic"] == "Infinity"
    assert document["results"][0]["minimum"] == -0.25
    assert document["results"][0]["pvalue"] == TEST.pvalue
    assert io.from_json(text) == RESULTS
    io.write_json(RESULTS, tmp_path / "a.json")
    assert io.read_json(tmp_path / "a.json") == RESULTS
    assert io.from_json(io.to_json(SEARCH)) == [SEARCH]
    assert io.from_json(io.to_json([])) == []


def test_what_is_no_result_or_cannot_be_written_is_refused():
    for wrong in (None, 3, "text", [TEST, None], {"a": 1}):
        with pytest.raises(InvalidInputError, match="results of hullcal"):
            io.to_json(wrong)
    with pytest.raises(InvalidInputError, match="JSON"):
        io.to_json(replace(SEARCH, settings={"f": object()}))


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "1", "results": [{}]}',
        '{"version": "1", "results": [{"kind": []}]}',
        '{"version": "1", "version": "1", "results": []}',
        '{"version": "1", "results": [{"kind": "minimize"}]}',
        "[" * 100_000,
        b"\xff\xfe\x00",
    ],
    ids=lambda text: repr(text[:45]),
)
def test_json_of_something_else_is_refused(tmp_path, text):
    with pytest.raises(InvalidInputError):
        io.from_json(text)
    path = tmp_path / "bad.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidInputError, match=r"bad\.json"):
        io.read_json(path)


@pytest.mark.parametrize("name", [each.name for each in fields(CalibrationTestResult)])
def test_a_field_of_the_wrong_type_is_refused(name):
    document = strict(io.to_json(TEST))
    right = type(getattr(TEST, name))
    for wrong in (True, "word", {"a": 1}, [["x"]], -0.5):
        if type(wrong) is right:
            continue
        document["results"][0][name] = wrong
        with pytest.raises(InvalidInputError):
            io.from_json(json.dumps(document))


def rows_of(text):
    return list(csv.DictReader(stdio.StringIO(text, newline="")))


def test_csv_has_a_line_per_result_and_no_formula(tmp_path):
    text = io.to_csv(
        RESULTS, answers=[{"pvalue": 0.5, "headline": "=Rejected"}, *[{}] * (len(RESULTS) - 1)]
    )
    test, classical, search = rows_of(text)
    assert (test["kind"], test["measure"]) == ("calibration_test", "'\t=HYPERLINK()")
    assert test["hypothesis"] == "'@some combination is calibrated"
    assert (test["headline"], test["pvalue"]) == ("'=Rejected", "0.5")
    assert (test["statistic"], test["minimum"]) == ("Infinity", "-0.25")
    assert float(test["unadjusted_pvalue"]) == TEST.pvalue
    assert test["weights"] == "0.1;0.2;0.7;0.0;0.0;0.0"
    assert test["seed"] == str(2**127 + 1)
    assert json.loads(test["members"]) == list(ODD)
    assert (classical["measure"], classical["statistic"]) == ("'-Widmann", "-1.5")
    assert (classical["rejected"], classical["minimum"]) == ("", "")
    assert (search["statistic"], search["minimum"]) == ("0.25", "0.25")
    assert (search["pvalue"], search["n_members"]) == ("", "1")
    io.write_csv(RESULTS, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes().startswith(b"kind,question,measure,")


@pytest.mark.parametrize("formula", ["=1", " +1", "\t-1", "\r\n@1", " \t ＝1"])
def test_cells_that_a_spreadsheet_would_run_begin_with_an_apostrophe(formula):
    (row,) = rows_of(io.to_csv(replace(SEARCH, measure=formula)))
    assert row["measure"] == f"'{formula}"


# --- the room -----------------------------------------------------------------------------------


def test_no_optional_package_is_loaded_before_a_file_needs_it(tmp_path):
    path = written(tmp_path, "wide.csv")
    code = (
        "import sys, hullcal; assert 'hullcal.io' not in sys.modules\n"
        f"from hullcal import io; io.read({str(path)!r}); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    roots = {name.split(".")[0] for name in loaded}
    heavy = {"pyarrow", "zarr", "h5py", "safetensors", "pandas", "numba", "scipy", "pickle5"}
    assert roots.isdisjoint(heavy), roots & heavy


def test_a_folder_is_told_from_a_file(tmp_path):
    with pytest.raises(hullcal.InvalidInputError, match=r'a folder in .* with `engine="dask"`'):
        io.read(tmp_path)
