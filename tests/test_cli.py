"""The program as a user starts it: what it prints, what it writes, and how it ends."""

import contextlib
import csv
import html
import importlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from click.shell_completion import BashComplete

import hullcal as hc
from hardening.subjects import predictions
from hullcal import assessment, cli
from hullcal.cli.options import Files, command_line

FAST = ("-D", "99", "--seed", "1")
ONE = ("-D", "99", "--seed", "1", "--question", "calibrated", "--format", "json")
PROGRAM = [sys.executable, "-m", "hullcal"]


def run(*arguments, cwd=None, **environment):
    """The program in this process: its exit code, and what it printed."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    words = [str(word) for word in arguments]
    with (
        contextlib.chdir(cwd or os.getcwd()),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["hullcal", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        cli.run(words)
    out.flush()
    err.flush()
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return SimpleNamespace(returncode=end.value.code or 0, stdout=printed, stderr=said)


def started(*arguments, **options):
    """The program in a process of its own."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], **options)


def result(done):
    """The only result that was printed as JSON."""
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    return found


@pytest.fixture(scope="module")
def data():
    return predictions(200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """The data as one file, as a file a member and as shards; and a set that is plainly wrong."""
    folder = tmp_path_factory.mktemp("files")
    probs, labels = data
    np.savez(folder / "good.npz", probs=probs, labels=labels, members=["left", "middle", "=right"])
    wrong = (probs.argmax(axis=2)[:, 0] + 1) % 3
    np.savez(folder / "bad.npz", probs=probs**4 / (probs**4).sum(2, keepdims=True), labels=wrong)
    for m, name in enumerate("abc"):
        np.save(folder / f"{name}.npy", probs[:, m])
    np.save(folder / "y.npy", labels)
    (folder / "shards").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(200), 4)):
        np.save(folder / "shards" / f"probs-{i}.npy", probs[rows])
        np.save(folder / "shards" / f"labels-{i}.npy", labels[rows])
    return folder


# What it says about itself


def test_help_version_and_measures_name_what_there_is():
    said = run("--help").stdout
    for command in ("test", "sizes", "weights", "measures", "demo"):
        assert f"\n  {command} " in said
        assert "Usage: hullcal" in run(command, "--help").stdout
    assert "..." not in said.split("Commands:")[1]  # every line fits
    for name in ("hullcal", "Python", "numpy", "scipy", "numba"):
        assert name in run("--version").stdout
    words = run("measures").stdout.replace(",", " ").split()
    for name in (*hc.measures.available(), *hc.minimizers.available(), *hc.nulls.available()):
        assert name in words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hullcal test x.npz -m ece_conf", {"ece_conf", "ece_conf_smooth"}),
        ("hullcal test x.npz --null re", {"recentered"}),
        ("hullcal test x.npz --minimizer ex", {"exact"}),
        ("hullcal power x.npz --test tr", {"truth"}),
        ("hullcal power x.npz --test truth:sk", {"truth:skce_b", "truth:skce_ul", "truth:skce_uq"}),
    ],
)
def test_names_are_completed(words, expected):
    *before, begun = words.split()
    completion = BashComplete(cli.main, {}, "hullcal", "_HULLCAL_COMPLETE")
    assert {each.value for each in completion.get_completions(before[1:], begun)} == expected


# hullcal test


def test_a_test_answers_three_questions_and_says_what_to_do_next(folder, data):
    done = run("test", folder / "good.npz", *FAST)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 15
    assert lines[0] == "good.npz: 200 rows, 3 members, 3 classes; alpha 0.05, seed 1"
    for question in hc.verdicts.QUESTIONS.values():
        (line,) = (line for line in lines if line.startswith(question))
        assert re.search(r"Not rejected \(p = ", line)
    average = hc.ClassifierSet(data[0]).mean()
    error = 100 * hc.ConfidenceECE()(average, data[1])
    right = (average.argmax(axis=1) == data[1]).mean()
    assert f"off by {error:.1f} points (" in done.stdout
    assert f"accuracy {right:.1%}" in done.stdout
    assert "Next step" in done.stdout
    # On a machine that is new to it the program may say that it compiles.
    assert not [line for line in done.stderr.splitlines() if "compiling" not in line]


