"""How does one result become a JSON object, and the object a result again?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.results import CalibrationTestResult, MinimizeResult, Result

__all__ = ["entry_of", "kind_of", "result_of"]

_KINDS: dict[str, type[Result]] = {
    "calibration_test": CalibrationTestResult,
    "minimize": MinimizeResult,
}
#: Written for the reader's convenience, and computed anew when read.
_DERIVED = (
    *("pvalue", "pvalue_interval", "critical_value", "rejected", "n_resamples", "n_members"),
)
_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def kind_of(result: Any) -> str:
    """Name the kind of a result."""
    for kind, cls in _KINDS.items():
        if isinstance(result, cls):
            return kind
    if isinstance(result, Result) and isinstance(result, _class_of("classical_test")):
        return "classical_test"
    came = f"an object of type {type(result).__name__}"
    raise refusal("results", "must be results of hullcal", came, "Pass what a test gave back.")


def _class_of(kind: Any) -> type[Result]:
    if kind == "classical_test":  # its room loads compiled code, so only on demand
        from hullcal.classical import ClassicalTestResult

        return ClassicalTestResult
    if not isinstance(kind, str) or kind not in _KINDS:
        repair = f"Known are {', '.join((*_KINDS, 'classical_test'))}."
        raise refusal("kind", "must be a kind of result", repr(kind)[:60], repair)
    return _KINDS[kind]


def entry_of(result: Result) -> dict[str, Any]:
    """Give the kind and fields of a result, and what follows from them, as JSON knows them."""
    data = result.to_dict()
    written = {
        name: _wrapped(value) if name == "settings" else _word(value)
        for name, value in data.items()
    }
    derived = {
        name: _word(getattr(result, name))
        for name in _DERIVED
        if name not in data and hasattr(result, name)
    }
    return {"kind": kind_of(result), **written, **derived}


def result_of(entry: Any) -> Result:
    """Give the result that an entry describes; every field must have its type."""
    if not isinstance(entry, dict):
        raise TypeError("a result is an object")
    cls = _class_of(entry.get("kind"))
    types = {each.name: str(each.type) for each in fields(cls)}
    derived = [name for name in _DERIVED if name not in types]
    data: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "kind" or name in derived:
            continue
        if name in types:
            value = _TYPES[types[name]](name, value)
        data[name] = value
    return cls.from_dict(data)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _word(value: Any) -> Any:
    """Replace numbers that JSON has not by their words."""
    value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return [_word(each) for each in value] if isinstance(value, list | tuple) else value


def _wrapped(value: Any) -> Any:
    """Do the same where a string may also be just that string."""
    value = _plain(value)
    if isinstance(value, Mapping):
        return {key: _wrapped(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_wrapped(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": _word(value)}
    return value


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in _WORDS:
            return _WORDS[value["float"]]
        return {key: _unwrapped(each) for key, each in value.items()}
    return [_unwrapped(each) for each in value] if isinstance(value, list) else value


def _number(name: str, value: Any) -> float:
    if isinstance(value, str):
        return _WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is no number")
    return float(value)


def _numbers(name: str, value: Any) -> list[float]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is no list")
    return [_number(name, each) for each in value]


def _strings(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{name} is no list of strings")
    return value


def _settings(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is no object")
    return _unwrapped(value)


def _exactly(kind: type) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{name} is no {kind.__name__}")
        return value

    return check


def _optional(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


#: How a field is read, by its declared type.
_TYPES: dict[str, Callable[[str, Any], Any]] = {
    "float": _number,
    "NDArray[np.float64]": _numbers,
    "str": _exactly(str),
    "int": _exactly(int),
    "bool": _exactly(bool),
    "dict[str, Any]": _settings,
    "tuple[str, ...]": _strings,
    "int | None": _optional(_exactly(int)),
    "tuple[str, ...] | None": _optional(_strings),
}
