"""Which codecs of Zarr may decode a file, and which ones a file asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["KNOWN", "names_of"]

# The file chooses who decodes it, and numcodecs offers to unpickle: only these may.
# fmt: off
KNOWN = frozenset({
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
    "quantize", "sharding_indexed", "shuffle", "transpose", "vlen-utf8", "zlib", "zstd",
})
# fmt: on


def names_of(codecs: Any) -> Iterator[str]:
    """Name every codec in a piece of metadata, also those inside shards."""
    if isinstance(codecs, dict):
        name = codecs.get("name", codecs.get("id"))
        if name is not None:
            yield str(name).removeprefix("numcodecs.")
        for key in ("configuration", "codecs", "index_codecs"):
            yield from names_of(codecs.get(key))
    elif isinstance(codecs, list | tuple):
        for each in codecs:
            yield from names_of(each)
