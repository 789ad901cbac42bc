"""The program as a user starts it."""

import os
import subprocess
import sys

import pytest


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "hullcal", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def test_help_names_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "calibrated" in done.stdout


def test_an_unknown_command_is_bad_usage():
    done = run("teest")
    assert done.returncode == 2
    assert "teest" in done.stderr


def test_the_demo_answers_both_questions_on_real_data():
    pytest.importorskip("sklearn")
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "899 held-out handwritten digits" in done.stdout
    assert "contains a calibrated classifier" in done.stdout
    assert "contains the truth" in done.stdout
    assert done.stdout.count("Verdict") == 2
    assert done.stderr == ""


def test_the_demo_shows_progress_on_stderr_only():
    pytest.importorskip("sklearn")
    done = run("demo", TTY_COMPATIBLE="1")
    assert "resamples" in done.stderr
    assert "━" not in done.stdout


def test_the_list_of_measures_is_complete():
    import hullcal as hc

    words = run("measures").stdout.replace(",", " ").split()
    for name in (*hc.measures.available(), *hc.minimizers.available(), *hc.nulls.available()):
        assert name in words
