"""
What if the predictions are larger than memory?
===============================================

A memory map is an array whose rows stay on the disk until they are asked for. The same call takes
it. From 100,000 rows and 2²² probabilities on, predictions stay where they are: they are read in
blocks, and only sums are kept.
"""

# %%
# A file of 100,000 rows, six members and eight classes, in single precision, written block by
# block. Labels follow a combination of the members, so the hull contains the truth.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import hullcal as hc

n_samples, n_members, n_classes, block = 100_000, 6, 8, 20_000
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "probs.npy"
file = np.lib.format.open_memmap(
    path, "w+", np.float32, (n_samples, n_members, n_classes)
)
labels = np.empty(n_samples, dtype=np.int64)
rng = np.random.default_rng(0)
weights = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
for first in range(0, n_samples, block):
    rows = slice(first, first + block)
    members = rng.dirichlet(np.full(n_classes, 0.3), size=(block, n_members))
    file[rows] = members
    truth = np.einsum("nmk,m->nk", members, weights)
    labels[rows] = (truth[:, :-1].cumsum(axis=1) < rng.random((block, 1))).sum(axis=1)
file.flush()
print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {file.size >= 2**22 = }")

# %%
# The paper's null makes all its resamples in one pass over the rows, which is why it is taken here;
# ``recentered`` searches in every resample. The test of the file, and of its first thousand rows in
# memory:

probs = np.load(path, mmap_mode="r")
options = {"null": "paper", "n_resamples": 99, "rng": 0}
whole = hc.calibration_test(probs, labels, **options)
few = hc.calibration_test(probs[:1000].copy(), labels[:1000], **options)
for result in (few, whole):
    found = f"statistic {result.statistic:.4f}, p = {result.pvalue:.3g}"
    print(f"{result.n_samples:>7,} rows: {found}")

# %%
# The values under the hypothesis.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
for ax, result in zip(axes, (few, whole), strict=True):
    hc.plots.null_distribution(result, ax=ax)
    ax.set_title(f"{result.n_samples:,} rows", loc="right", fontsize=8)
plt.show()
ratio = np.median(few.null_distribution) / np.median(whole.null_distribution)
print(f"their medians differ by a factor of {ratio:.1f}")
del probs, file
folder.cleanup()

# %%
# **Answer.** Nothing changes for the caller. With a hundred times the rows the values under the
# hypothesis are about ten times smaller, so much smaller errors would be noticed. (The p-values are
# large because this null compares a minimum with values that were not minimised.)
