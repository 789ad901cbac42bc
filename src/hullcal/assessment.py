"""The three questions at once: is the average calibrated, is some combination, is the truth inside?"""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hullcal import io, minimizers, pvalues, uncertainty
from hullcal import measures as measure_room
from hullcal import nulls as null_room
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
from hullcal.objectives.chunked import Cases
from hullcal.objectives.opening import LabelledSet, LocalSet, open_set
from hullcal.plots import reliability
from hullcal.plots.canvas import as_svg
from hullcal.resampling import Loop, kept_seed
from hullcal.sets import ClassifierSet
from hullcal.simulation.scenarios import draw_labels, tempered
from hullcal.threads import in_order
from hullcal.truth import Refit, likelihood_test
from hullcal.verdicts import HEADS, ONE_CLASSIFIER, QUESTIONS, Answer, Tested, advice
from hullcal.words import (
    AVERAGE,
    IN_POINTS,
    NOT_REJECTED,
    in_html,
    measure_in_words,
    printable,
)

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Answer", "Assessment", "Assessments", "assess"]

Floats = NDArray[np.float64]
Progress = Callable[[str, float, float], None]

#: The temperature whose detection is stated, and draws of labels for it.
_TEMPERATURE, _DRAWS = 1.5, 100
#: Probabilities beyond which nothing is computed but the tests, and rows behind an expected time.
_MANY, _FEW = 2**24, 200


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
        As in `calibration_test`. Resamples too few to reject anything are raised, with a warning.
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
    if _several(probs):
        options: dict[str, Any] = {
            "measures": measures,
            "questions": questions,
            "null": null,
            "minimizer": minimizer,
            "n_resamples": n_resamples,
            "alpha": alpha,
            "classes": classes,
            "from_logits": from_logits,
            "from_log": from_log,
            "normalize": normalize,
            "engine": engine,
            "stop_after": stop_after,
            "rng": check_seed(rng) if isinstance(rng, np.random.Generator) else rng,
            "n_jobs": n_jobs,
        }
        folder = None if journal is None else check_folder(journal, "journal")
        names = _names(probs)
        found = Assessments()
        with _reporting(progress) as report:
            for name, each in zip(names, probs.values(), strict=True):
                options["journal"] = None if folder is None else folder / name
                one = assess(each, labels, progress=_within(report, name), **options)
                assert isinstance(one, Assessment)
                found[name] = one
        return found
    chosen = [measure_room.resolve(each) for each in _listed(measures, "measures")]
    asked = [_question(each) for each in _listed(questions, "questions")]
    reference = None if null is None else null_room.resolve(null)
    search = minimizers.resolve(minimizer)
    alpha = check_level(alpha, 0)
    n_resamples = _enough(n_resamples, alpha, len(chosen))
    given = {
        "classes": classes,
        "from_logits": from_logits,
        "from_log": from_log,
        "normalize": normalize,
    }
    with open_set(probs, labels, engine=engine, **given) as data, _reporting(progress) as report:
        tests = list(_tests(data, asked, chosen, reference, search))
        if not tests:
            raise InvalidInputError(
                '`questions` must not be "average" alone where only workers have the predictions; got '
                f"{asked}. Ask for calibrated or truth."
            )
        folders = _folders(journal, tests)
        if rng is None:
            seeds = (kept_seed(folder) for folder in folders if folder is not None)
            rng = next((seed for seed in seeds if seed is not None), None)
        seed = check_seed(rng)
        loops = [
            check_loop(
                reference if test.question == "calibrated" else None,
                n_resamples=n_resamples,
                stop_after=stop_after if test.stops else None,
                journal=folder,
                rng=seed,
                n_jobs=n_jobs,
            )
            for test, folder in zip(tests, folders, strict=True)
        ]
        # What cannot be run is refused before the first test, not after hours of them.
        with warnings.catch_warnings():
            # Each test will say again what it has to say of the data.
            warnings.simplefilter("ignore", HullcalWarning)
            for test in tests:
                test.check()
        total = float(sum(test.work for test in tests)) * n_resamples
        before, results = 0.0, dict[str, list[Tested]]()
        for test, loop in zip(tests, loops, strict=True):
            part = _part_of(report, str(test), before, test.work, total)
            part(0, 0)
            result = test.run(loop, alpha, part)
            results.setdefault(test.question, []).append(result)
            before += test.work * n_resamples
        return _concluded(data, tests, results, loops[0].n_jobs)


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

    def check(self) -> None:
        """Refuse what these data have no answer to."""
        if self.measure is not None:
            settled(self.data, self.measure, self.null, self.minimizer)

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

    def statistic(self, labels: NDArray[np.int32], seed: int) -> float:
        """What the test compares, for other labels of the same rows."""
        assert self.data.classifiers is not None
        data, loop = LocalSet(self.data.classifiers, labels), Loop(n_resamples=0, seed=seed)
        if self.measure is None:
            passes, cases = data.passes(1), Cases.data()
            best = fit_mixture(passes, cases)
            return float(average_ratios(passes, cases, best.weights)[0])
        reference, search, in_memory = settled(data, self.measure, self.null, self.minimizer)
        objective = data.objective(self.measure, in_memory=in_memory, n_jobs=1)
        return float(reference.line_7(objective, search, loop).means[0])


