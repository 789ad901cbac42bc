"""Finding the measures, searches and nulls: every public file of a folder is one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeVar

from hullcal._validation import InvalidInputError

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


def named(name: object, registry: Mapping[str, Value], parameter: str, alternative: str) -> Value:
    """Look a name up, with an error that lists what there is."""
    if isinstance(name, str) and name in registry:
        return registry[name]
    raise InvalidInputError(
        f"`{parameter}` must be one of {', '.join(sorted(registry))}, or {alternative}; got "
        f"{name!r:.80}. Mind the spelling."
    )


def class_names(registry: Mapping[str, object]) -> list[str]:
    """The classes of these values, by name."""
    return sorted({type(value).__name__ for value in registry.values()})


def class_named(name: str, registry: Mapping[str, object], module: str) -> type:
    """One of these classes, or the error of an attribute that a module does not have."""
    for value in registry.values():
        if type(value).__name__ == name:
            return type(value)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
