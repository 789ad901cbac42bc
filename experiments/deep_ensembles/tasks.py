"""What there is to learn: a data set, the features or images a network sees, and how it is trained."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import hullcal as hc
from experiments.deep_ensembles import own_sequences
from experiments.deep_ensembles.downloads import cache_folder
from experiments.deep_ensembles.images import (
    caltech_features,
    cifar10,
    folders,
    mobilenet,
    vgg,
)
from experiments.deep_ensembles.images.features import cached_features
from experiments.deep_ensembles.pictures import Pictures
from experiments.deep_ensembles.sequences import tasks as sequences

NETWORKS: dict[str, Callable[[], Any]] = {
    "MOB": mobilenet.pretrained,
    "VGG": vgg.pretrained,
}
NAMES = {"MOB": "mobilenet_v2", "VGG": "vgg16_trunk"}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a head is trained: one hidden layer, dropout before the last, SGD with momentum."""

    hidden: int
    epochs: int
    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 32


@dataclass(frozen=True, eq=False)
class Data:
    """Training rows, rows held out for calibration and test, and the names of the classes."""

    train_inputs: NDArray[Any] | Pictures
    train_labels: NDArray[np.int64]
    held_inputs: NDArray[Any] | Pictures
    held_labels: NDArray[np.int64]
    classes: tuple[str, ...]


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
        return {
            "task": self.name,
            **asdict(self.recipe),
            "pixels": self.pixels,
            "train_rows": self.train_rows,
            "rows": options.rows,
            "path": str(options.paths[self.name].resolve()) if self.name in options.paths else None,
            "end_to_end": options.end_to_end,
            "seed": options.seed,
        }

    def data(self, options: Options) -> Data:
        """The rows, fewer of them if so wished."""
        data = self.load(self, options)
        if options.rows is None:
            return data
        return Data(
            data.train_inputs[: 2 * options.rows],
            data.train_labels[: 2 * options.rows],
            data.held_inputs[: options.rows],
            data.held_labels[: options.rows],
            data.classes,
        )


def _cifar10(task: Task, options: Options) -> Data:
    images = cifar10.load()
    train = slice(task.train_rows if options.rows is None else 2 * options.rows)
    held = slice(options.rows)
    pictures = images.train_images[train], images.test_images[held]
    if options.end_to_end:
        seen: list[NDArray[Any]] = list(pictures)
    else:
        parts = zip(("train", "test"), (images.train_images, images.test_images), strict=True)
        # A part of the rows has a name of its own.
        seen = [
            _features(task, f"cifar10_{part}" + (f"_{len(some)}" * (len(some) < len(whole))), some)
            for (part, whole), some in zip(parts, pictures, strict=True)
        ]
    labels = images.train_labels[train], images.test_labels[held]
    return Data(seen[0], labels[0], seen[1], labels[1], images.classes)


def _features(task: Task, name: str, images: Any) -> NDArray[np.floating]:
    folder = cache_folder() / "features"
    folder.mkdir(parents=True, exist_ok=True)
    network = task.architecture
    return cached_features(
        f"{name}_{NAMES[network]}",
        NETWORKS[network],
        images,
        folder,
        size=task.pixels,
        progress=True,
    )


def _seen(task: Task, name: str, files: folders.ImageFiles, options: Options) -> Any:
    """What a network sees of image files: features, or the images if its trunk learns too."""
    if not options.end_to_end:
        return _features(task, name, files)
    # A damaged file is named now, not in the middle of training.
    files.check()
    return Pictures(files, task.pixels)


def _caltech101(task: Task, options: Options) -> Data:
    if task.name in options.paths:
        return _from_images(
            task, folders.caltech101(options.paths[task.name], merged=True), options
        )
    found = caltech_features.load(NAMES[task.architecture], merged=True)
    return _halved(found.features, found.labels, found.classes, options.seed)


def _caltech256(task: Task, options: Options) -> Data:
    return _from_images(task, folders.caltech256(_path(task, options)), options)


def _plantclef(task: Task, options: Options) -> Data:
    train, test = folders.plantclef2015(_path(task, options))
    return Data(
        _seen(task, "plantclef2015_train", train, options),
        train.labels,
        _seen(task, "plantclef2015_test", test, options),
        test.labels,
        train.classes,
    )


def _from_images(task: Task, images: folders.ImageFiles, options: Options) -> Data:
    seen = _seen(task, task.dataset.lower().replace("-", ""), images, options)
    return _halved(seen, images.labels, images.classes, options.seed)


def _halved(
    seen: NDArray[Any] | Pictures, labels: NDArray[np.int64], classes: tuple[str, ...], seed: int
) -> Data:
    """Half of the rows of every class for training, as the paper's sizes have it."""
    train, held = train_test_split(
        np.arange(len(labels)), test_size=0.5, random_state=seed, stratify=labels
    )
    return Data(seen[train], labels[train], seen[held], labels[held], classes)


def _sequences(task: Task, options: Options) -> Data:
    if task.name in options.paths:
        made = own_sequences.load(task.name, options.paths[task.name], seed=options.seed)
    else:
        load = {"bacteria": sequences.bacteria, "proteins": sequences.proteins}[task.name]
        # A trial is about few classes, since a few rows of all classes would teach nothing.
        n_classes = None if options.rows is None else max(2, options.rows // 3)
        made = load(options.seed, n_classes=n_classes)
    return Data(
        made.train_features, made.train_labels, made.held_features, made.held_labels, made.classes
    )


def _path(task: Task, options: Options) -> Path:
    if task.name not in options.paths:
        data = task.name.split("_")[0]
        raise hc.InvalidInputError(
            f"`--path {task.name}=FOLDER` must name the images of {task.dataset}; got none. "
            f"`--download {data}` fetches them by torchvision (`pip install torchvision`), or says where "
            "they are to be had."
        )
    return options.paths[task.name]


_CIFAR = Recipe(hidden=256, epochs=10)
_FEW = Recipe(hidden=256, epochs=15)
TASKS = {
    task.name: task
    for task in (
        Task("cifar10_mob", "CIFAR-10", "MOB", _CIFAR, _cifar10, pixels=96),
        Task("cifar10_vgg", "CIFAR-10", "VGG", _CIFAR, _cifar10, pixels=64, train_rows=20_000),
        Task(
            "caltech101_mob",
            "Caltech-101",
            "MOB",
            _FEW,
            _caltech101,
            pixels=200,
            at_hand=caltech_features.there("mobilenet_v2"),
        ),
        Task(
            "caltech101_vgg",
            "Caltech-101",
            "VGG",
            _FEW,
            _caltech101,
            pixels=128,
            at_hand=caltech_features.there("vgg16_trunk"),
        ),
        # Those of which the user has to have the images.
        Task("caltech256_mob", "Caltech-256", "MOB", _FEW, _caltech256, 200, at_hand=False),
        Task("caltech256_vgg", "Caltech-256", "VGG", _FEW, _caltech256, 128, at_hand=False),
        Task("plantclef2015_mob", "PlantCLEF2015", "MOB", _FEW, _plantclef, 200, at_hand=False),
        Task("plantclef2015_vgg", "PlantCLEF2015", "VGG", _FEW, _plantclef, 128, at_hand=False),
        Task("bacteria", "Bacteria", "--", Recipe(hidden=1000, epochs=8), _sequences),
        Task("proteins", "Proteins", "--", Recipe(hidden=1000, epochs=6), _sequences),
    )
}
