"""Many classes: the few probabilities that a measure has to look at one by one, whatever the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal.measures import Measure
from hullcal.objectives.base import Floats

#: With fewer classes than this there is nothing to gain, and with fewer than many only in large data.
_SOME_CLASSES, MANY_CLASSES, _LARGE = 10, 50, 20_000
#: Nor where more than this share of the probabilities has to be looked at.
_WORTH_IT = 0.4
#: Probabilities examined at a time.
_EXAMINED = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Pairs of a row and a class, sorted by row and then by class, and what the members say there.

    `members` is (n_members, 1, n_entries), followed, for a measure that wants `rests`, by one more
    column a class: the sum over the rows that have no entry there.
    """

    measure: Measure
    members: Floats
    parameters: Floats
    rows: NDArray[np.int32]
    classes: NDArray[np.int32]
    n_classes: int

    @classmethod
    def of(cls, members: Floats, measure: Measure) -> Entries | None:
        """The entries of packed members, or None where they would not spare much."""
        n_members, n_classes, n_samples = members.shape
        if n_classes < (_SOME_CLASSES if n_classes * n_samples >= _LARGE else MANY_CLASSES):
            return None
        over = measure.over_entries(n_classes, n_samples)
        if over is None:
            return None
        size = max(1, _EXAMINED // (n_members * n_classes))
        found, most = [], _WORTH_IT * n_classes * n_samples
        for first in range(0, n_samples, size):
            matters = measure.matters(members[:, :, first : first + size])
            some = np.argwhere(matters.T).astype(np.int32)
            some[:, 0] += first
            found.append(some)
            most -= len(some)
            if most < 0:
                return None
        rows, classes = (np.ascontiguousarray(part) for part in np.concatenate(found).T)
        if len(rows) == 0:
            # Sums are all that is needed; a needless entry spares every loop the case of none.
            rows = classes = np.zeros(1, dtype=np.int32)
        columns = members[:, classes, rows]
        if "rests" in measure.traits:
            columns = np.hstack([columns, members.sum(axis=2) - _sums(columns, classes, n_classes)])
        return cls(
            measure=over,
            members=np.ascontiguousarray(columns[:, np.newaxis]),
            parameters=measure.entry_parameters(rows, classes, n_samples),
            rows=rows,
            classes=classes,
            n_classes=n_classes,
        )

    @property
    def of_draws(self) -> Callable[..., None] | None:
        """The measure's loop over rows that were drawn several times, if it has one.

        Copies of a row share its entries but not its label:

            of_draws(mixed, classes, bounds, ends, labels, edges, state)

        adds to `state` what `accumulate` would. Row n has the entries from bounds[n] to bounds[n + 1]
        and the labels from ends[n] to ends[n + 1]; rests follow the entries in `mixed`.
        """
        return getattr(self.measure, "of_draws", None)

    @property
    def has_rests(self) -> bool:
        """Whether sums over the rows without an entry follow the entries."""
        return int(self.members.shape[2]) > len(self.rows)

    def positions(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Where the entries of the labels (n_cases, n_samples) are.

        A label without one is in the column of its class's rest, if there are rests, else nowhere: -1.
        """
        keys = self.rows.astype(np.int64) * self.n_classes + self.classes
        wanted = np.arange(labels.shape[1]) * self.n_classes + labels
        places = np.searchsorted(keys, wanted)
        there = keys[np.minimum(places, len(keys) - 1)] == wanted
        elsewhere = len(keys) + labels if self.has_rests else -1
        return np.where(there, places, elsewhere).astype(np.int32)

    def weighted(self, members: Floats, row_weights: Floats) -> Iterator[Floats]:
        """`members` of these entries under each weighting of the rows: what changes is the rests.

        The sums of all rows take one pass over the predictions for eight weightings; sums of a
        weighting do not depend on its neighbours.
        """
        n_members, n_classes, n_samples = members.shape
        n_entries = len(self.rows)
        flat = members.reshape(n_members * n_classes, n_samples)
        for first in range(0, len(row_weights), _TOGETHER):
            some = row_weights[first : first + _TOGETHER]
            columns = np.zeros((n_samples, _TOGETHER))
            columns[:, : len(some)] = some.T
            totals = np.empty((n_members * n_classes, _TOGETHER))
            _weighted_sums(flat, columns, totals)
            for weights, total in zip(some, totals.T, strict=False):
                one = self.members.copy()
                own = one[:, 0, :n_entries] * weights[self.rows]
                rests = total.reshape(n_members, n_classes) - _sums(own, self.classes, n_classes)
                one[:, 0, n_entries:] = rests
                yield one


def _sums(columns: Floats, classes: NDArray[np.int32], n_classes: int) -> Floats:
    """Sums of the entries of each class, (n_members, n_classes)."""
    return np.array([np.bincount(classes, column, minlength=n_classes) for column in columns])


#: Weightings served by one pass.
_TOGETHER = 8


@compiled
def _weighted_sums(members, weights, out):  # type: ignore[no-untyped-def]
    """out[r, c] = sum over n of members[r, n] * weights[n, c], in the order of n, for eight columns."""
    for r in range(members.shape[0]):
        s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for n in range(members.shape[1]):
            p = members[r, n]
            s0 += p * weights[n, 0]
            s1 += p * weights[n, 1]
            s2 += p * weights[n, 2]
            s3 += p * weights[n, 3]
            s4 += p * weights[n, 4]
            s5 += p * weights[n, 5]
            s6 += p * weights[n, 6]
            s7 += p * weights[n, 7]
        sums = out[r]
        sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3
        sums[4], sums[5], sums[6], sums[7] = s4, s5, s6, s7
