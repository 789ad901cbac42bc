"""The promises about bad input, faults and security, one by one and in their order.

Each test quotes the promise above it. What is tested elsewhere in more detail is here once, briefly, by
what a user can call, so that a promise that is broken has a name.
"""

import ast
import csv
import io
import itertools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array

import hullcal as hc
from hullcal.minimizers import Minima
from hullcal.objectives import opening
from test_cli import run
from test_validation import FakeTensor

N, M, K = 40, 2, 3
# Sixteenths are exact in every type, so that all types must give the same answer.
RNG = np.random.default_rng(0)
PROBS = RNG.multinomial(16, [0.5, 0.3, 0.2], size=(N, M)) / 16
LABELS = np.resize([0, 1, 2, 0], N)
FEW = {"n_resamples": 19, "rng": 1}
MEASURES = hc.measures.available()
NULLS = hc.nulls.available()


def outcome(probs=PROBS, labels=LABELS, **options):
    return hc.calibration_test(probs, labels, **FEW | options)


# `InvalidInputError(ValueError)` carries a message with the parameter, the rule, what came, the repair


def refused(*given, **options):
    """The message with which a test refuses; its four parts are what every row below relies on."""
    assert issubclass(hc.InvalidInputError, ValueError)
    with pytest.raises(hc.InvalidInputError) as error:
        outcome(*given, **options)
    said = str(error.value)
    assert re.fullmatch(r"(?s)`[^`]+` .+; got .+\. [A-Z].+", said), said
    return said


def holds(said, *words):
    assert [word for word in words if word not in said] == [], said


def changed(place, value, array=PROBS):
    array = array.astype(np.result_type(array, type(value)))
    array[place] = value
    return array


def cli(*words):
    """Exit code, stdout and stderr of the program."""
    done = run(*words)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def file(tmp_path):
    np.savez(tmp_path / "x.npz", probs=PROBS, labels=LABELS)
    return tmp_path / "x.npz"


SHORT = ("-D", 19, "--seed", 1, "--jobs", 1, "--question", "calibrated")


# Nothing is guessed silently, nothing is half-written, no input array is ever modified


def test_no_input_array_is_ever_modified():
    probs = PROBS + np.array([3e-7, 0, 0])  # off by so much that rows are renormalised
    labels, before = LABELS.copy(), probs.copy()
    for measure in MEASURES:
        outcome(probs, labels, measure=measure)
    hc.uncertainty.summary(probs)
    hc.classical.skce_test(probs[:, 0], labels)
    hc.classical.hosmer_lemeshow(probs[:, 0], labels, n_bins=1)
    np.testing.assert_array_equal(probs, before)
    np.testing.assert_array_equal(labels, LABELS)


# | NaN or inf in `probs` | error with the count and the first index |
# | values < 0 or > 1 beyond 1e-6; all-negative; row sums far from 1 | error naming the option |
# | labels that are strings without `classes`, 1-based, −100, out of range: error that says which |
# | object, masked, sparse, complex, structured arrays | error |


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"probs": changed(([3, 7], [1, 0], [2, 1]), np.nan)}, ("2 NaN or inf", "(3, 1, 2)")),
        *(
            ({"probs": changed((0, 0, 0), off)}, ("[0, 1]", "`from_logits=True`"))
            for off in (-2e-6, 1 + 2e-6)
        ),
        ({"probs": np.log(PROBS + 0.01)}, ("`from_log=True`",)),
        ({"probs": RNG.normal(size=PROBS.shape)}, ("`from_logits=True`",)),
        ({"probs": RNG.uniform(0.1, 0.9, size=PROBS.shape)}, ("sum to 1", "`from_logits=True`")),
        ({"labels": np.array(["a", "b", "c", "a"] * 10)}, ("without `classes`",)),
        ({"labels": LABELS + 1}, ("1-based",)),
        ({"labels": changed(4, -100, LABELS)}, ("ignore index",)),
        ({"labels": changed(4, 7, LABELS)}, ("7 at index 4",)),
        ({"probs": PROBS.astype(object)}, ("dtype object",)),
        ({"probs": np.ma.masked_array(PROBS, mask=PROBS > 0.5)}, ("masked",)),
        ({"probs": csr_array(PROBS[:, 0])}, ("sparse",)),
        ({"probs": PROBS * (1 + 0j)}, ("dtype complex128",)),
        ({"probs": np.zeros((N, K), "f8,f8")}, ("real numbers",)),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(given, words):
    holds(refused(**given), f"`{next(iter(given))}` ", *words)


