"""The table of bad input, row by row, as the program answers a user who has such a file.

Some of its rows have no file and are tested where arrays are: tensors and frames of other packages,
lists of arrays, negative strides and masks (numpy saves neither), `n_bins`, and custom measures.
"""

import csv
import io
import os
import pickle
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from io_files import WRITERS
from test_cli import run

# Sixteenths are exact in every type, so that all types must give the same answer.
_RNG = np.random.default_rng(0)
PROBS = _RNG.multinomial(16, [0.5, 0.3, 0.2], size=(40, 2)) / 16
LABELS = np.resize([0, 1, 2, 0], 40)
LEAST = ("-D", "19", "--seed", "1", "--jobs", "1", "--null", "refit", "--format", "csv")


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def refused(folder, *arguments, words=()):
    """What was said in refusing, which is all that happened."""
    before = contents(folder)
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stderr
    assert [word for word in words if word not in done.stderr] == []
    assert contents(folder) == before
    return done.stderr


def refused_with_reason(folder, *arguments, words=()):
    """As above, in one line with its four parts: parameter, rule, what came, repair."""
    said = refused(folder, *arguments, words=words)
    assert re.fullmatch(r"hullcal: `[^`]+` .+; got .+\. [A-Z].+\.\n", said), said


def answers(folder, *commands):
    """Statistic and p-value of each command, and what else was said."""
    before = contents(folder)
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda command: run("test", *command, *LEAST, cwd=folder), commands))
    assert contents(folder) == before
    found = []
    for done in ended:
        assert done.returncode == 0, done.stderr
        (row,) = csv.DictReader(io.StringIO(done.stdout))
        assert np.isfinite(float(row["statistic"]))
        found.append((row["statistic"], row["pvalue"], done.stderr))
    return found


def changed(place, value, array=PROBS):
    """The array with another value in one place."""
    array = array.astype(np.result_type(array, type(value)))
    array[place] = value
    return array


def hot(labels):
    return np.eye(3)[labels]


# Arrays that are not what they should be

