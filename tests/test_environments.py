"""Odd surroundings: seeds, paths, terminals, locales, interpreters, and others at the same files."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc
from hullcal.cli import run as program
from hullcal.io.journal import Journal

ROOT = Path(hc.__file__).parent
FAST = ("-D", "19", "--seed", "1", "--jobs", "1", "--quiet")
#: Surroundings that most people have.
USUAL = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm-256color", "COLUMNS": "200"}

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and tools of Linux")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], size=40)
    probs = 0.8 * truth[:, None] + 0.2 * rng.dirichlet([1, 1, 1], size=(40, 3))
    return probs, np.array([rng.choice(3, p=p) for p in truth])


@pytest.fixture(scope="module")
def file(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("input") / "predictions.npz"
    names = {"classes": ["ä", "ß", "İ"], "members": ["λ₁", "b", "c"]}
    np.savez(path, probs=data[0], labels=data[1], **names)
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
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)} | environment,
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def inside(*words):
    """The program's exit code, in this process."""
    with pytest.raises(SystemExit) as end:
        program([str(word) for word in words])
    return end.value.code


# Seeds


def null_values(data, rng):
    return hc.calibration_test(*data, n_resamples=19, rng=rng).null_distribution.tolist()


SEEDS = [0, 1, 2**32 - 1, 2**32, 2**64, 2**128 + 1, 2**200]


def test_seeds_of_any_size_repeat_and_differ(data):
    values = [null_values(data, seed) for seed in SEEDS]
    assert values == [null_values(data, seed) for seed in SEEDS]
    assert len({tuple(some) for some in values}) == len(SEEDS)
    assert null_values(data, np.uint32(2**32 - 1)) == values[2]


@pytest.mark.parametrize(
    "rng",
    [-1, 1.5, True, "1", np.random.SeedSequence(1), np.random.RandomState(1), np.random.PCG64(1)],
    ids=lambda rng: type(rng).__name__,
)
def test_what_is_neither_a_seed_nor_a_generator_is_refused(data, rng):
    with pytest.raises(hc.InvalidInputError, match="`rng` must be"):
        null_values(data, rng)


def test_a_generator_in_mid_stream_advances_and_its_state_decides(data):
    rng = np.random.default_rng(5)
    rng.normal(size=3)
    state = rng.bit_generator.state
    first, second = null_values(data, rng), null_values(data, rng)
    assert first != second
    again = np.random.default_rng(99)
    again.bit_generator.state = state
    assert [null_values(data, again), null_values(data, again)] == [first, second]


def test_the_seed_of_a_generator_gives_its_result_again(data):
    found = hc.calibration_test(*data, n_resamples=19, rng=np.random.default_rng(5))
    assert null_values(data, found.seed) == found.null_distribution.tolist()


@pytest.mark.parametrize(("seed", "code"), [("-1", 2), (str(2**200), 0), ("1e3", 2)])
def test_seeds_on_the_command_line(file, capsys, seed, code):
    assert inside("test", file, "-D", 19, "--seed", seed, "--format", "json", "--quiet") == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    if code == 0:
        assert json.loads(said.out)["results"][0]["seed"] == 2**200


# Paths


@pytest.mark.parametrize(
    "name", ["two words", "λ ß İ", "two\nlines", "-dash", "a'b\"c$(x)`y`", "*"]
)
def test_paths_are_taken_as_they_are(file, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.npz").write_bytes(file.read_bytes())
    options = [f"--output={name}.json", f"--report={name}.html", f"--journal={name}"]
    assert inside("test", *FAST, *options, "--", f"{name}.npz") == 0
    capsys.readouterr()
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"{name}.npz", f"{name}.json", f"{name}.html", name}
    assert inside("test", *FAST, *options, "--", f"{name}.npz") == 2
    assert "Traceback" not in capsys.readouterr().err


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
        capture_output=True,
        text=True,
        timeout=600,
        cwd=gone,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == (code == 2)
    assert code or (tmp_path / "r.json").read_bytes() == expected["r.json"]


