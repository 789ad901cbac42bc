"""One process at a time in a folder; the others wait for their turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.deep_ensembles.downloads.errors import DownloadError
from hullcal._validation import InvalidInputError

__all__ = ["held"]


@contextmanager
def held(folder: Path, *, pause: float = 0.2) -> Iterator[None]:
    """Hold a folder, made if need be, for as long as the block runs."""
    # Not at the top: it brings compiled code along, which a full cache has no need of.
    from hullcal.io.journal import locked

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(
            f"the cache cannot be written to: {error}. Set HULLCAL_CACHE to a folder that can."
        ) from error
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(folder))
                break
            except InvalidInputError:  # somebody else holds it: what they fetch serves us too
                time.sleep(pause)
        yield
