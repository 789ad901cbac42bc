"""Which versions do numbers depend on? Other packages only read, draw and print."""

from __future__ import annotations

import platform
from importlib.metadata import version

import hullcal

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Versions of hullcal, of Python and of what computes, by name."""
    computing = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"hullcal": hullcal.__version__, "python": platform.python_version(), **computing}
