"""Results as strict JSON, which reads back as equal results, and as CSV for spreadsheets."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Any, NoReturn

import numpy as np

import hullcal
from hullcal._validation import InvalidInputError, refusal
from hullcal.io.source import Source
from hullcal.io.writing import as_text, csv_line, write_atomic
from hullcal.results import CalibrationTestResult, Result, adjust

#: Public names of the classes, by kind; loaded when needed, since one brings compiled code along.
_KINDS = {
    "calibration_test": "CalibrationTestResult",
    "minimize": "MinimizeResult",
    "classical_test": "ClassicalTestResult",
}
#: Declared types of fields that are lists in JSON, with that of their items; then the simple ones.
_ITEMS = {
    "NDArray[np.float64]": "float",
    "tuple[str, ...]": "str",
    "tuple[Note, ...]": "dict[str, Any]",
}
_TYPES = {
    **{"str": (str,), "int": (int,), "bool": (bool,), "dict[str, Any]": (dict,)},
    **{"list": (list,), "number": (int, float)},
}
_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
# fmt: off
#: Written for the reader's convenience, and computed anew when read.
_DERIVED = (
    "pvalue", "pvalue_interval", "critical_value", "rejected", "n_resamples", "n_members",
)
_COLUMNS = (
    "kind", "measure", "null", "hypothesis", "statistic", "minimum", "critical_value", "pvalue",
    "adjusted_pvalue", "rejected", "alpha", "n_resamples", "seed", "n_samples", "n_members",
    "n_classes", "weights", "members", "adjusted_rejected",
)
# fmt: on
_TEXT = ("kind", "measure", "null", "hypothesis", "members")


def to_json(
    results: Result | Sequence[Result], *, verdicts: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Write results as strict JSON.

    Parameters
    ----------
    results : result, or sequence of results
    verdicts : sequence of mappings, optional
        What an assessment concludes from them, for its readers; `from_json` leaves it out.

    Returns
    -------
    str
        An object with `version` (of hullcal), `versions` (of all that computed), `verdicts` if there
        are any, and `results`, each with its `kind`, its fields and what follows from them.
        Infinities and NaN are the strings "Infinity", "-Infinity" and "NaN"; among `settings`, which
        may hold any text, they are ``{"float": "Infinity"}``.
    """
    document: dict[str, Any] = {"version": hullcal.__version__, "versions": versions()}
    if verdicts:
        document["verdicts"] = [dict(verdict) for verdict in verdicts]
    document["results"] = [_entry(result) for result in _listed(results)]
    try:
        return json.dumps(document, allow_nan=False, indent=1) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
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
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
        entries = document["results"]
        if not isinstance(entries, list) or not isinstance(document["version"], str):
            raise TypeError("`results` is no list, or `version` no string")
        return [_result(entry) for entry in entries]
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
        source.check_fits(4 * source.path.stat().st_size)
        try:
            return from_json(source.path.read_text(encoding="utf-8-sig"))
        except InvalidInputError as error:
            rule = "must hold results as hullcal writes them"
            raise source.refuse(rule, f"other contents ({error})", "Write it again.") from error


def to_csv(results: Result | Sequence[Result]) -> str:
    """Write results as CSV, one line each.

    Parameters
    ----------
    results : result, or sequence of results

    Returns
    -------
    str
        With a header. `adjusted_pvalue` is Holm's over the tests of one null, and
        `adjusted_rejected` the decision by it; `rejected` is that of the test alone. `weights`
        are joined by semicolons; `members` are a JSON list. Text that a spreadsheet would take for a
        formula begins with an apostrophe.
    """
    listed = _listed(results)
    adjusted: dict[int, float] = {}
    tests = [result for result in listed if hasattr(result, "pvalue")]
    for null in {getattr(test, "null", None) for test in tests}:
        family = [test for test in tests if getattr(test, "null", None) == null]
        adjusted |= dict(zip(map(id, family), adjust(family).tolist(), strict=True))
    lines = [csv_line(_COLUMNS)]
    for result in listed:
        row = _row(_entry(result)) | {"adjusted_pvalue": adjusted.get(id(result))}
        if isinstance(result, CalibrationTestResult):
            row["adjusted_rejected"] = adjusted[id(result)] <= result.alpha
        lines.append(csv_line(_cell(column, row.get(column)) for column in _COLUMNS))
    return "".join(lines)


