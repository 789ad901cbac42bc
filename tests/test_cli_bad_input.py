"""Bad input as the program answers a user who has such a file: one line, in the words of its options.

The whole table of bad input is tested where arrays and files are read (test_robustness.py, test_io.py).
"""

import csv
import io
import os
import pickle
import re
from pathlib import Path

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
    ended = [run("test", *command, *LEAST, cwd=folder) for command in commands]
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
    "negative": ({"probs": changed((0, 0, 0), -0.5)}, ["[0, 1]", "-0.5", "`--logits`"]),
    "log-probabilities": ({"probs": np.log(PROBS + 0.01)}, ["values from", "`--log`"]),
    "row sums": ({"probs": changed((5, 1), 0.33)}, ["sum to 1", "(5, 1)", "keepdims=True"]),
    "swapped": (
        {"probs": LABELS, "labels": PROBS},
        ["(40,)", "(40, 2, 3)", "--probs-key 'labels'"],
    ),
    "fewer labels": ({"labels": LABELS[:30]}, ["(30,)", "(40, 2, 3)", "same rows"]),
    "strings": ({"labels": np.array(["a", "b", "c", "a"] * 10)}, ["['a', 'b']", "`--classes "]),
    "1-based": ({"labels": LABELS + 1}, ["1-based", "`labels - 1`"]),
    "no rows": ({"probs": PROBS[:0], "labels": LABELS[:0]}, ["empty", "(0, 2, 3)"]),
    "objects": ({"probs": PROBS.astype(object)}, ["contains Python objects"]),
    "label objects": ({"labels": LABELS.astype(object)}, ["'labels'", ".astype(str)"]),
    "votes": ({"probs": PROBS.argmax(axis=2)}, ["Predicted classes", "predict_proba"]),
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


def cut_short(path):
    WRITERS[f"plain{path.suffix}"](path)
    path.write_bytes(path.read_bytes()[:-40])


def text(content):
    return lambda path: path.write_bytes(content.encode("latin-1"))


WIDE = "a:x,a:y,label\n"
FILES = [
    ("missing.npz", lambda path: None, ["exist", "spelling"]),
    ("folder.npz", Path.mkdir, ["a folder", "inside it"]),
    ("empty.npz", text(""), ["an empty file"]),
    ("x.xlsx", text("PK"), ["known ending", "'.xlsx'", ".npz"]),
    ("x.pkl", text("x"), ["contains Python objects", "np.savez"]),
    ("dumped.npy", lambda path: path.write_bytes(pickle.dumps(PROBS)), ["contains Python objects"]),
    ("sparse.npz", lambda path: save_npz(path, csr_array(PROBS[:, 0])), ["an array 'probs'"]),
    *[
        (f"short{kind}", cut_short, [f"readable `{kind}`", "damaged, cut short"])
        for kind in (".npy", ".npz", ".h5", ".safetensors")
    ],
    ("noise.csv", text(20 * "noise "), ["long or wide form"]),
    ("cell.csv", text(WIDE + "0.5,0.5,x\n0.5,half,y\n"), ["numbers", "'half' in line 3"]),
    ("latin.csv", text(WIDE + "0.5,0.5,\xe9lan\n"), ["UTF-8"]),
    ("label.csv", text(WIDE + "0.5,0.5,z\n"), ["among `classes`", "'z' at index 0"]),
    ("odd.csv", text("a:cat,a:dog,b:cat,b:dgo\n.5,.5,.5,.5\n"), ["every member and class", "dgo"]),
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
    assert "'none.npy'" in said


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
