"""One request to a server, with its password and the certificates of this machine."""

from __future__ import annotations

import base64
import os
import ssl
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from experiments.deep_ensembles.downloads.errors import DownloadError, Unanswered

__all__ = ["BROKEN", "answer_of", "page_of", "passing", "shown"]

ATTEMPTS = 4  # in a row that bring nothing new
PAUSE = 1.0  # seconds between them
TIMEOUT = 60.0  # seconds of silence
# What a connection can end with. Not every OSError: a full disk is no reason to ask again.
BROKEN = (URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError)
_PASSING = (408, 425, 429, 500, 502, 503, 504)
# Where other programs are told of the certificates of a company's proxy.
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


def answer_of(url: str, headers: dict[str, str]) -> HTTPResponse:
    """What the server says; the caller closes it."""
    request = Request(shown(url), headers=headers)
    parts = urlsplit(url)
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        # For this server only, not for those it may send us on to.
        request.add_unredirected_header(
            "Authorization", f"Basic {base64.b64encode(secret).decode()}"
        )
    return cast(HTTPResponse, urlopen(request, timeout=TIMEOUT, context=_context()))


def page_of(url: str, accept: str) -> tuple[str, str]:
    """The kind and the text of a small page, asked for again if the connection breaks."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        try:
            with answer_of(url, {"Accept": accept}) as answer:
                return answer.headers.get_content_type(), answer.read().decode()
        except BROKEN as error:
            trouble = error
            if not passing(error):
                break
    raise Unanswered(f"{shown(url)} cannot be read: {trouble}.") from trouble


def passing(error: Exception) -> bool:
    """Whether to ask again: not if the server has said that the answer is no."""
    if isinstance(error, HTTPError):
        error.close()
        return error.code in _PASSING
    # A file that is not there, or a certificate nobody vouches for, will be so in a second too.
    reason = error.reason if isinstance(error, URLError) else error
    return not isinstance(reason, (FileNotFoundError, ssl.SSLCertVerificationError))


def shown(url: str) -> str:
    """The address as it may be shown and sent: without a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise DownloadError(
            f"an address must begin with http, https or file; got {parts.scheme!r}."
        )
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    for variable in _CERTIFICATES:
        path = Path(os.environ.get(variable, ""))
        if path.is_file():
            context.load_verify_locations(path)
    return context
