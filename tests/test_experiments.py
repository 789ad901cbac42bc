"""Experiments: every command runs from end to end on small data, and its own arithmetic is right."""

import csv
import importlib
import itertools
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    pytest.skip("the studies are too slow uncompiled", allow_module_level=True)
for library in ("joblib", "matplotlib", "mpltern", "nlopt"):
    pytest.importorskip(library)
sys.path.insert(0, str(ROOT))

from experiments import levels  # noqa: E402
from experiments.cifar10_networks import __main__ as networks  # noqa: E402
from experiments.cifar10_networks import humans, study  # noqa: E402
from experiments.type_errors import __main__ as errors  # noqa: E402
from experiments.type_errors import figures, grids  # noqa: E402


def whole(folder, printed):
    """The files a command wrote, each of them named in what it printed, tables and drawings whole."""
    files = {path.name: path.read_text() for path in sorted(folder.iterdir())}
    for name, content in files.items():
        assert str(folder / name) in printed
        if name.endswith(".svg"):
            ElementTree.fromstring(content)
            assert "<dc:date>" not in content
        else:
            assert list(csv.DictReader(content.splitlines()))
    return files


# Type I and Type II errors


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One folder of journals for all commands: `distance` reads those of `nulls`."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def tiny(monkeypatch):
    """A centre, axes and searches that take no time."""
    monkeypatch.setattr(grids, "SEARCHES", dict.fromkeys(grids.SEARCHES, "steepest:4"))
    monkeypatch.setattr(grids, "SEARCH", "steepest:4")
    for name, value in {"n_samples": 20, "n_members": 3, "n_classes": 3}.items():
        monkeypatch.setitem(grids.CENTRE, name, value)
    monkeypatch.setitem(grids.AXES, "n_samples", (20, 21, 22))
    monkeypatch.setitem(grids.AXES, "n_members", (2, 3, 4))
    monkeypatch.setattr(grids, "_DATASETS", dict.fromkeys((20, 21, 22), (2, 1)))
    monkeypatch.setitem(grids.AXES, "spread", (0.1, 1.0))
    monkeypatch.setattr(grids, "S2_STRENGTHS", (1.0,))
    monkeypatch.setattr(grids, "S3_STRENGTHS", (0.2, 1.0))


def run(command, work, out):
    options = ["--datasets=1", "--resamples=19", "--jobs=1", f"--work={work}", f"--out={out}"]
    if command == "figure1":
        options += ["--datasets=2", "--protocol=paper"]
    errors.main([command, *options, *(["--population=200"] if command == "distance" else [])])


WRITTEN = {
    "figure1": {"figure1_paper"},
    "nulls": {"nulls_level", "nulls_power_S3", "nulls_axes", "nulls_calibrated"},
    "classes": set(),
}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("command", errors.COMMANDS)
def test_a_command_prints_and_writes_its_figures_and_their_data(command, work, tmp_path, capsys):
    run(command, work, tmp_path)
    printed = capsys.readouterr().out
    assert f"{command} took" in printed
    files = whole(tmp_path, printed)
    drawn = {name.removesuffix(".svg") for name in files if name.endswith(".svg")}
    assert drawn == WRITTEN.get(command, {command})
    assert {f"{name}.csv" for name in drawn or {command}} <= set(files)
    if command != "scenarios":
        tables = [content for name, content in files.items() if name.endswith(".csv")]
        for row in (row for table in tables for row in csv.DictReader(table.splitlines())):
            ends = float(row["error_lower"]), float(row["error_upper"])
            assert ends[0] <= float(row["error"]) <= ends[1]


@pytest.mark.usefixtures("tiny")
def test_a_command_given_again_reads_its_journal_and_writes_the_same_files(work, tmp_path):
    found = []
    for folder in (tmp_path / "first", tmp_path / "again"):
        run("figure1", work, folder)
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]


def test_every_departure_of_the_scripts_is_looked_at():
    protocols = hc.simulation.protocols
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
        if test.null.name == "paper"
    ]
    assert len(cells) == len(set(cells)) > 100


