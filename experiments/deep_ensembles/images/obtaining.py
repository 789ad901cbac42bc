"""Where do the image data sets come from?"""

from pathlib import Path

import hullcal as hc

#: The folder of class folders in the archives of Caltech, as their authors made them.
LAYOUTS = {"caltech101": "101_ObjectCategories", "caltech256": "256_ObjectCategories"}

#: What to do by hand; `root` is put in.
_BY_HAND = {
    "caltech101": (
        "Get Caltech-101 (Li, Fergus and Perona) from CaltechDATA, unpack it, and put the folder "
        "101_ObjectCategories, which holds a folder for each class, into {root}."
    ),
    "caltech256": (
        "Get Caltech-256 (Griffin, Holub and Perona) from CaltechDATA, unpack it, and put the folder "
        "256_ObjectCategories, which holds a folder for each class, into {root}."
    ),
    "plantclef2015": (
        "The page of the LifeCLEF 2015 plant task (on the site of ImageCLEF) links to the packages "
        "PlantCLEF2015TrainingData and PlantCLEF2015TestDataWithAnnotations; if it no longer does, ask "
        "the organisers of LifeCLEF named there. Unpack both into {root}, so that it holds "
        "PlantCLEF2015TrainingData/train and PlantCLEF2015TestDataWithAnnotations, each with a .jpg "
        "and an .xml for each image."
    ),
}


def download(name: str, root: str | Path) -> Path:
    """Fetch a data set with torchvision, or say how to get it by hand.

    Parameters
    ----------
    name : {"caltech101", "caltech256", "plantclef2015"}
    root : str or Path
        Where to put it.

    Returns
    -------
    Path
        What the loader of the same name takes.
    """
    if name not in _BY_HAND:
        raise hc.InvalidInputError(
            f"`name` must be one of {', '.join(_BY_HAND)}; got {name!r}. Choose one of them."
        )
    by_hand = _BY_HAND[name].format(root=root)
    if name not in LAYOUTS:
        raise hc.InvalidInputError(
            f"`name` must be a data set that torchvision can fetch; got {name!r}. {by_hand}"
        )
    try:
        from torchvision import datasets
    # A torchvision that was built for another torch fails with a RuntimeError or OSError.
    except (ImportError, RuntimeError, OSError) as error:
        raise hc.InvalidInputError(
            f"`download` needs torchvision; got none that can be imported ({error}). "
            f"Install torchvision, or: {by_hand}"
        ) from error
    fetch = {"caltech101": datasets.Caltech101, "caltech256": datasets.Caltech256}[name]
    fetch(root=str(root), download=True)
    return Path(root)
