"""Which images are there, and what is each of them? CIFAR-10, Caltech, PlantCLEF, any folder."""

import hashlib
import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from PIL import Image

import hullcal as hc
from experiments.deep_ensembles.downloads import unpacked

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm")
#: Pillow's names for pixels of more than 8 bits, which it would clip rather than scale.
_DEEP_PIXELS = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Labelled image files that stand where an array (n, pixels, pixels, 3) of bytes could.

    Some rows of it are ImageFiles again, which costs nothing; one row, and `np.asarray` of any, reads
    the files. All of Caltech-256 at 200 pixels would be 4 GB in every process.
    """

    paths: tuple[Path, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    pixels: int = 0

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            return read_square(self.paths[rows], self.pixels)
        chosen = np.arange(len(self))[rows]
        return replace(self, paths=tuple(self.paths[i] for i in chosen), labels=self.labels[chosen])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        block = np.empty((len(self), self.pixels, self.pixels, 3), dtype=np.uint8)
        for row, path in zip(block, self.paths, strict=True):
            row[:] = read_square(path, self.pixels)
        return block.astype(dtype or np.uint8, copy=False)

    def checked(self) -> Self:
        """The same, after every image was decoded once; an error names one that cannot be."""
        for path in self.paths:
            read_square(path, 1)
        return self


def read_square(path: Path, size: int) -> NDArray[np.uint8]:
    """One image as RGB, stretched to a square (size, size, 3) as the paper's authors did."""
    try:
        with Image.open(path) as image:
            if image.mode in _DEEP_PIXELS:
                raise ValueError(f"pixels of more than 8 bits ({image.mode})")
            if "transparency" in image.info:
                # Pillow would warn that a palette's transparency is lost on the way to RGB.
                image = image.convert("RGBA")
            square = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(square)
    # A damaged PNG is a SyntaxError to Pillow, a huge one a DecompressionBombError.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise hc.InvalidInputError(
            f"`path` must be a readable image of 8 bits a channel; got {path}, which is not: {error}. "
            "Fetch the file again, or take it out of its folder."
        ) from error


def images_md5(images: NDArray[np.uint8] | ImageFiles) -> str:
    """Fingerprint of the pixels of an array, or of the bytes of the files."""
    if not isinstance(images, ImageFiles):
        return hashlib.md5(np.ascontiguousarray(images), usedforsecurity=False).hexdigest()
    whole = hashlib.md5(usedforsecurity=False)
    for path in images.paths:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "md5").digest())
    return whole.hexdigest()


# CIFAR-10 (Krizhevsky, 2009)

CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
#: Files of each part, the package's own spelling of its labels, and the md5 of the pixels.
_CIFAR10 = {
    "train": (
        tuple(f"data_batch_{i}.png" for i in range(1, 6)),
        "train_lables.json",
        "17e2cb5a4119d89a4a13e02b91701bff",
    ),
    "test": (("test_batch.png",), "test_lables.json", "6d2714505047e13831cd876923568712"),
}


def cifar10(part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 32, 32, 3) and labels of "train" or "test", in the order of the original files."""
    folder = unpacked("cifar10")
    files, labels_file, md5 = _CIFAR10[part]
    batches = []
    for name in files:
        # Each row of a picture holds the 1,024 pixels of one image.
        with Image.open(folder / name) as picture:
            batches.append(np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3))
    images = np.concatenate(batches)
    if images_md5(images) != md5:
        raise hc.InvalidInputError(
            f"`cifar10` must have {part} images with the md5 {md5}; got {images_md5(images)}. "
            f"Delete {folder} and load again."
        )
    return images, np.array(json.loads((folder / labels_file).read_text()), dtype=np.int64)


# Folders of images

#: The folder of class folders in the archives of Caltech, as their authors made them.
LAYOUTS = {"caltech101": "101_ObjectCategories", "caltech256": "256_ObjectCategories"}
_WITHOUT = {"caltech101": "BACKGROUND_Google", "caltech256": "257.clutter"}
#: Pairs of classes that show one thing, whole and in part. The paper has K = 97 for Caltech-101's 101
#: classes; that these four pairs are merged is our reading.
PAIRS = {
    "Faces": ("Faces", "Faces_easy"),
    "cougar": ("cougar_body", "cougar_face"),
    "crocodile": ("crocodile", "crocodile_head"),
    "flamingo": ("flamingo", "flamingo_head"),
}


def from_folder(folder: Path, without: str = "") -> ImageFiles:
    """Each sub-folder as a class, in the order of their names, and the image files in it.

    Sub-folders of classes, hidden files, and files that are no images by their name are passed over.
    """
    _must_exist(folder)
    classes = sorted(
        inner.name
        for inner in folder.iterdir()
        if inner.is_dir() and not inner.name.startswith(".") and inner.name != without
    )
    found = [_images_in(folder / name) for name in classes]
    if not classes or not all(found):
        empty = [name for name, images in zip(classes, found, strict=True) if not images]
        raise hc.InvalidInputError(
            f"`path` must hold a folder of images for each class; got {folder} "
            f"{'with none in ' + ', '.join(empty) if empty else 'without folders'}. Files must end in "
            f"one of {', '.join(SUFFIXES)}."
        )
    return ImageFiles(
        tuple(image for images in found for image in images),
        np.repeat(np.arange(len(classes)), [len(images) for images in found]),
        tuple(classes),
    )


def caltech(name: str, path: Path) -> ImageFiles:
    """Caltech-101 with pairs merged (Li et al., 2004) or -256 (Griffin et al., 2007), no background.

    `path` is the folder of class folders, or one or two above it.
    """
    inner = LAYOUTS[name]
    above = (path / name / inner, path / inner)
    folder = next((place for place in above if place.is_dir()), path)
    files = from_folder(folder, without=_WITHOUT[name])
    if name == "caltech256":
        return files
    labels, classes = merged(files.labels, files.classes)
    return replace(files, labels=labels, classes=classes)


def merged(
    labels: NDArray[np.integer], classes: Sequence[str]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels and names with each of `PAIRS` as one class, which stands where its first one stood."""
    missing = [name for pair in PAIRS.values() for name in pair if name not in classes]
    if missing:
        raise hc.InvalidInputError(
            f"`classes` must hold both classes of each pair to merge them; got none called "
            f"{', '.join(missing)}. Take the whole of Caltech-101."
        )
    new_name = {old: new for new, pair in PAIRS.items() for old in pair}
    names = [new_name.get(name, name) for name in classes]
    kept = tuple(dict.fromkeys(names))
    return np.array([kept.index(name) for name in names], dtype=np.int64)[labels], kept


