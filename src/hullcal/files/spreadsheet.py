"""How is text put into a table so that no spreadsheet takes it for a formula?"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

__all__ = ["as_text", "csv_line"]

# Spreadsheets take such a cell for a formula, also in full-width signs and after blanks.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")


def as_text(cell: str) -> str:
    """Text as it is, or behind an apostrophe where it would be a formula.

    Numbers are no text: a minus of theirs would get one as well.

    >>> as_text("ece_conf"), as_text("=1+1")
    ('ece_conf', "'=1+1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_line(cells: Iterable[str]) -> str:
    """One line of CSV; a line end inside a cell is quoted, whichever kind it is."""
    buffer = io.StringIO()
    # Only what is part of the writer's own line end is quoted.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"
