"""Several measures and both questions at once: all is checked first, then one test after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hullcal import engines
from hullcal import measures as measure_room
from hullcal import nulls as null_room
from hullcal._validation import HullcalWarning, InvalidInputError, check_seed
from hullcal.algorithm import run
from hullcal.assessment._found import Assessment
from hullcal.engines import Engine
from hullcal.io.journal import check_folder
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null, kept_seed
from hullcal.planning import Plan, check_adjusted
from hullcal.results import CalibrationTestResult

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
    engine: str | Engine | None = None,
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
    references = _listed(nulls, "nulls", Null)
    tests = [(g, reference) for g in chosen for reference in references]
    folders = _folders(journal, tests)
    if rng is None:
        seeds = (kept_seed(folder) for folder in folders if folder is not None)
        rng = next((seed for seed in seeds if seed is not None), None)
    seed = check_seed(rng)
    plans = []
    # No comprehension, which would be a frame between a warning and whoever called.
    for (g, reference), folder in zip(tests, folders, strict=True):
        plan = Plan.of(
            measure=g,
            null=reference,
            minimizer=minimizer,
            n_resamples=n_resamples,
            alpha=alpha,
            stop_after=stop_after,
            journal=folder,
            rng=seed,
            n_jobs=n_jobs,
        )
        plans.append(plan)
    check_adjusted(plans[0].n_resamples, plans[0].alpha, len(chosen))
    options = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with engines.resolve(engine, probs).open(probs, labels, **options) as data:
        # What cannot be run is refused before the first test, not after hours of them.
        with warnings.catch_warnings():
            # Each test will say again what it has to say of the data.
            warnings.simplefilter("ignore", HullcalWarning)
            for plan in plans:
                plan.beside(data).check(data)
        results: list[CalibrationTestResult] = []
        for plan, folder in zip(plans, folders, strict=True):
            report = _of_all(progress, plan, len(results), len(plans))
            report(0, 0)
            results.append(run(plan, data, journal=folder, progress=report))
    return Assessment(data, tuple(results))


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
    progress: Progress | None, plan: Plan, n_before: int, n_tests: int
) -> Callable[[int, int], None]:
    """What tells the progress of one test as a part of all."""
    what, n_resamples = f"{plan.measure.name}, {plan.null.name}", plan.n_resamples

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(what, n_before * n_resamples + done, n_tests * n_resamples)

    return report


def _folders(
    journal: str | Path | None, tests: Sequence[tuple[Measure, str | Null | None]]
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