def test_figures_of_every_test_are_shown_on_request(folder):
    done = run("test", folder / "good.npz", *FAST, "-v", "-m", "ece_conf,ece_conf:5", "-D", "199")
    for words in ("critical", "Best weights: ", " on middle", "ece_conf:5", "likelihood"):
        assert words in done.stdout


def test_its_numbers_are_those_of_the_library(folder, data):
    printed = run("test", folder / "good.npz", *FAST, "--format", "json").stdout
    json.loads(printed, parse_constant=lambda name: pytest.fail(name))
    classifiers = hc.ClassifierSet(data[0], members=["left", "middle", "=right"])
    found = hc.assess(classifiers, data[1], n_resamples=99, rng=1)
    assert hc.io.from_json(printed) == list(found.results)
    assert json.loads(printed) == json.loads(found.to_json())


def test_all_measures_leave_out_what_takes_long_unless_it_is_named(folder, monkeypatch):
    pace = {"ece_conf": 1.0, "skce_uq": 1e4, "skce_b": 1e5}
    monkeypatch.setattr(
        assessment, "expected_seconds", lambda p, y, measure, *rest: pace.get(measure.name, 1e9)
    )
    command = ("test", folder / "good.npz", *ONE, "--jobs", "1")
    done = run(*command, "-m", "all")
    assert "1 measure, about 1 s at most" in done.stderr
    assert "skce_uq (about 3 hours)" in done.stderr
    assert [each["measure"] for each in json.loads(done.stdout)["results"]] == ["ece_conf"]
    both = json.loads(run(*command, "-m", "all", "-m", "skce_uq", "-D", "199").stdout)["results"]
    assert [each["measure"] for each in both] == ["ece_conf", "skce_uq"]


def test_a_misspelt_command_names_the_near_one_and_none_shows_examples():
    assert "Did you mean test?" in run("tset").stderr
    assert run("tset").returncode == 2
    said = run()
    assert said.returncode == 0
    assert said.stdout.count("\n  hullcal ") == 3


def test_members_in_files_of_their_own_are_the_same_set(folder):
    members = [part for name in "abc" for part in ("--member", folder / f"{name}.npy")]
    many = run("test", *members, "--labels", folder / "y.npy", *ONE)
    assert result(many)["pvalue"] == result(run("test", folder / "good.npz", *ONE))["pvalue"]


def test_logits_are_told_by_a_flag(data, tmp_path):
    np.savez(tmp_path / "logits.npz", probs=np.log(data[0]), labels=data[1])
    assert run("test", tmp_path / "logits.npz", "--logits", *FAST).returncode == 0


def test_bins_and_budgets_are_written_behind_names(folder):
    command = ("test", folder / "good.npz", *ONE)
    found = result(run(*command, "-m", "ece_conf:5", "--minimizer", "pairwise:37"))
    assert found["settings"]["measure"] == {"n_bins": 5}
    assert found["settings"]["minimizer"] == {"max_evaluations": 37}
    for wrong, said in (("ece_con", "Did you mean ece_conf?"), ("skce_b:3", "has no bins")):
        refused = run(*command, "-m", wrong)
        assert refused.returncode == 2
        assert said in refused.stderr


def test_a_test_stops_early_once_its_p_value_is_large(folder):
    command = ("test", folder / "good.npz", "-D", "199", "--seed", "3", "--format", "json")
    early, late = (
        json.loads(run(*command, "--stop-after", h).stdout)["results"] for h in ("3", "199")
    )
    assert all(each["n_resamples"] == 199 for each in late)
    assert min(each["n_resamples"] for each in early) < 50


