"""ClassifierSet: the convex hull of its members."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hullcal import _validation, hull
from hullcal.distinct import Distinct
from hullcal.notes import Note
from hullcal.words import in_html, printable

__all__ = ["ClassifierSet"]

#: Names that a notebook shows.
_SHOWN = 20


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ClassifierSet:
    """The convex hull of its members: every combination of them with non-negative weights.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        Or (N, K) for one member; a list of M arrays (N, K), or a dict of them by the members' names;
        or a data frame in wide form, with columns ``member:class``. A read-only view is kept if it can.
    classes : sequence of K hashables, optional
        Names of the classes, in the order of the last axis.
    members : sequence of M strings, optional
        Names of the members, all different.
    from_logits, from_log : bool
        What `probs` holds instead of probabilities.
    normalize : bool
        Whether rows are divided by their sums, however far from 1.

    Examples
    --------
    >>> pair = ClassifierSet([[[1.0, 0.0], [0.5, 0.5]]], members=["sure", "coin"])
    >>> pair.mix([0.5, 0.5])
    array([[0.75, 0.25]])
    >>> pair.contains([0.75, 0.25]), pair.subset(["sure"]).contains([0.75, 0.25])
    (array([ True]), array([False]))
    """

    probs: NDArray[Any]
    classes: tuple[Hashable, ...] | None
    members: tuple[str, ...] | None
    notes: tuple[Note, ...]  # what was done to the input on the way in

    def __init__(
        self,
        probs: Any,
        *,
        classes: Any = None,
        members: Any = None,
        from_logits: bool = False,
        from_log: bool = False,
        normalize: bool = False,
    ) -> None:
        checked = _validation.check_probs(
            probs, from_logits=from_logits, from_log=from_log, normalize=normalize
        )
        self._fill(checked, classes, members)

    def _fill(self, checked: _validation.Predictions, classes: Any, members: Any = None) -> Self:
        members = checked.members if members is None else members
        vars(self).update(
            probs=checked.probs,
            classes=_validation.settled_classes(checked, classes),
            members=_validation.check_members(members, checked.probs.shape[1]),
            notes=checked.notes,
        )
        return self

    @classmethod
    def of(cls, probs: Any, *, classes: Any = None, **flags: bool) -> ClassifierSet:
        """Give a set as it is, unchecked, and make one of anything else (same options)."""
        if not isinstance(probs, ClassifierSet):
            return cls(probs, classes=classes, **flags)
        known = _validation.check_classes(classes, probs.n_classes)
        settled = {"classes": classes is not None and known != probs.classes, **flags}
        for name in (name for name, contradicts in settled.items() if contradicts):
            came, repair = f"another `{name}`", f"Pass it to `ClassifierSet(probs, {name}=...)`."
            raise _validation.refusal(name, "is settled when a ClassifierSet is made", came, repair)
        return probs

    @classmethod
    def with_labels(
        cls, probs: Any, labels: Any, *, members: Any = None, **options: Any
    ) -> tuple[ClassifierSet, NDArray[np.int32]]:
        """Do as `of`, and validate labels beside the predictions, which tells more of both."""
        if isinstance(probs, ClassifierSet):
            return cls.of(probs, members=members, **options), probs.labels(labels)
        checked, truth = _validation.check_set_and_labels(probs, labels, **options)
        return cls.__new__(cls)._fill(checked, options.get("classes"), members), truth

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return len(self.probs)

    @property
    def n_members(self) -> int:
        """Number of classifiers, M."""
        return int(self.probs.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.probs.shape[2])

    def mix(self, weights: Any) -> NDArray[np.float64]:
        """Add the members with these weights in float64; a vertex is its member bit for bit.

        Members are added in an order taken from their predictions, copies as one, and as differences
        from that of the largest weight, as searches do: where members agree, nothing is rounded.
        """
        own = _validation.check_weights(weights, self.n_members)
        merged = self.distinct.merge(own)
        used = np.flatnonzero(merged)
        if (own == own[0]).all():
            return self.mean()
        largest = int(np.argmax(merged))
        base = self._member(largest)
        mixed = base.copy()
        equal = bool((merged[used] == merged[largest]).all())
        for m in used[used != largest]:
            mixed += self._member(m) if equal else merged[m] * (self._member(m) - base)
        return mixed / len(used) if equal else mixed

    def _member(self, m: int) -> NDArray[np.float64]:
        """A distinct member's predictions."""
        return self.probs[:, self.distinct.positions[m], :].astype(np.float64)

    @cached_property
    def distinct(self) -> Distinct:
        """The members that differ, in an order of their own."""
        return Distinct.of(self.probs)

    def mean(self) -> NDArray[np.float64]:
        """Give the predictions of the average member, (n_samples, n_classes)."""
        total = np.zeros((self.n_samples, self.n_classes))
        for m, copies in enumerate(self.distinct.copies):
            total += copies * self._member(m)
        return total / self.n_members  # of votes, the shares to the last bit

    def combined(self, weights: Any = None) -> ClassifierSet:
        """The combination with these weights, or the plain average, as a set of one classifier.

        Its rows are left as they are: the sums of float16 or float32 predictions are not to be mended.
        """
        mixed = self.mean() if weights is None else self.mix(weights)
        mixed.flags.writeable = False
        kept = _validation.Predictions(mixed[:, np.newaxis])
        return ClassifierSet.__new__(ClassifierSet)._fill(kept, self.classes)

    def subset(self, which: Any) -> ClassifierSet:
        """Keep some members, in the order given: by number, by name, a slice or a mask."""
        chosen = _validation.check_selection(which, self.n_members, self.members)
        names = None if self.members is None else tuple(self.members[m] for m in chosen)
        probs = self.probs[:, chosen, :]
        probs.flags.writeable = False
        kept = _validation.Predictions(probs, self.notes)
        return ClassifierSet.__new__(ClassifierSet)._fill(kept, self.classes, names)

    def named_by_text(self) -> ClassifierSet:
        """The set itself if no class is named by a number, else one whose names are their digits.

        Such a set takes numbers for positions; one with numeric names would take them for names.
        """
        if self.classes is None or all(isinstance(name, str) for name in self.classes):
            return self
        kept = _validation.Predictions(self.probs, self.notes)
        names = tuple(map(str, self.classes))
        if len(set(names)) < len(names):  # as those of 1 and "1"
            names = tuple(map(repr, self.classes))
        return ClassifierSet.__new__(ClassifierSet)._fill(kept, names, self.members)

    def contains(self, point: Any) -> NDArray[np.bool_]:
        """Tell for each instance whether its hull contains a point.

        Parameters
        ----------
        point : array-like of shape (n_samples, n_classes)
            One distribution per instance, or (n_classes,), the same for all.

        Returns
        -------
        ndarray of bool and shape (n_samples,)
            True where a combination comes within 1e-9 of the point in total variation (1e-6 if
            either is less than float64).
        """
        points = _validation.check_points(point, self.n_samples, self.n_classes)
        return hull.in_hull(self.probs, points)

    def accuracy(self, labels: Any, *, weights: Any = None) -> Any:
        """Share of rows whose most probable class is the label.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
        weights : None, "mean" or array-like of shape (n_members,)
            None scores each member, "mean" their average, weights that combination.

        Returns
        -------
        ndarray of shape (n_members,), or float
        """
        return self._score(accuracy, labels, weights)

    def log_score(self, labels: Any, *, weights: Any = None) -> Any:
        """Mean of -log p(label) in nats, less is better; parameters as for `accuracy`."""
        return self._score(log_score, labels, weights)

    def brier_score(self, labels: Any, *, weights: Any = None) -> Any:
        """Mean squared distance to the one-hot label, less is better; parameters as for `accuracy`."""
        return self._score(brier_score, labels, weights)

    def _score(self, score: Callable[..., float], labels: Any, weights: Any) -> Any:
        truth = self.labels(labels)
        if weights is None:
            return np.array([score(self.probs[:, m, :], truth) for m in range(self.n_members)])
        mean = isinstance(weights, str) and weights == "mean"
        return score(self.mean() if mean else self.mix(weights), truth)

    def labels(self, y: Any) -> NDArray[np.int32]:
        """Give labels as class positions, checked against the samples and classes of this set."""
        sizes = {"n_samples": self.n_samples, "n_classes": self.n_classes}
        return _validation.check_labels(y, **sizes, classes=self.classes)

    def _repr_html_(self) -> str:
        facts = {"rows": f"{self.n_samples:,}"}
        for name, n, listed in (
            ("members", self.n_members, self.members),
            ("classes", self.n_classes, self.classes),
        ):
            shown = ", ".join(printable(str(each)) for each in (listed or ())[:_SHOWN])
            more = ", …" * (listed is not None and len(listed) > _SHOWN)
            facts[name] = f"{n:,}" + f": {shown}{more}" * bool(listed)
        return in_html("Classifier set", facts)

    def __repr__(self) -> str:
        n, m, k = self.probs.shape
        return f"ClassifierSet(n_samples={n}, n_members={m}, n_classes={k})"


def accuracy(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Share of rows whose most probable class, the lowest of several, is the label."""
    return float((probs.argmax(axis=1) == labels).mean())


def log_score(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Mean of -log p(label), in nats; infinite if some label has probability 0."""
    chances = probs[np.arange(len(labels)), labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return float(-np.log(chances).mean())


def brier_score(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Mean over the rows of the squared distance between prediction and one-hot label."""
    errors = probs.astype(np.float64)
    errors[np.arange(len(labels)), labels] -= 1.0
    return float((errors**2).sum(axis=1).mean())
