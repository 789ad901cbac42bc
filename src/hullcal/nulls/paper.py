"""Lines 1 to 5 of Algorithm 1, to the letter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import F1, F3, INT, L1, L2, U1, compiled, driver
from hullcal._compiled.mixing import cumulate, invert, mix
from hullcal._compiled.resampling import draw_rows, draw_rows_in_any_order, leaf_draws
from hullcal._compiled.streams import LABELS, ROWS, uniform, uniform_weights
from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Problem
from hullcal.engines.objective import READ_AT_ONCE
from hullcal.engines.streamed import Streamed
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import (
    CALIBRATED,
    Floats,
    Found,
    Null,
    Outcome,
    Replicates,
    Resampling,
    found,
)
from hullcal.nulls._passes import evaluate, work_of


@dataclass(frozen=True, kw_only=True)
class Paper(Null):
    """The null of Mortier et al. (2023).

    A replicate draws rows with replacement (line 2), weights uniformly from the simplex (line 3) and
    labels from that combination (line 4), and evaluates g there without a search (line 5). Since
    line 7 minimises and line 5 does not, the test is very conservative, the more so the better the
    search; nothing is proven about its level. It is broken where cells are many beside the rows, as
    in `ece_cwise` with 100 classes and 100 rows: copies of a row share their cells, so that replicates
    have smaller statistics than the data.

    With ``rows="permuted"`` line 2 only permutes the rows, as the authors' scripts do.
    """

    name: ClassVar[str] = "paper"
    hypothesis: ClassVar[str] = CALIBRATED
    can_stop: ClassVar[bool] = True
    draws_rows: ClassVar[bool] = True
    rows: Literal["resampled", "permuted"] = "resampled"

    def __post_init__(self) -> None:
        if self.rows not in ("resampled", "permuted"):
            raise InvalidInputError(
                f'`rows` must be "resampled" or "permuted"; got {self.rows!r:.80}. Pass one of them.'
            )

    def needs_predictions(self, measure: Measure) -> bool:
        # Neighbours in the sample come from anywhere in the data.
        return measure.order_matters or measure.rows_per_unit > 1

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        replicates = Replicates(minimizer, resampling)
        # Line 7 comes last, unless lines 1 to 5 may stop early or be known, and have to know it then.
        first = resampling.stop_after is not None or resampling.journal is not None
        observed = replicates.observed(objective) if first else None
        statistic = None if observed is None else float(observed.values[0])
        lines, together = self._lines_1_to_5(problem, resampling)

        def block(first: int, last: int) -> Found:
            return found(lines(first, last))

        distribution = replicates.run(block, objective, statistic=statistic, together=together)
        if observed is None:
            observed = replicates.observed(objective)
        return Outcome(
            statistic=float(observed.values[0]),
            minimum=float(observed.values[0]),
            weights=observed.weights[0],
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
        )

    def _lines_1_to_5(
        self, problem: Problem, resampling: Resampling
    ) -> tuple[Callable[[int, int], Floats], int]:
        """Lines 1 to 5 for some replicates, and for how many of them at a time."""
        objective, copies, key = problem.objective, problem.distinct.copies, resampling.key
        permuted = self.rows == "permuted"
        if isinstance(objective, Streamed):

            def over_rows(first: int, last: int) -> Floats:
                weights = np.empty((last - first, objective.n_members))
                for r, d in enumerate(range(first, last)):
                    _line_3(key, d, copies, weights[r])
                replicates = np.arange(first, last)
                return objective.resampled(key, replicates, weights, permuted=permuted)

            return over_rows, _IN_A_PASS
        packed = problem.packed
        n_samples = packed.n_samples
        in_any_order = packed.measure.order_matters
        line_2 = _PERMUTE if permuted else _RESAMPLE_IN_ANY_ORDER if in_any_order else _RESAMPLE

        def draws(first: int, last: int) -> NDArray[np.int64]:
            return leaf_draws(key, np.arange(first, last), n_samples)

        def in_passes(first: int, last: int) -> Floats:
            size = (last - first, n_samples)
            rows, levels = np.empty(size, dtype=np.uint32), np.empty(size)
            weights = np.empty((last - first, packed.n_members))
            for r, from_leaves in enumerate(draws(first, last)):
                _line_2(key, first + r, line_2, from_leaves, rows[r], levels[r])
                _line_3(key, first + r, copies, weights[r])
            return evaluate(packed, weights, rows, levels)

        def one_by_one(first: int, last: int) -> Floats:
            out = np.empty(last - first)
            _lines_2_to_5(
                packed.measure.value,
                packed.members,
                copies,
                packed.parameters,
                packed.offset,
                *packed.sizes,
                key,
                first,
                line_2,
                draws(first, last),
                out,
            )
            return out

        work = work_of(packed)
        if work is not None:
            return in_passes, max(1, READ_AT_ONCE // work)
        return one_by_one, max(1, READ_AT_ONCE // packed.members.size)


#: Replicates that a pass over large data serves.
_IN_A_PASS = 128
#: Ways of line 2.
_RESAMPLE, _RESAMPLE_IN_ANY_ORDER, _PERMUTE = range(3)


@compiled
def _permute(key, replicate, rows):  # type: ignore[no-untyped-def]
    """Fisher and Yates's shuffle of all rows."""
    for n in range(rows.shape[0]):
        rows[n] = n
    for n in range(rows.shape[0] - 1, 0, -1):
        other = int(uniform(key, ROWS, replicate, n, 1) * (n + 1))
        rows[n], rows[other] = rows[other], rows[n]


@compiled
def _line_2(key, d, how, draws, rows, levels):  # type: ignore[no-untyped-def]
    """Rows of replicate d, with the uniform levels of the labels that line 4 will give them."""
    n_samples = rows.shape[0]
    if how == _PERMUTE:
        _permute(key, d, rows)
    elif how == _RESAMPLE_IN_ANY_ORDER:
        draw_rows_in_any_order(key, d, rows)
    else:
        draw_rows(key, d, draws, rows)
    # A row drawn twice is two rows: the label of its c-th copy has its own number.
    seen = np.zeros(n_samples, dtype=np.uint32)
    for n in range(n_samples):
        levels[n] = uniform(key, LABELS, d, rows[n], seen[rows[n]])
        seen[rows[n]] += np.uint32(1)


@compiled
def _line_3(key, d, copies, weights):  # type: ignore[no-untyped-def]
    """Uniform weights of replicate d. The simplex is that of all members; identical ones add up."""
    simplex = np.empty(copies.sum())
    uniform_weights(key, d, simplex)
    m = 0
    for distinct in range(copies.shape[0]):
        weights[distinct] = 0.0
        for _ in range(copies[distinct]):
            weights[distinct] += simplex[m]
            m += 1


@driver(F3, L1, F1, F1, INT, INT, U1, INT, INT, L2, F1)
def _lines_2_to_5(  # type: ignore[no-untyped-def]
    value,
    members,
    copies,
    parameters,
    offset,
    state_size,
    scratch_size,
    key,
    first,
    line_2,
    draws,
    out,
):
    n_members, n_classes, n_samples = members.shape
    mixed = np.empty((n_classes, n_samples))
    drawn = np.empty((n_classes, n_samples))
    cumulative = np.empty((n_classes, n_samples))
    weights = np.empty(n_members)
    # Unsigned, since a row is never counted from the end.
    rows = np.empty(n_samples, dtype=np.uint32)
    levels = np.empty(n_samples)
    labels = np.empty(n_samples, dtype=np.int32)
    ones = np.ones(n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    for replicate in range(out.shape[0]):
        d = first + replicate
        _line_2(key, d, line_2, draws[replicate], rows, levels)
        _line_3(key, d, copies, weights)
        mix(members, weights, mixed)
        # Line 4.
        for k in range(n_classes):
            for n in range(n_samples):
                drawn[k, n] = mixed[k, rows[n]]
        cumulate(drawn, cumulative)
        invert(cumulative, levels, labels)
        # Line 5.
        out[replicate] = value(drawn, labels, ones, parameters, offset, state, scratch)
