"""
May I bring my own measure?
===========================

Any function of predictions and labels is accepted. It is evaluated as plain Python, so it costs more
than the compiled ones; the page on extending shows how to write one that does not.
"""

# %%
# Suppose that missed tumours matter: among the rows to which the model gives a malignant tumour 20 %
# or less, how far is that probability from its frequency? A screening programme has to know.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc


def error_among_the_unsuspicious(probs, labels):
    """Gap among rows called benign with 80 % or more, as a share of all rows."""
    malignant = probs[:, 0]
    calm = malignant <= 0.2
    return abs(np.where(calm, malignant - (labels == 0), 0.0).mean())


# %%
# It is passed like a name. A plain function has no residual vector, so every null but
# ``recentered`` can be used.

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(
    X[:, :4], y, test_size=0.5, random_state=0, stratify=y
)
forest = RandomForestClassifier(5, min_samples_leaf=15, random_state=0).fit(X, y)
trees, labels = hc.ensembles.members_from(forest, X_new, y_new)
options = {"n_resamples": 99, "rng": 0}
search = hc.minimizers.Pairwise(max_evaluations=60)
own = hc.calibration_test(
    trees, labels, measure=error_among_the_unsuspicious, minimizer=search, **options
)
general = hc.calibration_test(
    trees, labels, measure="ece_cwise", minimizer=search, **options
)
print(own)

# %%
# The same question by the own measure and by a general one.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
hc.plots.null_distribution(own, ax=axes[0])
hc.plots.null_distribution(general, ax=axes[1])
plt.show()

# %%
# **Answer.** Yes. The two measures differ in what they detect, and so do the p-values.

print(f"own measure: p = {own.pvalue:.3g}; classwise ECE: p = {general.pvalue:.3g}")
