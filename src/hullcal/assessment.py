"""Several measures and both questions at once: what the command line prints and the report shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import engines, uncertainty
from hullcal import measures as measure_room
from hullcal import nulls as null_room
from hullcal._validation import HullcalWarning, InvalidInputError, check_seed
from hullcal.algorithm import run
from hullcal.engines import Data, Engine
from hullcal.files.journal import check_folder
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null, kept_seed
from hullcal.nulls.maximized import Maximized
from hullcal.planning import Plan, check_adjusted
from hullcal.results import CalibrationTestResult, adjust
from hullcal.sets import ClassifierSet
from hullcal.verdicts import Answer, Heard, answer, heard, sentence

Progress = Callable[[str, int, int], None]

#: Both questions: contains a calibrated classifier, contains the truth.
BOTH = ("recentered", "refit")


@dataclass(frozen=True, eq=False)
class Assessment:
    """Tests of one set by one or more measures, for one or more hypotheses.

    Attributes
    ----------
    data : Data
        The set and its labels, wherever they are.
    results : tuple of CalibrationTestResult
        Measure by measure, and null by null for each.
    """

    data: Data
    results: tuple[CalibrationTestResult, ...]

    @cached_property
    def classifiers(self) -> ClassifierSet:
        """The set itself, if it is in memory; `labels` are positions of its classes."""
        if self.data.classifiers is None:
            raise InvalidInputError(
                "`engine` must be local where predictions are to be shown or measured; got data that "
                "only workers have seen. Test a part of them that fits into memory."
            )
        return self.data.classifiers.named_by_text()

    @property
    def labels(self) -> NDArray[np.int32]:
        """The labels, if they are in memory."""
        assert self.classifiers is not None
        assert self.data.labels is not None
        return self.data.labels

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures, in order."""
        return tuple(dict.fromkeys(result.measure for result in self.results))

    @property
    def nulls(self) -> tuple[str, ...]:
        """Names of the nulls, in order."""
        return tuple(dict.fromkeys(result.null for result in self.results))

    @cached_property
    def adjusted(self) -> tuple[float, ...]:
        """Holm's p-values beside `results`: the measures of one null are one family."""
        values = np.empty(len(self.results))
        for null in self.nulls:
            family = [i for i, result in enumerate(self.results) if result.null == null]
            values[family] = adjust([self.results[i] for i in family])
        return tuple(float(value) for value in values)

    @cached_property
    def sizes(self) -> uncertainty.Sizes:
        """How large the set is."""
        return uncertainty.summary(self.classifiers)

    @property
    def best(self) -> CalibrationTestResult:
        """The test whose weights are the best combination by the first measure.

        The null `maximized` has weights of its own, so that not every test would do; asked alone, it
        has no others (see `combination`).
        """
        first = self.results[0]
        same = (first.measure, first.settings.get("measure"))
        own = [e for e in self.results if (e.measure, e.settings.get("measure")) == same]
        return min(own, key=lambda result: result.statistic)

    @property
    def combination(self) -> str:
        """What the combination of `best` is called."""
        alone = self.best.null == Maximized.name
        return "combination with the largest p-value" if alone else "best combination"

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of that combination."""
        return self.best.weights

    def rejected(self, null: str) -> bool:
        """Whether some measure rejects what this null tests, after adjustment.

        A doubtful p-value counts as any other, so also where the sentence begins with "Unclear".
        """
        return bool(self._rejecting(null))

    def unclear(self, null: str) -> bool:
        """Whether what this null tests is rejected by doubtful p-values only."""
        rejecting = self._rejecting(null)
        return bool(rejecting) and all(each.result.doubtful for each in rejecting)

    def notes(self) -> list[str]:
        """What the tests have to say beside their numbers; if not all of them, who says it."""
        said: dict[str, list[str]] = {}
        for result in self.results:
            for note in result.notes:
                said.setdefault(note, []).append(f"{result.measure}, {result.null}")
        return [
            note if len(who) == len(self.results) else f"{'; '.join(who)}: {note}"
            for note, who in said.items()
        ]

    def sentences(self) -> list[str]:
        """One plain sentence for each question."""
        return [sentence(self._own(null)) for null in self.nulls]

    def verdicts(self) -> list[dict[str, Any]]:
        """For each question what was tested, the decision, the sentence, and adjusted p-values."""
        return [
            {
                "null": null,
                "hypothesis": own[0].result.hypothesis,
                "rejected": self.rejected(null),
                "unclear": self.unclear(null),
                "too_close_to_call": heard(own).close,
                "depends_on_search": heard(own).depends,
                "sentence": sentence(own),
                "adjusted": [
                    {
                        "measure": each.result.measure,
                        "pvalue": each.adjusted,
                        "rejected": each.rejects,
                    }
                    for each in own
                ],
            }
            for null, own in ((null, self._own(null)) for null in self.nulls)
        ]

    def answers(self) -> list[Answer]:
        """What each of `results` would say if it spoke for its null."""
        families = [result.null for result in self.results]
        pairs = zip(self.results, self.adjusted, strict=True)
        return [answer(each, p, several=families.count(each.null) > 1) for each, p in pairs]

    def _own(self, null: str) -> list[Heard]:
        every = zip(self.adjusted, self.results, self.answers(), strict=True)
        return [Heard(*each) for each in every if each[1].null == null]

    def _rejecting(self, null: str) -> list[Heard]:
        return [each for each in self._own(null) if each.rejects]


def assess(
    probs: Any,
    labels: Any,
    *,
    measures: str | Measure | Sequence[str | Measure] = ("ece_conf",),
    nulls: str | Null | Sequence[str | Null] = BOTH,
    minimizer: str | Minimizer = "pairwise",
    n_resamples: int = 999,
    alpha: float = 0.05,
    classes: Any = None,
    from_logits: bool = False,
    from_log: bool = False,
    rng: int | np.random.Generator | None = None,
    stop_after: int | None = None,
    pvalue_only: bool = False,
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
        All pairs of them are run, with the same seed.
    minimizer, n_resamples, alpha, rng, stop_after, pvalue_only, engine, n_jobs
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
    references = [null_room.resolve(each) for each in _listed(nulls, "nulls", Null)]
    tests = [(g, reference) for g in chosen for reference in references]
    folders = _folders(journal, tests)
    if rng is None:
        seeds = (kept_seed(folder) for folder in folders if folder is not None)
        rng = next((seed for seed in seeds if seed is not None), None)
    seed = check_seed(rng)
    plans = [
        Plan.of(
            measure=g,
            null=reference,
            minimizer=minimizer,
            n_resamples=n_resamples,
            alpha=alpha,
            stop_after=stop_after,
            pvalue_only=pvalue_only,
            journal=folder,
            rng=seed,
            n_jobs=n_jobs,
        )
        for (g, reference), folder in zip(tests, folders, strict=True)
    ]
    check_adjusted(plans[0].n_resamples, plans[0].alpha, len(chosen))
    options = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with engines.resolve(engine, probs).open(probs, labels, **options) as data:
        # What cannot be run is refused before the first test, not after hours of them.
        with warnings.catch_warnings():
            # Each test will say again what it has to say of the data.
            warnings.simplefilter("ignore", HullcalWarning)
            for plan in plans:
                plan.check(data)
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
    journal: str | Path | None, tests: Sequence[tuple[Measure, Null]]
) -> list[Path | None]:
    """A folder for the journal of each test; tests of one name are numbered."""
    if journal is None:
        return [None] * len(tests)
    place = check_folder(journal, "journal")
    names: list[str] = []
    for g, reference in tests:
        name = f"{g.name}-{reference.name}"
        earlier = sum(other.partition(".")[0] == name for other in names)
        names.append(f"{name}.{earlier + 1}" if earlier else name)
    return [place / name for name in names]
