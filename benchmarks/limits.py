"""How far is one evaluation from the arithmetic and the bandwidth of one core?"""

from collections.abc import Callable

import numba
import numpy as np

import hullcal as hc
from benchmarks.sets import plain
from benchmarks.tables import Target, print_table, print_title
from benchmarks.timing import best_seconds

N_MEMBERS = N_CLASSES = 10
#: Rows, and the two budgets whose difference in time is that of the evaluations between them.
SIZES = {100: (500, 5500), 10_000: (20, 120), 100_000: (5, 35)}
#: SKCE over all pairs is timed with fewer evaluations.
PAIR_BUDGETS = (20, 520)
#: Rows at which the slow ones are timed at most.
MOST_ROWS = {"hl_cwise": 10_000, "skce_uq": 100, "skce_b": 100}

#: Operations of an exponential: range reduction and a polynomial.
EXP = 20

#: Floating-point operations of one pairwise move and the measure after it; comparisons count.
FLOPS: dict[str, tuple[str, Callable[[int, int], float]]] = {
    "ece_conf": ("N(4K + 4)", lambda n, k: n * (4 * k + 4)),
    "ece_cwise": ("N(6K + 1)", lambda n, k: n * (6 * k + 1)),
    "hl_cwise": ("7NK", lambda n, k: 7 * n * k),
    "skce_ul": ("3NK + N/2 (5K + 25)", lambda n, k: 3 * n * k + n / 2 * (5 * k + EXP + 5)),
    "skce_uq": ("3NK + N(N-1)/2 (5K + 23)", lambda n, k: _all_pairs(n, k)),
    "skce_b": ("3NK + N(N-1)/2 (5K + 23)", lambda n, k: _all_pairs(n, k)),
}
FORMULAS = f"""
Operations. The move p + s (a - b) takes 3 for each row and class. Then
  ece_conf   1 comparison for each class, 4 for each row (scale, gap, weight, sum)
  ece_cwise  3 for each class (scale, weight, sum), 1 for each label
  hl_cwise   4 for each class (order kept?, weight, two sums); sorting that is really needed is extra
  skce       5 for each class of a pair (difference, absolute value, sum; product, sum),
             {EXP} for its exponential and a few for its label terms and sum
Bytes. Both must read p, a and b and write the new p, 32NK, and read labels and row weights, 12N.
The limit is the larger of operations over peak and bytes over the bandwidth of the level that holds
all members (8MNK bytes); a share above 100 % says that part of them came from a nearer level. The
peak counts a fused multiply-add as two; loops that keep the order of their sums fuse none, and
reach half of it at best."""


def _all_pairs(n: int, k: int) -> float:
    return 3 * n * k + n * (n - 1) / 2 * (5 * k + EXP + 3)


def bytes_moved(n_samples: int, n_classes: int) -> float:
    """What one move must read and write."""
    return 32 * n_samples * n_classes + 12 * n_samples


@numba.njit(fastmath={"contract"})
def _multiply_add(x, out, rounds):  # type: ignore[no-untyped-def]
    """Eight chains of 16 fused multiply-adds for each element, all in registers."""
    for _ in range(rounds):
        for i in range(x.shape[0]):
            u = x[i]
            a = b = c = d = e = f = g = h = u
            for _ in range(16):
                a = a * u + 0.1
                b = b * u + 0.2
                c = c * u + 0.3
                d = d * u + 0.4
                e = e * u + 0.5
                f = f * u + 0.6
                g = g * u + 0.7
                h = h * u + 0.8
            out[i] = a + b + c + d + e + f + g + h


@numba.njit
def _copy(source, target, rounds):  # type: ignore[no-untyped-def]
    for _ in range(rounds):
        for i in range(source.shape[0]):
            target[i] = source[i]


def fused_peak() -> float:
    """Operations a second of multiply-adds in registers."""
    x, out, rounds = np.random.default_rng(0).random(512), np.empty(512), 2000
    _multiply_add(x, out, 1)
    took = best_seconds(lambda: _multiply_add(x, out, rounds))
    return (8 * 16 * 2 + 7) * len(x) * rounds / took