ARRAYS = {
    "nan": ({"probs": changed((3, 1, 2), np.nan)}, ["finite", "1 NaN or inf", "(3, 1, 2)"]),
    "inf": ({"probs": changed((0, 0, 0), np.inf)}, ["finite", "(0, 0, 0)"]),
    "negative": ({"probs": changed((0, 0, 0), -0.5)}, ["[0, 1]", "-0.5", "`--logits`"]),
    "above one": ({"probs": 2 * PROBS}, ["[0, 1]", "by their sum", "`--logits`"]),
    "log-probabilities": ({"probs": np.log(PROBS + 0.01)}, ["values from", "`--log`"]),
    "logits": ({"probs": _RNG.normal(size=PROBS.shape)}, ["values from", "`--logits`"]),
    "row sums": ({"probs": changed((5, 1), 0.33)}, ["sum to 1", "(5, 1)", "keepdims=True"]),
    "float32 sums": ({"probs": (PROBS * 0.999).astype("f")}, ["sum to 1", "80 of 80", "float32"]),
    "swapped": (
        {"probs": LABELS, "labels": PROBS},
        ["(40,)", "(40, 2, 3)", "--probs-key 'labels'"],
    ),
    "members first": ({"probs": np.moveaxis(PROBS, 1, 0)}, ["(2, 40, 3)", "(40,)", "moveaxis"]),
    "classes inside": (
        {"probs": np.swapaxes(PROBS, 1, 2)},
        ["(40, 3, 2)", "moveaxis(probs, 1, 2)"],
    ),
    "fewer labels": ({"labels": LABELS[:30]}, ["(30,)", "(40, 2, 3)", "same rows"]),
    "strings": ({"labels": np.array(["a", "b", "c", "a"] * 10)}, ["['a', 'b']", "`--classes "]),
    "1-based": ({"labels": LABELS + 1}, ["1-based", "`labels - 1`"]),
    "ignored": ({"labels": changed(4, -100, LABELS)}, ["1 times -100", "labels != -100"]),
    "out of range": ({"labels": changed(4, 7, LABELS)}, ["from 0 to 2", "7 at index 4"]),
    "fractions": ({"labels": LABELS + 0.5}, ["whole numbers", "0.5 at index 0"]),
    "missing label": ({"labels": changed(4, np.nan, LABELS)}, ["whole numbers", "nan at index 4"]),
    "soft labels": ({"labels": hot(LABELS) / 2}, ["one-hot", "argmax"]),
    "no rows": ({"probs": PROBS[:0], "labels": LABELS[:0]}, ["empty", "(0, 2, 3)"]),
    "one class": ({"probs": np.ones((40, 2, 1))}, ["at least 2 classes", "(40, 2, 1)"]),
    "one axis": ({"probs": PROBS[:, 0, 0]}, ["(n_samples, n_members, n_classes)", "(40,)"]),
    "objects": ({"probs": PROBS.astype(object)}, ["contains Python objects"]),
    "label objects": ({"labels": LABELS.astype(object)}, ["contains Python objects"]),
    "complex": ({"probs": PROBS * 1j}, ["numbers", "complex128"]),
    "structured": ({"probs": np.zeros((40, 3), "f8,f8")}, ["numbers", "'f0'"]),
    "text": ({"probs": PROBS.astype(str)}, ["numbers", "<U"]),
    "dates": ({"labels": LABELS.astype("M8[s]")}, ["real numbers", "datetime64"]),
    "no labels": ({"labels": None}, ["x.npz", "`--labels FILE`"]),
    "class names": ({"classes": np.array(["a", "b"])}, ["3 distinct", "('a', 'b')"]),
    "member names": ({"members": np.array(["a", "a"])}, ["2 different", "'a' twice"]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_cannot_be_used_is_refused_with_the_reason(tmp_path, name):
    arrays, words = ARRAYS[name]
    given = {"probs": PROBS, "labels": LABELS} | arrays
    np.savez(tmp_path / "x.npz", **{key: a for key, a in given.items() if a is not None})
    refused_with_reason(tmp_path, "test", "x.npz", words=words)


@pytest.mark.parametrize("command", ["sizes", "weights"])
def test_the_other_commands_refuse_it_too(tmp_path, command):
    np.savez(tmp_path / "x.npz", probs=changed((3, 1, 2), np.nan), labels=LABELS)
    refused_with_reason(tmp_path, command, "x.npz", words=["(3, 1, 2)"])


def test_the_kernel_measures_need_two_rows(tmp_path):
    np.savez(tmp_path / "x.npz", probs=PROBS[:1], labels=LABELS[:1])
    refused(tmp_path, "test", "x.npz", "-m", "skce_uq", words=["skce_uq", "2", "1"])


# Files that are not what they should be


def forged(path):
    """An archive of some bytes, whose array claims eight terabytes."""
    header = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**3, 10**3)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("probs.npy", header.getvalue() + bytes(100))


def cut_short(path):
    WRITERS[f"plain{path.suffix}" if path.suffix != ".parquet" else "wide.parquet"](path)
    path.write_bytes(path.read_bytes()[:-40])


def text(content):
    return lambda path: path.write_bytes(content.encode("latin-1"))


def objects(path):
    with h5py.File(path, "w") as file:
        file["probs"] = PROBS
        file["labels"] = LABELS.astype(str).astype(h5py.string_dtype())


WIDE = "a:x,a:y,label\n"
FILES = [
    ("missing.npz", lambda path: None, ["exist", "spelling"]),
    ("folder.npz", Path.mkdir, ["a folder", "inside it"]),
    ("empty.npz", text(""), ["an empty file"]),
    ("empty.zarr", Path.mkdir, ["readable `.zarr`", "No group"]),
    ("x.xlsx", text("PK"), ["known ending", "'.xlsx'", ".npz"]),
    ("x", text("PK"), ["known ending", ".npz"]),
    ("x.pkl", text("x"), ["contains Python objects", "np.savez"]),
    ("x.pt", text("x"), ["contains Python objects", "np.savez"]),
    ("dumped.npy", lambda path: path.write_bytes(pickle.dumps(PROBS)), ["contains Python objects"]),
    ("huge.npz", forged, ["fit into memory", "8e+03 GB needed"]),
    ("sparse.npz", lambda path: save_npz(path, csr_array(PROBS[:, 0])), ["an array 'probs'"]),
    *[
        (f"short{kind}", cut_short, [f"readable `{kind}`", "damaged, cut short"])
        for kind in (".npy", ".npz", ".h5", ".safetensors", ".parquet")
    ],
    *[
        (f"noise{kind}", text(20 * "noise "), [f"readable `{kind}`", "damaged"])
        for kind in (".npy", ".npz", ".h5", ".zarr", ".safetensors", ".parquet")
    ],
    ("noise.csv", text(20 * "noise "), ["long or wide form"]),
    ("strings.h5", objects, ["fixed length"]),
    ("cell.csv", text(WIDE + "0.5,0.5,x\n0.5,half,y\n"), ["numbers", "'half' in line 3"]),
    ("blank.csv", text(WIDE + "0.5,0.5,x\n0.5,0.5,\n"), ["no empty cell", "line 3"]),
    ("gap.csv", text(WIDE + "0.5,,x\n"), ["numbers", "'' in line 2"]),
    ("nan.csv", text(WIDE + "0.5,nan,x\n"), ["finite", "(0, 0, 1)"]),
    ("ragged.csv", text(WIDE + "0.5,0.5\n"), ["3 cells", "2 cells in line 2"]),
    ("semicolons.csv", text(WIDE.replace(",", ";") + "1;0;x\n"), ["Separate columns by commas"]),
    ("quote.csv", text(WIDE + '0.5,0.5,"x\n'), ["comma-separated", "Check the quotes"]),
    ("latin.csv", text(WIDE + "0.5,0.5,\xe9lan\n"), ["UTF-8"]),
    ("header.csv", text(WIDE), ["no line below the header"]),
    ("label.csv", text(WIDE + "0.5,0.5,z\n"), ["among `classes`", "'z' at index 0"]),
    ("twice.csv", text("row,member,class,p\n" + 2 * "1,a,x,1\n"), ["exactly once", "data line 2"]),
]


@pytest.mark.parametrize(("name", "write", "words"), FILES, ids=[name for name, _, _ in FILES])
def test_a_file_that_cannot_be_used_is_refused_with_its_name(tmp_path, name, write, words):
    write(tmp_path / name)
    refused_with_reason(tmp_path, "test", name, words=words)


@pytest.mark.parametrize("what", ["--labels", "--member"])
def test_the_option_that_named_the_file_is_named(tmp_path, what):
    np.save(tmp_path / "x.npy", PROBS)
    also = ["x.npy"] if what == "--labels" else []
    said = refused(tmp_path, "test", *also, what, "none.npy")
    assert said.startswith(f"hullcal: `{what}` must exist; got no file")


# Arguments

ARGUMENTS = {
    "--alpha": ["0", "1", "nan"],
    "--resamples": ["0", "many"],
    "--seed": ["-1"],
    "--jobs": ["0"],
    "--measure": ["nope"],
    "--null": ["nope"],
}


@pytest.mark.parametrize(("option", "value"), [(o, v) for o in ARGUMENTS for v in ARGUMENTS[o]])
def test_an_argument_out_of_range_is_refused_by_the_name_of_its_option(tmp_path, option, value):
    np.savez(tmp_path / "x.npz", probs=PROBS, labels=LABELS)
    said = refused(tmp_path, "test", "x.npz", option, value)
    assert option in said
    assert value in said


def test_two_outputs_are_two_files(tmp_path):
    words = ["--report", "--output", "Name two files"]
    refused(tmp_path, "test", "x.npz", "--output", "a", "--report", "./a", words=words)


# Input that is unusual and good


def test_the_answer_does_not_depend_on_how_numbers_and_labels_are_stored(tmp_path):
    forms = {
        "plain": (PROBS, LABELS),
        "big": (PROBS.astype(">f8"), hot(LABELS)),
        "single": (PROBS.astype("f4"), LABELS[:, None]),
        "half": (PROBS.astype("f2"), LABELS.astype("f4")),
        "names": (PROBS.astype(">f4"), np.array(["cat", "dog", "owl"])[LABELS]),
    }
    for name, (probs, labels) in forms.items():
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=labels)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(PROBS))
    np.save(tmp_path / "y.npy", LABELS)
    for path in tmp_path.iterdir():
        os.chmod(path, 0o444)
    commands = [[f"{name}.npz", "--classes", "cat,dog,owl"] for name in forms]
    found = answers(tmp_path, *commands, ["fortran.npy", "--labels", "y.npy"])
    assert set(found) == {(*found[0][:2], "")}


