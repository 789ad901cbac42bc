"""How is a damaged Blosc frame kept from crashing the process that decodes it?"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

__all__ = ["check_frame", "guard_blosc"]

#: Bytes of a frame's header; its last three numbers are the sizes of data, block and frame.
_HEADER = 16

_lock = threading.Lock()
#: Tells our method from the one that numcodecs made.
_MARK = "checks_frames"


def check_frame(frame: Any) -> None:
    """Refuse a frame that says it is longer than it is: the C code believes it, and reads on."""
    data = np.frombuffer(frame, dtype=np.uint8)
    if data.size < _HEADER:
        raise ValueError(f"a Blosc frame of {data.size} bytes, which is less than its header")
    size = int(data[12:_HEADER].view("<u4")[0])
    if not _HEADER <= size <= data.size:
        raise ValueError(f"a Blosc frame of {data.size} bytes that claims {size}")


def guard_blosc() -> None:
    """Check every Blosc frame that is decoded from now on, whoever asks.

    Zarr decodes deep inside, through numcodecs, on threads of its own, so that the check has to be put
    in there. It is never taken out: where one chunk is refused, zarr goes on decoding the others.
    """
    from numcodecs.blosc import Blosc

    with _lock:
        if not hasattr(Blosc.decode, _MARK):
            Blosc.decode = _checked(Blosc.decode)


def _checked(decode: Any) -> Any:
    @functools.wraps(decode)
    def checked(self: Any, buf: Any, out: Any = None) -> Any:
        check_frame(buf)
        return decode(self, buf, out)

    setattr(checked, _MARK, True)
    return checked
