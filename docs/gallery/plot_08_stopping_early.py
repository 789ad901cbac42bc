"""
How many resamples does an answer take?
=======================================

A p-value near 1 is clear after a few resamples; only a small one needs many. ``stop_after`` ends
the run once so many null values have reached the statistic, and the p-value stays valid (Besag and
Clifford 1991).
"""

# %%
# The trees of a forest; and their average, flattened more and more, so that all members claim less
# than they achieve.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X, y)
trees, labels = hc.ensembles.members_from(forest, X_new, y_new)
powers = np.stack([trees.mean() ** power for power in (0.8, 0.6, 0.4)], axis=1)
sets = {"forest": trees.probs, "flattened": powers / powers.sum(axis=2, keepdims=True)}

# %%
# Each set twice: all resamples, and stopped after ten exceedances.

full, stopped = {}, {}
for name, probs in sets.items():
    full[name] = hc.calibration_test(probs, labels, n_resamples=399, rng=0)
    stopped[name] = hc.calibration_test(
        probs, labels, n_resamples=399, stop_after=10, rng=0
    )
    print(
        f"{name}: p = {full[name].pvalue:.3g} of {full[name].n_resamples} resamples, "
        f"p = {stopped[name].pvalue:.3g} of {stopped[name].n_resamples}"
    )

# %%
# The p-value as it would have been after each resample; a cross where the run was stopped.

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, result in full.items():
    reached = np.cumsum(result.null_distribution >= result.statistic)
    counts = np.arange(1, result.n_resamples + 1)
    (line,) = ax.loglog(counts, (1 + reached) / (1 + counts), label=name)
    end = stopped[name]
    ax.plot([end.n_resamples], [end.pvalue], "x", color=line.get_color(), markersize=10)
ax.axhline(0.05, color="black", linestyle=":", label="level .05")
ax.set_xlabel("resamples")
ax.set_ylabel("p-value")
ax.legend()
plt.show()

# %%
# **Answer.** It depends on the answer. Where there is no evidence against the set the run ends
# early, with the same decision. Where there is, hardly a null value reaches the statistic and all
# resamples are run, which is where they are worth their time.
