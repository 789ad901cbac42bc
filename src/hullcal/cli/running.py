"""From options on the command line to an assessment."""

from __future__ import annotations

from typing import Any

from hullcal.cli.options import Files, TestOptions
from hullcal.cli.working import working


def run_tests(files: Files, how: TestOptions) -> Any:
    """All measures and nulls that were named; "all" stands for every measure."""
    classifiers, labels = files.read()
    from hullcal import measures as room
    from hullcal.assessment import BOTH, assess

    names = room.available() if "all" in how.measures else tuple(dict.fromkeys(how.measures))
    with working(quiet=how.quiet) as report:
        return assess(
            classifiers,
            labels,
            measures=names,
            nulls=tuple(dict.fromkeys(how.nulls)) or BOTH,
            n_resamples=how.n_resamples,
            alpha=how.alpha,
            rng=how.seed,
            stop_after=how.stop_after,
            n_jobs=how.jobs,
            progress=report,
        )
