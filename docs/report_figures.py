"""Makes real reports and takes pictures of their parts for the README and "How to read a report"."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import hullcal as hc
from hullcal.demonstration import examples

FOLDER = Path(__file__).resolve().parent / "_static" / "report"
#: Pictures of one set: the part that is shown, after all parts are unfolded.
PARTS = {
    "nulls": "div.figures.argument",
    "tests": "table.tests",
    "reliability": "details:has(table.classes) div.figures",
    "classes": "table.classes",
    "members": "details:has(summary:text-is('Members')) figure",
}


def several() -> str:
    """The report of the three sets that `hullcal demo` tests."""
    sets = {example.name: example for example in examples(0)}
    found = hc.assessment.Assessments(
        (name, hc.assess(each.probs, each.labels, rng=0)) for name, each in sets.items()
    )
    return hc.report.render(found, title="Three ensembles on handwritten digits")


def page(n_resamples: int = 499) -> str:
    """The report of a forest that tells three sorts of wine apart by four of their features."""
    wines = load_wine()
    X, X_new, y, y_new = train_test_split(
        wines.data[:, :4], wines.target, test_size=0.6, random_state=0, stratify=wines.target
    )
    forest = RandomForestClassifier(6, min_samples_leaf=4, random_state=0).fit(X, y)
    trees, labels = hc.ensembles.members_from(forest, X_new, y_new)
    found = hc.assess(
        trees, labels, measures=["ece_conf", "ece_cwise"], n_resamples=n_resamples, rng=0
    )
    command = "hullcal test wines.npz -m ece_conf,ece_cwise --seed 0"
    return hc.report.render(found, title="Six trees on wines", command=command)


def headings(report: str) -> list[str]:
    """What stands over the parts of a report, from the top; what is folded away included."""
    return re.findall(r"<(?:h[23]|summary)[^>]*>([^<]+)</", report)


def opened(browser: Any, report: str, width: int) -> Any:
    """A report in a browser, with nothing folded away."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "report.html"
        path.write_text(report, encoding="utf-8")
        tab = browser.new_page(viewport={"width": width, "height": 1200}, device_scale_factor=1.25)
        tab.goto(path.as_uri())
    for folded in tab.locator("details").all():
        folded.evaluate("each => each.open = true")
    return tab


def main() -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = opened(browser, several(), 900)
        tab.locator("table.answers").screenshot(path=FOLDER / "verdict.png")
        tab = opened(browser, page(), 1200)
        for name, part in PARTS.items():
            tab.locator(part).first.screenshot(path=FOLDER / f"{name}.png")
        browser.close()
    print(*sorted(path.name for path in FOLDER.iterdir()))


if __name__ == "__main__":
    main()
