"""The archive of files inside a .deb, which is an `ar` container of three parts."""

from __future__ import annotations

from typing import IO, cast

from experiments.deep_ensembles.downloads.errors import DownloadError

__all__ = ["data_archive"]

_MAGIC = b"!<arch>\n"
_HEADER = 60  # name 16, date 12, owner 6, group 6, mode 8, size 10, end 2
_READABLE = ("data.tar", "data.tar.gz", "data.tar.xz")


def data_archive(file: IO[bytes]) -> IO[bytes]:
    """The part named data.tar…, packed as it is, to be read once from its beginning."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise DownloadError("a Debian package must begin with `!<arch>`; this one does not.")
    while header := file.read(_HEADER):
        if len(header) < _HEADER or header[58:] != b"`\n" or not header[48:58].strip().isdigit():
            raise DownloadError("the Debian package has a part without a proper header.")
        name = header[:16].decode("ascii", "replace").rstrip().removesuffix("/")
        size = int(header[48:58])
        if name.startswith("data.tar"):
            if name not in _READABLE:
                raise DownloadError(f"{name} is packed in a way that Python's library cannot read.")
            return cast(IO[bytes], _Section(file, size))
        file.seek(size + size % 2, 1)  # parts begin at even places
    raise DownloadError("the Debian package has no part named data.tar.")


class _Section:
    """The next so many bytes of a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(block)
        return block
