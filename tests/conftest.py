"""What becomes of a test whose process died or stood still: one more try, which is counted as such.

`make test` ends a process that spends ten minutes on one test and prints where it stood. A test that
ends its process every time still fails.
"""

import pytest


class _Crashes:
    def __init__(self):
        self._tried = set()

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_handlecrashitem(self, crashitem, report, sched):
        if crashitem not in self._tried:
            self._tried.add(crashitem)
            sched.mark_test_pending(crashitem)
            report.outcome = "rerun"


def pytest_configure(config):
    config.pluginmanager.register(_Crashes())


def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
    return None


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"died once: {report.nodeid}")
        terminalreporter.line(str(report.longrepr))
