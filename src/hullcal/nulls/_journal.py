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
from hullcal.files.journal import Journal, configuration_of

Floats = NDArray[np.float64]
Block = Callable[[int, int], Floats]

_DATA = "data"


class ResamplingJournal:
    """The journal of one test: null values and evaluations of finished blocks, in a folder of its own.

    Replicates are known by number, so a run with other threads or workers uses those of the last one.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], tuple[float, float]] = {}
        for (part, first, _), columns in journal.blocks.items():
            for i, pair in enumerate(zip(columns["values"], columns["evaluations"], strict=True)):
                self._known[part, first + i] = pair

    def check_data(self, statistic: float) -> None:
        """Refuse a journal that was begun with other data, which have another statistic."""
        known = self._known.get((_DATA, 0))
        if known is None:
            self._keep(_DATA, 0, np.array([[statistic, 0.0]]))
        elif not np.isclose(known[0], statistic, rtol=1e-12, atol=1e-12):
            raise InvalidInputError(
                f"`journal` must be of the same data; got {str(self._journal.path.parent)!r}, begun "
                f"with a statistic of {known[0]:.17g}, and that of these data is {statistic:.17g}. "
                "Name another folder."
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
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Journal.open(Path(folder), configuration, resume=True) as journal:
        yield ResamplingJournal(journal)


def kept_seed(folder: str | Path) -> int | None:
    """The seed of a journal that is there."""
    found = configuration_of(Path(folder))
    return None if found is None else found.get("seed")