def test_where_the_current_folder_is_gone_the_message_says_so(tmp_path, monkeypatch, capsys):
    def gone(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(hc.io, "read", gone)
    monkeypatch.setattr(os, "getcwd", gone)
    assert inside("sizes", tmp_path / "p.npz") == 2
    assert "the current folder, which was removed" in capsys.readouterr().err


# Locales, time zones and terminals


@linux
def test_locale_time_zone_and_terminal_change_no_byte(file, expected, tmp_path):
    odd = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"}
    odd |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "20", "PYTHONHASHSEED": "7"}
    done = run("test", file, *FAST, *OUTPUTS, cwd=tmp_path, **odd)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == expected


# Python itself heeds no more than the letters of a locale; a program around ours may heed all of it.
ABROAD = """
import locale, sys
locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ","
from hullcal.cli import run
run(sys.argv[1:])
"""


@linux
@pytest.mark.parametrize("name", ["de_DE", "tr_TR"])
def test_a_comma_for_the_point_and_an_i_without_a_dot_change_no_byte(
    file, expected, tmp_path, name
):
    places = tmp_path / "locales"
    places.mkdir()
    make = ["localedef", "-i", name, "-f", "UTF-8", str(places / f"{name}.UTF-8")]
    try:
        made = subprocess.run(make, capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip(f"this system cannot make {name}.UTF-8")
    folder = tmp_path / "output"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ABROAD, "test", str(file), *FAST, *OUTPUTS],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(ROOT.parent), "LOCPATH": str(places), "LC_ALL": f"{name}.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    assert contents(folder) == expected


@linux
def test_names_that_the_terminal_cannot_show_are_no_failure(file):
    words = ("test", file, *FAST)
    odd = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "20", "NO_COLOR": "1"}
    done = run(*words, **odd)
    assert done.returncode == 0, done.stderr
    assert "Best combination" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


# Streams


@linux
def test_closed_streams_lose_no_file(file, expected, tmp_path):
    done = run("test", file, *FAST, *OUTPUTS, cwd=tmp_path, after="<&- >&- 2>&-")
    assert done.returncode == 0
    assert contents(tmp_path) == expected


@linux
def test_an_error_that_nobody_can_read_has_its_exit_code(tmp_path):
    assert run("test", tmp_path / "none.npz", after="<&- >&- 2>&-").returncode == 2


@linux
@pytest.mark.parametrize("words", [("--help",), ("measures",), ("test", "FILE", *FAST)])
def test_a_reader_that_leaves_at_once_gets_no_traceback(file, words):
    words = [file if word == "FILE" else word for word in words]
    done = run(*words, after="| true")
    assert done.stderr == ""


# Interpreters

BAD = """
import numpy as np, hullcal as hc
p, y = np.full((9, 2, 3), 1 / 3), np.zeros(9, int)
def nan(probs, labels): return float("nan")
calls = {
    "NaN": lambda: hc.calibration_test(p * np.nan, y),
    "rows": lambda: hc.calibration_test(p * 2, y),
    "labels": lambda: hc.calibration_test(p, y + 3),
    "length": lambda: hc.calibration_test(p, y[:5]),
    "empty": lambda: hc.calibration_test(p[:0], y[:0]),
    "one class": lambda: hc.calibration_test(p[..., :1] * 3, y),
    "resamples": lambda: hc.calibration_test(p, y, n_resamples=0),
    "alpha": lambda: hc.calibration_test(p, y, alpha=1),
    "seed": lambda: hc.calibration_test(p, y, rng=-1),
    "measure": lambda: hc.calibration_test(p, y, measure="none"),
    "bins": lambda: hc.ConfidenceECE(n_bins=0),
    "search": lambda: hc.calibration_test(p, y, minimizer="exact", measure="skce_ul"),
    "function": lambda: hc.calibration_test(p, y, measure=nan, null="paper", n_resamples=19),
    "weights": lambda: hc.ClassifierSet(p).mix([1, 1]),
    "file": lambda: hc.io.read("none.npz"),
    "grid": lambda: hc.simulation.Grid(scenario="S9"),
}
for name, call in calls.items():
    try:
        call()
        print(name, "passed")
    except Exception as error:
        print(name, type(error).__name__, error)
"""


@linux
def test_no_check_is_an_assertion(tmp_path):
    said = [
        subprocess.run(
            [sys.executable, *flags, "-c", BAD],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
            check=True,
        ).stdout
        for flags in ([], ["-OO"])
    ]
    assert said[0] == said[1]
    assert said[0].count("InvalidInputError") >= 15, said[0]
    assert "passed" not in said[0]


