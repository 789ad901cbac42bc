"""How is a network made ready, called and read, and left exactly as it was found?"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, refusal
from hullcal.sets import ClassifierSet

#: The keys under which a batch that is a dict may hold its labels.
_LABEL_KEYS = ("labels", "label", "y")

#: What models may return, and how a set of classifiers reads it.
_KINDS: dict[str, dict[str, bool]] = {
    "logits": {"from_logits": True},
    "probs": {},
    "log_probs": {"from_log": True},
}


def load_torch() -> Any:
    """Import torch on first use, so that hullcal works and is documented without it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"hullcal.ensembles.torch needs PyTorch, which cannot be imported ({error}). "
            "Install it with `pip install torch`."
        ) from error


# -- batches --------------------------------------------------------------------------------------


def check_loader(loader: Any) -> None:
    """Refuse what is no loader, and one that shuffles."""
    torch = load_torch()
    if isinstance(loader, torch.Tensor | Mapping | str) or not hasattr(loader, "__iter__"):
        came = f"an object of type {type(loader).__name__}"
        repair = "Pass a `torch.utils.data.DataLoader`, or a list of batches."
        raise refusal("loader", "must be an iterable of batches", came, repair)
    data = torch.utils.data
    shuffling = (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
    inner = getattr(loader, "batch_sampler", None)
    for sampler in (getattr(loader, "sampler", None), inner, getattr(inner, "sampler", None)):
        if isinstance(sampler, shuffling):
            came = f"a loader that shuffles ({type(sampler).__name__})"
            repair = "Pass a `DataLoader` with `shuffle=False`; rows are chosen with `Subset`."
            raise refusal("loader", "must keep the order of its rows", came, repair)


def split_batch(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Positional inputs, keyword inputs, and labels or None."""
    inputs, labels = batch, None
    if isinstance(batch, Mapping):
        found = [key for key in _LABEL_KEYS if key in batch]
        if len(found) > 1:
            rule = "must give dicts with one of the keys " + ", ".join(map(repr, _LABEL_KEYS))
            came = " and ".join(map(repr, found))
            raise refusal("loader", rule, came, "Keep the one that holds the labels.")
        inputs = {key: value for key, value in batch.items() if key not in found}
        labels = batch[found[0]] if found else None
    elif isinstance(batch, list | tuple) and not hasattr(batch, "to"):  # a packed sequence is one
        if len(batch) not in (1, 2):
            rule = "must give batches (inputs, labels), dicts, or inputs alone"
            came = f"a {type(batch).__name__} of {len(batch)} parts"
            repair = "Several inputs go into one tuple or dict: `((first, second), labels)`."
            raise refusal("loader", rule, came, repair)
        inputs, labels = batch[0], batch[1] if len(batch) == 2 else None
    if isinstance(inputs, Mapping):
        return (), {str(key): value for key, value in inputs.items()}, labels
    # A named or packed tuple is one thing to its model.
    several = isinstance(inputs, list | tuple) and not hasattr(inputs, "_fields")
    return tuple(inputs) if several else (inputs,), {}, labels


def _copied(value: Any, device: Any) -> Any:
    """Inputs with every tensor copied, to a device unless that is None."""
    if isinstance(value, load_torch().Tensor):
        # A copy even there: a model that works in place must not spoil the rows of the next one.
        return value.clone() if device is None else value.to(device=device, copy=True)
    if callable(getattr(value, "to", None)):  # packed sequences, graphs, encodings
        return value if device is None else value.to(device)
    if isinstance(value, Mapping):
        return {key: _copied(part, device) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [_copied(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


# -- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member:
    """A model that is ready, the device of its inputs, and its seed and number if it draws."""

    model: Callable[..., Any]
    device: Any
    seed: tuple[int, int] | None = None

    def outputs(self, arguments: tuple[Any, ...], keywords: dict[str, Any], start: int) -> Any:
        """Call the model on the batch whose first row is `start`, without gradients."""
        arguments, keywords = _copied(arguments, self.device), _copied(keywords, self.device)
        torch = load_torch()
        if self.seed is not None:
            entropy, number = self.seed
            # Addressed by member and row, so that no draw of the loader can come between.
            address = np.random.SeedSequence(entropy, spawn_key=(number, start))
            seed = int(address.generate_state(1, np.uint64)[0])
            torch.default_generator.manual_seed(seed)
            if self.device is not None and self.device.type != "cpu":  # and no other kind
                module = getattr(torch, self.device.type)
                getattr(module, "manual_seed_all", module.manual_seed)(seed)
        # Not inference mode: tensors that a model keeps for later calls would be spoiled by it.
        with torch.no_grad():
            return self.model(*arguments, **keywords)


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


def ready(groups: Iterable[list[Any]], device: Any) -> Generator[list[Member]]:
    """Members that share a pass, ready until the next are asked for."""
    for models in groups:
        with ExitStack() as stack:
            yield [Member(model, stack.enter_context(prepared(model, device))) for model in models]
        del models  # or the last one would live on while the next one is made


def check_module(model: Any) -> None:
    """Refuse what is no module, where flags and states of one are needed."""
    if not isinstance(model, load_torch().nn.Module):
        came = f"an object of type {type(model).__name__}"
        raise refusal("model", "must be a torch.nn.Module", came, "Several go to `deep_ensemble`.")


def check_device(device: Any) -> Any:
    """A device with its number; None stays None. Torch refuses what does not work here."""
    if device is None:
        return None
    probe = load_torch().zeros(1, device=device)
    probe.item()  # the meta device holds no numbers: a model would lose its parameters there
    return probe.device


@contextmanager
def prepared(model: Any, device: Any) -> Iterator[Any]:
    """A module in evaluation mode and on a device, then as it was; gives the device of its inputs."""
    if not isinstance(model, load_torch().nn.Module):
        yield device
        return
    flags = [(part, part.training) for part in model.modules()]  # parents before their parts
    homes = list(dict.fromkeys(t.device for t in chain(model.parameters(), model.buffers())))
    moved = device is not None and homes not in ([], [device])
    if moved and len(homes) > 1:
        came = "one on " + ", ".join(map(str, homes))
        repair = "Leave `device=None`: inputs then go to the device of the first parameter."
        raise refusal("device", "must be None for a model on several devices", came, repair)
    try:
        model.eval()
        if moved:
            model.to(device)
        yield homes[0] if device is None and homes else device
    finally:
        if moved:
            model.to(homes[0])
        for part, flag in flags:
            # Through `train`, which some parts override to undo what `eval` made of them ...
            if part.training != flag:
                part.train(flag)
        for part, flag in flags:
            part.training = flag  # ... and some to keep their own children frozen.


@contextmanager
def dropping_out(model: Any, device: Any, types: tuple[type, ...]) -> Iterator[Any]:
    """The same, except that dropout layers and modules of these types drop."""
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
    with prepared(model, device) as home:
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            for part in [*layers, *own]:
                part.training = True  # the flag alone: what is inside it stays as it is
            yield home
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)


def load_state(model: Any, state: Any, number: int) -> None:
    """Load checkpoint `number`; torch itself says well what does not fit."""
    own, given = (
        {each.data_ptr() for each in states.values() if hasattr(each, "numel") and each.numel()}
        for states in (model.state_dict(), state if isinstance(state, Mapping) else {})
    )
    if own & given:
        came = f"the parameters of `model` themselves as checkpoint {number}"
        repair = "`state_dict()` does not copy: keep `copy.deepcopy(model.state_dict())`."
        raise refusal("states", "must be copies", came, repair)
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError) as error:
        error.add_note(f"This is checkpoint {number} in `states`.")
        raise


# -- outputs --------------------------------------------------------------------------------------


class Reading:
    """Turns outputs into probabilities, and refuses those that are something else."""

    def __init__(self, outputs: Any, dtype: Any) -> None:
        if not callable(outputs) and str(outputs) not in _KINDS:
            rule = 'must be "logits", "probs", "log_probs" or a callable'
            repair = "A callable takes logits out of the output: `lambda out: out.logits`."
            raise refusal("outputs", rule, repr(outputs), repair)
        if dtype not in ("float32", "float64", np.float32, np.float64):
            repair = "Half precision would move probabilities over bin edges."
            raise refusal("dtype", 'must be "float32" or "float64"', repr(dtype), repair)
        self._extract = outputs if callable(outputs) else lambda output: output
        self._kind = "logits" if callable(outputs) else str(outputs)
        self._dtype = np.dtype(dtype)
        self._one_logit = False  # a single column of logits

    def doubts(self, probs: NDArray[Any]) -> bool:
        """Whether all that was taken for logits in one column lies between 0 and 1."""
        chances = probs[..., 1]
        logistic_of_1 = 0.73106
        return self._one_logit and 0.5 <= chances.min() <= chances.max() < logistic_of_1

    def rows(self, output: Any, member: int, start: int) -> NDArray[Any]:
        """Probabilities (n_rows, n_classes) of the batch whose first row is `start`."""
        torch = load_torch()
        value = self._extract(output)
        value = torch.as_tensor(value) if isinstance(value, np.ndarray) else value
        is_tensor = isinstance(value, torch.Tensor)
        if not (is_tensor and value.is_floating_point() and value.ndim <= 2):
            rule = "must lead to floating-point tensors (n_rows, n_classes), or one column for two"
            what = (
                f"{value.dtype}, shape {tuple(value.shape)}" if is_tensor else type(value).__name__
            )
            repair = "Pass a callable that takes the logits out: `outputs=lambda out: out.logits`."
            raise refusal("outputs", rule, f"{what} from member {member}", repair)
        value, kind = value.detach().cpu(), self._kind
        if value.ndim < 2 or value.shape[1] == 1:  # two classes, the column perhaps squeezed
            self._one_logit = kind == "logits"
            value, kind = _both_columns(value.double().reshape(-1, 1), kind)
        elif kind == "logits" and start == 0 and _are_probs(value):
            came = f"rows in [0, 1] that sum to 1 from member {member}"
            repair = 'Pass `outputs="probs"`; for logits that only look so, a callable that adds 1.'
            raise refusal("outputs", 'is "logits"', came, repair)
        try:
            probs = ClassifierSet(value, **_KINDS[kind]).probs[:, 0, :]
        except InvalidInputError as error:
            raise InvalidInputError(
                f'`outputs="{self._kind}"` does not fit member {member} in the batch from row {start} '
                f'on: {error} Here options are `outputs="logits"`, "probs" and "log_probs".'
            ) from error
        # Judged in the type of the result: rows keep their bits, or are divided by their sum.
        rows: NDArray[Any] = probs.astype(self._dtype)
        sums = rows.sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1) > 4 * rows.shape[1] * np.finfo(self._dtype).eps
        rows[off] = rows[off] / sums[off, None]
        return rows


def _both_columns(column: Any, kind: str) -> tuple[Any, str]:
    """Outputs for both classes from that for class 1, and their kind."""
    torch = load_torch()
    if kind == "logits":  # a sigmoid is a softmax over (0, z)
        return torch.hstack([torch.zeros_like(column), column]), "logits"
    chance = column if kind == "probs" else column.exp()
    return torch.hstack([1 - chance, chance]), "probs"


def _are_probs(value: Any) -> bool:
    try:
        return ClassifierSet(value).n_samples > 0
    except InvalidInputError:
        return False