def plantclef2015(folder: Path) -> tuple[ImageFiles, ImageFiles]:
    """Training and test part of PlantCLEF 2015 (Goëau, Bonnet and Joly, 2015).

    The folder holds `PlantCLEF2015TrainingData/train` (or `train`) and
    `PlantCLEF2015TestDataWithAnnotations` (or `test`). Beside an image `123.jpg` lies `123.xml`, whose
    root has a child `ClassId`, the species. Classes are those of both parts, in numerical order.
    """
    _must_exist(folder)
    parts = [
        _one_of(folder, ("PlantCLEF2015TrainingData/train", "train")),
        _one_of(folder, ("PlantCLEF2015TestDataWithAnnotations", "test")),
    ]
    species = [[_species(image) for image in part] for part in parts]
    names = {name for part in species for name in part}
    classes = tuple(sorted(names, key=lambda name: (len(name), name)))
    train, test = (
        ImageFiles(tuple(paths), np.array([classes.index(name) for name in names]), classes)
        for paths, names in zip(parts, species, strict=True)
    )
    return train, test


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    )


def _one_of(folder: Path, names: tuple[str, ...]) -> list[Path]:
    for name in names:
        if (folder / name).is_dir() and (images := _images_in(folder / name)):
            return sorted(images, key=lambda image: (len(image.stem), image.stem))  # by number
    raise hc.InvalidInputError(
        f"`path` must hold images in {' or '.join(names)}; got {folder} without any. The page of the "
        "LifeCLEF 2015 plant task links to both packages; unpack them there."
    )


def _species(image: Path) -> str:
    record = image.with_suffix(".xml")
    try:
        name, came = ElementTree.parse(record).findtext("ClassId"), "no <ClassId>"
    except (OSError, ElementTree.ParseError) as error:
        name, came = None, str(error)
    if not (name or "").strip():
        raise hc.InvalidInputError(
            f"`path` must hold an XML file with a <ClassId> beside each image; got, for {record}, "
            f"{came}. Unpack the packages again; test images need the package with annotations."
        )
    return str(name).strip()


def _must_exist(folder: Path) -> None:
    if not folder.is_dir():
        raise hc.InvalidInputError(f"`path` must be a folder that exists; got {folder}.")


# Features of Caltech-101 that were computed before, without the background images

_FEATURES = {
    "MOB": "caltech101_mobilenetv2_200px.npz",
    "VGG": "caltech101_vgg16trunk_128px.npz",
}


def stored_features(architecture: str) -> Path:
    """Where the features of a network would be: in HULLCAL_DATA, or `shared/data` beside the project."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("HULLCAL_DATA") or beside) / _FEATURES[architecture]


def caltech101_features(
    architecture: str,
) -> tuple[NDArray[np.float16], NDArray[np.int64], tuple[str, ...]]:
    """Features, labels and names of the 97 classes, by MobileNetV2 at 200 or VGG16 at 128 pixels."""
    path = stored_features(architecture)
    if not path.is_file():
        raise hc.InvalidInputError(
            f"`{path}` must hold the features of Caltech-101; it is not there. Set HULLCAL_DATA to its "
            "folder, or name the images by `--path`."
        )
    with np.load(path) as stored:
        labels, classes = merged(stored["labels"], [str(name) for name in stored["classes"]])
        return stored["features"], labels, classes
