"""Which images can torchvision fetch, where are they put, and are all of them there?"""

from collections.abc import Iterable
from pathlib import Path

from experiments.deep_ensembles.downloads import DownloadError, cache_folder
from experiments.deep_ensembles.images.folders import download
from experiments.deep_ensembles.images.obtaining import LAYOUTS
from experiments.deep_ensembles.tasks import TASKS


def folder() -> Path:
    """Where fetched images are kept; all data sets side by side."""
    return cache_folder() / "images"


def paths(names: Iterable[str]) -> dict[str, Path]:
    """The folder for each task on one of these data sets, as `--path` would name it."""
    wanted = set(names)
    return {name: folder() for name in TASKS if name.partition("_")[0] in wanted}


def fetch(name: str) -> None:
    """Fetch a data set, unless it is there; the error says what to install, or how to go without.

    Parameters
    ----------
    name : str
        "caltech101" or "caltech256"; for others the error says where they are to be had.
    """
    images = folder() / name / LAYOUTS.get(name, "")
    # torchvision takes a folder that was half unpacked for a whole one.
    whole = folder() / f"{name}.whole"
    if whole.exists() and images.is_dir():
        return
    if name in LAYOUTS and images.is_dir():
        raise DownloadError(
            f"`--download {name}` found {images}, which may be unpacked in part. Delete that folder to "
            "fetch it again; if you know it to be whole, name it by `--path`."
        )
    try:
        download(name, folder())
    # What torchvision raises without a network, or for an archive with another md5.
    except (OSError, RuntimeError) as error:
        raise DownloadError(
            f"`--download {name}` failed in torchvision: {error}. Try again, or get the images from "
            "CaltechDATA and name their folder by `--path`."
        ) from error
    whole.touch()