# | row sums off by ≤ 4·K·eps of the input's type | left bit for bit |
# | row sums off by more, up to 1e-3 (float16) or 1e-4 | renormalised and said; beyond: error, worst sum |


@pytest.mark.parametrize(
    ("dtype", "limit"), [(np.float16, 1e-3), (np.float32, 1e-4), (np.float64, 1e-4)]
)
def test_rounding_is_left_and_a_little_more_is_renormalised_and_said(dtype, limit):
    rows, labels = np.array([[0.5, 0.5]] * N), LABELS % 2
    own = 4 * 2 * np.finfo(dtype).eps
    left, off, wrong = (
        rows.astype(dtype) * dtype(1 + by) for by in (own / 2, own + 0.8 * limit, own + 2 * limit)
    )
    assert np.all(left.sum(axis=1, dtype=float) != 1)
    np.testing.assert_array_equal(hc.ClassifierSet(left).probs[:, 0], left)
    result = outcome(off, labels)
    assert any("40 of 40 rows were renormalised" in str(note) for note in result.notes)
    got = hc.ClassifierSet(off).probs
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, 0.5, atol=1e-15)
    said = refused(wrong, labels)
    holds(said, "sum to 1", np.dtype(dtype).name, repr(float(wrong[0].sum(dtype=float))))
    assert "from_logits" not in said  # so near to 1, it is no such mistake


# | float16, bfloat16 tensors, float32, big-endian, Fortran order, negative strides, read-only map | same


def stored(kind, folder):
    if kind == "bfloat16":
        return FakeTensor(PROBS.astype(np.float32), "torch.bfloat16")
    if kind == "map":
        np.save(folder / "x.npy", PROBS)
        return np.load(folder / "x.npy", mmap_mode="r")
    if kind == "reversed":
        return np.ascontiguousarray(PROBS[::-1])[::-1]
    return np.asfortranarray(PROBS) if kind == "fortran" else PROBS.astype(kind)


@pytest.mark.parametrize("kind", ["f2", "bfloat16", "f4", ">f8", "fortran", "reversed", "map"])
def test_how_numbers_are_stored_changes_nothing(kind, tmp_path):
    given = stored(kind, tmp_path)
    before = pickle.dumps(getattr(given, "values", given))
    wanted, got = outcome(), outcome(given)
    assert got.statistic == wanted.statistic
    np.testing.assert_array_equal(got.null_distribution, wanted.null_distribution)
    assert pickle.dumps(getattr(given, "values", given)) == before
    assert kind != "map" or np.shares_memory(hc.ClassifierSet(given).probs, given)


# | torch, jax, cupy, pandas, polars, list of M arrays | accepted without importing those packages |


