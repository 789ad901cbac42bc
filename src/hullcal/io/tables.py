"""What does a table offer, whichever file it comes from?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hullcal.files.names import Name
from hullcal.files.source import Source

__all__ = ["Batch", "Codes", "Table", "TableOpener"]


class Batch(Protocol):
    """Some consecutive rows of a table."""

    def names(self, column: int) -> list[Name]:
        """Give a column as names, none of which is empty."""

    def numbers(self, column: int) -> NDArray[Any]:
        """Give a column as numbers."""


@dataclass(frozen=True)
class Table:
    """An open table: names of columns at once, rows in batches that fit the memory."""

    source: Source
    columns: tuple[str, ...]
    batches: Iterator[Batch]


TableOpener = Callable[[Source], AbstractContextManager[Table]]


class Codes:
    """Numbers for names, by first appearance."""

    def __init__(self) -> None:
        self.table: dict[Name, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, names: Sequence[Name]) -> None:
        """Take the names of some more rows."""
        table = self.table
        for name in dict.fromkeys(names):
            table.setdefault(name, len(table))
        self._parts.append(np.fromiter(map(table.__getitem__, names), np.int32, len(names)))

    def __len__(self) -> int:
        return len(self.table)

    @property
    def names(self) -> list[Name]:
        """The different names."""
        return list(self.table)

    @property
    def array(self) -> NDArray[np.int32]:
        """The number of each row's name."""
        return np.concatenate(self._parts) if self._parts else np.empty(0, np.int32)
