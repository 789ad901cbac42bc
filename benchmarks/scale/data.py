"""Predictions of any size, on disk, made once: members uniform on the simplex, labels from their mean."""

from pathlib import Path

import numpy as np

#: Rows made at a time, and rows of a shard.
_ROWS, SHARD = 20_000, 2**20


def made(folder: Path, n_samples: int, n_members: int, n_classes: int) -> Path:
    """A folder of shards probs-*.npy and labels-*.npy in float32."""
    target = folder / f"{n_samples}x{n_members}x{n_classes}"
    if (target / "done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(n_samples + n_members + n_classes)
    for shard, first in enumerate(range(0, n_samples, SHARD)):
        size = min(SHARD, n_samples - first)
        probs = np.lib.format.open_memmap(
            target / f"probs-{shard:05d}.npy",
            mode="w+",
            dtype=np.float32,
            shape=(size, n_members, n_classes),
        )
        labels = np.empty(size, dtype=np.int32)
        rows = max(1, min(_ROWS, 10**7 // (n_members * n_classes)))
        for begin in range(0, size, rows):
            part = probs[begin : begin + rows]
            rng.standard_exponential(out=part, dtype=np.float32)
            part /= part.sum(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
            running = part.mean(axis=1, dtype=np.float64).cumsum(axis=1)
            level = rng.random((len(part), 1)) * running[:, -1:]
            labels[begin : begin + rows] = (running[:, :-1] <= level).sum(axis=1)
        probs.flush()
        np.save(target / f"labels-{shard:05d}.npy", labels)
    (target / "done").touch()
    return target


def in_memory(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All shards as one array, and the labels."""
    shards = [np.load(path, mmap_mode="r") for path in sorted(folder.glob("probs-*.npy"))]
    probs = np.empty((sum(len(shard) for shard in shards), *shards[0].shape[1:]), dtype=np.float32)
    first = 0
    for shard in shards:
        probs[first : first + len(shard)] = shard
        first += len(shard)
    labels = [np.load(path) for path in sorted(folder.glob("labels-*.npy"))]
    return probs, np.concatenate(labels)
