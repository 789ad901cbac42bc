"""What does a loader give: which part of a batch is input, which is labels, in which order?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hullcal._validation import refusal
from hullcal.ensembles._torch_package import load_torch

__all__ = ["Inputs", "check_loader", "length_or_none", "split_batch"]

#: The keys under which a batch that is a dict may hold its labels.
LABEL_KEYS = ("labels", "label", "y")


class Inputs(NamedTuple):
    """What a model is called with."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def copied_to(self, device: Any) -> Inputs:
        """Copy every tensor to a device; with None they stay where they are.

        A copy even there: a model that works in place must not spoil the rows of the next one.
        """
        arguments = tuple(_copied(value, device) for value in self.arguments)
        return Inputs(arguments, {k: _copied(v, device) for k, v in self.keywords.items()})


def _copied(value: Any, device: Any) -> Any:
    if isinstance(value, load_torch().Tensor):
        return value.clone() if device is None else value.to(device=device, copy=True)
    if callable(getattr(value, "to", None)):  # packed sequences, graphs, encodings
        return value if device is None else value.to(device)
    if isinstance(value, Mapping):
        return {key: _copied(part, device) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_copied(part, device) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(_copied(part, device) for part in value)
    return value


def split_batch(batch: Any) -> tuple[Inputs, Any]:
    """Part a batch into the inputs of the model and the labels, None where there are none.

    Parameters
    ----------
    batch : object
        ``(inputs, labels)``; a dict with its labels under "labels", "label" or "y"; or inputs
        alone. Inputs that are a tuple or list become several arguments, a dict keywords.
    """
    if isinstance(batch, Mapping):
        return _split_mapping(batch)
    if not isinstance(batch, list | tuple) or hasattr(batch, "to"):  # a packed sequence is a tuple
        return _called_with(batch), None
    if len(batch) not in (1, 2):
        came = f"a {type(batch).__name__} of {len(batch)} parts"
        repair = "Several inputs go into one tuple or dict: `((first, second), labels)`."
        rule = "must give batches (inputs, labels), dicts, or inputs alone"
        raise refusal("loader", rule, came, repair)
    return _called_with(batch[0]), batch[1] if len(batch) == 2 else None


def _split_mapping(batch: Mapping[Any, Any]) -> tuple[Inputs, Any]:
    found = [key for key in LABEL_KEYS if key in batch]
    if len(found) > 1:
        rule = "must give dicts with one of the keys " + ", ".join(map(repr, LABEL_KEYS))
        repair = "Keep the one that holds the labels."
        raise refusal("loader", rule, " and ".join(map(repr, found)), repair)
    keywords = {str(key): value for key, value in batch.items() if key not in found}
    return Inputs((), keywords), batch[found[0]] if found else None


def _called_with(inputs: Any) -> Inputs:
    if isinstance(inputs, Mapping):
        return Inputs((), {str(key): value for key, value in inputs.items()})
    # A named or packed tuple is one thing to its model.
    several = isinstance(inputs, list | tuple) and not hasattr(inputs, "_fields")
    return Inputs(tuple(inputs) if several else (inputs,), {})


def check_loader(loader: Any, *, several_passes: bool) -> None:
    """Refuse a loader whose rows come in another order, or not at all, in a second pass.

    Parameters
    ----------
    loader : iterable of batches
    several_passes : bool
        Whether it is gone over more than once.
    """
    if isinstance(loader, load_torch().Tensor | Mapping | str) or not hasattr(loader, "__iter__"):
        came = f"an object of type {type(loader).__name__}"
        repair = "Pass a `torch.utils.data.DataLoader`, or a list of batches."
        raise refusal("loader", "must be an iterable of batches", came, repair)
    rule = "must give the same rows in the same order in every pass"
    for sampler in _samplers(loader):
        if isinstance(sampler, _random_samplers()):
            came = f"a loader that shuffles ({type(sampler).__name__})"
            repair = "Pass a `DataLoader` with `shuffle=False`; rows are chosen with `Subset`."
            raise refusal("loader", rule, came, repair)
    if several_passes and isinstance(loader, Iterator):
        came = f"a {type(loader).__name__}, which is used up after one pass"
        repair = "Pass the `DataLoader` itself, or `list(loader)`."
        raise refusal("loader", rule, came, repair)


def _samplers(loader: Any) -> Iterator[Any]:
    inner = getattr(loader, "batch_sampler", None)
    yield from (getattr(loader, "sampler", None), inner, getattr(inner, "sampler", None))


def _random_samplers() -> tuple[type, ...]:
    data = load_torch().utils.data
    return (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)


def length_or_none(value: Any) -> int | None:
    """Length of a loader, sampler or sequence; None where it has none or will not say."""
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None
