"""One offline HTML page: the verdict, then the evidence."""

from __future__ import annotations

from hullcal.report.page import render

__all__ = ["render"]
