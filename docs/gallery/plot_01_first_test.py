"""
Does the hull of a random forest contain a calibrated classifier?
=================================================================

A forest is a set of classifiers: its trees. Their average is what ``predict_proba`` gives, but
every other combination of the trees is a classifier too. The test asks whether one of them is
calibrated.
"""

# %%
# Half of the handwritten digits fit a forest, the other half are predicted by every tree alone.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X, y)
trees, labels = hc.ensembles.members_from(forest, X_new, y_new)

# %%
# One call, and the answer in words.

result = hc.calibration_test(trees, labels, n_resamples=199, rng=0)
print(result)

# %%
# The statistic is the mean of the calibration errors at which the search ended, from several starts. The
# bars are the values it takes if the hypothesis is true.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
hc.plots.null_distribution(result, ax=left)
hc.plots.weights(result, ax=right)
plt.show()

# %%
# **Answer.** Not rejected: the statistic lies among the values that a calibrated hull would give. That
# does not prove calibration, since a small error takes more rows to detect. The average of the trees,
# which is what ``predict_proba`` gives, is a different classifier, and the test of it alone rejects it:

average = hc.calibration_test(trees.mean(), labels, n_resamples=199, rng=0)
print(f"{average.hypothesis}: p = {average.pvalue:.3g}")
