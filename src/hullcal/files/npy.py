"""What does an `.npy` array declare, before anything of it is read or unpickled?"""

from __future__ import annotations

from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from hullcal.files.source import Source

__all__ = ["Header", "read_header"]

#: How a pickle begins; `ndarray.dump` writes one under any name.
_PICKLE = b"\x80"
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """Shape, whether columns come first, and type."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def read_header(source: Source, file: IO[bytes], name: str | None = None) -> Header:
    """Read it from the start of an array, which is left at its numbers; Python objects are refused."""
    start = file.tell()
    if file.read(1) == _PICKLE:
        raise source.python_objects()
    file.seek(start)
    version = npy.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"version {version} of the npy format, which holds records")
    header = Header(*_READERS[version](file))
    if header.dtype.hasobject:
        raise source.python_objects(name)
    return header
