"""Work in blocks, on threads, with results in order: their number never changes a bit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


def blocks(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """The bounds of blocks of at most `size`."""
    begins = range(first, last, size)
    return list(zip(begins, (*begins[1:], last), strict=False))


def in_order(
    function: Callable[[Item], Done], items: Iterable[Item], *, n_jobs: int
) -> Iterator[Done]:
    """function(item) of every item, on threads; results come in the order of the items."""
    if n_jobs == 1:
        yield from map(function, items)
        return
    # No further ahead than keeps the threads busy: what waits takes memory, and what was begun must
    # end before an interruption can.
    begun: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                if len(begun) == 2 * n_jobs:
                    yield begun.popleft().result()
                begun.append(pool.submit(function, item))
            while begun:
                yield begun.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
