"""CIFAR-10: 60,000 images of 32 by 32 pixels in ten classes (Krizhevsky, 2009)."""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import hullcal as hc
from experiments.deep_ensembles.downloads import unpacked

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
#: md5 of the pixels, rows of (32, 32, 3) one after the other.
TRAIN_MD5 = "17e2cb5a4119d89a4a13e02b91701bff"
TEST_MD5 = "6d2714505047e13831cd876923568712"


class CIFAR10(NamedTuple):
    """Both parts in the order of the original files."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]


def load() -> CIFAR10:
    """Read the images from the package that holds them, which is fetched on first use."""
    folder = unpacked("cifar10")
    train = np.concatenate([_batch(folder / f"data_batch_{i}.png") for i in range(1, 6)])
    test = _batch(folder / "test_batch.png")
    _check(train, TRAIN_MD5, "training")
    _check(test, TEST_MD5, "test")
    # The package's own spelling.
    train_labels = _labels(folder / "train_lables.json", 50_000)
    test_labels = _labels(folder / "test_lables.json", 10_000)
    return CIFAR10(train, train_labels, test, test_labels, CLASSES)


def _batch(path: Path) -> NDArray[np.uint8]:
    """Cut a picture of 10,000 rows into images: each row holds the 1,024 pixels of one.

    Its ten million pixels are well below the number at which Pillow suspects a decompression bomb.
    """
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3)


def _check(images: NDArray[np.uint8], expected: str, part: str) -> None:
    found = hashlib.md5(images, usedforsecurity=False).hexdigest()
    if found != expected:
        raise hc.InvalidInputError(
            f"`cifar10` must have {part} images with the md5 {expected}; got {found}. "
            "Delete the unpacked folder and load again."
        )


def _labels(path: Path, n: int) -> NDArray[np.int64]:
    labels = np.array(json.loads(path.read_text()), dtype=np.int64)
    if labels.shape != (n,) or (np.bincount(labels, minlength=10) != n // 10).any():
        raise hc.InvalidInputError(
            f"`cifar10` must have {n // 10} images of each class in {path.name}; got other numbers. "
            "Delete the unpacked folder and load again."
        )
    return labels
