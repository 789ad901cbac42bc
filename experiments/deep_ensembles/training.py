"""S, DN(0.1), DN(0.6) and DE: which networks they are, trained once, their predictions kept."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import hullcal as hc
from experiments.deep_ensembles.networks import keep, seen
from experiments.deep_ensembles.tasks import NETWORKS, Data, Options, Recipe, Task

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


class Standardised(nn.Module):
    """Frozen features, each column on the scale of the training rows: raw tf-idf hardly moves SGD."""

    def __init__(self, features: NDArray[np.floating]) -> None:
        super().__init__()
        columns = features.astype(np.float32)
        self.register_buffer("mean", torch.from_numpy(columns.mean(axis=0)))
        deviations = columns.std(axis=0)
        # A column that never varied in training says nothing; blown up, it would drown the others.
        self.register_buffer("sd", torch.from_numpy(np.where(deviations < 1e-6, 1.0, deviations)))
        self.n_outputs = columns.shape[1]

    def forward(self, rows: Tensor) -> Tensor:
        """Features in, features out."""
        return (rows.float() - self.mean) / self.sd


class Seen(nn.Module):
    """A pretrained network on images of bytes, which learns with the head."""

    def __init__(self, network: nn.Module, pixels: int) -> None:
        super().__init__()
        self.network = network
        self.pixels = pixels
        self.n_outputs = int(network.n_outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, height, width, 3) of bytes in, features out."""
        outputs: Tensor = self.network(seen(images, self.pixels))
        return outputs


def classifier(trunk: nn.Module, recipe: Recipe, n_classes: int, dropout: float) -> nn.Module:
    """The trunk, one hidden layer, and dropout before the last layer; logits out."""
    return nn.Sequential(
        trunk,
        nn.Linear(int(trunk.n_outputs), recipe.hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(recipe.hidden, n_classes),
    )


def train(
    make_trunk: Callable[[], nn.Module],
    data: Data,
    recipe: Recipe,
    *,
    dropout: float,
    seed: int,
    device: str = "cpu",
) -> nn.Module:
    """A trained network; the seed decides its initial weights and the order of the rows."""
    n_rows, size = len(data.train_labels), recipe.batch_size
    if n_rows < size:
        raise hc.InvalidInputError(
            f"a network needs at least one batch of {size} rows to learn from; got {n_rows}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = classifier(make_trunk(), recipe, len(data.classes), dropout).to(device).train()
        optimiser = torch.optim.SGD(
            network.parameters(), recipe.learning_rate, momentum=recipe.momentum
        )
        labels = torch.from_numpy(data.train_labels)
        for _ in range(recipe.epochs):
            # A last batch that is not full is left out, as the authors do.
            for batch in torch.randperm(n_rows)[: n_rows - n_rows % size].split(size):
                rows = torch.from_numpy(np.asarray(data.train_inputs[batch.numpy()])).to(device)
                loss = nn.functional.cross_entropy(network(rows), labels[batch].to(device))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return network.eval()


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
    labels = folder / "labels.npy"
    if not missing and labels.exists():
        return folder
    data = task.data(options)
    folder.mkdir(parents=True, exist_ok=True)
    if labels.exists() and not np.array_equal(np.load(labels), data.held_labels):
        raise hc.InvalidInputError(
            f"the data must be those of the networks in {folder}; got other labels. Delete that "
            "folder to begin anew."
        )
    keep(data.held_labels, labels)
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

    def trunk() -> nn.Module:
        if options.end_to_end:
            return Seen(NETWORKS[task.architecture](), task.pixels)
        return Standardised(data.train_inputs)

    # No two networks of a task share a seed.
    seed = options.seed * 1000 + 100 * KINDS.index(kind) + number
    network = train(trunk, data, task.recipe, dropout=kind.dropout, seed=seed, device=device)
    # Images take more room than features; as many as were learnt from at a time will fit.
    batch = task.recipe.batch_size if options.end_to_end else _BATCH
    batches = (
        torch.from_numpy(np.array(data.held_inputs[start : start + batch]))
        for start in range(0, len(data.held_labels), batch)
    )
    if kind.dropout:
        found = hc.ensembles.mc_dropout(network, batches, kind.n_drawn, rng=seed)
    else:
        found = hc.ensembles.deep_ensemble([network], batches)
    keep(found.probs, path)


def predictions(kind: Kind, folder: Path) -> tuple[NDArray[np.float32], str]:
    """The members' predictions (n_held, n_members, n_classes), and their sha256.

    That of one file is its own; that of several is the sha256 of their hexadecimal ones, joined.
    """
    files = files_of(kind, folder)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    joined = hashlib.sha256("".join(digests).encode()).hexdigest()
    probs = np.concatenate([np.load(path, mmap_mode="r") for path in files], axis=1)
    return probs, digests[0] if len(files) == 1 else joined
