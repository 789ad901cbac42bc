"""How is text put into a table so that no spreadsheet takes it for a formula?"""

from __future__ import annotations

import re

__all__ = ["as_text"]

# Spreadsheets take such a cell for a formula, also in full-width signs and after blanks.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")


def as_text(cell: str) -> str:
    """Text as it is, or behind an apostrophe where it would be a formula.

    Numbers are no text: a minus of theirs would get one as well.

    >>> as_text("ece_conf"), as_text("=1+1")
    ('ece_conf', "'=1+1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell
