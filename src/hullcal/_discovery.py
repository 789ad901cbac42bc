"""Finding the measures, searches and nulls: every public file of a folder is one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar

from hullcal._validation import refusal

Value = TypeVar("Value")


def discover(package: ModuleType, base: type) -> dict[str, Any]:
    """Default values, by name, of the public subclasses of `base` in the package's public files."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for kind in vars(module).values():
            mine = isinstance(kind, type) and kind.__module__ == module.__name__
            if mine and issubclass(kind, base) and not kind.__name__.startswith("_"):
                found.update({value.name: value for value in kind.defaults()})
    return found


def named(
    name: object,
    registry: Mapping[str, Value],
    parameter: str,
    alternative: str,
    number: str | None = None,
) -> Value:
    """Look a name up; a number behind it, as in ``ece_conf:5``, is the value's field `number`."""
    plain, colon, digits = name.partition(":") if isinstance(name, str) else ("", "", "")
    if plain not in registry or (colon and number is None):
        rule = f"must be one of {', '.join(sorted(registry))}, or {alternative}"
        raise refusal(parameter, rule, f"{name!r:.80}", "Mind the spelling.")
    value: Any = registry[plain]
    if not colon or number is None:
        return registry[plain]
    # "bins" of n_bins, "evaluations" of max_evaluations.
    what = number.partition("_")[2]
    if not hasattr(value, number):
        raise refusal(parameter, f"{plain} has no {what}", repr(name), f"Write {plain!r}.")
    # More digits would be no number of bins or evaluations.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18 and int(digits) > 0):
        rule = f"must have a positive number of {what}, as in {plain}:50"
        raise refusal(parameter, rule, f"{name!r:.80}", "Correct the number.")
    changed: Value = replace(value, **{number: int(digits)})
    return changed


def class_names(registry: Mapping[str, object]) -> list[str]:
    """The classes of these values, by name."""
    return sorted({type(value).__name__ for value in registry.values()})


def class_named(name: str, registry: Mapping[str, object], module: str) -> type:
    """One of these classes, or the error of an attribute that a module does not have."""
    for value in registry.values():
        if type(value).__name__ == name:
            return type(value)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
