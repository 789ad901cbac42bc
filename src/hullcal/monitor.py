"""The e-process of "the hull contains the truth", batch by batch, for as long as data come."""

from __future__ import annotations

import copy
import io
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import pvalues
from hullcal._validation import InvalidInputError, check_fraction, check_integer, refusal
from hullcal.alternatives import alternatives, n_coefficients
from hullcal.evidence import Predictors, log_mean, next_fit
from hullcal.io.array_files import ARRAYS
from hullcal.io.source import Source
from hullcal.io.writing import write_atomic
from hullcal.likelihood import fit_mixture
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import ArrayPasses, Cases
from hullcal.sets import ClassifierSet
from hullcal.words import (
    IMPOSSIBLE,
    NOT_REJECTED,
    REJECTED,
    direction,
    evalue_in_words,
    has_direction,
    impossible_in_words,
    in_html,
    plural,
)

#: Latest rows that predictors are fitted on: many, which tell small deviations, and few, which soon tell
#: a change; and rows between two fits at most.
_RECENT, _LATEST, _BETWEEN = 4096, 512, 256
#: Starting times that the detector of a late change keeps, and Newton steps a batch for each.
_STARTS, _STEPS = 12, 4
_FORMAT = 3


@dataclass(frozen=True)
class _Start:
    """An e-process from one row on: where it began, its numerators before, its last weights."""

    row: int
    before: Floats
    weights: Floats
    log_evalue: float = 0.0


