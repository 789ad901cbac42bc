"""
When does a stream leave the hull?
==================================

For the first 3,000 rows of a stream labels follow a combination of five members; then they become
noisier than all of them predict. ``hc.Monitor`` updates the evidence after every batch of 150 rows, and
may be looked at every time.
"""

# %%
# The stream: a combination of the members, and the same with a temperature of 2 from batch 20 on.

import matplotlib.pyplot as plt
import numpy as np

import hullcal as hc

rng = np.random.default_rng(0)
weights = rng.dirichlet(np.ones(5))


def batch(temperature):
    """150 rows: predictions, and labels from their combination at a temperature."""
    centres = rng.dirichlet(np.full(4, 0.5), size=150)
    gammas = rng.standard_gamma(np.repeat(8 * centres[:, None] + 0.1, 5, axis=1))
    members = gammas / gammas.sum(axis=2, keepdims=True)
    truth = np.einsum("m,nmk->nk", weights, members) ** (1 / temperature)
    steps = truth.cumsum(axis=1)
    return members, (steps[:, :-1] <= rng.random((150, 1)) * steps[:, -1:]).sum(axis=1)


monitor = hc.Monitor(n_members=5, n_classes=4)
alarm = None
for number in range(40):
    monitor.update(*batch(1.0 if number < 20 else 2.0))
    if monitor.alarm and alarm is None:
        alarm = monitor.n_rows
print(f"alarm after {alarm} rows; temperature of the latest {monitor.temperature:.2f}")
print(monitor)

# %%
# The e-value of all rows has 3,000 valid rows to outweigh; the detector of a late change has not.

figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
hc.plots.evidence(monitor, ax=ax)
plt.show()

# %%
# **Answer.** Within a few batches. The change is at row 3,000; the detector raises its alarm some batches
# later, the e-value of all rows follows, and the temperature says what is wrong: the members are
# overconfident.
