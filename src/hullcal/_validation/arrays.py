"""From whatever holds numbers (torch, jax, cupy, frames, lists, dicts) to an array of numpy."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import InvalidInputError, refusal

_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z")
#: What data frames call their row numbers: in front in CSV, there read back, and in Parquet.
_IN_FRONT, _ANYWHERE = ("", "Unnamed: 0"), "__index_level_0__"


@dataclass(frozen=True, slots=True)
class Precision:
    """How far from one the rows of a floating-point type may honestly sum."""

    name: str
    eps: float  # distance from 1 to the next larger number
    limit: float  # deviation that is repaired, on top of what is left alone

    def left_alone(self, n_classes: int) -> float:
        """Deviation of a row sum that is rounding and nothing else."""
        # In half precision 4 K eps loses its meaning: K = 100 would allow a row that sums to 4.
        return min(4 * n_classes * self.eps, 0.05)

    def repaired(self, n_classes: int) -> float:
        """Largest deviation of a row sum that is renormalised; beyond it the row is refused."""
        return self.left_alone(n_classes) + self.limit


# Doubles are often float32 stored wide, so both have the same limit.
FLOAT64 = Precision("float64", 2.0**-52, 1e-4)
FLOAT32 = Precision("float32", 2.0**-23, 1e-4)
FLOAT16 = Precision("float16", 2.0**-10, 1e-3)
BFLOAT16 = Precision("bfloat16", 2.0**-7, 1e-3)

# By `dtype.char`, which is blind to byte order. Whole numbers are exact, so float64 serves them.
_PRECISIONS = {"d": FLOAT64, "f": FLOAT32, "e": FLOAT16}


@dataclass(frozen=True, slots=True)
class Given:
    """An input as a numpy array, the precision in which it was made, and what its container names."""

    array: NDArray[Any]
    precision: Precision = FLOAT64
    members: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None
    #: The column of labels in a frame of predictions.
    labels: Any = None


def as_predictions(probs: Any) -> Given:
    """Predictions with the names that come with them: keys of a dict, columns of data frames."""
    if isinstance(probs, Given):
        return probs
    if _is_frame(probs):
        return _from_frame(probs)
    members = None
    if isinstance(probs, Mapping):
        members, probs = tuple(map(str, probs)), list(probs.values())
    named = set()
    if isinstance(probs, list | tuple) and any(map(_is_frame, probs)):
        probs = [_from_frame(each) if _is_frame(each) else each for each in probs]
        named = {each.classes for each in probs if isinstance(each, Given)}
    given = as_array(probs, "probs", member_ndim=2)
    if members is not None and given.array.ndim != 3:
        rule = "as a dict must hold an array (n_samples, n_classes) for each member"
        came = f"arrays that stack to shape {given.array.shape}"
        repair = (
            "Several sets by name go to `hullcal.assess`; two classes to `hullcal.from_binary`."
        )
        raise refusal("probs", rule, came, repair)
    if len(named) > 1:
        came = " and ".join(map(str, list(named)[:2]))
        repair = "Bring the columns of all members into one order."
        raise refusal("probs", "must be frames that agree in their columns", came, repair)
    return replace(given, members=members, classes=next(iter(named), None))


def as_array(value: Any, name: str, *, member_ndim: int | None = None) -> Given:
    """The numbers in `value` as a numpy array, sharing its memory where possible.

    A list of arrays with `member_ndim` axes is a list of members, stacked along axis 1. Only the
    container is judged here; `check_dtype` judges the numbers.
    """
    if type(value) is np.ndarray:
        return _with_precision(value)
    if isinstance(value, Given):
        return value
    _refuse_gaps(value, name)
    try:
        if isinstance(value, Sequence) and not hasattr(value, "__array__"):
            if any(isinstance(part, Given) or getattr(part, "shape", ()) for part in value):
                return _stacked([as_array(part, name) for part in value], member_ndim)
            if not isinstance(value, str | bytes):
                return _with_precision(np.asarray(value))
        return _from_foreign(value)
    except InvalidInputError:
        raise
    except Exception as error:  # whatever a foreign package raises, the user needs one message
        shown = value is None or isinstance(value, str)
        came = f"{value!r:.60}" if shown else f"an object of type {type(value).__name__}"
        rule = "must be an array, or a regular list of numbers or of arrays of one shape and type"
        repair = f"Pass a numpy array ({type(error).__name__}: {error})."
        raise refusal(name, rule, came, repair) from error


def _with_precision(array: NDArray[Any]) -> Given:
    precision = _PRECISIONS.get(array.dtype.char)
    if precision is None and array.dtype.name == "bfloat16":  # how jax hands it to numpy
        return Given(array.astype(np.float32), BFLOAT16)
    return Given(array, precision or FLOAT64)


def _refuse_gaps(value: Any, name: str) -> None:
    """Refuse containers whose missing entries numpy would silently fill in."""
    if isinstance(value, np.ma.MaskedArray):
        repair = "Drop the masked rows, or fill them with `.filled(value)`."
    elif hasattr(value, "tocsr"):
        repair = "Pass `.toarray()` of it."
    elif hasattr(value, "detach") and "sparse" in str(getattr(value, "layout", "")):
        repair = "Pass `.to_dense()` of it."
    else:
        return
    came = f"a masked or sparse {type(value).__name__}"
    raise refusal(name, "must be a dense array without missing values", came, repair)


def _from_foreign(value: Any) -> Given:
    """Try the dialects of other packages in turn."""
    if hasattr(value, "detach"):  # torch: leave the graph, then the device
        value = value.detach().cpu()
        if str(value.dtype).endswith("bfloat16"):  # numpy has no such type
            return Given(np.asarray(value.float().numpy()), BFLOAT16)
        value = value.numpy()
    elif hasattr(value, "to_numpy"):  # pandas, polars, xarray, narwhals, pyarrow
        value = value.to_numpy()
    elif hasattr(value, "shape") and callable(getattr(value, "get", None)):  # cupy
        value = value.get()
    elif not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):  # as jax has
        if not hasattr(value, "__dlpack__"):
            raise TypeError("it offers no conversion")
        value = np.from_dlpack(value)
    return _with_precision(np.asarray(value))


def _stacked(parts: list[Given], member_ndim: int | None) -> Given:
    """Stack arrays, members along axis 1; one coarse member makes the stack coarse."""
    shapes = list(dict.fromkeys(part.array.shape for part in parts))
    if len(shapes) > 1:
        raise ValueError(f"the shapes are {', '.join(map(str, shapes[:4]))}")
    axis = 1 if parts[0].array.ndim == member_ndim else 0
    precision = max((part.precision for part in parts), key=lambda each: each.eps)
    return Given(np.stack([part.array for part in parts], axis=axis), precision)


def _is_frame(value: Any) -> bool:
    """Whether this is a table of pandas, polars or their like, of named columns."""
    return hasattr(value, "to_numpy") and hasattr(value, "columns")


def _from_frame(frame: Any) -> Given:
    """Predictions in a frame in wide form, as in a file, or with a column for each class."""
    names = list(frame.columns)
    columns = [str(name) for name in names]
    label = label_column(columns)
    places = number_columns(columns, label)
    wide = wide_form(columns, places, partial(refusal, "probs"))
    if wide is not None:
        places, axes, classes, members = wide.places, wide.axes, wide.classes, wide.members
    else:
        classes, members = tuple(as_integers([names[i] for i in places])), None
        axes = (len(classes),)
    whole = places == list(range(len(names)))
    given = as_array(frame if whole else frame[[names[i] for i in places]], "probs")
    return Given(
        given.array.reshape(len(given.array), *axes),
        given.precision,
        members,
        None if classes == tuple(range(len(classes))) else classes,
        None if label is None else frame[names[label]],
    )


def check_dtype(array: NDArray[Any], name: str) -> None:
    """Refuse every type that is not boolean, integer or floating."""
    if array.dtype.kind not in "fiub":
        came = f"dtype {array.dtype!s:.60} in an array of shape {array.shape}"
        repair = (
            "Convert strings and python objects with `.astype(float)`; take the `.real` part of "
            "complex numbers, and the columns of a structured array."
        )
        raise refusal(name, "must hold real numbers", came, repair)


def order_that_fits(shape: tuple[int, ...], n_labels: int | None, summed: Sequence[int]) -> str:
    """Write the order of axes that puts samples first and classes last; empty if there is no better.

    Classes are on one of the axes along which values sum to one (`summed`), where any is known.
    """
    for order in permutations(range(len(shape))):
        if n_labels in (None, shape[order[0]]) and (not summed or order[-1] in summed):
            return "" if order == tuple(range(len(shape))) else f"np.transpose(probs, {order})"
    return ""


# -- columns of a table, in a file too ------------------------------------------------------------


@dataclass(frozen=True)
class Wide:
    """Places of the columns of a table in wide form, in the order of members and then classes."""

    places: list[int]
    #: None for a single member without a name.
    members: tuple[str, ...] | None
    classes: tuple[Any, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """Shape of a row."""
        n_classes = (len(self.classes),)
        return n_classes if self.members is None else (len(self.members), *n_classes)


def as_integers(names: Sequence[Any]) -> list[Any]:
    """Names as integers if all of them are integers written out; otherwise as they are."""
    if all(isinstance(name, str) and _INTEGER.match(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def label_column(columns: Sequence[str], labels_key: str = "labels") -> int | None:
    """Place of the column of labels, if there is one."""
    accepted = {"label", "labels", labels_key.lower()}
    places = [i for i, name in enumerate(columns) if name.strip().lower() in accepted]
    exact = [i for i in places if columns[i] == labels_key]
    return next(iter(exact or places), None)


def number_columns(columns: Sequence[str], label: int | None) -> list[int]:
    """Places of all columns but the labels and the row numbers of a data frame."""
    first = 1 if columns and columns[0].strip() in _IN_FRONT else 0
    return [i for i in range(first, len(columns)) if i != label and columns[i] != _ANYWHERE]


def wide_form(
    columns: Sequence[str],
    places: Sequence[int],
    refuse: Callable[[str, str, str], InvalidInputError],
) -> Wide | None:
    """Wide form: a column for every member and class, once; None if columns are named otherwise."""
    pairs = _pairs([columns[i].strip() for i in places])
    if pairs is None:
        return None
    place = dict(zip(pairs, places, strict=True))
    members = tuple(dict.fromkeys(member for member, _ in pairs))
    classes = list(dict.fromkeys(name for _, name in pairs))
    rule = "must have a column for every member and class, once"
    if len(place) < len(pairs):
        (twice, _), *_ = Counter(pairs).most_common(1)
        raise refuse(rule, f"two columns for {reprlib.repr(twice)}", "Remove one.")
    if len(place) < len(members) * len(classes):
        missing = next(pair for pair in product(members, classes) if pair not in place)
        raise refuse(
            rule, f"none for {reprlib.repr(missing)}", "Add the column, or correct its name."
        )
    return Wide(
        places=[place[pair] for pair in product(members, classes)],
        members=None if members == ("",) else members,
        classes=tuple(as_integers(classes)),
    )


def _pairs(names: list[str]) -> list[tuple[str, str]] | None:
    """Member and class of each column; None if they follow no known pattern."""
    for separator in (":", "/"):
        # The last separator splits, since members more often contain one than classes do.
        pairs = [tuple(part.strip() for part in name.rpartition(separator)) for name in names]
        if names and all(member and cls for member, _, cls in pairs):
            return [(member, cls) for member, _, cls in pairs]
    if names and all(name.startswith("p_") and len(name) > 2 for name in names):
        return [("", name[2:]) for name in names]
    return None
