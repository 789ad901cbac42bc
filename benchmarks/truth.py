"""How long does the truth test take? The opponent is its equations in NumPy, EM and Newton and all.

python -m benchmarks.truth                  # times, and the ratio to NumPy
python -m benchmarks.truth --rows 10000000  # the e-value of a mapped file, pass by pass
"""

import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import numpy as np
from experiments import command_line
from experiments.alternatives import averaged, evidences, features, fitted, standardised, tilted
from threadpoolctl import threadpool_limits

import hullcal as hc
from benchmarks.measuring import (
    Array,
    Set,
    Target,
    at_least,
    at_most,
    best_seconds,
    print_table,
    print_targets,
    print_title,
    s1,
    seconds,
)
from benchmarks.scale import WARM, memory, written
from hullcal.evidence import MOST_FITTED, next_fit
from hullcal.objectives.chunked import ArrayPasses, Job

N_RESAMPLES, FEW = 100, 5
#: Ridges of what predicts later rows.
CAUTIOUS = {"temperature": 5.0, "pool": 20.0, "classes": 20.0}
#: Rows and workers of the plan.
MANY_ROWS, WORKERS = 10**9, 100


def literal_test(probs: Array, labels: Array, n_resamples: int) -> float:
    """The p-value by parametric bootstrap."""
    rng = np.random.default_rng(0)
    families = ("temperature", "pool", "classes")
    observed, law = evidences(probs, labels, families)
    reached = 1
    for _ in range(n_resamples):
        again, _ = evidences(probs, hc.simulation.draw_labels(law, rng), families)
        reached += averaged(again, families) >= averaged(observed, families)
    return reached / (1 + n_resamples)


def likeliest(probs: Array, labels: Array) -> tuple[Array, float]:
    """EM until no combination can be likelier by more than 1e-6, and the bound."""
    chances = probs[np.arange(len(labels)), :, labels]
    weights = np.full(probs.shape[1], 1.0 / probs.shape[1])
    for _ in range(20_000):
        mixed = chances @ weights
        shares = (chances / mixed[:, None]).mean(axis=0)
        gap = len(labels) * np.log(shares.max())
        if gap <= 1e-6:
            break
        weights = weights * shares
    return weights, np.log(mixed).sum() + gap


def literal_evalue(probs: Array, labels: Array) -> float:
    """The log e-value in the given order: blocks predicted by what was fitted on the rows before."""
    (n, m, _), first, numerators = probs.shape, 0, dict.fromkeys(CAUTIOUS, 0.0)
    while first < n:
        last = min(next_fit(first), n) if first < MOST_FITTED else n
        weights = np.full(m, 1.0 / m)
        if first:
            best, _ = likeliest(probs[:first], labels[:first])
            weights = (first * best + 5.0 * weights) / (first + 5.0)
        base = np.maximum(np.einsum("m,nmk->nk", weights, probs[:last]), 1e-4)
        q = base / base.sum(axis=1, keepdims=True)
        for name, ridge in CAUTIOUS.items():
            x = standardised(features(probs[:last], base)[name]())
            beta = np.zeros(x.shape[2])
            if first:
                beta = fitted(x[:first], q[:first], labels[:first], ridge)
            law = tilted(x[first:], q[first:], beta)
            numerators[name] += np.log(law[np.arange(last - first), labels[first:last]]).sum()
        first = last
    found = np.logaddexp.reduce([*numerators.values()]) - np.log(len(numerators))
    return float(found - likeliest(probs, labels)[1])


def ours(data: Set, n_resamples: int) -> float:
    """Our p-value."""
    return hc.truth_test(*data, n_resamples=n_resamples, rng=0).pvalue


def run() -> list[Target]:
    """Times of test and e-value, and the ratio to NumPy."""
    print_title("Truth test by likelihood: seconds of one thread, M=K=10")
    times: dict[tuple[str, int], tuple[float, float]] = {}
    with threadpool_limits(1):
        for n in (100, 1000, 10_000):
            data = s1(0, n, 1.0)
            ours(data, 0)  # compiled
            alone = best_seconds(partial(ours, data, 0))
            times["e-value", n] = alone, seconds(partial(literal_evalue, *data))
            if n <= 1000:
                whole = best_seconds(partial(ours, data, N_RESAMPLES))
                theirs = seconds(partial(literal_test, *data, FEW)) * N_RESAMPLES / FEW
                times[f"test, D={N_RESAMPLES}", n] = whole, theirs
    table = [
        [what, str(n), f"{own:.4f}", f"{theirs:.4f}", f"{theirs / own:.0f}"]
        for (what, n), (own, theirs) in times.items()
    ]
    print_table(["", "N", "hullcal", "NumPy", "ratio"], table)
    found = [
        at_least(f"{what}, N = 100: NumPy / ours", theirs / own, 20)
        for (what, n), (own, theirs) in times.items()
        if n == 100
    ]
    whole, alone = times[f"test, D={N_RESAMPLES}", 100][0], times["e-value", 100][0]
    return [
        *found,
        at_most("100 resamples, N = 100", 1000 * (whole - alone), 20, " ms"),
        at_most("e-value, N = 100", 1000 * alone, 5, " ms"),
        at_most("e-value, N = 10,000", times["e-value", 10_000][0], 0.5, " s"),
    ]


def many_rows(n_samples: int, n_jobs: int) -> None:
    """Time and memory of an e-value, and what more rows on more workers would take."""
    passes: dict[str, list[float]] = defaultdict(list)
    total = ArrayPasses.total

    def timed(self: ArrayPasses, job: Job) -> Array:
        start = time.process_time()
        found = total(self, job)
        if self.n_samples == n_samples:
            passes[f"{type(job).__name__} {job.shape}"].append(time.process_time() - start)
        return found

    with tempfile.TemporaryDirectory(prefix="hullcal-truth-") as name:
        path = Path(name) / "probs.npy"
        labels = written(path, (n_samples, 10, 10), np.random.default_rng(0))
        probs = np.load(path, mmap_mode="r")
        how = {"n_resamples": 0, "rng": 0, "n_jobs": n_jobs}
        hc.truth_test(probs[:WARM], labels[:WARM], **how)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        ArrayPasses.total = timed  # type: ignore[method-assign]
        start, busy = time.perf_counter(), time.process_time()
        found = hc.truth_test(probs, labels, **how)
        whole, busy = time.perf_counter() - start, time.process_time() - busy
        peak = memory("VmHWM") / probs.nbytes
    print_title(f"E-value of {n_samples:,} rows, M = K = 10, float32, {n_jobs} thread(s)")
    table = [
        [name, str(len(times)), f"{np.mean(times):.2f}", f"{np.sum(times):.1f}"]
        for name, times in passes.items()
    ]
    print_table(["pass", "number", "processor seconds each", "in all"], table)
    inside = sum(map(sum, passes.values()))
    number = sum(map(len, passes.values()))
    print(f"{whole:.0f} s; {busy:.1f} s of processors, {inside:.1f} s of them in {number} passes")
    print(f"log e = {found.log_evalue:.2f}")
    print(f"peak memory {peak:.2f} x input, the mapped input itself included")
    share = MANY_ROWS / n_samples / WORKERS * inside
    print(f"{MANY_ROWS:,} rows on {WORKERS} workers of one thread: {share:.0f} s in passes")


def main() -> None:
    """Print the targets, or the passes over many rows."""
    parser = command_line("benchmarks.truth", __doc__)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.rows:
        many_rows(given.rows, given.jobs)
    else:
        print_targets(run())


if __name__ == "__main__":
    main()