class Monitor:
    r"""Watch whether labels still follow some combination of the members.

    After any batch, whenever one looks, the e-value is at least 1/alpha with probability alpha at
    most if the labels of all rows so far follow one fixed combination of the members. Batches can be of
    any number of rows from one on.

    Parameters
    ----------
    n_members, n_classes : int
    alpha : float
        Level of the decision.
    alarm_every : int
        While labels follow one combination, false alarms of a late change are at least so many
        batches apart on average.

    Attributes
    ----------
    history : list of (n_rows, log_evalue, log_detector)
        After each batch.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(n_members=4, n_classes=3)
    >>> for day in range(5):
    ...     members = rng.dirichlet([1, 1, 1], size=(200, 4))
    ...     labels = [rng.choice(3, p=p.mean(axis=0)) for p in members]
    ...     monitor.update(members, labels)
    >>> monitor.n_rows, monitor.rejected
    (1000, False)
    """

    def __init__(
        self, *, n_members: int, n_classes: int, alpha: float = 0.05, alarm_every: int = 1000
    ) -> None:
        self.n_members = check_integer(n_members, "n_members", 1)
        self.n_classes = check_integer(n_classes, "n_classes", 2)
        self.alpha = check_fraction(alpha, "alpha")
        self.alarm_every = check_integer(alarm_every, "alarm_every", 2)
        self._names: dict[str, tuple[Any, ...] | None] = {}
        self._probs = np.empty((0, self.n_members, self.n_classes))
        self._labels = np.empty(0, dtype=np.int32)
        self.reset()

    def reset(self) -> None:
        """Begin evidence anew, as after a change that is known; fitted predictors are kept as a start."""
        self.history: list[tuple[int, float, float]] = []
        # The members' probabilities of all labels since: all that the denominator needs.
        self._chances = np.empty((0, self.n_members))
        self._numerators = np.zeros(2 * len(alternatives(self.n_classes)))
        self._starts = [self._started()]
        self._seen = len(self._labels)
        self._fit()

    def update(
        self,
        probs: ArrayLike | ClassifierSet,
        labels: ArrayLike,
        *,
        from_logits: bool = False,
        from_log: bool = False,
        normalize: bool = False,
    ) -> None:
        """Add a batch of rows in the order in which they came.

        Parameters
        ----------
        probs : array-like of shape (n_rows, n_members, n_classes)
        labels : array-like of shape (n_rows,)
        from_logits, from_log : bool
            What `probs` holds instead of probabilities.
        normalize : bool
            Whether rows are divided by their sums, however far from 1.

        Raises
        ------
        InvalidInputError
            If the batch is not valid or of another shape; the monitor is then as it was.
        """
        batch, truth = ClassifierSet.with_labels(
            probs, labels, from_logits=from_logits, from_log=from_log, normalize=normalize
        )
        shape = batch.probs.shape[1:]
        if shape != (self.n_members, self.n_classes):
            rule = f"must have shape (n_rows, {self.n_members}, {self.n_classes})"
            repair = "Watch another set of classifiers with another Monitor."
            raise refusal("probs", rule, f"shape {batch.probs.shape}", repair)
        named = {"classes": batch.classes, "members": batch.members}
        for name, own in named.items():
            known = self._names.get(name)
            if None not in (own, known) and own != known:
                rule = f"must have the {name} of the batches before, {known!r:.200}, in that order"
                raise refusal("probs", rule, f"{own!r:.200}", "Bring them into that order.")
        # In a copy that shares what does not change: whatever interrupts leaves this one as it was.
        after = copy.copy(self)
        after._names = {name: own or self._names.get(name) for name, own in named.items()}
        after._add(np.asarray(batch.probs, dtype=np.float64), truth)
        vars(self).update(vars(after))

    def _add(self, members: Floats, labels: NDArray[np.int32]) -> None:
        begin = 0
        while begin < len(labels):
            # Predicted by what was fitted on earlier rows only.
            end = min(len(labels), begin + self._due - self._seen)
            probs, truth = members[begin:end], labels[begin:end]
            rows = ArrayPasses(probs, truth)
            scores = [each.log_scores(rows, [0], [len(truth)]) for each in self._predictors]
            self._numerators = self._numerators + np.concatenate(scores)[:, 0]
            self._probs = np.concatenate([self._probs, probs])[-_RECENT:]
            self._labels = np.concatenate([self._labels, truth])[-_RECENT:]
            self._seen += end - begin
            if self._seen == self._due:
                self._fit()
            begin = end
        # Rows sum to exactly 1: over many of them, what rounding has left adds up.
        chances = members[np.arange(len(labels)), :, labels] / members.sum(axis=2)
        self._chances = np.concatenate([self._chances, chances])
        self._starts = [self._weighed(start) for start in self._starts]
        total = np.logaddexp.reduce([start.log_evalue for start in self._starts])
        self.history = [*self.history, (self.n_rows, self.log_evalue, float(total))]
        self._starts = [*_thinned(self._starts), self._started()]

    def _started(self) -> _Start:
        """An e-process that begins now."""
        mean = np.full(self.n_members, 1.0 / self.n_members)
        return _Start(self.n_rows, self._numerators, mean)

    def _fit(self) -> None:
        """Fit the predictors to the latest rows, and say when to do so again."""
        recent = len(self._labels)
        sizes = recent, min(recent, _LATEST)
        fitted = {}
        for n in set(sizes):
            rows = ArrayPasses(self._probs[recent - n :], self._labels[recent - n :])
            fitted[n] = Predictors.fitted(rows, [n if n >= next_fit(0) else 0])
        self._predictors = [fitted[n] for n in sizes]
        self._due = min(next_fit(self._seen), self._seen + _BETWEEN)

    def _weighed(self, start: _Start) -> _Start:
        """An e-process up to date: its bound is certified, however few steps are taken."""
        chances = self._chances[start.row :]
        if not chances.any(axis=1).all():
            return replace(start, log_evalue=math.inf)
        # Of two classes: the label, and all others.
        members = np.stack([chances, 1.0 - chances], axis=2)
        passes = ArrayPasses(members, np.zeros(len(chances), dtype=np.int32))
        # A little of each member, so that labels unlike the earlier ones are possible.
        begin = 0.999 * start.weights + 0.001 / self.n_members
        best = fit_mixture(passes, Cases.data(), begin[np.newaxis], _STEPS)
        found = log_mean(self._numerators - start.before - best.upper_bounds[0])
        return replace(start, weights=best.weights[0], log_evalue=found)

    @property
    def n_rows(self) -> int:
        """Rows since the last reset."""
        return len(self._chances)

    @property
    def log_evalue(self) -> float:
        """Natural logarithm of `evalue`."""
        return self._starts[0].log_evalue

    @property
    def _largest(self) -> float:
        """The largest log e-value so far."""
        return max([0.0, *(each[1] for each in self.history)])

    @property
    def evalue(self) -> float:
        """Evidence of all rows so far that no combination of the members is the truth."""
        return pvalues.evalue(self.log_evalue)

    @property
    def pvalue(self) -> float:
        """The smallest 1/e so far; valid whenever one looks."""
        return math.exp(-self._largest)

    @property
    def rejected(self) -> bool:
        """Whether the e-value has ever reached 1/alpha."""
        return self._largest >= -math.log(self.alpha)

    @property
    def detector(self) -> float:
        """Sum of e-values over starting times, for a truth that leaves the hull late."""
        return pvalues.evalue(self.history[-1][2]) if self.history else 1.0

    @property
    def alarm(self) -> bool:
        """Whether the detector has ever reached `alarm_every`: the truth may have left the hull."""
        return any(each[2] >= math.log(self.alarm_every) for each in self.history)

    @property
    def temperature(self) -> float:
        """What the likeliest combination's logits should be divided by, from the latest rows."""
        return self._predictors[0].temperature

    @property
    def impossible(self) -> tuple[int, ...]:
        """Rows, counted from 0 since the last reset, whose label no member thought possible."""
        return tuple(np.flatnonzero(~self._chances.any(axis=1)).tolist())

    def __repr__(self) -> str:
        alarm = "; alarm: the truth may have left the hull" if self.alarm else ""
        return f"Monitor: {self._evidence}: {self._headline.lower()}{alarm}"

    def __str__(self) -> str:
        return "\n".join([repr(self), *(f"{name}: {words}" for name, words in self._facts.items())])

    def _repr_html_(self) -> str:
        word = IMPOSSIBLE if self.impossible else self._headline
        return in_html(f"{word}: {self._evidence}", self._facts, word)

    @property
    def _headline(self) -> str:
        return REJECTED if self.rejected else NOT_REJECTED

    @property
    def _evidence(self) -> str:
        """The e-value beside its threshold."""
        n, batches = self.n_rows, len(self.history)
        now = evalue_in_words(self.log_evalue)
        if self.log_evalue < -math.log(self.alpha) <= self._largest:
            now += f", once {evalue_in_words(self._largest)}"
        return (
            f"{n} {plural(n, 'row')} in {batches} {plural(batches, 'batch')}, e-value {now} "
            f"({1 / self.alpha:g} or more rejects at {self.alpha:g})"
        )

    @property
    def _facts(self) -> dict[str, str]:
        """Why the e-value is infinite, and what to do next; nothing while there is no evidence."""
        if not (self.rejected or self.alarm):
            return {}
        facts = {}
        whose = "the classifier" if self.n_members == 1 else "the best combination"
        if rows := self.impossible:
            counted = "counted from 0 since the last reset"
            facts["Impossible"] = f"{impossible_in_words(len(rows), rows)}, {counted}"
            step = "check these labels"
        elif has_direction(self.temperature):
            step = (
                f"{whose} of the latest rows is {direction(self.temperature)}; divide its logits by "
                f"{self.temperature:.2f}"
            )
        else:
            step = f"test the latest rows; {whose} is neither over- nor underconfident there"
        facts["Next step"] = f"{step}. Once the cause is mended, restart the evidence with `reset`."
        return facts

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all; an existing state is replaced."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **self._state())
        write_atomic(path, buffer.getvalue(), force=True)

    def _state(self) -> dict[str, Any]:
        numbers = self.alpha, self.alarm_every, self._seen, self._due, self._largest
        predictors = [
            np.concatenate([each.weights, *each.coefficients], axis=1) for each in self._predictors
        ]
        starts = [[s.row, *s.before, *s.weights, s.log_evalue] for s in self._starts]
        return {
            "numbers": np.array([_FORMAT, *numbers], dtype=np.float64),
            "names": np.frombuffer(json.dumps(self._names).encode(), dtype=np.uint8),
            "recent": self._probs,
            "recent_labels": self._labels,
            "chances": self._chances,
            "numerators": self._numerators,
            "history": np.array(self.history, dtype=np.float64).reshape(-1, 3),
            "predictors": np.concatenate(predictors),
            "starts": np.array(starts, dtype=np.float64),
        }

    @classmethod
    def load(cls, path: str | Path) -> Monitor:
        """The monitor that `save` wrote; nothing is unpickled."""
        source = Source.of(path)
        source.check_kind()
        try:
            with ARRAYS[".npz"](source) as arrays:
                return cls._of({name: array().read() for name, array in arrays.items()})
        except InvalidInputError:
            raise
        except Exception as error:
            rule = "must be a file that `Monitor.save` wrote"
            raise source.refuse(rule, "something else", "Name another file.") from error

    @classmethod
    def _of(cls, state: dict[str, NDArray[Any]]) -> Monitor:
        """The monitor in this state; an error if none could have come to it."""
        form, alpha, every, seen, due, largest = state["numbers"].tolist()
        probs, labels, chances = state["recent"], state["recent_labels"], state["chances"]
        starts, history, numerators = state["starts"], state["history"], state["numerators"]
        (n_kept, n_members, n_classes), n_rows = probs.shape, len(chances)
        self = cls(n_members=n_members, n_classes=n_classes, alpha=alpha, alarm_every=int(every))
        kinds = alternatives(n_classes)
        sizes = [n_members, *(n_coefficients(kind, n_members, n_classes) for kind in kinds)]
        n = 1 + 2 * len(kinds)
        names = json.loads(state["names"].tobytes())
        self._names = {name: each and tuple(each) for name, each in names.items()}
        self._probs, self._labels = probs, labels.astype(np.int32)
        self._chances, self._numerators = chances, numerators
        self._seen, self._due = int(seen), int(due)
        self.history = [(int(n), e, d) for n, e, d in history.tolist()]
        parts = [
            np.split(each[np.newaxis], np.cumsum(sizes)[:-1], 1) for each in state["predictors"]
        ]
        self._predictors = [Predictors(weights, tuple(fitted)) for weights, *fitted in parts]
        self._starts = [_Start(int(s[0]), s[1:n], s[n:-1], float(s[-1])) for s in starts]
        weights = np.vstack([*(each.weights for each in self._predictors), starts[:, n:-1]])
        finite = chances, numerators, state["predictors"], starts[:, :-1]
        possible = (
            form == _FORMAT,
            labels.shape == (n_kept,) and n_kept <= _RECENT and labels.dtype.kind == "i",
            chances.shape == (n_rows, n_members) and numerators.shape == (n - 1,),
            state["predictors"].shape == (2, sum(sizes)) and starts.shape[1] == n + n_members + 1,
            starts[0, 0] == 0 and (np.diff(starts[:, 0]) > 0).all() and starts[-1, 0] <= n_rows,
            due > seen >= n_kept and largest == self._largest,
            all(np.isfinite(array).all() for array in finite),
            ((probs >= 0.0) & (probs <= 1.0 + 1e-6)).all() and (probs.sum(axis=2) > 0.5).all(),
            ((chances >= 0.0) & (chances <= 1.0 + 1e-6)).all(),
            ((labels >= 0) & (labels < n_classes)).all(),
            (weights >= 0.0).all() and np.allclose(weights.sum(axis=1), 1.0),
            not (np.isnan(history).any() or np.isnan(starts).any()),
        )
        if not all(possible):
            raise ValueError("not a state")
        return self


def _thinned(starts: list[_Start]) -> list[_Start]:
    """At most so many starts, the first among them, and the fewer the older they are.

    To leave some out only makes the detector's sum smaller.
    """
    if len(starts) <= _STARTS:
        return starts
    # The one whose neighbours are closest in proportion to their age.
    newest = starts[-1].row + 1
    ages = [newest - start.row for start in starts]
    ratios = [ages[i - 1] / ages[i + 1] for i in range(1, len(ages) - 1)]
    least = int(np.argmin(ratios)) + 1
    return starts[:least] + starts[least + 1 :]
