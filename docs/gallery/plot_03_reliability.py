"""
What do weights repair?
=======================

Networks with a strong penalty are underconfident, and in an average of such networks the average is too.
A reliability diagram shows it; weights that are chosen for calibration may help. They have to be judged
on other rows.
"""

# %%
# Eight small networks, each fitted to 150 digits of its own; two for each of four penalties.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import hullcal as hc

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(
    X / 16, y, train_size=400, random_state=0, stratify=y
)
rng = np.random.default_rng(0)
members = {}
for penalty in (0.001, 1.0, 3.0, 10.0):
    for copy in range(2):
        rows = rng.choice(len(X), size=150, replace=False)
        network = MLPClassifier(
            (24,),
            alpha=penalty,
            max_iter=60,
            learning_rate_init=0.01,
            random_state=copy,
        )
        with warnings.catch_warnings():
            # They are stopped when they are good enough, before they converge.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(X[rows], y[rows])
        members[f"penalty {penalty:g}, {'ab'[copy]}"] = network
networks, labels = hc.ensembles.members_from(members, X_new, y_new)

# %%
# One half of the new rows chooses the weights, the other half judges them.

(chosen, chosen_labels), (judged, judged_labels) = hc.split(
    networks.probs, labels, rng=0
)
found = hc.minimize(chosen, chosen_labels, rng=0)
ece = hc.ConfidenceECE()
average, weighted = judged.mean(axis=1), hc.ClassifierSet(judged).mix(found.weights)
print(f"on the rows that chose:  weighted {found.value:.4f}")
print(f"on the other rows:       weighted {ece(weighted, judged_labels):.4f}")
print(f"                         average  {ece(average, judged_labels):.4f}")

# %%
# Left the average, right the weighted combination as well, both on the rows that judge. The boxes
# are where a calibrated classifier's points would lie.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.6), layout="constrained")
hc.plots.reliability(judged, judged_labels, ax=axes[0])
hc.plots.reliability(judged, judged_labels, weights=found.weights, ax=axes[1])
plt.show()

# %%
# **Answer.** The weights give a combination whose points lie near the diagonal, where those of the
# average do not, and it is the better one on new rows, too. Its error on the rows that chose the
# weights is smaller still: weights are to be judged on other rows.
