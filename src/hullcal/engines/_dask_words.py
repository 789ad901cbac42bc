"""What was said of some rows, said of all: places and totals of messages that chunks give."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Where the messages of `hullcal._validation` name a row.
_PLACE = re.compile(r"(\(n, m(?:, k)?\) = \(|\bat index |\brow )(\d+)")
_CLIPPED = re.compile(r"(\d+) values? (?:was|were) (outside .* and clipped)")
_RENORMALISED = re.compile(r"(\d+) of \d+ rows were renormalised \(largest deviation (\S+)\)")
_LEFT = re.compile(r"(row sums were left .* \(largest deviation )(\S+)\)")


def placed(message: str, first: int, n_rows: int, n_samples: int) -> str:
    """A message about a chunk that begins at row `first`, with rows counted from the beginning."""
    if n_rows == n_samples:
        return message
    moved = _PLACE.sub(lambda found: f"{found[1]}{int(found[2]) + first}", message)
    return f"{moved} (Found among the rows {first} to {first + n_rows - 1}.)"


def merged(notes: Sequence[tuple[str, ...]], n_rows: int) -> tuple[str, ...]:
    """The notes of all chunks as those of one array with `n_rows` rows of all members."""
    said = [note for some in notes for note in some]
    clipped = [found for note in said if (found := _CLIPPED.fullmatch(note))]
    renormalised = [found for note in said if (found := _RENORMALISED.fullmatch(note))]
    left = [found for note in said if (found := _LEFT.fullmatch(note))]
    together = []
    if clipped:
        count = sum(int(found[1]) for found in clipped)
        together.append(f"{count} value{' was' if count == 1 else 's were'} {clipped[0][2]}")
    if renormalised:
        count = sum(int(found[1]) for found in renormalised)
        worst = max(float(found[2]) for found in renormalised)
        together.append(
            f"{count} of {n_rows} rows were renormalised (largest deviation {worst:.1g})"
        )
    if left:
        worst = max(float(found[2]) for found in left)
        together.append(f"{left[0][1]}{worst:.1g})")
    # Anything else is worth a word only if it is true of every row.
    others = [note for note in notes[0] if not any(p.fullmatch(note) for p in _COUNTING)]
    return (*together, *(note for note in others if all(note in some for some in notes)))


_COUNTING = (_CLIPPED, _RENORMALISED, _LEFT)
