"""How is a network made ready, and left exactly as it was found?"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

from hullcal._validation import refusal
from hullcal.ensembles._torch_package import load_torch

__all__ = ["check_device", "dropping_out", "evaluated", "forked", "own_state", "placed", "seed_all"]


def check_device(device: Any) -> Any:
    """Give a device that works here, with its number; None stays None."""
    if device is None:
        return None
    torch = load_torch()
    try:
        found = torch.empty(0, device=device).device
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:
        came = f"{device!r} ({' '.join(str(error).split())[:120]})"
        repair = 'Pass for example `device="cpu"`, or None for where the model is.'
        raise refusal("device", "must be a device that works here", came, repair) from error
    if found.type == "meta":
        repair = 'Pass for example `device="cpu"`.'
        raise refusal("device", "must hold numbers", '"meta", which holds none', repair)
    return found


@contextmanager
def placed(model: Any, device: Any) -> Iterator[Any]:
    """Move a model to a device, and back afterwards; gives the device its inputs go to.

    Parameters
    ----------
    model : Module or callable
        What is no module stays where it is.
    device : torch.device or None
        None for where the model is; None is given back if that cannot be told.
    """
    if not isinstance(model, load_torch().nn.Module):
        yield device
        return
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
    """Evaluation mode, save that dropout layers drop."""
    torch = load_torch()
    base = torch.nn.modules.dropout._DropoutNd
    parts = list(model.modules())
    layers = [part for part in parts if isinstance(part, base)]
    own = [part for part in parts if isinstance(part, types)]
    if not own and not any(layer.p > 0 for layer in layers):
        came = f"{len(layers)} of them, all with p = 0" if layers else "none"
        repair = (
            "Dropout called as a function, or a layer of your own, is named by its module: "
            "`dropout_types=(ThatModule,)`. Otherwise use `deep_ensemble` or `checkpoints`."
        )
        raise refusal("model", "must have dropout layers", came, repair)
    with evaluated(model), _without_fast_path():
        for part in [*layers, *own]:
            part.training = True  # the flag alone: what is inside it stays as it is
        yield


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Transformer layers in evaluation mode take a fused path that skips their dropout layers."""
    switch = load_torch().backends.mha
    before = switch.get_fastpath_enabled()
    try:
        switch.set_fastpath_enabled(False)
        yield
    finally:
        switch.set_fastpath_enabled(before)


@contextmanager
def own_state(model: Any) -> Iterator[None]:
    """Keep a copy of a model's state, off its device, and load it afterwards."""
    torch = load_torch()
    kept = {
        key: value.detach().to("cpu", copy=True)
        if isinstance(value, torch.Tensor)
        else copy.deepcopy(value)
        for key, value in model.state_dict().items()
    }
    try:
        yield
    finally:
        model.load_state_dict(kept)


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


def seed_all(seed: int, device: Any) -> None:
    """Seed the processor's generator and those of one kind of device, and no other."""
    torch = load_torch()
    torch.default_generator.manual_seed(seed)
    if device is not None and device.type != "cpu":
        module = getattr(torch, device.type)
        getattr(module, "manual_seed_all", module.manual_seed)(seed)