@pytest.mark.parametrize(
    ("labels", "there", "typed", "classes"),
    [
        ([0, 1], None, "1, 0", (1, 0)),
        (["0", "1"], None, "1,0", ("1", "0")),
        ([0, 1], None, "cat,dog", ("cat", "dog")),
        # Positions are no names, so they can be given some.
        ([0, 1], (0, 1), "cat,dog", ("cat", "dog")),
        (["cat", "dog"], ("cat", "dog"), "cat,dog", ("cat", "dog")),
        (["cat", "dog"], ("dog", "cat"), None, ("dog", "cat")),
    ],
)
def test_classes_are_called_as_their_labels_are(labels, there, typed, classes):
    assert Files(classes=typed).options(np.array(labels), there)["classes"] == classes


def test_names_of_classes_in_a_file_are_not_replaced(tmp_path):
    (tmp_path / "x.csv").write_text("p_cat,p_dog,label\n.5,.5,cat\n")
    swapped = run("test", tmp_path / "x.csv", "--classes", "dog,cat")
    assert swapped.returncode == 2
    assert "`--classes` must be left out where FILE names its classes" in swapped.stderr


def test_columns_named_by_numbers_are_classes_of_that_name(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=90)
    labels = (rng.random(90) < probs[:, 1]).astype(int)
    lines = [f"{b},{a},{y + 1}" for (a, b), y in zip(probs.tolist(), labels, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["p_2,p_1,label", *lines]))
    found = result(run("test", tmp_path / "x.csv", *ONE))
    assert found["statistic"] == pytest.approx(hc.ConfidenceECE()(probs, labels), abs=1e-12)


# What is written, and what is told on the way


def test_the_command_on_the_page_gives_the_same_numbers_again(folder, tmp_path):
    page, numbers = tmp_path / "a.html", tmp_path / "a.json"
    words = ["test", folder / "good.npz", *ONE[:2], *ONE[4:]]
    assert run(*words, "--output", numbers, "--report", page).returncode == 0
    first = numbers.read_bytes()
    (command,) = re.findall(r"hullcal test [^<]*", page.read_text(encoding="utf-8"))
    assert run(*shlex.split(html.unescape(command))[1:]).returncode == 0
    assert numbers.read_bytes() == first


@pytest.mark.parametrize("seed", [["--seed=5"], ["--seed", "5"]])
def test_a_seed_that_was_given_is_not_given_twice(seed, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["hullcal", "test", "x.npz", *seed])
    assert command_line(7) == " ".join(["hullcal", "test", "x.npz", *seed])


@pytest.mark.parametrize(
    ("name", "begins"), [("x.json", "{"), ("x.csv", "kind,"), ("x.txt", "good.npz: 200 ")]
)
def test_the_ending_of_a_file_says_what_is_written_to_it(name, begins, folder, tmp_path):
    command = ("test", folder / "good.npz", *ONE[:-2], "--output")
    assert run(*command, tmp_path / name).returncode == 0
    assert (tmp_path / name).read_text().startswith(begins)
    assert run(*command, tmp_path / f"a-{name}", "--format", "csv").returncode == 0
    assert (tmp_path / f"a-{name}").read_text().startswith("kind,")


def test_sizes_need_no_labels(folder, data, tmp_path):
    expected = dict(hc.uncertainty.summary(data[0]))
    done = run("sizes", *(part for name in "abc" for part in ("--member", folder / f"{name}.npy")))
    assert f"{expected['tv_diameter']:.4g}" in done.stdout
    np.savez(tmp_path / "x.npz", probs=data[0], labels=data[1][:-3])
    given = json.loads(run("sizes", tmp_path / "x.npz", "--format", "json").stdout)
    assert given.pop("units") == hc.uncertainty.UNITS
    assert given == pytest.approx(expected)
    table = run("sizes", tmp_path / "x.npz", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(table))
    assert [*row] == [*given]


def test_weights_are_written_one_a_line(folder, data, tmp_path):
    path = tmp_path / "weights.txt"
    assert run("weights", folder / "good.npz", "--seed", "3", "--output", path).returncode == 0
    np.testing.assert_array_equal(np.loadtxt(path), hc.minimize(*data, rng=3).weights)
    for command in ("weights", "test", "sizes"):
        done = run(command, folder / "good.npz", "--output", tmp_path / "w.npy")
        assert done.returncode == 2
        assert "'w.npy' must end in .txt, .json or .csv" in done.stderr


