"""How is a name of the user shown as it was typed?"""

from __future__ import annotations

from typing import Any

#: Longest name shown whole.
LONGEST = 24

#: For every text that holds a name: no TeX, whatever the user's settings say, and `as_typed` undone.
PLAIN: dict[str, Any] = {"usetex": False, "parse_math": True}


def as_typed(name: object, *, longest: int = LONGEST) -> str:
    r"""Text that matplotlib shows as the name, never as mathematics, on one line.

    As `clipped`, with dollar signs escaped.

    Examples
    --------
    >>> as_typed("cost in $"), as_typed("bell\a"), as_typed("a" * 30 + "7", longest=9)
    ('cost in \\$', 'bell\\x07', 'aaaa…aaa7')
    """
    return clipped(name, longest=longest).replace("$", r"\$")


def undrawn(words: str) -> str:
    """What `as_typed` made, for readers that know no mathematics."""
    return words.replace(r"\$", "$")


def clipped(name: object, *, longest: int = LONGEST) -> str:
    """The name on one line.

    What has no picture (control characters, line breaks, lone surrogates) appears as Python would
    write it. A long name loses its middle, since names often differ at their ends.
    """
    # A name far beyond the limit must not cost time for every character.
    raw = str(name)
    if len(raw) > 2 * longest:
        raw = raw[:longest] + raw[-longest:]
    shown = "".join(_visible(character) for character in raw)
    if len(shown) > longest:
        head = longest // 2
        shown = f"{shown[:head]}…{shown[len(shown) - (longest - head - 1) :]}"
    return shown


def member_name(members: tuple[str, ...] | None, m: int) -> str:
    """Name of member m as results print it, ready to be drawn."""
    return f"member {m}" if members is None else as_typed(members[m])


def number(value: float) -> str:
    """A value for a legend: three digits, and infinity in words."""
    if value == float("inf"):
        return "infinite"
    return "minus infinite" if value == float("-inf") else f"{value:.3g}"


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character == "\xa0" else character.encode("unicode_escape").decode("ascii")
