"""Features of Caltech-101 that were computed before, by MobileNetV2 and by the trunk of VGG16.

A file holds `features` (float16), `labels` and `classes` of all 8,677 images without the background:
1000-d outputs of MobileNetV2 at 200 pixels, or 512-d pooled channels of VGG16 at 128 pixels.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import hullcal as hc
from experiments.deep_ensembles.images.caltech_classes import merged as merge_pairs

FILES = {
    "mobilenet_v2": "caltech101_mobilenetv2_200px.npz",
    "vgg16_trunk": "caltech101_vgg16trunk_128px.npz",
}
_ROOT = Path(__file__).resolve().parents[3]


class Features(NamedTuple):
    """A row for each image."""

    features: NDArray[np.float16]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]


def load(network: str, folder: str | Path | None = None, *, merged: bool = False) -> Features:
    """Read the features of one network.

    Parameters
    ----------
    network : {"mobilenet_v2", "vgg16_trunk"}
    folder : str or Path, optional
        Where the files are; else the environment variable HULLCAL_DATA, else `shared/data` beside
        the project.
    merged : bool
        Whether pairs of classes that show one thing are one class each, so that K = 97, not 101.
    """
    if network not in FILES:
        raise hc.InvalidInputError(
            f"`network` must be one of {', '.join(FILES)}; got {network!r}. Choose one of them."
        )
    path = place(folder) / FILES[network]
    if not path.is_file():
        module = {"mobilenet_v2": "mobilenet", "vgg16_trunk": "vgg"}[network]
        size = 200 if network == "mobilenet_v2" else 128
        raise hc.InvalidInputError(
            f"`folder` must hold {path.name}; got {path.parent} without it. Name another folder, set "
            "HULLCAL_DATA, or compute the features from the images: "
            f"`extract({module}.pretrained(), folders.caltech101(path), size={size})`."
        )
    with np.load(path) as stored:
        features = stored["features"]
        labels = stored["labels"].astype(np.int64)
        classes = tuple(str(name) for name in stored["classes"])
    if merged:
        labels, classes = merge_pairs(labels, classes)
    return Features(features, labels, classes)


def there(network: str) -> bool:
    """Tell whether the features of a network are where they are looked for."""
    return (place() / FILES[network]).is_file()


def place(folder: str | Path | None = None) -> Path:
    """Give the folder of data files: the one named, HULLCAL_DATA, or `shared/data` beside the project."""
    if folder is not None:
        return Path(folder)
    named = os.environ.get("HULLCAL_DATA")
    return Path(named) if named else _ROOT.parent / "shared" / "data"
