"""How near is a pass over the rows to what this machine can do at best?"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import hullcal as hc
from benchmarks.tables import Target, print_table, print_title
from hullcal.engines.local import ArrayPasses
from hullcal.engines.objective import Moves
from hullcal.engines.streamed import Streamed

N, M, K, BATCH = 500_000, 10, 10, 64


def _best(call: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def machine() -> dict[str, float]:
    """A copy of memory in GB/s, read and written, and a product of matrices in GFLOP/s, two threads."""
    source, target = np.ones(2**26), np.empty(2**26)
    copied = 2 * source.nbytes / _best(lambda: np.copyto(target, source)) / 1e9
    a = np.random.default_rng(0).random((2000, 2000))
    found = {"copy GB/s, one thread": copied}
    for threads in (1, 2):
        with threadpool_limits(threads):
            a @ a
            found[f"product GFLOP/s, {threads} threads"] = 2 * 2000**3 / _best(lambda: a @ a) / 1e9
    return found


def batches(limits: dict[str, float]) -> tuple[list[dict[str, Any]], list[Target]]:
    """A batch of 64 weights over all rows: as they come, and as moves from one place."""
    print_title(f"Limits: {BATCH} weights in one pass, N = {N:,}, M = K = 10, float32, ece_conf")
    print_table(["this machine", ""], [[name, f"{value:.1f}"] for name, value in limits.items()])
    rng = np.random.default_rng(0)
    probs = rng.standard_exponential((N, M, K), dtype=np.float32)
    probs /= probs.sum(axis=2, keepdims=True)
    labels = rng.integers(0, K, N, dtype=np.int32)
    weights = rng.dirichlet(np.ones(M), size=BATCH)
    pairs = np.array([(i, j) for i in range(M) for j in range(M) if i != j][:BATCH])
    asked = {
        "weights": [Moves.none(0, one) for one in weights],
        "moves": [Moves(0, weights[0], pairs, np.full(BATCH, 0.01))],
    }
    found: list[dict[str, Any]] = []
    for threads in (1, 2):
        passes = ArrayPasses(probs, labels, np.arange(M), threads)
        g = Streamed.of(hc.ConfidenceECE(), passes)
        for kind, moves in asked.items():
            g.answer(moves)
            seconds = _best(lambda g=g, moves=moves: g.answer(moves))
            found.append(
                {
                    "batch": kind,
                    "threads": threads,
                    "ns a row and weight": 1e9 * seconds / N / BATCH,
                    # What mixing 64 combinations takes as a product of matrices.
                    "GFLOP/s": 2 * N * M * K * BATCH / seconds / 1e9,
                    "GB/s": probs.nbytes / seconds / 1e9,
                }
            )
    targets = []
    for cell in found:
        product = limits[f"product GFLOP/s, {cell['threads']} threads"]
        cell["share of product"] = cell["GFLOP/s"] / product
        cell["share of copy"] = cell["GB/s"] / (limits["copy GB/s, one thread"] / 2)
        best = max(cell["share of product"], cell["share of copy"])
        name = f"{BATCH} {cell['batch']}, {cell['threads']} thread(s): share of the binding limit"
        targets.append(Target(f"{name} >= 50 %", f"{best:.0%}", best >= 0.5))
    columns = list(found[0])
    print_table(
        columns,
        [[f"{c[n]:.3g}" if isinstance(c[n], float) else str(c[n]) for n in columns] for c in found],
    )
    return found, targets
