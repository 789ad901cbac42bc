"""Reliability diagram: does what is predicted with probability p come true as often?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import binning
from hullcal._validation import check_fraction, check_integer, check_seed, refusal, takes_rng
from hullcal.binning import ReliabilityTable
from hullcal.plots.canvas import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    PLAIN,
    SKY,
    VERMILION,
    as_typed,
    axes_or_new,
    legend_above,
)
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Most members drawn; they are chosen evenly.
_MOST_MEMBERS = 30

#: Room for the counts under the diagram, as a share of the height of the diagram.
_STRIP = 0.14


@dataclass(eq=False, repr=False, kw_only=True)
class ReliabilityDisplay:
    """A reliability diagram, used as scikit-learn's displays are; `reliability` draws the same.

    Attributes
    ----------
    members : tuple of ReliabilityTable
        Of at most 30 members, chosen evenly; none if there is only one.
    average : ReliabilityTable
    weighted : ReliabilityTable or None
    low, high : ndarray of shape (n_bins,)
        Consistency band of the weighted combination, or of the average if there is none: where the
        observed frequency of each bin would lie if its predictions were true. NaN without rows.
    confidence : float
        Share of redrawn frequencies inside the band.
    event : str
        What is predicted, ready to be drawn.
    ax_, figure_, line_ : matplotlib Axes, Figure and Line2D
        Where it was drawn last, and the curve of the weighted combination, or of the average.

    Examples
    --------
    >>> shown = ReliabilityDisplay.from_predictions([0, 1], [[0.75, 0.25], [0.75, 0.25]])
    >>> shown.line_.get_ydata(), shown.figure_ is shown.ax_.figure
    (array([0.5]), True)
    """

    members: tuple[ReliabilityTable, ...]
    average: ReliabilityTable
    weighted: ReliabilityTable | None
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float
    event: str
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)
    line_: Line2D = field(init=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | ClassifierSet,
        *,
        weights: ArrayLike | None = None,
        class_index: int | None = None,
        n_bins: int = 10,
        n_resamples: int = 200,
        confidence: float = 0.95,
        rng: int | np.random.Generator | None = 0,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """Draw the diagram of labels and predictions; parameters are those of `reliability`."""
        classifiers, truth = ClassifierSet.with_labels(y_prob, y_true)
        n_bins = check_integer(n_bins, "n_bins", 1)
        n_resamples = check_integer(n_resamples, "n_resamples", 1)
        confidence = check_fraction(confidence, "confidence")
        event = "the predicted class"
        if class_index is not None:
            class_index = check_integer(class_index, "class_index", 0)
            if class_index >= classifiers.n_classes:
                rule = f"must be less than the number of classes, {classifiers.n_classes}"
                raise refusal("class_index", rule, str(class_index), "Classes are counted from 0.")
            names = classifiers.classes or range(classifiers.n_classes)
            event = f"class {as_typed(names[class_index])}"

        def curve(probs: NDArray[Any]) -> tuple[NDArray[np.float64], ReliabilityTable]:
            """Probability of the event in each row, and how often it came true."""
            k = probs.argmax(axis=1) if class_index is None else np.full(len(probs), class_index)
            predicted = probs[np.arange(len(k)), k].astype(np.float64)
            return predicted, binning.event_table(predicted, k == truth, n_bins)

        n_members = classifiers.n_members
        shown = np.linspace(0, n_members - 1, min(n_members, _MOST_MEMBERS)).round().astype(int)
        predicted, average = curve(classifiers.mean())
        weighted = None
        if weights is not None:
            predicted, weighted = curve(classifiers.mix(weights))
        low, high = _consistency_band(predicted, n_bins, n_resamples, confidence, rng)
        members = (curve(classifiers.probs[:, m, :])[1] for m in shown if n_members > 1)
        return cls(
            members=tuple(members),
            average=average,
            weighted=weighted,
            low=low,
            high=high,
            confidence=confidence,
            event=event,
        ).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, **options: Any
    ) -> ReliabilityDisplay:
        """Draw the diagram of a fitted model and its members, as `ensembles.members_from` finds them."""
        from hullcal.ensembles import members_from

        classifiers, labels = members_from(estimator, X, y)
        return cls.from_predictions(labels, classifiers, ax=ax, **options)

    def plot(self, *, ax: Axes | None = None) -> ReliabilityDisplay:
        """Draw on `ax`, or on a new Figure."""
        lines: list[tuple[ReliabilityTable, str, dict[str, Any]]] = [
            (self.average, "average", {"color": BLUE, "linestyle": "--", "marker": "s"})
        ]
        if self.weighted is not None:
            lines.append((self.weighted, "weighted", {"color": VERMILION, "marker": "o"}))
        if not self.members:
            lines = [(self.average, "classifier", {"color": VERMILION, "marker": "o"})]
        main, name, _ = lines[-1]
        ax = axes_or_new(ax, height=3.7)
        # A box for each bin with rows, so that a gap stays a gap.
        full = main.counts > 0
        left, width = main.edges[:-1][full], np.diff(main.edges)[full]
        boxes: dict[str, Any] = {"align": "edge", "linewidth": 0.6}
        band: dict[str, Any] = {"facecolor": (SKY, 0.3), "edgecolor": SKY, "hatch": "///"}
        band["label"] = f"{100 * self.confidence:g} % band" + f" of {name}" * bool(self.members)
        ax.bar(left, (self.high - self.low)[full], width, self.low[full], **boxes, **band)
        most = main.counts.max()
        counts: dict[str, Any] = {"facecolor": PALE, "edgecolor": GREY}
        counts["label"] = f"rows per bin (tallest: {most})"
        ax.bar(left, 0.85 * _STRIP * main.counts[full] / most, width, -_STRIP, **boxes, **counts)
        ax.axhline(0.0, color=BLACK, linewidth=0.6)
        ax.plot([0, 1], [0, 1], color=BLACK, linestyle=":", linewidth=1, label="calibrated")
        # With dots, since a member with a single bin would be a line without length.
        faint: dict[str, Any] = {"color": GREY, "alpha": 0.5, "marker": ".", "markersize": 2}
        for m, member in enumerate(self.members):
            label = f"{len(self.members)} members" if m == 0 else None
            ax.plot(*member.points, label=label, linewidth=0.6, zorder=1.5, clip_on=False, **faint)
        for each, label, look in lines:
            curve = ax.plot(
                *each.points, label=label, markersize=4, zorder=3.0, clip_on=False, **look
            )
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(-_STRIP, 1.0)
        ax.set_yticks(np.arange(6) / 5)
        ax.set_xlabel(f"probability of {self.event}", **PLAIN)
        ax.set_ylabel("observed frequency")
        legend_above(ax, columns=2)
        self.ax_, self.figure_, self.line_ = ax, cast("Figure", ax.figure), curve[0]
        return self

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows: nothing if the Axes are the user's, who shows them."""
        picture = getattr(getattr(self, "ax_", None), "_repr_png_", None)
        return picture() if picture else None


