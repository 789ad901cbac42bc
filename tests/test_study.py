"""Studies: the same numbers however they are run, errors counted as they should be, and the program."""

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import time

import joblib
import numpy as np
import psutil
import pytest
from scipy.stats import binomtest

import hullcal as hc
from hullcal import InvalidInputError, simulation
from hullcal.cli.studies import _cluster
from hullcal.nulls import Paper
from hullcal.simulation import Grid, StudyError, Test, run, wilson
from hullcal.simulation.study import NAMES, as_csv
from test_cli import PROGRAM, started
from test_cli import run as program

SIZES = {"n_samples": 12, "n_members": 3, "n_classes": 3}
#: Short searches, so that studies are quick uncompiled as well.
SMALL = Grid(
    **SIZES,
    scenario=("S1", "S2", "calibrated"),
    test=[
        f"{test}:pairwise:8"
        for measure in ("ece_conf:5", "skce_ul")
        for test in (f"calibrated:{measure}:paper", f"truth:{measure}")
    ],
    n_resamples=9,
    n_datasets=12,
    alpha=(0.1, 0.5),
    seed=7,
)


def same(one, two):
    assert list(one.tests) == list(two.tests)
    for name, column in one.tests.items():
        np.testing.assert_array_equal(column, two.tests[name], err_msg=name)


@pytest.fixture(scope="module")
def small():
    return run(SMALL)


# Counting


