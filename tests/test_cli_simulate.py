"""`hullcal simulate` as a user starts it, and whatever can happen to it while it runs."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from hullcal import simulation
from hullcal.cli import run as program
from hullcal.cli.simulate import _cluster

SMALL = (
    "-N",
    20,
    "-M",
    3,
    "-K",
    3,
    "-D",
    19,
    "-R",
    6,
    "--minimizer",
    "pairwise:8",
    "--alpha",
    0.1,
    "--alpha",
    0.5,
)
FILES = ("tests.csv", "tests.parquet", "rates.csv", "manifest.json")
#: Sixteen blocks of a fraction of a second each, so that there is a middle to be hit in.
LONG = ("--scenario", "calibrated", "-m", "ece_conf", "-N", 60, "-R", 1600)


#: Studies of some size are run compiled, whatever the other tests are.
COMPILED = os.environ | {"NUMBA_DISABLE_JIT": "0"}


def command(*arguments):
    return [sys.executable, "-m", "hullcal", "simulate", *map(str, arguments)]


def run(*arguments):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=300, env=COMPILED
    )


def inside(*arguments):
    """The program's exit code, in this process."""
    with pytest.raises(SystemExit) as end:
        program(["simulate", *map(str, arguments)])
    return end.value.code


def start(said, *arguments, program=None):
    # A session of its own, as a terminal gives it, so that Ctrl-C can reach the workers as well; and
    # no pipe, which workers that outlive their parent would hold open.
    with open(said, "w") as file:
        return subprocess.Popen(
            program or command(*arguments),
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=COMPILED,
        )


def lines(folder):
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def wait_for_more(folder, process, before):
    """Wait until a block more is in the journal, and the study is not at its end."""
    end = time.monotonic() + 120
    while lines(folder) <= max(1, before):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"no further block in {folder} for two minutes"
        time.sleep(0.02)


def workers(process):
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "popen_loky" in " ".join(child.cmdline())]


def test_a_study_survives_everything_that_can_happen_to_it(tmp_path):
    whole, broken, said = tmp_path / "whole", tmp_path / "broken", tmp_path / "said"
    assert run(*LONG, "--output", whole).returncode == 0

    def interrupted(do, *options):
        before = lines(broken)
        process = start(said, *LONG, "--output", broken, "--quiet", *options)
        wait_for_more(broken, process, before)
        processes = workers(process)
        do(process)
        code = process.wait(timeout=60)
        _, alive = psutil.wait_procs(processes, timeout=10 if code > 0 else 0)
        for worker in alive:
            worker.kill()
        assert code < 0 or not alive, "only a program that was killed leaves workers behind"
        assert not (broken / "tests.csv").exists(), "there must be a middle to be hit in"
        assert "Traceback" not in said.read_text()
        return code, said.read_text()

    two = ("--jobs", 2)
    interrupted(lambda process: process.kill(), *two)

    left = f"finished blocks are in {broken}; continue with --resume"
    code, words = interrupted(lambda process: process.send_signal(signal.SIGTERM), "--resume")
    assert (code, left in words) == (4, True), words
    code, words = interrupted(
        lambda process: os.killpg(process.pid, signal.SIGINT), "--resume", *two
    )
    assert (code, left in words) == (130, True), words
    code, words = interrupted(lambda process: workers(process)[0].kill(), "--resume", *two)
    assert (code, left in words, "a worker was lost" in words) == (4, True, True), words

    # A disk with room for half a line.
    before = (broken / "journal.jsonl").read_bytes()
    size = len(before) + 100
    arguments = [str(word) for word in ("simulate", *LONG, "--output", broken, "--resume")]
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
        f"from hullcal.cli import run; run({arguments!r})"
    )
    assert start(said, program=[sys.executable, "-c", code]).wait(timeout=60) == 4
    assert f"File too large; {left}" in said.read_text()
    assert (broken / "journal.jsonl").read_bytes() == before

    done = run(*LONG, "--output", broken, "--resume")
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    assert lines(broken) == lines(whole)