def test_progress_goes_to_stderr_only(folder):
    terminal = {"TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "100"}
    done = run("test", folder / "good.npz", *FAST, **terminal)
    assert "ece_conf" in done.stderr
    assert "━" not in done.stdout
    assert run("test", folder / "good.npz", *FAST, "--quiet", **terminal).stderr == ""


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        # Compilation took 30 s before the first result.
        (((30, 1), (35, 500), (42, 1001), (44, 1600)), ["0% done", "50% done, about 12 s left"]),
        # Too little is done to tell.
        (((1, 0), (2, 1), (13, 39), (24, 401)), ["2% done", "20% done, about 88 s left"]),
        (((12, 100), (24, 100)), ["5% done", "5% done"]),
        (((2, 100), (24, 2000)), ["100% done, about 1 s left"]),
        (((1, 1), (1001, 41)), ["2% done, about 14 hours left"]),
    ],
)
def test_a_log_is_told_now_and_then_how_long_the_rest_takes(reports, said, monkeypatch, capsys):
    ending = importlib.import_module("hullcal.cli.running")
    clock = iter([0.0, *(time for time, _ in reports)])
    monkeypatch.setattr(ending, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with ending.working(quiet=False) as report:
        for _, done in reports:
            report("calibrated, ece_conf", done, 2000)
    lines = [f"hullcal: calibrated, ece_conf: {words}\n" for words in said]
    assert capsys.readouterr() == ("", "".join(lines))


# How it ends


def test_whether_some_combination_is_calibrated_decides_unless_questions_are_named(data, tmp_path):
    flat = 0.5 * data[0] + 0.5 / 3
    np.savez(tmp_path / "flat.npz", probs=np.stack([flat[:, 0], data[0][:, 0]], 1), labels=data[1])
    command = ("test", tmp_path / "flat.npz", *FAST, "--exit-code")
    assert run(*command, "--question", "average").returncode == 1
    assert run(*command).returncode == 0


def test_where_the_program_failed_is_printed_on_request(folder, monkeypatch):
    monkeypatch.setattr("hullcal.assessment.assess", lambda *_, **__: 1 / 0)
    done = run("test", folder / "good.npz", HULLCAL_DEBUG="1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 4)])
def test_a_signal_leaves_nothing_half_written(folder, tmp_path, number, code):
    command = ("test", folder / "good.npz", "-D", "3000000", "--report", tmp_path / "out.html")
    command += ("--stop-after", "3000000")
    program = started(*command, env=os.environ | {"TTY_COMPATIBLE": "1"})
    seen = ""
    while not re.search(r"\d:\d\d:\d\d", seen):  # the time left is known once it is at work
        piece = program.stderr.read(1)
        assert piece, seen
        seen += piece
    program.send_signal(number)
    _, said = program.communicate(timeout=60)
    assert program.returncode == code, said
    assert "Traceback" not in said
    assert "nothing was written" in said
    assert "--resume" not in said  # there is no journal
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_cannot_be_used_is_refused_with_the_reason(folder, tmp_path):
    command = ("test", folder / "good.npz", *FAST, "--question", "calibrated", "--journal")
    (tmp_path / "file").touch()
    done = run(*command, tmp_path / "file")
    assert done.returncode == 2
    assert "`--journal` must be a folder; got the file" in done.stderr
    assert run(*command, tmp_path / "j").returncode == 0
    assert "Add `--resume` to resume its run" in run(*command, tmp_path / "j").stderr
    (journal,) = (tmp_path / "j").rglob("journal.jsonl")
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(others))
    done = run(*command, tmp_path / "j", "--resume")
    assert done.returncode == 2
    assert "`--journal` needs a journal of hullcal" in done.stderr
    assert "Choose another folder, or delete this one." in done.stderr
    journal.write_bytes(first + b"?" + others[0] + others[1])
    done = run(*command, tmp_path / "j", "--resume")
    assert "Delete that line to compute its block again" in done.stderr


def unheard(*arguments, stream="stdout"):
    """The exit code where nobody reads what is printed there, and what is printed elsewhere."""
    reader, writer = os.pipe()
    os.close(reader)
    with started(*arguments, **{stream: writer}) as program:
        printed, said = program.communicate(timeout=300)
    os.close(writer)
    assert "Traceback" not in (said or "")
    assert "BrokenPipe" not in (said or "")
    return program.returncode, printed


@pytest.mark.parametrize("command", ["measures", "test --help"])
def test_a_reader_that_has_left_is_no_rejection(command):
    assert unheard(*command.split())[0] == 0


def test_the_decision_is_the_exit_code_whether_anybody_reads_or_not(folder, data, tmp_path):
    assert unheard("test", folder / "bad.npz", *ONE, "--exit-code")[0] == 1
    np.savez(tmp_path / "few.npz", probs=data[0][:8], labels=data[1][:8])  # which has notes
    command = ("test", tmp_path / "few.npz", *ONE[:-2], "--exit-code")
    ended, printed = unheard(*command, stream="stderr")
    assert ended == 0
    assert "Is some combination calibrated?" in printed


# The demo


def test_the_demo_judges_three_real_ensembles_and_writes_a_report(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(assessment, "assess", partial(hc.assess, n_resamples=399))
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held-out handwritten digits") == 3
    *_, forest, networks, overconfident, empty, last = done.stdout.splitlines()
    assert forest.startswith("random forest ")
    assert forest.count("Not rejected") == 1
    assert networks.count("Not rejected") == 2  # the truth is
    assert overconfident.count("Rejected") == 3
    assert (empty, last) == ("", "The report, with all next steps: demo/report.html")
    page = (tmp_path / "demo" / "report.html").read_bytes()
    assert b"overconfident networks" in page
    assert len(page) < 400_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seed", "99999999999"), "--seed"),
        (("-o", "there.html"), "`--output` must not exist yet"),
        (("-o", "folder"), "`--output` must be a file"),
        (("-o", "r.pdf"), "`--output` must end in .html or .htm"),
    ],
)
def test_a_demo_refuses_before_any_work(options, words, tmp_path):
    (tmp_path / "there.html").write_text("kept")
    (tmp_path / "folder").mkdir()
    done = run("demo", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert (tmp_path / "there.html").read_text() == "kept"


# On a cluster


def test_a_folder_of_shards_is_tested_by_workers_as_the_file_is_here(folder):
    pytest.importorskip("distributed")
    asked = (*ONE, "--null", "recentered")
    there = ("--engine", "dask", "--workers", 2, "--labels", folder / "y.npy", "--quiet")
    one = result(run("test", folder / "good.npz", *asked))
    other = result(run("test", folder / "shards", *asked, *there))
    assert one["pvalue"] == other["pvalue"]
    for name in ("statistic", "null_distribution"):
        np.testing.assert_allclose(one[name], other[name], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "2"], "`--workers` is for `--engine dask`"),
        (["--scheduler", "tcp://a:1", "--engine", "local"], "`--scheduler` is for `--engine dask`"),
        (["--engine", "dask", "--workers", "2", "--scheduler", "tcp://a:1"], "exclude each other"),
        (["--engine", "spark"], "not one of"),
        (["--resume"], "`--resume` needs `--journal`"),
        (["--resume", "--journal", "nowhere"], "needs the journal of a run"),
        (["--engine", "dask", "--report", "page.html"], "`--report` needs predictions in memory"),
        (["--engine", "dask", "--probs-key", "p"], "`--probs-key` cannot be used"),
    ],
)
def test_options_that_do_not_go_together(folder, arguments, words, tmp_path):
    done = run("test", folder / "shards", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_address_where_nobody_listens(folder, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("hullcal.objectives.dask._CONNECTING", 1)
    there = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    done = run("test", folder / "shards", *ONE, *there)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "hullcal: `--scheduler` must be the address of a running scheduler"
    )
    assert "tcp://127.0.0.1:1" in done.stderr
