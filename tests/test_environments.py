"""Odd surroundings: seeds, paths, terminals, locales, interpreters, and others at the same files."""

import json
import os
import shlex
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc
from hardening.subjects import predictions
from hullcal.io import write_atomic
from hullcal.io.journal import Journal
from test_cli import run as inside

ROOT = Path(hc.__file__).parent
FAST = ("-D", "19", "--seed", "1", "--jobs", "1", "--quiet")
HEARD = {"capture_output": True, "text": True, "timeout": 600}
#: Surroundings that most people have.
USUAL = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm-256color", "COLUMNS": "200"}

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and tools of Linux")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "predictions.npz"
    names = {"classes": ["ä", "ß", "İ"], "members": ["λ₁", "b", "c"]}
    np.savez(path, probs=predictions()[0], labels=predictions()[1], **names)
    return path


@pytest.fixture(scope="module")
def expected(file, tmp_path_factory):
    """What the program writes in usual surroundings: results and a page."""
    folder = tmp_path_factory.mktemp("expected")
    done = run("test", file, *FAST, *OUTPUTS, cwd=folder, **USUAL)
    assert done.returncode == 0, done.stderr
    return contents(folder)


OUTPUTS = ("--format", "json", "--output", "r.json", "--report", "r.html")


def run(*words, flags=(), cwd=None, before="", after="", **environment):
    """The program under a shell, which may put something before or after it."""
    command = shlex.join([sys.executable, *flags, "-m", "hullcal", *map(str, words)])
    return subprocess.run(
        f"{before} {command} {after}",
        shell=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)} | environment,
        **HEARD,
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# Seeds


def test_a_seed_may_be_larger_than_any_machine_word(file):
    done = inside("test", file, "-D", 19, "--seed", 2**200, "--format", "json", "--quiet")
    assert json.loads(done.stdout)["results"][0]["seed"] == 2**200


# Paths


@pytest.mark.parametrize("name", ["λ ß İ", "two\nlines", "-dash", "a'b\"c$(x)`y` *"])
def test_paths_are_taken_as_they_are(file, tmp_path, name):
    (tmp_path / f"{name}.npz").write_bytes(file.read_bytes())
    options = [f"--output={name}.json", f"--report={name}.html", f"--journal={name}"]
    words = ("test", *FAST, *options, "--", f"{name}.npz")
    assert inside(*words, cwd=tmp_path).returncode == 0
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"{name}.npz", f"{name}.json", f"{name}.html", name}
    refused = inside(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


# numba asks for this package, which asks for the current folder; who measures no coverage has none.
GONE = """
import os, sys
sys.modules["coverage"] = None
os.rmdir(os.getcwd())
from hullcal.cli import run
run(sys.argv[1:])
"""


@linux
@pytest.mark.parametrize(("output", "code"), [("whole", 0), ("relative", 2)])
def test_a_current_folder_that_is_gone_is_no_matter_where_paths_are_whole(
    file, expected, tmp_path, output, code
):
    gone = tmp_path / "gone"
    gone.mkdir()
    path = tmp_path / "r.json" if output == "whole" else "r.json"
    words = ["test", file, *FAST, "--format", "json", "--output", path]
    done = subprocess.run(
        [sys.executable, "-c", GONE, *map(str, words)],
        cwd=gone,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)},
        **HEARD,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == (code == 2)
    assert code or (tmp_path / "r.json").read_bytes() == expected["r.json"]


# Locales, time zones and terminals


@linux
def test_locale_time_zone_and_terminal_change_no_byte(file, expected, tmp_path):
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"}
    odd |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "20", "PYTHONHASHSEED": "7"}
    done = run("test", file, *FAST, *OUTPUTS, cwd=tmp_path, **odd)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == expected


@linux
def test_names_that_the_terminal_cannot_show_are_no_failure(file):
    words = ("test", file, *FAST)
    odd = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "20", "NO_COLOR": "1"}
    done = run(*words, "--verbose", **odd)
    assert done.returncode == 0, done.stderr
    assert "Best weights" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


# Streams


@linux
def test_closed_streams_lose_no_file(file, expected, tmp_path):
    done = run("test", file, *FAST, *OUTPUTS, cwd=tmp_path, after="<&- >&- 2>&-")
    assert done.returncode == 0
    assert contents(tmp_path) == expected


# Interpreters


