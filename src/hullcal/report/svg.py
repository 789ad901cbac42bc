"""Figures as markup that a strict Content-Security-Policy lets through: no style, no script."""

from __future__ import annotations

import io
import re
from typing import Any

#: Ink and paper follow the page, so that figures can be read in light and in dark.
_INK, _PAPER = {"#000000", "black"}, {"#ffffff", "white"}


def inline(figure: Any, name: str, description: str) -> str:
    """An SVG element of a matplotlib figure; `name` keeps its identifiers apart from others'."""
    import matplotlib as mpl

    text = io.StringIO()
    # Letters become shapes: the page looks the same where a font is missing.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return cleaned(text.getvalue(), name, description)


def cleaned(svg: str, name: str, description: str) -> str:
    """Without prologue, metadata, style elements and style attributes; identifiers made unique."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'style="([^"]*)"', lambda match: _attributes(match[1]), body)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', body)
    # Widths in points become the style sheet's business.
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    attributes = f' role="img" aria-label="{_escaped(description)}"'
    inherited = 'fill="currentColor" stroke-linejoin="round" stroke-linecap="butt"'
    return f"{head} {inherited}{attributes}>{rest}"


def _attributes(style: str) -> str:
    """Declarations as presentation attributes, which a policy on styles does not touch."""
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    return " ".join(f'{key.strip()}="{_colour(value.strip())}"' for key, value in pairs)


def _colour(value: str) -> str:
    if value in _INK:
        return "currentColor"
    return "none" if value in _PAPER else value


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
