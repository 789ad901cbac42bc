"""The examples of the documentation's pages, run as they are printed."""

import ast
import doctest
import re
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Long messages are broken into lines on a page, and long outputs cut.
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# Uncompiled, as coverage wants it, a page would take an hour.
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too slow uncompiled")


def pages():
    found = (path for kind in ("*.md", "*.rst") for path in DOCS.glob(kind))
    return sorted(p.name for p in found if ">>> " in p.read_text(encoding="utf-8"))


def run(page, text):
    test = doctest.DocTestParser().get_doctest(text, {}, page, str(DOCS / page), 0)
    assert test.examples, f"{page} has no examples left"
    written = []
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=written.append)
    assert outcome.failed == 0, "".join(written)


@compiled
@pytest.mark.parametrize("page", pages())
def test_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, (DOCS / page).read_text(encoding="utf-8"))


def test_a_wrong_output_on_a_page_is_noticed():
    with pytest.raises(AssertionError, match="Expected"):
        run("made up", ">>> 1 + 1\n3\n")


def test_every_link_to_a_page_leads_somewhere():
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+\.(?:md|rst|svg|csv))(?:#[^)]*)?\)", text):
            # The pages of the gallery are made with the documentation.
            target = re.sub(r"examples/(plot_\w+)\.rst", r"gallery/\1.py", target)
            target = target.replace("examples/index.rst", "gallery/GALLERY_HEADER.rst")
            assert (DOCS / target).exists(), f"{page.name} links to {target}"


def test_every_link_to_a_heading_finds_it():
    for page in DOCS.glob("*.md"):
        name, text = page.name, page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text):
            headings = anchors((DOCS / (target or name)).read_text(encoding="utf-8"))
            assert anchor in headings, f"{name} links to {target}#{anchor}"


def anchors(text):
    """Headings as links name them: lower case, words joined by dashes, no marks."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def code_of(path):
    """The lines of code blocks, with their numbers; of a script all that become no paragraphs."""
    text, inside = path.read_text(encoding="utf-8"), path.suffix == ".py"
    lines = list(enumerate(text.splitlines(), 1))
    for number, line in lines[ast.parse(text).body[0].end_lineno if inside else 0 :]:
        if line.startswith("```"):
            inside = not inside
        elif path.suffix == ".rst":
            inside = line.startswith("   >>>")
        if inside and not line.startswith("#"):
            yield number, line


KINDS = ("*.md", "*.rst", "gallery/*.py", "extending/*.py")
SHOWN = [ROOT / "README.md", *(path for kind in KINDS for path in sorted(DOCS.glob(kind)))]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_no_line_of_code_is_clipped_on_a_screen(path):
    assert [(n, line) for n, line in code_of(path) if len(line) > 88] == []


#: What the data, a p-value or a person said, and other riddles: never in a message, docstring or page.
RIDDLES = [
    r"data (do not |seem to )?speak",
    r"\bspeaks? (for|against)",
    r"\bnothing (by \w+ )?speaks",
    r"too close to call",
    r"strictly speaking",
    r"not rejecting is no proof",
    r"mind the spelling",
    r"look better here than elsewhere",
    r"go on with the run",
    r"who evaluates",
    r"left to the resamples",
    r"^\s*(perhaps|unclear):",
    r"\b(is|are) (heard|had)\b",
]


def written():
    yield from (path for path in (ROOT / "src").rglob("*.*") if path.suffix in (".py", ".html"))
    yield from (path for kind in ("*.md", "*.rst", "*.py") for path in DOCS.rglob(kind))
    yield from ROOT.glob("*.md")


@pytest.mark.parametrize("riddle", RIDDLES)
def test_pages_and_messages_speak_standard_statistical_english(riddle):
    sought = re.compile(riddle, re.IGNORECASE | re.MULTILINE)
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in written()
        if "examples" not in path.parts and "_build" not in path.parts
        for match in sought.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == {}
