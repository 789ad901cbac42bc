"""
Is the set larger than it has to be?
====================================

The set of all classifiers contains the truth and says nothing. A good set is valid and small. Trees
join a forest one by one: does the answer of the test change before the set has grown large?
"""

# %%
# The trees of a forest that reads digits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
forest = RandomForestClassifier(12, min_samples_leaf=5, random_state=0).fit(X, y)
trees, labels = hc.ensembles.members_from(forest, X_new, y_new)

# %%
# The first M trees, tested and measured.

counts = [1, 2, 4, 6, 8, 12]
pvalues, sizes = [], []
for n_members in counts:
    some = trees.subset(range(n_members))
    pvalues.append(hc.calibration_test(some, labels, n_resamples=99, rng=0).pvalue)
    sizes.append(hc.uncertainty.summary(some))
for n_members, pvalue, size in zip(counts, pvalues, sizes, strict=True):
    print(f"{n_members:2d} trees: p = {pvalue:.3f}, TV diameter {size.tv_diameter:.3f}")

# %%
# Left: p-values and sizes by number of trees; the shaded strip lies between lower and upper
# entropy. Right: how large the set of six trees is on rows that their average gets right, and on
# those it gets wrong.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
left.semilogx(counts, pvalues, "o-", color="black", label="p-value")
left.axhline(0.05, color="black", linestyle=":", label="level .05")
left.plot(counts, [size.tv_diameter for size in sizes], "s--", label="TV diameter")
highest = np.log(trees.n_classes)
left.fill_between(
    counts,
    [size.lower_entropy / highest for size in sizes],
    [size.upper_entropy / highest for size in sizes],
    alpha=0.3,
    label="lower to upper entropy (share of log K)",
)
left.set_xticks(counts, labels=[str(count) for count in counts])
left.set_xticks([], minor=True)
left.set_xlabel("trees")
left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=7, frameon=False)
hc.plots.size_distribution(trees.subset(range(6)), labels, ax=right)
plt.show()

# %%
# **Answer.** One tree alone is rejected. From six trees on no set is; every further tree makes the
# set larger and the answer no clearer. Where the average is wrong, the set is larger: its size
# tells something about the row.
