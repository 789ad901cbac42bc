"""Makes a real report and takes pictures of its parts for the page "How to read a report"."""

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

FOLDER = Path(__file__).resolve().parent / "_static" / "report"


def page(n_resamples: int = 499) -> str:
    """The report of a forest that tells three sorts of wine apart by four of their features."""
    wines = load_wine()
    X, X_new, y, y_new = train_test_split(
        wines.data[:, :4], wines.target, test_size=0.6, random_state=0, stratify=wines.target
    )
    forest = RandomForestClassifier(6, min_samples_leaf=3, random_state=0).fit(X, y)
    trees, labels = hc.ensembles.members_from(forest, X_new, y_new)
    found = hc.assess(
        trees, labels, measures=["ece_conf", "ece_cwise"], n_resamples=n_resamples, rng=0
    )
    command = "hullcal test wines.npz --measure ece_conf --measure ece_cwise --seed 0"
    return hc.report.render(found, title="Six trees on wines", command=command)


def headings(report: str) -> list[str]:
    """What stands over the parts of a report, from the top."""
    return re.findall(r"<h[23][^>]*>([^<]+)</h[23]>", report)


def photograph(browser: Any, report: Path, folder: Path) -> None:
    """Pictures of the verdict, the level, the tests, the three groups of figures and the classes."""
    tab = browser.new_page(viewport={"width": 1200, "height": 1200}, device_scale_factor=1.25)
    tab.goto(report.as_uri())
    folder.mkdir(parents=True, exist_ok=True)
    tab.locator("div.verdict").first.screenshot(path=folder / "verdict.png")
    tab.locator("p.control").screenshot(path=folder / "level.png")
    tab.locator("table.tests").screenshot(path=folder / "tests.png")
    groups = tab.locator("div.figures")
    for number, name in enumerate(("nulls", "reliability", "members")):
        groups.nth(number).screenshot(path=folder / f"{name}.png")
    tab.locator("table.classes").screenshot(path=folder / "classes.png")


def main() -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        report = Path(place) / "report.html"
        report.write_text(page(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        photograph(browser, report, FOLDER)
        browser.close()
    print(*sorted(path.name for path in FOLDER.iterdir()))


if __name__ == "__main__":
    main()