def test_those_packages_are_not_imported():
    code = (
        "import sys, numpy as np, hullcal as hc\n"
        "class Tensor:\n"
        "    dtype, layout, shape = 'torch.float32', 'torch.strided', (4, 2)\n"
        "    detach = cpu = lambda self: self\n"
        "    numpy = lambda self: np.full((4, 2), 0.5, np.float32)\n"
        "assert hc.ClassifierSet(Tensor()).n_samples == 4\n"
        "loaded = {'torch', 'jax', 'cupy', 'pandas', 'polars'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# | `(labels, probs)` swapped; wrong axis order; length mismatch | both shapes, and the order that fits |


def test_shapes_that_do_not_fit():
    holds(refused(LABELS, PROBS), "swapped", "(40,)", "(40, 2, 3)")
    turned = np.moveaxis(PROBS, 0, 1)
    said = refused(turned)
    holds(said, "(2, 40, 3)", "(40,)")
    order = re.search(r"`(np\.transpose\([^`]*\))`", said)[1]
    fitting = eval(order, {"np": np, "probs": turned})  # what the message says, as it says it
    np.testing.assert_array_equal(fitting, PROBS)
    holds(refused(PROBS, LABELS[:30]), "(40, 2, 3)", "(30,)")


# | labels one-hot, (N,1), bool, integral floats, strings | accepted | (test_validation.py)


# | a class absent from the labels | legal |


def test_an_absent_class():
    for measure in MEASURES:
        assert np.isfinite(outcome(labels=LABELS % 2, measure=measure).statistic)


# | N = 0, K = 1, D < 1, α outside (0,1), n_bins < 1 | error before any work |


@pytest.mark.parametrize(
    "options",
    [
        {"probs": PROBS[:0], "labels": LABELS[:0]},
        {"probs": np.ones((N, M, 1)), "labels": np.zeros(N, int)},
        *({"n_resamples": d} for d in (0, -1)),
        *({"alpha": alpha} for alpha in (0, 1, -0.1, np.nan)),
    ],
)
def test_arguments_are_judged_before_any_work(options):
    calls = []
    refused(measure=lambda probs, labels: calls.append(1) or 0.0, **options)
    assert calls == []


# (n_bins < 1, SKCE with N < 2: test_measure_contract.py)


# | N = 1, N < n_bins, (D+1)α < 1 | runs, with a warning; SKCE with N < 2: error |


@pytest.mark.parametrize("n", [1, 9])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "hl_cwise"])
def test_few_rows_are_tested_with_a_warning(n, measure):
    with pytest.warns(hc.HullcalWarning, match=f"{n} row"):
        assert 0 < outcome(PROBS[:n], LABELS[:n], measure=measure).pvalue <= 1


def test_few_resamples_bring_a_warning():
    with pytest.warns(hc.HullcalWarning, match="smallest `n_resamples` that could is 19"):
        assert not outcome(n_resamples=18).rejected


# | M = 1; duplicated members; identical members; members with exact 0 and 1 | valid, never NaN |

ODD_SETS = {
    "one member": PROBS[:, 0],
    "a member twice": PROBS[:, [0, 1, 0]],
    "all the same": PROBS[:, [0, 0, 0]],
    "certain": np.eye(K)[RNG.integers(0, K, (N, M))],
}


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("kind", ODD_SETS)
def test_odd_sets_have_an_answer(kind, null):
    for measure in MEASURES:
        result = outcome(ODD_SETS[kind], measure=measure, null=null)
        assert 0 < result.pvalue <= 1
        assert not np.isnan([result.statistic, *result.weights, *result.null_distribution]).any()


@pytest.mark.parametrize("value", [0.0, 1e-310, 0.1, 1e20, -1e300])
def test_null_values_that_are_all_but_equal_are_shown(value):
    found = outcome()
    values = np.full(19, value)
    values[0] = np.nextafter(value, np.inf)
    shown = hc.CalibrationTestResult.from_dict(
        found.to_dict() | {"null_distribution": values, "statistic": value, "minimum": value}
    )
    assert "▲" in str(shown)


# | label with predicted probability 0 for every member | valid; log score infinite, said |


def test_a_label_that_nobody_thought_possible():
    probs = changed(5, 0.0)
    probs[5, :, 1] = 1
    labels = changed(5, 2, LABELS)
    said = "log score of every combination is infinite"
    for null in NULLS:
        result = outcome(probs, labels, null=null)
        assert 0 < result.pvalue <= 1
        assert any(said in str(note) for note in result.notes)
    assert np.isposinf(hc.ClassifierSet(probs).log_score(labels)).all()


