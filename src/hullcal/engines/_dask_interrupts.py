"""Ctrl-C is for the client, which ends its workers; a terminal sends it to all of them."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Called by every worker of a cluster of our own as it starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
