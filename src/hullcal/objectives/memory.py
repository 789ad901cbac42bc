"""An objective in memory: predictions packed in float64, rows last, for compiled searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.drawn_rows import draw_counts
from hullcal._compiled.jit import F1, F2, F3, H2, I2, INT, L1, OF_LABELLINGS, compiled, driver
from hullcal._compiled.mixing import (
    SAME,
    blend,
    cumulate,
    draw_labels,
    draw_of_many,
    end_of_group,
    maximum_likelihood,
    maximum_likelihoods,
    mix,
    turned,
)
from hullcal.measures import Measure
from hullcal.objectives.base import (
    EM_ITERATIONS,
    EM_TOLERANCE,
    READ_AT_ONCE,
    START_ITERATIONS,
    Draw,
    Floats,
    Integers,
    Objective,
    fingerprint_of,
)
from hullcal.objectives.entries import Entries
from hullcal.objectives.lines_2_4_5 import lines_2_4_5, work_of_passes
from hullcal.simplex import settled

#: Bytes of working memory that need no thought.
_ROOM = 2**27
#: Fewest replicates searched at a time by a measure that takes labellings together, the labels that
#: these may have, and what their number is rounded up to, so that whole vectors of them are compared.
_LABELLINGS, _LABELS, _VECTOR = 128, 2**22, 32
#: As many as 16 bits can tell apart.
_MOST_CLASSES = 2**16
#: From so many classes on it pays to find a label without looking at all of them.
_MANY_CLASSES = 50


@dataclass(eq=False)
class InMemory(Objective):
    """`members` is (n_members, n_classes, n_samples), labels and row weights (n_cases, n_samples)."""

    measure: Measure
    copies: Integers
    members: Floats
    labels: NDArray[np.int32]
    row_weights: Floats
    parameters: Floats
    offset: Floats
    #: Where there are many classes: all that the measure has to look at.
    entries: Entries | None = None
    #: What has all predictions, if this one has but a few entries of them.
    whole: InMemory | None = None
    #: Whether cases are labellings drawn for the same rows, each of which counts once.
    labels_drawn: bool = False

    def __post_init__(self) -> None:
        self.n_members, self.n_classes, self.n_samples = self.members.shape
        self.n_cases = len(self.labels)
        read = self.members if self.entries is None else self.entries.members
        #: Probabilities that one evaluation reads.
        self.size = int(read[0].size)
        state = self.measure.state_size(self.n_classes)
        #: Floats of state and of scratch that the measure's loop needs.
        self.sizes = state, self.measure.scratch_size(self.n_classes, self.n_samples)

    @property
    def loop(self) -> tuple[Any, ...]:
        """The measure's loop and all that it reads, as drivers take them."""
        data = self.members, self.labels, self.row_weights, self.parameters, self.offset
        return self.measure.value, *data, *self.sizes

    def together(self, n_evaluations: int | None) -> int:
        if n_evaluations is None:
            return max(1, READ_AT_ONCE // (work_of_passes(self) or self.members.size))
        fewest = 1
        if self.measure.of_labellings(self.n_classes):
            fewest = max(1, min(_LABELLINGS, _LABELS // self.n_samples))
        return max(fewest, READ_AT_ONCE // (self.size * n_evaluations))

    def threads(self, wanted: int) -> int:
        """As many threads as their mixed predictions leave room for in memory.

        A search holds two such; where they are large, those of all threads together stay within
        a quarter of the members' own size.
        """
        needed = 2 * 8 * self.size
        if wanted * needed <= _ROOM:
            return wanted
        return max(1, min(wanted, int(self.members.nbytes) // (4 * needed)))

    def parts(self) -> list[InMemory]:
        """This one itself, unless its measure can do with a few entries of the predictions."""
        entries = self.entries
        if entries is None or (
            self._of_labellings is not None and not entries.measure.of_labellings(self.n_classes)
        ):
            return [self]
        condensed = replace(
            self,
            measure=entries.measure,
            members=entries.members,
            labels=entries.positions(self.labels),
            parameters=entries.parameters,
            entries=None,
            whole=self,
        )
        if not entries.has_rests or self._rows_count_once:
            return [condensed]
        return [
            replace(condensed.only(slice(case, case + 1)), members=members)
            for case, members in enumerate(entries.weighted(self.members, self.row_weights))
        ]

    def only(self, cases: slice) -> InMemory:
        """Some of the cases."""
        whole = None if self.whole is None else self.whole.only(cases)
        labels, row_weights = self.labels[cases], self.row_weights[cases]
        return replace(self, labels=labels, row_weights=row_weights, whole=whole)

    @property
    def _rows_count_once(self) -> bool:
        return bool((self.row_weights == 1.0).all())

    @cached_property
    def _of_labellings(self) -> Callable[..., None] | None:
        """The measure's loop over many labellings, if it has one and cases are that."""
        few = (self.whole or self).n_classes <= _MOST_CLASSES
        possible = self.labels_drawn and not self.offset.any() and few
        return self.measure.of_labellings(self.n_classes) if possible else None

    @cached_property
    def _labels_by_row(self) -> NDArray[np.uint16]:
        """Classes of the labels, (n_samples, n_cases rounded up to whole vectors)."""
        labels = (self.whole or self).labels
        n_columns = -(-len(labels) // _VECTOR) * _VECTOR
        by_row = np.zeros((labels.shape[1], n_columns), dtype=np.uint16)
        by_row[:, : len(labels)] = labels.T
        return by_row

    def moves(self, bases: Floats, cases: Integers, amounts: Floats) -> Floats:
        out = np.empty((len(bases), max(1, amounts.shape[1])))
        if self._of_labellings is not None:
            data = self.members, self._labels_by_row, self.parameters
            _evaluate_labellings(self._of_labellings, *data, bases, cases, amounts, out)
            return out
        keeps_places = int("places" in self.measure.traits)
        _evaluate(*self.loop, keeps_places, bases, cases, amounts, out)
        return out

    def at(self, weights: Floats) -> Floats:
        objective, entries = self, self.entries
        if entries is not None and entries.has_rests and not self._rows_count_once:
            # Rows have to be weighted and added up: of one combination, not of all members.
            own = np.empty((1, *entries.members.shape[1:]))
            mix(entries.members, weights, own[0])
            combined = replace(entries, members=own)
            objective = replace(self, members=self.mixed(weights)[np.newaxis], entries=combined)
            weights = np.ones(1)
        found = []
        for part in objective.parts():
            # Mixed once for all cases.
            alone = replace(part, members=part.mixed(weights)[np.newaxis])
            found.append(alone.values(np.ones((part.n_cases, 1)), np.arange(part.n_cases)))
        return np.concatenate(found)

    def mixed(self, weights: Floats) -> Floats:
        """The combination itself, (n_classes, n_samples)."""
        out = np.empty(self.members.shape[1:])
        mix(self.members, weights, out)
        return out

    def likeliest(self) -> Floats:
        if self.whole is not None:
            return self.whole.likeliest()
        weights = np.empty((self.n_cases, self.n_members))
        data = self.members, self.labels, self.row_weights
        maximum_likelihoods(*data, START_ITERATIONS, weights)
        return settled(weights)[:, np.newaxis]

    def maximum_likelihood(self) -> Floats:
        weights = np.empty(self.n_members)
        first = self.members, self.labels[0], self.row_weights[0]
        maximum_likelihood(*first, EM_ITERATIONS, EM_TOLERANCE, weights)
        return weights

    def impossible(self) -> int:
        chances = self.members[:, self.labels[0], np.arange(self.n_samples)]
        return int((chances.max(axis=0) == 0.0).sum())

    def fingerprint(self) -> Floats:
        return fingerprint_of(self.members.transpose(2, 0, 1), self.labels[0], 0).ravel()

    def recentered(self, weights: Floats) -> InMemory:
        mixed = self.mixed(weights)
        return replace(self, offset=self.measure.offset_at(mixed, self.labels[0], self.parameters))

    def with_labels(self, labels: NDArray[np.int32]) -> InMemory:
        """The same rows under other labellings."""
        return replace(self, labels=labels, row_weights=np.ones(labels.shape), labels_drawn=True)

    def with_row_weights(self, row_weights: Floats) -> InMemory:
        """The first case's labels under other weightings of the rows."""
        labels = np.repeat(self.labels[:1], len(row_weights), axis=0)
        return replace(self, labels=labels, row_weights=row_weights)

    def drawing_labels(self, weights: Floats, key: NDArray[np.uint64]) -> Draw:
        cumulative = np.empty(self.members.shape[1:])
        cumulate(self.mixed(weights), cumulative)
        loop: Callable[..., None] = draw_labels
        sums: tuple[Floats, ...] = (cumulative,)
        if self.n_classes >= _MANY_CLASSES:
            loop, sums = draw_of_many, turned(cumulative)
        del cumulative

        def draw(first: int, last: int) -> InMemory:
            labels = np.empty((last - first, self.n_samples), dtype=np.int32)
            loop(*sums, key, first, labels)
            return self.with_labels(labels)

        return draw

    def drawing_rows(self, key: NDArray[np.uint64]) -> Draw:
        def draw(first: int, last: int) -> InMemory:
            counts = np.zeros((last - first, self.n_samples))
            draw_counts(key, first, self.measure.rows_per_unit, counts)
            return self.with_row_weights(counts)

        return draw

    resampled = lines_2_4_5


@driver(F3, I2, F2, F1, F1, INT, INT, INT, F2, L1, F2, F2)
def _evaluate(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size, keeps_places,
    bases, cases, amounts, out,
):  # fmt: skip
    n_members, n_classes, n_samples = members.shape
    flat_members = members.reshape(n_members, n_classes * n_samples)
    base, trial = np.empty(n_classes * n_samples), np.empty(n_classes * n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    n_moves = amounts.shape[1]
    first = 0
    while first < bases.shape[0]:
        last = end_of_group(bases, amounts, first)
        mix(members, bases[first], base.reshape(n_classes, n_samples))
        for c in range(max(1, n_moves)):
            mixed = base
            if n_moves > 0:
                amount = amounts[first, c]
                if amount == 0.0:
                    out[first:last, c] = np.inf
                    continue
                blend(base, flat_members, np.uint64(c // 2), amount, trial)
                mixed = trial
            classes = mixed.reshape(n_classes, n_samples)
            for b in range(first, last):
                case = cases[b]
                if keeps_places != 0 and b > first:
                    scratch[-1] = SAME
                out[b, c] = value(
                    classes, labels[case], row_weights[case],
                    parameters, offset, state, scratch,
                )  # fmt: skip
        first = last


@driver(F3, H2, F1, F2, L1, F2, F2, loop=OF_LABELLINGS)
def _evaluate_labellings(  # type: ignore[no-untyped-def]
    of_labellings, members, drawn, parameters, bases, cases, amounts, out
):
    """The same by a loop that takes all labellings at a combination together."""
    n_members, n_classes, n_columns = members.shape
    n_samples = drawn.shape[0]
    flat_members = members.reshape(n_members, n_classes * n_columns)
    base, trial = np.empty(n_classes * n_columns), np.empty(n_classes * n_columns)
    n_moves = amounts.shape[1]
    first = 0
    while first < bases.shape[0]:
        last = end_of_group(bases, amounts, first)
        n_cases = last - first
        own = drawn
        if not _in_order(cases, first, last) or n_cases < drawn.shape[1] - _VECTOR:
            width = n_cases if n_cases == 1 else -(-n_cases // _VECTOR) * _VECTOR
            own = np.zeros((n_samples, width), dtype=np.uint16)
            for n in range(n_samples):
                for b in range(n_cases):
                    own[n, b] = drawn[n, cases[first + b]]
        values = np.empty(own.shape[1])
        mix(members, bases[first], base.reshape(n_classes, n_columns))
        for c in range(max(1, n_moves)):
            mixed = base
            if n_moves > 0:
                amount = amounts[first, c]
                if amount == 0.0:
                    out[first:last, c] = np.inf
                    continue
                blend(base, flat_members, np.uint64(c // 2), amount, trial)
                mixed = trial
            of_labellings(mixed.reshape(n_classes, n_columns), own, parameters, values)
            for b in range(n_cases):
                out[first + b, c] = values[b]
        first = last


@compiled
def _in_order(cases, first, last):  # type: ignore[no-untyped-def]
    """Whether these are the first cases, one by one."""
    others = 0
    for b in range(first, last):
        others += int(cases[b] != b - first)
    return others == 0