# | pickled npy/npz, `.pkl`, `.pt` | refused; npz members larger than memory: error before reading |


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "dumped.npy", "x.pkl", "x.pt"])
def test_pickles_are_refused_and_do_not_run(name, tmp_path):
    trap, path = tmp_path / "trap", tmp_path / name
    content = np.array([[Bomb(trap)]], dtype=object)
    if name.startswith("x.np"):
        (np.save if name == "x.npy" else np.savez)(path, content, allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(hc.InvalidInputError, match="contains Python objects"):
        hc.io.read(path)
    assert not trap.exists()


# (larger than memory: test_io.py, test_stores.py)


# | custom measure that returns NaN, raises, or cannot be pickled | error naming it; nothing dropped |
# (returns NaN or raises, early and late: test_measure_contract.py)


def test_a_measure_that_workers_cannot_be_sent_is_named():
    lock = threading.Lock()  # which no process can send to another

    def holding(probs, labels):
        with lock:
            return 0.0

    own = hc.simulation.Test(question="truth", measure=holding)
    grid = hc.simulation.Grid(scenario="S1", test=own, n_datasets=2, n_resamples=19, alpha=0.5)
    with pytest.raises(hc.InvalidInputError, match="`measure` holding"):
        hc.simulation.run(grid, n_jobs=2)


# Long runs: finished blocks go to an append-only journal with the configuration's hash

HALTS = {
    # What happens as the third block is on the disk, and the exit code.
    "Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT)", 130),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", 4),
    "lost terminal": ("os.kill(os.getpid(), signal.SIGHUP)", 4),
    "full disk": (
        "size = self.path.stat().st_size + 30\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))",
        4,
    ),
    "dead worker": (
        "[c for c in psutil.Process().children() if 'popen_loky' in ' '.join(c.cmdline())][0].kill()",
        4,
    ),
}
HALTED = """
import os, resource, signal, sys
import psutil
from hullcal.io import journal
append = journal.Journal.append
def then(self, key, columns):
    append(self, key, columns)
    if len(self.blocks) == 3:
        {event}
journal.Journal.append = then
from hullcal.cli import run
run(sys.argv[1:])
"""
STUDY = ("simulate", "--scenario", "calibrated", "--test", "calibrated:ece_conf:paper")
STUDY += ("-N", 60, "-R", 1000)


# Ctrl-C, SIGTERM, a full disk or a dead worker leave a valid journal; `--resume` continues and the result
# equals the uninterrupted one bit for bit; exit codes 4 and 130; SIGHUP like SIGTERM