def test_the_interval_of_a_change_is_newcombe_s():
    # Newcombe (1998), Statistics in Medicine 17, 873-890, Table II: 56/70 and 48/80, method 10.
    def row(count, total):
        low, high = hc.simulation.wilson(count, total)
        return {"error": count / total, "error_lower": low, "error_upper": high}

    found = errors.difference(row(56, 70), row(48, 80))
    assert found["change"] == pytest.approx(0.2)
    assert found["change_lower"] == pytest.approx(0.0524, abs=5e-5)
    assert found["change_upper"] == pytest.approx(0.3339, abs=5e-5)


def test_a_bound_allows_for_the_number_of_points():
    row = {"kind": "Type I", "alpha": 0.05, "n_datasets": 100, "rejection_rate": 0.12}
    alone, *_ = figures.with_bounds([row])
    among_many, *_ = figures.with_bounds([row] * 100)
    # 99 % and 99.99 % quantiles of Bin(100, .05).
    assert (alone["bound"], alone["beyond"]) == (0.11, True)
    assert (among_many["bound"], among_many["beyond"]) == (0.15, False)
    assert figures.with_bounds([row | {"kind": "Type II"}]) == []


# Networks, people, and members added one by one

NAMES = ("resnet18", "googlenet", "resnet_orig", "inception_v3")
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(3), size=120)
    probs = 0.7 * truth[:, None] + 0.3 * rng.dirichlet(np.ones(3), size=(120, 4))
    labels = hc.simulation.draw_labels(truth, rng)
    np.savez(tmp_path / "nets.npz", probs=probs, labels=labels, members=np.array(NAMES))
    np.savez(tmp_path / "people.npz", probs=truth)
    return tmp_path / "nets.npz", tmp_path / "people.npz"


@pytest.fixture
def small(files):
    return study.read(*files)


def test_every_part_prints_its_numbers_and_writes_tables_and_figures(files, tmp_path, capsys):
    networks.main([*map(str, files), f"--out={tmp_path / 'out'}", "--trial"])
    printed = capsys.readouterr().out
    assert all(f"{name} took" in printed for name in networks.PARTS)
    drawn = {name for name in whole(tmp_path / "out", printed) if name.endswith(".svg")}
    assert drawn == {
        "networks.svg",
        "weights.svg",
        "pairs.svg",
        "sizes.svg",
        "growing.svg",
        "humans.svg",
    }


def test_members_are_added_one_by_one(small):
    rows = study.growing(small, study.TRIAL)
    assert [row["set"] for row in rows] == list(NAMES)
    assert [row["n_members"] for row in rows] == [1, 2, 3, 4]
    diameters = [row["tv_diameter"] for row in rows]
    assert diameters[0] == 0.0
    assert diameters == sorted(diameters)


def test_opinions_about_other_images_are_refused_with_both_shapes(files, tmp_path):
    np.savez(tmp_path / "few.npz", probs=np.full((7, 3), 1 / 3))
    with pytest.raises(hc.InvalidInputError, match=r"`humans`.*\(120, 3\).*\(7, 3\)"):
        study.read(files[0], tmp_path / "few.npz")


def test_the_nearest_point_is_no_farther_than_any_of_a_fine_grid_of_the_hull(monkeypatch):
    monkeypatch.setattr(humans, "_BLOCK", 4)  # of six instances, so that there are two blocks
    rng = np.random.default_rng(2)
    members = rng.dirichlet(np.ones(4), size=(6, 3))
    points = rng.dirichlet(np.ones(4), size=6)
    found = humans.total_variation(points, humans.nearest_points(members, points))
    steps = np.arange(0, 101) / 100
    grid = np.array([(a, b, 1 - a - b) for a, b in itertools.product(steps, steps) if a + b <= 1])
    distances = humans.total_variation(grid @ members, points[:, None])
    assert np.all(found <= distances.min(axis=1) + 1e-9)
    # A step of .01 in two weights moves a mixture by at most .02.
    assert np.all(found >= distances.min(axis=1) - 0.02)


