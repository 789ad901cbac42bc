"""One registry for measures, searches and nulls: every public file of a folder is one."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from hullcal._validation import refusal, unknown

Value = TypeVar("Value")


class Registry(Generic[Value]):
    """Default values of the public subclasses of `base` in a package's public files, by name.

    A number behind a name, as in ``ece_conf:5``, is the value's field `number`.
    """

    def __init__(
        self, package: str, base: type[Value], parameter: str, *, number: str | None = None
    ) -> None:
        self._package, self._base, self._parameter = package, base, parameter
        self._number = number

    @cached_property
    def _values(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for info in pkgutil.iter_modules(sys.modules[self._package].__path__):
            if info.name.startswith("_"):
                continue
            module = importlib.import_module(f"{self._package}.{info.name}")
            for kind in vars(module).values():
                mine = isinstance(kind, type) and kind.__module__ == module.__name__
                if mine and issubclass(kind, self._base) and not kind.__name__.startswith("_"):
                    found.update({value.name: value for value in kind.defaults()})
        return found

    def available(self) -> tuple[str, ...]:
        """The names that are accepted."""
        return tuple(sorted(self._values))

    def resolve(self, given: str | Value) -> Value:
        """The value of a name; a value as it is."""
        if isinstance(given, self._base):
            return given
        name, number, parameter = given, self._number, self._parameter
        plain, colon, digits = name.partition(":") if isinstance(name, str) else ("", "", "")
        if plain not in self._values or (colon and number is None):
            also = f", or a {self._base.__name__}"
            if parameter == "measure":
                also += " or a callable g(probs, labels)"
            raise unknown(parameter, name, self.available(), also)
        value: Any = self._values[plain]
        if colon and number is not None:
            # "bins" of n_bins, "evaluations" of max_evaluations.
            what = number.partition("_")[2]
            if not hasattr(value, number):
                raise refusal(parameter, f"{plain} has no {what}", repr(name), f"Write {plain!r}.")
            # More digits would be no number of bins or evaluations.
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 18 and int(digits)):
                rule = f"must have a positive number of {what}, as in {plain}:50"
                raise refusal(parameter, rule, f"{name!r:.80}", "Correct the number.")
            value = replace(value, **{number: int(digits)})
        found: Value = value
        return found

    def class_named(self, name: str) -> type:
        """One of the classes, or the error of an attribute that a module does not have."""
        for value in self._values.values():
            if type(value).__name__ == name:
                return type(value)
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")

    def listed(self) -> list[str]:
        """What the package names itself, and the classes, for `dir`."""
        own: list[str] = sys.modules[self._package].__all__
        return own + sorted({type(value).__name__ for value in self._values.values()})
