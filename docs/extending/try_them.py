"""Both parts in one test: a measure and a search from outside hullcal."""

from own_measure import InTheLarge
from own_search import BestPair
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import hullcal as hc

X, y = load_wine(return_X_y=True)
forest = RandomForestClassifier(5, min_samples_leaf=5, random_state=0).fit(
    X[::2], y[::2]
)
trees, labels = hc.ensembles.members_from(forest, X[1::2], y[1::2])

measure = InTheLarge()
print(f"the average: {measure(trees.mean(), labels):.4f}")
for null in ("recentered", "stacked"):
    result = hc.calibration_test(
        trees,
        labels,
        measure=measure,
        minimizer=BestPair(),
        null=null,
        n_resamples=99,
        rng=0,
    )
    print(f"{result.measure} by {result.minimizer}, {null}: p = {result.pvalue:.3g}")
print(f"members used: {int((result.weights > 0).sum())}")
