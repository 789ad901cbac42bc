"""From whatever holds numbers (torch, jax, cupy, frames, lists) to a numpy array, unimported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import InvalidInputError, refusal


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


FLOAT64 = Precision("float64", 2.0**-52, 1e-6)
FLOAT32 = Precision("float32", 2.0**-23, 1e-4)
FLOAT16 = Precision("float16", 2.0**-10, 1e-3)
BFLOAT16 = Precision("bfloat16", 2.0**-7, 1e-3)

# By `dtype.char`, which is blind to byte order. Whole numbers are exact, so float64 serves them.
_PRECISIONS = {"d": FLOAT64, "f": FLOAT32, "e": FLOAT16}


@dataclass(frozen=True, slots=True)
class Converted:
    """An input as a numpy array, and the precision in which its numbers were made."""

    array: NDArray[Any]
    precision: Precision


def as_array(value: Any, name: str, *, member_ndim: int | None = None) -> Converted:
    """The numbers in `value` as a numpy array, sharing its memory where possible.

    A list of arrays with `member_ndim` axes is a list of members, stacked along axis 1. Only the
    container is judged here; `check_dtype` judges the numbers.
    """
    if type(value) is np.ndarray:
        return _with_precision(value)
    if isinstance(value, Converted):
        return value
    _refuse_gaps(value, name)
    try:
        if isinstance(value, Sequence) and not hasattr(value, "__array__"):
            if any(getattr(part, "shape", ()) for part in value):
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


def _with_precision(array: NDArray[Any]) -> Converted:
    """Attach the precision of an array's own type."""
    precision = _PRECISIONS.get(array.dtype.char)
    if precision is None and array.dtype.name == "bfloat16":  # how jax hands it to numpy
        return Converted(array.astype(np.float32), BFLOAT16)
    return Converted(array, precision or FLOAT64)


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


def _from_foreign(value: Any) -> Converted:
    """Try the dialects of other packages in turn."""
    if hasattr(value, "detach"):  # torch: leave the graph, then the device
        value = value.detach().cpu()
        if str(value.dtype).endswith("bfloat16"):  # numpy has no such type
            return Converted(np.asarray(value.float().numpy()), BFLOAT16)
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


def _stacked(parts: list[Converted], member_ndim: int | None) -> Converted:
    """Stack arrays, members along axis 1; one coarse member makes the stack coarse."""
    shapes = list(dict.fromkeys(part.array.shape for part in parts))
    if len(shapes) > 1:
        raise ValueError(f"the shapes are {', '.join(map(str, shapes[:4]))}")
    axis = 1 if parts[0].array.ndim == member_ndim else 0
    precision = max((part.precision for part in parts), key=lambda each: (each.limit, each.eps))
    return Converted(np.stack([part.array for part in parts], axis=axis), precision)


def check_dtype(array: NDArray[Any], name: str) -> None:
    """Refuse every type that is not boolean, integer or floating."""
    if array.dtype.kind not in "fiub":
        came = f"dtype {array.dtype!s:.60} in an array of shape {array.shape}"
        repair = (
            "Convert strings and python objects with `.astype(float)`; take the `.real` part of "
            "complex numbers, and the columns of a structured array."
        )
        raise refusal(name, "must hold real numbers", came, repair)
