"""What a user sees when a file cannot be had."""

from __future__ import annotations

__all__ = ["DownloadError", "Unanswered", "Unreachable"]


class DownloadError(RuntimeError):
    """A file could not be had, or is not the one that was asked for."""


class Unreachable(DownloadError):
    """The registry cannot be asked from here, or does not know the file."""


class Unanswered(Unreachable):
    """An address did not answer; the registry's own program may still get through."""
