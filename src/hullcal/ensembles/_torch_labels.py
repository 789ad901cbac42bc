"""Which labels came with the rows, and do they stay the same from pass to pass?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_labels, label_array, refusal

__all__ = ["Truth"]

_ORDER = "must give the same rows in the same order in every pass"


class Truth:
    """Labels of all rows: gathered in the first pass, compared in those that follow."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.int64] | None] = []
        self._settled = False
        self.n_samples = 0
        self.labels: NDArray[np.int64] | None = None

    def take(self, labels: Any, start: int, n_rows: int, n_classes: int, member: int) -> None:
        """Take the labels of one batch.

        Parameters
        ----------
        labels : array-like or None
        start, n_rows : int
            The rows of this batch.
        n_classes : int
        member : int
            Whose pass this is, for messages.
        """
        given = None if labels is None else _checked(labels, start, n_rows, n_classes)
        if not self._settled:
            self._gather(given, start)
        elif start + n_rows > self.n_samples:
            came = (
                f"more than the {self.n_samples} rows of the first in the pass of member {member}"
            )
            raise refusal("loader", _ORDER, came, "Pass a loader without randomness.")
        elif (given is None) != (self.labels is None):
            came = f"labels in some passes only (member {member})"
            raise refusal("loader", _ORDER, came, "Give labels always or never.")
        elif given is not None and self.labels is not None:
            self._compare(given, self.labels[start : start + n_rows], start, member)

    def _gather(self, given: NDArray[np.int64] | None, start: int) -> None:
        if self._pieces and (given is None) != (self._pieces[0] is None):
            came = f"a change at row {start}"
            rule = "must give labels with every batch or with none"
            raise refusal("loader", rule, came, "Label every batch.")
        self._pieces.append(given)

    @staticmethod
    def _compare(
        given: NDArray[np.int64], before: NDArray[np.int64], start: int, member: int
    ) -> None:
        if not np.array_equal(given, before):
            row = start + int(np.argmax(given != before))
            came = f"another label in row {row} in the pass of member {member}"
            repair = "Pass a loader without shuffling; a dataset must not draw its rows at random."
            raise refusal("loader", _ORDER, came, repair)

    def end_pass(self, n_rows: int, member: int) -> None:
        """Close a pass of so many rows."""
        if self._settled:
            if n_rows != self.n_samples:
                came = f"{n_rows} rows instead of {self.n_samples} in the pass of member {member}"
                raise refusal("loader", _ORDER, came, "Pass a loader without randomness.")
            return
        if n_rows == 0:
            raise refusal("loader", "must give at least one row", "none", "Check the dataset.")
        pieces = [piece for piece in self._pieces if piece is not None]
        self.labels = np.concatenate(pieces) if pieces else None
        self.n_samples, self._settled = n_rows, True
        self._pieces.clear()


def _checked(labels: Any, start: int, n_rows: int, n_classes: int) -> NDArray[np.int64]:
    """Class positions, from positions, booleans, whole floats or one-hot rows."""
    array = label_array(labels)
    if array.ndim == 0 or len(array) != n_rows:
        came = f"{n_rows} rows of outputs for labels of shape {array.shape} in row {start} on"
        repair = "A batch is (inputs, labels); the model's first axis is the rows."
        raise refusal("loader", "must give one label for each row of outputs", came, repair)
    if n_rows == 0:
        return np.empty(0, dtype=np.int64)
    try:
        positions = check_labels(array, n_samples=n_rows, n_classes=n_classes)
    except InvalidInputError as error:  # it counts rows from the start of the batch
        raise InvalidInputError(f"In the batch from row {start} on: {error}") from error
    return positions.astype(np.int64)
