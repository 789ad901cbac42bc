"""The report: what it says, that nothing in it can run or reach out, and how it looks in a browser."""

import dataclasses
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import hullcal as hc
from hullcal.assessment import Assessment
from hullcal.plots._curves import reliability_diagram
from hullcal.plots._text import clipped
from hullcal.pvalues import DOUBT, critical_value
from hullcal.report import of_sets, of_tests
from hullcal.report.classes import class_gaps
from hullcal.report.svg import Panel, ticks
from hullcal.results import CalibrationTestResult
from hullcal.words import printable

NASTY = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=document.title='owned'>",
    "javascript:alert(1)",
    r"$\frac{$",
    "bell\a and tab\t",
    "=1+1",
    '"><svg onload=document.title=1>',
    "W" * 99,
)


@pytest.fixture(scope="module")
def assessment():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=(150, len(NASTY)))
    labels = rng.integers(3, size=150)
    classifiers = hc.ClassifierSet(probs, members=NASTY, classes=NASTY[:3])
    return hc.assessment.assess(
        classifiers, labels, measures=["ece_conf", "skce_ul"], n_resamples=99, rng=0
    )


@pytest.fixture(scope="module")
def page(assessment):
    return hc.report.render(assessment, title=NASTY[0], command=f"hullcal test {NASTY[1]}")


@pytest.fixture(scope="module")
def many_kinds(assessment):
    """Tests by hand of all kinds: in doubt or not, stopped early or not, p-values from .01 to .31."""
    doubt = {"notes": (f"{DOUBT}: and so on",)}
    results = [
        dataclasses.replace(
            assessment.results[0],
            **{"null": null, "measure": measure, "notes": (), "settings": run} | changes,
            statistic=98.5 - count,
            null_distribution=np.arange(99.0),
        )
        for run in [{"minimizer": {}}]
        for null, measure, count, changes in [
            ("recentered", "cells", 0, doubt),
            ("recentered", "bins\a", 7, {}),
            ("recentered", NASTY[0], 1, doubt),
            ("refit", "bins", 30, {"settings": run | {"stop_after": 9}}),
            ("stacked", "bins", 4, {}),
            ("stacked", "cells", 4, {"settings": run | {"stop_after": 9}}),
        ]
    ]
    return Assessment(assessment.data, tuple(results))


def at_level(assessment, alpha):
    """What a run of another level would have found."""
    results = [dataclasses.replace(result, alpha=alpha) for result in assessment.results]
    return Assessment(assessment.data, tuple(results))


