"""The command line: parse, call, print; no computation."""

from __future__ import annotations

from hullcal.cli.group import main, run

__all__ = ["main", "run"]
