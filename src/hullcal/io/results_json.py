"""How are results written to strict JSON and read back?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import hullcal
from hullcal._validation import InvalidInputError, refusal
from hullcal.files.memory import check_fits
from hullcal.files.source import Source
from hullcal.files.versions import versions
from hullcal.files.writing import write_atomic
from hullcal.io.result_fields import entry_of, kind_of, result_of
from hullcal.io.text import open_text
from hullcal.results import Result

__all__ = ["as_list", "from_json", "read_json", "to_json", "write_json"]


def as_list(results: Any) -> list[Result]:
    """Take one result or several; anything else is refused."""
    listed = [results]
    if not isinstance(results, Result) and isinstance(results, Sequence):
        listed = list(results)
    for each in listed:
        kind_of(each)
    return listed


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
    entries = [entry_of(result) for result in as_list(results)]
    document: dict[str, Any] = {"version": hullcal.__version__, "versions": versions()}
    if verdicts:
        document["verdicts"] = [dict(verdict) for verdict in verdicts]
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
        document = json.loads(text, parse_constant=_no_constant)
        entries = document["results"]
        if not isinstance(entries, list) or not isinstance(document["version"], str):
            raise TypeError("`results` is no list, or `version` no string")
        return [result_of(entry) for entry in entries]
    except InvalidInputError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        came = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        rule = "must be results in JSON, as `to_json` writes them"
        raise refusal("text", rule, came, "Write them again.") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which strict JSON does not have")


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
