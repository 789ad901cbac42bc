"""Experiments: every command runs from end to end, at a size that shows nothing but that."""

import csv
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "type_errors").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    pytest.skip("the studies are too slow uncompiled", allow_module_level=True)
for library in ("joblib", "matplotlib", "mpltern", "nlopt"):
    pytest.importorskip(library)
sys.path.insert(0, str(ROOT))

from experiments.type_errors import canvas, grids, running, tables  # noqa: E402
from experiments.type_errors.__main__ import main  # noqa: E402
from experiments.type_errors.commands import COMMANDS  # noqa: E402
from experiments.type_errors.null_figures import with_bounds  # noqa: E402

from hullcal.simulation import protocols, wilson  # noqa: E402

TINY = ("--datasets", "1", "--resamples", "19", "--jobs", "1")
SHORT = ("--minimizer", "pairwise:8")
FURTHER = {
    "figure1": ("--datasets", "2", "--protocol", "paper"),
    "distance": ("--population", "200"),
}
FILES = {
    "figure1": {"figure1_paper"},
    "levels": {"nulls_level", "nulls_calibrated"},
    "nulls": {
        *("nulls_level", "nulls_power_S2", "nulls_power_S3", "nulls_axes", "nulls_calibrated"),
    },
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One folder of journals for all commands: `distance` reads those of `nulls`."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def small(monkeypatch):
    """A centre, axes and budgets that take no time."""
    for name, value in {"n_samples": 20, "n_members": 3, "n_classes": 3}.items():
        monkeypatch.setitem(grids.CENTRE, name, value)
    monkeypatch.setitem(grids.AXES, "n_samples", (20, 21, 22))
    monkeypatch.setitem(grids.AXES, "n_members", (2, 3, 4))
    monkeypatch.setattr(grids, "_DATASETS", dict.fromkeys((20, 21, 22), (2, 1)))
    monkeypatch.setitem(grids.AXES, "spread", (0.1, 1.0))
    monkeypatch.setattr(grids, "S2_STRENGTHS", (1.0,))
    monkeypatch.setattr(grids, "S3_STRENGTHS", (0.2, 1.0))
    monkeypatch.setattr(grids, "BUDGETS", (4, 8))


def told(command, work, out):
    # A budget has searches of its own.
    search = () if command in ("scenarios", "budget") else SHORT
    main([command, *TINY, *search, *FURTHER.get(command, ()), f"--work={work}", f"--out={out}"])
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_and_writes_its_figures_and_their_data(command, work, tmp_path, capsys):
    files = told(command, work, tmp_path)
    printed = capsys.readouterr().out
    assert f"{command} took" in printed
    for name in FILES.get(command, {command}):
        assert f"{name}.svg" in files or command in ("candidates", "classes")
        assert f"{name}.csv" in files
    for name, content in files.items():
        assert str(tmp_path / name) in printed
        if name.endswith(".svg"):
            ElementTree.fromstring(content)
            assert b"<dc:date>" not in content
            assert b"<text" in content
        elif command != "scenarios":
            rows = list(csv.DictReader(content.decode().splitlines()))
            assert rows
            for row in rows:
                ends = float(row["error_lower"]), float(row["error_upper"])
                assert ends[0] <= float(row["error"]) <= ends[1]
                assert int(row["n_datasets"]) >= 1


@pytest.mark.parametrize("command", ["scenarios", "figure1"])
def test_a_command_given_again_reads_its_journal_and_writes_the_same_files(command, work, tmp_path):
    first = told(command, work, tmp_path / "first")
    again = told(command, work, tmp_path / "again")
    assert first == again


def test_every_departure_of_the_scripts_is_looked_at():
    parts = {part.name: part for part in grids.switches(5)}
    assert set(protocols.SWITCHES) <= set(parts)
    for switch in protocols.SWITCHES:
        followed = protocols.resolve(parts[switch].grid.protocol[0])
        assert [name for name in protocols.SWITCHES if getattr(followed, name)] == [switch]


def test_every_cell_of_the_nulls_is_drawn_once():
    cells = [
        (cell.key, test.measure.name)
        for part in grids.nulls()
        for cell in part.grid.cells
        for test in part.grid.tests
        if test.null == "paper"
    ]
    assert len(cells) == len(set(cells))


def test_a_study_that_takes_too_long_gets_fewer_data_sets_and_keeps_their_number(
    tmp_path, capsys, monkeypatch
):
    part = grids.paper_figure("figure1", "paper", 1000)
    monkeypatch.setattr(running, "_seconds", lambda part: 1.0)
    # 21 seconds a data set of all cells and measures, on one process.
    assert running.affordable(1000, part, tmp_path, 1, minutes=21 * 55 / 60) == 50
    assert "50 data sets" in capsys.readouterr().out
    monkeypatch.setattr(running, "_seconds", lambda part: 1e-9)
    assert running.affordable(1000, part, tmp_path, 1, minutes=60) == 50
    assert running.affordable(1000, part, tmp_path / "other", 1, minutes=60) == 1000


def test_the_interval_of_a_change_is_newcombe_s():
    # Newcombe (1998), Statistics in Medicine 17, 873-890, Table II: 56/70 and 48/80, method 10.
    def row(count, total):
        low, high = wilson(count, total)
        return {"error": count / total, "error_lower": low, "error_upper": high}

    found = tables.difference(row(56, 70), row(48, 80))
    assert found["change"] == pytest.approx(0.2)
    assert found["change_lower"] == pytest.approx(0.0524, abs=5e-5)
    assert found["change_upper"] == pytest.approx(0.3339, abs=5e-5)


def test_a_bound_allows_for_the_number_of_points():
    row = {"kind": "Type I", "alpha": 0.05, "n_datasets": 100, "rejection_rate": 0.12}
    alone, *_ = with_bounds([row])
    among_many, *_ = with_bounds([row] * 100)
    # 99 % and 99.99 % quantiles of Bin(100, .05).
    assert (alone["bound"], alone["beyond"]) == (0.11, True)
    assert (among_many["bound"], among_many["beyond"]) == (0.15, False)
    assert with_bounds([row | {"kind": "Type II"}]) == []


def test_every_null_and_every_measure_has_a_mark_of_its_own():
    for styles in (canvas.NULLS, canvas.MEASURES):
        assert len({style["marker"] for style in styles.values()}) == len(styles)
    assert len({str(style["linestyle"]) for style in canvas.NULLS.values()}) == len(grids.NULLS)