def _tests(
    data: LabelledSet,
    asked: Sequence[str],
    chosen: Sequence[Measure],
    null: Null | None,
    search: Minimizer,
) -> Iterator[_Test]:
    """The tests of the questions that these data can be asked, in their order."""
    one = data.n_members == 1
    for question in QUESTIONS:
        # A cluster has the average nowhere; of one classifier the first two questions are the same.
        if question not in asked and not (one and question == "average" and "calibrated" in asked):
            continue
        if question == "average" and data.classifiers is not None and data.labels is not None:
            mean = data.classifiers
            if not one:  # of float16 rows it has their sums
                mean = ClassifierSet(data.classifiers.mean(), normalize=True)
            alone = LocalSet(mean, data.labels)
            yield from (_Test(question, alone, g, Refit(), search, not one) for g in chosen)
        elif question == "calibrated" and (not one or data.classifiers is None):
            yield from (_Test(question, data, g, null, search) for g in chosen)
        elif question == "truth":
            yield _Test(question, data, None, None, search)


def _concluded(
    data: LabelledSet,
    tests: Sequence[_Test],
    found: Mapping[str, Sequence[Tested]],
    n_jobs: int,
) -> Assessment:
    """Answers with the size of effects, and with what could have been detected where nothing was."""
    effect = _effect(data, tests, found)
    answers: dict[str, Answer] = {}
    # A calibrated average is a calibrated combination, and so is the truth: it is the average itself
    # where members do not differ.
    implied = ["calibrated"] if len(data.distinct.positions) > 1 else ["average", "calibrated"]
    for question in ("truth", "average", "calibrated"):
        if question in found:
            implied_by = tuple(answers.values()) if question in implied else ()
            size = _size(question, effect)
            answers[question] = Answer(
                question,
                tuple(found[question]),
                implied_by,
                size=size,
                sized_by=None if effect is None else effect.measure,
            )
    for question, detection in _detections(data, tests, answers, n_jobs).items():
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
        place = answer.results.index(answer.result)
        deciding[name] = [test for test in tests if test.question == name][place]
    few = data.classifiers is not None and data.classifiers.probs.size <= _MANY
    if not unclear or not few or not all(test.stops for test in deciding.values()):
        return {}
    assert data.classifiers is not None
    mean, results = data.classifiers.mean(), {name: answers[name].result for name in answers}
    truth, first = tempered(mean, _TEMPERATURE), next(iter(results.values()))
    # A quantile, since a test that stopped early has few null values. It is Holm's first level.
    critical = {
        name: float(np.quantile(each.null_distribution, 1.0 - level, method="higher"))
        for name, each in results.items()
        for level in [each.alpha / len(answers[name].results)]
    }

    def rejected(draw: int) -> dict[str, bool]:
        labels = draw_labels(truth, np.random.default_rng([first.seed, draw])).astype(np.int32)
        own = {
            name: not pvalues.exceeds(critical[name], test.statistic(labels, first.seed))
            for name, test in deciding.items()
        }
        return {
            name: own[name] and all(own[each.question] for each in answer.implied_by)
            for name, answer in answers.items()
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)  # each was said of the data
        draws = list(in_order(rejected, range(_DRAWS), n_jobs=n_jobs))
    rows, n = (np.arange(len(mean)), mean.argmax(axis=1)), data.n_samples
    error = float(abs(mean[rows] - truth[rows]).mean())
    power = {name: sum(draw[name] for draw in draws) / _DRAWS for name in unclear}
    return {
        name: Detection(_TEMPERATURE, error, p, n, rows_needed(p, n, first.alpha))
        for name, p in power.items()
    }


def _size(question: str, effect: Effect | None) -> str | None:
    """How large the expected error is that an answer is about."""
    if effect is None or question == "truth":
        return None
    quality = effect.average if question == "average" else effect.combination
    if quality is None:
        return None
    return f"{'it' if question == 'average' else 'the best'} is {quality}"


