"""Line 1 of Algorithm 1: for d = 1, ..., D; on threads, stopped early or resumed if asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.streams import key_of
from hullcal._validation import InvalidInputError
from hullcal.io.journal import Journal, check_folder, columns_of, configuration_of
from hullcal.notes import Note
from hullcal.progress import reporting
from hullcal.pvalues import exceeds
from hullcal.threads import blocks, in_order

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
#: Of replicates first to last - 1: null values and the evaluations of g that each took, (n, 2).
Block = Callable[[int, int], Floats]

#: Resamples run before the next look, in units of the exceedances that are enough.
_WAVE = 2


@dataclass(kw_only=True)
class Loop:
    """How replicates are run: how many, from which stream, on how many threads."""

    n_resamples: int
    seed: int
    n_jobs: int = 1
    #: Exceedances that are enough, if not all resamples have to be run.
    stop_after: int | None = None
    #: The folder where finished resamples are kept.
    folder: str | Path | None = None
    #: What reports progress, and the journal, while the loop is open.
    progress: Progress | None = None
    journal: ResamplingJournal | None = None
    #: The number of resamples last reported.
    told: int = 0

    @cached_property
    def key(self) -> NDArray[np.uint64]:
        """The key of all random streams."""
        return key_of(self.seed)

    @contextmanager
    def opened(self, configuration: Mapping[str, Any], progress: bool | Progress) -> Iterator[Loop]:
        """This loop with its progress and its journal, continued or begun."""
        kept = nullcontext() if self.folder is None else kept_in(self.folder, configuration)
        with reporting(progress) as report, kept as journal:
            yield replace(self, progress=report, journal=journal, told=0)

    def run(
        self,
        block: Block,
        statistic: float,
        *,
        together: int,
        n_jobs: int,
        part: int = 0,
        of_parts: int = 1,
    ) -> Floats:
        """Replicates in blocks of at most `together`, (n_resamples, 2); no split changes a value.

        Progress counts the resamples of all parts; the journal keeps each part by itself.
        """
        n = self.n_resamples
        if self.journal is not None:
            block = self.journal.keeping(f"part {part}", block)
        out = np.empty((n, 2))
        wave = n if self.stop_after is None else _WAVE * self.stop_after
        for begin in range(0, n, wave):
            end = min(begin + wave, n)
            # A wave is shared out among the threads, several blocks each, so that none is idle.
            size = n if n_jobs == 1 else min(-(-n // (4 * n_jobs)), -(-(end - begin) // n_jobs))
            bounds = blocks(begin, end, max(1, min(size, together)))
            found = in_order(lambda ends: block(*ends), bounds, n_jobs=n_jobs)
            for (first, last), values in zip(bounds, found, strict=True):
                out[first:last] = values
                self.report((part * n + last) // of_parts)
            if self.stop_after is not None:
                # Besag and Clifford (1991) stop at the l-th value, the h-th to reach the statistic,
                # with the p-value h / l. Without that last value the usual formula says the same of
                # the others: (1 + (h - 1)) / (1 + (l - 1)).
                reached = np.flatnonzero(exceeds(out[:end, 0], statistic))
                if len(reached) >= self.stop_after:
                    self.report((part + 1) * n // of_parts)
                    return out[: reached[self.stop_after - 1]]
        return out

    def report(self, done: int) -> None:
        """Tell how many resamples are done, if somebody asked and more are done than before."""
        if self.progress is not None and done > self.told:
            self.told = done
            self.progress(done, self.n_resamples)

    def check_data(self, statistic: float, fingerprint: Callable[[], Floats]) -> None:
        """Refuse a journal of other data."""
        if self.journal is not None:
            self.journal.check_data(statistic, fingerprint())

    def notes(self, n_kept: int) -> tuple[Note, ...]:
        """What to know of a run that left so many null values."""
        n, h = self.n_resamples, self.stop_after
        if n_kept == n:
            return ()
        return (Note("stopped", {"resample": n_kept + 1, "of_resamples": n, "stop_after": h}),)


_DATA = "data"


@dataclass(frozen=True)
class ResamplingJournal:
    """The journal of one test: null values and evaluations of finished blocks.

    Replicates are known by number, so a run with other threads or workers uses those of the last one.
    """

    journal: Journal
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for (part, first, last), columns in self.journal.blocks.items():
            pairs = columns_of(columns, ("values", "evaluations"))
            # NaN would compare with the statistic as if it were smaller.
            if (
                pairs is None
                or pairs.shape != (2, last - first)
                or np.isnan(pairs[0]).any()
                or not np.isfinite(pairs[1]).all()
            ):
                raise InvalidInputError(
                    f"`journal` must hold what hullcal wrote; got another block {part!r} from {first} "
                    f"in {self.journal.path}. Name another folder."
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
                f"{str(self.journal.path.parent)!r}, begun with a statistic of {before[0]:.12g} and a "
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
            self.journal.append((part, first, first + len(found)), columns)


@contextmanager
def kept_in(folder: str | Path, configuration: Mapping[str, Any]) -> Iterator[ResamplingJournal]:
    """The folder's journal, continued or begun."""
    place = check_folder(folder, "journal")
    place.mkdir(parents=True, exist_ok=True)
    with Journal.open(place, configuration, resume=True, parameter="journal") as journal:
        yield ResamplingJournal(journal)


def kept_seed(folder: str | Path) -> int | None:
    """The seed of a journal that is there."""
    found = configuration_of(check_folder(folder, "journal"))
    return None if found is None else found.get("seed")
