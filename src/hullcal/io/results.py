"""Results as strict JSON, which reads back as equal results, and as CSV for spreadsheets."""

from __future__ import annotations

import json
import math
import platform
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NoReturn

import numpy as np

import hullcal
from hullcal._validation import InvalidInputError, check_weights, refusal
from hullcal.io.source import Source
from hullcal.io.writing import as_text, csv_line, write_atomic
from hullcal.results import Result

#: Kinds by the public names of their classes, one of which brings compiled code along when loaded.
_KINDS = {
    "CalibrationTestResult": "calibration_test",
    "MinimizeResult": "minimize",
    "TruthTestResult": "truth_test",
    "ClassicalTestResult": "classical_test",
}
#: Declared types of fields that are lists in JSON, with that of their items; then the simple ones.
_ITEMS = {
    "NDArray[np.float64]": "float",
    "tuple[str, ...]": "str",
    "tuple[int, ...]": "int",
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
    "pvalue", "unadjusted_pvalue", "pvalue_interval", "evalue", "critical_value", "rejected",
    "n_resamples", "n_members",
)
_COLUMNS = (
    "kind", "question", "measure", "null", "hypothesis", "statistic", "minimum", "critical_value",
    "pvalue", "unadjusted_pvalue", "headline", "rejected", "alpha", "n_resamples", "seed", "n_samples",
    "n_members", "n_classes", "evalue", "temperature", "weights", "members",
)
# fmt: on
_TEXT = ("kind", "question", "measure", "null", "hypothesis", "headline", "members")


def to_json(
    results: Result | Sequence[Result], *, assessment: Mapping[str, Any] | None = None
) -> str:
    """Write results as strict JSON.

    Parameters
    ----------
    results : result, or sequence of results
    assessment : mapping, optional
        What `Assessment.to_dict` concludes from them, for readers; `from_json` leaves it out.

    Returns
    -------
    str
        An object with `version` (of hullcal), `versions` (of all that computed), `assessment` if there
        is one, and `results`, each with its `kind`, its fields and what follows from them. In an
        assessment `pvalue` and `rejected` are adjusted there, and `unadjusted_pvalue` is that of the
        test alone.
        Infinities and NaN are the strings "Infinity", "-Infinity" and "NaN"; among `settings`, which
        may hold any text, they are ``{"float": "Infinity"}``.
    """
    document: dict[str, Any] = {"version": hullcal.__version__, "versions": versions()}
    entries = [_entry(result) for result in _listed(results)]
    if assessment is not None:
        document["assessment"] = _word(assessment)
        tests = (test for answer in assessment["answers"] for test in answer["tests"])
        for entry, test in zip(entries, tests, strict=False):
            # No reader of one entry alone should meet a p-value that contradicts another question's.
            entry |= {name: test[name] for name in ("pvalue", "unadjusted_pvalue", "rejected")}
    document["results"] = entries
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


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what `to_json` writes, for programs that read it."""
    text = files("hullcal.io").joinpath("results.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_csv(results: Result | Sequence[Result], *, answers: Sequence[Mapping[str, Any]] = ()) -> str:
    """Write results as CSV, one line each.

    Parameters
    ----------
    results : result, or sequence of results
    answers : sequence of mappings, optional
        For each result what an assessment says of it: `question`, and in place of those of the test
        alone `measure` with its settings, `pvalue`, `headline`, `rejected`.

    Returns
    -------
    str
        With a header. `unadjusted_pvalue` is that of the test alone. `weights` are joined by
        semicolons; `members` are a JSON list.
        Text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    listed = _listed(results)
    lines = [csv_line(_COLUMNS)]
    for result, added in zip(listed, answers or [{}] * len(listed), strict=True):
        row = _row(_entry(result))
        row |= {"headline": getattr(result, "headline", None), **added}
        cells = {name: "" if row.get(name) is None else str(row[name]) for name in _COLUMNS}
        # Text that is no formula; numbers may begin with a minus.
        cells |= {name: as_text(cells[name]) for name in _TEXT}
        lines.append(csv_line(cells.values()))
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
        if type(each).__name__ not in _KINDS:
            came = f"an object of type {type(each).__name__}"
            rule, repair = "must be results of hullcal", "Pass what a test gave back."
            raise refusal("results", rule, came, repair)
    return listed


def _entry(result: Result) -> dict[str, Any]:
    """The kind and fields of a result, and what follows from them, as JSON knows them."""
    data = {name: getattr(result, name) for name in _DERIVED if hasattr(result, name)}
    data = {**result.to_dict(), **data}
    free = ("settings", "notes")  # which may hold any text
    written = {name: _word(value, wrap=name in free) for name, value in data.items()}
    return {"kind": _KINDS[type(result).__name__], **written}


def _result(entry: Any) -> Result:
    """The result that an entry describes; every field must have its type."""
    classes = {kind: name for name, kind in _KINDS.items()}
    cls: type[Result] = getattr(hullcal, classes[entry["kind"]])
    types = {each.name: str(each.type) for each in fields(cls)}
    derived = {"kind", *_DERIVED} - types.keys()
    given = {name: value for name, value in entry.items() if name not in derived}
    result = cls.from_dict(
        {name: _read(types[name], each) if name in types else each for name, each in given.items()}
    )
    _check(result)
    return result


def _check(result: Any) -> None:
    """Refuse what no test gives: a decision made of it would mean nothing."""
    for name in (each.name for each in fields(result)):
        value = getattr(result, name)
        if isinstance(value, float | np.ndarray) and np.isnan(value).any():
            raise ValueError(f"`{name}` is {reprlib.repr(value)}")
    weights, members = getattr(result, "weights", None), getattr(result, "members", None)
    sound = {
        "alpha": 0 < getattr(result, "alpha", 0.5) < 1,
        "weights": weights is None or check_weights(weights, len(weights)) is not None,
        "members": members is None or weights is None or len(members) == len(weights),
        "pool": not hasattr(result, "pool") or len(result.pool) == 1 + len(result.weights),
        "n_samples": getattr(result, "n_samples", 1) >= 1,
        "n_classes": getattr(result, "n_classes", 2) >= 2,
    }
    for name in (name for name, holds in sound.items() if not holds):
        raise ValueError(f"`{name}` is {reprlib.repr(getattr(result, name))}")


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
    row = {**entry, "unadjusted_pvalue": entry.get("pvalue")}
    if "test" in row:  # a classical test, which is of one classifier
        row |= {"measure": row["test"], "n_members": 1}
        row["n_resamples"] = len(row["null_distribution"]) or None
    if row["kind"] == "truth_test":
        row["measure"] = "likelihood"
    if row["kind"] == "minimize":
        row |= dict.fromkeys(("statistic", "minimum"), row["value"])
        row["n_members"] = len(row["weights"])
    if row.get("members") is not None:
        names = json.dumps(row["members"], ensure_ascii=False)
        # Without escape sequences and direction marks, which a terminal would obey.
        row["members"] = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in names)
    if "weights" in row:  # adding 0 takes the sign from a negative zero
        row["weights"] = ";".join(repr(float(weight) + 0.0) for weight in row["weights"])
    return row
