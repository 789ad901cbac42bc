"""S, DN(0.1), DN(0.6) and DE: which networks they are, trained once and kept."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

import hullcal as hc
from experiments.deep_ensembles import training
from experiments.deep_ensembles.pictures import Pictures
from experiments.deep_ensembles.tasks import NETWORKS, Data, Options, Task

N_MEMBERS = 10
#: Rows of features predicted at a time.
_BATCH = 500


@dataclass(frozen=True)
class Kind:
    """A kind of classifier: its name in Table 1, its dropout, how many networks are trained."""

    name: str
    file: str
    dropout: float
    n_networks: int
    n_drawn: int


KINDS = (
    Kind("S", "single", 0.0, 1, 1),
    Kind("DN(0.1)", "dropout01", 0.1, 1, N_MEMBERS),
    Kind("DN(0.6)", "dropout06", 0.6, 1, N_MEMBERS),
    Kind("DE", "ensemble", 0.0, N_MEMBERS, 1),
)


def folder_of(task: Task, options: Options, work: Path) -> Path:
    """Where the predictions of a task are kept; other settings have another folder."""
    kinds = [asdict(kind) for kind in KINDS]
    settings = json.dumps(task.settings(options) | {"kinds": kinds}, sort_keys=True)
    return work / f"{task.name}-{hashlib.sha256(settings.encode()).hexdigest()[:10]}"


def files_of(kind: Kind, folder: Path) -> list[Path]:
    """One file for every network, of shape (n_held, n_drawn, n_classes)."""
    return [folder / f"{kind.file}_{number}.npy" for number in range(kind.n_networks)]


def learn(task: Task, options: Options, work: Path, *, n_jobs: int, device: str = "cpu") -> Path:
    """Train what has not been trained yet, each network in a process, and keep its predictions."""
    folder = folder_of(task, options, work)
    missing = [
        (kind, number, path)
        for kind in KINDS
        for number, path in enumerate(files_of(kind, folder))
        if not path.exists()
    ]
    if not missing and (folder / "labels.npy").exists():
        return folder
    data = task.data(options)
    folder.mkdir(parents=True, exist_ok=True)
    _keep_labels(data.held_labels, folder / "labels.npy")
    about = task.settings(options) | {
        "n_classes": len(data.classes),
        "n_train": len(data.train_labels),
        "n_held": len(data.held_labels),
        "torch": torch.__version__,
    }
    (folder / "settings.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    print(
        f"{task.name}: {about['n_train']} rows to learn from, {about['n_held']} held out, "
        f"K = {about['n_classes']}; {len(missing)} networks to train",
        flush=True,
    )
    joblib.Parallel(n_jobs=n_jobs, mmap_mode="r")(
        joblib.delayed(_learn_one)(task, data, kind, number, path, options, device)
        for kind, number, path in missing
    )
    return folder


def _learn_one(
    task: Task, data: Data, kind: Kind, number: int, path: Path, options: Options, device: str
) -> None:
    # Cores are shared by processes, so that a network gets one thread.
    torch.set_num_threads(1)

    def trunk() -> torch.nn.Module:
        if not options.end_to_end:
            return training.Standardised(data.train_inputs)
        outputs = {"MOB": 1000, "VGG": 512}[task.architecture]
        network = NETWORKS[task.architecture]()
        for layer in network.modules():
            if isinstance(layer, torch.nn.Dropout):
                layer.p = 0.0  # dropout is that of the last layer alone
        return training.Seen(network, task.pixels, outputs)

    # No two networks of a task share a seed.
    seed = options.seed * 1000 + 100 * KINDS.index(kind) + number
    network = training.train(
        trunk, data, task.recipe, dropout=kind.dropout, seed=seed, device=device
    )
    # Images take more room than features; as many as were learnt from at a time will fit.
    batch = task.recipe.batch_size if options.end_to_end else _BATCH
    loader = DataLoader(_Rows(data.held_inputs), batch_size=batch)
    if kind.dropout:
        found = hc.ensembles.mc_dropout(network, loader, kind.n_drawn, rng=seed)
    else:
        found = hc.ensembles.deep_ensemble([network], loader)
    _keep(found.probs, path)


class _Rows(Dataset):  # type: ignore[type-arg]
    """Inputs as tensors, without their labels."""

    def __init__(self, inputs: NDArray[Any] | Pictures) -> None:
        self._inputs = inputs

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, row: int) -> NDArray[Any]:
        return np.array(self._inputs[row])


def _keep_labels(labels: NDArray[np.int64], path: Path) -> None:
    """Predictions that are there belong to the labels beside them."""
    if path.exists() and not np.array_equal(np.load(path), labels):
        raise hc.InvalidInputError(
            f"the data must be those of the networks in {path.parent}; got other labels. Delete that "
            "folder to begin anew."
        )
    _keep(labels, path)


def _keep(array: NDArray[Any], path: Path) -> None:
    """Written to another name first: a file that is there is whole."""
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        np.save(file, array)
    os.replace(unfinished, path)


def predictions(kind: Kind, folder: Path) -> tuple[NDArray[np.float32], str]:
    """The members' predictions (n_held, n_members, n_classes), and their sha256.

    That of one file is its own; that of several is the sha256 of their hexadecimal ones, joined.
    """
    files = files_of(kind, folder)
    digests = []
    for path in files:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    parts = [np.load(path, mmap_mode="r") for path in files]
    joined = hashlib.sha256("".join(digests).encode()).hexdigest()
    return np.concatenate(parts, axis=1), digests[0] if len(files) == 1 else joined
