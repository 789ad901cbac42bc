"""Draws the rooms of the package and what they import, from the source itself."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "hullcal"
TARGET = HERE / "_static" / "architecture.svg"

#: The rooms of the six ideas, drawn bolder.
IDEAS = {"sets", "measures", "minimizers", "nulls", "objectives", "results"}
#: Width and height of a box, and of the place it stands in.
BOX, PLACE = (1.5, 0.42), (1.72, 0.86)


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """For every room, the other rooms that its files import, at their head or inside a function."""
    rooms: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).with_suffix("").parts[0]
        if room in ("__init__", "__main__"):
            continue
        found = rooms.setdefault(room, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "hullcal":
                names = [f"hullcal.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found.update(name.split(".")[1] for name in names if name.startswith("hullcal."))
        found -= {room, "__version__"}
    return rooms


def floors(rooms: dict[str, set[str]]) -> list[list[str]]:
    """Rooms from the top: under all that they import, and right above the first that imports them."""
    users = {room: [user for user, used in rooms.items() if room in used] for room in rooms}

    @cache
    def depth(room: str) -> int:
        return 1 + max((depth(other) for other in rooms[room]), default=-1)

    @cache
    def floor(room: str) -> int:
        return min((floor(user) for user in users[room]), default=depth(room) + 1) - 1

    found = {room: floor(room) if users[room] else depth(room) for room in rooms}
    height = 1 + max(found.values())
    return [sorted(room for room in rooms if found[room] == level) for level in range(height)]


def direct(rooms: dict[str, set[str]]) -> set[tuple[str, str]]:
    """(imported, importing) for imports that no chain of other imports implies."""

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset().union(*({other} | below(other) for other in rooms[room]))

    return {
        (other, room)
        for room, others in rooms.items()
        for other in others
        if not any(other in below(between) for between in others - {other})
    }


def places(levels: list[list[str]], edges: set[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Where boxes stand: floors downwards, each box near the middle of what it is tied to."""
    at = {
        room: (i - (len(level) - 1) / 2, float(-y))
        for y, level in enumerate(levels)
        for i, room in enumerate(level)
    }
    for _ in range(8):
        for y, level in enumerate(levels):
            tied = {
                room: [at[b][0] for a, b in edges if a == room]
                + [at[a][0] for a, b in edges if b == room]
                for room in level
            }
            means = {r: sum(x) / len(x) if x else at[r][0] for r, x in tied.items()}
            for i, room in enumerate(sorted(level, key=lambda r: (means[r], r))):
                at[room] = (i - (len(level) - 1) / 2, float(-y))
    return {room: (PLACE[0] * x, PLACE[1] * y) for room, (x, y) in at.items()}


def draw() -> Figure:
    """Boxes for rooms, arrows from what is imported to what imports it."""
    rooms = imports()
    levels, edges = floors(rooms), direct(rooms)
    at = places(levels, edges)
    width = PLACE[0] * (0.7 + max(map(len, levels)))
    figure = Figure(figsize=(0.62 * width, 0.62 * PLACE[1] * len(levels)))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set_xlim(-width / 2, width / 2)
    ax.set_ylim(-PLACE[1] * (len(levels) - 0.5), PLACE[1] * 0.5)
    for a, b in sorted(edges):
        start, end = (at[a][0], at[a][1] - BOX[1] / 2), (at[b][0], at[b][1] + BOX[1] / 2)
        # An arrow that passes floors goes around, or it would hide behind their boxes.
        passed = round((at[a][1] - at[b][1]) / PLACE[1]) - 1
        bend = (0.25 + 0.06 * passed) * (1 if end[0] > start[0] else -1) if passed else 0.0
        arrow = FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            connectionstyle=f"arc3,rad={-bend:.2f}",
            shrinkA=0,
            shrinkB=0,
        )
        arrow.set(color="#5b7f95", linewidth=0.9, zorder=1, mutation_scale=7)
        arrow.set_gid(f"edge:{a}:{b}")
        ax.add_patch(arrow)
    for level, names in enumerate(levels):
        for room in names:
            x, y = at[room]
            corner = (x - BOX[0] / 2, y - BOX[1] / 2)
            box = FancyBboxPatch(corner, *BOX, boxstyle="round,pad=0,rounding_size=0.08")
            bold = room in IDEAS
            box.set(facecolor="#bcd8e8" if bold else "#eef5f8", edgecolor="#20435c", zorder=2)
            box.set_linewidth(1.6 if bold else 0.8)
            box.set_gid(f"room:{room}:{level}")
            ax.add_patch(box)
            folder = (SOURCE / room).is_dir()
            ax.text(x, y, room + "/" * folder, ha="center", va="center", fontsize=7.5, zorder=3)
    return figure


def write(target: Path = TARGET) -> None:
    """The same bytes for the same source: no date, no random names, text as text."""
    settings = {"svg.hashsalt": "hullcal", "svg.fonttype": "none", "font.family": "sans-serif"}
    with matplotlib.rc_context(settings):
        draw().savefig(target, metadata={"Date": None, "Creator": None}, facecolor="white")


if __name__ == "__main__":
    write()
    print(TARGET.relative_to(HERE.parent))