def gemm_peak(size: int = 600) -> float:
    """Operations a second of a product of matrices."""
    a = np.random.default_rng(0).random((size, size))
    return 2 * size**3 / best_seconds(lambda: a @ a)


def copy_bandwidth(n_bytes: int) -> float:
    """Bytes a second, read and written, of a copy whose two arrays take `n_bytes`."""
    source = np.random.default_rng(0).random(n_bytes // 16)
    target = np.empty_like(source)
    rounds = max(1, 2**27 // n_bytes)
    _copy(source, target, 1)
    return n_bytes * rounds / best_seconds(lambda: _copy(source, target, rounds))


#: Sizes of the copy, each well inside one level of the caches of today's cores.
LEVELS = {"L1": 2**14, "L2": 2**18, "L3": 2**23, "memory": 2**28}


def level_of(n_bytes: int) -> str:
    """Where that many bytes live: the first level whose usual size holds them."""
    for name, size in (("L1", 2**15), ("L2", 2**19), ("L3", 2**24)):
        if n_bytes <= size:
            return name
    return "memory"


def evaluation_seconds(measure: str, n_samples: int) -> float:
    """Time of one evaluation inside a pairwise search: the slope between two budgets."""
    probs, labels = plain(0, n_samples, N_MEMBERS, N_CLASSES)
    classifiers = hc.ClassifierSet(probs)
    pairs = measure in ("skce_uq", "skce_b")
    few, many = PAIR_BUDGETS if pairs else SIZES[n_samples]

    def search(budget: int) -> Callable[[], object]:
        minimizer = hc.minimizers.Pairwise(max_evaluations=budget)
        return lambda: hc.minimize(classifiers, labels, measure=measure, minimizer=minimizer, rng=0)

    search(few)()
    times = [best_seconds(search(budget), at_least=0.3) for budget in (few, many)]
    return (times[1] - times[0]) / (many - few)


def run() -> list[Target]:
    """Print the machine's limits, the formulas, and the share that is reached."""
    print_title("Limits: one evaluation against the arithmetic and bandwidth of one core")
    peaks = {"multiply-add in registers": fused_peak(), "matrix product (BLAS)": gemm_peak()}
    bandwidths = {name: copy_bandwidth(size) for name, size in LEVELS.items()}
    print_table(
        ["one core", "measured"],
        [
            *([name, f"{value / 1e9:.1f} GFLOP/s"] for name, value in peaks.items()),
            *(
                [f"copy in {name} ({LEVELS[name] // 1024:,} KiB)", f"{value / 1e9:.1f} GB/s"]
                for name, value in bandwidths.items()
            ),
        ],
    )
    print(FORMULAS)
    peak = max(peaks.values())
    rows = []
    for n in SIZES:
        level = level_of(8 * N_MEMBERS * N_CLASSES * n)
        for measure, (formula, flops) in FLOPS.items():
            if n > MOST_ROWS.get(measure, n):
                continue
            took = evaluation_seconds(measure, n)
            arithmetic = flops(n, N_CLASSES) / peak
            traffic = bytes_moved(n, N_CLASSES) / bandwidths[level]
            rows.append(
                [
                    *(measure, f"{n:,}", formula, f"{flops(n, N_CLASSES):,.0f}"),
                    *(f"{bytes_moved(n, N_CLASSES) / 1024:,.0f}", level),
                    *(f"{1e6 * took:,.2f}", f"{1e6 * arithmetic:,.2f}", f"{1e6 * traffic:,.2f}"),
                    f"{max(arithmetic, traffic) / took:.0%}",
                ]
            )
    print_table(
        [
            *("measure", "N", "operations", "count", "KiB", "level", "us"),
            *("arithmetic us", "bandwidth us", "limit reached"),
        ],
        rows,
        f"One evaluation of a pairwise search, M=K={N_CLASSES}",
    )
    return []
