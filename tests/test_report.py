"""The report: what it says, that nothing in it can run or reach out, and how it looks in a browser."""

import dataclasses
import re
import shutil
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

import hullcal as hc
from hullcal.assessment import Assessment
from hullcal.notes import Note
from hullcal.report.figures import class_gaps
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


def set_with(n, m, k, **names):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), size=(n, m))
    return hc.ClassifierSet(probs, **names), rng.integers(k, size=n)


def quick(classifiers, labels, **options):
    """An assessment without much of a search, where only its page matters."""
    search = hc.minimizers.Pairwise(max_evaluations=5)
    options = {"n_resamples": 19, "rng": 0, "minimizer": search} | options
    return hc.assessment.assess(classifiers, labels, **options)


@pytest.fixture(scope="module")
def assessment():
    classifiers, labels = set_with(150, len(NASTY), 3, members=NASTY, classes=NASTY[:3])
    labels = np.array(NASTY[:3])[labels]
    measures = ["ece_conf", "skce_ul"]
    return hc.assessment.assess(classifiers, labels, measures=measures, n_resamples=99, rng=0)


@pytest.fixture(scope="module")
def page(assessment):
    return hc.report.render(assessment, title=NASTY[0], command=f"hullcal test {NASTY[1]}")


@pytest.fixture(scope="module")
def many_kinds(assessment):
    """Tests by hand of all kinds: in doubt or not, stopped early or not, p-values from .01 to .31."""
    doubt = {"notes": (Note("too_few_rows", {"share": 0.5}),)}
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
    return quick(probs, labels)


def drawn(page):
    """The figures of a page by their text alternatives: the words of each."""
    found = {}
    for markup in re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL):
        svg = ElementTree.fromstring(markup)
        found[svg.get("aria-label")] = [each.text for each in svg.iter("text")]
    return found


def class_captions(page):
    return [label for label in drawn(page) if label.startswith("Reliability of class")]


# Text