def test_sets_at_the_edge_of_what_is_possible_have_an_answer(tmp_path):
    sure = hot(LABELS)[:, None]
    cases = {
        "one member": (PROBS[:, :1], LABELS),
        "copies": (PROBS[:, [0, 0, 0]], LABELS),
        "zeros and ones": (np.concatenate([sure, np.roll(sure, 1, axis=2)], axis=1), LABELS),
        "impossible labels": (np.roll(sure, 1, axis=2), LABELS),
        "absent class": (PROBS, LABELS % 2),
        "booleans": (PROBS[:, :, :2] * 0 + 0.5, LABELS > 0),
    }
    for name, (probs, labels) in cases.items():
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=labels)
    found = answers(tmp_path, *([f"{name}.npz"] for name in cases))
    assert {said for _, _, said in found} == {""}


def test_rounding_is_mended_and_said(tmp_path):
    np.savez(tmp_path / "x.npz", probs=PROBS * (1 + 1e-8), labels=LABELS)
    done = run("test", "x.npz", *LEAST[:-2], cwd=tmp_path)
    assert "Note: 80 of 80 rows were renormalised" in done.stdout


def test_too_little_data_is_tested_with_a_note(tmp_path):
    for n in (1, 9, 40):
        np.savez(tmp_path / f"{n}.npz", probs=PROBS[:n], labels=LABELS[:n])
    strict = ["40.npz", "--alpha", "0.01"]
    one, few, level, quiet = answers(tmp_path, ["1.npz"], ["9.npz"], strict, [*strict, "--quiet"])
    for _, _, said in (one, few, level):
        assert said.startswith("hullcal: note: ")
        # On a machine that is new to it the program may say that it compiles.
        assert len([line for line in said.splitlines() if "compiling" not in line]) == 1
    assert "the smallest `--resamples` that could is 99" in level[2]
    assert quiet[2] == ""
