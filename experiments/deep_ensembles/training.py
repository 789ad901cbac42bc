"""One network: a trunk that is frozen or learns, a head with dropout before its last layer, SGD."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.deep_ensembles.images.inference import DEVIATION, MEAN
from experiments.deep_ensembles.tasks import Data, Recipe
from hullcal import InvalidInputError


class Standardised(nn.Module):
    """Frozen features, each column on the scale of the training rows."""

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
    """A pretrained network on resized and normalised images, which learns with the head."""

    def __init__(self, network: nn.Module, pixels: int, n_outputs: int) -> None:
        super().__init__()
        self.network = network
        self.pixels = pixels
        self.n_outputs = n_outputs
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.register_buffer("sd", torch.tensor(DEVIATION)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, height, width, 3) of bytes in, features out."""
        pictures = images.permute(0, 3, 1, 2).float() / 255
        size = (self.pixels, self.pixels)
        pictures = nn.functional.interpolate(pictures, size, mode="bilinear", align_corners=False)
        outputs: Tensor = self.network((pictures - self.mean) / self.sd)
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
    if len(data.train_labels) < recipe.batch_size:
        raise InvalidInputError(
            f"a network needs at least one batch of {recipe.batch_size} rows to learn from; got "
            f"{len(data.train_labels)}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = classifier(make_trunk(), recipe, len(data.classes), dropout).to(device).train()
        optimiser = torch.optim.SGD(
            network.parameters(), recipe.learning_rate, momentum=recipe.momentum
        )
        labels = torch.from_numpy(data.train_labels)
        for _ in range(recipe.epochs):
            order = torch.randperm(len(labels))
            # A last batch that is not full is left out, as the authors do.
            for batch in order[: len(order) - len(order) % recipe.batch_size].split(
                recipe.batch_size
            ):
                rows = torch.from_numpy(np.asarray(data.train_inputs[batch.numpy()])).to(device)
                loss = nn.functional.cross_entropy(network(rows), labels[batch].to(device))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return network.eval()
