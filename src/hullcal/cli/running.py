"""From names on the command line to an assessment."""

from __future__ import annotations

from typing import Any

from hullcal.cli.working import working


def run_tests(
    classifiers: Any,
    labels: Any,
    measures: tuple[str, ...],
    nulls: tuple[str, ...],
    n_resamples: int,
    alpha: float,
    seed: int | None,
    jobs: int,
    *,
    quiet: bool,
) -> Any:
    """All measures and nulls that were named; "all" stands for every measure."""
    from hullcal import measures as room
    from hullcal.assessment import BOTH, assess

    names = room.available() if "all" in measures else tuple(dict.fromkeys(measures))
    with working(quiet=quiet) as report:
        return assess(
            classifiers,
            labels,
            measures=names,
            nulls=tuple(dict.fromkeys(nulls)) or BOTH,
            n_resamples=n_resamples,
            alpha=alpha,
            rng=seed,
            n_jobs=jobs,
            progress=report,
        )
