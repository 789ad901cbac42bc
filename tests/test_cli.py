"""The program as a user starts it: what it prints, what it writes, and how it ends."""

import csv
import html
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc

FAST = ("-D", "99", "--seed", "1")


def run(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "hullcal", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env=os.environ | environment,
    )


@pytest.fixture(scope="module")
def data():
    """Three members around the truth, and labels from it."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=200)
    noise = rng.dirichlet([1, 1, 1], size=(200, 3))
    probs = 0.8 * truth[:, None] + 0.2 * noise
    labels = np.array([rng.choice(3, p=p) for p in truth])
    return probs, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("files")
    probs, labels = data
    names = ["left", "middle", "=right"]
    np.savez(folder / "good.npz", probs=probs, labels=labels, members=names)
    wrong = (probs.argmax(axis=2)[:, 0] + 1) % 3
    np.savez(folder / "bad.npz", probs=probs**4 / (probs**4).sum(2, keepdims=True), labels=wrong)
    for m in range(3):
        np.save(folder / f"{'abc'[m]}.npy", probs[:, m])
    np.save(folder / "y.npy", labels)
    return folder


# The page


@pytest.mark.parametrize("given", [(), ("--seed=5",), ("--seed", "5")])
def test_the_command_on_the_page_gives_the_same_numbers_again(folder, tmp_path, given):
    page, numbers = tmp_path / "a.html", tmp_path / "a.json"
    words = ["test", folder / "good.npz", "-D", "19", "--alpha", "0.1", *given, "--format", "json"]
    done = run(*words, "--output", numbers, "--report", page)
    assert done.returncode == 0, done.stderr
    first = numbers.read_bytes()
    (command,) = re.findall(r"hullcal test [^<]*", page.read_text(encoding="utf-8"))
    assert len(re.findall(r"--seed[ =](\d+)", command)) == 1
    again = run(*shlex.split(html.unescape(command))[1:], "--force")
    assert again.returncode == 0, again.stderr
    assert numbers.read_bytes() == first


# What it says about itself


def test_help_names_the_commands():
    done = run("--help")
    assert done.returncode == 0
    for command in ("test", "report", "sizes", "weights", "measures", "demo"):
        assert f"\n  {command} " in done.stdout
    assert "..." not in done.stdout.split("Commands:")[1]  # every line fits


@pytest.mark.parametrize("command", ["test", "report", "sizes", "weights", "measures", "demo"])
def test_every_command_explains_itself(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Usage: hullcal" in done.stdout


def test_the_version_comes_with_those_that_matter():
    said = run("--version").stdout
    for name in ("hullcal", "Python", "numpy", "scipy", "numba"):
        assert name in said


def test_the_list_of_measures_is_complete():
    words = run("measures").stdout.replace(",", " ").split()
    for name in (*hc.measures.available(), *hc.minimizers.available(), *hc.nulls.available()):
        assert name in words


# hullcal test


def test_a_test_answers_both_questions_in_two_sentences(folder):
    done = run("test", folder / "good.npz", *FAST)
    assert done.returncode == 0, done.stderr
    assert "the convex hull of the members contains a calibrated classifier" in done.stdout
    assert "the convex hull of the members contains the truth" in done.stdout
    assert done.stdout.count("Perhaps:") == 2
    assert "left" in done.stdout
    # On a machine that is new to it the program may say that it compiles.
    assert not [line for line in done.stderr.splitlines() if "compiling" not in line]


def test_its_numbers_are_those_of_the_library(folder, data):
    done = run("test", folder / "good.npz", *FAST, "--format", "json")
    results = hc.io.from_json(done.stdout)
    for result, null in zip(results, ("recentered", "refit"), strict=True):
        classifiers = hc.ClassifierSet(data[0], members=["left", "middle", "=right"])
        assert result == hc.calibration_test(classifiers, data[1], null=null, n_resamples=99, rng=1)


def test_several_measures_are_adjusted(folder):
    done = run(
        "test", folder / "bad.npz", *FAST, "-m", "ece_conf", "-m", "ece_cwise", "--null", "refit"
    )
    assert "adjusted p" in done.stdout
    assert done.stdout.count("0.02") >= 2  # twice .01
    assert "No: the data speak against" in done.stdout


def test_a_critical_value_that_is_a_bound_is_printed_as_one(folder):
    short = ("--pvalue-only", "--null", "refit")
    bad = run("test", folder / "bad.npz", *FAST, *short).stdout
    assert re.search(r"\nece_conf +refit +[\d.]+ +<= [\d.]+ +0\.01 ", bad)
    assert "<=" not in run("test", folder / "bad.npz", *FAST, "--null", "refit").stdout
    assert "<=" not in run("test", folder / "good.npz", *FAST, *short).stdout
    text = run("test", folder / "bad.npz", *FAST, *short, "--format", "csv").stdout
    assert [row["critical_value_is_bound"] for row in csv.DictReader(io.StringIO(text))] == ["True"]


def test_json_is_strict_and_csv_is_a_table(folder):
    text = run("test", folder / "good.npz", *FAST, "--format", "json").stdout
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    text = run("test", folder / "good.npz", *FAST, "--format", "csv").stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert [row["null"] for row in table] == ["recentered", "refit"]
    assert not any(cell.startswith("=") for row in table for cell in row.values())


def test_members_in_files_of_their_own_are_the_same_set(folder):
    one = run("test", folder / "good.npz", *FAST, "--format", "csv").stdout
    members = [part for name in "abc" for part in ("--member", folder / f"{name}.npy")]
    many = run("test", *members, "--labels", folder / "y.npy", *FAST, "--format", "csv").stdout
    pvalues = [[row["pvalue"] for row in csv.DictReader(io.StringIO(text))] for text in (one, many)]
    assert pvalues[0] == pvalues[1]


def test_logits_are_told_by_a_flag(folder, data, tmp_path):
    np.savez(tmp_path / "logits.npz", probs=np.log(data[0]), labels=data[1])
    assert run("test", tmp_path / "logits.npz", "--logits", *FAST).returncode == 0


def test_progress_goes_to_stderr_only(folder):
    done = run("test", folder / "good.npz", *FAST, TTY_COMPATIBLE="1")
    assert "ece_conf" in done.stderr
    assert "━" not in done.stdout
    assert run("test", folder / "good.npz", *FAST, "--quiet", TTY_COMPATIBLE="1").stderr == ""


# Other commands


def test_sizes_need_no_labels(folder, data):
    done = run("sizes", *(part for name in "abc" for part in ("--member", folder / f"{name}.npy")))
    assert done.returncode == 0, done.stderr
    expected = hc.uncertainty.summary(data[0])
    assert f"{expected.tv_diameter:.4g}" in done.stdout
    given = json.loads(run("sizes", folder / "good.npz", "--format", "json").stdout)
    assert given == pytest.approx(dict(expected))


def test_weights_are_written_one_a_line(folder, data, tmp_path):
    path = tmp_path / "weights.txt"
    assert run("weights", folder / "good.npz", "--seed", "3", "--output", path).returncode == 0
    expected = hc.minimize(*data, rng=3).weights
    np.testing.assert_array_equal(np.loadtxt(path), expected)


# How it ends


def test_rejection_is_an_exit_code_only_on_request(folder):
    assert run("test", folder / "bad.npz", *FAST).returncode == 0
    assert run("test", folder / "bad.npz", *FAST, "--exit-code").returncode == 1
    assert run("test", folder / "good.npz", *FAST, "--exit-code").returncode == 0


def test_of_several_measures_any_may_reject_after_adjustment(folder):
    several = ("-m", "ece_conf", "-m", "hl_cwise", "--null", "refit", "--exit-code", "-D")
    assert run("test", folder / "bad.npz", *several, "39").returncode == 1
    # The smallest p-value of 19 resamples is .05, and twice that rejects nothing.
    assert run("test", folder / "bad.npz", *several, "19").returncode == 0


def test_a_fault_of_the_program_itself_ends_with_3_and_asks_for_a_report(folder, tmp_path):
    # A file of the user's own that hides a package breaks the program from inside.
    (tmp_path / "numba.py").touch()
    command = ("test", folder / "good.npz", "--output", "out.txt")
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("hullcal: internal error, ImportError: ")
    assert "HULLCAL_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.txt").exists()
    assert "Traceback" in run(*command, cwd=tmp_path, HULLCAL_DEBUG="1").stderr


def test_a_full_disk_ends_with_4_and_leaves_the_old_file(folder, tmp_path):
    # A disk of four kilobytes, seen by this process only.
    script = (
        'mount -t tmpfs -o size=4k none "$1" || exit 99; echo mine > "$1/r.html"; '
        '"$2" -m hullcal report "$3" -D 19 -o "$1/r.html" --force; code=$?; '
        'ls -A "$1"; cat "$1/r.html"; exit $code'
    )
    command = ["unshare", "-Urm", "sh", "-c", script, "-", tmp_path, sys.executable]
    try:
        done = subprocess.run([*command, folder / "good.npz"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this system has no `unshare`")
    if done.returncode in (1, 99):
        pytest.skip("only root may mount here")
    assert done.returncode == 4, done.stderr
    assert done.stderr.startswith("hullcal: No space left on device")
    assert done.stdout == "r.html\nmine\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_results_that_could_not_be_printed_end_with_4_too():
    command = f"{sys.executable} -m hullcal measures > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.returncode == 4
    assert done.stderr.startswith("hullcal: No space left on device")


@pytest.mark.parametrize(
    "arguments",
    [
        ["teest"],
        ["test"],
        ["test", "good.npz", "--probs-key", "nope"],
        ["test", "a.npy"],
        ["test", "good.npz", "--output", "no/such/folder/out.txt"],
        ["report", "good.npz", "-o", "y.npy"],
    ],
    ids=" ".join,
)
def test_bad_usage_and_bad_input_end_with_2_and_a_message(folder, arguments):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_an_output_that_exists_is_refused_before_any_work(folder, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("mine")
    # A number of resamples that would take hours: the refusal comes first.
    done = run("test", folder / "good.npz", "-D", "100000000", "--output", out)
    assert done.returncode == 2
    assert "out.json" in done.stderr
    assert out.read_text() == "mine"
    assert run("test", folder / "good.npz", *FAST, "--output", out, "--force").returncode == 0
    assert "Perhaps" in out.read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 4)])
def test_a_signal_leaves_nothing_half_written(folder, tmp_path, number, code):
    out = tmp_path / "out.html"
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "hullcal", "test", str(folder / "good.npz")),
            *("-D", "3000000", "--report", str(out)),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TTY_COMPATIBLE": "1"},
    )
    seen = ""
    while not re.search(r"\d:\d\d:\d\d", seen):  # the time left is known once it is at work
        piece = program.stderr.read(1)
        assert piece, seen
        seen += piece
    program.send_signal(number)
    _, said = program.communicate(timeout=60)
    assert program.returncode == code, said
    assert "Traceback" not in said
    assert list(Path(tmp_path).iterdir()) == []


def test_a_reader_that_has_had_enough_is_no_failure(folder):
    command = f"{sys.executable} -m hullcal test {folder / 'good.npz'} {' '.join(FAST)} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert "rows" in done.stdout
    assert "BrokenPipe" not in done.stderr


# The demo


def test_the_demo_judges_three_real_ensembles_and_writes_a_report(tmp_path):
    pytest.importorskip("sklearn")
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held-out handwritten digits") == 3
    forest, networks, overconfident = done.stdout.split("\n\n")[:3]
    assert "No:" not in forest
    assert "No:" not in networks
    assert overconfident.count("No:") == 2
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "overconfident networks" in page
    assert "demo/report.html" in done.stdout
