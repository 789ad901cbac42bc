"""Does what a file declares fit into memory, before a byte of it is read?"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hullcal.files.source import Source

__all__ = ["available", "check_fits"]


#: Where the system says what a container may take and has taken, by version of its control groups.
_CONTAINERS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available() -> int | None:
    """Give the bytes a program may still take; None where the system does not tell."""
    told = [left for left in (_of_machine(), _of_container()) if left is not None]
    return min(told, default=None)


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError, KeyError):
        return _numbers("/proc/meminfo")["MemAvailable:"] * 1024
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_container() -> int | None:
    for folder, limit, used, cached in _CONTAINERS:
        # Without a limit its file says "max", which is no number.
        with suppress(OSError, ValueError, IndexError, KeyError):
            most = int(Path(folder, limit).read_text(encoding="ascii"))
            taken = int(Path(folder, used).read_text(encoding="ascii"))
            # Files that were read and may be forgotten count as taken, and are not.
            return max(0, most - taken + _numbers(f"{folder}/memory.stat")[cached])
    return None


def _numbers(path: str) -> dict[str, int]:
    """Names and numbers, a line each."""
    lines = Path(path).read_text(encoding="ascii").splitlines()
    return {words[0]: int(words[1]) for words in map(str.split, lines)}


def check_fits(source: Source, needed: int) -> None:
    """Refuse a file whose declared contents are larger than the memory that is left.

    Parameters
    ----------
    source : Source
    needed : int
        Bytes, as the file declares them.
    """
    left = available()
    if left is None or needed <= left:
        return
    came = f"{needed / 1e9:.3g} GB needed and {left / 1e9:.3g} GB available"
    repair = "Save the predictions as one `.npy` array, which is mapped and not read."
    raise source.refuse("must fit into memory", came, repair)
