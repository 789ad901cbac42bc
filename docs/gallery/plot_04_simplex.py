"""
What does the search see?
=========================

The weights of three members are a point in a triangle, and so are the probabilities of three
classes. The first triangle is where the search walks; the second is where one row of the data
lives.
"""

# %%
# Three classifiers that do not agree, on the three sorts of wine.

import matplotlib.pyplot as plt
import mpltern  # noqa: F401  (it teaches matplotlib to draw triangles)
import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import hullcal as hc

X, y = load_wine(return_X_y=True)
X = X[:, :3] / X[:, :3].max(axis=0)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
models = {
    "logistic": LogisticRegression().fit(X, y),
    "Bayes": GaussianNB().fit(X, y),
    "neighbours": KNeighborsClassifier(5).fit(X, y),
}
wines, labels = hc.ensembles.members_from(models, X_new, y_new)

# %%
# The measure at every point of a grid of weights, and the point that the search finds.

measure = hc.ConfidenceECE(n_bins=5)
grid = np.array([(i, j, 30 - i - j) for i in range(31) for j in range(31 - i)]) / 30
values = np.array([measure(wines.mix(weights), labels) for weights in grid])
found = hc.minimize(wines, labels, measure=measure, rng=0)
print(found)
print(f"smallest value on the grid: {values.min():.6g}")

# %%
# Left: the measure over the weights, dark where it is small. Right: the three members of the first
# row, their hull, and the combination that the search chose.

figure = plt.figure(figsize=(9, 4.4))
left = figure.add_subplot(1, 2, 1, projection="ternary")
colours = left.tripcolor(*grid.T, values)
left.plot(
    *[[weight] for weight in found.weights],
    "w*",
    markersize=12,
    markeredgecolor="black",
)
left.set_tlabel(wines.members[0])
left.set_llabel(wines.members[1])
left.set_rlabel(wines.members[2])
figure.colorbar(
    colours, ax=left, location="bottom", shrink=0.7, pad=0.2, label="confidence ECE"
)
figure.subplots_adjust(left=0.07, right=0.93, bottom=0.16, top=0.76, wspace=0.45)
right = figure.add_subplot(1, 2, 2, projection="ternary")
hc.plots.simplex(wines, weights=found.weights, ax=right)
plt.show()

# %%
# **Answer.** A valley with a rough floor: the measure jumps wherever a row changes its bin or its
# predicted class, so no gradient leads to the lowest point. The star is the point found by moves
# towards members and away from them, and no point of the grid is better.
