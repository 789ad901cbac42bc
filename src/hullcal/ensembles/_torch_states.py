"""How does a saved state get into a model, from a dict or from a file?"""

from __future__ import annotations

import os
import pickle
import reprlib
from collections.abc import Mapping
from typing import Any

from hullcal._validation.errors import InvalidInputError, refusal
from hullcal.ensembles._torch_package import load_torch
from hullcal.io.source import Source

__all__ = ["load_state"]

#: Where training scripts put the parameters beside other things.
WRAPPERS = ("state_dict", "model_state_dict", "model")

#: What wrappers of a model put before each key, and by whose hand.
PREFIXES = {"module.": "DataParallel", "_orig_mod.": "torch.compile"}


def load_state(model: Any, state: Any, number: int) -> None:
    """Load one checkpoint into a model.

    Parameters
    ----------
    model : Module
    state : mapping, str or path-like
        A state dict; or the path of a file that holds one. Either may be wrapped under
        "state_dict", "model_state_dict" or "model".
    number : int
        Its place among the checkpoints, for messages.
    """
    name = f"checkpoint {number}"
    if isinstance(state, str | os.PathLike):
        name = f"checkpoint {number} ({os.fsdecode(state)!r})"
        state = _read(Source.of(state, "states"))
    state = _unwrapped(state)
    if not isinstance(state, Mapping):
        came = f"an object of type {type(state).__name__} as {name}"
        repair = "Save `model.state_dict()`, not the model."
        raise refusal("states", "must hold state dicts or paths of files", came, repair)
    _refuse_alias(model, state, name)
    try:
        outcome = model.load_state_dict(state, strict=False)
    except RuntimeError as error:  # shapes
        came = f"{name}: {' '.join(str(error).split())[:300]}"
        repair = "Build `model` with the sizes it was trained with."
        raise refusal("states", "must fit `model`", came, repair) from error
    if outcome.missing_keys or outcome.unexpected_keys:
        raise _other_keys(name, outcome.missing_keys, outcome.unexpected_keys)


def _read(source: Source) -> Any:
    """Read a file of tensors; Python objects in it are never brought to life."""
    source.check_kind()
    if source.suffix == ".safetensors":
        safetensors = source.needs("safetensors.torch")
        with source.guarded():
            return safetensors.load_file(source.path, device="cpu")
    with source.guarded():
        try:
            return load_torch().load(source.path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            rule, came = "must hold tensors only", "Python objects, or no file of torch,"
            repair = "Save `model.state_dict()`, not the model."
            raise source.refuse(rule, came, repair) from error


def _unwrapped(state: Any) -> Any:
    if isinstance(state, Mapping):
        for key in WRAPPERS:
            if isinstance(state.get(key), Mapping):
                return state[key]
    return state


def _refuse_alias(model: Any, state: Mapping[str, Any], name: str) -> None:
    """Refuse a state that changes as soon as another one is loaded."""
    tensor = load_torch().Tensor
    own = {t.data_ptr() for t in _tensors(model.state_dict(), tensor)}
    if any(t.data_ptr() in own for t in _tensors(state, tensor)):
        came = f"the parameters of `model` themselves as {name}"
        repair = "`state_dict()` does not copy: keep `copy.deepcopy(model.state_dict())`."
        raise refusal("states", "must be copies", came, repair)


def _tensors(state: Mapping[str, Any], kind: Any) -> list[Any]:
    return [value for value in state.values() if isinstance(value, kind) and value.numel()]


def _other_keys(name: str, missing: list[str], unexpected: list[str]) -> InvalidInputError:
    came = f"{name} with missing keys {_few(missing)} and unexpected keys {_few(unexpected)}"
    repair = "Build `model` as it was when it was saved."
    for prefix, origin in PREFIXES.items():
        if unexpected and all(key.startswith(prefix) for key in unexpected):
            repair = (
                f"The keys come from {origin}: strip them, "
                f"`{{key.removeprefix({prefix!r}): value for key, value in state.items()}}`."
            )
    return refusal("states", "must have the keys of `model`", came, repair)


def _few(keys: list[str]) -> str:
    short = reprlib.Repr()
    short.maxlist, short.maxstring = 4, 80
    return short.repr(list(keys))