@pytest.mark.parametrize("total", [1, 7, 1000])
def test_wilson_against_scipy(total):
    for count in sorted({0, 1, total // 20, total // 2, total - 1, total}):
        interval = binomtest(count, total).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson(count, total), interval, rtol=1e-12, atol=1e-15)
    with pytest.raises(InvalidInputError, match="Are they exchanged"):
        wilson(total + 1, total)


def test_rates_against_a_plain_loop():
    """Streams, data, tests and counts written out once more, without the study's own code."""
    sizes = {"n_samples": 20, "n_members": 4, "n_classes": 3, "spread": 0.1}
    cell = {"scenario": "S1", **sizes, "strength": None, "protocol": "paper"}
    text = json.dumps(cell, sort_keys=True, separators=(",", ":"))
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    pvalues = []
    for r in range(25):
        of_data, of_test = (
            np.random.SeedSequence(3, spawn_key=(key >> 32, key & 0xFFFFFFFF, r, purpose))
            for purpose in (0, 1)
        )
        data = simulation.scenario("S1", **sizes, rng=np.random.default_rng(of_data))
        words = of_test.generate_state(4, np.uint32).astype("<u4").tobytes()
        how = {"n_resamples": 19, "rng": int.from_bytes(words, "little")}
        five = hc.ConfidenceECE(n_bins=5)
        search = {"measure": five, "minimizer": hc.minimizers.Pairwise(max_evaluations=15)}
        results = (
            hc.truth_test(data.probs, data.labels, **how),
            hc.truth_test(data.probs, data.labels, **search, **how),
            hc.calibration_test(data.probs, data.labels, **search, **how),
        )
        pvalues.append([result.pvalue for result in results])
    tests = ("truth", "truth:ece_conf:5:pairwise:15", "calibrated:ece_conf:5:stacked:pairwise:15")
    levels = (0.05, 0.25, 0.6)
    how = {"test": tests, "n_resamples": 19, "n_datasets": 25, "alpha": levels, "seed": 3}
    study = run(Grid(scenario="S1", **sizes, **how))
    np.testing.assert_array_equal(study.tests["pvalue"].reshape(3, 25), np.transpose(pvalues))
    counts = [(np.array(pvalues)[:, i] <= alpha).sum() for i in range(3) for alpha in levels]
    assert counts[2] > counts[0]
    assert [row["rejections"] for row in study.rates()] == counts


def test_an_error_is_what_contradicts_the_answer_to_the_question():
    """By rejecting where yes is true of the scenario, by not rejecting where it is not."""
    true = {"S1": (1, 1), "S1_vertex": (1, 1), "S2": (0, 0), "S3": (0, 0), "calibrated": (1, 0)}
    tests = ["calibrated:ece_conf:paper:random:4", "truth:ece_conf:random:4", "truth"]
    how = {"test": tests, "n_resamples": 9, "n_datasets": 3, "alpha": 0.5}
    rows = run(Grid(**SIZES, scenario=tuple(true), **how)).rates()
    assert len(rows) == 15
    for row in rows:
        first = true[row["scenario"]][row["question"] == "truth"]
        assert row["kind"] == ("Type I" if first else "Type II")
        errors = row["rejections"] if first else 3 - row["rejections"]
        assert (row["rejection_rate"], row["error"]) == (row["rejections"] / 3, errors / 3)
        assert (row["error_lower"], row["error_upper"]) == wilson(errors, 3)
        bounds = row["rejection_lower"], row["rejection_upper"]
        assert bounds == wilson(row["rejections"], 3)


def test_a_protocol_decides_by_its_own_rule_and_shares_data_with_those_that_draw_alike():
    """Under the authors' rule a negative SKCE far from 0 rejects."""
    options = {"n_samples": 30, "n_members": 3, "n_classes": 3, "n_datasets": 60}
    options |= {"scenario": "S1", "test": "calibrated:skce_ul:paper:pairwise:9"}
    protocols = ["paper", "paper+two_sided", "paper+sparse_weights"]
    study = run(Grid(**options, n_resamples=40, protocol=protocols, alpha=0.5))
    one, two, sparse = study.tests["statistic"].reshape(3, 60)
    np.testing.assert_array_equal(one, two)
    assert (one != sparse).all()
    rates = [row["rejection_rate"] for row in study.rates()]
    assert rates[1] > rates[0] + 0.15


# The same numbers


def test_processes_change_nothing(small):
    same(run(SMALL, n_jobs=2), small)


def test_dask_changes_nothing_by_name_or_by_the_users_own_setting(small):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        same(run(SMALL, backend="dask"), small)
        worked = client.run(lambda: "hullcal.simulation.study" in __import__("sys").modules)
        assert any(worked.values())
        with joblib.parallel_config(backend="dask"):
            same(run(SMALL), small)


def test_the_order_of_blocks_and_what_is_left_of_them_change_nothing(tmp_path, small):
    told = []
    run(SMALL, folder=tmp_path, progress=lambda *counts: told.append(counts))
    assert told == [(done, 144) for done in range(0, 145, 4)]
    whole = {name: (tmp_path / name).read_bytes() for name in NAMES}
    first, *blocks = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_text("".join([first, *blocks[:10:-1]]))
    told.clear()
    study = run(SMALL, folder=tmp_path, resume=True, progress=lambda *counts: told.append(counts))
    same(study, small)
    assert (told[0], told[-1]) == ((100, 144), (144, 144))
    assert {name: (tmp_path / name).read_bytes() for name in NAMES} == whole


def test_a_larger_grid_in_other_blocks_repeats_the_smaller_one(small):
    larger = {"n_members": (4, 3), "scenario": ("S3", "calibrated", "S1"), "n_datasets": 64}
    truth, calibrated = "truth:ece_conf:5:pairwise:8", "calibrated:ece_conf:5:paper:pairwise:8"
    study = run(Grid(**(SMALL.configuration() | larger | {"test": ("truth", truth, calibrated)})))

    def chosen(tests, scenario, n_members, question):
        wanted = {"scenario": scenario, "n_members": n_members, "measure": "ece_conf"}
        wanted["question"] = question
        rows = np.all([tests[key] == value for key, value in wanted.items()], axis=0)
        return tests["pvalue"][rows & (tests["dataset"] < 12)]

    for place in (("S1", 3), ("calibrated", 2)):
        for question in ("calibrated", "truth"):
            one, two = (chosen(each.tests, *place, question) for each in (small, study))
            np.testing.assert_array_equal(one, two)
            assert len(one) == 12


def test_another_seed_gives_other_numbers_and_tests_of_a_data_set_are_paired(small):
    other = run(Grid(**{**SMALL.configuration(), "seed": 8}))
    assert not np.array_equal(other.tests["statistic"], small.tests["statistic"])
    assert len(set(small.tests["statistic"])) == 72, "no two data sets are the same"
    statistics = small.tests["statistic"].reshape(3, 2, 2, 12)
    np.testing.assert_array_equal(statistics[:, :, 0], statistics[:, :, 1])


# What a grid is


def test_cells_that_are_the_same_are_one():
    axes = {"n_members": (2, 5, 5), "spread": (0.1, 1), "strength": (0.5, 1.0)}
    grid = Grid(scenario=("S1", "S3", "calibrated"), **axes, test="truth", n_datasets=3)
    count = {name: sum(c.scenario == name for c in grid.cells) for name in grid.scenario}
    assert count == {"S1": 4, "S3": 8, "calibrated": 1}
    assert grid.n_tests == 13 * 3
    assert len({cell.key for cell in grid.cells}) == 13


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"scenario": "S9"}, "Unknown scenario 'S9'. Choose from: S1"),
        ({"scenario": ()}, "`scenario` must have at least one"),
        ({"n_classes": 1}, "`n_classes`"),
        ({"strength": 1.5}, "`strength`"),
        ({"protocol": "mine"}, "Unknown protocol 'mine'"),
        ({"test": "calibrat"}, "`test` must ask one of calibrated, truth"),
        ({"test": "calibrated:ece_con"}, "Did you mean ece_conf?"),
        ({"test": "calibrated:stacked:ece_conf"}, "in this order"),
        ({"test": "truth:stacked"}, "`test` must have a null with calibrated only"),
        ({"test": "truth:pairwise"}, "`test` searches by a measure only"),
        ({"test": "truth:ece_conf:pairwise:0"}, "`minimizer`.* positive number of evaluations"),
        ({"test": "truth:skce_ul:exact"}, "minimizer `exact`"),
        ({"alpha": (0.05, 1.0)}, "`alpha`"),
        ({"seed": -1}, "`seed`"),
        ({"test": "truth:skce_ul", "n_samples": 1}, "at least 2 rows"),
        ({"test": Test(question="calibrated", measure=len, null="recentered")}, "residual vector"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_grid_is_said_before_any_work(wrong, words):
    with pytest.raises(InvalidInputError, match=words):
        Grid(**({"test": "truth"} | wrong))


def test_warnings_of_a_grid_are_given_once_and_point_here():
    few = {"n_samples": 12, "alpha": (0.01, 0.5), "n_resamples": 9}
    for how, words in ((few, "that could is 99"), ({"n_samples": 5}, "rows are fewer")):
        with pytest.warns(hc.HullcalWarning, match=words) as told:
            Grid(**how, test="calibrated", scenario="S1")
        assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize(
    ("test", "columns"),
    [
        ("truth", ("truth", "likelihood", None, "", "")),
        ("truth:ece_conf:5", ("truth", "ece_conf", 5, "refit", "steepest")),
        ("calibrated:skce_ul:stacked", ("calibrated", "skce_ul", None, "stacked", "steepest")),
        (
            "calibrated:hl_cwise:paper:pairwise:30",
            ("calibrated", "hl_cwise", 10, "paper", "pairwise:30"),
        ),
    ],
)
def test_a_test_is_its_name(test, columns):
    assert str(Test.named(test)) == test
    grid = Grid(test=test, scenario="S1")
    assert grid.configuration()["test"] == [test]
    assert tuple(grid.names()[0][name] for name in NAMED) == columns


NAMED = ("question", "measure", "n_bins", "null", "minimizer")


def test_settings_without_a_name_stand_in_parentheses():
    own = Test(question="calibrated", measure=hc.SKCE(bandwidth=0.5), null=Paper(rows="permuted"))
    said = "calibrated:skce_ul(bandwidth=0.5):paper(rows=permuted)"
    assert Grid(test=own, scenario="S1").configuration()["test"] == [str(own)] == [said]
    assert str(Test(question="truth", measure=_fails_for_some)) == "truth:_fails_for_some"


# What happens when something is wrong


def _fails_for_some(probs, labels):
    return 0.5 / (0 if labels[0] == labels[1] == 0 else 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_test_that_fails_names_its_data_set(n_jobs):
    own = Test(question="calibrated", measure=_fails_for_some)
    grid = Grid(**SIZES, scenario="S1", test=own, n_datasets=30, n_resamples=20)
    words = r"data set \d+ of S1 \(n_samples=12.*_fails_for_some.*division by zero"
    with pytest.raises(StudyError, match=words):
        run(grid, n_jobs=n_jobs)


def test_one_process_keeps_its_ctrl_c():
    before = signal.getsignal(signal.SIGINT)
    run(Grid(**SIZES, scenario="S1", test="truth", n_datasets=1))
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("backend", ["nonsense", "dask", "multiprocessing", 7])
def test_a_backend_that_cannot_be_used_is_an_error(backend):
    with pytest.raises(InvalidInputError, match=f"`backend` .*{backend}"):
        run(SMALL, backend=backend, n_jobs=2)


def test_folders_that_hold_something_are_refused(tmp_path):
    function = Test(question="calibrated", measure=_fails_for_some)
    own = Grid(**SIZES, scenario="S1", test=function, n_datasets=2)
    (tmp_path / "tests.csv").write_text("mine")
    for grid, how, words in (
        (SMALL, {"folder": tmp_path / "tests.csv"}, "`folder` must be a folder"),
        (SMALL, {"folder": 5}, "`folder` must be a path"),
        (SMALL, {"folder": tmp_path}, r"tests\.csv"),
        (SMALL, {"folder": tmp_path, "resume": True}, r"tests\.csv"),
        (SMALL, {"folder": tmp_path, "force": "no"}, "`force` must be True or False"),
        (SMALL, {"folder": tmp_path, "resume": True, "force": True}, "got both"),
        (SMALL, {"force": True}, "`folder` must name what"),
        # A function may be another one when the study is resumed.
        (own, {"folder": tmp_path / "new"}, "`folder` needs measures.*'_fails_for_some'"),
        (SMALL.configuration(), {}, "`grid` must be a Grid"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            run(grid, **how)
    assert (tmp_path / "tests.csv").read_text() == "mine"
    assert not (tmp_path / "new").exists()


def test_starting_over_leaves_nothing_of_the_study_before(tmp_path):
    run(SMALL, folder=tmp_path)

    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SMALL, folder=tmp_path, force=True, progress=stop)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "journal.jsonl"}


def test_a_block_that_no_run_of_this_grid_writes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(simulation.protocols.Protocol, "smallest_level", lambda *_: 1.5)
    run(SMALL, folder=tmp_path)
    monkeypatch.undo()
    with pytest.raises(InvalidInputError, match="`resume` needs a sound journal"):
        run(SMALL, folder=tmp_path, resume=True)


# Tables


def test_the_table_says_what_each_test_was(tmp_path, small):
    run(SMALL, folder=tmp_path / "a" / "b")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a" / "b" / "tests.csv").read_text())))
    assert len(rows) == SMALL.n_tests == 144
    named = [rows[-1][name] for name in ("scenario", "n_members", "spread", "n_bins")]
    assert named == ["calibrated", "2", "", ""]
    assert rows[0]["n_bins"] == "5"
    for name in ("pvalue", "statistic", "n_evaluations"):
        assert [float(row[name]) for row in rows] == small.tests[name].tolist()
    manifest = json.loads((tmp_path / "a" / "b" / "manifest.json").read_text())
    assert Grid(**manifest["grid"]) == SMALL
    assert manifest["versions"]["numpy"] == np.__version__


@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_a_name_that_a_spreadsheet_would_run_stands_behind_an_apostrophe():
    def measure(probs, labels):
        return -0.25

    measure.__name__ = "=cmd\rx\ny"
    own = Test(question="calibrated", measure=measure, null="paper")
    study = run(Grid(**SIZES, scenario="S1", test=own, n_datasets=1, n_resamples=3))
    row, *_ = csv.DictReader(io.StringIO(as_csv(study.rates()), newline=""))
    assert row["measure"] == "'=cmd\rx\ny"
    # The minus of a number is no formula.
    assert as_csv([{"statistic": -0.25, "minimum": float("nan")}]) == "statistic,minimum\n-0.25,\n"


# The program

#: The small grid in words.
OPTIONS = (
    *("--scenario", "S1", "--scenario", "S2", "--scenario", "calibrated", "--seed", 7),
    *(word for test in SMALL.tests for word in ("--test", test)),
    *("-N", 12, "-M", 3, "-K", 3, "-D", 9, "-R", 12),
    *("--alpha", 0.1, "--alpha", 0.5),
)
#: Fifty blocks, so that there is a middle to be hit in.
LONG = ("--scenario", "calibrated", "--test", "calibrated:ece_conf:paper", "-N", 60, "-R", 800)
#: Studies of some size are run compiled, whatever the other tests are.
COMPILED = os.environ | {"NUMBA_DISABLE_JIT": "0"}


def finished(*arguments):
    command = [*PROGRAM, "simulate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=COMPILED)


def lines(folder):
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def test_a_study_that_is_stopped_again_and_again_ends_as_if_it_was_not(tmp_path):
    whole, broken, said = tmp_path / "whole", tmp_path / "broken", tmp_path / "said"
    assert finished(*LONG, "--output", whole).returncode == 0
    for number, code, options in (
        (signal.SIGKILL, -signal.SIGKILL, ("--jobs", 2)),
        (signal.SIGTERM, 4, ("--resume",)),
        (signal.SIGINT, 130, ("--resume", "--jobs", 2)),
    ):
        before, end = lines(broken), time.monotonic() + 120
        # A session of its own, as a terminal gives it, so that Ctrl-C can reach the workers as well;
        # and no pipe, which workers that outlive their parent would hold open.
        with open(said, "w") as file:
            how = {"stdout": file, "stderr": file, "start_new_session": True, "env": COMPILED}
            process = started("simulate", *LONG, "--output", broken, *options, **how)
        while lines(broken) <= max(1, before):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, f"no further block in {broken} for two minutes"
            time.sleep(0.02)
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "popen_loky" in " ".join(child.cmdline())]
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        ended = process.wait(timeout=60)
        _, alive = psutil.wait_procs(workers, timeout=10 if code > 0 else 0)
        for worker in alive:
            worker.kill()
        words = said.read_text()
        assert ended == code, words
        assert code < 0 or not alive, "only a program that was killed leaves workers behind"
        assert not (broken / "tests.csv").exists(), "there must be a middle to be hit in"
        assert "Traceback" not in words
        assert code < 0 or f"finished blocks are in {broken}; continue with --resume" in words
    done = finished(*LONG, "--output", broken, "--resume")
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    assert lines(broken) == lines(whole)


def test_options_make_the_grid_and_json_gives_its_rates(small):
    """In a process of its own, whose every sign of life is looked at; dask starts workers there."""
    pytest.importorskip("distributed")
    done = finished(*OPTIONS, "--format", "json", "--backend", "dask", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    said = json.loads(done.stdout)
    assert said["rates"] == small.rates()
    assert said["configuration"].items() >= SMALL.configuration().items()


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_grid_comes_from_a_file_and_options_go_first(tmp_path, small, ending):
    configuration = SMALL.configuration() | {"seed": 5}
    path = tmp_path / f"grid.{ending}"
    if ending == "json":
        path.write_text(json.dumps(configuration))
    else:
        path.write_text("".join(f"{key} = {json.dumps(v)}\n" for key, v in configuration.items()))
    output = tmp_path / "study"
    options = ("--seed", 7, "--format", "csv", "--output", output)
    done = program("simulate", "--grid", path, *options)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [float(row["error"]) for row in rows] == [row["error"] for row in small.rates()]
    assert (output / "rates.csv").read_text() == done.stdout
    assert "results:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenario", "S4"), ["Unknown scenario", "S1_vertex", "'S4'"]),
        (("--test", "truth:ece_conf:0"), ["`--test`", "bins"]),
        (("--strength", 2), ["`--strength`"]),
        (("--backend", "nonsense", "--jobs", 2), ["`--backend`", "nonsense"]),
        (("--resume",), ["`--output`"]),
        (("--grid", "missing.toml"), ["File not found: missing.toml"]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_bad_usage_is_said_before_any_work(tmp_path, arguments, words):
    output = () if arguments == ("--resume",) else ("--output", tmp_path / "study")
    done = program("simulate", *output, *arguments)
    assert done.returncode == 2
    assert all(word in done.stderr for word in words)
    assert not (tmp_path / "study" / "tests.csv").exists()


def test_a_folder_that_holds_a_study_is_refused_and_says_what_to_do(tmp_path):
    results = f"results: {tmp_path / 'study'}\n"
    for options, code, *words in (
        ((), 0, results),
        ((), 2, "`--resume`", "`--force`"),
        (("--resume", "--seed", 1), 2, "seed: 7 there, 1 now"),
        (("--force", "--seed", 1), 0, results),
        (("--resume", "--seed", 1, "--quiet"), 0, ""),
    ):
        done = program("simulate", *OPTIONS, "--output", tmp_path / "study", *options)
        assert done.returncode == code
        assert done.stderr == words[0] if code == 0 else all(word in done.stderr for word in words)


def test_workers_of_our_own_take_no_port_that_others_want_and_leave_ctrl_c_to_us():
    distributed = pytest.importorskip("distributed")
    with _cluster("dask", 1):
        client = distributed.get_client()
        link = client.dashboard_link
        ignored = client.run(lambda: signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
    assert link.startswith("http://127.0.0.1:")
    # The port at which everybody's dashboard is by default.
    assert ":8787/" not in link
    assert list(ignored.values()) == [True]
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