def _effect(
    data: LabelledSet, tests: Sequence[_Test], found: Mapping[str, Sequence[Tested]]
) -> Effect | None:
    """Errors of average and best combination, by the first measure or the confidence ECE."""
    classifiers, labels = data.classifiers, data.labels
    if classifiers is None or labels is None or classifiers.probs.size > _MANY:
        return None
    first = next((test.measure for test in tests if test.measure is not None), None)
    measure = first if first is not None and first.name in IN_POINTS else None
    measure = measure_room.resolve("ece_conf") if measure is None else measure
    calibrated = found.get("calibrated", ())
    best = calibrated[0].weights if calibrated else None
    return Effect(
        measure=measure.name,
        average=Quality.of(classifiers.mean(), labels, measure, fitted=False),
        combination=None
        if best is None
        else Quality.of(classifiers.mix(best), labels, measure, fitted=True),
        weights=np.full(data.n_members, 1.0 / data.n_members) if best is None else best,
    )


def expected_seconds(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    measure: Measure,
    null: Null | None,
    minimizer: Minimizer,
    n_resamples: int,
) -> float:
    """How long "calibrated" takes on one core at most, from the search of a few rows."""
    rows = np.linspace(0, len(labels) - 1, min(len(labels), _FEW)).astype(np.int64)
    data = LocalSet(ClassifierSet(classifiers.probs[rows]), labels[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        reference, search, in_memory = settled(data, measure, null, minimizer)
    objective = data.objective(measure, in_memory=in_memory, n_jobs=1)
    key = Loop(n_resamples=0, seed=0).key
    search.minimize(objective, key)  # compiled
    begin = time.perf_counter()
    search.minimize(objective, key)
    once = time.perf_counter() - begin
    pairs = getattr(measure, "estimator", "ul") != "ul"
    growth = (len(labels) / len(rows)) ** (2 if pairs else 1)
    centres = 4 if reference.name == "stacked" else 1
    return once * growth * centres * n_resamples


def _enough(n_resamples: int, alpha: float, n_measures: int) -> int:
    """As many resamples as a clear rejection needs once p-values are adjusted; a warning if more."""
    # So many that the smallest p-value, adjusted, has its whole Monte Carlo interval below alpha.
    least = n_resamples = check_integer(n_resamples, "n_resamples", 1)
    while n_measures * pvalues.interval(0, least)[1] > alpha:
        least += 1
    if n_resamples < least:
        several = f", adjusted for {n_measures} measures" if n_measures > 1 else ""
        warn(
            f"{n_resamples} resamples cannot decide at {alpha:g}{several}; {least} are run instead."
        )
    return least


def _question(name: Any) -> str:
    if not isinstance(name, str) or name not in QUESTIONS:
        raise unknown("question", name, QUESTIONS)
    return name


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
    if not isinstance(probs, Mapping) or not probs:
        return False
    return all(isinstance(v, ClassifierSet) or np.ndim(v) == 3 for v in probs.values())


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
    from hullcal.progress import reporting

    with reporting(progress, "tests") as report:
        yield lambda _, done, total: None if report is None else report(int(done), int(total))


def _within(report: Progress, name: Any) -> Progress:
    return lambda what, done, total: report(f"{name}: {what}", done, total)


def _part_of(
    progress: Progress, what: str, before: float, work: float, total: float
) -> Callable[[int, int], None]:
    """What tells the progress of one test as a part of all."""
    return lambda done, _: progress(what, before + work * done, total)


def _folders(journal: str | Path | None, tests: Sequence[_Test]) -> list[Path | None]:
    """A folder for the journal of each test; tests of one name are numbered."""
    if journal is None:
        return [None] * len(tests)
    place = check_folder(journal, "journal")
    names: list[str] = []
    for test in tests:
        name = str(test).replace(", ", "-")
        earlier = sum(other.partition(".")[0] == name for other in names)
        names.append(f"{name}.{earlier + 1}" if earlier else name)
    return [place / name for name in names]


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """The three questions about one set, and their answers.

    Attributes
    ----------
    data : LabelledSet
        The set and its labels, wherever they are.
    answers : dict of str to Answer
        By question, in the order "average", "calibrated", "truth".
    effect : Effect or None
        How far average and best combination are from calibrated; None beyond memory.
    """

    data: LabelledSet
    answers: dict[str, Answer]
    effect: Effect | None

    @property
    def average(self) -> Answer | None:
        """Is the plain average calibrated? None if not asked."""
        return self.answers.get("average")

    @property
    def calibrated(self) -> Answer | None:
        """Is some combination calibrated? The same as `average` for one classifier."""
        return self.answers.get("calibrated", self.average if self.data.n_members == 1 else None)

    @property
    def truth(self) -> Answer | None:
        """Does the hull contain the truth?"""
        return self.answers.get("truth")

    @property
    def results(self) -> tuple[Tested, ...]:
        """All tests, question by question."""
        return tuple(result for answer in self.answers.values() for result in answer.results)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most important first."""
        return advice(self.answers, self.effect)

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

    @cached_property
    def sizes(self) -> uncertainty.Sizes:
        """How large the set is."""
        return uncertainty.summary(self.classifiers)

    @property
    def weights(self) -> Floats:
        """The best combination by the first measure; else the likeliest, or that of the average."""
        for question in ("calibrated", "truth"):
            if question in self.answers:
                return self.answers[question].results[0].weights
        return np.full(self.data.n_members, 1.0 / self.data.n_members)

    def notes(self) -> list[str]:
        """What to know beside the numbers; if not of all tests, of which."""
        said: dict[str, list[str]] = {}
        for question, answer in self.answers.items():
            for result in answer.results:
                for note in result.notes:
                    if note.code == "stopped":  # as asked, and the number of resamples tells
                        continue
                    said.setdefault(note.text, []).append(f"{question}, {measure_in_words(result)}")
        return [
            note if len(who) == len(self.results) else f"{'; '.join(who)}: {note}"
            for note, who in said.items()
        ]

    def asked(self, question: str) -> str:
        """A question in words."""
        one = self.data.n_members == 1
        return ONE_CLASSIFIER[question] if one else QUESTIONS[question]

    def table(self) -> str:
        """Questions, p-values and headlines, a line each."""
        rows = [
            [self.asked(name), f"p = {answer.pvalue:.3g}", answer.headline]
            for name, answer in self.answers.items()
        ]
        return in_columns(rows)

    def summary(self) -> str:
        """The data, the table with a sentence for each question, and what to do next."""
        width = max(len(self.asked(name)) for name in self.answers)
        lines = [self.described, ""]
        for name, answer in self.answers.items():
            head, claim, size = answer.verdict
            lines += [f"{self.asked(name):<{width}}  {head}", *_wrapped(size or claim, "    ")]
        lines.append("Next steps" if len(self.advice) > 1 else "Next step")
        for number, step in enumerate(self.advice, 1):
            lines += _wrapped(step, f"  {number}. ")
        return "\n".join(lines)

    @property
    def described(self) -> str:
        """Rows, members and classes."""
        n = self.data.n_members
        return f"{self.data.n_samples:,} rows, {n} member{'s' * (n > 1)}, {self.data.n_classes} classes"

    def to_dict(self) -> dict[str, Any]:
        """Answers, effect and advice as plain values; the results are in `to_json`."""
        return {
            "answers": [answer.to_dict() for answer in self.answers.values()],
            "effect": None if self.effect is None else self.effect.to_dict(),
            "advice": list(self.advice),
        }

    def to_json(self) -> str:
        """All of it as strict JSON, with the results as `hullcal.io.to_json` writes them."""
        return io.to_json(self.results, assessment=self.to_dict())

    def to_csv(self) -> str:
        """The results as CSV, a line for each test, with adjusted p-values."""
        said = [each for answer in self.answers.values() for each in answer.tests]
        return io.to_csv(self.results, answers=said)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        heads = ", ".join(f"{name}: {answer.headline}" for name, answer in self.answers.items())
        return f"<Assessment of {self.described}; {heads}>"

    def _repr_html_(self) -> str:
        facts = {self.asked(name): answer.text for name, answer in self.answers.items()}
        facts |= {f"Next step {i}": step for i, step in enumerate(self.advice, 1)}
        drawing = ""
        if self.data.classifiers is not None and self.data.classifiers.probs.size <= _MANY:
            weights = self.weights if self.data.n_members > 1 else None
            drawing = as_svg(reliability(self.classifiers, self.labels, weights=weights))
        return in_html(self.described, facts) + f'<div style="max-width:22em">{drawing}</div>'


class Assessments(dict[str, Assessment]):
    """Assessments of several sets by name, with one table for all."""

    def table(self) -> str:
        """A line for each set, a column for each question: headline and p-value."""
        asked = {question for each in self.values() for question in each.answers}
        questions = [question for question in QUESTIONS if question in asked]
        rows = [["", *(HEADS[question] for question in questions)]]
        for name, each in self.items():
            cells = (each.answers.get(question) for question in questions)
            words = (f"{a.headline} (p = {a.pvalue:.3g})" if a else "" for a in cells)
            rows.append([name, *words])
        return in_columns(rows)

    def __str__(self) -> str:
        parts = [f"{name}\n{each.summary()}" for name, each in self.items()]
        return "\n\n".join([self.table(), *parts])

    def __repr__(self) -> str:
        return f"<Assessments of {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return "".join(f"{in_html(name, {})}{each._repr_html_()}" for name, each in self.items())


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=" " * len(indent))


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Cells under each other, to the left."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
