"""One test in a process of its own: `python -m benchmarks.scale.cell JSON` prints its figures as JSON."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import hullcal as hc
from benchmarks.scale.data import in_memory

#: Rows on which everything is compiled before the clock starts; large data run other loops.
_WARM = 120_000


def memory(name: str) -> int:
    """A figure of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise KeyError(name)


def run(cell: dict[str, Any]) -> dict[str, Any]:
    """Time and private memory of a test."""
    folder = Path(cell["folder"])
    options = {
        "measure": cell["measure"],
        "null": cell["null"],
        "n_resamples": cell["n_resamples"],
        "rng": 0,
    }
    if cell["engine"] == "dask":
        return _on_dask(folder, options)
    probs, labels = in_memory(folder)
    few = {**options, "n_resamples": 20, "n_jobs": 1}
    hc.calibration_test(probs[: min(_WARM, len(probs))], labels[: min(_WARM, len(probs))], **few)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    start, busy = time.perf_counter(), time.process_time()
    result = hc.calibration_test(probs, labels, n_jobs=cell["threads"], **options)
    took, busy = time.perf_counter() - start, time.process_time() - busy
    return _figures(result, took) | {
        "processor": busy,
        "private": (memory("VmHWM") - before) / probs.nbytes,
    }


def _on_dask(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=os.cpu_count(), threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        small = folder.parent / "warm"
        hc.calibration_test(small, None, engine=client, **{**options, "n_resamples": 20})
        start = time.perf_counter()
        result = hc.calibration_test(folder, None, engine=client, **options)
        return _figures(result, time.perf_counter() - start)


def _figures(result: Any, took: float) -> dict[str, Any]:
    return {
        "seconds": took,
        "p": result.pvalue,
        "statistic": float.hex(result.statistic),
        "evaluations": result.n_evaluations,
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
