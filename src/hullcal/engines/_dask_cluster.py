"""Which cluster: the user's, one at an address, or one of our own for as long as it is needed."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import hullcal
from hullcal._validation import InvalidInputError, refusal
from hullcal.engines import _dask_interrupts
from hullcal.engines.engine import EngineError

#: Seconds to reach a scheduler, and to wait for the first of its workers.
_CONNECTING, _WORKERS = 10, 60
_PACKAGE = "hullcal"


@contextmanager
def connected(scheduler: str | None, n_workers: int | None) -> Iterator[Any]:
    """A client; what was started here is stopped at the end, whatever happens in between."""
    distributed = _distributed()
    with ExitStack() as started:
        if scheduler is not None:
            client = started.enter_context(_at(distributed, scheduler))
        else:
            client = _current(distributed) if n_workers is None else None
            if client is None:
                client = started.enter_context(of_our_own(distributed, n_workers))
        _check_workers(client)
        yield client


def _distributed() -> Any:
    try:
        import dask.array
        import distributed
    except ImportError as error:
        rule = 'must be "local" without the packages dask and distributed'
        repair = "Install them with `pip install dask distributed`."
        raise refusal("engine", rule, f'"dask" ({error})', repair) from error
    assert dask.array
    return distributed


def _current(distributed: Any) -> Any:
    """The client that is there already, if there is one."""
    try:
        client = distributed.get_client()
    except ValueError:
        return None
    if client.asynchronous:
        rule = "must be a client that waits for its results"
        repair = "Name the scheduler's address: `engine=Dask(scheduler=...)`."
        raise refusal("engine", rule, "an asynchronous client", repair)
    return client


@contextmanager
def _at(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=_CONNECTING, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        rule = "must be the address of a running scheduler"
        came = f"{address!r}, where there is none ({type(error).__name__}: {str(error)[:200]})"
        repair = "Start one with `dask scheduler`, and pass the address that it prints."
        raise refusal("scheduler", rule, came, repair) from error
    with client:
        yield client


@contextmanager
def of_our_own(distributed: Any, n_workers: int | None) -> Iterator[Any]:
    """Processes on this machine, one thread each, heard of nowhere else."""
    try:
        cluster = distributed.LocalCluster(
            n_workers=n_workers or _cores(),
            threads_per_worker=1,
            processes=True,
            # None would still serve a page, on a port that others may have or want.
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            preload=_dask_interrupts.__name__,
        )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise EngineError(
            f"no worker processes could be started ({type(error).__name__}: {str(error)[:200]}). "
            'A script that starts some must do its work below `if __name__ == "__main__":`.'
        ) from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or with workers that would not understand us."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS)
    except TimeoutError as error:
        raise EngineError(
            f"the scheduler at {client.scheduler.address} has had no worker for {_WORKERS} seconds. "
            "Start some with `dask worker`; the same call will then do."
        ) from error
    found = client.run(importlib.util.find_spec, _PACKAGE)
    found["the scheduler"] = client.run_on_scheduler(importlib.util.find_spec, _PACKAGE)
    without = [place for place, spec in found.items() if spec is None]
    if without:
        raise _unlike("no hullcal there", without)
    others = {v: place for place, v in client.run(_version).items() if v != hullcal.__version__}
    for version, place in others.items():
        raise _unlike(f"hullcal {version} there and {hullcal.__version__} here", [place])


def _version() -> str:
    return hullcal.__version__


def _unlike(came: str, places: list[str]) -> InvalidInputError:
    rule = "must be a cluster that has the same hullcal"
    shown = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
    repair = f"Install `hullcal=={hullcal.__version__}` on every machine of the cluster."
    return refusal("engine", rule, f"{came} ({shown})", repair)