@linux
@pytest.mark.parametrize("flags", [("-O",), ("-I", "-X", "dev", "-W", "error")], ids=" ".join)
def test_interpreters_of_another_mood_give_the_same_bytes(file, expected, tmp_path, flags):
    done = run("test", file, *FAST, *OUTPUTS, flags=flags, cwd=tmp_path)
    if "No module named" in done.stderr:
        pytest.skip("hullcal is not installed here")
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tmp_path) == expected


# Nothing can be kept


@linux
def test_read_only_folders_of_home_caches_and_package_still_give_a_result(file, data, tmp_path):
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
    done = subprocess.run(
        [*alone, *words],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | dict.fromkeys(names, str(frozen)),
    )
    assert done.returncode == 0, done.stderr
    plain = hc.minimize(*data, minimizer="random", rng=1)
    assert [float(line) for line in done.stdout.split()] == plain.weights.tolist()


# Two at once

WRITER = """
import sys
from pathlib import Path
from hullcal import InvalidInputError
from hullcal.io.journal import Journal
from hullcal.io.writing import write_atomic
letter, place = sys.argv[1], Path(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    kind, number = line.split()
    try:
        if kind == "journal":
            folder = place / f"journal-{number}"
            folder.mkdir(exist_ok=True)
            with Journal.open(folder, {"a": 1}, resume=False, new=True) as journal:
                for i in range(3):
                    journal.append((letter, i, i + 1), {"p": [0.5]})
        else:
            write_atomic(place / f"{kind}-{number}", letter * 200_000, force=kind == "force")
        print("won", flush=True)
    except InvalidInputError as error:
        print(error, flush=True)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two processes that do the same at the same time: what each of them says, and their folder."""
    place = tmp_path_factory.mktemp("two")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    pair = [
        subprocess.Popen([sys.executable, "-c", WRITER, letter, str(place)], **pipes)
        for letter in "ab"
    ]
    for process in pair:
        assert process.stdout.readline() == "ready\n"

    def both(kind, number):
        for process in pair:
            process.stdin.write(f"{kind} {number}\n")
        for process in pair:
            process.stdin.flush()
        return [process.stdout.readline().strip() for process in pair], place / f"{kind}-{number}"

    yield both
    for process in pair:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


ROUNDS = range(40)


def test_of_two_writers_one_wins_and_the_other_is_told(two):
    for number in ROUNDS:
        said, path = two("new", number)
        assert sorted(words == "won" for words in said) == [False, True], said
        assert "must not exist yet" in said[said.index("won") - 1]
        assert path.read_text() == "ab"[said.index("won")] * 200_000
    assert not list(path.parent.glob(".*.tmp"))


def test_of_two_writers_that_may_replace_the_last_wins_whole(two):
    for number in ROUNDS:
        said, path = two("force", number)
        assert said == ["won", "won"]
        assert path.read_text() in ("a" * 200_000, "b" * 200_000)
    assert not list(path.parent.glob(".*.tmp"))


def test_of_two_that_begin_a_journal_one_wins_and_the_other_is_told(two):
    for number in ROUNDS:
        said, folder = two("journal", number)
        assert sorted(words == "won" for words in said) == [False, True], said
        other = said[said.index("won") - 1]
        assert "in use" in other or "just been begun" in other
        with Journal.open(folder, {"a": 1}, resume=True) as journal:
            assert set(journal.blocks) == {("ab"[said.index("won")], i, i + 1) for i in range(3)}


@linux
def test_two_studies_in_one_folder_leave_one(tmp_path):
    words = [sys.executable, "-m", "hullcal", "simulate", "--scenario", "S1", "-m", "ece_conf"]
    words += ["-N", "20", "-M", "3", "-K", "3", "-D", "19", "-R", "300", "--jobs", "1", "--quiet"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    pair = [subprocess.Popen([*words, "--output", "study"], **options) for _ in range(2)]
    said = [process.communicate(timeout=600)[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert sorted(codes) == [0, 2], said
    refused = said[codes.index(2)]
    assert refused.startswith("hullcal: `--output` must not")
    assert inside(*words[3:], "--output", tmp_path / "alone") == 0
    for name in hc.simulation.study.NAMES:
        left, right = tmp_path / "study" / name, tmp_path / "alone" / name
        assert left.exists() == right.exists()
        assert not left.exists() or left.read_bytes() == right.read_bytes(), name
