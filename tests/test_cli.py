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
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import hullcal as hc
from hullcal import cli

FAST = ("-D", "99", "--seed", "1")
REFIT = ("-D", "59", "--seed", "1", "--null", "refit", "--format", "json")
PROGRAM = [sys.executable, "-m", "hullcal"]


def run(*arguments, cwd=None, **environment):
    """The program in this process: its exit code, and what it printed."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
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
    """Three members around the truth, and labels from it."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=200)
    noise = rng.dirichlet([1, 1, 1], size=(200, 3))
    probs = 0.8 * truth[:, None] + 0.2 * noise
    return probs, np.array([rng.choice(3, p=p) for p in truth])


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
        ("hullcal test x.npz --null re", {"recentered", "refit"}),
        ("hullcal test x.npz --minimizer ex", {"exact"}),
        ("hullcal power x.npz -m sk", {"skce_b", "skce_ul", "skce_uq"}),
    ],
)
def test_names_are_completed(words, expected):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [sys.executable, "-c", "from hullcal.cli import main; main(prog_name='hullcal')"]
    environment = os.environ | asked | {"_HULLCAL_COMPLETE": "bash_complete"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert {line.partition(",")[2] for line in done.stdout.split()} == expected, done.stderr


# hullcal test


def test_a_test_answers_both_questions_and_compares_the_average(folder, data):
    done = run("test", folder / "good.npz", *FAST)
    assert done.returncode == 0, done.stderr
    assert "the convex hull of the members contains a calibrated classifier" in done.stdout
    assert "the convex hull of the members contains the truth" in done.stdout
    assert " on middle" in done.stdout
    # On a machine that is new to it the program may say that it compiles.
    assert not [line for line in done.stderr.splitlines() if "compiling" not in line]
    average = data[0].mean(axis=1)
    right, value = (average.argmax(axis=1) == data[1]).mean(), hc.ConfidenceECE()(average, data[1])
    assert f"The plain average has accuracy {right:.4g}, ece_conf {value:.4g}; " in done.stdout


def test_its_numbers_are_those_of_the_library(folder, data):
    printed = run("test", folder / "good.npz", *FAST, "--format", "json").stdout
    json.loads(printed, parse_constant=lambda name: pytest.fail(name))
    for found, null in zip(hc.io.from_json(printed), ("stacked", "refit"), strict=True):
        classifiers = hc.ClassifierSet(data[0], members=["left", "middle", "=right"])
        assert found == hc.calibration_test(classifiers, data[1], null=null, n_resamples=99, rng=1)


def test_several_measures_are_adjusted_and_json_has_the_verdicts(folder):
    command = ("test", folder / "bad.npz", "-m", "ece_conf", "-m", "skce_ul", *FAST)
    printed, words = run(*command, "--format", "json").stdout, run(*command).stdout
    written, found = json.loads(printed), hc.io.from_json(printed)
    assert "adjusted p" in words
    assert [each["null"] for each in written["verdicts"]] == ["stacked", "refit"]
    for verdict in written["verdicts"]:
        own = [each for each in found if each.null == verdict["null"]]
        expected = hc.adjust(own)
        assert verdict["hypothesis"] == own[0].hypothesis
        assert verdict["sentence"] in words
        assert [each["pvalue"] for each in verdict["adjusted"]] == expected.tolist()
        assert [each["measure"] for each in verdict["adjusted"]] == ["ece_conf", "skce_ul"]
        assert verdict["rejected"] is bool((expected <= own[0].alpha).any())
        assert verdict["unclear"] is False


def test_members_in_files_of_their_own_are_the_same_set(folder):
    members = [part for name in "abc" for part in ("--member", folder / f"{name}.npy")]
    many = run("test", *members, "--labels", folder / "y.npy", *REFIT)
    assert result(many)["pvalue"] == result(run("test", folder / "good.npz", *REFIT))["pvalue"]


def test_logits_are_told_by_a_flag(data, tmp_path):
    np.savez(tmp_path / "logits.npz", probs=np.log(data[0]), labels=data[1])
    assert run("test", tmp_path / "logits.npz", "--logits", *FAST).returncode == 0


def test_one_classifier_is_asked_once(data, tmp_path):
    np.savez(tmp_path / "x.npz", probs=data[0][:, :1], labels=data[1])
    done = run("test", tmp_path / "x.npz", *FAST)
    assert "200 rows, 1 member, 3 classes" in done.stdout
    assert done.stdout.count("the classifier is calibrated") == 1
    assert "Best combination" not in done.stdout


def test_bins_and_budgets_are_written_behind_names(folder):
    command = ("test", folder / "good.npz", *REFIT)
    found = result(run(*command, "-m", "ece_conf:5", "--minimizer", "pairwise:37"))
    assert found["settings"]["measure"] == {"n_bins": 5}
    assert found["settings"]["minimizer"] == {"max_evaluations": 37}
    for wrong, said in (("ece_con", "Did you mean ece_conf?"), ("skce_b:3", "has no bins")):
        refused = run(*command, "-m", wrong)
        assert refused.returncode == 2
        assert said in refused.stderr


def test_what_stopped_early_is_counted_test_by_test(folder):
    command = ("test", folder / "good.npz", "--stop-after", "3", "-D", "199", "--seed", "3")
    found = json.loads(run(*command, "--format", "json").stdout)["results"]
    counts = sorted(each["n_resamples"] for each in found)
    assert counts[0] < counts[1]
    assert f"; {counts[0]} to {counts[1]} resamples, " in run(*command).stdout


def test_classes_that_are_numbers_are_compared_as_numbers(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=(80, 2))
    labels = (rng.random(80) < probs.mean(axis=1)[:, 1]).astype(int)
    forms = {"x": labels, "text": labels.astype(str), "later": labels + 1}
    for name, form in forms.items():
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=form)

    def statistic(file, classes):
        command = ("test", tmp_path / file, "--classes", classes, *REFIT)
        return result(run(*command, "--minimizer", "pairwise:200"))["statistic"]

    search = hc.minimizers.Pairwise(max_evaluations=200)
    straight, swapped = (
        hc.minimize(probs, each, minimizer=search, rng=1).value for each in (labels, 1 - labels)
    )
    assert straight != swapped
    assert statistic("x.npz", "0,1") == statistic("text.npz", "0,1") == straight
    assert statistic("x.npz", "1,0") == statistic("text.npz", "1, 0") == swapped
    assert statistic("later.npz", "1,2") == straight


