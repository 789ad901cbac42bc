"""Finished replicates survive: a test that was stopped goes on where it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.io.journal import Journal, Words, check_folder, columns_of, configuration_of

Floats = NDArray[np.float64]
Block = Callable[[int, int], Floats]

_DATA = "data"
_WORDS = Words("journal", "journal", "delete this one")


class ResamplingJournal:
    """The journal of one test: null values and evaluations of finished blocks, in a folder of its own.

    Replicates are known by number, so a run with other threads or workers uses those of the last one.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], tuple[float, float]] = {}
        for (part, first, last), columns in journal.blocks.items():
            pairs = columns_of(columns, ("values", "evaluations"))
            if pairs is None or pairs.shape != (2, last - first):
                raise InvalidInputError(
                    f"`journal` must hold what hullcal wrote; got another block {part!r} from {first} "
                    f"in {journal.path}. Name another folder."
                )
            for i in range(last - first):
                self._known[part, first + i] = (float(pairs[0, i]), float(pairs[1, i]))

    def check_data(self, statistic: float, fingerprint: Floats) -> None:
        """Refuse a journal that was begun with other data, which have other numbers."""
        own = np.append(statistic, fingerprint)
        known = [self._known.get((_DATA, i)) for i in range(len(own))]
        if known[0] is None:
            self._keep(_DATA, 0, np.column_stack([own, np.zeros(len(own))]))
            return
        before = np.array([0.0 if pair is None else pair[0] for pair in known])
        if not np.allclose(before, own, rtol=1e-10, atol=1e-12):
            raise InvalidInputError(
                f"`journal` must be of the same data, rows in the same order; got "
                f"{str(self._journal.path.parent)!r}, begun with a statistic of {before[0]:.12g} and a "
                f"fingerprint of {before[-1]:.12g}, and those of these data are {statistic:.12g} and "
                f"{own[-1]:.12g}. Name another folder."
            )

    def keeping(self, part: str, block: Block) -> Block:
        """The same block, not run where its replicates are known, and kept where it was run."""

        def kept(first: int, last: int) -> Floats:
            known = [self._known.get((part, d)) for d in range(first, last)]
            if None not in known:
                return np.array(known)
            found = block(first, last)
            self._keep(part, first, found)
            return found

        return kept

    def _keep(self, part: str, first: int, found: Floats) -> None:
        columns = {"values": found[:, 0].tolist(), "evaluations": found[:, 1].tolist()}
        with self._lock:
            self._journal.append((part, first, first + len(found)), columns)


@contextmanager
def kept_in(
    folder: str | Path | None, configuration: Mapping[str, Any]
) -> Iterator[ResamplingJournal | None]:
    """The folder's journal, continued or begun; None without a folder."""
    if folder is None:
        yield None
        return
    place = check_folder(folder, "journal")
    place.mkdir(parents=True, exist_ok=True)
    with Journal.open(place, configuration, resume=True, words=_WORDS) as journal:
        yield ResamplingJournal(journal)


def kept_seed(folder: str | Path) -> int | None:
    """The seed of a journal that is there."""
    found = configuration_of(check_folder(folder, "journal"))
    return None if found is None else found.get("seed")
