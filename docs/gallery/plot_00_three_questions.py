"""
Which of two ensembles can be trusted, and what repairs it?
===========================================================

``hc.assess`` asks three questions of each set: is the plain average calibrated, is some
combination, does the hull contain the truth? It also says how large the error is, and
what to do next.
"""

# %%
# A forest, and logistic regressions on bootstrap samples; half of the digits fit them.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_digits(return_X_y=True)
X, X_new, y, labels = train_test_split(
    X / 16, y, test_size=0.5, random_state=0, stratify=y
)
models = {
    "forest": RandomForestClassifier(10, min_samples_leaf=5, random_state=0),
    "linear": BaggingClassifier(
        LogisticRegression(C=1e4, max_iter=2000), random_state=0
    ),
}
sets = {
    name: hc.ensembles.members_from(model.fit(X, y), X_new)
    for name, model in models.items()
}

# %%
# One call for both sets, one table.

found = hc.assess(sets, labels, n_resamples=99, rng=0)
print(found.table())

# %%
# The size of the error of each average, and the first of the next steps.

for name, each in found.items():
    average = each.effect.average
    print(f"{name}: {100 * average.error:.1f} points, accuracy {average.accuracy:.1%}")
    print(f"  {each.advice[0]}")

# %%
# Reliability of both averages. Points above the diagonal are underconfident.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
for ax, (name, each) in zip(axes, sets.items(), strict=True):
    hc.plots.reliability(each, labels, ax=ax)
    ax.set_xlabel(f"probability of the predicted class, {name}")
plt.show()

# %%
# **Answer.** The linear models, as they are: there is no evidence against their average. The
# forest is underconfident by a quarter, and one temperature repairs most of that. Labels follow
# no combination in either set, so the spread of the members is not shown to contain the true
# probabilities.
