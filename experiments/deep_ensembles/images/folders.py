"""Which images lie in a folder, and what is each of them? Any folder, Caltech and PlantCLEF 2015."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np

import hullcal as hc
from experiments.deep_ensembles.images.caltech_classes import merged as merge_pairs
from experiments.deep_ensembles.images.image_files import ImageFiles
from experiments.deep_ensembles.images.obtaining import LAYOUTS, download

__all__ = ["ImageFiles", "caltech101", "caltech256", "download", "from_folder", "plantclef2015"]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm")


def from_folder(path: str | Path, *, without: tuple[str, ...] = ()) -> ImageFiles:
    """Take each sub-folder as a class and the image files in it as its images.

    Parameters
    ----------
    path : str or Path
    without : tuple of str
        Sub-folders to leave out.

    Returns
    -------
    ImageFiles
        Classes in the order of their names, and so are the files of each class. Sub-folders of
        classes, hidden files, and files that are no images by their name are passed over.
    """
    folder = Path(path)
    _must_exist(folder)
    classes = sorted(
        inner.name
        for inner in folder.iterdir()
        if inner.is_dir() and not inner.name.startswith(".") and inner.name not in without
    )
    if not classes:
        raise hc.InvalidInputError(
            f"`path` must hold a folder of images for each class; got {folder} without folders. "
            "Name the folder one level up, or move the images into folders."
        )
    found = [_images_in(folder / name) for name in classes]
    empty = [name for name, images in zip(classes, found, strict=True) if not images]
    if empty:
        raise hc.InvalidInputError(
            f"`path` must hold images for each class; got none in {', '.join(empty)} of {folder}. "
            f"Files must end in one of {', '.join(SUFFIXES)}; remove empty folders."
        )
    return ImageFiles(
        tuple(image for images in found for image in images),
        np.repeat(np.arange(len(classes)), [len(images) for images in found]),
        tuple(classes),
    )


def caltech101(path: str | Path, *, merged: bool = False) -> ImageFiles:
    """Take Caltech-101 (Li, Fergus and Perona, 2004) without its background images.

    Parameters
    ----------
    path : str or Path
        `101_ObjectCategories`, or a folder that holds it (or `caltech101/101_ObjectCategories`).
    merged : bool
        Whether the four pairs of classes that show one thing are one class each, so that K = 97.
    """
    folder = _inner(Path(path), "caltech101")
    files = from_folder(folder, without=("BACKGROUND_Google",))
    if not merged:
        return files
    labels, classes = merge_pairs(files.labels, files.classes)
    return replace(files, labels=labels, classes=classes)


def caltech256(path: str | Path) -> ImageFiles:
    """Take Caltech-256 (Griffin, Holub and Perona, 2007) without its clutter; as "001.ak47".

    Parameters
    ----------
    path : str or Path
        `256_ObjectCategories`, or a folder that holds it (or `caltech256/256_ObjectCategories`).
    """
    return from_folder(_inner(Path(path), "caltech256"), without=("257.clutter",))


def plantclef2015(path: str | Path) -> tuple[ImageFiles, ImageFiles]:
    """Take PlantCLEF 2015 (Goëau, Bonnet and Joly, 2015): training and test images.

    Beside an image `123.jpg` lies `123.xml`, whose root `Image` has a child `ClassId`, the species.
    Records without an image are passed over.

    Parameters
    ----------
    path : str or Path
        The folder with both packages unpacked: `PlantCLEF2015TrainingData/train` (or `train`) and
        `PlantCLEF2015TestDataWithAnnotations` (or `test`).

    Returns
    -------
    tuple of ImageFiles
        Training and test part. Classes are the values of `ClassId` of both, in numerical order; images
        go by the number in their name.
    """
    folder = Path(path)
    _must_exist(folder)
    parts = [
        _one_of(folder, ("PlantCLEF2015TrainingData/train", "train")),
        _one_of(folder, ("PlantCLEF2015TestDataWithAnnotations", "test")),
    ]
    images = [sorted(_images_in(part), key=_by_number) for part in parts]
    species = [[_species(image) for image in part] for part in images]
    classes = sorted(
        {name for part in species for name in part}, key=lambda name: (len(name), name)
    )
    position = {name: i for i, name in enumerate(classes)}
    train, test = (
        ImageFiles(
            tuple(paths),
            np.array([position[name] for name in names], dtype=np.int64),
            tuple(classes),
        )
        for paths, names in zip(images, species, strict=True)
    )
    return train, test


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    )


def _by_number(image: Path) -> tuple[int, str]:
    return (int(image.stem) if image.stem.isdecimal() else -1, image.name)


def _species(image: Path) -> str:
    record = image.with_suffix(".xml")
    try:
        name = (ElementTree.parse(record).findtext("ClassId") or "").strip()
    except (OSError, ElementTree.ParseError) as error:
        raise _without_class(record, str(error)) from error
    if not name:
        raise _without_class(record, "no <ClassId>")
    return name


def _without_class(record: Path, came: str) -> hc.InvalidInputError:
    return hc.InvalidInputError(
        f"`path` must hold an XML file with a <ClassId> beside each image; got, for {record}, {came}. "
        "Unpack the packages again; test images need the package with annotations."
    )


def _inner(path: Path, name: str) -> Path:
    """Where the class folders are, if a folder above was named, as torchvision lays them out."""
    inner = LAYOUTS[name]
    return next((place for place in (path / name / inner, path / inner) if place.is_dir()), path)


def _one_of(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_dir() and _images_in(folder / name):
            return folder / name
    raise hc.InvalidInputError(
        f"`path` must hold images in {' or '.join(names)}; got {folder} without any. "
        'See `download("plantclef2015", path)` for the layout.'
    )


def _must_exist(folder: Path) -> None:
    if not folder.is_dir():
        raise hc.InvalidInputError(
            f"`path` must be a folder that exists; got {folder}. See `download` for where to get data."
        )