def test_names_of_classes_in_a_file_are_not_replaced(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=80)
    labels = (rng.random(80) < probs[:, 1]).astype(int)

    def asked(names, labels, classes):
        rows = (",".join(map(str, row)) for row in zip(*probs.T, labels, strict=True))
        head = ",".join([*(f"p_{name}" for name in names), "label"])
        (tmp_path / "x.csv").write_text("\n".join([head, *rows]))
        return run("test", tmp_path / "x.csv", "--classes", classes, *REFIT)

    names = np.array(["cat", "dog"])
    swapped = asked(names, names[labels], "dog,cat")
    assert swapped.returncode == 2
    assert "`--classes` must be left out where FILE names its classes" in swapped.stderr
    named = result(asked(names, names[labels], "cat,dog"))
    # Positions are no names, so they can be given some.
    assert result(asked([0, 1], labels, "cat,dog"))["statistic"] == named["statistic"]


def test_columns_named_by_numbers_are_classes_of_that_name(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=90)
    labels = (rng.random(90) < probs[:, 1]).astype(int)
    lines = [f"{b},{a},{y + 1}" for (a, b), y in zip(probs.tolist(), labels, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["p_2,p_1,label", *lines]))
    found = result(run("test", tmp_path / "x.csv", *REFIT, "--report", tmp_path / "x.html"))
    expected = hc.ConfidenceECE()(probs, labels)
    assert found["statistic"] == pytest.approx(expected, abs=1e-12)
    right = (probs.argmax(axis=1) == labels).mean()
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert f"<dt>accuracy</dt><dd>{right:.4f}</dd>" in page


# What is written, and what is told on the way


