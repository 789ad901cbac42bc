"""What does a loader give, and how does what a network returns become rows of probabilities?"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
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
    if isinstance(batch, Mapping):
        found = [key for key in _LABEL_KEYS if key in batch]
        if len(found) > 1:
            rule = "must give dicts with one of the keys " + ", ".join(map(repr, _LABEL_KEYS))
            came = " and ".join(map(repr, found))
            raise refusal("loader", rule, came, "Keep the one that holds the labels.")
        keywords = {str(key): value for key, value in batch.items() if key not in found}
        return (), keywords, batch[found[0]] if found else None
    inputs, labels = batch, None
    if isinstance(batch, list | tuple) and not hasattr(batch, "to"):  # a packed sequence is a tuple
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


def copied(value: Any, device: Any) -> Any:
    """Inputs with every tensor copied, to a device unless that is None.

    A copy even there: a model that works in place must not spoil the rows of the next one.
    """
    if isinstance(value, load_torch().Tensor):
        return value.clone() if device is None else value.to(device=device, copy=True)
    if callable(getattr(value, "to", None)):  # packed sequences, graphs, encodings
        return value if device is None else value.to(device)
    if isinstance(value, Mapping):
        return {key: copied(part, device) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(copied(part, device) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(copied(part, device) for part in value)
    return value


class Reading:
    """Turns outputs into probabilities, and refuses those that are something else."""

    def __init__(self, parameter: str, outputs: Any, dtype: Any) -> None:
        if not callable(outputs) and str(outputs) not in _KINDS:
            rule = 'must be "logits", "probs", "log_probs" or a callable'
            repair = "A callable takes logits out of the output: `lambda out: out.logits`."
            raise refusal("outputs", rule, repr(outputs), repair)
        name = getattr(dtype, "__name__", str(dtype))  # np.float32 as well as "float32"
        if name not in ("float32", "float64"):
            repair = "Half precision would move probabilities over bin edges."
            raise refusal("dtype", 'must be "float32" or "float64"', repr(dtype), repair)
        self.parameter = parameter  # which holds the models, for messages
        self._extract = outputs if callable(outputs) else None
        self._kind = "logits" if callable(outputs) else str(outputs)
        self._dtype = np.dtype(name)
        self._low, self._high = np.inf, -np.inf  # of logits in one column

    @property
    def doubtful(self) -> bool:
        """Whether all outputs were one column of "logits" between 0 and 1."""
        return 0 <= self._low <= self._high <= 1

    def rows(self, output: Any, member: int, start: int) -> NDArray[Any]:
        """Probabilities (n_rows, n_classes) of the batch whose first row is `start`."""
        value = self._tensor(output, member)
        array = value.double().numpy()  # comparisons are exact in float64
        array = array.reshape(-1, 1) if array.ndim < 2 else array  # two classes, column squeezed
        if array.ndim > 2 or array.size == 0:
            rule = "must return outputs of shape (n_rows, n_classes), or one column for two classes"
            came = f"shape {array.shape} from member {member}"
            repair = "Take the classification head's output, `outputs=lambda out: ...`."
            raise refusal(self.parameter, rule, came, repair)
        self._check_finite(array, member, start)
        one_column = array.shape[1] == 1
        probs = self._from_column(array) if one_column else _read(value, self._kind)
        if probs is None:
            came = f"other outputs from member {member} in the batch from row {start} on"
            logs = self._kind == "probs" and _read(value, "log_probs") is not None
            repair = f'Pass `outputs="{"log_probs" if logs else "logits"}"`.'
            raise refusal("outputs", f'is "{self._kind}"', came, repair)
        first = self._kind == "logits" and not one_column and start == 0
        if first and _read(value, "probs") is not None:
            came = f"rows in [0, 1] that sum to 1 from member {member}"
            repair = 'Pass `outputs="probs"`; for logits that only look so, a callable that adds 1.'
            raise refusal("outputs", 'is "logits"', came, repair)
        # Judged in the type of the result: rows keep their bits, or are divided by their sum.
        rows: NDArray[Any] = probs.astype(self._dtype)
        sums = rows.sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1) > 4 * rows.shape[1] * np.finfo(self._dtype).eps
        rows[off] = rows[off] / sums[off, None]
        return rows

    def _tensor(self, output: Any, member: int) -> Any:
        torch = load_torch()
        value = output if self._extract is None else self._extract(output)
        if not isinstance(value, torch.Tensor | np.ndarray):
            came = f"an object of type {type(value).__name__} from member {member}"
            repair = (
                "Pass a callable that takes the logits out: `outputs=lambda out: out.logits`, "
                "`out[0]` or `out['logits']`."
            )
            raise refusal("outputs", "must lead to a tensor", came, repair)
        tensor = torch.as_tensor(value).detach().cpu()
        if not tensor.is_floating_point():
            came = f"{tensor.dtype} from member {member}"
            repair = "Return scores of all classes, not the chosen class."
            raise refusal(self.parameter, "must return floating-point outputs", came, repair)
        return tensor

    def _check_finite(self, array: NDArray[np.float64], member: int, start: int) -> None:
        bad = ~np.isfinite(array)
        if self._kind == "log_probs":
            bad &= ~np.isneginf(array)  # the logarithm of a zero
        if bad.any():
            row, column = np.argwhere(bad)[0]
            came = f"{array[row, column]} from member {member}, first in row {start + row}"
            repair = "Check that member's weights and inputs; half precision overflows above 65504."
            raise refusal(self.parameter, "must return finite outputs", came, repair)

    def _from_column(self, column: NDArray[np.float64]) -> NDArray[Any] | None:
        """Both classes from the column of class 1."""
        if self._kind == "logits":  # a sigmoid is a softmax over (0, z)
            self._low = min(self._low, float(column.min()))
            self._high = max(self._high, float(column.max()))
            return _read(np.hstack([np.zeros_like(column), column]), "logits")
        with np.errstate(over="ignore"):
            chance = column if self._kind == "probs" else np.exp(column)
        return _read(np.hstack([1 - chance, chance]), "probs")


def _read(value: Any, kind: str) -> NDArray[Any] | None:
    """Rows of probabilities, or None if these are no outputs of this kind."""
    try:
        return ClassifierSet(value, **_KINDS[kind]).probs[:, 0, :]
    except InvalidInputError:
        return None
