"""The rooms of the house: imports point one way, and importing costs little."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hullcal

ROOT = Path(hullcal.__file__).parent

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
#: A room may import from the rooms before it, never from those after it; folders end in a slash.
TABLE = re.findall(r"^\| `(\w+/?)` \| \S", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
ORDER = [room.rstrip("/") for room in TABLE]
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "hullcal":
                yield from (
                    f"hullcal.{each.name}" for each in node.names if each.name != "__version__"
                )
            else:
                yield node.module


def test_every_room_has_its_place_in_the_order():
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert sorted(rooms) == sorted(ORDER)
    assert [room.endswith("/") for room in TABLE] == [(ROOT / room).is_dir() for room in ORDER]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for name in imported_names(path):
        if name.startswith("hullcal."):
            other = name.split(".")[1]
            assert ORDER.index(other) <= ORDER.index(room), f"{room} imports {name}"


def test_few_rooms_stand_above_the_algorithm():
    lazily = {"__init__", "__main__"}
    for path in FILES:
        for name in imported_names(path):
            if name.startswith("hullcal.algorithm"):
                above = {"truth", "classical", "assessment", "ensembles", "simulation", "cli"}
                assert room_of(path) in lazily | above, f"{path.name} imports {name}"
            if name.startswith("hullcal.cli"):
                assert room_of(path) in lazily | {"cli"}, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_compiled_room_names_numba(path):
    if room_of(path) != "_compiled":
        assert not any(name.split(".")[0] == "numba" for name in imported_names(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "the first line says what the file is for"
    assert path.stem not in ("utils", "helpers", "common")


def in_a_fresh_process(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()


@pytest.mark.parametrize(
    ("room", "heavy"),
    [
        ("hullcal", {"numba", "scipy", "matplotlib", "sklearn", "torch", "rich", "click"}),
        ("hullcal.objectives.dask", {"dask", "distributed", "zarr", "pyarrow"}),
    ],
)
def test_importing_loads_no_package_before_it_is_needed(room, heavy):
    loaded = in_a_fresh_process(f"import {room}, sys; print(*sys.modules)")
    assert room in loaded
    assert {name.split(".")[0] for name in loaded}.isdisjoint(heavy)


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("--help", "set of classifiers"),
        ("--version", hullcal.__version__),
        ("measures", "ece_cwise, ece_cwise_smooth, hl_cwise"),
    ],
)
def test_the_program_answers_as_a_module_and_as_a_command(word, answer):
    command = Path(sys.executable).with_name("hullcal")
    programs = [[sys.executable, "-m", "hullcal"], *([[str(command)]] if command.exists() else [])]
    answers = [
        subprocess.run([*program, word], capture_output=True, text=True, check=True, timeout=120)
        for program in programs
    ]
    for each in answers:
        assert (each.stdout, each.stderr) == (answers[0].stdout, "")
    assert answer in answers[0].stdout


def test_help_and_version_load_no_heavy_package():
    loaded = in_a_fresh_process(
        "import sys, hullcal.cli as cli\n"
        "try: cli.main(['--version'])\n"
        "except SystemExit: print('loaded:', *sys.modules)"
    )
    loaded = loaded[loaded.index("loaded:") + 1 :]
    assert {name.split(".")[0] for name in loaded}.isdisjoint({"numba", "scipy", "sklearn"})


def test_every_public_name_is_there_and_an_unknown_one_is_an_attribute_error():
    for name in dir(hullcal):
        assert getattr(hullcal, name)
    assert {"Pairwise", "Cobyla", "Exact", "Slsqp", "Random"} <= set(dir(hullcal.minimizers))
    with pytest.raises(AttributeError, match="calibration_tset"):
        _ = hullcal.calibration_tset
    with pytest.raises(AttributeError, match="Pairwize"):
        _ = hullcal.minimizers.Pairwize


def test_public_functions_and_classes_are_described():
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
            if is_definition and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"