@pytest.mark.parametrize("event", HALTS)
def test_a_halt_leaves_a_journal_that_goes_on_to_the_same_result(event, file):
    halt, code = HALTS[event]
    kept = file.parent / "kept"
    command = ["test", file, *SHORT, "-D", 400, "--jobs", 2, "--format", "json", "--journal", kept]
    if event == "dead worker":
        command = [*STUDY, "--jobs", 2, "--format", "json", "--output", kept]
    script = [sys.executable, "-c", HALTED.format(event=halt), *map(str, command)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0"}
    if event == "full disk":
        # What counts coverage writes files too, and complains.
        environment.pop("COVERAGE_PROCESS_CONFIG", None)
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == code, done.stderr
    assert "continue with --resume" in done.stderr
    assert "Traceback" not in done.stderr
    (journal,) = kept.rglob("journal.jsonl")
    before = journal.read_bytes()
    assert "hash" in json.loads(before.splitlines()[0])
    assert len(before.splitlines()) >= 4
    whole = command[:-2]
    assert cli(*command, "--resume")[:2] == cli(*whole)[:2]
    assert journal.read_bytes().startswith(before)


# A torn last line is ignored; another configuration is refused


def test_a_torn_line_and_another_configuration(tmp_path):
    wanted = outcome(journal=tmp_path)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    np.testing.assert_array_equal(
        outcome(journal=tmp_path).null_distribution, wanted.null_distribution
    )
    assert path.read_bytes() == whole
    with pytest.raises(hc.InvalidInputError, match="D: 19 there, 39 now"):
        outcome(journal=tmp_path, n_resamples=39)


# | a journal or study folder made by someone else | nothing outside the folder is ever … created |


def test_the_folder_of_one_test_of_several_is_no_link(tmp_path):
    outside, kept = tmp_path / "outside", tmp_path / "kept"
    outside.mkdir()
    kept.mkdir()
    (kept / "average-ece_conf").symlink_to(outside)
    with pytest.raises(hc.InvalidInputError, match="must hold regular files and folders only"):
        hc.assess(PROBS, LABELS, journal=kept, **FEW | {"n_resamples": 72})
    assert list(outside.iterdir()) == []


# | a journal used with other predictions whose label probabilities agree | refused |


def test_a_journal_is_of_all_predictions(tmp_path):
    hc.truth_test(PROBS, LABELS, journal=tmp_path, **FEW)
    other = PROBS.copy()
    other[0, :, [1, 2]] = PROBS[0, :, [2, 1]]  # row 0 has label 0
    with pytest.raises(hc.InvalidInputError, match="must be of the same data"):
        hc.truth_test(other, LABELS, journal=tmp_path, **FEW)


# Files are written to a temporary name in the same folder, then renamed; an existing file is kept


def test_an_existing_file_is_kept_without_force(file):
    out = file.parent / "out.txt"
    out.write_text("mine")
    # So many resamples take days: the refusal comes before any work.
    code, printed, said = cli("test", file, "-D", 10**9, "--output", out)
    assert (code, printed, out.read_text()) == (2, "", "mine")
    holds(said, "out.txt", "`--force`")
    assert cli("test", file, *SHORT, "--output", out, "--force")[0] == 0
    assert out.read_text() != "mine"


# Report and CSV: names are text, never markup (test_report.py, also in a browser; test_io.py)


# No network, no telemetry, no eval, no pickle


def test_no_source_file_evaluates_unpickles_or_connects():
    network = {"socket", "urllib", "http", "requests", "ssl", "ftplib", "smtplib"}
    banned = network | {"marshal", "shelve"}
    for path in Path(hc.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                # Workers are sent pickles of our own making; nothing here reads one.
                called = f"{node.value.id}.{node.attr}"
                assert called not in ("pickle.load", "pickle.loads", "pickle.Unpickler"), path
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not {name.partition(".")[0] for name in names} & banned, path


def test_a_test_opens_no_connection(file):
    code = (
        "import sys\n"
        "def watch(event, arguments):\n"
        "    if event.startswith(('socket.connect', 'socket.getaddrinfo', 'urllib', 'smtplib')):\n"
        "        print('CONNECTED', event, arguments, file=sys.stderr)\n"
        "sys.addaudithook(watch)\n"
        "from hullcal.cli import run; run(sys.argv[1:])"
    )
    words = ["test", file, *SHORT, "--report", file.parent / "page.html"]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "CONNECTED" not in done.stderr


# | output that is the input, or a link loop | refused before work, `--force` or not |


@pytest.mark.parametrize(
    ("option", "name"),
    [*itertools.product(["--output"], ["x.npz", "y.npy", "one.npy"]), ("--report", "link.txt")],
)
def test_an_input_is_never_an_output(option, name, file):
    folder = file.parent
    (folder / "link.txt").symlink_to(file)
    np.save(folder / "y.npy", LABELS)
    np.save(folder / "one.npy", PROBS[:, 0])
    given = {
        "y.npy": [file, "--labels", folder / "y.npy"],
        "one.npy": ["--member", folder / "one.npy", "--labels", folder / "y.npy"],
    }.get(name, [file])
    before = (folder / name).read_bytes()
    code, printed, said = cli(
        "test", *given, *SHORT, option, folder / name, "--force", "--format", "json"
    )
    assert (code, printed, (folder / name).read_bytes()) == (2, "", before)
    holds(said, f"`{option}` must not be an input")
    (folder / "loop").symlink_to(folder / "loop")
    code, _, said = cli(
        "test", file, *SHORT, option, folder / "loop", "--force", "--format", "json"
    )
    assert code == 2
    holds(said, "link loop")


# | names from files in messages, CSV and `str(result)` | printable characters only |


def test_names_are_printable_wherever_they_are_shown(tmp_path):
    names = np.array(["\x1b[31mred", "\u202ethgir"])
    odd = tmp_path / "\x1b[31m\u202e.npz"
    np.savez(odd, probs=PROBS, labels=LABELS, members=names)
    shown = [str(outcome(hc.ClassifierSet(PROBS, members=names)))]
    shown.append(hc.io.to_csv(outcome(hc.ClassifierSet(PROBS, members=names))))
    for words in (
        ["weights", odd],
        ["test", odd, *SHORT],
        ["sizes", odd],
        ["weights", odd, "--probs-key", "\x1b[31m"],
        ["weights", tmp_path / "none\x1b[31m.npz"],
    ):
        shown += cli(*words)[1:]
    assert [c for c in "".join(shown) if not c.isprintable() and c not in "\n\r"] == []
    (row,) = csv.DictReader(io.StringIO(shown[1]))
    assert json.loads(row["members"]) == names.tolist()


# | `simulate` whose parent dies (HUP, KILL) | workers end within seconds; SIGHUP like SIGTERM |


@pytest.mark.skipif(
    sys.platform == "win32", reason="there the orphans of a process keep its number"
)
def test_workers_end_soon_after_a_parent_that_was_killed(tmp_path):
    # Blocks of so many data sets take minutes.
    words = [*STUDY[:-1], 10**6, "--jobs", 2, "--output", tmp_path / "study"]
    command = [sys.executable, "-m", "hullcal", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        own = psutil.Process(parent.pid)

        def busy():
            found = [c for c in own.children() if "popen_loky" in " ".join(c.cmdline())]
            return len(found) == 2 and all(sum(c.cpu_times()[:2]) > 4 for c in found) and found

        deadline = time.monotonic() + 200
        while not (workers := busy()) and time.monotonic() < deadline:
            time.sleep(0.2)
        parent.kill()
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=10)
    for process in alive:
        process.kill()
    assert not alive


# | `cobyla` with many members | a refusal or a warning with the expected time |


def test_cobyla_says_how_long_it_takes_with_many_members():
    many = RNG.dirichlet([1, 1, 1], size=(N, 50))
    quick = hc.minimizers.Cobyla(max_evaluations=1)
    with pytest.warns(hc.HullcalWarning, match="about 2 s for a search over 50 members"):
        hc.minimize(many, LABELS, minimizer=quick, rng=0)


# | SIGINT and SIGTERM while modules load; `-D 10**20`; … | 130 and 4; an error with code 2 |


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 4, "stopped by a signal")],
)
def test_a_signal_while_modules_load(number, code, word, tmp_path):
    (tmp_path / "click.py").write_text("print('loading', flush=True); import time; time.sleep(60)")
    places = os.pathsep.join([str(tmp_path), str(Path(hc.__file__).parents[1])])
    with subprocess.Popen(
        [sys.executable, "-m", "hullcal", "--version"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": places},
    ) as process:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        assert process.communicate(timeout=60)[1] == f"hullcal: {word}\n"
    assert process.returncode == code


def test_more_resamples_than_any_memory_holds(file):
    holds(refused(n_resamples=10**20), "n_resamples", "2**48")
    code, printed, said = cli("test", file, *SHORT, "-D", 10**20)
    assert (code, printed) == (2, "")
    holds(said, "`--resamples` must be an integer from 1 to 2**48")


@pytest.mark.parametrize("n", [20_000, 200_000], ids=["packed", "in passes"])
def test_a_file_cut_short_while_it_is_mapped(n, tmp_path):
    probs = np.resize(np.array([0.5, 0.3, 0.2]), (n, 8, 3))
    np.save(tmp_path / "x.npy", probs)
    labels = np.resize(LABELS, n)
    given = np.load(tmp_path / "x.npy", mmap_mode="r")
    kept = hc.ClassifierSet(given)
    opened = opening.LocalSet(kept, labels)
    os.truncate(tmp_path / "x.npy", 10_000)
    with pytest.raises(hc.InvalidInputError, match="`probs` must be a file that nobody changes"):
        hc.ClassifierSet(given)

    def evaluated():
        objective = opened.objective(hc.ConfidenceECE(), in_memory=False, n_jobs=1)
        return objective.values(np.ones((1, 1)), np.array([0]))

    with pytest.raises(hc.InvalidInputError, match="cut to 10000"):
        evaluated()


# | stderr closed or full | exit codes stay 0/2/3/4; 1 means rejected and nothing else |


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_nobody_listens_on_stderr(where, file):
    for words, code in ((["-D", "18"], 0), (["--alpha", "2"], 2)):
        command = [sys.executable, "-m", "hullcal", "test", str(file), *map(str, SHORT), *words]
        line = f'exec "$@" >/dev/null {where}'
        done = subprocess.run(["sh", "-c", line, "sh", *command], timeout=300)
        assert done.returncode == code, words


# | NaN from a custom search or in a stored result | an error; stored results are validated |


@pytest.mark.parametrize(
    ("weights", "value"),
    [
        *(([0.5, 0.5], value) for value in (np.nan, -np.inf)),
        *((weights, 0.1) for weights in ([1.5, -0.5], [0.5, 0.6], [np.nan, np.nan], [1.0])),
    ],
)
def test_the_answer_of_a_custom_search_is_checked(weights, value):
    @dataclass(frozen=True, kw_only=True)
    class Odd(hc.minimizers.Minimizer):
        name = "odd"

        def search(self, objective, key):
            found = Minima.empty(objective.n_cases, len(weights))
            found.weights[:], found.values[:] = weights, value
            return found

    for test in (hc.calibration_test, hc.minimize):
        with pytest.raises(
            hc.InvalidInputError, match="`minimizer` must find points of the simplex"
        ):
            test(PROBS, LABELS, minimizer=Odd())


def test_a_stored_result_is_validated():
    stored = hc.io.to_json(outcome())
    for field in (
        *({"alpha": alpha} for alpha in (2.0, "NaN")),
        *({"weights": weights} for weights in ([0.5, 0.6], ["NaN", 1.0])),
        *({"members": ["a"]}, {"null_distribution": ["NaN"] * 19}, {"statistic": "NaN"}),
        *({"n_samples": 0}, {"n_classes": 1}),
    ):
        document = json.loads(stored)
        document["results"][0] |= field
        with pytest.raises(hc.InvalidInputError):
            hc.io.from_json(json.dumps(document))


# Exit codes: 0 done · 1 rejected, only with `--exit-code` · 2 bad usage or input · 3 internal error


def test_exit_codes(file, monkeypatch):
    wrong = file.parent / "wrong.npz"
    np.savez(wrong, probs=np.eye(K)[LABELS][:, None].repeat(2, 1), labels=(LABELS + 1) % K)
    assert cli("test", file, *SHORT, "--exit-code")[0] == 0
    assert cli("test", wrong, *SHORT)[0] == 0
    assert cli("test", wrong, *SHORT, "--exit-code")[0] == 1
    # Twice the smallest p-value of 19 resamples is .1, so more of them are run.
    several = ("-m", "ece_conf", "-m", "ece_cwise", "--exit-code")
    assert cli("test", wrong, *SHORT, *several)[0] == 1
    assert cli("test", wrong, "--no-such-option")[0] == 2
    assert cli("test", file.parent / "missing.npz")[0] == 2
    with monkeypatch.context() as patch:
        patch.setattr("hullcal.assessment.assess", lambda *_, **__: 1 / 0)
        code, printed, said = cli("test", file, *SHORT)
    assert (code, printed) == (3, "")
    holds(said, "internal error, ZeroDivisionError", "HULLCAL_DEBUG=1")
    assert "Traceback" not in said


# Results on stdout, progress and notices on stderr, `--quiet`, `NO_COLOR` respected


def test_results_go_to_stdout_and_notices_to_stderr(file):
    for form in ("json", "csv"):
        # Eighteen resamples cannot decide at .05, which is worth a note.
        command = ("test", file, *SHORT, "-D", 18, "--format", form)
        code, printed, said = cli(*command)
        assert code == 0
        assert "18 resamples cannot decide at 0.05" in said
        assert "cannot decide" not in printed
        assert cli(*command, "--quiet") == (0, printed, "")
        if form == "json":
            assert len(hc.io.from_json(printed)) == 1


@pytest.mark.parametrize("unwanted", [{}, {"NO_COLOR": "1"}], ids=["colors", "NO_COLOR"])
def test_colors_are_left_out_where_they_are_not_wanted(unwanted, file):
    terminal = {"TTY_COMPATIBLE": "1", "TERM": "xterm-256color"}
    environment = {name: os.environ[name] for name in os.environ if name != "NO_COLOR"}
    environment |= terminal | (unwanted or {"FORCE_COLOR": "1"})
    command = [sys.executable, "-m", "hullcal", "test", file, *SHORT, "-D", 300]
    how = {"capture_output": True, "text": True, "env": environment, "timeout": 300}
    done = subprocess.run([str(word) for word in command], **how)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", done.stderr)) == (not unwanted)
