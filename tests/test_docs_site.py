"""The documentation tells the truth: its scripts run, its pictures and tables follow the source."""

import importlib
import inspect
import re
import runpy
import shutil
import sys
from itertools import combinations
from types import ModuleType

import matplotlib
import numba
import numpy as np
import pytest

import hullcal as hc
from test_architecture import FILES, ORDER, ROOT, imported_names, room_of

matplotlib.use("Agg")
DOCS = ROOT.parents[1] / "docs"
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
# Uncompiled, as coverage wants it, one of these scripts would take an hour.
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too slow uncompiled")

# What the text of an example says beyond what it prints; an example without an entry fails.
CLAIMS = {
    "plot_00_three_questions": lambda found: (
        found["found"]["forest"].average.rejected
        and 0.2 < found["found"]["forest"].effect.average.error < 0.3
        and found["found"]["forest"].effect.average.recalibrated < 0.05
        and not found["found"]["linear"].average.rejected
        and all(each.truth.rejected for each in found["found"].values())
    ),
    "plot_01_first_test": lambda found: not found["result"].rejected and found["average"].rejected,
    "plot_02_two_questions": lambda found: (
        np.all(
            np.array(found["rates"]["truth:ece_conf"])
            > 2 * np.array(found["rates"]["calibrated:ece_conf:recentered"])
        )
        and found["rates"]["calibrated:ece_conf:recentered"][0] <= 0.15
    ),
    "plot_03_reliability": lambda found: (
        found["found"].value
        < found["ece"](found["weighted"], found["judged_labels"])
        < 0.5 * found["ece"](found["average"], found["judged_labels"])
    ),
    "plot_04_simplex": lambda found: found["found"].value <= found["values"].min(),
    "plot_05_power": lambda found: found["found"].n_needed is not None,
    "plot_06_valid_and_small": lambda found: (
        found["pvalues"][0] <= 0.05
        and all(
            (count < 6) or (p > 0.05)
            for count, p in zip(found["counts"], found["pvalues"], strict=True)
        )
        and np.all(np.diff([size.tv_diameter for size in found["sizes"]]) > 0)
        and larger_where_wrong(found["trees"].subset(range(6)), found["labels"])
    ),
    "plot_07_one_classifier": lambda found: (
        max(found["pvalues"]["naive Bayes"].values()) <= 0.05
        and min(found["pvalues"]["logistic"].values()) > 0.05
    ),
    "plot_08_stopping_early": lambda found: (
        all(
            found["full"][name].rejected == found["stopped"][name].rejected
            for name in found["sets"]
        )
        and found["stopped"]["forest"].n_resamples < 50
        and found["stopped"]["flattened"].n_resamples == found["full"]["flattened"].n_resamples
        and found["full"]["flattened"].rejected
    ),
    "plot_09_boosting": lambda found: (
        not found["result"].rejected
        and all(end.rejected for end in found["ends"].values())
        and surplus(found, 0) < 0 < surplus(found, -1)
    ),
    "plot_10_own_measure": lambda found: found["own"].pvalue != found["general"].pvalue,
    "plot_11_error_rates": lambda found: (
        all(
            row["rejection_rate"] <= row["alpha"]
            for null in ("paper", "recentered")
            for row in found["rates"]["S1", null]
        )
        and all(
            recentered["rejection_rate"] > paper["rejection_rate"]
            for recentered, paper in zip(
                found["rates"]["S3", "recentered"][:5],
                found["rates"]["S3", "paper"][:5],
                strict=True,
            )
        )
    ),
    "plot_12_large_file": lambda found: 8 < found["ratio"] < 12,
    "plot_13_monitor": lambda found: (
        3000 < found["alarm"] < 4500
        and found["monitor"].rejected
        and found["monitor"].temperature > 1.3
    ),
}


def larger_where_wrong(trees, labels):
    sizes = hc.uncertainty.tv_diameter(trees)
    right = trees.mean().argmax(axis=1) == labels
    return np.median(sizes[~right]) > np.median(sizes[right])


def surplus(found, stage):
    probs, labels = found["stages"].probs[:, stage], found["labels"]
    return probs.max(axis=1).mean() - (probs.argmax(axis=1) == labels).mean()