def write_csv(results: Result | Sequence[Result], path: Any, *, force: bool = False) -> None:
    """Write results to a CSV file (see `to_csv`), whole or not at all."""
    write_atomic(path, to_csv(results), force=force)


def versions() -> dict[str, str]:
    """Versions that numbers depend on: of hullcal, of Python and of what computes, by name."""
    computing = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"hullcal": hullcal.__version__, "python": platform.python_version(), **computing}


def _listed(results: Any) -> list[Result]:
    """One result or several; anything else is refused."""
    several = not isinstance(results, Result) and isinstance(results, Sequence)
    listed = list(results) if several else [results]
    for each in listed:
        if _kind(each) is None:
            came = f"an object of type {type(each).__name__}"
            rule, repair = "must be results of hullcal", "Pass what a test gave back."
            raise refusal("results", rule, came, repair)
    return listed


def _kind(result: Any) -> str | None:
    return next((kind for kind, name in _KINDS.items() if type(result).__name__ == name), None)


def _entry(result: Result) -> dict[str, Any]:
    """The kind and fields of a result, and what follows from them, as JSON knows them."""
    data = result.to_dict()
    data |= {
        name: getattr(result, name)
        for name in _DERIVED
        if name not in data and hasattr(result, name)
    }
    free = ("settings", "notes")  # which may hold any text
    written = {name: _word(value, wrap=name in free) for name, value in data.items()}
    return {"kind": _kind(result), **written}


def _result(entry: Any) -> Result:
    """The result that an entry describes; every field must have its type."""
    cls: type[Result] = getattr(hullcal, _KINDS[entry["kind"]])
    types = {each.name: str(each.type) for each in fields(cls)}
    return cls.from_dict(
        {
            name: _read(types[name], value) if name in types else value
            for name, value in entry.items()
            if name in types or name not in ("kind", *_DERIVED)
        }
    )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which strict JSON does not have")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _word(value: Any, *, wrap: bool = False) -> Any:
    """Replace numbers that JSON does not have by their words, wrapped where text may be any."""
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(value, float) and not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return {"float": word} if wrap else word
    if isinstance(value, Mapping):
        return {key: _word(each, wrap=wrap) for key, each in value.items()}
    return [_word(each, wrap=wrap) for each in value] if isinstance(value, list | tuple) else value


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in _WORDS:
            return _WORDS[value["float"]]
        return {key: _unwrapped(each) for key, each in value.items()}
    return [_unwrapped(each) for each in value] if isinstance(value, list) else value


def _read(kind: str, value: Any) -> Any:
    """A field as its declared type wants it; a value of another type is refused."""
    if kind.endswith(" | None"):
        return None if value is None else _read(kind.removesuffix(" | None"), value)
    if kind in _ITEMS:
        return [_read(_ITEMS[kind], each) for each in _read("list", value)]
    if kind == "float":
        return _WORDS[value] if isinstance(value, str) else float(_read("number", value))
    if type(value) not in _TYPES[kind]:
        raise TypeError(f"{value!r:.80} where {kind} should be")
    return _unwrapped(value)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    """Bring the fields of every kind of result under the same columns."""
    row = dict(entry)
    if "test" in row:  # a classical test, which is of one classifier
        row |= {"measure": row["test"], "n_members": 1}
        row["n_resamples"] = len(row["null_distribution"]) or None
    if row["kind"] == "minimize":
        row |= {"statistic": row["value"], "minimum": row["value"]}
        row["n_members"] = len(row["weights"])
    if row.get("members") is not None:
        row["members"] = json.dumps(row["members"], ensure_ascii=False)
    if "weights" in row:  # adding 0 takes the sign from a negative zero
        row["weights"] = ";".join(repr(float(weight) + 0.0) for weight in row["weights"])
    return row


def _cell(column: str, value: Any) -> str:
    """Text that is no formula; numbers may begin with a minus."""
    text = "" if value is None else str(value)
    return as_text(text) if column in _TEXT else text
