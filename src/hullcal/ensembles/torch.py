"""From PyTorch networks and a loader to (probs, labels): deep ensembles, MC dropout, snapshots."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import (
    InvalidInputError,
    check_integer,
    check_labels,
    check_seed,
    refusal,
    warn,
)
from hullcal.ensembles._networks import (
    Member,
    Reading,
    check_device,
    check_loader,
    check_module,
    dropping_out,
    forked,
    load_state,
    load_torch,
    ready,
    split_batch,
)
from hullcal.progress import Report, reporting

__all__ = ["Predictions", "checkpoints", "deep_ensemble", "mc_dropout"]

Progress = bool | Report


class Predictions(NamedTuple):
    """What members predict for the rows of a loader; it unpacks as ``probs, labels = ...``.

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes)
        Rows sum to 1.
    labels : ndarray of int64 and shape (n_samples,), or None
        None if the loader gives inputs only.
    """

    probs: NDArray[Any]
    labels: NDArray[np.int64] | None


def deep_ensemble(
    models: Any,
    loader: Iterable[Any],
    *,
    outputs: str | Callable[[Any], Any] = "logits",
    device: Any = None,
    dtype: Any = "float32",
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
    devices, and torch's random state is as it was.
    """
    nn = load_torch().nn
    if isinstance(models, nn.ModuleList | list | tuple):
        models = list(models)
    elif isinstance(models, nn.Module):
        repair = "Pass `[model]` for one; `mc_dropout` makes several members of one model."
        came = f"one {type(models).__name__}"
        raise refusal("models", "must be a list or iterator of models", came, repair)
    run = _Run(loader, Reading(outputs, dtype), _length(models), progress)
    together = device is None and isinstance(models, list) and models
    return run.gather(ready([models] if together else _each(models), check_device(device)))


