"""The report: what it says, that nothing in it can run or reach out, and how it looks in a browser."""

import html
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

import hullcal as hc
from hullcal.report.figures import class_gaps
from hullcal.verdicts import QUESTIONS
from hullcal.words import COLOURS, measure_in_words, printable

WORDS = [word.lower().replace(" ", "-") for word in COLOURS]

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
    """Members that know something of the labels, and their average claims less than it knows."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), size=(n, m))
    best = probs.mean(axis=1).argmax(axis=1)
    labels = np.where(rng.random(n) < 0.8, best, rng.integers(k, size=n))
    return hc.ClassifierSet(probs, **names), labels


def quick(classifiers, labels, **options):
    """An assessment without much of a search, where only its page matters."""
    search = hc.minimizers.Pairwise(max_evaluations=5)
    options = {"n_resamples": 146, "rng": 0, "minimizer": search} | options
    return hc.assess(classifiers, labels, **options)


@pytest.fixture(scope="module")
def assessment():
    classifiers, labels = set_with(150, len(NASTY), 3, members=NASTY, classes=NASTY[:3])
    labels = np.array(NASTY[:3])[labels]
    measures = ["ece_conf", "skce_ul"]
    return hc.assess(classifiers, labels, measures=measures, n_resamples=146, rng=0)


@pytest.fixture(scope="module")
def page(assessment):
    return hc.report.render(assessment, title=NASTY[0], command=f"hullcal test {NASTY[1]}")


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


@pytest.fixture(scope="module")
def stands():
    """Labels follow the average of the members."""
    probs = np.random.default_rng(2).dirichlet(np.ones(3), size=(100, 3))
    levels = np.random.default_rng(3).random((100, 1))
    return quick(probs, (levels > probs.mean(axis=1).cumsum(axis=1)).sum(axis=1).clip(max=2))


@pytest.fixture(scope="module")
def page_of_two(assessment, stands):
    return hc.report.render({"first": assessment, "\ud800": stands})


def drawn(page):
    """The figures of a page by their text alternatives: the words of each."""
    found = {}
    for markup in re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL):
        svg = ElementTree.fromstring(markup)
        found[svg.get("aria-label")] = [each.text for each in svg.iter("text")]
    return found


def class_captions(page):
    return [label for label in drawn(page) if label.startswith("Reliability of class")]


def words_of(page):
    """What a reader sees."""
    text = re.sub("<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


def with_pvalue(answer, count):
    """The same answer where `count` of the null values reach the statistic of each test."""
    results = tuple(
        replace(each, statistic=0.5, null_distribution=(np.arange(99) < count).astype(float))
        for each in answer.results
    )
    return replace(answer, results=results)


# Text


def test_the_first_table_has_a_word_and_a_pvalue_for_every_set_and_question(
    page_of_two, assessment, stands
):
    table = page_of_two.split('<table class="answers">')[1].split("</table>")[0]
    cells = re.findall(r'<strong class="([a-z-]+)">([^<]+)</strong> <span>p = ([^<]+)<', table)
    answers = [*assessment.answers.values(), *stands.answers.values()]
    assert [cell[1:] for cell in cells] == [(a.headline, f"{a.pvalue:.3g}") for a in answers]
    assert all(colour == word.lower().replace(" ", "-") for colour, word, _ in cells)
    assert {"Rejected", "Not rejected"} <= {word for _, word, _ in cells}
    assert all(question in table for question in QUESTIONS.values())


def test_each_set_has_its_verdicts_its_effect_and_the_next_steps(page, assessment):
    text = words_of(page)
    assert "Size of the effect" in page
    for answer in assessment.answers.values():
        assert " ".join(answer.text.split()) in text
    for step in assessment.advice:
        assert " ".join(step.split()) in text
    for each in (assessment.effect.average, assessment.effect.combination):
        assert each.points in text
        assert (f"{each.temperature:.2f}, {each.direction}" in text) == bool(each.direction)
        assert f"{each.accuracy:.1%}" in text


def test_every_test_is_listed_with_its_numbers(page, assessment):
    table = page.split('<table class="tests">')[1].split("</table>")[0]
    for answer in assessment.answers.values():
        for result, p in zip(answer.results, answer.adjusted, strict=True):
            reached = int((result.null_distribution >= result.statistic).sum())
            cells = [
                *(f"{p:.3g}", f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
                f"{reached} of {result.n_resamples}",
            ]
            assert "".join(f"<td>{cell}</td>" for cell in cells) in table
    assert table.count("<tr>") == 1 + len(assessment.results)
    assert str(assessment.results[0].seed) in page


def test_no_pvalue_for_calibrated_is_below_that_for_the_truth(assessment):
    truth = with_pvalue(assessment.truth, 29)
    calibrated = replace(with_pvalue(assessment.calibrated, 0), implied_by=(truth,))
    answers = assessment.answers | {"calibrated": calibrated, "truth": truth}
    page = hc.report.render(replace(assessment, answers=answers))
    assert {result.pvalue for result in calibrated.results} == {0.01}
    section = page.split("<section")[1]
    average = {f"{p:.3g}" for p in assessment.average.adjusted}
    own = {f"{result.pvalue:.3g}" for result in assessment.average.results}
    shown = set(re.findall(r"(?<!alpha )\bp = ([\d.]+\d)", words_of(section))) - average - own
    assert shown == {"0.3"}
    assert "Does the hull contain the truth?” by likelihood" in section.split("All tests")[0]


def test_labels_that_no_member_thinks_possible_are_named():
    probs = np.array([[[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]]] * 12)
    found = quick(probs, [0, 1, 2, 1, 2, 1] * 2, measures=[hc.HosmerLemeshow(n_bins=2)])
    page = hc.report.render(found)
    assert '<strong class="impossible">Impossible</strong>' in page
    assert "Check the labels of rows 0, 6" in page
    assert "<td>∞</td>" in page


@pytest.mark.parametrize(
    ("questions", "shown", "hidden"),
    [
        ("average", "Reliability of the plain average", "ombination"),
        ("calibrated", "Weights of the best calibrated combination", "fits the labels best"),
        (["average", "truth"], "combination that fits the labels best", "best calibrated"),
    ],
)
def test_a_question_that_was_not_asked_is_not_answered(stands, questions, shown, hidden):
    found = quick(stands.classifiers, stands.labels, questions=questions)
    text = words_of(hc.report.render(found)).partition("Impossible some labels")
    assert shown in text[2]
    assert hidden not in text[2].partition("How to repeat")[0]
    for name, question in QUESTIONS.items():
        assert (question in text[0]) == (name in found.answers)


def test_data_that_only_workers_have_seen_are_refused(assessment):
    seen = SimpleNamespace(classifiers=None, labels=None, n_members=2)
    with pytest.raises(hc.InvalidInputError, match="`engine` must be local"):
        hc.report.render(replace(assessment, data=seen))


@pytest.mark.parametrize("left", [0.5, 1.5])
def test_a_temperature_that_does_not_lessen_the_error_is_not_shown(stands, left):
    one = stands.effect.average._replace(error=0.04, temperature=1.11, recalibrated=0.04 * left)
    effect = stands.effect._replace(average=one, combination=None)
    page = hc.report.render(replace(stands, effect=effect))
    table = page.split('<table class="effect">')[1].split("</table>")[0]
    shown = ["<td>1.11, overconfident</td>", "<td>2.0 points</td>"]
    assert [each in table for each in shown] == [left < 1] * 2
    assert table.count("<td>–</td>") == 2 * (left > 1)


def test_a_page_without_effects_leaves_their_table_out(stands):
    page = hc.report.render(replace(stands, effect=None))
    assert "Size of the effect" not in page


def test_names_are_text_and_never_markup(page):
    class Finder(HTMLParser):
        def handle_starttag(self, tag, attributes):
            active = ("script", "img", "iframe", "object", "embed", "link", "base", "form")
            assert tag not in active
            assert not [name for name, _ in attributes if name.startswith("on")]

    Finder().feed(page)
    assert "&lt;script&gt;" in page


def test_nothing_is_loaded_from_anywhere(page):
    assert "default-src 'none'; style-src 'sha256-" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert 'style="' not in page


def test_the_same_assessment_gives_the_same_page_whatever_the_users_style(assessment, page):
    with mpl.rc_context({"lines.linewidth": 9, "text.usetex": True, "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        again = hc.report.render(assessment, title=NASTY[0], command=f"hullcal test {NASTY[1]}")
        assert dict(mpl.rcParams) == before
    assert again == page


def test_a_large_set_makes_a_small_page():
    found = quick(*set_with(40, 40, 200), questions="calibrated")
    with pytest.warns(hc.ApproximationWarning):
        page = hc.report.render(found)
    assert len(page.encode()) < 500_000


def test_three_sets_of_ten_members_make_a_page_below_400_kb():
    one = hc.report.render(quick(*set_with(300, 10, 10), questions=["calibrated", "truth"]))
    assert len(one.encode()) < 400_000 / 3


def test_what_all_marks_of_a_curve_share_is_written_once(page):
    curves = [
        curve for curve in re.findall(r"<g[^>]*>(?:<use [^>]*>)+</g>", page) if "href" in curve
    ]
    several = [curve for curve in curves if curve.count("<use") > 1]
    assert len(several) > 10
    for curve in several:
        group, *marks = re.findall("<[gu][^>]*>", curve)
        assert 'stroke="' in group
        assert not [mark for mark in marks if 'stroke="' in mark]


def test_several_sets_have_a_part_each_a_list_of_contents_and_no_identifier_twice(
    page, page_of_two
):
    assert "<nav" not in page
    page = page_of_two
    assert re.findall(r"<h2>(.+)</h2>", page) == ["first", "\ufffd"]
    contents = page.split("<nav")[1].split("</nav>")[0]
    assert re.findall(r">([^<>]+)</a>", contents)[:2] == ["first", "\ufffd"]
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers)) > 20
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(identifiers)


def test_a_classifier_beside_a_set_leaves_the_question_on_combinations_open(stands):
    alone = quick(*set_with(60, 1, 3))
    page = hc.report.render({"alone": alone, "set": stands})
    first = page.split("<tbody>")[1].split("</tr>")[0]
    assert first.count("<strong") == 2
    assert ">–</td>" in first
    assert QUESTIONS["average"] in page.split("</thead>")[0]


def test_colours_are_those_of_the_words_everywhere(page):
    style = page.split("<style>")[1].split("</style>")[0]
    for word, colour in COLOURS.items():
        name = re.search(rf"\.{word.lower().replace(' ', '-')}\b.*color: var\((--\w+)\)", style)[1]
        assert f"{name}: {colour};" in style.split("@media")[0]


# Figures and classes


def test_the_sentences_beside_the_tables_are_plain(page):
    text = words_of(page)
    for sentence in (
        "Binned errors come out too large; the interval corrects for that, so it may lie mostly "
        "below the printed error.",
        "p is adjusted by Holm’s method over the measures of a question. For “calibrated” it is at "
        "least that for “average” and “truth”, which imply it. The statistic there is the mean over ",
        "A small set is good only if the answers above are not rejected.",
    ):
        assert sentence in text


def test_every_promised_figure_is_there(page, assessment):
    labels = list(drawn(page))
    for start in (
        *("Reliability of the plain average", "Reliability of the best", "Weights of the best"),
        *("Members,", "Total-var", "The first row"),  # three classes
    ):
        assert sum(label.startswith(start) for label in labels) == 1
    for question, answer in assessment.answers.items():
        for result in answer.results:
            start = f"“{assessment.asked(question)}” by {measure_in_words(result)}: "
            (texts,) = [texts for label, texts in drawn(page).items() if label.startswith(start)]
            assert f"statistic {result.statistic:.3g} (p = {result.pvalue:.3g})" in texts
    assert len(labels) == 6 + len(assessment.results) + len(class_captions(page))
    assert "classes with the largest gap." not in page


def test_what_carries_the_argument_is_not_folded_away(page, assessment):
    shown = list(drawn(page.split("<h3>Figures</h3>")[1].split("<details>")[0]))
    assert [label.partition(" ")[0] for label in shown] == [
        *("Reliability", "Reliability", "“Is", "Weights"),
    ]
    decides = assessment.calibrated.result
    assert shown[2].startswith(f"“Is some combination calibrated?” by {decides.measure}: ")


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
    assert [rank for _, rank in found] == ["", "2nd "]
    table = page.split('<table class="classes names">')[1].split("</table>")[0]
    listed = re.findall(r"<tr><td>(\d+)</td>", table)
    assert len(listed) == 20
    assert listed[:2] == [index for index, _ in found]
    assert "The 20 of 25 classes with the largest gap." in page


def test_one_classifier_has_nothing_to_combine_and_no_size():
    found = quick(*set_with(60, 1, 17), n_resamples=99)
    page = hc.report.render(found)
    shown = words_of(page.split("<section")[1])
    for words in ("ombination", "Size of the set", "average", "weight", "Hartley", "search"):
        assert words not in shown.partition("How to repeat")[0], words
    assert "Is the classifier calibrated?" in shown
    assert "<th>mean</th><th>gap</th>" in page
    assert f"{found.effect.average.accuracy:.1%}" in shown
    (gap, *_) = class_gaps(found.classifiers, found.labels, None)
    row = "".join(f"<td>{v:.4f}</td>" for v in (gap.frequency, gap.mean, gap.gap))
    assert f"<tr><td>{gap.k}</td>{row}</tr>" in page


# In a browser


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
    contexts = []

    def open_page(text=page, **context):
        """A page in the browser, with all that it complained of and asked for."""
        path.write_text(text, encoding="utf-8")
        contexts.append(browser.new_context(**context))
        view = SimpleNamespace(page=contexts[-1].new_page(), complaints=[], requests=[])
        view.page.on("console", lambda message: view.complaints.append(message.text))
        view.page.on("pageerror", lambda error: view.complaints.append(str(error)))
        view.page.on("request", lambda request: view.requests.append(request.url))
        view.page.goto(path.as_uri())
        return view

    yield open_page
    for each in contexts:
        each.close()


def unfold(view):
    view.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
def test_the_page_opens_without_complaint_and_fits(opened, width, scheme):
    view = opened(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    assert view.complaints == []
    assert [url for url in view.requests if not url.startswith("file:")] == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    assert sum(each.is_visible() for each in view.page.locator("figure svg").all()) == 4
    assert not view.page.locator("table.tests").is_visible()
    unfold(view)
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    assert view.page.locator("figure svg").count() >= 12
    for box in view.page.locator("figure svg").all():
        assert box.bounding_box()["height"] > 50


def test_a_table_that_goes_on_scrolls_in_its_own_box_with_a_shade_at_the_edge(opened):
    view = opened(viewport={"width": 400, "height": 900})
    unfold(view)
    for name in ("tests", "classes"):
        box = view.page.locator(f".wide:has(table.{name})").first
        assert box.evaluate("e => e.scrollWidth > e.clientWidth")
        style = box.evaluate("e => getComputedStyle(e).backgroundAttachment")
        assert style == "local, local, scroll, scroll"
        assert "linear-gradient(to left" in box.evaluate("e => getComputedStyle(e).backgroundImage")


def test_no_figure_leaves_room_below_its_neighbour(opened):
    view = opened(viewport={"width": 1400, "height": 900})
    figures = view.page.locator(".argument figure").all()
    first, second, third, fourth = (each.bounding_box() for each in figures)
    for left, right in ((first, second), (third, fourth)):
        assert left["y"] == right["y"]
        assert left["x"] < right["x"]
    below = third["y"] - max(each["y"] + each["height"] for each in (first, second))
    assert 0 < below < 40


def test_paper_has_everything_that_is_folded_away_on_the_screen(opened):
    view = opened(viewport={"width": 680, "height": 900}, color_scheme="dark")
    view.page.emulate_media(media="print", color_scheme="dark")
    for selector in ("table.tests", "table.classes", "figure svg", "dl", "cite"):
        for each in view.page.locator(selector).all():
            assert each.is_visible()
            assert each.bounding_box()["height"] > 10
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 680
    assert brightness(view, "body", "backgroundColor") == 1.0
    assert brightness(view, "svg text", "fill") < 0.02


def test_injected_names_do_not_run_and_are_shown_as_typed(opened):
    view = opened()
    unfold(view)
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
def test_verdicts_and_figures_stand_out(opened, page, scheme):
    every = "".join(f'<p class="{word}">{word}</p>' for word in WORDS)
    view = opened(page.replace("</main>", f"{every}</main>"), color_scheme=scheme)
    paper = brightness(view, "body", "backgroundColor")
    assert (paper > 0.5) == (scheme == "light")

    def contrast(selector, name):
        dark, light = sorted([paper, brightness(view, selector, name)])
        return (light + 0.05) / (dark + 0.05)

    assert contrast("svg text", "fill") >= 4.5
    for selector in ("figcaption", "summary", *(f".{word}" for word in WORDS)):
        assert contrast(selector, "color") >= 4.5, selector
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


@pytest.mark.parametrize("other", [np.zeros((2, 3)), [1], None, {}, {"a": 1}])
def test_what_is_no_assessment_is_refused(other):
    with pytest.raises(hc.InvalidInputError, match=r"must be what `hullcal\.assess` gave; got"):
        hc.report.render(other)