def test_the_pvalues_of_networks_are_adjusted_over_networks_and_measures(small):
    rows = study.alone(small, study.TRIAL)
    assert [row["network"] for row in rows] == [*NAMES, "average"]
    found = [(row[f"{m}_p"], row[f"{m}_holm"]) for row in rows[:-1] for m in study.MEASURES]
    # Holm by hand: the i-th smallest of eight times 8 - i, and never less than the one before.
    expected = np.maximum.accumulate([(8 - i) * p for i, (p, _) in enumerate(sorted(found))])
    np.testing.assert_allclose([holm for _, holm in sorted(found)], expected.clip(max=1.0))
    assert rows[-1]["ece_conf_holm"] is None
    labels, probs = small.labels, small.networks.probs
    assert rows[2]["accuracy"] == np.mean(probs[:, 2].argmax(axis=1) == labels)
    assert rows[-1]["confidence"] == pytest.approx(probs.mean(axis=1).max(axis=1).mean())


def test_weights_are_judged_on_rows_that_did_not_choose_them(small):
    scores, _ = study.splits(small, study.TRIAL)
    (first, chosen), (second, judged) = hc.split(small.networks.probs, small.labels, rng=0)
    logs = [-np.log(first[np.arange(len(chosen)), m, chosen]).mean() for m in range(4)]
    best = second[:, int(np.argmin(logs))]
    (row,) = [row for row in scores if row["split"] == 0 and row["way"] == "best network"]
    assert row["accuracy"] == np.mean(best.argmax(axis=1) == judged)
    assert row["ece_cwise"] == pytest.approx(hc.ClasswiseECE()(best, judged))


def test_every_pair_is_looked_at_once_and_counted_by_family(small):
    rows = study.pairs(small, study.TRIAL)
    assert {frozenset((row["first"], row["second"])) for row in rows} == {
        frozenset(pair) for pair in itertools.combinations(NAMES, 2)
    }
    counts = {row["pairs"]: row["n_pairs"] for row in study.counted(rows)}
    assert counts == {"within a family": 2, "across families": 4}


@pytest.mark.skipif(not (DATA / "cifar10h_probs.npz").exists(), reason="the files are not here")
def test_people_and_networks_look_at_the_same_images():
    found = study.read(DATA / "cifar10_14nets.npz", DATA / "cifar10h_probs.npz", rows=500)
    # People's commonest answer is the label of nearly all images; in another order of a tenth.
    assert (found.humans.argmax(axis=1) == found.labels).mean() > 0.95
    families = {"densenet", "inception", "mobilenet", "resnet", "vgg"}
    assert set(study.families(found.names)) == families


# Levels


def test_the_reweighted_forest_has_a_calibrated_combination_with_other_labels():
    pytest.importorskip("sklearn")
    probs, labels, chances = levels.calibrated_forest()
    assert chances.sum() == pytest.approx(1.0)
    weights = hc.minimize(probs, labels, minimizer="pairwise", rng=0).weights
    mixed = np.einsum("m,nmk->nk", weights, probs)
    confidence, hit = mixed.max(axis=1), mixed.argmax(axis=1) == labels
    bins = np.minimum((confidence * 10).astype(int), 9)
    for j in np.unique(bins):
        gap = (chances * (hit - confidence))[bins == j].sum()
        assert gap == pytest.approx(0.0, abs=1e-12)


def test_a_level_is_printed_for_each_cell(capsys):
    levels.main(["--sets", "2", "--only", "S1, N=100, M=2, K=10 ece", "--data", "nowhere"])
    printed = capsys.readouterr().out
    assert printed.count("S1, N=100, M=2, K=10") == 4
    assert "of 4 cells above the bound" in printed


PROGRAMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for room in ("experiments", "benchmarks")
    for path in (ROOT / room).rglob("*.py")
    if "deep_ensembles" not in path.parts and path.name != "__main__.py"  # needs PyTorch; runs
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_program_imports_is_there(name):
    assert importlib.import_module(name).__doc__


def test_the_alternatives_of_the_likelihood_are_compared(monkeypatch, capsys):
    alternatives = importlib.import_module("experiments.alternatives")
    monkeypatch.setattr(sys, "argv", ["alternatives", "--sets", "1", "--only", "S1, N=100"])
    alternatives.main()
    head, columns, rates = capsys.readouterr().out.splitlines()
    assert head.startswith("1 sets a cell, 39 resamples, alpha = 0.05")
    assert columns.split()[0] == "ratio"
    found = [float(rate) for rate in rates[34:].split()]
    assert len(found) == 1 + len(alternatives.FAMILIES) + len(alternatives.AVERAGES)
    assert set(found) <= {0.0, 1.0}
