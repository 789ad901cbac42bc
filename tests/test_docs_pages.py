"""The examples of the documentation's pages, run as they are printed."""

import doctest
import re
from pathlib import Path

import numba
import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Run by test_ensembles_sklearn.py and test_ensembles_torch.py, beside what they describe.
ELSEWHERE = {"ensembles_sklearn.md", "ensembles_torch.md"}
#: Long messages are broken into lines on a page.
OPTIONS = doctest.NORMALIZE_WHITESPACE
# Uncompiled, as coverage wants it, a page would take an hour.
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too slow uncompiled")


def pages():
    found = (path for kind in ("*.md", "*.rst") for path in DOCS.glob(kind))
    return sorted(p.name for p in found if ">>> " in p.read_text(encoding="utf-8"))


def sections(text):
    """The page, cut before every heading of the second level that is not inside a block."""
    parts = re.split(r"(?m)^(```)", text)
    cut, inside = [""], False
    for part in parts:
        if part == "```":
            inside = not inside
        pieces = [part] if inside else re.split(r"(?m)^(?=## )", part)
        cut[-1] += pieces[0]
        cut.extend(pieces[1:])
    return cut


def without_torch(text):
    """The page with its sections on PyTorch emptied; lines keep their numbers."""
    kept = [
        part if "import torch" not in part else "\n" * part.count("\n") for part in sections(text)
    ]
    return "".join(kept)


def run(page, text):
    test = doctest.DocTestParser().get_doctest(text, {}, page, str(DOCS / page), 0)
    assert test.examples, f"{page} has no examples left"
    written = []
    outcome = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=written.append)
    assert outcome.failed == 0, "".join(written)


@compiled
@pytest.mark.parametrize("page", sorted(set(pages()) - ELSEWHERE))
def test_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, without_torch((DOCS / page).read_text(encoding="utf-8")))


@compiled
@pytest.mark.deep
def test_the_tutorial_runs_as_printed_with_torch(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run("tutorial.md", (DOCS / "tutorial.md").read_text(encoding="utf-8"))
    finally:
        torch.set_num_threads(threads)


def test_a_wrong_output_on_a_page_is_noticed():
    with pytest.raises(AssertionError, match="Expected"):
        run("made up", ">>> 1 + 1\n3\n")


def test_every_link_to_a_page_leads_somewhere():
    written = [p for p in DOCS.glob("*.md") if p.name in OWN]
    assert len(written) == len(OWN)
    for page in written:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+\.(?:md|rst|svg|csv))(?:#[^)]*)?\)", text):
            assert (DOCS / target).exists(), f"{page.name} links to {target}"


def test_every_link_to_a_heading_finds_it():
    for name in OWN:
        text = (DOCS / name).read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text):
            headings = anchors((DOCS / (target or name)).read_text(encoding="utf-8"))
            assert anchor in headings, f"{name} links to {target}#{anchor}"


OWN = {"tutorial.md", "choosing.md", "theory.md", "comparison.md", "faq.md", "command_line.md"}


def anchors(text):
    """Headings as links name them: lower case, words joined by dashes, no marks."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}
