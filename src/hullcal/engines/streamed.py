"""An objective that keeps no predictions: every answer is a pass over the rows, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.engines.fingerprint import Fingerprint
from hullcal.engines.jobs import Cases, EmStep, Impossible, Job, Resampled, Residuals
from hullcal.engines.objective import (
    EM_ITERATIONS,
    EM_TOLERANCE,
    START_ITERATIONS,
    Draw,
    Objective,
)
from hullcal.measures import Measure

Floats = NDArray[np.float64]

#: Bytes of sums that one pass may return.
_SUMS = 2**27
#: Replicates searched in step: each pass over the rows serves them all.
TOGETHER = 16


class Passes(ABC):
    """Who passes over the rows: this machine's threads, or workers that hold chunks of them."""

    n_samples: int
    n_classes: int
    #: Where the distinct members stand among the user's.
    positions: NDArray[np.int64]
    #: How many times over a job's sums are held before they are added.
    n_returned: int = 1

    @abstractmethod
    def total(self, job: Job) -> Floats:
        """The job's sums over all rows."""


@dataclass(frozen=True, slots=True)
class Streamed(Objective):
    """g by passes; cases are drawn anew in each of them."""

    measure: Measure
    passes: Passes
    parameters: Floats
    offset: Floats
    cases: Cases = field(default_factory=Cases.data)

    @classmethod
    def of(cls, measure: Measure, passes: Passes) -> Streamed:
        """The data's objective, for a measure that adds up over rows."""
        parameters = measure.parameters_without_average()
        assert parameters is not None
        return cls(measure, passes, parameters, measure.no_offset(passes.n_classes))

    @property
    def n_members(self) -> int:
        return len(self.passes.positions)

    @property
    def n_classes(self) -> int:
        return self.passes.n_classes

    @property
    def n_samples(self) -> int:
        return self.passes.n_samples

    @property
    def n_cases(self) -> int:
        return len(self.cases)

    def together(self, n_evaluations: int) -> int:
        return TOGETHER

    def threads(self, wanted: int) -> int:
        return 1

    def impossible(self) -> int:
        return int(self.passes.total(Impossible(**self._common))[0, 0])

    @property
    def _common(self) -> dict[str, Any]:
        return {
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "positions": self.passes.positions,
            "rows_per_unit": self.measure.rows_per_unit,
        }

    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        return self._answered(weights, cases, np.zeros((len(weights), 0))).ravel()

    def at(self, weights: Floats) -> Floats:
        cases = np.arange(self.n_cases)
        return self.values(np.repeat(weights[np.newaxis], len(cases), axis=0), cases)

    def moves(self, bases: Floats, cases: NDArray[np.int64], amounts: Floats) -> Floats:
        values = self._answered(bases, cases, amounts)
        values[amounts == 0.0] = np.inf
        return values

    def _answered(self, bases: Floats, cases: NDArray[np.int64], amounts: Floats) -> Floats:
        """Values at the bases, or after their moves, in as few passes as sums leave room for."""
        n_moves = max(1, amounts.shape[1])
        at_once = max(1, self._most_sums // n_moves)
        found = []
        for first in range(0, len(bases), at_once):
            here = slice(first, first + at_once)
            states = self._states(bases[here], cases[here], amounts[here])
            found.append(self._finished(states).reshape(-1, n_moves))
        return np.concatenate(found)

    @property
    def _most_sums(self) -> int:
        """How many values one pass may be asked for."""
        size = 8 * self.measure.state_size(self.n_classes) * self.passes.n_returned
        return max(1, _SUMS // size)

    def _states(self, bases: Floats, cases: NDArray[np.int64], amounts: Floats) -> Floats:
        # Only the cases that are asked for have to be drawn.
        wanted, case_of = np.unique(cases, return_inverse=True)
        job = Residuals(
            measure=self.measure,
            parameters=self.parameters,
            cases=self.cases.only(wanted),
            bases=np.ascontiguousarray(bases),
            case_of=case_of.astype(np.int64),
            amounts=np.ascontiguousarray(amounts),
            **self._common,
        )
        return self.passes.total(job)

    def _finished(self, states: Floats) -> Floats:
        finish = self.measure.finish
        assert finish is not None
        return np.array(
            [finish(state, self.offset, self.parameters, self.n_samples) for state in states]
        )

    def only(self, cases: NDArray[np.int64]) -> Streamed:
        return replace(self, cases=self.cases.only(cases))

    def resampled(
        self,
        key: NDArray[np.uint64],
        replicates: NDArray[np.int64],
        weights: Floats,
        *,
        permuted: bool = False,
    ) -> Floats:
        """Lines 2 to 5 of Algorithm 1: g of replicates, each at weights of its own."""
        found = []
        for first in range(0, len(replicates), self._most_sums):
            here = slice(first, first + self._most_sums)
            job = Resampled(
                measure=self.measure,
                parameters=self.parameters,
                key=key,
                replicates=replicates[here],
                weights=weights[here],
                permuted=permuted,
                **self._common,
            )
            found.append(self._finished(self.passes.total(job)))
        return np.concatenate(found)

    def starts(self) -> Floats:
        out = np.full((self.n_cases, 2, self.n_members), 1.0 / self.n_members)
        weights = out[:, 1].copy()
        for _ in range(START_ITERATIONS):
            weights, _, _ = self._em(weights)
        out[:, 1] = weights
        return out

    def maximum_likelihood(self) -> Floats:
        weights = np.full((1, self.n_members), 1.0 / self.n_members)
        previous = -np.inf
        first = replace(self, cases=self.cases.only(np.zeros(1, dtype=np.int64)))
        for _ in range(EM_ITERATIONS):
            better, score, total = first._em(weights)
            if total[0] == 0.0 or score[0] - previous < EM_TOLERANCE * total[0]:
                break
            weights, previous = better, score[0]
        found: Floats = weights[0]
        return found

    def _em(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights after a step of EM from these, and the log-likelihood at these."""
        sums = self.passes.total(EmStep(cases=self.cases, at=weights, **self._common))
        better = weights * sums[:, : self.n_members]
        norms = better.sum(axis=1, keepdims=True)
        better = np.where(norms > 0.0, better / np.where(norms > 0.0, norms, 1.0), weights)
        return better, sums[:, -2], sums[:, -1]

    def recentered(self, weights: Floats) -> Streamed:
        nothing = self.measure.no_offset(self.n_classes)
        data = replace(self, cases=Cases.data(), offset=nothing)
        states = data._states(weights[np.newaxis], np.zeros(1, dtype=np.int64), np.zeros((1, 0)))
        data._finished(states)
        return replace(self, offset=states[0, : len(nothing)].copy())

    def fingerprint(self) -> Floats:
        return self.passes.total(Fingerprint(**self._common)).ravel()

    def drawing_labels(self, weights: Floats, key: NDArray[np.uint64]) -> Draw:
        def draw(first: int, last: int) -> Streamed:
            return replace(self, cases=Cases.labels(weights, key, first, last))

        return draw

    def drawing_rows(self, key: NDArray[np.uint64]) -> Draw:
        def draw(first: int, last: int) -> Streamed:
            return replace(self, cases=Cases.rows(key, first, last))

        return draw
