"""`hullcal test` on a cluster, and with a journal: what it prints, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

FAST = ("-D", "59", "--seed", "1", "--null", "refit", "--format", "json")
HERE = [sys.executable, "-m", "hullcal", "test"]


def run(*arguments, **environment):
    return subprocess.run(
        [*HERE, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same predictions as one file and as shards."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), size=(300, 3)), rng.integers(0, 3, 300)
    np.savez(folder / "all.npz", probs=probs, labels=labels)
    shards = folder / "shards"
    shards.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(300), 4)):
        np.save(shards / f"probs-{i}.npy", probs[rows])
        np.save(shards / f"labels-{i}.npy", labels[rows])
    np.save(folder / "y.npy", labels)
    return folder


def test_a_folder_of_shards_is_tested_by_workers_as_the_file_is_here(folder):
    pytest.importorskip("distributed")
    here = run(folder / "all.npz", *FAST)
    there = run(folder / "shards", *FAST, "--engine", "dask", "--workers", 2, "--quiet")
    assert here.returncode == there.returncode == 0, there.stderr
    one, other = json.loads(here.stdout), json.loads(there.stdout)
    one, other = one["results"][0], other["results"][0]
    assert one["pvalue"] == other["pvalue"]
    np.testing.assert_allclose(one["statistic"], other["statistic"], atol=1e-12)
    np.testing.assert_allclose(one["null_distribution"], other["null_distribution"], atol=1e-12)
    assert there.stderr == ""


def test_labels_can_come_from_a_file_of_their_own(folder):
    pytest.importorskip("distributed")
    done = run(
        folder / "shards", *FAST, "--engine", "dask", "--workers", 1, "--labels", folder / "y.npy"
    )
    assert done.returncode == 0, done.stderr


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
    done = subprocess.run(
        [*HERE, str(folder / "shards"), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_address_where_nobody_listens(folder):
    pytest.importorskip("distributed")
    done = run(folder / "shards", *FAST, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode in (2, 4)
    assert "tcp://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_stopped_names_its_journal_and_goes_on(folder, tmp_path, number):
    journal = tmp_path / "journal"
    command = (folder / "all.npz", *FAST[2:], "-D", "20000", "--jobs", "1")
    process = subprocess.Popen(
        [*HERE, *map(str, command), "--journal", str(journal), "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell in the background may have told its children to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    file = journal / "ece_conf-refit" / "journal.jsonl"
    while process.poll() is None and (not file.exists() or len(file.read_bytes().splitlines()) < 4):
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else 4), errors
    assert f"{journal}; continue with --resume" in errors
    refused = run(*command, "--journal", journal)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    resumed = run(*command, "--journal", journal, "--resume")
    whole = run(*command)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout) == json.loads(whole.stdout)


def test_shards_may_name_classes_by_digits_or_by_numbers(tmp_path):
    pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(2), size=(80, 2)), rng.integers(0, 2, 80)
    found = []
    for kind, given in (("numbers", labels), ("text", labels.astype(str))):
        (tmp_path / kind).mkdir()
        np.savez(tmp_path / kind / "a.npz", probs=probs, labels=given)
        options = ("--engine", "dask", "--workers", 1, "--classes", "1,0", "--quiet")
        done = run(tmp_path / kind, *FAST, *options)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["results"][0]["statistic"])
    np.savez(tmp_path / "here.npz", probs=probs, labels=1 - labels)
    here = json.loads(run(tmp_path / "here.npz", *FAST).stdout)["results"][0]["statistic"]
    np.testing.assert_allclose(found, here, atol=1e-12)
