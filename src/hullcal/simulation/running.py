"""The one runner of studies: data sets are drawn and tested in blocks, by one process or several."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import measures, minimizers, nulls
from hullcal._compiled.jit import is_compiled
from hullcal._validation import HullcalWarning, refusal
from hullcal.algorithm import calibration_test
from hullcal.io.journal import Journal, Key, columns_of
from hullcal.progress import reporting
from hullcal.sets import ClassifierSet
from hullcal.simulation.protocols import PAPER, Protocol

#: Data sets first, ..., last - 1 of the source in a place: (place, source, first, last).
Block = tuple[int, "Source", int, int]
#: What a test leaves behind.
COLUMNS = ("pvalue", "statistic", "minimum", "n_evaluations")
#: Seconds a block should take: long beside its way to a worker, short beside what a crash may cost.
_SECONDS, _MOST = 1.0, 100


class StudyError(RuntimeError):
    """A test failed; the message names the data set on which it did."""


class WorkerDied(BrokenExecutor):
    """A worker was killed, ran out of memory or was lost; what is in the journal is sound."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A distribution of data sets."""

    name: str  # in messages
    key: str  # in a journal
    stream: tuple[int, ...]  # tells its random numbers from those of other sources
    sizes: tuple[int, int, int]  # N, M and K
    #: Gives predictions and labels of one data set.
    draw: Callable[[np.random.Generator], tuple[NDArray[Any], NDArray[Any]]]
    protocol: Protocol = PAPER


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to test a data set."""

    measure: measures.Measure
    null: nulls.Null
    minimizer: minimizers.Minimizer

    def under(self, protocol: Protocol) -> Way:
        """The test as a protocol has it."""
        return replace(self, measure=protocol.measure(self.measure), null=protocol.null(self.null))

    def check(self, source: Source) -> None:
        """Refuse now what `calibration_test` would refuse on the first data set."""
        test, search = self.under(source.protocol), self.minimizer.budgeted(in_test=True)
        test.measure.check(source.sizes[0])
        search.check(test.measure, source.sizes[1])
        test.null.check(test.measure, search)

    def seconds(self, source: Source, n_resamples: int) -> float:
        """Roughly how long the test takes: enough to cut work into blocks of like size."""
        n_samples, n_members, n_classes = source.sizes
        search = self.minimizer.budgeted(in_test=True, easy=self.measure.easily_searched)
        budget = search.evaluations(n_members)
        once = self.null.name == "paper" or n_members == 1
        evaluations = budget + n_resamples if once else budget * (1 + n_resamples)
        nanoseconds = 4.0 if self.measure.accumulate is not None else 0.6 * n_samples
        # Searches of scipy call back into Python at every step.
        call = 5e-4 if search.name in ("cobyla", "slsqp") else 0.0
        return 5e-4 + evaluations * (1e-9 * nanoseconds * n_samples * n_classes + call)


def run_tests(
    sources: Sequence[Source],
    tests: Sequence[Way],
    *,
    n_datasets: int,
    n_resamples: int,
    seed: Any,
    n_jobs: int | None,
    backend: Any = None,
    journal: Journal | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> NDArray[np.float64]:
    """What every test left behind, of shape (len(COLUMNS), n_sources, n_tests, n_datasets)."""
    values = np.empty((len(COLUMNS), len(sources), len(tests), n_datasets))
    missing = []
    for place, source in enumerate(sources):
        # Blocks of about a second by what is to be done alone, so that a journal fits any machine.
        drawing = 3e-7 * math.prod(source.sizes)
        seconds = drawing + sum(test.seconds(source, n_resamples) for test in tests)
        size = min(_MOST, max(1, round(_SECONDS / seconds)))
        for first in range(0, n_datasets, size):
            last = min(first + size, n_datasets)
            if journal is None or (source.key, first, last) not in journal.blocks:
                missing.append((place, source, first, last))
            else:
                there = values[:, place, :, first:last]
                there[:] = _kept(journal, (source.key, first, last), there.shape)
    work = partial(run_block, tests=tests, seed=seed, n_resamples=n_resamples, home=os.getpid())
    total = values[0].size
    done = total - len(tests) * sum(last - first for *_, first, last in missing)
    with reporting(progress, "tests") as wanted:
        report = wanted or (lambda *_: None)
        report(done, total)
        with closing(_in_any_order(work, missing, tests, n_jobs, backend)) as results:
            for (place, first, last), columns in results:
                if journal is not None:
                    journal.append((sources[place].key, first, last), columns)
                values[:, place, :, first:last] = columns_of(columns, COLUMNS)
                done += len(tests) * (last - first)
                report(done, total)
    return values


def _kept(journal: Journal, key: Key, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """What a journal has of a block, refused if no run could have written it."""
    found = columns_of(journal.blocks[key], COLUMNS)
    if found is not None and found.shape == shape:
        levels, evaluations = found[0], found[-1]
        if ((levels >= 0) & (levels <= 1) & (np.abs(evaluations) < 2**53)).all():
            return found
    repair = "Delete that line to compute it again, or start over with `force=True`."
    came = f"another block {key} in {journal.path}"
    raise refusal("resume", "needs a sound journal", came, repair)


def run_block(
    block: Block, *, tests: Sequence[Way], seed: int, n_resamples: int, home: int
) -> tuple[tuple[int, int, int], dict[str, list[list[Any]]]]:
    """Draw the data sets of a block and test them; a list of values for every test."""
    place, source, first, last = block
    if os.getpid() != home and threading.current_thread() is threading.main_thread():
        # The Ctrl-C of a terminal is for the parent of a worker.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    columns: dict[str, list[list[Any]]] = {name: [[] for _ in tests] for name in COLUMNS}
    for r in range(first, last):
        current: Way | None = None
        try:
            # Words of the spawn key never run into those of the seed.
            of_data, of_tests = (
                np.random.SeedSequence(seed, spawn_key=(*source.stream, r, purpose))
                for purpose in (0, 1)
            )
            probs, labels = source.draw(np.random.default_rng(of_data))
            classifiers = ClassifierSet(probs)
            # One seed for all tests of a data set: measures and nulls are compared on common draws.
            words = enumerate(of_tests.generate_state(4))
            test_seed = sum(int(word) << (32 * i) for i, word in words)
            for i, current in enumerate(tests):
                with warnings.catch_warnings():
                    # What is to be said was said before the first data set.
                    warnings.simplefilter("ignore", HullcalWarning)
                    result = calibration_test(
                        classifiers,
                        labels,
                        **vars(current.under(source.protocol)),
                        n_resamples=n_resamples,
                        alpha=0.5,
                        rng=test_seed,
                    )
                columns["pvalue"][i].append(float(source.protocol.smallest_level(result)))
                columns["statistic"][i].append(_as_json(result.statistic))
                columns["minimum"][i].append(_as_json(result.minimum))
                columns["n_evaluations"][i].append(int(result.n_evaluations))
        except MemoryError:
            raise
        except Exception as error:
            what = f", {current.measure.name}, null {current.null.name}" if current else ""
            where = f"data set {r} of {source.name}{what}"
            raise StudyError(f"{where}: {type(error).__name__}: {error}") from error
    return (place, first, last), columns


def _as_json(value: float) -> float | str:
    """JSON has no infinity; `float` reads either form."""
    return float(value) if math.isfinite(value) else str(float(value))


def _in_any_order(
    work: Callable[[Block], Any],
    blocks: Sequence[Block],
    tests: Sequence[Way],
    n_jobs: int | None,
    backend: Any,
) -> Generator[Any, None, None]:
    """Results of blocks as they are finished: a slow one must not keep others from the journal."""
    import joblib

    try:
        # Only such a setting finds dask by its name.
        with nullcontext() if backend is None else joblib.parallel_config(backend=backend):
            how: Any = {"batch_size": 1, "return_as": "generator_unordered"}
            parallel: Any = joblib.Parallel(n_jobs, **how)
    except (ValueError, ImportError, TypeError, AttributeError) as error:
        rule = "must be loky, dask, threading or another that joblib can start"
        repair = "Leave it out for processes on this machine."
        raise refusal("backend", rule, f"{backend!r} ({error})", repair) from error
    if not blocks:
        return
    if parallel.n_jobs != 1:
        _check_pickles(tests)
        # Compiled here and once, where a notice can be given; workers of this machine find it done.
        smallest = min((source for _, source, *_ in blocks), key=lambda source: source.sizes)
        compiled = [test for test in tests if is_compiled(test.measure.value)]
        run_block((0, smallest, 0, 1), tests=compiled, seed=0, n_resamples=1, home=os.getpid())
    results = parallel(joblib.delayed(work)(block) for block in blocks)
    try:
        # `yield from` would close them before the warnings of that are ignored.
        for result in results:  # noqa: UP028
            yield result
    except Exception as error:
        # A cluster has words of its own for a worker that is lost.
        lost = (BrokenExecutor, CancelledError, ConnectionError, EOFError, TimeoutError)
        if not (isinstance(error, lost) or type(error).__module__.startswith("distributed")):
            raise
        first_line = (str(error).strip().splitlines() or [""])[0][:200]
        raise WorkerDied(f"a worker was lost ({type(error).__name__}: {first_line})") from error
    finally:
        with warnings.catch_warnings():
            # Whoever stops early knows that results are lost.
            warnings.simplefilter("ignore")
            results.close()


def _check_pickles(tests: Sequence[Way]) -> None:
    """Refuse what no process could be sent, before any is started."""
    from joblib.externals.loky.backend import reduction

    for test, parameter in product(tests, ("measure", "null", "minimizer")):
        part = getattr(test, parameter)
        try:
            reduction.dumps(part)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            rule = f"{part.name} must be one that other processes can be sent"
            repair = "Define it at the top of a module, or pass `n_jobs=1`."
            raise refusal(parameter, rule, str(error), repair) from error
