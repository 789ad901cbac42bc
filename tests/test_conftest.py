"""A test whose process stood still or died is tried once more, and fails if that happens again."""

import subprocess
import sys
from pathlib import Path

CASES = """
import os, pathlib, time

def ever_before(name):
    seen = pathlib.Path(__file__).with_name(name).exists()
    pathlib.Path(__file__).with_name(name).touch()
    return seen

def test_good():
    pass

def test_stands_still_once():
    if not ever_before("stood"):
        time.sleep(600)

def test_dies_always():
    os._exit(7)

def test_dies_once_and_is_wrong():
    if not ever_before("died"):
        os._exit(7)
    assert False
"""


def test_a_process_that_stands_still_or_dies_costs_one_more_try(tmp_path):
    tmp_path.joinpath("test_cases.py").write_text(CASES)
    tmp_path.joinpath("conftest.py").write_text(
        Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    tmp_path.joinpath("pytest.ini").write_text(
        "[pytest]\nfaulthandler_timeout = 5\nfaulthandler_exit_on_timeout = true\n"
    )
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "test_cases.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 2 passed, 3 rerun" in done.stdout
    assert "died once: test_cases.py::test_stands_still_once" in done.stdout
    assert "FAILED test_cases.py::test_dies_always" in done.stdout
    assert "FAILED test_cases.py::test_dies_once_and_is_wrong" in done.stdout
    # Where it stood still.
    assert "Timeout" in done.stderr
    assert "in test_stands_still_once" in done.stderr
