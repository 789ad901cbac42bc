"""How are `.safetensors` files read?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.source import Source
from hullcal.io.arrays import Contents, Stored

__all__ = ["open_safetensors"]

_ITEMSIZES = {"F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1}
_ITEMSIZES |= {"U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}


@contextmanager
def open_safetensors(source: Source) -> Iterator[Contents]:
    """List the arrays of a file; `classes` and `members` are JSON lists in its metadata."""
    safetensors = source.needs("safetensors")
    with safetensors.safe_open(source.path, framework="np") as file:
        written = file.metadata() or {}
        tensors = list(file.keys())
        names = {key: written[key] for key in ("classes", "members") if key in written}

        def look(name: str) -> Stored:
            if name in tensors:
                return _look(source, file, name)
            return Stored(0, lambda: _names(source, name, names[name]))

        yield Contents([*tensors, *names], look)


def _look(source: Source, file: Any, name: str) -> Stored:
    part = file.get_slice(name)
    itemsize = _ITEMSIZES.get(part.get_dtype())
    if itemsize is None:
        came = f"{name!r} of type {part.get_dtype()}"
        repair = "Normalise in float32 and save that."
        raise source.refuse("must hold numbers that numpy knows", came, repair)
    return Stored(Stored.bytes_of(part.get_shape(), itemsize), lambda: file.get_tensor(name))


def _names(source: Source, key: str, text: str) -> NDArray[Any]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        came = f"{text[:60]!r}"
        raise source.refuse(f"must hold {key!r} as a JSON list of strings", came, "Write one.")
    return np.array(names, dtype=np.str_)
