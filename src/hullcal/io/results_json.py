"""How do results become strict JSON, and JSON results again?"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

import hullcal
from hullcal._validation import InvalidInputError
from hullcal._validation.errors import refusal
from hullcal.io.memory import check_fits
from hullcal.io.source import Source
from hullcal.io.text import open_text
from hullcal.io.writing import write_atomic
from hullcal.results import CalibrationTestResult, MinimizeResult, Result

__all__ = ["as_list", "from_json", "kind_of", "read_json", "to_json", "write_json"]

_KINDS: dict[str, type[Result]] = {
    "calibration_test": CalibrationTestResult,
    "minimize": MinimizeResult,
}
#: Written for the reader's convenience, and computed anew when read.
_DERIVED = ("pvalue", "pvalue_interval", "critical_value", "rejected", "n_resamples", "n_members")
_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def to_json(results: Result | Sequence[Result]) -> str:
    """Write results as strict JSON.

    Parameters
    ----------
    results : result, or sequence of results

    Returns
    -------
    str
        An object with `version` (of hullcal) and `results`, each with its `kind`, its fields and
        what follows from them. Infinities and NaN are the strings "Infinity", "-Infinity" and
        "NaN"; among `settings`, which may be any text, they are ``{"float": "Infinity"}``.
    """
    entries = [_entry(result) for result in as_list(results)]
    document = {"version": hullcal.__version__, "results": entries}
    try:
        return json.dumps(document, allow_nan=False, indent=2, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        repair = "Settings of a measure must be numbers, strings, lists or dictionaries."
        raise refusal("results", "must be expressible in JSON", str(error), repair) from error


def write_json(results: Result | Sequence[Result], path: Any, *, force: bool = False) -> None:
    """Write results to a JSON file (see `to_json`), whole or not at all."""
    write_atomic(path, to_json(results), force=force)


def from_json(text: str | bytes) -> list[Any]:
    """Give the results that `to_json` described; they equal those that were written.

    Parameters
    ----------
    text : str or bytes

    Returns
    -------
    list of results
    """
    try:
        return _decoded(text)
    except InvalidInputError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        came = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        rule = "must be results in JSON, as `to_json` writes them"
        raise refusal("text", rule, came, "Write them again.") from error


def read_json(path: Any) -> list[Any]:
    """Read the results in a JSON file (see `from_json`)."""
    source = Source.of(path)
    source.check_kind()
    with source.guarded():
        check_fits(source, 4 * source.path.stat().st_size)
        with open_text(source) as file:
            text = file.read()
        try:
            return from_json(text)
        except InvalidInputError as error:
            rule = "must hold results as hullcal writes them"
            raise source.refuse(rule, f"other contents ({error})", "Write it again.") from error


def as_list(results: Any) -> list[Result]:
    """Take one result or several; anything else is refused."""
    listed = [results] if isinstance(results, Result) else list(results)
    for each in listed:
        kind_of(each)
    return listed


def kind_of(result: Any) -> str:
    """Name the kind of a result."""
    for kind, cls in _KINDS.items():
        if isinstance(result, cls):
            return kind
    if isinstance(result, Result) and isinstance(result, _class("classical_test")):
        return "classical_test"
    came = f"an object of type {type(result).__name__}"
    raise refusal("results", "must be results of hullcal", came, "Pass what a test gave back.")


def _class(kind: str) -> type[Result]:
    if kind == "classical_test":  # its room loads compiled code, so only on demand
        from hullcal.classical.result import ClassicalTestResult

        return ClassicalTestResult
    if kind not in _KINDS:
        repair = f"Known are {', '.join((*_KINDS, 'classical_test'))}."
        raise refusal("kind", "must be a kind of result", repr(kind)[:60], repair)
    return _KINDS[kind]


def _entry(result: Result) -> dict[str, Any]:
    data = result.to_dict()
    written = {name: _word(value) for name, value in data.items() if name != "settings"}
    derived = {
        name: _word(getattr(result, name))
        for name in _DERIVED
        if name not in data and hasattr(result, name)
    }
    settings = {"settings": _wrapped(data["settings"])} if "settings" in data else {}
    return {"kind": kind_of(result), **written, **settings, **derived}


def _word(value: Any) -> Any:
    """Replace numbers that JSON has not by their words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return [_word(each) for each in value] if isinstance(value, list | tuple) else value


def _wrapped(value: Any) -> Any:
    """Do the same where a string may also be just that string."""
    if isinstance(value, Mapping):
        return {key: _wrapped(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_wrapped(each) for each in value]
    word = _word(_plain(value) if isinstance(value, np.generic) else value)
    return {"float": word} if word is not value and isinstance(word, str) else word


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in _WORDS:
            return _WORDS[value["float"]]
        return {key: _unwrapped(each) for key, each in value.items()}
    return [_unwrapped(each) for each in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a setting of type {type(value).__name__}")
