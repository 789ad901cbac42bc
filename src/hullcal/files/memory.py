"""Does what a file declares fit into memory, before a byte of it is read?"""

from __future__ import annotations

import os

from hullcal.files.source import Source

__all__ = ["available", "check_fits"]


def available() -> int | None:
    """Give the bytes a program may still take; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


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
