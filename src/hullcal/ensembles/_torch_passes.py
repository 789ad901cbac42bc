"""How do members pass over the rows, and where do their predictions meet?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import BLOCK_BYTES, InvalidInputError, refusal
from hullcal.ensembles._torch_batches import check_loader, length_or_none, split_batch
from hullcal.ensembles._torch_labels import Truth
from hullcal.ensembles._torch_members import Group, Member
from hullcal.ensembles._torch_modes import forked
from hullcal.ensembles._torch_outputs import Reading
from hullcal.ensembles._torch_storage import Destination, GrowingArray

__all__ = ["Predictions", "Run"]


class Predictions(NamedTuple):
    """What members say of the rows of a loader; it unpacks as ``probs, labels = ...``.

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes)
        Rows sum to 1. A memory map if it was written to a file.
    labels : ndarray of int64 and shape (n_samples,), or None
        None if the loader gives inputs only.
    """

    probs: NDArray[Any]
    labels: NDArray[np.int64] | None


class Run:
    """Passes of all members over one loader.

    Parameters
    ----------
    loader : iterable of batches
    n_members : int or None
        None if it is not known before the last one came.
    reading : Reading
        From outputs to probabilities.
    destination : Destination
        Where predictions go.
    parameter : str
        The parameter that holds the models, for messages.
    """

    def __init__(
        self,
        loader: Any,
        n_members: int | None,
        reading: Reading,
        destination: Destination,
        parameter: str,
    ) -> None:
        if n_members == 0:
            raise _no_member(parameter)
        self._loader, self._n_members = loader, n_members
        self._reading, self._destination, self._parameter = reading, destination, parameter
        self._truth = Truth()
        self._arrays: list[GrowingArray] = []
        self._n_classes = 0
        self._n_written = 0  # rows of all members, where their number is not known
        self._n_ticks, self._n_batches = 0, length_or_none(loader)

    def gather(
        self, groups: Iterator[Group], *, one_pass: bool, report: Callable[[int, int], None] | None
    ) -> Predictions:
        """Let every group pass over the loader, then give predictions and labels.

        Parameters
        ----------
        groups : iterator of Group
        one_pass : bool
            Whether there is only one group.
        report : callable or None
            Told (done, total) in batches times members.
        """
        check_loader(self._loader, several_passes=not one_pass)
        done = 0
        try:
            for group in groups:
                with group as members, forked([member.device for member in members]):
                    self._check_number(done + len(members), at_least=True)
                    self._pass(members, done, report)
                    done += len(members)
                del group, members  # the next model is made when this one is gone
            self._check_number(done)
            return Predictions(self._finish(done), self._truth.labels)
        finally:
            for array in self._arrays:
                array.discard()

    def _check_number(self, came: int, *, at_least: bool = False) -> None:
        """Refuse a sequence that is not as long as it says; more may follow if `at_least`."""
        if came == 0:
            raise _no_member(self._parameter)
        expected = came if self._n_members is None else self._n_members
        if came > expected or (came < expected and not at_least):
            rule = f"must hold {expected} members, as its length says"
            raise refusal(self._parameter, rule, str(came), "Pass a list or an iterator.")

    def _pass(
        self, members: Sequence[Member], done: int, report: Callable[[int, int], None] | None
    ) -> None:
        start = batches = 0
        for batch in self._loader:
            inputs, labels = split_batch(batch)
            n_rows = -1
            for number, member in enumerate(members, done):
                rows = self._reading.rows(member.outputs(inputs, start), number, start)
                n_rows = len(rows) if n_rows < 0 else n_rows
                self._check_shape(rows, n_rows, number, start)
                if number == done:  # before anything is written for them
                    self._truth.take(labels, start, n_rows, self._n_classes, number)
                self._write(rows, number, start)
                self._n_ticks += 1
            start, batches = start + n_rows, batches + 1
            if report is not None:
                per_pass = max(batches, self._n_batches or 0)
                width = max(done + len(members), self._n_members or 0)
                report(self._n_ticks, max(self._n_ticks, per_pass * width))
        self._n_batches = batches
        self._truth.end_pass(start, done)

    def _check_shape(self, rows: NDArray[Any], n_rows: int, number: int, start: int) -> None:
        self._n_classes = self._n_classes or rows.shape[1]
        if rows.shape != (n_rows, self._n_classes):
            rule = "must give one row of outputs per instance and the same classes always"
            came = f"shape {rows.shape} from member {number} in row {start} on"
            repair = f"Here ({n_rows}, {self._n_classes}) was expected."
            raise refusal(self._parameter, rule, came, repair)

    def _write(self, rows: NDArray[Any], number: int, start: int) -> None:
        """Put rows in their place; members of unknown number are laid one after another."""
        if not self._arrays:
            spool = self._n_members is None
            tail = (self._n_members or 1, self._n_classes)
            self._arrays.append(self._destination.array(tail, spool=spool))
            sampler = getattr(self._loader, "sampler", None)
            self._arrays[0].reserve(length_or_none(sampler) or 0)  # a hint, right or wrong
        place, column = (self._n_written, 0) if self._n_members is None else (start, number)
        self._arrays[0].reserve(place + len(rows))
        self._arrays[0].array[place : place + len(rows), column] = rows
        self._n_written += len(rows)

    def _finish(self, n_members: int) -> NDArray[Any]:
        n_samples = self._truth.n_samples
        if self._n_members is None:
            one_after_another = self._arrays[0]
            self._arrays.append(self._destination.array((n_members, self._n_classes)))
            self._arrays[1].reserve(n_samples)
            shape = (n_members, n_samples, self._n_classes)
            laid = one_after_another.array[: n_members * n_samples, 0].reshape(shape)
            step = max(1, BLOCK_BYTES // (n_members * self._n_classes * laid.itemsize))
            for a in range(0, n_samples, step):
                self._arrays[1].array[a : a + step] = laid[:, a : a + step].swapaxes(0, 1)
        return self._arrays[-1].finish(n_samples)


def _no_member(parameter: str) -> InvalidInputError:
    return refusal(parameter, "must hold at least one member", "none", "Pass one or more.")