@pytest.mark.parametrize("given", [(), ("--seed=5",), ("--seed", "5")])
def test_the_command_on_the_page_gives_the_same_numbers_again(folder, tmp_path, given):
    page, numbers = tmp_path / "a.html", tmp_path / "a.json"
    words = ["test", folder / "good.npz", "-D", "19", "--alpha", "0.1", *given, "--format", "json"]
    assert run(*words, "--output", numbers, "--report", page).returncode == 0
    first = numbers.read_bytes()
    (command,) = re.findall(r"hullcal test [^<]*", page.read_text(encoding="utf-8"))
    assert len(re.findall(r"--seed[ =](\d+)", command)) == 1
    assert run(*shlex.split(html.unescape(command))[1:], "--force").returncode == 0
    assert numbers.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "begins"), [("x.json", "{"), ("x.csv", "kind,"), ("x.txt", "200 ")]
)
def test_the_ending_of_a_file_says_what_is_written_to_it(name, begins, folder, tmp_path):
    assert run("test", folder / "good.npz", *FAST, "--output", tmp_path / name).returncode == 0
    assert (tmp_path / name).read_text().startswith(begins)
    run("test", folder / "good.npz", *FAST, "--output", tmp_path / f"a-{name}", "--format", "csv")
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
    done = run("weights", folder / "good.npz", "--output", tmp_path / "w.npy")
    assert done.returncode == 2
    assert "`--output` must end in .json, .csv or .txt; got 'w.npy'" in done.stderr


def test_progress_goes_to_stderr_only(folder):
    done = run("test", folder / "good.npz", *FAST, TTY_COMPATIBLE="1")
    assert "ece_conf" in done.stderr
    assert "━" not in done.stdout
    assert run("test", folder / "good.npz", *FAST, "--quiet", TTY_COMPATIBLE="1").stderr == ""


def test_a_log_is_told_now_and_then_how_far_it_is(monkeypatch, capsys):
    ending = importlib.import_module("hullcal.cli.running")
    clock = iter([0.0, 4.0, 11.0, 11.0, 15.0, 22.0, 22.0])
    monkeypatch.setattr(ending, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with ending.working(quiet=False) as report:
        for done in (100, 1500, 1600, 2000):
            report("ece_conf, refit", done, 2000)
    assert capsys.readouterr() == (
        "",
        "hullcal: ece_conf, refit: 1,500 of 2,000 (75%)\n"
        "hullcal: ece_conf, refit: 2,000 of 2,000 (100%)\n",
    )


# How it ends


def test_rejection_is_an_exit_code_only_on_request(folder):
    assert run("test", folder / "bad.npz", *FAST).returncode == 0
    assert run("test", folder / "bad.npz", *FAST, "--exit-code").returncode == 1
    assert run("test", folder / "good.npz", *FAST, "--exit-code").returncode == 0
    several = ("-m", "ece_conf", "-m", "hl_cwise", "--null", "refit", "--exit-code", "-D")
    assert run("test", folder / "bad.npz", *several, "39").returncode == 1
    # The smallest p-value of 19 resamples is .05, and twice that rejects nothing.
    assert run("test", folder / "bad.npz", *several, "19").returncode == 0


def test_a_fault_of_the_program_itself_ends_with_3_and_asks_for_a_report(folder, tmp_path):
    # A file of the user's own that hides a package breaks the program from inside.
    (tmp_path / "numba.py").touch()
    command = ("test", folder / "good.npz", "--output", "out.txt")
    with started(*command, cwd=tmp_path) as program:
        printed, said = program.communicate(timeout=300)
    assert (program.returncode, printed) == (3, "")
    assert said.startswith("hullcal: internal error, ImportError: ")
    assert "HULLCAL_DEBUG=1" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.txt").exists()
    with started(*command, cwd=tmp_path, env=os.environ | {"HULLCAL_DEBUG": "1"}) as program:
        assert "Traceback" in program.communicate(timeout=300)[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_results_that_could_not_be_printed_end_with_4():
    with open("/dev/full", "w") as full, started("measures", stdout=full) as program:
        said = program.communicate(timeout=120)[1]
    assert program.returncode == 4
    assert said.startswith("hullcal: No space left on device")


def test_an_output_that_exists_is_refused_before_any_work(folder, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("mine")
    # A number of resamples that would take hours: the refusal comes first.
    done = run("test", folder / "good.npz", "-D", "100000000", "--output", out)
    assert done.returncode == 2
    assert "out.json" in done.stderr
    assert out.read_text() == "mine"
    assert run("test", folder / "good.npz", *FAST, "--output", out, "--force").returncode == 0
    assert len(json.loads(out.read_text())["results"]) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 4)])
