"""Data and weights of others: which files, whence, and are they the very ones we mean?

Nothing from a download is ever run or imported; every file is known by its sha256.
"""

from __future__ import annotations

from experiments.deep_ensembles.downloads.errors import DownloadError
from experiments.deep_ensembles.downloads.fetching import fetch
from experiments.deep_ensembles.downloads.folders import cache_folder
from experiments.deep_ensembles.downloads.pickles import restricted_pickle
from experiments.deep_ensembles.downloads.sources import SOURCES, Source
from experiments.deep_ensembles.downloads.unpacking import unpacked

__all__ = [
    "unpacked",
    "fetch",
    "restricted_pickle",
    "cache_folder",
    "Source",
    "SOURCES",
    "DownloadError",
]
