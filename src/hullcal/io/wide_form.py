"""How do columns such as ``member:class`` become one array?"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.names import Name, Wide, as_integers, label_values
from hullcal.io.dataset import Parts
from hullcal.io.tables import Table

__all__ = ["read_wide"]


def read_wide(table: Table, wide: Wide, columns: list[int], label: int | None) -> Parts:
    """Read a table of one line per instance.

    Parameters
    ----------
    table : Table
    wide : list of (str, str)
        Member and class of each column of numbers; one unnamed member for ``p_<class>``.
    columns : list of int
        Where those columns stand.
    label : int or None
        The column of labels.

    Returns
    -------
    Parts
    """
    source = table.source
    members = list(dict.fromkeys(member for member, _ in wide))
    classes = list(dict.fromkeys(cls for _, cls in wide))
    place = dict(zip(wide, columns, strict=True))
    rule = "must have a column for every member and class, once"
    if len(place) < len(wide):
        twice = next(pair for pair in wide if wide.count(pair) > 1)
        raise source.refuse(rule, f"two columns for {reprlib.repr(twice)}", "Remove one.")
    missing = [(m, c) for m in members for c in classes if (m, c) not in place]
    if missing:
        alone = [cls for cls in classes if sum((m, cls) in place for m in members) == 1]
        shown = ", ".join(repr(cls[:40]) for cls in alone[:3])
        hint = f" Only one member has {shown}: mind the spelling." if alone else ""
        raise source.refuse(rule, f"none for {reprlib.repr(missing[0])}", f"Add the column.{hint}")
    ordered = [place[m, c] for m in members for c in classes]
    rows: list[NDArray[Any]] = []
    labels: list[Name] = []
    for batch in table.batches:
        rows.append(np.stack([batch.numbers(column) for column in ordered], axis=1))
        if label is not None:
            labels += batch.names(label)
    if not rows:
        raise source.refuse("must hold instances", "no line below the header", "Add some.")
    probs = np.concatenate(rows)
    named = tuple(as_integers(classes))
    unnamed = members == [""]
    return Parts(
        probs=probs if unnamed else probs.reshape(-1, len(members), len(classes)),
        labels=None if label is None else label_values(labels, named),
        classes=named,
        members=None if unnamed else tuple(members),
    )