@pytest.fixture(scope="module")
def many_classes():
    """Class 5 is never right, and class 2 too often; the others are as they claim."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(25), size=(200, 2))
    labels = (rng.random((200, 1)) > probs.mean(axis=1).cumsum(axis=1)).sum(axis=1).clip(max=24)
    labels[(labels == 5) | (rng.random(200) < 0.3)] = 2
    probs[..., 5] += 0.5
    probs /= probs.sum(axis=2, keepdims=True)
    return hc.assessment.assess(probs, labels, n_resamples=19, rng=0)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip("no Chromium on this machine")
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
    ]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


class Opened:
    """A page in the browser, with all that it complained of and asked for."""

    def __init__(self, browser, path, **context):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture
def opened(browser, page, tmp_path):
    path = tmp_path / "report.html"
    pages = []

    def open_page(text=page, **context):
        path.write_text(text, encoding="utf-8")
        pages.append(Opened(browser, path, **context))
        return pages[-1]

    yield open_page
    for each in pages:
        each.context.close()


# Text


def test_the_verdict_and_every_figure_of_the_tests_are_there(page, assessment):
    for result, adjusted in zip(assessment.results, assessment.adjusted, strict=True):
        assert f"<td>{result.pvalue:.3g}</td>" in page
        assert f"<td>{adjusted:.3g}</td>" in page
        assert f'<td class="critical">{result.critical_value:.4g}</td>' in page
        assert str(result.seed) in page
    assert page.count('class="answer') == 2


def test_names_are_text_and_never_markup(page):
    class Finder(HTMLParser):
        scripts, handlers = 0, []

        def handle_starttag(self, tag, attributes):
            self.scripts += tag == "script"
            self.handlers += [name for name, _ in attributes if name.startswith("on")]
            assert tag not in ("img", "iframe", "object", "embed", "link", "base", "form")

    finder = Finder()
    finder.feed(page)
    assert finder.scripts == 2  # the data and the page's own
    assert finder.handlers == []
    assert "&lt;script&gt;" in page


def test_nothing_is_loaded_from_anywhere(page):
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert 'style="' not in page


def test_a_large_set_makes_a_small_page():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(1000), size=(60, 100))
    labels = rng.integers(1000, size=60)
    found = hc.assessment.assess(
        probs, labels, n_resamples=19, rng=0, minimizer=hc.minimizers.Pairwise(max_evaluations=5)
    )
    with pytest.warns(hc.ApproximationWarning):
        page = hc.report.render(found)
    assert len(page.encode()) < 3_000_000


def test_an_infinite_statistic_is_shown():
    probs = np.array([[[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]]] * 12)
    labels = [0, 1, 2, 1, 2, 1] * 2
    found = hc.assessment.assess(
        probs, labels, measures=[hc.HosmerLemeshow(n_bins=2)], n_resamples=19, rng=0
    )
    assert "<td>∞</td>" in hc.report.render(found)


# Figures


def drawn(page):
    """The figures of a page: what each is said to show, its texts, and the titles of its marks."""
    found = []
    for markup in re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL):
        svg = ElementTree.fromstring(markup)
        texts = [each.text for each in svg.iter("text")]
        found.append((svg.get("aria-label"), texts, [each.text for each in svg.iter("title")]))
    return found


def a_result(**changes):
    values = {
        "statistic": 0.12,
        "minimum": 0.08,
        "weights": np.array([0.2, 0.5, 0.3]),
        "null_distribution": np.linspace(0.0, 0.2, 99),
        "alpha": 0.05,
        "hypothesis": "some combination is calibrated",
        "measure": "ece_conf",
        "null": "refit",
        "minimizer": "pairwise",
        "settings": {},
        "n_evaluations": 1,
        "converged": True,
        "seed": 0,
        "n_samples": 50,
        "n_classes": 3,
    }
    return CalibrationTestResult(**values | changes)


def places(panel):
    """All coordinates of a figure, whether they can be drawn or not."""
    names = "x|y|cx|cy|width|height|points"
    for values in re.findall(rf' (?:{names})="([^"]*)"', panel.markup("")):
        yield from (float(value) for value in re.split("[ ,]", values) if value)


def test_every_test_has_its_null_distribution_with_statistic_and_critical_value(page, assessment):
    shown = drawn(page)
    for result in assessment.results:
        start = f"{result.measure}, {result.null}: "
        (texts, titles) = next(rest for label, *rest in shown if label.startswith(start))
        assert f"statistic {result.statistic:.3g} (p = {result.pvalue:.3g})" in texts
        assert f"critical value {result.critical_value:.3g} (level 0.05)" in texts
        counts = [int(re.search(r": (\d+) resamples?$", title)[1]) for title in titles]
        assert sum(counts) == result.n_resamples


def test_every_promised_figure_is_there(page, assessment):
    labels = [label for label, _, _ in drawn(page)]
    assert len(labels) == len(assessment.results) + 1 + 1 + 3 + 3 + 1
    for start in ("p-values", "Reliability of the predicted", "Weights", "Members,", "Total-var"):
        assert sum(label.startswith(start) for label in labels) == 1
    assert sum(label.startswith("The first row") for label in labels) == 1  # three classes


def test_the_bins_of_a_reliability_diagram_say_what_they_hold(page, assessment):
    titles = next(t for label, _, t in drawn(page) if label.startswith("Reliability of the pred"))
    weights = assessment.weights
    diagram = reliability_diagram(assessment.classifiers, assessment.labels, weights=weights)
    assert len(titles) == 10
    for j, title in enumerate(titles):
        assert title.startswith(f"{j / 10:g} to {(j + 1) / 10:g}. weighted: ")
        for name, curve in (("weighted", diagram.weighted), ("average", diagram.average)):
            said = title.split(f"{name}: ")[1]
            if curve.counts[j] == 0:
                assert said.startswith("no rows")
            else:
                rows = "1 row" if curve.counts[j] == 1 else f"{curve.counts[j]} rows"
                means = f"predicted {curve.predicted[j]:.3f}, observed {curve.observed[j]:.3f}"
                assert said.startswith(f"{rows}, {means}")


def test_bars_say_their_values_and_names_as_typed(page, assessment):
    shown = {label.split(" ")[0]: titles for label, _, titles in drawn(page)}
    weights = {f"{clipped(n, longest=80)}: weight" for n in NASTY}
    assert {title.rpartition(" ")[0] for title in shown["Weights"]} == weights
    values = [float(title.rpartition(" ")[2]) for title in shown["Weights"]]
    np.testing.assert_allclose(values, -np.sort(-assessment.weights), atol=1e-4)
    counts = [
        list(map(int, re.findall(r"(\d+) (?:right|wrong)", t))) for t in shown["Total-variation"]
    ]
    right = assessment.classifiers.mean().argmax(axis=1) == assessment.labels
    assert np.sum(counts, axis=0).tolist() == [right.sum(), (~right).sum()]


@pytest.mark.parametrize("statistic", [0.1, np.inf])
@pytest.mark.parametrize(
    "null",
    [
        [0.0],
        [0.5] * 99,
        [1e-300, 1e-299],
        [-1e300, 1e300],
        [np.inf] * 19,
        [0.0, np.inf],
        [5e-324, 0],
    ],
)
def test_odd_null_distributions_have_a_place_for_everything(null, statistic):
    panel = of_tests.null_distribution(
        a_result(null_distribution=np.array(null), statistic=statistic)
    )
    assert all(-1 <= place <= 361 for place in places(panel))
    infinite = int(np.isinf(null).sum())
    assert (f"; {infinite} infinite, not on axis" in panel.markup("")) == (infinite > 0)
    assert ("statistic infinite" in panel.markup("")) == np.isinf(statistic)


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 2), (10, 2, 2), (40, 300, 3), (30, 3, 50)])
def test_sets_of_any_shape_have_a_place_for_everything(n, m, k):
    rng = np.random.default_rng(0)
    classifiers = hc.ClassifierSet(rng.dirichlet(np.ones(k), size=(n, m)))
    labels, weights = rng.integers(k, size=n).astype(np.int32), np.full(m, 1 / m)
    panels = [
        of_sets.reliability(classifiers, labels, weights),
        of_sets.reliability(classifiers, labels, weights, k - 1),
        of_sets.size_distribution(classifiers, labels),
        of_tests.weights(a_result(weights=weights, members=tuple("W" * 99 for _ in range(m)))),
        of_tests.level_curve([a_result(measure="m" * 99), a_result(alpha=0.2)]),
    ]
    if n > 1:  # a single row is warned of
        panels.append(of_sets.average_against_weighted(classifiers, labels, weights))
    if k == 3:
        panels.append(of_sets.simplex(classifiers, weights))
    for panel in panels:
        assert all(-1 <= place <= 600 for place in places(panel))


@pytest.mark.parametrize("ends", [(0, 1), (-3, 7), (0, 1e-12), (0.0119, 0.0121), (0, 1e300)])
def test_ticks_are_round_few_and_inside(ends):
    values = ticks(*ends)
    assert 2 <= len(values) <= 6
    assert ends[0] <= min(values) <= max(values) <= ends[1]
    assert np.ptp(np.diff(values)) <= 1e-6 * (ends[1] - ends[0])


def test_the_axis_of_values_beyond_any_distance_has_its_ends():
    panel = Panel(100.0, x=(-1.7e308, 1.7e308))
    assert panel.px(0.0) == pytest.approx((panel.px(-1.7e308) + panel.px(1.7e308)) / 2)
    assert ticks(-1.7e308, 1.7e308) == [-1.7e308, 1.7e308]


def test_a_report_waits_for_no_drawing_package():
    code = (
        "import sys, numpy as np, hullcal as hc\n"
        "probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(40, 3))\n"
        "found = hc.assessment.assess(probs, [0, 1, 2, 1] * 10, n_resamples=19, rng=0)\n"
        "assert '<svg' in hc.report.render(found)\n"
        "print('matplotlib' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["False"]


# Classes


def test_gaps_are_the_terms_of_the_classwise_error(many_classes):
    classifiers, labels, weights = (
        many_classes.classifiers,
        many_classes.labels,
        many_classes.weights,
    )
    gaps = class_gaps(classifiers, labels, weights)
    mixed = classifiers.mix(weights)
    assert np.mean([each.gap for each in gaps]) == pytest.approx(hc.ClasswiseECE()(mixed, labels))
    for each in gaps:
        diagram = reliability_diagram(
            classifiers, labels, weights=weights, class_index=each.index, n_resamples=1
        )
        for gap, curve in ((each.gap, diagram.weighted), (each.gap_of_average, diagram.average)):
            off = np.nansum(curve.counts * abs(curve.observed - curve.predicted)) / len(labels)
            assert gap == pytest.approx(off)
        assert each.frequency == np.mean(labels == each.index)
        assert each.weighted == pytest.approx(mixed[:, each.index].mean())
    assert [each.gap for each in gaps] == sorted((each.gap for each in gaps), reverse=True)


def test_the_worst_classes_are_drawn_and_twenty_are_listed(many_classes):
    with pytest.warns(hc.ApproximationWarning):
        page = hc.report.render(many_classes)
    labels = [label for label, _, _ in drawn(page) if label.startswith("Reliability of class")]
    assert [re.search("the (.*?)largest gap of 25 classes", label)[1] for label in labels] == [
        *("", "2nd ", "3rd ", "4th ", "5th "),
    ]
    assert {re.search(r"class (\d+),", label)[1] for label in labels[:2]} == {"2", "5"}
    table = page.split('<table class="classes">')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + 20
    assert [re.search(r"class (\d+),", label)[1] for label in labels] == re.findall(
        r"<tr><td>(\d+)</td>", table
    )[:5]
    assert "The 20 of 25 classes with the largest gap." in page


def test_one_classifier_has_nothing_to_combine_and_no_size():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(17), size=60)
    labels = rng.integers(17, size=60)
    found = hc.assessment.assess(probs, labels, nulls=["recentered"], n_resamples=19, rng=0)
    page = hc.report.render(found)
    shown = re.sub("<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL)
    for words in (
        "ombination",
        "Size of the set",
        "average",
        "weight",
        "member",
        "Hartley",
        "search",
    ):
        assert words not in shown, words
    assert "<th>mean</th><th>gap</th>" in page
    assert f"<dt>accuracy</dt><dd>{(probs.argmax(1) == labels).mean():.4f}</dd>" in page
    (gap, *_) = class_gaps(found.classifiers, found.labels, found.weights)
    row = "".join(f"<td>{v:.4f}</td>" for v in (gap.frequency, gap.weighted, gap.gap))
    assert f"<tr><td>{gap.index}</td>{row}</tr>" in page


def test_few_classes_are_all_drawn_by_name(page):
    labels = [label for label, _, _ in drawn(page) if label.startswith("Reliability of class")]
    assert {label.partition(", with the ")[0] for label in labels} == {
        f"Reliability of class {name}" for name in NASTY[:3]
    }
    assert "classes with the largest gap." not in page


def test_a_long_file_is_drawn_by_some_of_its_rows_and_the_page_says_so():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(2), size=(20_100, 2))
    found = hc.assessment.assess(
        hc.ClassifierSet(probs, classes=["heads", "tails"]),
        rng.integers(2, size=20_100),
        n_resamples=19,
        rng=0,
        minimizer=hc.minimizers.Pairwise(max_evaluations=5),
    )
    page = hc.report.render(found)
    assert "show 20,000 of the rows, evenly spaced" in page
    assert "Reliability of class tails" in page


# In a browser


def shown_tip(view):
    tip = view.page.locator("#tip")
    return tip.inner_text() if tip.is_visible() else None


def figure_of(view, start):
    return view.page.locator(f'figure svg[aria-label^="{start}"]')


@pytest.mark.parametrize("width", [400, 1400])
def test_a_pointer_reads_values_and_leaves(opened, page, width):
    view = opened(viewport={"width": width, "height": 700})
    for start in ("ece_conf, refit", "Reliability of the pred", "Weights", "Total-variation"):
        titles = next(titles for label, _, titles in drawn(page) if label.startswith(start))
        marks = figure_of(view, start).locator(".mark")
        for at in (0, len(titles) - 1):
            marks.nth(at).hover()
            assert shown_tip(view) == titles[at].replace("\xa0", " ")
            assert view.page.locator(".now").count() == 1
            box = view.page.locator("#tip").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 700
    view.page.mouse.move(2, 2)
    assert shown_tip(view) is None
    assert view.page.locator(".now").count() == 0
    assert view.complaints == []


def test_names_in_tips_are_text(opened):
    view = opened(viewport={"width": 900, "height": 700})
    marks = figure_of(view, "Weights").locator(".mark")
    said = set()
    for at in range(len(NASTY)):
        marks.nth(at).hover()
        said.add(shown_tip(view).rpartition(": weight")[0])
    assert said == {clipped(name, longest=80) for name in NASTY}
    assert view.page.locator("#tip *").count() == 0
    assert view.page.title().startswith("<script>document.title")
    assert view.complaints == []


def test_keys_walk_the_values_of_a_figure(opened, page):
    view = opened(viewport={"width": 900, "height": 500})
    labels, _, all_titles = zip(*drawn(page), strict=True)
    at = next(i for i, label in enumerate(labels) if label.startswith("Reliability of the pred"))
    titles, following = all_titles[at : at + 2]
    # By the tab key from the figure before it, since only that shows the focus.
    view.page.locator("figure svg").nth(at - 1).focus()
    view.page.keyboard.press("Tab")
    view.page.wait_for_timeout(100)  # the page scrolls to what has the focus
    assert shown_tip(view) == titles[0]
    for key, i in [("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1), ("End", 9), ("Home", 0)]:
        view.page.keyboard.press(key)
        assert shown_tip(view) == titles[i]
    view.page.keyboard.press("ArrowLeft")
    assert shown_tip(view) == titles[-1]
    assert view.page.locator("#tip").get_attribute("role") == "status"  # read out as it changes
    view.page.keyboard.press("Escape")
    assert shown_tip(view) is None
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("Tab")
    assert shown_tip(view) == following[0]
    view.page.keyboard.press("ArrowRight")
    assert shown_tip(view) == following[1] != titles[1]
    assert view.complaints == []


def test_a_touch_reads_a_value_until_the_next(opened, page):
    view = opened(viewport={"width": 400, "height": 800}, has_touch=True)
    titles = next(titles for label, _, titles in drawn(page) if label.startswith("Weights"))
    figure_of(view, "Weights").locator(".mark").nth(1).tap()
    assert shown_tip(view) == titles[1]
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 400
    view.page.locator("h3").last.tap()
    assert shown_tip(view) is None


def test_without_script_the_browser_has_the_titles(opened, page):
    view = opened(java_script_enabled=False)
    assert view.page.locator("svg title").count() == sum(len(t) for _, _, t in drawn(page)) > 100
    assert opened().page.locator("svg title").count() == 0  # said once, not twice


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_in_figures_and_tips_stand_out(opened, scheme):
    view = opened(color_scheme=scheme)
    figure_of(view, "Weights").locator(".mark").first.hover()

    def colour(selector, name):
        found = view.page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{name}")
        channels = [int(c) / 255 for c in re.findall(r"\d+", found)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    def contrast(a, b):
        return (max(a, b) + 0.05) / (min(a, b) + 0.05)

    paper = colour("body", "backgroundColor")
    for selector in ("svg text", "svg text.faint"):
        assert contrast(colour(selector, "fill"), paper) >= 4.5
    assert contrast(colour("#tip", "color"), colour("#tip", "backgroundColor")) >= 4.5
    for selector, name in [
        ("svg .area.null", "fill"),
        ("svg .line.statistic", "stroke"),
        ("svg .line.average", "stroke"),
        ("svg .area.weight", "fill"),
        ("svg .axis", "stroke"),
    ]:
        assert contrast(colour(selector, name), paper) >= 2


def outside(view):
    """Texts that reach over the edge of their figure."""
    return view.page.evaluate(
        """() => [...document.querySelectorAll("svg text")].filter((text) => {
          const own = text.getBoundingClientRect();
          const all = text.ownerSVGElement.getBoundingClientRect();
          return own.left < all.left - 1 || own.right > all.right + 1
            || own.top < all.top - 1 || own.bottom > all.bottom + 1;
        }).map((text) => text.textContent)"""
    )


def test_no_words_leave_their_figure(opened):
    assert outside(opened(viewport={"width": 1400, "height": 900})) == []


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_complaint_and_fits(opened, width, scheme):
    view = opened(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    assert view.complaints == []
    assert [url for url in view.requests if not url.startswith("file:")] == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = (
        view.page.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper)]
    assert (light[0] < light[1]) == (scheme == "light")
    assert view.page.locator("figure svg").count() >= 8
    for box in view.page.locator("figure svg").all():
        assert box.bounding_box()["height"] > 50


def test_injected_names_do_not_run(opened):
    view = opened()
    assert view.page.title().startswith("<script>document.title")
    assert view.page.locator("img").count() == 0
    assert view.complaints == []


def test_the_slider_decides_again(opened, assessment):
    view = opened()

    def decisions():
        return view.page.locator("td.decision").all_inner_texts()

    for alpha in (0.001, 0.02, 0.25, 0.5):
        view.page.locator("#alpha").fill(str(alpha))
        expected = ["rejected" if p <= alpha else "not rejected" for p in assessment.adjusted]
        assert decisions() == expected
        critical = view.page.locator("td.critical").all_inner_texts()
        for shown, result in zip(critical, assessment.results, strict=True):
            value = critical_value(result.null_distribution, alpha)
            assert (
                shown == "∞" if np.isinf(value) else float(shown) == pytest.approx(value, rel=1e-3)
            )
        said = view.page.locator(".verdict p").all_inner_texts()
        for sentence, null in zip(said, assessment.nulls, strict=True):
            smallest = min(
                p
                for p, result in zip(assessment.adjusted, assessment.results, strict=True)
                if result.null == null
            )
            assert sentence.startswith("No:" if smallest <= alpha else "Perhaps:")


def test_the_slider_says_what_a_run_of_that_level_would_have_said(opened, many_kinds):
    view = opened(hc.report.render(many_kinds))
    begun = set()
    for alpha in (0.05, 0.001, 0.02, 0.03, 0.04, 0.08, 0.1, 0.3, 0.31, 0.4, 0.5, 0.05):
        view.page.locator("#alpha").fill(str(alpha))
        expected = at_level(many_kinds, alpha)
        said = view.page.locator(".verdict p").all_text_contents()
        assert said == [printable(sentence) for sentence in expected.sentences()]
        begun |= {sentence.partition(":")[0] for sentence in said}
        begun |= {sentence.partition("It is ")[2] for sentence in said}
        looks = [p.get_attribute("class") for p in view.page.locator(".verdict p").all()]
        assert looks == [f"answer {sentence.partition(':')[0].lower()}" for sentence in said]
        shown = view.page.locator("td.critical").all_text_contents()
        for cell, result in zip(shown, expected.results, strict=True):
            assert cell == (
                "∞" if np.isinf(result.critical_value) else f"{result.critical_value:.4g}"
            )
    close = "too close to call; raise the resamples"
    also = f"{close} and what they stop after."
    assert begun == {"No", "Unclear", "Perhaps", "", f"{close}.", also}
    assert view.complaints == []


def test_the_table_sorts_by_its_headings(opened):
    view = opened()
    view.page.locator(".tests th:nth-child(5) button").click()
    shown = [float(text) for text in view.page.locator(".tests td:nth-child(5)").all_inner_texts()]
    assert shown == sorted(shown)
    view.page.locator(".tests th:nth-child(5) button").click()
    shown = [float(text) for text in view.page.locator(".tests td:nth-child(5)").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)


def test_it_prints_to_paper(opened):
    view = opened()
    assert view.page.pdf(format="A4", print_background=True)[:4] == b"%PDF"
