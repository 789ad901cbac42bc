"""
How many rows do I need?
========================

A test that does not reject may have looked at too few rows. Before labels are collected, a
simulation can say how many are needed to notice a miscalibration of a stated size.
"""

# %%
# Members: four trees that predict which tumours are benign. No labels are used from here on.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, _ = train_test_split(
    X[:, :2], y, test_size=0.6, random_state=0, stratify=y
)
forest = RandomForestClassifier(4, min_samples_leaf=10, random_state=0).fit(X, y)
trees = hc.ensembles.members_from(forest, X_new)

# %%
# The world to be noticed: the log-odds of the truth are half of those that the average of the trees
# gives, so the average is overconfident.

found = hc.simulation.power(
    trees,
    amount=2.0,
    n_samples=[50, 100, 200, 400],
    n_datasets=40,
    n_resamples=39,
    rng=0,
)
print(found.sentence())

# %%
# Dots are the shares of simulated data sets that were rejected, with Wilson's intervals.

figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
hc.plots.power_curve(found, ax=ax)
plt.show()

# %%
# **Answer.** The sentence above says it, with an interval. The test can only notice what no
# combination repairs: if another mixture of the trees repairs a part, more rows are needed.
