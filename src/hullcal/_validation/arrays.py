"""From whatever holds numbers (torch, jax, cupy, frames, lists) to a numpy array, unimported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.errors import refusal


@dataclass(frozen=True, slots=True)
class Precision:
    """How far from one the rows of a floating-point type may honestly sum."""

    name: str
    eps: float  # distance from 1 to the next larger number
    limit: float  # deviation that is repaired, on top of what is left alone

    def left_alone(self, n_classes: int) -> float:
        """Deviation of a row sum that is rounding and nothing else: ``4 * K * eps``.

        With half precision or very many classes that bound loses its meaning (bfloat16 and
        K = 100 would allow a row that sums to 4), so it stops at 5 %.
        """
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


_ASARRAY = "Pass a numpy array, or a list of them."


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
    if isinstance(value, Sequence) and not hasattr(value, "__array__"):
        if any(getattr(part, "shape", ()) for part in value):
            return _stacked(value, name, member_ndim)
        if not isinstance(value, str | bytes):
            return _nested(value, name)
    try:
        converted = _from_foreign(value)
    except Exception as error:  # whatever a foreign package raises, the user needs one message
        came = f"{_kind(value)}, which failed with {type(error).__name__}: {error}"
        raise refusal(name, "must be convertible to a numpy array", came, _ASARRAY) from error
    if converted is None:
        raise refusal(name, "must be an array", _kind(value), _ASARRAY)
    return converted


def _kind(value: object) -> str:
    """Name the type of a value in a message; None and strings are better shown than typed."""
    if value is None or isinstance(value, str):
        return f"{value!r:.60}"
    return f"an object of type {type(value).__name__}"


def _with_precision(array: NDArray[Any]) -> Converted:
    """Attach the precision of an array's own type."""
    precision = _PRECISIONS.get(array.dtype.char)
    if precision is None and array.dtype.name == "bfloat16":  # how jax hands it to numpy
        return Converted(array.astype(np.float32), BFLOAT16)
    return Converted(array, precision or FLOAT64)


def _refuse_gaps(value: Any, name: str) -> None:
    """Refuse containers whose missing entries numpy would silently fill in."""
    came = f"a sparse {type(value).__name__}"
    if isinstance(value, np.ma.MaskedArray):
        came = f"a masked array of shape {value.shape}"
        repair = "Drop the masked rows, or fill them with `.filled(value)`."
    elif hasattr(value, "tocsr"):
        repair = "Pass `.toarray()` of it."
    elif hasattr(value, "detach") and "sparse" in str(getattr(value, "layout", "")):
        repair = "Pass `.to_dense()` of it."
    else:
        return
    raise refusal(name, "must be a dense array without missing values", came, repair)


def _from_foreign(value: Any) -> Converted | None:
    """Try the dialects in turn; None if the value speaks none of them."""
    if hasattr(value, "detach"):  # torch: leave the graph, then the device
        return _from_tensor(value.detach())
    if hasattr(value, "to_numpy"):  # pandas, polars, xarray, narwhals, pyarrow
        return _with_precision(np.asarray(value.to_numpy()))
    if hasattr(value, "shape") and callable(getattr(value, "get", None)):  # cupy
        return _with_precision(np.asarray(value.get()))
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):  # jax and many more
        return _with_precision(np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return _with_precision(np.from_dlpack(value))
    return None


def _from_tensor(tensor: Any) -> Converted:
    """Bring a detached tensor to numpy; bfloat16 has no numpy type, so it travels as float32."""
    tensor = tensor.cpu() if hasattr(tensor, "cpu") else tensor
    is_bfloat16 = str(getattr(tensor, "dtype", "")).endswith("bfloat16")
    tensor = tensor.float() if is_bfloat16 else tensor
    array = np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor)
    return Converted(array, BFLOAT16) if is_bfloat16 else _with_precision(array)


def _stacked(value: Sequence[Any], name: str, member_ndim: int | None) -> Converted:
    """Stack a list of arrays, members along axis 1; one coarse member makes the stack coarse."""
    parts = [as_array(part, name) for part in value]
    arrays = [part.array for part in parts]
    shapes = list(dict.fromkeys(array.shape for array in arrays))
    if len(shapes) > 1:
        came = "shapes " + ", ".join(map(str, shapes[:4]))
        raise refusal(name, "must hold arrays of one shape", came, "Give all the same rows.")
    try:
        stacked = np.stack(arrays, axis=1 if arrays[0].ndim == member_ndim else 0)
    except TypeError as error:
        came = "types " + ", ".join(f"{array.dtype!s:.40}" for array in arrays[:4])
        raise refusal(name, "must hold arrays of one type", came, _ASARRAY) from error
    precisions = (part.precision for part in parts)
    return Converted(stacked, max(precisions, key=lambda each: (each.limit, each.eps)))


def _nested(value: Sequence[Any], name: str) -> Converted:
    """Convert nested python numbers, which must not be ragged."""
    try:
        return _with_precision(np.asarray(value))
    except Exception as error:
        came, repair = "a ragged or mixed one", "Give every row the same number of entries."
        raise refusal(name, "must be a regular nested list", came, repair) from error


_FORBIDDEN = {
    "O": ("python objects", "Convert with `.astype(float)`."),
    "c": ("complex numbers", "Take `.real` if the imaginary part is zero."),
    "V": ("a structured or raw type", "Take its columns apart and stack them."),
    "M": ("dates", "Check which array was passed."),
    "m": ("time differences", "Check which array was passed."),
}


def check_dtype(array: NDArray[Any], name: str) -> None:
    """Refuse every type that is not boolean, integer or floating."""
    kind = array.dtype.kind
    if kind not in "fiub":
        what, repair = _FORBIDDEN.get(kind, ("strings", "Convert with `.astype(float)`."))
        came = f"{what} (dtype {array.dtype!s:.60}) in an array of shape {array.shape}"
        raise refusal(name, "must hold real numbers", came, repair)
