"""How are figures printed? Aligned tables, and one line for each target."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What must be reached, the figure found, and whether that is enough."""

    name: str
    figure: str
    reached: bool

    def __str__(self) -> str:
        return f"{'reached' if self.reached else 'NOT REACHED':<12} {self.name}: {self.figure}"


def at_least(name: str, figure: float, bound: float) -> Target:
    """A ratio that must not fall below a bound."""
    return Target(f"{name} >= {bound:,g}x", f"{figure:,.4g}x", figure >= bound)


def at_most(name: str, figure: float, bound: float, unit: str = "") -> Target:
    """A figure that must not exceed a bound."""
    return Target(f"{name} <= {bound:,g}{unit}", f"{figure:.3g}{unit}", figure <= bound)


def print_title(title: str) -> None:
    """The question of a section, underlined."""
    print(f"\n{title}\n{'=' * len(title)}", flush=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> None:
    """Columns as wide as they need to be: the first to the left, the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(header))]
    if caption:
        print(f"\n{caption}")
    for number, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def print_targets(targets: Iterable[Target]) -> None:
    """One line each."""
    for target in targets:
        print(target)
    print(flush=True)
