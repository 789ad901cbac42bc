"""Marks on a plane as markup that a strict Content-Security-Policy lets through: no style, no script.

Colours are classes of the page's style sheet, so that figures follow light and dark. What a mark
means stands in its `<title>`: browsers show it, and the script shows it faster and to more readers.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from hullcal.words import printable

#: Width of every figure, in units of which a letter is about six wide.
WIDTH = 360.0

#: Distance between lines of text, and the widest that a name beside a row may be.
LINE, NAME = 15.0, 150.0


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most `most` steps apart.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not 0.0 < span < math.inf:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(f * power for f in (1, 2, 5, 10, 20) if span <= most * f * power * (1 + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def width_of(words: str) -> float:
    """About how wide a text is; fonts differ, so this errs to the wide side."""
    return sum(_width(character) for character in words)


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 11.5
    if character in "MWmw@%&":
        return 10.5
    return 8.0 if character.isupper() else 6.3


def at(value: float) -> str:
    """A coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def text(words: str) -> str:
    """Words of anybody as text of the page."""
    return escape(printable(words))


@dataclass
class Panel:
    """Axes with the elements drawn so far; `x` and `y` are the values at its ends."""

    height: float
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    left: float = 46.0
    right: float = 10.0
    top: float = 8.0
    bottom: float = 38.0
    parts: list[str] = field(default_factory=list)

    def px(self, value: float) -> float:
        """From a value to a place across."""
        return self.left + _share(value, *self.x) * (WIDTH - self.left - self.right)

    def py(self, value: float) -> float:
        """From a value to a place down."""
        return self.height - self.bottom - _share(value, *self.y) * self._down

    @property
    def _down(self) -> float:
        return self.height - self.top - self.bottom

    def box(
        self, look: str, x: tuple[float, float], y: tuple[float, float], title: str = ""
    ) -> None:
        """A rectangle between values."""
        left, right = sorted(map(self.px, x))
        above, below = sorted(map(self.py, y))
        place = f'x="{at(left)}" y="{at(above)}"'
        size = f'width="{at(right - left)}" height="{at(below - above)}"'
        self._add("rect", look, f"{place} {size}", title)

    def column(self, x: tuple[float, float], title: str) -> None:
        """What to say wherever the pointer is above this part of the axis."""
        self.box("mark", x, self.y, title)

    def row(self, y: float, title: str) -> None:
        """What to say wherever the pointer is beside this row, from its name to its end."""
        above, below = sorted((self.py(y - 0.5), self.py(y + 0.5)))
        place = f'x="0" y="{at(above)}" width="{at(WIDTH)}" height="{at(below - above)}"'
        self._add("rect", "mark", place, title)

    def line(
        self, look: str, points: Iterable[tuple[float, float]], *, closed: bool = False
    ) -> None:
        """A line through values."""
        places = " ".join(f"{at(self.px(x))},{at(self.py(y))}" for x, y in points)
        self._add("polygon" if closed else "polyline", look, f'points="{places}"')

    def steps(self, look: str, edges: Sequence[float], heights: Sequence[float]) -> None:
        """The outline of a histogram, down to the axis at both ends."""
        points = [(edges[0], 0.0)]
        for low, high, top in zip(edges[:-1], edges[1:], heights, strict=True):
            points += [(low, top), (high, top)]
        self.line(look, [*points, (edges[-1], 0.0)])

    def dot(self, look: str, x: float, y: float, title: str = "", *, size: float = 3.2) -> None:
        """A point: round, or as its look says square or diamond."""
        self._shape(look, self.px(x), self.py(y), size, title)

    def write(
        self, words: str, x: float, y: float, *, look: str = "", anchor: str = "start"
    ) -> None:
        """Words at a place, not at a value."""
        self._add("text", look, f'x="{at(x)}" y="{at(y)}"{_anchored(anchor)}', inside=text(words))

    def names(self, names: Sequence[str]) -> None:
        """Names beside the rows 0, 1, ...; letters move closer where there is too little room."""
        for y, name in enumerate(names):
            fit = f' textLength="{at(NAME)}" lengthAdjust="spacingAndGlyphs"'
            fit = fit if width_of(name) > NAME else ""
            place = f'x="{at(self.left - 6)}" y="{at(self.py(y) + 4)}"{_anchored("end")}{fit}'
            self._add("text", "", place, inside=text(name))

    def across(self, label: str, values: Sequence[float] | None = None) -> None:
        """The axis below, with its ticks."""
        below = self.height - self.bottom
        self._rule(self.left, below, WIDTH - self.right, below)
        for value in ticks(*self.x, most=6) if values is None else values:
            place = self.px(value)
            self._rule(place, below, place, below + 4)
            self.write(f"{value:g}", place, below + 16, anchor="middle")
        middle = (self.left + WIDTH - self.right) / 2
        self.write(label, middle, self.height - 5, anchor="middle")

    def down(self, label: str, values: Sequence[float] | None = None) -> None:
        """The axis on the left, with its ticks."""
        self._rule(self.left, self.top, self.left, self.height - self.bottom)
        for value in ticks(*self.y) if values is None else values:
            place = self.py(value)
            self._rule(self.left - 4, place, self.left, place)
            self.write(f"{value:g}", self.left - 6, place + 4, anchor="end")
        turned = f'transform="translate(11 {at(self.top + self._down / 2)}) rotate(-90)"'
        self._add("text", "", turned + _anchored("middle"), inside=text(label))

    def legend(self, items: Sequence[tuple[str, str]], *, columns: int = 1) -> None:
        """Looks and what they stand for, above the axes; words without a look go on from the last."""
        for number, (look, words) in enumerate(items):
            row, column = divmod(number, columns)
            x, y = 8.0 + column * (WIDTH - 16.0) / columns, 11.0 + LINE * row
            if look.startswith("line"):
                self._add(
                    "polyline", look, f'points="{at(x)},{at(y - 4)} {at(x + 18)},{at(y - 4)}"'
                )
            elif look.startswith("area"):
                self._add("rect", look, f'x="{at(x)}" y="{at(y - 9)}" width="18" height="10"')
            elif look:
                self._shape(look, x + 9, y - 4, 3.2)
            self.write(words, x + 24, y)

    def markup(self, description: str) -> str:
        """The whole figure. It takes the focus if it has marks; the script lets arrows walk them."""
        inside = "".join(self.parts)
        focus = ' tabindex="0"' if "<title>" in inside else ""
        return (
            f'<svg viewBox="0 0 {at(WIDTH)} {at(self.height)}" role="img"{focus} '
            f'aria-label="{text(description)}">{inside}</svg>'
        )

    def _shape(self, look: str, x: float, y: float, size: float, title: str = "") -> None:
        if "square" in look:
            place = f'x="{at(x - size)}" y="{at(y - size)}"'
            self._add(
                "rect", look, f'{place} width="{at(2 * size)}" height="{at(2 * size)}"', title
            )
        elif "diamond" in look:
            r = 1.3 * size
            corners = [(x - r, y), (x, y - r), (x + r, y), (x, y + r)]
            points = " ".join(f"{at(a)},{at(b)}" for a, b in corners)
            self._add("polygon", look, f'points="{points}"', title)
        else:
            self._add("circle", look, f'cx="{at(x)}" cy="{at(y)}" r="{at(size)}"', title)

    def _rule(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self._add("polyline", "axis", f'points="{at(x)},{at(y)} {at(to_x)},{at(to_y)}"')

    def _add(self, tag: str, look: str, place: str, title: str = "", *, inside: str = "") -> None:
        if title:
            inside = f"<title>{text(title)}</title>"
        shown = f' class="{look}"' if look else ""
        self.parts.append(f"<{tag}{shown} {place}>{inside}</{tag}>")


def _share(value: float, low: float, high: float) -> float:
    # Halves, since the distance of two large numbers may be none.
    return (value / 2 - low / 2) / (high / 2 - low / 2)


def _anchored(anchor: str) -> str:
    return "" if anchor == "start" else f' text-anchor="{anchor}"'
