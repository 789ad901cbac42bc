"""What there is to learn: a data set, the features or images a network sees, and how it is trained."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import hullcal as hc
from experiments.deep_ensembles import images, sequences
from experiments.deep_ensembles.downloads import cache_folder
from experiments.deep_ensembles.images import ImageFiles
from experiments.deep_ensembles.networks import MobileNetV2, VGG16Trunk, cached_features
from experiments.deep_ensembles.sequences import Data

NETWORKS: dict[str, Callable[[], Any]] = {
    "MOB": MobileNetV2.pretrained,
    "VGG": VGG16Trunk.pretrained,
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a head is trained: one hidden layer, dropout before the last, SGD with momentum."""

    hidden: int
    epochs: int
    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 32


@dataclass(frozen=True)
class Options:
    """What the command line says about data.

    `paths` names the user's own data by task; `rows` cuts every part down, for a trial.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    rows: int | None = None
    end_to_end: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """One block of four rows of Table 1."""

    name: str
    dataset: str
    architecture: str
    recipe: Recipe
    load: Callable[["Task", Options], Data]
    #: Side of the images in pixels, where there are images; training images used.
    pixels: int = 0
    train_rows: int | None = None
    #: Whether the data can be had without the user's help.
    at_hand: bool = True

    def settings(self, options: Options) -> dict[str, Any]:
        """All that decides what is learnt."""
        path = options.paths.get(self.name)
        return {
            "task": self.name,
            **asdict(self.recipe),
            "pixels": self.pixels,
            "train_rows": self.train_rows,
            "rows": options.rows,
            "path": None if path is None else str(path.resolve()),
            "end_to_end": options.end_to_end,
            "seed": options.seed,
        }

    def data(self, options: Options) -> Data:
        """The rows, fewer of them if so wished."""
        data, rows = self.load(self, options), options.rows
        if rows is None:
            return data
        return Data(
            *(data.train_inputs[: 2 * rows], data.train_labels[: 2 * rows]),
            *(data.held_inputs[:rows], data.held_labels[:rows]),
            data.classes,
        )


def _seen(task: Task, name: str, pictures: Any, options: Options) -> Any:
    """What a network sees of images: features, or the images if its trunk learns too."""
    if isinstance(pictures, ImageFiles):
        pictures = replace(pictures, pixels=task.pixels)
    if options.end_to_end:
        # A damaged file is named now, not in the middle of training.
        return pictures.checked() if isinstance(pictures, ImageFiles) else pictures
    return cached_features(
        f"{name}_{task.architecture}_{task.pixels}px",
        NETWORKS[task.architecture],
        pictures,
        cache_folder() / "features",
        size=task.pixels,
    )


def _cifar10(task: Task, options: Options) -> Data:
    wanted = {"train": task.train_rows, "test": None}
    if options.rows is not None:
        wanted = {"train": 2 * options.rows, "test": options.rows}
    parts: list[Any] = []
    for part, rows in wanted.items():
        pictures, labels = images.cifar10(part)
        parts += [_seen(task, f"cifar10_{part}", pictures[:rows], options), labels[:rows]]
    return Data(*parts, images.CIFAR10_CLASSES)


def _caltech(task: Task, options: Options) -> Data:
    if task.name not in options.paths and task.dataset == "Caltech-101":
        return _halved(*images.caltech101_features(task.architecture), options.seed)
    name = task.name.split("_")[0]
    files = images.caltech(name, _path(task, options))
    return _halved(_seen(task, name, files, options), files.labels, files.classes, options.seed)


def _plantclef(task: Task, options: Options) -> Data:
    train, test = images.plantclef2015(_path(task, options))
    return Data(
        *(_seen(task, "plantclef2015_train", train, options), train.labels),
        *(_seen(task, "plantclef2015_test", test, options), test.labels),
        train.classes,
    )


def _halved(
    seen: NDArray[Any] | ImageFiles, labels: NDArray[np.int64], classes: tuple[str, ...], seed: int
) -> Data:
    """Half of the rows of every class for training, as the paper's sizes have it."""
    train, held = train_test_split(
        np.arange(len(labels)), test_size=0.5, random_state=seed, stratify=labels
    )
    return Data(seen[train], labels[train], seen[held], labels[held], classes)


def _sequences(task: Task, options: Options) -> Data:
    # A trial is about few classes, since a few rows of all classes would teach nothing.
    n_classes = None if options.rows is None else max(2, options.rows // 3)
    path = options.paths.get(task.name)
    return sequences.load(task.name, path=path, seed=options.seed, n_classes=n_classes)


def _path(task: Task, options: Options) -> Path:
    if task.name not in options.paths:
        raise hc.InvalidInputError(
            f"`--path {task.name}=FOLDER` must name the images of {task.dataset}; got none. Get them "
            "from CaltechDATA or, for PlantCLEF2015, from the page of the LifeCLEF 2015 plant task."
        )
    return options.paths[task.name]


def _folder_tasks() -> Iterator[Task]:
    """Images of which the user has to have the files, but for the stored features of Caltech-101."""
    few = Recipe(hidden=256, epochs=15)
    for name, dataset, load in (
        ("caltech101", "Caltech-101", _caltech),
        ("caltech256", "Caltech-256", _caltech),
        ("plantclef2015", "PlantCLEF2015", _plantclef),
    ):
        for network, pixels in (("MOB", 200), ("VGG", 128)):
            there = name == "caltech101" and images.stored_features(network).is_file()
            place = f"{name}_{network.lower()}"
            yield Task(place, dataset, network, few, load, pixels, at_hand=there)


_HEAD = Recipe(hidden=256, epochs=10)
TASKS = {
    task.name: task
    for task in (
        Task("cifar10_mob", "CIFAR-10", "MOB", _HEAD, _cifar10, 96),
        Task("cifar10_vgg", "CIFAR-10", "VGG", _HEAD, _cifar10, 64, 20_000),
        *_folder_tasks(),
        Task("bacteria", "Bacteria", "--", Recipe(hidden=1000, epochs=8), _sequences),
        Task("proteins", "Proteins", "--", Recipe(hidden=1000, epochs=6), _sequences),
    )
}