@compiled
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_runs_draws_and_says_what_is_true(path):
    from matplotlib import pyplot as plt

    plt.close("all")
    found = runpy.run_path(str(path))
    try:
        axes = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes]
        assert axes
        assert all(ax.has_data() for ax in axes if ax.get_label() != "<colorbar>")
    finally:
        plt.close("all")
    assert CLAIMS[path.stem](found)


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_asks_answers_and_uses_public_names(path):
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[1].endswith("?")
    assert "# **Answer.**" in text
    assert not re.search(r"hullcal\.\w|hc\._|from hullcal", text)


@pytest.fixture
def outside(monkeypatch):
    """The files of the page on extending, as modules that are not part of hullcal."""
    monkeypatch.syspath_prepend(str(DOCS / "extending"))
    yield lambda name: runpy.run_path(str(DOCS / "extending" / f"{name}.py"))
    for name in ("own_measure", "own_search"):
        sys.modules.pop(name, None)


def three_members():
    data = hc.simulation.scenario("S3", n_samples=80, n_members=3, n_classes=4, spread=1.0, rng=0)
    return data.probs, data.labels


def in_the_large(probs, labels):
    frequencies = np.bincount(labels, minlength=probs.shape[1]) / len(labels)
    return 0.5 * np.abs(frequencies - probs.mean(axis=0)).sum()


def test_a_measure_from_outside_is_the_function_it_claims_to_be(outside):
    probs, labels = three_members()
    measure = outside("own_measure")["InTheLarge"]()
    assert measure(probs[:, 0], labels) == pytest.approx(in_the_large(probs[:, 0], labels))
    options = {"n_resamples": 19, "rng": 0, "minimizer": "random"}
    own = hc.truth_test(probs, labels, measure=measure, **options)
    plain = hc.truth_test(probs, labels, measure=in_the_large, **options)
    assert own.statistic == pytest.approx(plain.statistic)
    assert own.null_distribution == pytest.approx(plain.null_distribution)


def test_a_measure_from_outside_adds_up_over_blocks_and_can_be_recentred(outside):
    probs, labels = three_members()
    measure = outside("own_measure")["InTheLarge"]()
    assert measure.streams()
    mixed, nothing = np.ascontiguousarray(probs[:, 0].T), np.zeros(0)
    state = np.zeros(4)
    for rows in (slice(0, 30), slice(30, 80)):
        block, truth = np.ascontiguousarray(mixed[:, rows]), labels[rows].astype(np.int32)
        measure.accumulate(block, truth, np.ones(len(truth)), nothing, state, nothing)
    assert measure.finish(state, np.zeros(4), nothing, 80) == pytest.approx(
        in_the_large(probs[:, 0], labels)
    )
    gaps = measure.offset_at(mixed, labels.astype(np.int32), nothing)
    centred = measure.evaluate(mixed, labels.astype(np.int32), nothing, offset=gaps)
    assert centred == pytest.approx(0.0, abs=1e-15)


def test_a_search_from_outside_finds_the_best_pair(outside):
    probs, labels = three_members()
    search = outside("own_search")["BestPair"](n_shares=5)
    found = hc.minimize(probs, labels, minimizer=search, rng=0)
    ece = hc.ConfidenceECE()
    values = [
        ece(share * probs[:, a] + (1 - share) * probs[:, b], labels)
        for a, b in combinations(range(3), 2)
        for share in np.linspace(0, 1, 5)
    ]
    assert found.value == pytest.approx(min(values))
    assert np.count_nonzero(found.weights) <= 2
    assert found.converged
    short = outside("own_search")["BestPair"](n_shares=5, max_evaluations=4)
    assert not hc.minimize(probs, labels, minimizer=short, rng=0).converged


def test_the_script_of_the_page_on_extending_runs(outside, capsys):
    outside("try_them")
    said = capsys.readouterr().out
    assert said.count("in_the_large by best_pair") == 2


def actual_imports():
    pairs = set()
    for path in FILES:
        room = room_of(path)
        if room not in ("__init__", "__main__"):
            others = (name.split(".")[1] for name in imported_names(path) if "hullcal." in name)
            pairs |= {(other, room) for other in others if other != room}
    return pairs


