"""Trials of mutants: each in a process of its own, forked where all tests are collected already.

A mutant inside a function replaces the code of that function, wherever it is referred to; one outside
of all functions (a constant, a default, a decorator) is written to the copy and imported afresh.
"""

import gc
import inspect
import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from mutation import subjects

#: Without numbers that a run could hand on to the next, and always with the same examples.
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-n0", "--hypothesis-seed=0"]


def try_all(root, mutants, report):
    """Report of each mutant whether its tests kill it."""
    paths = [str(root / each) for each in ("src", ".", "tests")]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.chdir(root)
    options = [*OPTIONS, f"--rootdir={root}", "--no-header", *subjects.files_of_tests()]
    code = pytest.main(options, plugins=[Trials(root, mutants, report)])
    if code not in (0, 1):
        raise SystemExit(f"pytest ended with {code}")


class Trials:
    """A pytest plugin that runs the tests of each mutant instead of all tests once."""

    def __init__(self, root, mutants, report):
        self.root = Path(root)
        self.mutants = mutants
        self.report = report
        self.failed = False

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        self.functions = _functions(self.root)
        wanted = sorted({mutant.file for mutant in self.mutants})
        self.tests = {file: subjects.of(file, self.items) for file in wanted}
        # Dots of thousands of tests would hide what is printed here.
        session.config.pluginmanager.unregister(name="terminalreporter")
        self._unmutated()
        for mutant in self.mutants:
            self.report(mutant, self._tried(mutant))
        return True

    def _unmutated(self):
        """Seconds of processor time of every test; all have to pass, forked and afresh.

        Otherwise every mutant would seem to be killed.
        """
        self.seconds = {}
        place = self.root / "seconds.json"
        for file, names in self.tests.items():
            if _forked(lambda names=names: self._run(names, None, place)) != 0:
                last = [*json.loads(place.read_text())][-1]
                raise pytest.UsageError(f"unmutated, {last} does not pass among those of {file}")
            self.seconds |= json.loads(place.read_text())
        path = self.root / file
        if self._afresh(path, path.read_text(encoding="utf-8"), [*self.seconds]):
            raise pytest.UsageError("unmutated, the tests do not pass afresh")

    def _run(self, names, seconds, place=None):
        """0 if all pass; the first failure ends it."""
        taken = {}
        for i, name in enumerate(names):
            following = self.items[names[i + 1]] if i + 1 < len(names) else None
            if seconds is not None:
                # The signal ends the process.
                signal.setitimer(signal.ITIMER_PROF, subjects.LIMIT + 5 * seconds[name])
            started = time.process_time()
            item = self.items[name]
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            taken[name] = time.process_time() - started
            if place is not None:
                place.write_text(json.dumps(taken))
            if self.failed:
                return 1
        return 0

    def _tried(self, mutant):
        """Whether a test fails."""
        path = self.root / mutant.file
        source = path.read_text(encoding="utf-8")
        changed = mutant.applied(source)
        try:
            swaps = _swaps(compile(source, path, "exec"), compile(changed, path, "exec"))
        except SyntaxError:
            return True
        names = self.tests[mutant.file]
        pairs = self._pairs(path, swaps)
        if pairs is None:
            return self._afresh(path, changed, names)

        def swapped():
            for function, code in pairs:
                function.__code__ = code
            return self._run(names, self.seconds)

        return _forked(swapped) != 0

    def _pairs(self, path, swaps):
        """Functions with their new codes; None if these are not all, or cannot take them."""
        if swaps is None:
            return None
        pairs = []
        for key, code in swaps.items():
            functions = self.functions.get((str(path), *key), [])
            closed = {len(function.__code__.co_freevars) for function in functions}
            if closed != {len(code.co_freevars)}:
                return None
            pairs += [(function, code) for function in functions]
        return pairs

    def _afresh(self, path, changed, names):
        """With the mutated file in place of its own, and nothing imported before."""
        source = path.read_text(encoding="utf-8")
        listed = self.root / "names.txt"
        listed.write_text("\n".join(names))
        limit = int(30 + 5 * sum(self.seconds[name] for name in names))
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"@{listed}"]
        path.write_text(changed, encoding="utf-8")
        try:
            done = subprocess.run(
                ["sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", *command],
                cwd=self.root,
                capture_output=True,
                check=False,
            )
        finally:
            path.write_text(source, encoding="utf-8")
        return done.returncode != 0


def _forked(work):
    """Exit code of a child that does this work; that of a signal is negative."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 3
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _functions(root):
    """All functions that were read from the copy, by file, name and line."""
    found = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType):
            code = each.__code__
            if code.co_filename.startswith(str(root)):
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                found.setdefault(key, []).append(each)
    return found


def _swaps(before, after):
    """Codes of the functions that differ, by name and line; None if something else differs too."""
    if _bare(before) != _bare(after):
        return None
    swaps = {}
    for old, new in zip(_nested(before), _nested(after), strict=True):
        if _is_function(old):
            if old != new:
                swaps[new.co_qualname, new.co_firstlineno] = new
        else:
            inner = _swaps(old, new)
            if inner is None:
                return None
            swaps |= inner
    return swaps


def _nested(code):
    return [each for each in code.co_consts if isinstance(each, types.CodeType)]


def _is_function(code):
    """Whether the code is that of a function that outlives the import."""
    lives_on = not code.co_name.startswith("<") or code.co_name == "<lambda>"
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and lives_on


def _bare(code):
    """What a module or the body of a class does by itself."""
    own = [None if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts]
    return code.co_code, code.co_names, own