BAD = """
import numpy as np, hullcal as hc
p, y = np.full((9, 2, 3), 1 / 3), np.zeros(9, int)
for call in (
    lambda: hc.calibration_test(p * np.nan, y),
    lambda: hc.calibration_test(p, y + 3),
    lambda: hc.calibration_test(p, y, n_resamples=0),
    lambda: hc.calibration_test(p, y, rng=-1),
    lambda: hc.calibration_test(p, y, measure=lambda *_: float("nan"), n_resamples=19),
    lambda: hc.calibration_test(p, y, minimizer="exact", measure="skce_ul"),
    lambda: hc.ConfidenceECE(n_bins=0),
    lambda: hc.ClassifierSet(p).mix([1, 1]),
    lambda: hc.io.read("none.npz"),
    lambda: hc.simulation.Grid(scenario="S9"),
):
    try:
        call()
    except hc.InvalidInputError as error:
        print(error)
"""


@linux
def test_no_check_is_an_assertion(tmp_path, capsys):
    command = [sys.executable, "-OO", "-c", BAD]
    said = subprocess.run(command, cwd=tmp_path, check=True, **HEARD).stdout
    exec(BAD, {})
    assert said == capsys.readouterr().out
    assert len(said.splitlines()) >= 10


@linux
def test_an_interpreter_of_another_mood_gives_the_same_bytes(file, expected, tmp_path):
    flags = ("-I", "-O", "-X", "dev", "-W", "error")
    done = run("test", file, *FAST, *OUTPUTS, flags=flags, cwd=tmp_path)
    if "No module named" in done.stderr:
        pytest.skip("hullcal is not installed here")
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tmp_path) == expected


# Nothing can be kept


@linux
def test_read_only_folders_of_home_caches_and_package_still_give_a_result(file, tmp_path):
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")
    # Root may write wherever modes forbid it, but not to what is mounted for reading alone.
    script = (
        'for folder in "$1" "$2"; do mount --bind "$folder" "$folder" && '
        'mount -o remount,ro,bind "$folder" || exit 99; done; '
        'touch "$1/x" "$2/x" 2>/dev/null && exit 98; shift 2; exec "$@"'
    )
    # The search that has least to compile, since nothing that was compiled before can be used.
    words = [sys.executable, "-m", "hullcal", "weights", str(file), "--seed", "1"]
    words += ["--minimizer", "random"]
    alone = ["unshare", "-Urm", "sh", "-c", script, "-", str(frozen), str(ROOT)]
    try:
        allowed = subprocess.run([*alone, "true"], capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("nobody may mount here")
    frozen_places = os.environ | dict.fromkeys(names, str(frozen))
    done = subprocess.run([*alone, *words], env=frozen_places, **HEARD)
    assert done.returncode == 0, done.stderr
    plain = hc.minimize(*predictions(), minimizer="random", rng=1)
    assert [float(line) for line in done.stdout.split()] == plain.weights.tolist()


# Two at once


def told(work):
    """What two threads that do the same at the same time are told; "won" for no refusal."""
    start = threading.Barrier(2)

    def one(letter):
        start.wait()
        try:
            work(letter)
        except hc.InvalidInputError as error:
            return str(error)
        return "won"

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(one, "ab"))
    assert sorted(words == "won" for words in said) == [False, True], said
    return said


def test_of_two_writers_one_wins_and_the_other_is_told(tmp_path):
    for number in range(20):
        path = tmp_path / f"new-{number}"
        said = told(lambda letter, path=path: write_atomic(path, letter * 200_000))
        assert "must not exist yet" in said[said.index("won") - 1]
        assert path.read_text() == "ab"[said.index("won")] * 200_000
    assert not list(tmp_path.glob(".*.tmp"))


def test_of_two_that_begin_a_journal_one_wins_and_the_other_is_told(tmp_path):
    def begin(letter):
        with Journal.open(folder, {"a": 1}, resume=False, new=True) as journal:
            for i in range(3):
                journal.append((letter, i, i + 1), {"p": [0.5]})

    for number in range(20):
        folder = tmp_path / f"journal-{number}"
        folder.mkdir()
        said = told(begin)
        other = said[said.index("won") - 1]
        assert "in use" in other or "just been begun" in other
        with Journal.open(folder, {"a": 1}, resume=True) as journal:
            assert set(journal.blocks) == {("ab"[said.index("won")], i, i + 1) for i in range(3)}


@linux
def test_two_studies_in_one_folder_leave_one(tmp_path):
    words = [sys.executable, "-m", "hullcal", "simulate", "--scenario", "S1", "--test", "truth"]
    words += ["-N", "20", "-M", "3", "-K", "3", "-D", "19", "-R", "200", "--jobs", "1", "--quiet"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    pair = [subprocess.Popen([*words, "--output", "study"], **options) for _ in range(2)]
    said = [process.communicate(timeout=600)[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert sorted(codes) == [0, 2], said
    refused = said[codes.index(2)]
    assert refused.startswith("hullcal: `--output` must not")
    assert inside(*words[3:], "--output", tmp_path / "alone").returncode == 0
    for name in hc.simulation.study.NAMES:
        assert (tmp_path / "study" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
