"""How is a network made ready, called, and left exactly as it was found?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.ensembles._torch_rows import copied, load_torch


@dataclass(frozen=True)
class Member:
    """A model that is ready, the device of its inputs, and its seed and number if it draws."""

    model: Callable[..., Any]
    device: Any
    seed: tuple[int, int] | None = None

    def outputs(self, arguments: tuple[Any, ...], keywords: dict[str, Any], start: int) -> Any:
        """Call the model on the batch whose first row is `start`, without gradients."""
        arguments, keywords = copied(arguments, self.device), copied(keywords, self.device)
        # Not inference mode: tensors that a model keeps for later calls would be spoiled by it.
        with load_torch().no_grad(), ExitStack() as stack:
            if self.seed is not None:
                entropy, number = self.seed
                # Addressed by member and row, so that no draw of the loader can come between.
                address = np.random.SeedSequence(entropy, spawn_key=(number, start))
                stack.enter_context(forked([self.device]))
                _seed_all(int(address.generate_state(1, np.uint64)[0]), self.device)
            return self.model(*arguments, **keywords)


#: Members that share one pass, ready between entry and exit.
Group = AbstractContextManager[Sequence[Member]]


@contextmanager
def forked(devices: Any) -> Iterator[None]:
    """Leave torch's generators, of the processor and of these devices, as they were."""
    torch = load_torch()
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        for kind in {device.type for device in devices if device is not None} - {"cpu"}:
            count = range(getattr(torch, kind).device_count())
            stack.enter_context(torch.random.fork_rng(devices=count, device_type=kind))
        yield


def _seed_all(seed: int, device: Any) -> None:
    """Seed the processor's generator and those of one kind of device, and no other."""
    torch = load_torch()
    torch.default_generator.manual_seed(seed)
    if device is not None and device.type != "cpu":
        module = getattr(torch, device.type)
        getattr(module, "manual_seed_all", module.manual_seed)(seed)


def in_turn(models: Iterator[Any], device: Any) -> Iterator[Group]:
    """Make each model ready alone; the next is made when the last is gone."""
    number = 0
    for model in models:
        yield _ready(model, number, device)
        number += 1  # noqa: SIM113  (`enumerate` would keep the last model in its tuple)
        del model  # or it would live on while the next one is made


@contextmanager
def together(models: list[Any]) -> Iterator[Sequence[Member]]:
    """Make all models ready where they are."""
    with ExitStack() as stack:
        ready = (_ready(model, number, None) for number, model in enumerate(models))
        yield [member for group in ready for member in stack.enter_context(group)]


@contextmanager
def _ready(model: Any, number: int, device: Any) -> Iterator[Sequence[Member]]:
    if not callable(model):
        came = f"an object of type {type(model).__name__} as member {number}"
        rule = "must be modules or other callables"
        raise refusal("models", rule, came, "State dicts go to `checkpoints`.")
    with evaluated(model), placed(model, device) as home:
        yield [Member(model, home)]


def check_module(model: Any) -> None:
    """Refuse what is no module, where flags and states of one are needed."""
    if not isinstance(model, load_torch().nn.Module):
        came = f"an object of type {type(model).__name__}"
        raise refusal("model", "must be a torch.nn.Module", came, "Several go to `deep_ensemble`.")


def check_device(device: Any) -> Any:
    """Give a device that works here, with its number; None stays None."""
    if device is None:
        return None
    try:
        probe = load_torch().zeros(1, device=device)
        probe.item()  # the meta device holds no numbers
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:
        came = f"{device!r} ({' '.join(str(error).split())[:120]})"
        repair = 'Pass for example `device="cpu"`, or None for where the model is.'
        raise refusal("device", "must be a device that works here", came, repair) from error
    return probe.device


@contextmanager
def placed(model: Any, device: Any) -> Iterator[Any]:
    """Move a module to a device, and back afterwards; gives the device of its inputs, if known."""
    homes = []
    if isinstance(model, load_torch().nn.Module):
        homes = list(dict.fromkeys(t.device for t in chain(model.parameters(), model.buffers())))
    if device is None or not homes or homes == [device]:
        yield device if device is not None or not homes else homes[0]
        return
    if len(homes) > 1:
        came = "one on " + ", ".join(map(str, homes))
        repair = "Leave `device=None`: inputs then go to the device of the first parameter."
        raise refusal("device", "must be None for a model on several devices", came, repair)
    try:
        model.to(device)
        yield device
    finally:
        model.to(homes[0])


@contextmanager
def evaluated(model: Any) -> Iterator[None]:
    """Put a model in evaluation mode; the flag of every part is restored afterwards."""
    if not isinstance(model, load_torch().nn.Module):
        yield
        return
    flags = [(part, part.training) for part in model.modules()]  # parents before their parts
    try:
        model.eval()
        yield
    finally:
        for part, flag in flags:
            # Through `train`, which some parts override to undo what `eval` made of them ...
            if part.training != flag:
                part.train(flag)
        for part, flag in flags:
            part.training = flag  # ... and some to keep their own children frozen.


@contextmanager
def dropping_out(model: Any, types: tuple[type, ...]) -> Iterator[None]:
    """Evaluation mode, except that dropout layers and modules of these types drop."""
    torch = load_torch()
    parts = list(model.modules())
    layers = [part for part in parts if isinstance(part, torch.nn.modules.dropout._DropoutNd)]
    own = [part for part in parts if isinstance(part, types)]
    if not own and not any(layer.p > 0 for layer in layers):
        came = f"{len(layers)} of them, all with p = 0" if layers else "none"
        repair = (
            "Dropout called as a function, or a layer of your own, is named by its module: "
            "`dropout_types=(ThatModule,)`. Otherwise use `deep_ensemble` or `checkpoints`."
        )
        raise refusal("model", "must have dropout layers", came, repair)
    # Transformer layers in evaluation mode take a fused path that skips their dropout layers.
    fused = torch.backends.mha.get_fastpath_enabled()
    with evaluated(model):
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            for part in [*layers, *own]:
                part.training = True  # the flag alone: what is inside it stays as it is
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)


@contextmanager
def own_state(model: Any) -> Iterator[None]:
    """Keep a copy of a model's state, and load it afterwards."""
    kept = copy.deepcopy(model.state_dict())
    try:
        yield
    finally:
        model.load_state_dict(kept)


def load_state(model: Any, state: Any, number: int) -> None:
    """Load checkpoint `number` into a model."""
    name = f"checkpoint {number}"
    if not isinstance(state, Mapping):
        came = f"an object of type {type(state).__name__} as {name}"
        repair = "Load files first, `torch.load(path, weights_only=True)`."
        raise refusal("states", "must hold state dicts", came, repair)
    if _addresses(state) & _addresses(model.state_dict()):
        # It would change as soon as another one is loaded.
        came = f"the parameters of `model` themselves as {name}"
        repair = "`state_dict()` does not copy: keep `copy.deepcopy(model.state_dict())`."
        raise refusal("states", "must be copies", came, repair)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:  # keys or shapes
        came = f"{name}: {' '.join(str(error).split())[:300]}"
        repair = (
            "Build `model` as it was when the state was saved. Under DataParallel and torch.compile "
            "every key begins with `module.` or `_orig_mod.`, which must be removed."
        )
        raise refusal("states", "must fit `model`", came, repair) from error


def _addresses(state: Mapping[str, Any]) -> set[int]:
    tensor = load_torch().Tensor
    return {v.data_ptr() for v in state.values() if isinstance(v, tensor) and v.numel()}
