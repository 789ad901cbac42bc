"""How long does a call take when nothing gets in its way?"""

import time
from collections.abc import Callable
from typing import Any


def seconds(call: Callable[[], Any]) -> float:
    """Time of one call, in seconds of processor time.

    All that is timed here computes on one thread and waits for nothing, so this is the wall-clock
    time of an idle machine; on a busy one the wall clock would lengthen a call of seconds more than
    the shortest of many calls of milliseconds, and so flatter the faster side.
    """
    start = time.process_time()
    call()
    return time.process_time() - start


def best_seconds(call: Callable[[], Any], *, at_least: float = 0.5, fewest: int = 3) -> float:
    """Shortest of as many calls as fill `at_least` seconds, `fewest` or more.

    Whatever else a machine does can only lengthen a call, so the shortest says most about the call.
    The caller has made one call before, so that nothing is compiled here.
    """
    times: list[float] = []
    while len(times) < fewest or sum(times) < at_least:
        times.append(seconds(call))
    return min(times)