def drawn():
    text = (DOCS / "_static" / "architecture.svg").read_text(encoding="utf-8")
    edges = {tuple(each) for each in re.findall(r'id="edge:(\w+):(\w+)"', text)}
    return edges, {name: int(at) for name, at in re.findall(r'id="room:(\w+):(\d+)"', text)}


def test_the_drawing_shows_the_imports_and_nothing_else():
    edges, floors = drawn()
    actual = actual_imports()
    assert set(floors) == set(ORDER)
    assert edges <= actual
    reached = set(edges)
    while further := {(a, d) for a, b in reached for c, d in edges if b == c} - reached:
        reached |= further
    assert actual <= reached
    for a, b in edges:
        assert floors[a] < floors[b]
        assert ORDER.index(a) < ORDER.index(b)


def test_the_drawing_is_the_one_that_its_script_makes(tmp_path):
    script = runpy.run_path(str(DOCS / "architecture_figure.py"))
    script["write"](tmp_path / "architecture.svg")
    again = (tmp_path / "architecture.svg").read_text(encoding="utf-8")
    kept = (DOCS / "_static" / "architecture.svg").read_text(encoding="utf-8")
    marks = re.compile(r'id="(?:edge|room):[^"]+"')
    assert marks.findall(again) == marks.findall(kept)


@compiled
def test_the_page_on_reports_has_a_section_for_every_part_of_a_report():
    script = runpy.run_path(str(DOCS / "report_figures.py"))
    parts = script["headings"](script["page"](n_resamples=199))
    page = (DOCS / "report_reading.md").read_text(encoding="utf-8")
    sections = iter(re.findall(r"^## (.+)$", page, flags=re.MULTILINE))
    # In the order of the report; the page may say more, and a heading may end in a number of things.
    assert all(any(part.startswith(section) for section in sections) for part in parts)
    pictures = re.findall(r"\]\((_static/report/\w+\.png)\)", page)
    assert len(pictures) == len(list((DOCS / "_static" / "report").iterdir()))
    assert all((DOCS / picture).is_file() for picture in pictures)


def public_names():
    """What a user is offered: the names of the package, and those that each room lists or has made."""
    yield from (f"hullcal.{name}" for name in hc._HOME)
    for name in hc._ROOMS:
        room = getattr(hc, name)
        listed = getattr(room, "__all__", [])
        found = set(listed)
        if not listed or "__dir__" in vars(room):
            found |= {
                each
                for each in dir(room)
                if each[0] != "_"
                and getattr(getattr(room, each), "__module__", "").startswith(room.__name__)
            }
        yield from (f"hullcal.{name}.{each}" for each in sorted(found))


def found_at(dotted):
    value, path = hc, "hullcal"
    for name in dotted.split(".")[1:]:
        path = f"{path}.{name}"
        # Some modules are imported only when they are needed.
        value = getattr(value, name) if hasattr(value, name) else importlib.import_module(path)
    return value


def described():
    pages = sorted((DOCS / "api").glob("*.rst"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return re.findall(r"^\.\. auto\w+:: (hullcal[\w.]+)$", text, flags=re.MULTILINE)


def test_the_reference_describes_every_public_name():
    names = described()
    shown = {id(found_at(name)) for name in names}
    missing = [
        name for name in public_names() if name not in names and id(found_at(name)) not in shown
    ]
    assert missing == []


def test_the_reference_describes_nothing_twice_and_nothing_without_words():
    names = described()
    assert len(names) == len(set(names))
    for name in names:
        value = found_at(name)
        if isinstance(value, type | ModuleType) or callable(value):
            assert inspect.getdoc(value), name


def test_the_tables_that_pages_show_are_those_of_the_studies(tmp_path):
    shutil.copytree(DOCS / "figures", tmp_path / "figures")
    script = runpy.run_path(str(DOCS / "shown_tables.py"))
    script["main"].__globals__["FIGURES"] = tmp_path / "figures"
    shown = sorted((DOCS / "figures").rglob("*_shown.csv"))
    for path in shown:
        (tmp_path / path.relative_to(DOCS)).unlink()
    script["main"]()
    assert len(shown) == len(list(tmp_path.rglob("*_shown.csv")))
    for path in shown:
        assert (tmp_path / path.relative_to(DOCS)).read_bytes() == path.read_bytes(), path.name
