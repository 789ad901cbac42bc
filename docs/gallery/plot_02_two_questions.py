"""
Is a calibrated set also a true one?
====================================

*Calibrated* means: of the rows to which a combination gives 70 %, 70 % come true. *The truth*
means: labels follow the combination row by row. The second implies the first. Here is a set for
which the first holds and the second does not.
"""

# %%
# Only a simulation knows the truth. The scenario ``calibrated`` has two members: one is calibrated,
# but knows only half of what decides the label; the other knows the other half, and is
# overconfident.

import matplotlib.pyplot as plt
import numpy as np

import hullcal as hc

data = hc.simulation.scenario(
    "calibrated", n_samples=300, n_members=2, n_classes=2, rng=0
)
print(hc.simulation.HOLDS[data.name])

# %%
# A test is named by its question. Fifty data sets, and each test on each of them: two ask the first
# question, one the second.

questions = {
    "calibrated:ece_conf:recentered": "contains a calibrated classifier",
    "calibrated:ece_conf:stacked": "contains a calibrated classifier",
    "truth:ece_conf": "contains the truth",
}
grid = hc.simulation.Grid(
    scenario="calibrated",
    test=questions,
    alpha=(0.1, 0.2),
    n_samples=300,
    n_datasets=50,
    n_resamples=49,
)
study = hc.simulation.run(grid)
rates = {test: [] for test in questions}
for test, row in zip(np.repeat(list(questions), 2), study.rates(), strict=True):
    rates[test].append(row["rejection_rate"])
for test, question in questions.items():
    print(f"{test}, “{question}”: rejected at .1 and .2 in {rates[test]} of the sets")

# %%
# How p-values are distributed. If what is asked is true, the curve stays near the diagonal or below
# it.

figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
for test, pvalues in zip(questions, study.tests["pvalue"].reshape(3, 50), strict=True):
    ax.ecdf(pvalues, label=f"{test}: {questions[test]}")
ax.plot([0, 1], [0, 1], "k:", linewidth=1)
ax.set_xlabel("p-value")
ax.set_ylabel("share of data sets")
ax.legend(loc="lower right", fontsize=8)
plt.show()

# %%
# **Answer.** No. By ``recentered`` and ``stacked`` small p-values are about as frequent as they
# should be, since some combination is calibrated. By ``refit`` they are far more frequent, since no
# combination is the truth. All three are right: to report the last as "not calibrated" would be
# wrong.
