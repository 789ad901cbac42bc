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
from types import SimpleNamespace

import numpy as np
import pytest

import hullcal as hc
from hullcal.cli import running

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
    for command in ("test", "sizes", "weights", "measures", "demo"):
        assert f"\n  {command} " in done.stdout
    assert "..." not in done.stdout.split("Commands:")[1]  # every line fits


@pytest.mark.parametrize("command", ["test", "sizes", "weights", "measures", "demo"])
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
    assert " on middle" in done.stdout
    # On a machine that is new to it the program may say that it compiles.
    assert not [line for line in done.stderr.splitlines() if "compiling" not in line]


def test_its_numbers_are_those_of_the_library(folder, data):
    done = run("test", folder / "good.npz", *FAST, "--format", "json")
    results = hc.io.from_json(done.stdout)
    for result, null in zip(results, ("stacked", "refit"), strict=True):
        classifiers = hc.ClassifierSet(data[0], members=["left", "middle", "=right"])
        assert result == hc.calibration_test(classifiers, data[1], null=null, n_resamples=99, rng=1)


def test_several_measures_are_adjusted(folder):
    done = run(
        "test", folder / "bad.npz", *FAST, "-m", "ece_conf", "-m", "ece_cwise", "--null", "refit"
    )
    assert "adjusted p" in done.stdout
    assert done.stdout.count("0.02") >= 2  # twice .01
    assert "No: the data speak against" in done.stdout


def test_json_is_strict_and_csv_is_a_table(folder):
    text = run("test", folder / "good.npz", *FAST, "--format", "json").stdout
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    text = run("test", folder / "good.npz", *FAST, "--format", "csv").stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert [row["null"] for row in table] == ["stacked", "refit"]
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


def test_a_log_is_told_now_and_then_how_far_it_is(monkeypatch, capsys):
    clock = iter([0.0, 4.0, 11.0, 11.0, 15.0, 22.0, 22.0])
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with running.working(quiet=False) as report:
        for done in (100, 1500, 1600, 2000):
            report("ece_conf, refit", done, 2000)
    assert capsys.readouterr() == (
        "",
        "hullcal: ece_conf, refit: 1,500 of 2,000 (75%)\n"
        "hullcal: ece_conf, refit: 2,000 of 2,000 (100%)\n",
    )


# Other commands


def test_sizes_need_no_labels(folder, data):
    done = run("sizes", *(part for name in "abc" for part in ("--member", folder / f"{name}.npy")))
    assert done.returncode == 0, done.stderr
    expected = hc.uncertainty.summary(data[0])
    assert f"{expected.tv_diameter:.4g}" in done.stdout
    given = json.loads(run("sizes", folder / "good.npz", "--format", "json").stdout)
    assert given.pop("units") == hc.uncertainty.UNITS
    assert given == pytest.approx(dict(expected))
    (row,) = csv.DictReader(
        io.StringIO(run("sizes", folder / "good.npz", "--format", "csv").stdout)
    )
    assert [*row] == [*given]
    assert row["approximated"] == "False"


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
        '"$2" -m hullcal test "$3" -D 19 --report "$1/r.html" --force > /dev/null; code=$?; '
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
        ["test", "good.npz", "--report", "y.npy"],
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
    assert len(json.loads(out.read_text())["results"]) == 2


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