def _consistency_band(
    predicted: NDArray[np.float64],
    n_bins: int,
    n_resamples: int,
    confidence: float,
    rng: int | np.random.Generator | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quantiles per bin of the frequencies of labels that are redrawn from the predictions."""
    stream = np.random.default_rng(check_seed(rng))
    index = binning.bins_of(predicted, n_bins)
    # A label drawn from the whole prediction is the event with exactly its probability.
    hits = [
        np.bincount(index, stream.random(len(index)) < predicted, minlength=n_bins)
        for _ in range(n_resamples)
    ]
    with np.errstate(invalid="ignore"):
        frequencies = np.array(hits) / np.bincount(index, minlength=n_bins)
    tail = (1.0 - confidence) / 2.0
    # These quantiles leave a new draw outside with chance 1 - confidence for any `n_resamples`
    # that is not too small; numpy's default would be too narrow.
    low, high = np.quantile(frequencies, [tail, 1.0 - tail], axis=0, method="weibull")
    return low, high


@takes_rng
def reliability(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    class_index: int | None = None,
    n_bins: int = 10,
    n_resamples: int = 200,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the reliability diagram of a set: members, average and a weighted combination.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    labels : array-like of shape (n_samples,)
    weights : array-like of shape (n_members,), optional
        Draws that combination as well, and the consistency band becomes its own.
    class_index : int, optional
        The class whose probability is drawn, from 0; the predicted class if not given.
    n_bins : int
        Bins of equal width.
    n_resamples : int
        How often labels are redrawn for the consistency band.
    confidence : float
        Share of redrawn frequencies inside the band, bin by bin.
    rng : int, numpy.random.Generator or None
        Seed of the redrawn labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Under the diagram, bars show how many rows each bin holds. One classifier is drawn once.
    """
    return ReliabilityDisplay.from_predictions(
        labels,
        probs,
        weights=weights,
        class_index=class_index,
        n_bins=n_bins,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=rng,
        ax=ax,
    ).ax_