def test_a_signal_leaves_nothing_half_written(folder, tmp_path, number, code):
    command = ("test", folder / "good.npz", "-D", "3000000", "--report", tmp_path / "out.html")
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_stopped_names_its_journal_and_goes_on(folder, tmp_path, number):
    journal = tmp_path / "journal"
    command = ("test", folder / "good.npz", *REFIT[2:], "-D", "20000", "--jobs", "1")
    # A shell in the background may have told its children to ignore Ctrl-C.
    program = started(
        *(*command, "--journal", journal, "--quiet"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    file = journal / "ece_conf-refit" / "journal.jsonl"
    while program.poll() is None and (not file.exists() or len(file.read_bytes().splitlines()) < 4):
        time.sleep(0.05)
    program.send_signal(number)
    _, said = program.communicate(timeout=120)
    assert program.returncode == (130 if number == signal.SIGINT else 4), said
    assert f"{journal}; continue with --resume" in said
    refused = run(*command, "--journal", journal)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    resumed = run(*command, "--journal", journal, "--resume")
    assert result(resumed) == result(run(*command))


def test_a_journal_that_cannot_be_used_is_refused_with_the_reason(folder, tmp_path):
    command = ("test", folder / "good.npz", *FAST, "--null", "refit", "--journal")
    (tmp_path / "file").touch()
    done = run(*command, tmp_path / "file")
    assert done.returncode == 2
    assert "`--journal` must be a folder; got the file" in done.stderr
    assert run(*command, tmp_path / "j").returncode == 0
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


@pytest.mark.parametrize("command", ["measures", "--help", "--version", "test --help"])
def test_a_reader_that_has_left_is_no_rejection(command):
    assert unheard(*command.split())[0] == 0


def test_the_decision_is_the_exit_code_whether_anybody_reads_or_not(folder, data, tmp_path):
    assert unheard("test", folder / "bad.npz", *FAST)[0] == 0
    assert unheard("test", folder / "bad.npz", *FAST, "--exit-code")[0] == 1
    np.savez(tmp_path / "few.npz", probs=data[0][:8], labels=data[1][:8])  # which has notes
    for path, code in ((folder / "bad.npz", 1), (tmp_path / "few.npz", 0)):
        ended, printed = unheard("test", path, *FAST, "--exit-code", stream="stderr")
        assert ended == code
        assert "the claim that" in printed


# The demo


def test_the_demo_judges_three_real_ensembles_and_writes_a_report(tmp_path):
    pytest.importorskip("sklearn")
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held-out handwritten digits") == 3
    forest, networks, overconfident = done.stdout.split("\n\n")[:3]
    assert "No:" not in forest + networks
    assert overconfident.count("No:") == 2
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "overconfident networks" in page
    assert "demo/report.html" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seed", "-1"), "--seed"),
        (("--seed", "99999999999"), "--seed"),
        (("-o", "there.html"), "`--output` must not exist yet"),
        (("-o", "folder"), "`--output` must be a file"),
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
    there = ("--engine", "dask", "--workers", 2, "--labels", folder / "y.npy", "--quiet")
    with started("test", folder / "shards", *REFIT, *there) as program:
        printed, said = program.communicate(timeout=300)
    assert (program.returncode, said) == (0, "")
    one = result(run("test", folder / "good.npz", *REFIT))
    (other,) = json.loads(printed)["results"]
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


def test_an_address_where_nobody_listens(folder):
    pytest.importorskip("distributed")
    there = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    with started("test", folder / "shards", *REFIT, *there) as program:
        said = program.communicate(timeout=300)[1]
    assert program.returncode in (2, 4)
    assert "tcp://127.0.0.1:1" in said
    assert "Traceback" not in said


def test_shards_may_name_classes_by_digits_or_by_numbers(tmp_path):
    pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(2), size=(80, 2)), rng.integers(0, 2, 80)
    found = []
    for kind, given in (("numbers", labels), ("text", labels.astype(str))):
        (tmp_path / kind).mkdir()
        np.savez(tmp_path / kind / "a.npz", probs=probs, labels=given)
        options = ("--engine", "dask", "--workers", 1, "--classes", "1,0", "--quiet")
        with started("test", tmp_path / kind, *REFIT, *options) as program:
            found.append(json.loads(program.communicate(timeout=300)[0])["results"][0]["statistic"])
    np.savez(tmp_path / "here.npz", probs=probs, labels=1 - labels)
    here = result(run("test", tmp_path / "here.npz", *REFIT))["statistic"]
    np.testing.assert_allclose(found, here, atol=1e-12)