def closed(*arguments):
    """The exit code where nobody reads what is printed."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hullcal", *map(str, arguments)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=300)
    os.close(writer)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    return done.returncode


@pytest.mark.parametrize("command", ["measures", "--help", "--version", "test --help"])
def test_a_reader_that_has_left_is_no_rejection(command):
    assert closed(*command.split()) == 0


def test_the_decision_is_the_exit_code_whether_anybody_reads_or_not(folder):
    assert closed("test", folder / "bad.npz", *FAST) == 0
    assert closed("test", folder / "good.npz", *FAST, "--exit-code") == 0
    assert closed("test", folder / "bad.npz", *FAST, "--exit-code") == 1


def test_classes_that_are_numbers_are_compared_as_numbers(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=(80, 2))
    labels = (rng.random(80) < probs.mean(axis=1)[:, 1]).astype(int)
    np.savez(tmp_path / "x.npz", probs=probs, labels=labels)
    np.savez(tmp_path / "text.npz", probs=probs, labels=labels.astype(str))
    np.savez(tmp_path / "later.npz", probs=probs, labels=labels + 1)

    def statistic(file, classes):
        command = ("test", tmp_path / file, "--classes", classes, "--format", "json", *FAST)
        settings = ("--null", "refit", "--minimizer", "pairwise:200")
        return json.loads(run(*command, *settings).stdout)["results"][0]["statistic"]

    straight = hc.minimize(
        probs, labels, minimizer=hc.minimizers.Pairwise(max_evaluations=200), rng=1
    )
    swapped = hc.minimize(
        probs, 1 - labels, minimizer=hc.minimizers.Pairwise(max_evaluations=200), rng=1
    )
    assert straight.value != swapped.value
    assert statistic("x.npz", "0,1") == statistic("text.npz", "0,1") == straight.value
    assert statistic("x.npz", "1,0") == statistic("text.npz", "1, 0") == swapped.value
    assert statistic("later.npz", "1,2") == straight.value


def test_names_of_classes_in_a_file_are_not_replaced(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=80)
    labels = (rng.random(80) < probs[:, 1]).astype(int)

    def table(names, labels):
        rows = zip(*probs.T, labels, strict=True)
        lines = [",".join([*(f"p_{name}" for name in names), "label"])]
        (tmp_path / "x.csv").write_text("\n".join([*lines, *(",".join(map(str, r)) for r in rows)]))

    def asked(classes):
        return run("test", tmp_path / "x.csv", "--classes", classes, "--format", "json", *FAST)

    names = np.array(["cat", "dog"])
    table(names, names[labels])
    swapped = asked("dog,cat")
    assert swapped.returncode == 2
    assert "`--classes` must be left out where FILE names its classes" in swapped.stderr
    assert asked("cat,owl").returncode == 2
    named = asked("cat,dog")
    assert named.returncode == 0, named.stderr
    # Positions are no names, so they can be given some.
    table([0, 1], labels)
    positions = asked("cat,dog")
    assert positions.returncode == 0, positions.stderr
    first, second = (json.loads(each.stdout)["results"][0] for each in (named, positions))
    assert first["statistic"] == second["statistic"]


def test_json_has_the_verdicts_beside_the_results(folder):
    command = ("test", folder / "bad.npz", "-m", "ece_conf", "-m", "skce_ul", *FAST)
    printed = run(*command, "--format", "json").stdout
    written = json.loads(printed)
    found = hc.io.from_json(printed)
    assert [each["null"] for each in written["verdicts"]] == ["stacked", "refit"]
    words = run(*command).stdout
    for verdict in written["verdicts"]:
        own = [result for result in found if result.null == verdict["null"]]
        assert verdict["hypothesis"] == own[0].hypothesis
        assert verdict["sentence"] in words
        expected = hc.adjust(own)
        assert [each["pvalue"] for each in verdict["adjusted"]] == expected.tolist()
        assert [each["measure"] for each in verdict["adjusted"]] == ["ece_conf", "skce_ul"]
        assert verdict["rejected"] is bool((expected <= own[0].alpha).any())
        assert verdict["unclear"] is False


def test_labels_that_are_not_needed_are_not_looked_at(data, tmp_path):
    np.savez(tmp_path / "x.npz", probs=data[0], labels=data[1][:-3])
    done = run("sizes", tmp_path / "x.npz")
    assert done.returncode == 0, done.stderr
    assert run("test", tmp_path / "x.npz", *FAST).returncode == 2


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
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "there.html").read_text() == "kept"


def test_a_journal_that_is_a_file_is_called_one(folder, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("test", folder / "good.npz", *FAST, "--journal", tmp_path / "file")
    assert done.returncode == 2
    assert "`--journal` must be a folder; got the file" in done.stderr


def test_a_journal_without_its_first_line_is_of_no_use_and_that_is_said(folder, tmp_path):
    command = ("test", folder / "good.npz", *FAST, "--null", "refit", "--journal", tmp_path / "j")
    assert run(*command).returncode == 0
    (journal,) = (tmp_path / "j").rglob("journal.jsonl")
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(others))
    done = run(*command, "--resume")
    assert done.returncode == 2
    assert "`--journal` needs a journal of hullcal" in done.stderr
    assert "Choose another folder, or delete this one." in done.stderr
    assert "--force" not in done.stderr
    journal.write_bytes(first + b"?" + others[0] + others[1])
    assert "Delete that line to compute its block again" in run(*command, "--resume").stderr


def test_without_a_journal_nothing_can_be_resumed_and_nobody_says_so(folder):
    script = (
        "import os, signal\n"
        "from hullcal.cli import run, running\n"
        "running.check_signals = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        f"run(['test', {str(folder / 'good.npz')!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 130
    assert "nothing was written" in done.stderr
    assert "--resume" not in done.stderr


def test_a_page_is_refused_for_what_only_workers_read(tmp_path):
    (tmp_path / "shards").mkdir()
    done = run("test", tmp_path / "shards", "--engine", "dask", "--report", tmp_path / "x.html")
    assert done.returncode == 2
    assert "`--report` needs predictions in memory" in done.stderr


def test_columns_named_by_numbers_are_classes_of_that_name(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], size=90)
    labels = (rng.random(90) < probs[:, 1]).astype(int)
    lines = [f"{b},{a},{y + 1}" for (a, b), y in zip(probs.tolist(), labels, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(["p_2,p_1,label", *lines]))
    command = (
        "test",
        tmp_path / "x.csv",
        *FAST,
        "--format",
        "json",
        "--report",
        tmp_path / "x.html",
    )
    done = run(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["results"][0]["statistic"]
    assert found == pytest.approx(hc.ConfidenceECE()(probs, labels), abs=1e-12)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    right = (probs.argmax(axis=1) == labels).mean()
    assert f"<dt>accuracy</dt><dd>{right:.4f}</dd>" in page


@pytest.mark.parametrize(
    ("name", "begins"), [("x.json", "{"), ("x.csv", "kind,"), ("x.txt", "200 ")]
)
def test_the_ending_of_a_file_says_what_is_written_to_it(name, begins, folder, tmp_path):
    done = run("test", folder / "good.npz", *FAST, "--output", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_text().startswith(begins)
    run("test", folder / "good.npz", *FAST, "--output", tmp_path / f"a-{name}", "--format", "csv")
    assert (tmp_path / f"a-{name}").read_text().startswith("kind,")


def test_one_classifier_is_asked_once(data, tmp_path):
    np.savez(tmp_path / "x.npz", probs=data[0][:, :1], labels=data[1])
    done = run("test", tmp_path / "x.npz", *FAST)
    assert "200 rows, 1 member, 3 classes" in done.stdout
    assert done.stdout.count("the classifier is calibrated") == 1
    assert "Best combination" not in done.stdout


def test_a_closed_stderr_changes_neither_output_nor_exit_code(folder, data, tmp_path):
    probs, labels = data
    np.savez(tmp_path / "few.npz", probs=probs[:8], labels=labels[:8])
    for path, code in ((folder / "bad.npz", 1), (tmp_path / "few.npz", 0)):  # the second has notes
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "hullcal", "test", str(path), *FAST, "--exit-code"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=writer, timeout=300)
        os.close(writer)
        assert done.returncode == code
        assert b"the claim that" in done.stdout


# Small things that people try


def test_bins_and_budgets_are_written_behind_names(folder):
    command = ("test", folder / "good.npz", "--null", "refit", "--format", "json", *FAST)
    done = run(*command, "-m", "ece_conf:5", "--minimizer", "pairwise:37")
    (found,) = json.loads(done.stdout)["results"]
    assert found["settings"]["measure"] == {"n_bins": 5}
    assert found["settings"]["minimizer"] == {"max_evaluations": 37}
    usual = json.loads(run(*command, "-m", "ece_conf").stdout)["results"][0]
    assert usual["settings"]["minimizer"] == {"max_evaluations": 15, "best_evaluations": 150}
    assert usual["settings"]["measure"] == {"n_bins": 10}
    for wrong, said in (("ece_con", "Did you mean ece_conf?"), ("skce_b:3", "has no bins")):
        refused = run(*command, "-m", wrong)
        assert refused.returncode == 2
        assert said in refused.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hullcal test x.npz -m ece_conf", {"ece_conf", "ece_conf_smooth"}),
        ("hullcal test x.npz --null re", {"recentered", "refit"}),
        ("hullcal test x.npz --minimizer ex", {"exact"}),
        ("hullcal power x.npz -m sk", {"skce_b", "skce_ul", "skce_uq"}),
        ("hullcal weights x.npz -m hl", {"hl_cwise"}),
    ],
)
def test_names_are_completed(words, expected):
    environment = os.environ | {
        "_HULLCAL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    command = [sys.executable, "-c", "from hullcal.cli import main; main(prog_name='hullcal')"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert {line.partition(",")[2] for line in done.stdout.split()} == expected, done.stderr


def test_weights_go_to_files_of_known_kinds(folder, tmp_path):
    done = run("weights", folder / "good.npz", "--output", tmp_path / "w.npy")
    assert done.returncode == 2
    assert "`--output` must end in .json, .csv or .txt; got 'w.npy'" in done.stderr
    assert not (tmp_path / "w.npy").exists()


def test_the_average_is_held_against_the_combination(folder, data):
    probs, labels = data
    done = run("test", folder / "good.npz", "--null", "refit", *FAST)
    average = probs.mean(axis=1)
    right = (average.argmax(axis=1) == labels).mean()
    value = hc.ConfidenceECE()(average, labels)
    assert f"The plain average has accuracy {right:.4g}, ece_conf {value:.4g}; " in done.stdout
    found = hc.calibration_test(probs, labels, null="refit", n_resamples=99, rng=1)
    best = (np.tensordot(probs, found.weights, (1, 0)).argmax(axis=1) == labels).mean()
    assert f"the best combination has accuracy {best:.4g}, ece_conf {found.minimum:.4g}." in (
        done.stdout
    )


def test_what_stopped_early_is_counted_test_by_test(folder):
    command = ("test", folder / "good.npz", "--stop-after", "3", "-D", "199", "--seed", "3")
    found = json.loads(run(*command, "--format", "json").stdout)["results"]
    counts = sorted(result["n_resamples"] for result in found)
    assert counts[0] < counts[1]
    assert f"; {counts[0]} to {counts[1]} resamples, " in run(*command).stdout


def test_the_command_on_a_page_can_be_repeated(folder, tmp_path):
    page = tmp_path / "page.html"
    assert run("test", folder / "good.npz", *FAST, "--report", page).returncode == 0
    command = html.unescape(re.findall("<pre><code>(.*?)</code>", page.read_text("utf-8"))[0])
    name, *words = shlex.split(command)
    assert name == "hullcal"
    assert run(*words).returncode == 0


def test_arrays_of_objects_are_named_with_what_to_do(tmp_path, data):
    labels = np.array(["a", "b"])[data[1] % 2].astype(object)
    np.savez(tmp_path / "x.npz", probs=data[0], labels=labels)
    done = run("test", tmp_path / "x.npz", *FAST)
    assert done.returncode == 2
    assert "an array 'labels' that contains Python objects" in done.stderr
    assert "labels.astype(str)" in done.stderr


def test_votes_are_no_probabilities(tmp_path, data):
    np.savez(tmp_path / "x.npz", probs=data[0].argmax(axis=2), labels=data[1])
    done = run("test", tmp_path / "x.npz", *FAST)
    assert done.returncode == 2
    assert "Predicted classes will not do" in done.stderr
