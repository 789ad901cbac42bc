"""Bad input as the program answers a user who has such a file: one line, in the words of its options.

The whole table of bad input is tested where arrays and files are read (test_robustness.py, test_io.py).
"""

import io
import re
from pathlib import Path

import numpy as np
import pytest

from io_files import LABELS as FILED
from io_files import WRITERS
from test_cli import run
from test_robustness import LABELS, PROBS, changed


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


# Arrays that are not what they should be

ARRAYS = {
    "negative": ({"probs": changed((0, 0, 0), -0.5)}, ["[0, 1]", "-0.5", "`--logits`"]),
    "log-probabilities": ({"probs": np.log(PROBS + 0.01)}, ["values from", "`--log`"]),
    "row sums": ({"probs": changed((5, 1), 0.33)}, ["sum to 1", "(5, 1)", "`--normalize`"]),
    "swapped": (
        {"probs": LABELS, "labels": PROBS},
        ["(40,)", "(40, 2, 3)", "--probs-key 'labels'"],
    ),
    "strings": ({"labels": np.array(["a", "b", "c", "a"] * 10)}, ["['a', 'b']", "`--classes "]),
    "1-based": ({"labels": LABELS + 1}, ["1-based", "Save `labels - 1`"]),
    "no labels": ({"labels": None}, ["x.npz", "`--labels FILE`"]),
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


# Files that are not what they should be


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.pkl", "x", ["contains Python objects", "np.savez"]),
        ("noise.csv", 20 * "noise ", ["long or wide form"]),
        ("label.csv", "a:x,a:y,label\n0.5,0.5,z\n", ["among `classes`", "'z' at index 0"]),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_name(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    refused_with_reason(tmp_path, "test", name, words=words)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.npz"], "File not found: none.npz"),
        (["x.npy", "--labels", "none.txt"], "File not found: none.txt"),
        (["--member", "none.npy"], "File not found: none.npy"),
        (["none"], "File or folder not found: none"),
        (["none/deeper/x.npz"], "Folder not found: none"),
        (["x.npy", "--output", "none/x.txt"], "Folder not found: none"),
        (["none", "--engine", "dask"], "File or folder not found: none"),
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_named_and_nothing_else_is_said(arguments, said, tmp_path):
    np.save(tmp_path / "x.npy", PROBS)
    assert refused(tmp_path, "test", *arguments) == f"hullcal: {said}\n"


def test_files_of_one_member_each_are_named_by_an_option(tmp_path):
    (tmp_path / "preds").mkdir()
    for m in range(2):
        np.save(tmp_path / f"m{m}.npy", PROBS[:, m])
        np.save(tmp_path / "preds" / f"m{m}.npy", PROBS[:, m])
    np.save(tmp_path / "preds" / "y.npy", LABELS)
    refused(tmp_path, "test", "m0.npy", "m1.npy", words=["--member m0.npy --member m1.npy"])
    words = ["--member preds/m0.npy --member preds/m1.npy`", "`--engine dask`"]
    refused_with_reason(tmp_path, "test", "preds", words=words)
    assert "dask" not in refused(tmp_path, "sizes", "preds", words=words[:1])


def test_members_of_other_lengths_are_named_with_their_shapes(tmp_path):
    np.save(tmp_path / "a.npy", PROBS[:, 0])
    np.save(tmp_path / "b.npy", PROBS[:9, 1])
    words = ["`--member` must agree", "got (40, 3) in 'a.npy' and (9, 3) in 'b.npy'. "]
    refused_with_reason(tmp_path, "test", "--member", "a.npy", "--member", "b.npy", words=words)


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


@pytest.mark.parametrize("name", ["r.pdf", "r", "r.html.gz"])
def test_a_report_of_another_kind_is_refused(name, tmp_path):
    words = ["`--report` must end in .html or .htm", repr(name)]
    refused_with_reason(tmp_path, "test", "x.npz", "--report", name, words=words)


def test_two_outputs_are_two_files(tmp_path):
    words = ["`--report` must be another file than `--output`"]
    refused(tmp_path, "test", "x.npz", "--output", "a", "--report", "./a", words=words)


# Input that is unusual and good


@pytest.mark.parametrize("kind", ["x.npz", "x.npy", "x.csv", "x.parquet", "x.h5"])
def test_standard_input_is_read_whatever_it_holds(kind, tmp_path, monkeypatch):
    WRITERS[
        {"x.csv": "wide.csv", "x.parquet": "wide.parquet"}.get(kind, f"plain{Path(kind).suffix}")
    ](tmp_path / kind)
    np.save(tmp_path / "y.npy", FILED)
    beside = ["--labels", "y.npy"] if kind == "x.npy" else []
    with open(tmp_path / kind, "rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        piped, named = (
            run("weights", name, *beside, "--seed", "1", cwd=tmp_path) for name in ("-", kind)
        )
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == named.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ["empty file"]), (b"\x80\x04K", ["Python objects"]), (b"a,b\n", ["long or wide form"])],
)
def test_standard_input_that_cannot_be_used_is_called_so(content, words, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    refused_with_reason(tmp_path, "test", "-", words=["in standard input", *words])


def test_rounded_probabilities_are_divided_by_their_sums_on_request(tmp_path):
    np.savez(tmp_path / "x.npz", probs=PROBS + np.array([0, 0, 0.001]), labels=LABELS)
    refused_with_reason(
        tmp_path, "sizes", "x.npz", words=["with sum 1.001. ", "pass `--normalize`"]
    )
    assert run("sizes", "x.npz", "--normalize", cwd=tmp_path).returncode == 0
