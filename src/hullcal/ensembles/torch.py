"""From PyTorch networks and a loader to (probs, labels): deep ensembles, MC dropout, snapshots."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import HullcalWarning, blocks, check_integer, check_seed, refusal
from hullcal.ensembles._torch_batches import length_or_none
from hullcal.ensembles._torch_members import (
    Group,
    Member,
    check_module,
    in_turn,
    listed_models,
    together,
)
from hullcal.ensembles._torch_modes import check_device, dropping_out, evaluated, own_state, placed
from hullcal.ensembles._torch_outputs import Reading, check_dtype_name
from hullcal.ensembles._torch_passes import Predictions, Run
from hullcal.ensembles._torch_states import load_state
from hullcal.ensembles._torch_storage import Destination, check_out
from hullcal.progress import reporting

__all__ = ["Predictions", "checkpoints", "deep_ensemble", "mc_dropout"]

Progress = bool | Callable[[int, int], None]

_LOOK_LIKE_PROBS = (
    "every output of this one-column model lies in [0, 1]; if these are probabilities and not "
    'logits, pass `outputs="probs"`.'
)
_NO_EFFECT = (
    "dropout changed nothing: all members are the same. If modules drop without a dropout layer, "
    "name them in `dropout_types`."
)


def deep_ensemble(
    models: Any,
    loader: Iterable[Any],
    *,
    outputs: str | Callable[[Any], Any] = "logits",
    device: Any = None,
    dtype: Any = "float32",
    out: Any = None,
    force: bool = False,
    memory_limit: int = 2**30,
    progress: Progress = False,
) -> Predictions:
    """Predictions of several networks, one member each.

    Parameters
    ----------
    models : sequence or iterator of torch.nn.Module or callable
        A list passes over the loader together where it stays on its device, so that every batch
        is loaded once. An iterator makes its models one at a time, and one is gone before the
        next is made; each passes over the loader in turn. Modules are put in evaluation mode.
    loader : iterable of batches
        A `DataLoader` that does not shuffle, or a list of batches. A batch is
        ``(inputs, labels)``, a dict with its labels under "labels", "label" or "y", or inputs
        alone. Inputs that are a tuple or list become several arguments of the model, a dict its
        keywords. Labels are class positions or one-hot rows, and the same in every pass.
    outputs : {"logits", "probs", "log_probs"} or callable
        What the models return, (n_rows, n_classes), or one column (that of class 1) for two
        classes. A callable takes logits out of the output: ``lambda out: out.logits``.
        Log-probabilities over all classes are logits too.
    device : torch.device, str or None
        Where to compute; None for where the model is. A model that was moved is moved back.
    dtype : {"float32", "float64"}
        Of the result; a softmax is computed in float64.
    out : str or path-like, optional
        A `.npy` file to write to while predictions come in. It is under a temporary name until it
        is whole; the result is a read-only memory map of it.
    force : bool
        Whether an existing `out` may be replaced.
    memory_limit : int
        Without `out`, a result of more bytes is a memory map of a temporary file, which goes when
        the array and its last view do.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total) in batches times members. The
        total grows where the number of batches or members is not known.

    Returns
    -------
    Predictions
        ``probs, labels``.

    Notes
    -----
    Whatever happens, also on an error or Ctrl-C, the models keep their parameters, modes and
    devices, torch's random state is as it was, and no half-written file stays.
    """
    target, listed = check_device(device), listed_models(models)
    place = {"dtype": dtype, "out": out, "force": force, "memory_limit": memory_limit}
    run, reading = _run("models", loader, length_or_none(listed), outputs, **place)
    one_pass = target is None and isinstance(listed, list)
    groups = iter([together(listed)]) if one_pass else in_turn(iter(listed), target)
    with reporting(progress, "batches") as report:
        predictions = run.gather(groups, one_pass=one_pass, report=report)
    _warn_if(reading.doubtful, _LOOK_LIKE_PROBS)
    return predictions


def mc_dropout(
    model: Any,
    loader: Iterable[Any],
    n_members: int = 10,
    *,
    outputs: str | Callable[[Any], Any] = "logits",
    rng: int | np.random.Generator | None = 0,
    dropout_types: Sequence[type] | type = (),
    device: Any = None,
    dtype: Any = "float32",
    out: Any = None,
    force: bool = False,
    memory_limit: int = 2**30,
    progress: Progress = False,
) -> Predictions:
    """Predictions of one network with dropout left on, a fresh draw for every member.

    All parts are in evaluation mode, batch normalisation too; only dropout layers drop. As usual
    for Monte Carlo dropout, masks are drawn anew for every row: a member is a pass over the data
    and not one thinned network. The loader is gone over once.

    Parameters
    ----------
    model : torch.nn.Module
        With `torch.nn.Dropout` or one of its relatives in it.
    loader : iterable of batches
        As in `deep_ensemble`.
    n_members : int
        Number of passes with dropout.
    rng : int, numpy.random.Generator or None
        Seed of the masks. The same seed and the same batches give the same bits on one machine;
        another batch size gives other masks.
    dropout_types : type or sequence of types
        Modules beside torch's dropout layers that drop when they are in training mode, such as a
        block that calls ``functional.dropout``, `torch.nn.LSTM` or
        `torch.nn.MultiheadAttention`. What is inside them stays in evaluation mode.
    outputs, device, dtype, out, force, memory_limit, progress
        As in `deep_ensemble`.

    Returns
    -------
    Predictions
        ``probs, labels``. torch's own random state is not touched.
    """
    check_module(model)
    types = _checked_types(dropout_types)
    n_members = check_integer(n_members, "n_members", 1)
    seed, target = check_seed(rng), check_device(device)
    place = {"dtype": dtype, "out": out, "force": force, "memory_limit": memory_limit}
    run, reading = _run("model", loader, n_members, outputs, **place)
    with (
        dropping_out(model, types),
        placed(model, target) as home,
        reporting(progress, "batches") as report,
    ):
        members = [Member(model, home, (seed, number)) for number in range(n_members)]
        predictions = run.gather(iter([nullcontext(members)]), one_pass=True, report=report)
    _warn_if(reading.doubtful, _LOOK_LIKE_PROBS)
    _warn_if(_all_the_same(predictions.probs), _NO_EFFECT)
    return predictions


def checkpoints(
    model: Any,
    states: Iterable[Any],
    loader: Iterable[Any],
    *,
    outputs: str | Callable[[Any], Any] = "logits",
    device: Any = None,
    dtype: Any = "float32",
    out: Any = None,
    force: bool = False,
    memory_limit: int = 2**30,
    progress: Progress = False,
) -> Predictions:
    """Predictions of one network at several saved states, as in a snapshot ensemble.

    Parameters
    ----------
    model : torch.nn.Module
        Every state is loaded into it in turn; its own is loaded again afterwards.
    states : iterable of state dicts, or of paths
        Copies, not the model's own ``state_dict()``. Files are read by `torch.load` with
        ``weights_only=True``, `.safetensors` files by safetensors. A state may be wrapped under
        "state_dict", "model_state_dict" or "model".
    loader : iterable of batches
        As in `deep_ensemble`; it is gone over once for every state.
    outputs, device, dtype, out, force, memory_limit, progress
        As in `deep_ensemble`.

    Returns
    -------
    Predictions
        ``probs, labels``.
    """
    check_module(model)
    if isinstance(states, Mapping | str | bytes) or not hasattr(states, "__iter__"):
        came = f"an object of type {type(states).__name__}"
        raise refusal("states", "must be a list of states", came, "Pass `states=[state]` for one.")
    target, n_members = check_device(device), length_or_none(states)
    place = {"dtype": dtype, "out": out, "force": force, "memory_limit": memory_limit}
    run, reading = _run("states", loader, n_members, outputs, **place)

    def groups(home: Any) -> Iterator[Group]:
        for number, state in enumerate(states):
            load_state(model, state, number)
            yield nullcontext([Member(model, home)])

    with (
        own_state(model),
        placed(model, target) as home,
        evaluated(model),
        reporting(progress, "batches") as report,
    ):
        predictions = run.gather(groups(home), one_pass=n_members == 1, report=report)
    _warn_if(reading.doubtful, _LOOK_LIKE_PROBS)
    return predictions


def _run(
    parameter: str, loader: Any, n_members: int | None, outputs: Any, **place: Any
) -> tuple[Run, Reading]:
    """Check what all functions here share, before any work."""
    destination = Destination(
        dtype=check_dtype_name(place["dtype"]),
        memory_limit=check_integer(place["memory_limit"], "memory_limit", 0),
        out=check_out(place["out"], force=place["force"]),
        force=bool(place["force"]),
    )
    reading = Reading(outputs, destination.dtype, parameter)
    return Run(loader, n_members, reading, destination, parameter), reading


def _checked_types(types: Any) -> tuple[type, ...]:
    listed = (types,) if isinstance(types, type) else tuple(types)
    if not all(isinstance(kind, type) for kind in listed):
        repair = "Pass classes of modules, such as `dropout_types=(torch.nn.LSTM,)`."
        raise refusal("dropout_types", "must be types", repr(types)[:80], repair)
    return listed


def _all_the_same(probs: NDArray[Any]) -> bool:
    several = probs.shape[1] > 1
    return several and all(bool((block == block[:, :1]).all()) for _, block in blocks(probs))


def _warn_if(doubtful: bool, message: str) -> None:
    if doubtful:
        warnings.warn(message, HullcalWarning, stacklevel=3)
