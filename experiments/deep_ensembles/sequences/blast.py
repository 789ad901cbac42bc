"""Which sequences does a BLAST database of version 4 hold?

An index (`.nin`, `.pin`) holds offsets into a file of sequences (`.nsq`, `.psq`) and into one of
headers (`.nhr`, `.phr`). Its integers are big-endian, but for the number of residues.

Nucleotides take two bits each, the first in the highest bits; the two lowest bits of the last byte
tell how many of its nucleotides count. Two bits leave no room for ambiguous letters: these follow
as segments, in words of four bytes. The first word is their number. If its highest bit is not set,
a segment is one word: letter (4 bits), length less one (4), start (24). If it is set, a segment is
two words: letter (4), length less one (12), nothing (16); start (32); and words are counted.
Amino acids take a byte each, and a zero ends a sequence.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal import InvalidInputError

__all__ = ["AMINO_ACID_CODES", "Record", "nucleotides", "proteins"]

#: The letters of NCBIstdaa, in the order of their codes; code 0 separates sequences.
AMINO_ACID_CODES = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"

_VERSION = 4
_NEW_STYLE = 1 << 31
_PROTEIN_LETTERS = AMINO_ACID_CODES.encode() + bytes(256 - len(AMINO_ACID_CODES))
#: The four nucleotides of every byte, as one word of four letters.
_UNPACKED = np.frombuffer(
    bytes(b"ACGT"[byte >> shift & 3] for byte in range(256) for shift in (6, 4, 2, 0)), np.uint32
)
#: A header begins as a sequence of sequences; the title is optional and comes first.
_HEADER, _TITLE = b"\x30\x80\x30\x80", b"\xa0\x80\x1a"


class Record(NamedTuple):
    """One sequence of a database."""

    title: str
    sequence: str


def nucleotides(base: Path) -> Iterator[Record]:
    """Read a nucleotide database; every ambiguous letter comes as N.

    Parameters
    ----------
    base : Path
        The three files without their `.nin`, `.nsq` and `.nhr`.

    Yields
    ------
    Record
        In the order of the database. The files are checked at the call, ambiguities on the way.
    """
    index = _Index.read(_beside(base, "nin"), kind=0)
    headers = _read(_beside(base, "nhr"))
    path = _beside(base, "nsq")
    packed = _read(path)
    index.check(headers=len(headers), sequences=len(packed))
    codes = np.frombuffer(packed, np.uint8)
    starts, stops, ends = index.sequences[:-1], index.ambiguities[:-1], index.sequences[1:]
    if (starts >= stops).any() or (stops > ends).any():
        raise _damaged(index.path, "an ambiguity offset lies outside its sequence")
    lengths = 4 * (stops - starts - 1) + (codes[stops - 1] & 3)
    index.check_residues(int(lengths.sum()))

    def records() -> Iterator[Record]:
        for i, (start, stop, end) in enumerate(zip(starts, stops, ends, strict=True)):
            letters = bytearray(_UNPACKED[codes[start:stop]].tobytes()[: lengths[i]])
            for first, last in _segments(packed[stop:end], len(letters), path):
                letters[first:last] = b"N" * (last - first)
            yield Record(index.title(headers, i), letters.decode())

    return records()


def proteins(base: Path) -> Iterator[Record]:
    """Read a protein database, in the alphabet of NCBIstdaa.

    Parameters
    ----------
    base : Path
        The three files without their `.pin`, `.psq` and `.phr`.

    Yields
    ------
    Record
        In the order of the database. The files are checked at the call.
    """
    index = _Index.read(_beside(base, "pin"), kind=1)
    headers = _read(_beside(base, "phr"))
    path = _beside(base, "psq")
    codes = _read(path)
    index.check(headers=len(headers), sequences=len(codes))
    starts, ends = index.sequences[:-1], index.sequences[1:] - 1
    if (starts > ends).any():
        raise _damaged(index.path, "a sequence ends before it begins")
    index.check_residues(int((ends - starts).sum()))
    numbers = np.frombuffer(codes, np.uint8)
    if numbers.max(initial=0) >= len(AMINO_ACID_CODES):
        raise _damaged(path, f"no amino acid has the code {numbers.max()}")
    if numbers[ends].any():
        raise _damaged(path, "a sequence does not end with a zero")
    letters = codes.translate(_PROTEIN_LETTERS).decode()
    return (
        Record(index.title(headers, i), letters[start:end])
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    )


@dataclass(frozen=True)
class _Index:
    path: Path
    n_residues: int
    headers: NDArray[np.int64]
    sequences: NDArray[np.int64]
    ambiguities: NDArray[np.int64]  # empty for proteins

    @classmethod
    def read(cls, path: Path, kind: int) -> "_Index":
        data = _read(path)
        try:
            version, found = struct.unpack_from(">ii", data)
            if version != _VERSION:
                raise _damaged(path, f"its version is {version}, not {_VERSION}")
            if found != kind:
                names = {0: "nucleotides", 1: "proteins"}
                raise _damaged(path, f"it holds {names.get(found, found)}, not {names[kind]}")
            at = 8
            for _ in ("title", "date"):
                (length,) = struct.unpack_from(">I", data, at)
                at += 4 + length
            (count,) = struct.unpack_from(">I", data, at)
            (n_residues,) = struct.unpack_from("<Q", data, at + 4)
            at += 16  # the length of the longest sequence stands there as well
            n_tables = 3 if kind == 0 else 2
            tables = np.frombuffer(data, ">u4", n_tables * (count + 1), at)
        except (struct.error, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise _damaged(path, f"{len(data)} bytes are too few") from error
        offsets = tables.astype(np.int64).reshape(n_tables, count + 1)
        empty = np.empty(0, np.int64)
        return cls(path, n_residues, offsets[0], offsets[1], offsets[2] if kind == 0 else empty)

    def check(self, **sizes: int) -> None:
        """Compare the offsets with the sizes of the files they point into."""
        for name, size in sizes.items():
            offsets = getattr(self, name)
            if (np.diff(offsets) < 0).any():
                raise _damaged(self.path, f"its offsets of {name} do not ascend")
            if offsets[-1] > size:
                came = f"the {name} end at byte {offsets[-1]}, but their file has {size}"
                raise _damaged(self.path, came)

    def check_residues(self, found: int) -> None:
        """Compare the number of residues with what the index says."""
        if found != self.n_residues:
            raise _damaged(self.path, f"it tells of {self.n_residues} residues, there are {found}")

    def title(self, headers: bytes, i: int) -> str:
        """Read the first title of the i-th header; it may have none."""
        header = headers[self.headers[i] : self.headers[i + 1]]
        if not header.startswith(_HEADER):
            raise _damaged(self.path, f"header {i} is not a list of titles")
        at = len(_HEADER)
        if not header.startswith(_TITLE, at):
            return ""
        at += len(_TITLE)
        length, at = int.from_bytes(header[at : at + 1]), at + 1
        if length >= 0x80:  # the length of the length, in the lowest seven bits
            width = length & 0x7F
            length, at = int.from_bytes(header[at : at + width]), at + width
        if at + length > len(header):
            raise _damaged(self.path, f"the title of header {i} is longer than the header")
        return header[at : at + length].decode("latin-1")


def _segments(data: bytes, length: int, path: Path) -> Iterator[tuple[int, int]]:
    """Give where every ambiguous stretch starts and stops."""
    if not data:
        return
    if len(data) % 4:
        raise _damaged(path, "ambiguities do not come in words of four bytes")
    count, *words = struct.unpack(f">{len(data) // 4}I", data)
    new = bool(count & _NEW_STYLE)
    count &= ~_NEW_STYLE
    if count != len(words) or (new and count % 2):
        raise _damaged(path, f"{count} words of ambiguities are told of, {len(words)} are there")
    if new:
        segments = [(words[i + 1], (words[i] >> 16 & 0xFFF) + 1) for i in range(0, count, 2)]
    else:
        segments = [(word & 0xFFFFFF, (word >> 24 & 0xF) + 1) for word in words]
    for start, size in segments:
        if start + size > length:
            raise _damaged(path, f"an ambiguity ends at {start + size} of {length} nucleotides")
        yield start, start + size


def _beside(base: Path, ending: str) -> Path:
    return base.with_name(f"{base.name}.{ending}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({error.strerror})") from error


def _damaged(path: Path, came: str) -> InvalidInputError:
    return InvalidInputError(
        f"`{path}` must belong to a BLAST database of version 4; {came}. Fetch the database again, "
        f"or build it with `makeblastdb -blastdb_version 4`."
    )
