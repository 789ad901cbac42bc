"""A plugin for coverage without compilation: what a test has run after ten seconds counts, and it ends.

Compiled loops are invisible to coverage. Uncompiled they are a hundred times slower, and whether a test
passes is not the question then: `make test` has answered it. `pytest -p uncompiled_limit`.
"""

import os
import signal

import pytest

SECONDS = 10


class _TimeIsUp(BaseException):
    """Not an error of the test, so that nothing in it takes it for one."""


def _end(_, frame):
    while frame is not None:
        if f"{os.sep}coverage{os.sep}" in frame.f_code.co_filename:
            # Whoever counts lines holds a lock there, and would never give it back.
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        frame = frame.f_back
    raise _TimeIsUp


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = signal.signal(signal.SIGALRM, _end)
    signal.alarm(SECONDS)
    try:
        return (yield)
    except _TimeIsUp:
        pytest.skip(f"uncompiled it takes more than {SECONDS} seconds")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
