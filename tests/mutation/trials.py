"""Trials of mutants: the tests of each run in a fork of a process that has imported all but hullcal."""

import importlib
import os
import signal
import sys

import pytest

from mutation import subjects

#: Without numbers that a run could hand on to the next, and always with the same examples.
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-n0", "--hypothesis-seed=0", "--no-header"]
#: What a fork need not import once more.
ALREADY = ("numba", "scipy.optimize", "scipy.stats", "joblib", "matplotlib.figure")


class Chosen:
    """A pytest plugin that keeps the tests of one file, in the order in which they are run."""

    def __init__(self, file):
        self.file = file

    def pytest_collection_modifyitems(self, items):
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in subjects.of(self.file, by_name)]


def try_all(root, mutants, report):
    """Report of each mutant whether its tests kill it."""
    paths = [str(root / each) for each in ("src", ".", "tests")]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.chdir(root)
    for name in ALREADY:
        importlib.import_module(name)
    limits = {}
    for file in sorted({mutant.file for mutant in mutants}):
        code, seconds = _tested(root, file, 0)
        if code:  # otherwise every mutant would seem to be killed
            raise SystemExit(f"unmutated, the tests of {file} do not pass")
        limits[file] = subjects.LIMIT + 5 * seconds
    for mutant in mutants:
        path = root / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(source), encoding="utf-8")
        try:
            code, _ = _tested(root, mutant.file, limits[mutant.file])
        finally:
            path.write_text(source, encoding="utf-8")
        report(mutant, killed=code != 0)


def _tested(root, file, limit):
    """How the tests of a file end (by a signal: negative), and their seconds of processor time."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.setitimer(signal.ITIMER_PROF, limit)  # whose signal ends the process; 0 is no limit
        code = 3
        try:
            tests = subjects.files_of_tests(file)
            code = int(pytest.main([*OPTIONS, f"--rootdir={root}", *tests], plugins=[Chosen(file)]))
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
