"""
Do the stages of boosting make a useful set?
============================================

The confidence of gradient boosting grows stage by stage. Its stages are classifiers: early ones are
underconfident, late ones often overconfident. Does some combination of them do better than the last?
"""

# %%
# Eight stages of one boosted model that tells malignant tumours from benign ones.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(
    X[:, :10], y, test_size=0.5, random_state=0, stratify=y
)
boosted = GradientBoostingClassifier(
    n_estimators=100, max_depth=2, learning_rate=0.1, random_state=0
).fit(X, y)
stages, labels = hc.ensembles.members_from(boosted, X_new, y_new, n_stages=8)
print(stages.members)

# %%
# The test of the set, and of its first and last stage by themselves.

result = hc.calibration_test(stages, labels, n_resamples=299, rng=0)
print(f"{result.hypothesis}: p = {result.pvalue:.3g}")
ends = {}
for name in (stages.members[0], stages.members[-1]):
    alone = stages.subset([name])
    ends[name] = hc.calibration_test(alone, labels, n_resamples=299, rng=0)
    surplus = alone.mean().max(axis=1).mean() - alone.accuracy(labels, weights="mean")
    print(
        f"{name}: p = {ends[name].pvalue:.3g}, confidence less accuracy {surplus:+.3f}"
    )

# %%
# Which stages the best combination takes, and what it buys.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
hc.plots.weights(result, ax=left)
hc.plots.average_against_weighted(stages, labels, result.weights, ax=right)
plt.show()

# %%
# **Answer.** Yes. The first of these stages is underconfident and the last one overconfident, and
# each alone is rejected. The set is not: between them lie combinations that fit. The weights are
# fitted to these rows; expect worse calibration on new data.