@pytest.fixture(scope="module")
def expected():
    grid = simulation.Grid(
        scenario=("S1", "S3"),
        measure=("ece_conf:5", "skce_ul"),
        null=("paper", "refit"),
        **{"n_samples": 20, "n_members": 3, "n_classes": 3, "n_resamples": 19, "n_datasets": 6},
        minimizer="pairwise:8",
        alpha=(0.1, 0.5),
    )
    return simulation.run(grid)


AXES = (
    *("--scenario", "S1", "--scenario", "S3", "-m", "ece_conf:5", "-m", "skce_ul"),
    *("--null", "paper", "--null", "refit", *SMALL),
)


def test_options_make_the_grid_and_json_gives_its_rates(expected):
    done = run(*AXES, "--format", "json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["rates"] == expected.rates()
    assert said["configuration"]["measure"] == ["ece_conf:5", "skce_ul"]


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_grid_comes_from_a_file_and_options_go_first(capsys, tmp_path, expected, ending):
    configuration = expected.grid.configuration() | {"seed": 5}
    path = tmp_path / f"grid.{ending}"
    if ending == "json":
        path.write_text(json.dumps(configuration))
    else:
        path.write_text("".join(f"{key} = {json.dumps(v)}\n" for key, v in configuration.items()))
    output = tmp_path / "study"
    assert inside("--grid", path, "--seed", 0, "--format", "csv", "--output", output) == 0
    said = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [float(row["error"]) for row in rows] == [row["error"] for row in expected.rates()]
    assert (output / "rates.csv").read_text() == said.out
    assert "results:" in said.err


def test_the_manifest_repeats_the_study(tmp_path):
    simulation.run(
        simulation.Grid(
            **{"scenario": "calibrated", "measure": "ece_conf", "n_samples": 20, "n_datasets": 5},
            alpha=0.2,
        ),
        folder=tmp_path / "first",
    )
    again = json.loads((tmp_path / "first" / "manifest.json").read_text())["command"].split()
    done = run(*again[2:], "--output", tmp_path / "second")
    assert done.returncode == 0, done.stderr
    for name in FILES:
        one, two = (tmp_path / folder / name for folder in ("first", "second"))
        assert one.read_bytes() == two.read_bytes()
    assert "Type I" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenario", "S4"), ["`--scenario`", "S1_vertex", "'S4'"]),
        (("-m", "ece_conf:0"), ["`--measure`", "bins"]),
        (("-m", "skce_ul:5"), ["`--measure`", "no bins"]),
        (("--null", "none"), ["`--null`", "recentered"]),
        (("--minimizer", "exact"), ["exact"]),
        (("-R", 0), ["`--datasets`"]),
        (("--strength", 2), ["`--strength`"]),
        (("--backend", "nonsense", "--jobs", 2), ["`--backend`", "nonsense"]),
        (("--resume",), ["`--output`"]),
        (("--jobs", -2), ["`--jobs`"]),
        (("--grid", "missing.toml"), ["`--grid`", "missing.toml"]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_bad_usage_is_said_before_any_work(capsys, tmp_path, arguments, words):
    output = () if arguments == ("--resume",) else ("--output", tmp_path / "study")
    assert inside(*output, *arguments) == 2
    said = capsys.readouterr().err
    for word in words:
        assert word in said
    assert not (tmp_path / "study" / "tests.csv").exists()


def test_a_folder_that_holds_a_study_is_refused_and_says_what_to_do(capsys, tmp_path):
    same = (*SMALL, "-m", "ece_conf", "--scenario", "S1", "--output", tmp_path / "study")
    assert inside(*same) == 0
    assert inside(*same) == 2
    said = capsys.readouterr().err
    assert "`--resume`" in said
    assert "`--force`" in said
    assert inside(*same, "--resume", "--seed", 1) == 2
    assert "seed: 0 there, 1 now" in capsys.readouterr().err
    assert inside(*same, "--force", "--seed", 1) == 0
    assert inside(*same, "--resume", "--seed", 1, "--quiet") == 0
    assert capsys.readouterr().err == f"results: {tmp_path / 'study'}\n"


def test_dask_is_started_where_there_is_no_cluster_yet():
    """In a process of its own, whose every sign of life is looked at."""
    done = run(*AXES, "--format", "json", "--backend", "dask", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["rates"]


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
