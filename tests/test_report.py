"""The report: what it says, that nothing in it can run or reach out, and how it looks in a browser."""

import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

import hullcal as hc
from hullcal.pvalues import critical_value

NASTY = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=document.title='owned'>",
    "javascript:alert(1)",
    r"$\frac{$",
    "bell\a and tab\t",
    "=1+1",
    '"><svg onload=document.title=1>',
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
    path.write_text(page, encoding="utf-8")
    pages = []

    def open_page(**context):
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


# In a browser


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
