"""The three questions at once: is the average calibrated, is some combination, is the truth inside?"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hullcal import measures as measure_room
from hullcal import minimizers, pvalues
from hullcal import nulls as null_room
from hullcal._compiled.streams import key_of
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_integer,
    check_seed,
    takes_rng,
    unknown,
    warn,
)
from hullcal.algorithm import algorithm_1, check_level, check_loop, settled
from hullcal.alternatives import average_ratios
from hullcal.effects import Detection, Effect, Quality, rows_needed
from hullcal.io.journal import check_folder
from hullcal.likelihood import fit_mixture
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import Cases
from hullcal.objectives.memory import InMemory
from hullcal.objectives.opening import LabelledSet, LocalSet, open_set
from hullcal.progress import reporting
from hullcal.resampling import Loop, kept_seed
from hullcal.sets import ClassifierSet
from hullcal.simplex import uniform
from hullcal.simulation.scenarios import draw_labels, tempered
from hullcal.threads import in_order
from hullcal.truth import Refit, likelihood_test
from hullcal.verdicts import MANY, QUESTIONS, Answer, Assessment, Assessments, Tested
from hullcal.words import AVERAGE, IN_POINTS, NOT_REJECTED, printable

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Answer", "Assessment", "Assessments", "assess"]

Progress = Callable[[str, float, float], None]

#: The temperature whose detection is stated, draws of labels for it, and those tested together.
_TEMPERATURE, _DRAWS, _TOGETHER = 1.5, 100, 25
#: Resamples beyond which their number is not raised.
_MOST_RAISED = 1_000_000
#: Rows and replicates behind an expected time, at most.
_FEW, _MOST_TIMED = 200, 128


@takes_rng
def assess(
    probs: Any,
    labels: Any,
    *,
    measures: str | Measure | Sequence[str | Measure] = ("ece_conf",),
    questions: str | Sequence[str] = tuple(QUESTIONS),
    null: str | Null | None = None,
    minimizer: str | Minimizer = "steepest",
    n_resamples: int = 999,
    alpha: float = 0.05,
    classes: Any = None,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
    engine: str | Client | None = None,
    stop_after: int | None = 100,
    journal: str | Path | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | Progress = False,
) -> Assessment | Assessments:
    """Ask the three questions: about the average, about combinations, and about the truth.

    Parameters
    ----------
    probs : as in `calibration_test`, or mapping of names to such sets
        Several sets of predictions for the same labels give an `Assessments`, one table for all.
    labels, classes, from_logits, from_log, normalize
        As in `calibration_test`.
    measures : measure, or sequence of them
        For the first two questions. Their p-values are adjusted by Holm's method within a question.
    questions : sequence of {"average", "calibrated", "truth"}, or one of them
    null, minimizer, n_resamples, alpha, engine, stop_after, rng, n_jobs
        As in `calibration_test`. Resamples are raised, with a warning, if the 95 % Monte Carlo interval
        of even the smallest p-value would contain `alpha`: at .05 to 72, with two measures to 146.
        A test whose p-value is clearly large stops early, after 100 null values that reach the
        statistic; None runs all. Null "maximized" always does.
    journal : path, optional
        A folder for the journals of all tests.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (what, done, total) in units of work.

    Returns
    -------
    Assessment, or Assessments for several sets

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> members = rng.dirichlet([1, 1, 1], size=(200, 4))
    >>> labels = [rng.choice(3, p=p.mean(axis=0)) for p in members]
    >>> found = assess(members, labels, n_resamples=99, rng=1)
    >>> found.average.headline, found.calibrated.headline, found.truth.headline
    ('Not rejected', 'Not rejected', 'Not rejected')
    """
    chosen = [measure_room.resolve(each) for each in _listed(measures, "measures")]
    asked = _listed(questions, "questions")
    for each in asked:
        if not isinstance(each, str) or each not in QUESTIONS:
            raise unknown("question", each, QUESTIONS)
    reference = None if null is None else null_room.resolve(null)
    search = minimizers.resolve(minimizer)
    alpha = check_level(alpha, 0)
    n_resamples = _enough(n_resamples, alpha, len(chosen))
    seed = None if rng is None else check_seed(rng)
    place = None if journal is None else check_folder(journal, "journal")
    several = _several(probs)
    sets = dict(zip(_names(probs), probs.values(), strict=True)) if several else {"": probs}
    given = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    found = Assessments()
    with _reporting(progress) as report:
        for name, each in sets.items():
            with open_set(each, labels, engine=engine, classes=classes, **given) as data:
                tests = _tests(data, asked, chosen, reference, search)
                folders = _folders(None if place is None else place / name, tests)
                how = n_resamples, _kept_seed(folders) if seed is None else seed, n_jobs
                loops = []
                for test, folder in zip(tests, folders, strict=True):
                    enough = stop_after if test.stops else None
                    loops.append(check_loop(test.null, *how, stop_after=enough, journal=folder))
                whose = f"{name}: " if several else ""
                found[name] = _assessed(data, tests, loops, alpha, report, whose)
    return found if several else found[""]


@dataclass(frozen=True)
class _Test:
    """One test of one question: a measure, or the likelihood where there is none."""

    question: str
    data: LabelledSet
    measure: Measure | None
    null: Null | None
    minimizer: Minimizer
    #: Whether the data are the average of several members.
    averaged: bool = False

    def __str__(self) -> str:
        return f"{self.question}, {self.measure.name if self.measure else 'likelihood'}"

    @property
    def stops(self) -> bool:
        """Whether resampling can stop early."""
        return self.null is None or self.null.one_by_one

    @property
    def work(self) -> float:
        """Evaluations of one resample, roughly."""
        if self.measure is None:
            return 30.0
        if self.question == "average":
            return 1.0
        return 4.0 * self.minimizer.budgeted(in_test=True).evaluations(self.data.n_members)

    def run(self, loop: Loop, alpha: float, progress: Any) -> Tested:
        """The result of the test."""
        how: dict[str, Any] = {"alpha": alpha, "progress": progress}
        if self.measure is None:
            return likelihood_test(self.data, loop, **how)
        found = algorithm_1(self.data, self.measure, self.null, self.minimizer, loop, **how)
        # An average of several is no set of one in words.
        return replace(found, hypothesis=AVERAGE) if self.averaged else found

    def statistics(self, labels: NDArray[np.int32], seed: int) -> Floats:
        """What the test compares, for other labellings (n, n_samples) of the same rows."""
        if self.measure is None:
            assert self.data.classifiers is not None
            ratios: list[float] = []
            for own in labels:
                passes = LocalSet(self.data.classifiers, own).passes(1)
                best = fit_mixture(passes, Cases.data())
                ratios.extend(average_ratios(passes, Cases.data(), best.weights))
            return np.array(ratios)
        reference, search, _ = settled(self.data, self.measure, self.null, self.minimizer)
        objective = self.data.objective(self.measure, in_memory=True, n_jobs=1)
        assert isinstance(objective, InMemory)
        loop = Loop(n_resamples=0, seed=seed)
        return reference.observed(objective.with_labels(labels), search, loop)


def _tests(
    data: LabelledSet,
    asked: Sequence[str],
    chosen: Sequence[Measure],
    null: Null | None,
    search: Minimizer,
) -> list[_Test]:
    """The tests of the questions that these data can be asked, in their order."""
    one, tests = data.n_members == 1, []
    for question in QUESTIONS:
        # A cluster has the average nowhere; of one classifier the first two questions are the same.
        if question not in asked and not (one and question == "average" and "calibrated" in asked):
            continue
        if question == "average" and data.classifiers is not None and data.labels is not None:
            mean = data.classifiers if one else data.classifiers.combined()
            alone = LocalSet(mean, data.labels)
            tests += [_Test(question, alone, g, Refit(), search, not one) for g in chosen]
        elif question == "calibrated" and (not one or data.classifiers is None):
            tests += [_Test(question, data, g, null, search) for g in chosen]
        elif question == "truth":
            tests.append(_Test(question, data, None, None, search))
    if not tests:
        raise InvalidInputError(
            '`questions` must not be "average" alone where only workers have the predictions; got '
            f"{list(asked)}. Ask for calibrated or truth."
        )
    return tests


def _assessed(
    data: LabelledSet,
    tests: Sequence[_Test],
    loops: Sequence[Loop],
    alpha: float,
    report: Progress,
    whose: str,
) -> Assessment:
    """Answers with the size of effects, and with what could have been detected where nothing was."""
    # What cannot be run is refused before the first test, not after hours of them.
    with warnings.catch_warnings(action="ignore", category=HullcalWarning):
        # Each test will say again what it has to say of the data.
        for test in tests:
            if test.measure is not None:
                settled(test.data, test.measure, test.null, test.minimizer)
    total = float(sum(test.work for test in tests)) * loops[0].n_resamples
    before, found = 0.0, dict[str, list[Tested]]()

    def part(done: int, _: int) -> None:
        """Tell the progress of the test that runs as a part of all."""
        report(f"{whose}{test}", before + test.work * done, total)

    for test, loop in zip(tests, loops, strict=True):
        part(0, 0)
        found.setdefault(test.question, []).append(test.run(loop, alpha, part))
        before += test.work * loop.n_resamples
    effect = _effect(data, tests, found)
    # A calibrated average is a calibrated combination, and so is the truth: it is the average itself
    # where members do not differ.
    implied = ["calibrated"] if len(data.distinct.positions) > 1 else ["average", "calibrated"]
    answers: dict[str, Answer] = {}
    for question in ("truth", "average", "calibrated"):
        if question in found:
            implied_by = tuple(answers.values()) if question in implied else ()
            answers[question] = Answer(question, tuple(found[question]), implied_by, effect)
    for question, detection in _detections(data, tests, answers, loops[0].n_jobs).items():
        answers[question] = replace(answers[question], detection=detection)
    return Assessment(data, {each: answers[each] for each in QUESTIONS if each in answers}, effect)


def _detections(
    data: LabelledSet, tests: Sequence[_Test], answers: Mapping[str, Answer], n_jobs: int
) -> dict[str, Detection]:
    """What these rows could have detected, for every question where nothing is rejected.

    Labels from the average at a temperature go through all tests that decide, against the critical
    values that were found; a claim is rejected only if what implies it is rejected, too.
    """
    unclear = [name for name, answer in answers.items() if answer.headline == NOT_REJECTED]
    deciding = {}
    for name, answer in answers.items():
        own = [test for test in tests if test.question == name]
        deciding[name] = own[answer.results.index(answer.result)]
    few = data.classifiers is not None and data.classifiers.probs.size <= MANY
    if not unclear or not few or not all(test.stops for test in deciding.values()):
        return {}
    assert data.classifiers is not None
    mean, first = data.classifiers.mean(), next(iter(answers.values())).result
    truth, critical = tempered(mean, _TEMPERATURE), {}
    for name, answer in answers.items():
        # A quantile, since a test that stopped early has few null values. It is Holm's first level.
        level, null_values = first.alpha / len(answer.results), answer.result.null_distribution
        critical[name] = float(np.quantile(null_values, 1.0 - level, method="higher"))

    implying = {each.question for name in unclear for each in answers[name].implied_by}

    def rejected(begin: int) -> dict[str, NDArray[np.bool_]]:
        streams = (np.random.default_rng([first.seed, begin + draw]) for draw in range(_TOGETHER))
        labels = np.array([draw_labels(truth, stream) for stream in streams], dtype=np.int32)
        found: dict[str, NDArray[np.bool_]] = {}
        # What implies others comes first, so the search for a combination is often spared.
        for name in (name for name in answers if name in implying.union(unclear)):
            implied_by = (found[each.question] for each in answers[name].implied_by)
            found[name] = np.logical_and.reduce([np.ones(_TOGETHER, dtype=bool), *implied_by])
            left = np.flatnonzero(found[name])
            if len(left):
                statistics = deciding[name].statistics(labels[left], first.seed)
                found[name][left] = [not pvalues.exceeds(critical[name], t) for t in statistics]
        return found

    # Each warning was given of the data.
    with warnings.catch_warnings(action="ignore", category=HullcalWarning):
        draws = list(in_order(rejected, range(0, _DRAWS, _TOGETHER), n_jobs=n_jobs))
    rows, n_samples = (np.arange(len(mean)), mean.argmax(axis=1)), data.n_samples
    error = float(abs(mean[rows] - truth[rows]).mean())
    found = {}
    for name in unclear:
        power = float(np.mean([some[name] for some in draws]))
        needed = rows_needed(power, n_samples, first.alpha)
        found[name] = Detection(_TEMPERATURE, error, power, n_samples, needed)
    return found


def _effect(
    data: LabelledSet, tests: Sequence[_Test], found: Mapping[str, Sequence[Tested]]
) -> Effect | None:
    """Errors of average and best combination, by the first measure or the confidence ECE."""
    classifiers, labels = data.classifiers, data.labels
    if classifiers is None or labels is None or classifiers.probs.size > MANY:
        return None
    first = next((test.measure for test in tests if test.measure is not None), None)
    measure = first if first is not None and first.name in IN_POINTS else None
    measure = measure_room.resolve("ece_conf") if measure is None else measure
    average = Quality.of(classifiers.combined(), labels, measure, fitted=False)
    if "calibrated" not in found:
        return Effect(measure.name, average, None, uniform(data.n_members))
    weights = found["calibrated"][0].weights
    combination = Quality.of(classifiers.combined(weights), labels, measure, fitted=True)
    return Effect(measure.name, average, combination, weights)


def expected_seconds(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    measure: Measure,
    null: Null | None,
    minimizer: Minimizer,
    n_resamples: int,
) -> float:
    """How long "calibrated" takes on one core at most, from replicates of a few rows."""
    rows = np.linspace(0, len(labels) - 1, min(len(labels), _FEW)).astype(np.int64)
    data = LocalSet(ClassifierSet(classifiers.probs[rows]), labels[rows])
    with warnings.catch_warnings(action="ignore", category=HullcalWarning):
        reference, search, in_memory = settled(data, measure, null, minimizer)
    objective = data.objective(measure, in_memory=in_memory, n_jobs=1)
    key = key_of(0)
    n = min(n_resamples, objective.together(search.evaluations(objective.n_members)), _MOST_TIMED)
    replicates = objective.drawing_labels(uniform(objective.n_members), key)(0, n)
    search.minimize(replicates, key)  # compiled
    begin = time.perf_counter()
    search.minimize(replicates, key)
    once = (time.perf_counter() - begin) / n
    pairs = getattr(measure, "estimator", "ul") != "ul"
    growth = (len(labels) / len(rows)) ** (2 if pairs else 1)
    centres = 4 if reference.name == "stacked" else 1
    return once * growth * centres * n_resamples


def _enough(n_resamples: int, alpha: float, n_measures: int) -> int:
    """As many resamples as a clear rejection needs once p-values are adjusted; a warning if more."""
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    # So many that the smallest p-value, adjusted, has its whole Monte Carlo interval below alpha: that
    # of no null value among D ends at 1 - .025^(1/D).
    share = alpha / n_measures
    least = math.log(0.025) / math.log1p(-share) if share > 0.0 else math.inf
    if least > max(n_resamples, _MOST_RAISED):
        raise InvalidInputError(
            f"`alpha` must be one that {_MOST_RAISED:,} resamples can decide; got {alpha:g}, which "
            f"takes {least:.1e}. Pass a larger `alpha`, or as many `n_resamples`."
        )
    least = max(n_resamples, math.ceil(least))
    if n_resamples < least:
        several = f", adjusted for {n_measures} measures" if n_measures > 1 else ""
        warn(
            f"{n_resamples} resamples cannot decide at {alpha:g}{several}; {least} are run instead."
        )
    return least


def _listed(given: Any, parameter: str) -> list[Any]:
    """Several as they are, and one alone as a list of one."""
    if isinstance(given, str | Measure) or callable(given):
        return [given]
    listed = list(given) if isinstance(given, Iterable) else []
    if not listed:
        raise InvalidInputError(
            f"`{parameter}` must name at least one; got {given!r:.80}. Leave it out, or pass a list."
        )
    return listed


def _several(probs: Any) -> bool:
    """Whether these are several sets by name; arrays (N, K) by name are the members of one."""
    if not isinstance(probs, Mapping):
        return False
    sets = [
        isinstance(each, ClassifierSet)
        or np.ndim(each) == 3
        # A data frame of several members, in columns such as forest:cat.
        or any(set(str(name)) & set(":/") for name in getattr(each, "columns", ()))
        for each in probs.values()
    ]
    if any(sets) and not all(sets):
        members = [str(name) for name, is_set in zip(probs, sets, strict=True) if not is_set]
        raise InvalidInputError(
            "`probs` by name must be several sets (rows, members, classes), or the members (rows, "
            f"classes) of one; got both, members such as {members[0]!r:.80}. Make those sets by "
            "`hullcal.ClassifierSet`."
        )
    return any(sets)


def _names(probs: Mapping[Any, Any]) -> list[str]:
    """What several sets are called; each may become a folder of the journal."""
    names = [printable(str(name)) for name in probs]
    odd = [name for name in names if name in ("", ".", "..") or set(name) & set("/\\")]
    if odd or len(set(names)) < len(names):
        raise InvalidInputError(
            f"`probs` must have names that differ and could be those of folders; got {names!r:.200}. "
            "Rename the sets."
        )
    return names


@contextmanager
def _reporting(progress: bool | Progress) -> Iterator[Progress]:
    if callable(progress):
        yield progress
        return
    with reporting(progress, "tests") as report:
        yield lambda _, done, total: None if report is None else report(int(done), int(total))


def _folders(place: Path | None, tests: Sequence[_Test]) -> list[Path | None]:
    """A folder for the journal of each test; tests of one name are numbered."""
    if place is None:
        return [None] * len(tests)
    folders: list[Path | None] = []
    seen: Counter[str] = Counter()
    for test in tests:
        name = str(test).replace(", ", "-")
        seen[name] += 1
        folders.append(place / (name if seen[name] == 1 else f"{name}.{seen[name]}"))
    return folders


def _kept_seed(folders: Sequence[Path | None]) -> int:
    """The seed of the first journal that has one, or a new one."""
    kept = (kept_seed(folder) for folder in folders if folder is not None)
    return check_seed(next((seed for seed in kept if seed is not None), None))
