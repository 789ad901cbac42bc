"""Who evaluates a batch of weights over the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Data, Engine, EngineError, Opened

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
        from hullcal.engines.local import Local

        return Local()
    raise InvalidInputError(f'`engine` must be None, "local", "dask" or an Engine; got {engine!r}.')


def _of_dask(probs: Any) -> bool:
    """Whether predictions are a dask array; tells without importing dask."""
    return type(probs).__module__.partition(".")[0] == "dask"


def __getattr__(name: str) -> Any:
    """`Dask` is loaded when it is asked for, since dask may not be there."""
    if name == "Dask":
        from hullcal.engines.dask import Dask

        return Dask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
