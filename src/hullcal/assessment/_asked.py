"""Several measures and both questions at once: all is checked first, then one test after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hullcal import measures as measure_room
from hullcal import minimizers
from hullcal import nulls as null_room
from hullcal._validation import HullcalWarning, InvalidInputError, check_seed
from hullcal.algorithm import algorithm_1, check_options, settled
from hullcal.assessment._found import Assessment
from hullcal.files.journal import check_folder
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.objectives.opening import open_set
from hullcal.pvalues import smallest_n_resamples
from hullcal.resampling import kept_seed
from hullcal.results import CalibrationTestResult

if TYPE_CHECKING:
    from distributed import Client

Progress = Callable[[str, int, int], None]

#: Both questions: contains a calibrated classifier (by the null that suits the data), contains the truth.
BOTH = (None, "refit")


def assess(
    probs: Any,
    labels: Any,
    *,
    measures: str | Measure | Sequence[str | Measure] = ("ece_conf",),
    nulls: str | Null | Sequence[str | Null | None] = BOTH,
    minimizer: str | Minimizer = "steepest",
    n_resamples: int = 999,
    alpha: float = 0.05,
    classes: Any = None,
    from_logits: bool = False,
    from_log: bool = False,
    rng: int | np.random.Generator | None = None,
    stop_after: int | None = None,
    engine: str | Client | None = None,
    journal: str | Path | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Assessment:
    """Test a set by several measures and for several hypotheses.

    Parameters
    ----------
    probs, labels, classes, from_logits, from_log
        As in `calibration_test`.
    measures, nulls : sequence, or one of them
        All pairs of them are run, with the same seed. Null None is the usual one of `calibration_test`.
    minimizer, n_resamples, alpha, rng, stop_after, engine, n_jobs
        As in `calibration_test`.
    journal : path, optional
        A folder for the journals of all tests; see `calibration_test`.
    progress : callable, optional
        Told (what, done, total), over all tests together.

    Returns
    -------
    Assessment
    """
    chosen = [measure_room.resolve(each) for each in _listed(measures, "measures", Measure)]
    references = [
        None if each is None else null_room.resolve(each) for each in _listed(nulls, "nulls", Null)
    ]
    search = minimizers.resolve(minimizer)
    tests = [(g, reference) for g in chosen for reference in references]
    folders = _folders(journal, tests)
    if rng is None:
        seeds = (kept_seed(folder) for folder in folders if folder is not None)
        rng = next((seed for seed in seeds if seed is not None), None)
    asked: dict[str, Any] = {
        "n_resamples": n_resamples,
        "alpha": alpha,
        "stop_after": stop_after,
        "rng": check_seed(rng),
        "n_jobs": n_jobs,
    }
    options = []
    # No comprehension, which would be a frame between a warning and whoever called.
    for (_, reference), folder in zip(tests, folders, strict=True):
        options.append(check_options(reference, journal=folder, **asked))
    _check_adjusted(options[0]["n_resamples"], options[0]["alpha"], len(chosen))
    given = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with open_set(probs, labels, engine=engine, **given) as data:
        # What cannot be run is refused before the first test, not after hours of them.
        with warnings.catch_warnings():
            # Each test will say again what it has to say of the data.
            warnings.simplefilter("ignore", HullcalWarning)
            names = [settled(data, g, reference, search)[0].name for g, reference in tests]
        results: list[CalibrationTestResult] = []
        for (g, reference), null, own in zip(tests, names, options, strict=True):
            n = own["n_resamples"]
            report = _of_all(progress, f"{g.name}, {null}", n * len(results), n * len(tests))
            report(0, 0)
            results.append(algorithm_1(data, g, reference, search, progress=report, **own))
    return Assessment(data, tuple(results))


def _check_adjusted(n_resamples: int, alpha: float, n_measures: int) -> None:
    """Warn where p-values could reject, but not once they are adjusted for several measures."""
    share = alpha / n_measures
    if n_measures > 1 and 1 / (n_resamples + 1) <= alpha and 1 / (n_resamples + 1) > share:
        warnings.warn(
            f"adjusted for {n_measures} measures, no p-value of {n_resamples} resamples can be "
            f"{alpha:g} or less, so nothing can be rejected; the smallest `n_resamples` that could is "
            f"{smallest_n_resamples(share)}.",
            HullcalWarning,
            stacklevel=3,
        )


def _listed(given: Any, parameter: str, kind: type) -> list[Any]:
    """Several as they are, and one alone as a list of one."""
    if isinstance(given, (str, kind)) or callable(given):
        return [given]
    listed = list(given) if isinstance(given, Iterable) else []
    if not listed:
        raise InvalidInputError(
            f"`{parameter}` must name at least one; got {given!r:.80}. Leave it out, or pass a list."
        )
    return listed


def _of_all(
    progress: Progress | None, what: str, before: int, total: int
) -> Callable[[int, int], None]:
    """What tells the progress of one test as a part of all."""

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(what, before + done, total)

    return report


def _folders(
    journal: str | Path | None, tests: Sequence[tuple[Measure, Null | None]]
) -> list[Path | None]:
    """A folder for the journal of each test; tests of one name are numbered."""
    if journal is None:
        return [None] * len(tests)
    place = check_folder(journal, "journal")
    names: list[str] = []
    for g, reference in tests:
        name = f"{g.name}-{null_room.resolve(reference).name}"
        earlier = sum(other.partition(".")[0] == name for other in names)
        names.append(f"{name}.{earlier + 1}" if earlier else name)
    return [place / name for name in names]