def test_the_verdict_and_every_number_of_the_tests_are_there(page, assessment):
    for result, adjusted in zip(assessment.results, assessment.adjusted, strict=True):
        low, high = result.pvalue_interval
        cells = [
            *(f"{adjusted:.3g}", f"{result.pvalue:.3g}", f"{low:.3g} to {high:.3g}"),
            *(f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
        ]
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page
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
    assert not re.search(r'(src|href)="(?!#)', page)
    assert 'style="' not in page


def test_the_same_assessment_gives_the_same_page_whatever_the_users_style(assessment, page):
    with mpl.rc_context({"lines.linewidth": 9, "text.usetex": True, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        again = hc.report.render(assessment, title=NASTY[0], command=f"hullcal test {NASTY[1]}")
        assert dict(mpl.rcParams) == before
    assert again == page


def test_a_large_set_makes_a_small_page():
    found = quick(*set_with(60, 100, 1000))
    with pytest.warns(hc.ApproximationWarning):
        page = hc.report.render(found)
    assert len(page.encode()) < 3_000_000


def test_an_infinite_statistic_is_shown():
    probs = np.array([[[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]]] * 12)
    found = quick(probs, [0, 1, 2, 1, 2, 1] * 2, measures=[hc.HosmerLemeshow(n_bins=2)])
    assert "<td>∞</td>" in hc.report.render(found)


def test_several_sets_have_a_part_each_and_no_identifier_twice(assessment):
    page = hc.report.render({"first": assessment, "\ud800": assessment})
    assert re.findall(r'<h1 class="part">(.+)</h1>', page) == ["first", "\ufffd"]
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers)) > 20
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(identifiers)


# Figures and classes


def test_every_promised_figure_is_there(page, assessment):
    labels = list(drawn(page))
    assert len(labels) == len(assessment.results) + 1 + 1 + 3 + 3 + 1
    for start in (
        *("p-values", "Reliability of the predicted", "Weights", "Members,", "Total-var"),
        "The first row",  # three classes
    ):
        assert sum(label.startswith(start) for label in labels) == 1
    for result in assessment.results:
        start = f"{result.measure}, {result.null}: "
        (texts,) = [texts for label, texts in drawn(page).items() if label.startswith(start)]
        assert f"statistic {result.statistic:.3g} (p = {result.pvalue:.3g})" in texts
    captions = {label.partition(", with the ")[0] for label in class_captions(page)}
    assert captions == {f"Reliability of class {name}" for name in NASTY[:3]}
    assert "classes with the largest gap." not in page


def test_gaps_are_the_terms_of_the_classwise_error(many_classes):
    classifiers, labels = many_classes.classifiers, many_classes.labels
    gaps = class_gaps(classifiers, labels, many_classes.weights)
    mixed = classifiers.mix(many_classes.weights)
    for values, probs in (
        ([each.gap for each in gaps], mixed),
        ([each.gap_of_average for each in gaps], classifiers.mean()),
    ):
        assert np.mean(values) == pytest.approx(hc.ClasswiseECE()(probs, labels))
    for each in gaps:
        assert each.frequency == np.mean(labels == each.k)
        assert each.mean == pytest.approx(mixed[:, each.k].mean())
    assert [each.gap for each in gaps] == sorted((each.gap for each in gaps), reverse=True)
    assert {each.k for each in gaps[:2]} == {2, 5}


def test_the_worst_classes_are_drawn_and_twenty_are_listed(many_classes):
    with pytest.warns(hc.ApproximationWarning):
        page = hc.report.render(many_classes)
    found = [
        re.search(r"class (\d+), with the (.*)largest gap of 25", label).groups()
        for label in class_captions(page)
    ]
    assert [rank for _, rank in found] == ["", "2nd ", "3rd ", "4th ", "5th "]
    table = page.split('<table class="classes">')[1].split("</table>")[0]
    listed = re.findall(r"<tr><td>(\d+)</td>", table)
    assert len(listed) == 20
    assert listed[:5] == [index for index, _ in found]
    assert "The 20 of 25 classes with the largest gap." in page


def test_one_classifier_has_nothing_to_combine_and_no_size():
    classifiers, labels = set_with(60, 1, 17)
    found = quick(classifiers, labels, nulls=["recentered"])
    page = hc.report.render(found)
    shown = re.sub("<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL)
    for words in ("ombination", "Size of", "average", "weight", "member", "Hartley", "search"):
        assert words not in shown, words
    assert "<th>mean</th><th>gap</th>" in page
    right = classifiers.probs[:, 0].argmax(1) == labels
    assert f"<dt>accuracy</dt><dd>{right.mean():.4f}</dd>" in page
    (gap, *_) = class_gaps(found.classifiers, found.labels, found.weights)
    row = "".join(f"<td>{v:.4f}</td>" for v in (gap.frequency, gap.mean, gap.gap))
    assert f"<tr><td>{gap.k}</td>{row}</tr>" in page


# In a browser


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


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
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


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_complaint_and_fits(opened, width, scheme):
    view = opened(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    assert view.complaints == []
    assert [url for url in view.requests if not url.startswith("file:")] == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    assert view.page.locator("figure svg").count() >= 8
    for box in view.page.locator("figure svg").all():
        assert box.bounding_box()["height"] > 50


def test_injected_names_do_not_run_and_are_shown_as_typed(opened):
    view = opened()
    assert view.page.title().startswith("<script>document.title")
    assert view.page.locator("img").count() == 0
    texts = view.page.locator("svg text").all_text_contents()
    shown = {printable(name) for name in NASTY if len(name) <= 24}
    assert len(shown) == 4
    assert shown <= set(texts)
    assert view.complaints == []


def brightness(view, selector, name):
    """Relative luminance of a colour that the browser computed."""
    found = view.page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{name}")
    channels = np.array([int(c) / 255 for c in re.findall(r"\d+", found)[:3]])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_marks_of_figures_stand_out(opened, scheme):
    view = opened(color_scheme=scheme)
    paper = brightness(view, "body", "backgroundColor")
    assert (paper > 0.5) == (scheme == "light")

    def contrast(selector, name):
        dark, light = sorted([paper, brightness(view, selector, name)])
        return (light + 0.05) / (dark + 0.05)

    assert contrast("svg text", "fill") >= 4.5
    assert contrast("figcaption", "color") >= 4.5
    for colour in ("#000000", "#0072b2", "#d55e00", "#8c8c8c"):  # axes, average, weighted, members
        assert contrast(f'figure svg [stroke="{colour}"]', "stroke") >= 3
    assert contrast('figure svg [fill="#56b4e9"]', "fill") >= 2


def test_every_colour_of_a_drawing_follows_the_page(opened):
    """A colour that the style sheet does not know would stay that of print on a dark page."""
    view = opened()
    used = view.page.evaluate(
        """() => [...document.querySelectorAll("figure svg *")].flatMap((e) =>
          ["fill", "stroke"].map((name) => `[${name}="${e.getAttribute(name)}"]`))"""
    )
    style = view.page.locator("style").text_content()
    colours = {each for each in used if '"#' in each}
    assert len(colours) >= 8
    assert [each for each in colours if each not in style] == []


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
        decisions = view.page.locator("td.decision").all_inner_texts()
        assert decisions == [
            "rejected" if p <= alpha else "not rejected" for p in expected.adjusted
        ]
    close = "too close to call; raise the resamples"
    also = f"{close} and what they stop after."
    assert begun == {"No", "Unclear", "Perhaps", "", f"{close}.", also}
    assert view.complaints == []
