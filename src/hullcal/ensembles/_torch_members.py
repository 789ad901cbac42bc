"""What is a member: a model made ready, its device, and its own random draws?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.ensembles._torch_batches import Inputs
from hullcal.ensembles._torch_modes import evaluated, forked, placed, seed_all
from hullcal.ensembles._torch_package import load_torch

__all__ = ["Group", "Member", "check_module", "in_turn", "listed_models", "together"]


@dataclass(frozen=True)
class Member:
    """A model that is ready to be called.

    Attributes
    ----------
    model : callable
    device : torch.device or None
        Where its inputs go.
    seed : tuple of int, optional
        Seed of its own randomness and its number; None for a model without any.
    """

    model: Callable[..., Any]
    device: Any
    seed: tuple[int, int] | None = None

    def outputs(self, inputs: Inputs, start: int) -> Any:
        """Call the model on the batch whose first row is `start`, without gradients."""
        given = inputs.copied_to(self.device)
        # Not inference mode: tensors that a model keeps for later calls would be spoiled by it.
        with load_torch().no_grad():
            if self.seed is None:
                return self.model(*given.arguments, **given.keywords)
            entropy, number = self.seed
            # Addressed by member and row, so that no draw of the loader can come between.
            address = np.random.SeedSequence(entropy, spawn_key=(number, start))
            with forked([self.device]):
                seed_all(int(address.generate_state(1, np.uint64)[0]), self.device)
                return self.model(*given.arguments, **given.keywords)


#: Members that share one pass, ready between entry and exit.
Group = AbstractContextManager[Sequence[Member]]


def listed_models(models: Any) -> Any:
    """Give models that are in hand as a list, and all that makes them on the way as it is."""
    nn = load_torch().nn
    if isinstance(models, nn.ModuleList | list | tuple):
        return list(models)
    if isinstance(models, nn.Module) or not hasattr(models, "__iter__"):
        came = f"one {type(models).__name__}"
        repair = "Pass `[model]` for one; `mc_dropout` makes several members of one model."
        raise refusal("models", "must be a list or iterator of models", came, repair)
    return models


def in_turn(models: Iterator[Any], device: Any) -> Iterator[Group]:
    """Make each model ready alone; the next is asked for when the last is gone."""
    number = 0
    for model in models:
        yield _ready(_callable(model, number), device)
        number += 1  # noqa: SIM113  (`enumerate` would keep the last model in its tuple)
        del model  # or it would live on while the next one is made


@contextmanager
def together(models: list[Any]) -> Iterator[Sequence[Member]]:
    """Make all models ready where they are."""
    with ExitStack() as stack:
        ready = (_ready(_callable(model, number), None) for number, model in enumerate(models))
        yield [member for group in ready for member in stack.enter_context(group)]


@contextmanager
def _ready(model: Any, device: Any) -> Iterator[Sequence[Member]]:
    with evaluated(model), placed(model, device) as home:
        yield [Member(model, home)]


def _callable(model: Any, number: int) -> Any:
    if not callable(model):
        came = f"an object of type {type(model).__name__} as member {number}"
        repair = "State dicts and files go to `checkpoints`."
        raise refusal("models", "must be modules or other callables", came, repair)
    return model


def check_module(model: Any) -> None:
    """Refuse what is no module, where flags and states of one are needed."""
    if not isinstance(model, load_torch().nn.Module):
        came = f"an object of type {type(model).__name__}"
        raise refusal("model", "must be a torch.nn.Module", came, "Several go to `deep_ensemble`.")
