"""Several measures and both questions at once: what is asked, and what the tests say together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hullcal import measures as measure_room
from hullcal import minimizers, uncertainty
from hullcal import nulls as null_room
from hullcal._validation import HullcalWarning, InvalidInputError, check_seed, warn
from hullcal.algorithm import algorithm_1, check_level, check_loop, settled
from hullcal.io.journal import check_folder
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.nulls.maximized import Maximized
from hullcal.objectives.opening import LabelledSet, open_set
from hullcal.pvalues import smallest_n_resamples
from hullcal.resampling import kept_seed
from hullcal.results import CalibrationTestResult, adjust
from hullcal.sets import ClassifierSet
from hullcal.verdicts import Answer, Heard, answer, heard, sentence

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Answer", "Assessment", "assess"]

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
        "stop_after": stop_after,
        "rng": check_seed(rng),
        "n_jobs": n_jobs,
    }
    loops = [
        check_loop(reference, journal=folder, **asked)
        for (_, reference), folder in zip(tests, folders, strict=True)
    ]
    n = loops[0].n_resamples
    alpha = check_level(alpha, n)
    _check_adjusted(n, alpha, len(chosen))
    given = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with open_set(probs, labels, engine=engine, **given) as data:
        # What cannot be run is refused before the first test, not after hours of them.
        with warnings.catch_warnings():
            # Each test will say again what it has to say of the data.
            warnings.simplefilter("ignore", HullcalWarning)
            names = [settled(data, g, reference, search)[0].name for g, reference in tests]
        results: list[CalibrationTestResult] = []
        for (g, reference), null, loop in zip(tests, names, loops, strict=True):
            report = _of_all(progress, f"{g.name}, {null}", n * len(results), n * len(tests))
            report(0, 0)
            found = algorithm_1(data, g, reference, search, loop, alpha=alpha, progress=report)
            results.append(found)
    return Assessment(data, tuple(results))


def _check_adjusted(n_resamples: int, alpha: float, n_measures: int) -> None:
    """Warn where p-values could reject, but not once they are adjusted for several measures."""
    share = alpha / n_measures
    if n_measures > 1 and 1 / (n_resamples + 1) <= alpha and 1 / (n_resamples + 1) > share:
        warn(
            f"adjusted for {n_measures} measures, no p-value of {n_resamples} resamples can be "
            f"{alpha:g} or less, so nothing can be rejected; the smallest `n_resamples` that could is "
            f"{smallest_n_resamples(share)}."
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


@dataclass(frozen=True, eq=False)
class Assessment:
    """Tests of one set by one or more measures, for one or more hypotheses.

    Attributes
    ----------
    data : LabelledSet
        The set and its labels, wherever they are.
    results : tuple of CalibrationTestResult
        Measure by measure, and null by null for each.
    """

    data: LabelledSet
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
        return min(own, key=lambda result: result.minimum)

    @property
    def combination(self) -> str:
        """What the combination of `best` is called."""
        alone = self.best.null == Maximized.name
        return "combination with the largest p-value" if alone else "best combination"

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of that combination."""
        return self.best.weights

    def quality(self, weights: Any) -> dict[str, float]:
        """Accuracy of a combination on these rows, and the first measure of it if that has a name."""
        mixed = (
            self.classifiers.mean() if isinstance(weights, str) else self.classifiers.mix(weights)
        )
        found = {"accuracy": self.classifiers.accuracy(self.labels, weights=weights)}
        name, settings = self.best.measure, self.best.settings.get("measure", {})
        if name in measure_room.available():
            measure = replace(measure_room.resolve(name), **settings)
            found[name] = measure(mixed, self.labels)
        return found

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
                said.setdefault(note.text, []).append(f"{result.measure}, {result.null}")
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
