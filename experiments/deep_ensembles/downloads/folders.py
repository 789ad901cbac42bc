"""Where downloads are kept, so that they are made once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder", "package_folder", "unpacked_folder"]


def cache_folder() -> Path:
    """The user's cache of hullcal; the environment variable HULLCAL_CACHE puts it elsewhere."""
    chosen = os.environ.get("HULLCAL_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "hullcal" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hullcal"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache") / "hullcal"


def package_folder(name: str) -> Path:
    """Where the package of a source is kept, and where it can be put by hand."""
    return cache_folder() / "packages" / name


def unpacked_folder(name: str) -> Path:
    """Where the wanted members of a source lie, side by side."""
    return cache_folder() / "unpacked" / name