def _each(models: Iterable[Any]) -> Iterator[list[Any]]:
    return map(lambda model: [model], models)  # noqa: C417  (`for` would keep the last one alive)


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
    outputs, device, dtype, progress
        As in `deep_ensemble`.

    Returns
    -------
    Predictions
        ``probs, labels``. torch's own random state is not touched.
    """
    check_module(model)
    types = (dropout_types,) if isinstance(dropout_types, type) else tuple(dropout_types)
    n_members = check_integer(n_members, "n_members", 1)
    seed, device = check_seed(rng), check_device(device)
    run = _Run(loader, Reading(outputs, dtype), n_members, progress)
    with dropping_out(model, device, types) as home:
        members = [Member(model, home, (seed, number)) for number in range(n_members)]
        found = run.gather(members for _ in range(1))
    same = all((found.probs[:, m] == found.probs[:, 0]).all() for m in range(1, n_members))
    if same and n_members > 1:
        warn(
            "dropout changed nothing: all members are the same. If modules drop without a dropout "
            "layer, name them in `dropout_types`.",
        )
    return found


def checkpoints(
    model: Any,
    states: Iterable[Any],
    loader: Iterable[Any],
    *,
    outputs: str | Callable[[Any], Any] = "logits",
    device: Any = None,
    dtype: Any = "float32",
    progress: Progress = False,
) -> Predictions:
    """Predictions of one network at several saved states, as in a snapshot ensemble.

    Parameters
    ----------
    model : torch.nn.Module
        Every state is loaded into it in turn; its own is loaded again afterwards.
    states : iterable of state dicts
        Copies, not the model's own ``state_dict()``. Files are loaded one at a time by
        ``(torch.load(path, weights_only=True) for path in paths)``.
    loader : iterable of batches
        As in `deep_ensemble`; it is gone over once for every state.
    outputs, device, dtype, progress
        As in `deep_ensemble`.

    Returns
    -------
    Predictions
        ``probs, labels``.
    """
    check_module(model)
    run = _Run(loader, Reading(outputs, dtype), _length(states), progress)

    def models() -> Iterator[Any]:
        for number, state in enumerate(states):
            load_state(model, state, number)
            yield model

    with ExitStack() as stack:
        stack.callback(model.load_state_dict, copy.deepcopy(model.state_dict()))
        return run.gather(ready(_each(models()), check_device(device)))


class _Run:
    """Passes of all members over one loader."""

    def __init__(
        self, loader: Any, reading: Reading, n_members: int | None, progress: Progress
    ) -> None:
        check_loader(loader)
        self._loader, self._reading, self._progress = loader, reading, progress
        self._n_members = n_members or 0
        self._n_classes = self._n_done = self._n_ticks = 0

    def gather(self, groups: Generator[list[Member]]) -> Predictions:
        """Let every group of members pass over the loader, and put their predictions together."""
        passes: list[Predictions] = []
        with reporting(self._progress, "batches") as report, closing(groups):
            for members in groups:
                with forked([member.device for member in members]):
                    passes.append(self._pass(members, report))
                self._check_same_rows(passes[0], passes[-1])
                self._n_done += len(members)
                del members  # the next model is made when this one is gone
        if not passes:
            rule = "must be at least one model or state"
            raise refusal("members", rule, "none", "Pass one or more.")
        probs = np.concatenate([each.probs for each in passes], axis=1)
        if self._reading.doubts(probs):
            warn(
                "every output of this one-column model lies in [0, 1]; if these are probabilities "
                'and not logits, pass `outputs="probs"`.',
            )
        return Predictions(probs, passes[0].labels)

    def _pass(self, members: Sequence[Member], report: Report | None) -> Predictions:
        blocks: list[NDArray[Any]] = []
        labels: list[NDArray[np.int32]] = []
        start = 0
        for batch in self._loader:
            arguments, keywords, given = split_batch(batch)
            rows = [
                self._reading.rows(member.outputs(arguments, keywords, start), number, start)
                for number, member in enumerate(members, self._n_done)
            ]
            self._check_shapes(rows, start)
            blocks.append(np.stack(rows, axis=1))
            if given is not None:
                n_rows, _, n_classes = blocks[-1].shape
                try:
                    labels.append(check_labels(given, n_samples=n_rows, n_classes=n_classes))
                except InvalidInputError as error:  # it counts rows from the start of the batch
                    raise InvalidInputError(f"In the batch from row {start} on: {error}") from error
            if len(labels) not in (0, len(blocks)):
                rule = "must give labels with every batch or with none"
                raise refusal("loader", rule, f"a change at row {start}", "Label every batch.")
            start += len(blocks[-1])
            self._n_ticks += len(members)
            if report is not None:
                n_members = max(self._n_members, self._n_done + len(members))
                report(self._n_ticks, max(self._n_ticks, n_members * (_length(self._loader) or 0)))
        probs = np.concatenate(blocks) if blocks else np.empty((0, len(members), 0))
        return Predictions(probs, np.concatenate(labels, dtype=np.int64) if labels else None)

    def _check_shapes(self, rows: list[NDArray[Any]], start: int) -> None:
        self._n_classes = self._n_classes or rows[0].shape[1]
        expected = (len(rows[0]), self._n_classes)
        for number, each in enumerate(rows, self._n_done):
            if each.shape != expected:
                rule = "must give one row of outputs per instance and the same classes always"
                came = f"shape {each.shape} from member {number} in row {start} on"
                raise refusal("models", rule, came, f"Here {expected} was expected.")

    def _check_same_rows(self, first: Predictions, later: Predictions) -> None:
        """Refuse a loader without rows, and a pass whose rows or labels are not those of the first."""
        if len(first.probs) == 0:
            raise refusal("loader", "must give at least one row", "none", "Check the dataset.")
        same_labels = np.array_equal(np.asarray(first.labels), np.asarray(later.labels))
        if len(first.probs) != len(later.probs) or not same_labels:
            rule = "must give the same rows in the same order in every pass"
            rows = f"{len(later.probs)} rows after {len(first.probs)}, or other labels"
            repair = "Pass a `DataLoader` that draws nothing at random, not an iterator over one."
            raise refusal("loader", rule, f"{rows}, in the pass of member {self._n_done}", repair)


def _length(value: Any) -> int | None:
    """Length of a loader or sequence; None where it has none or will not say."""
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None
