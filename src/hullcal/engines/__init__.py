"""Who evaluates a batch of weights over the rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Data, Engine, EngineError, Opened, is_dask

if TYPE_CHECKING:
    from hullcal.engines.dask import Dask

__all__ = ["Dask", "Data", "Engine", "EngineError", "Opened", "resolve"]


def resolve(engine: str | Engine | None, probs: Any) -> Engine:
    """The engine of a name; without one, the engine that suits the predictions."""
    if isinstance(engine, Engine):
        return engine
    if engine == "dask" or (engine is None and _of_dask(probs)):
        from hullcal.engines.dask import Dask

        return Dask()
    if engine in (None, "local"):
        if isinstance(probs, str | os.PathLike):
            raise InvalidInputError(
                f"`probs` must be an array unless workers read it; got the path {str(probs)!r}. Read "
                'the file with `hullcal.io.read`, or test it with `engine="dask"`.'
            )
        from hullcal.engines.local import Local

        return Local()
    raise InvalidInputError(
        f'`engine` must be None, "local", "dask" or an Engine; got {engine!r:.80}. Leave it out.'
    )


def _of_dask(probs: Any) -> bool:
    """Whether predictions are a dask array, or a list of them."""
    some = isinstance(probs, list | tuple) and len(probs) > 0
    return is_dask(probs[0]) if some else is_dask(probs)


def __getattr__(name: str) -> Any:
    """`Dask` is loaded when it is asked for, since dask may not be there."""
    if name == "Dask":
        from hullcal.engines.dask import Dask

        return Dask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
