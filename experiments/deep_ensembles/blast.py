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
from pathlib import Path
from typing import Any

import numpy as np

from hullcal import InvalidInputError

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


def nucleotides(base: Path) -> Iterator[tuple[str, str]]:
    """Titles and sequences of a database `base` with `.nin`, `.nsq`, `.nhr`; N for ambiguous letters."""
    n_residues, titles, sequences, ambiguities = _read_index(base, "nin", kind=0)
    headers, packed = (base.with_name(f"{base.name}.{end}").read_bytes() for end in ("nhr", "nsq"))
    codes = np.frombuffer(packed, np.uint8)
    starts, stops, ends = sequences[:-1], ambiguities[:-1], sequences[1:]
    lengths = 4 * (stops - starts - 1) + (codes[stops - 1] & 3)
    _check_residues(base, n_residues, int(lengths.sum()))
    for i, (start, stop, end) in enumerate(zip(starts, stops, ends, strict=True)):
        letters = bytearray(_UNPACKED[codes[start:stop]].tobytes()[: lengths[i]])
        for first, last in _segments(packed[stop:end]):
            letters[first:last] = b"N" * (last - first)
        yield _title(headers[titles[i] : titles[i + 1]]), letters.decode()


def proteins(base: Path) -> Iterator[tuple[str, str]]:
    """Titles and sequences of a database `base` with `.pin`, `.psq`, `.phr`, in NCBIstdaa's letters."""
    n_residues, titles, sequences = _read_index(base, "pin", kind=1)
    headers, codes = (base.with_name(f"{base.name}.{end}").read_bytes() for end in ("phr", "psq"))
    starts, ends = sequences[:-1], sequences[1:] - 1
    _check_residues(base, n_residues, int((ends - starts).sum()))
    letters = codes.translate(_PROTEIN_LETTERS).decode()
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        yield _title(headers[titles[i] : titles[i + 1]]), letters[start:end]


def _read_index(base: Path, ending: str, kind: int) -> tuple[Any, ...]:
    """The number of residues, and offsets of headers, of sequences and, in nucleotides, of segments."""
    data = base.with_name(f"{base.name}.{ending}").read_bytes()
    if struct.unpack_from(">ii", data) != (_VERSION, kind):
        raise InvalidInputError(
            f"`{base}` must be a BLAST database of version {_VERSION} of "
            f"{'proteins' if kind else 'nucleotides'}; got another version or kind. Fetch it again."
        )
    at = 8
    for _ in ("title", "date"):
        (length,) = struct.unpack_from(">I", data, at)
        at += 4 + length
    (count,) = struct.unpack_from(">I", data, at)
    (n_residues,) = struct.unpack_from("<Q", data, at + 4)
    at += 16  # the length of the longest sequence stands there as well
    n_tables = 2 if kind else 3
    tables = np.frombuffer(data, ">u4", n_tables * (count + 1), at).astype(np.int64)
    return n_residues, *tables.reshape(n_tables, count + 1)


def _check_residues(base: Path, n_residues: int, found: int) -> None:
    if found != n_residues:
        raise InvalidInputError(
            f"`{base}` must hold the {n_residues} residues that its index tells of; got {found}. "
            "Fetch the database again."
        )


def _title(header: bytes) -> str:
    """The first title of a header; it may have none."""
    at = len(_HEADER)
    if not header.startswith(_HEADER + _TITLE):
        return ""
    at += len(_TITLE)
    length, at = int.from_bytes(header[at : at + 1]), at + 1
    if length >= 0x80:  # the length of the length, in the lowest seven bits
        width = length & 0x7F
        length, at = int.from_bytes(header[at : at + width]), at + width
    return header[at : at + length].decode("latin-1")


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Where every ambiguous stretch starts and stops."""
    if not data:
        return
    count, *words = struct.unpack(f">{len(data) // 4}I", data)
    if count & _NEW_STYLE:
        segments = [(words[i + 1], (words[i] >> 16 & 0xFFF) + 1) for i in range(0, len(words), 2)]
    else:
        segments = [(word & 0xFFFFFF, (word >> 24 & 0xF) + 1) for word in words]
    for start, size in segments:
        yield start, start + size
