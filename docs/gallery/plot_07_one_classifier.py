"""
Is this one classifier calibrated?
==================================

A set of one is a classifier, and the classical tests are for it. They look at different things, so
they need not agree.
"""

# %%
# Naive Bayes multiplies probabilities as if features were independent. Logistic regression does
# not.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hullcal as hc

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, labels = train_test_split(
    X[:, :4], y, test_size=0.5, random_state=0, stratify=y
)
models = {
    "naive Bayes": GaussianNB().fit(X, y),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
}

# %%
# The resampling test of Vaicenavicius et al. with two measures, and the kernel test of Widmann et
# al. (Hosmer and Lemeshow's own test takes its p-value from a χ² approximation, which is poor where
# cells expect few rows, and ``hosmer_lemeshow`` warns of it; resampling the same statistic needs no
# approximation.)

pvalues = {}
for name, model in models.items():
    probs = model.predict_proba(X_new)
    pvalues[name] = {
        "confidence ECE": hc.classical.resampling_test(probs, labels, rng=0).pvalue,
        "Hosmer-Lemeshow": hc.classical.resampling_test(
            probs, labels, measure=hc.HosmerLemeshow(n_bins=5), rng=0
        ).pvalue,
        "kernel": hc.classical.skce_test(
            probs, labels, estimator="uq", method="bootstrap", rng=0
        ).pvalue,
    }
    said = ", ".join(f"{test} {pvalue:.3g}" for test, pvalue in pvalues[name].items())
    print(f"{name}: {said}")

# %%
# Reliability of the predicted class, one classifier each.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    hc.plots.reliability(model.predict_proba(X_new), labels, n_bins=5, ax=ax)
    ax.set_xlabel(f"probability of the predicted class, {name}")
plt.show()

# %%
# **Answer.** Naive Bayes is not: every test rejects it. Its points lie below the diagonal, as those
# of an overconfident classifier do. Against the logistic model nothing is found.
