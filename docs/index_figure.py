"""Draws the figure of the first page: the forest of its example, its reliability and its test."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

FIGURE = Path(__file__).resolve().parent / "_static" / "index.svg"


def draw() -> Figure:
    """Reliability of the predicted class on the left, the null distribution on the right."""
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
    forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X, y)
    members, labels = hc.ensembles.members_from(forest, X_new, y_new)
    result = hc.calibration_test(members, labels, n_resamples=99, rng=0)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    hc.plots.reliability(members, labels, weights=result.weights, ax=left)
    hc.plots.null_distribution(result, ax=right)
    return figure


def main() -> None:
    """Write the figure, the same bytes every time."""
    with matplotlib.rc_context({"svg.hashsalt": "hullcal"}):
        draw().savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
