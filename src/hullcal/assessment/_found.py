"""What several tests of one set say together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import measures, uncertainty
from hullcal._validation import InvalidInputError
from hullcal.nulls.maximized import Maximized
from hullcal.objectives.opening import LabelledSet
from hullcal.results import CalibrationTestResult, adjust
from hullcal.sets import ClassifierSet
from hullcal.verdicts import Answer, Heard, answer, heard, sentence


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
        if name in measures.available():
            measure = replace(measures.resolve(name), **settings)
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
