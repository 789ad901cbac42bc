"""The figures and tables of the page "Choosing": nulls, measures, resamples.

    python -m docs.choosing_figures                  # all three, some minutes on one core
    python -m docs.choosing_figures resamples        # one of: nulls, measures, resamples

Every part prints its numbers, writes them as CSV and draws them, beside the page, in figures/choosing.
"""

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments import named
from experiments.canvas import LEVEL, MEASURES, NULLS, bars, drawing, legend_above
from scipy.stats import binom

import hullcal as hc
from hullcal.simulation import Grid, run, wilson

FOLDER = Path(__file__).parent / "figures" / "choosing"
ALPHA, N_RESAMPLES = 0.05, 99
Row = dict[str, Any]


def rate(rejections: int, total: int) -> Row:
    """A rejection rate with its interval, under the names that `bars` reads."""
    low, high = wilson(rejections, total)
    share = {"rejection_rate": rejections / total, "n_datasets": total}
    return share | {"rejection_lower": low, "rejection_upper": high}


def keep(name: str, rows: list[Row]) -> None:
    """Print rows and write them as CSV."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = [
        {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows
    ]
    with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(texts[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(texts)
    print(f"\n{name}", *(" ".join(str(value) for value in row.values()) for row in texts), sep="\n")


#: Panels: what is drawn, and which hypotheses are true of it.
WORLDS = {
    "the truth is in the hull": {"scenario": "S1"},
    "calibrated, not the truth": {"scenario": "calibrated"},
    "neither": {"scenario": "S3", "strength": 0.2},
}


def nulls(n_datasets: int = 60) -> None:
    """Level and power of five nulls on the same data sets."""
    rows = []
    for title, world in WORLDS.items():
        size = {"n_samples": 200, "n_members": 5, "n_classes": 5, "spread": 1.0}
        tests = {"test": [named(g, null) for g in ("ece_conf", "ece_cwise") for null in NULLS]}
        how = {"n_datasets": n_datasets, "n_resamples": N_RESAMPLES, "alpha": ALPHA, "seed": 1}
        for found in run(Grid(**(world | size | tests | how)), n_jobs=1).rates():
            own = {"world": title, "measure": found["measure"], "null": found["null"]}
            rows.append(own | rate(found["rejections"], n_datasets))
    keep("nulls", rows)
    with drawing(FOLDER / "nulls.svg", 2.4) as figure:
        axes = figure.subplots(1, 3, sharey=True)
        for ax, title in zip(axes, WORLDS, strict=True):
            ax.axhline(ALPHA, **LEVEL)
            for shift, measure in ((-0.12, "ece_conf"), (0.12, "ece_cwise")):
                own = [row for row in rows if (row["world"], row["measure"]) == (title, measure)]
                style = {**MEASURES[measure], "linestyle": "", "label": measure}
                bars(ax, np.arange(len(own)) + shift, own, "rejection_rate", **style)
            ax.set_xticks(range(len(NULLS)), list(NULLS), rotation=60)
            ax.set_title(title)
        axes[0].set_ylabel("share of data sets rejected")
        legend_above(figure, axes[0], 2)


def as_claimed(p: np.ndarray) -> np.ndarray:
    """Labels follow the predictions: what is rejected here is the level."""
    return p


def overconfident(p: np.ndarray) -> np.ndarray:
    """The truth has a temperature of 1.5."""
    flatter = p ** (1.0 / 1.5)
    return flatter / flatter.sum(axis=1, keepdims=True)


def one_class(p: np.ndarray) -> np.ndarray:
    """The first class comes true less often than claimed: its odds are 0.6 of what they should be."""
    scaled = p * [0.6, 1.0, 1.0]
    return scaled / scaled.sum(axis=1, keepdims=True)


def runners_up(p: np.ndarray) -> np.ndarray:
    """The predicted class is right; the other two are exchanged, by three quarters."""
    order, swapped = np.argsort(p, axis=1), p.copy()
    lowest, middle = order[:, :1], order[:, 1:2]
    np.put_along_axis(swapped, lowest, np.take_along_axis(p, middle, axis=1), axis=1)
    np.put_along_axis(swapped, middle, np.take_along_axis(p, lowest, axis=1), axis=1)
    return 0.25 * p + 0.75 * swapped


def handedness(p: np.ndarray) -> np.ndarray:
    """Only the whole vector shows it: every class by itself is calibrated, and so is the top one.

    Where the classes, from the most to the least probable, come in cyclic order, the top class gains
    0.7 of what the second has; elsewhere it loses as much. Given any one probability both are as likely.
    """
    order = np.argsort(-p, axis=1)
    sign = np.where((order[:, 1] - order[:, 0]) % 3 == 1, 1.0, -1.0)
    top, second = order[:, :1], order[:, 1:2]
    amount = 0.7 * sign[:, None] * np.take_along_axis(p, second, axis=1)
    # Going down, the top class may not fall below 0: it is at least as large as the second.
    changed = p.copy()
    np.put_along_axis(changed, top, np.take_along_axis(p, top, axis=1) + amount, axis=1)
    np.put_along_axis(changed, second, np.take_along_axis(p, second, axis=1) - amount, axis=1)
    return changed


TRUTHS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    as_claimed,
    overconfident,
    one_class,
    runners_up,
    handedness,
)


def ensemble(n_samples: int, n_members: int, rng: np.random.Generator) -> np.ndarray:
    """Members that scatter a little around predictions which are uniform on the triangle."""
    centre = rng.dirichlet([1.0, 1.0, 1.0], size=(n_samples, 1))
    logits = np.log(centre) + 0.3 * rng.standard_normal((n_samples, n_members, 3))
    members = np.exp(logits)
    return members / members.sum(axis=2, keepdims=True)


def drawn(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label for each row."""
    return (rng.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


def measures(n_single: int = 200, n_sets: int = 30) -> None:
    """Which measure sees which miscalibration: of one classifier, and of a set of five."""
    rows = []
    for n_members, n_datasets in ((1, n_single), (5, n_sets)):
        # All pairs of rows, for every evaluation of every search, would take too long here.
        names = (
            list(MEASURES) if n_members == 1 else ["skce_ul", "hl_cwise", "ece_conf", "ece_cwise"]
        )
        for truth in TRUTHS:
            rejections = dict.fromkeys(names, 0)
            for r in range(n_datasets):
                rng = np.random.default_rng([2, n_members, r])
                probs = ensemble(500, n_members, rng)
                labels = drawn(truth(probs.mean(axis=1)), rng)
                for name in names:
                    result = hc.truth_test(
                        probs, labels, measure=name, n_resamples=N_RESAMPLES, rng=r
                    )
                    rejections[name] += result.rejected
            for name in names:
                own = {"n_members": n_members, "truth": truth.__name__, "measure": name}
                rows.append(own | rate(rejections[name], n_datasets))
    keep("measures", rows)
    with drawing(FOLDER / "measures.svg", 2.6) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, n_members in zip(axes, (1, 5), strict=True):
            ax.axhline(ALPHA, **LEVEL)
            for i, name in enumerate(MEASURES):
                own = [
                    row for row in rows if (row["n_members"], row["measure"]) == (n_members, name)
                ]
                if own:
                    x = np.arange(len(own)) + 0.13 * (i - 2.5)
                    style = {**MEASURES[name], "linestyle": "", "label": name}
                    bars(ax, x, own, "rejection_rate", **style)
            shown = [truth.__name__.replace("_", " ") for truth in TRUTHS]
            ax.set_xticks(range(len(shown)), shown, rotation=30, ha="right")
            ax.set_title("one classifier" if n_members == 1 else "the hull of five members")
        axes[0].set_ylabel("share of data sets rejected")
        legend_above(figure, axes[0], 6)


SIZES, STOPS = (99, 199, 999, 9999), (10, 20)
EXACT = (0.001, 0.01, 0.03, 0.04, 0.045, 0.055, 0.06, 0.07, 0.1, 0.2, 0.5)


def allowed(n_resamples: int) -> int:
    """Exceedances with which the p-value is still at most ALPHA."""
    return max(c for c in range(n_resamples + 1) if (c + 1) / (n_resamples + 1) <= ALPHA)


def chance_to_reject(p: Any, n_resamples: int) -> Any:
    """How likely D null values reject, if p of infinitely many would reach the statistic."""
    return binom.cdf(allowed(n_resamples), n_resamples, p)


def chance_to_stop(p: float, h: int, n: int) -> float:
    """How likely h exceedances are among the first n null values."""
    return float(binom.sf(h - 1, n, p))


def resamples_run(p: float, h: int, n_resamples: int) -> float:
    """Expected number of resamples with `stop_after` = h, which looks up after every 2h of them."""
    looks = range(0, n_resamples, 2 * h)
    return sum((min(n + 2 * h, n_resamples) - n) * (1.0 - chance_to_stop(p, h, n)) for n in looks)


def rejects_when_stopped(p: float, h: int, n_resamples: int) -> float:
    """How likely a run with `stop_after` = h rejects: if h/l is at most ALPHA, or at the end."""
    # h/l <= ALPHA needs the h-th exceedance at l >= h/ALPHA: fewer than h among the values before.
    enough = math.ceil(h / ALPHA - 1e-9) - 1
    if enough >= n_resamples:
        return float(chance_to_reject(p, n_resamples))
    return 1.0 - chance_to_stop(p, h, enough)


def resamples() -> None:
    """Monte Carlo error of the decision and of the p-value, by the binomial distribution."""
    rows: list[Row] = []
    for p in EXACT:
        row: Row = {"p": p}
        for d in SIZES:
            row[f"rejects D={d}"] = float(chance_to_reject(p, d))
        for d in SIZES:
            row[f"sd D={d}"] = math.sqrt(p * (1.0 - p) * d) / (d + 1)
        for h in STOPS:
            row[f"rejects h={h}"] = rejects_when_stopped(p, h, 999)
            row[f"resamples h={h}"] = resamples_run(p, h, 999)
        rows.append(row)
    keep("resamples", rows)
    p = np.linspace(0.001, 0.12, 240)
    with drawing(FOLDER / "resamples.svg", 2.3) as figure:
        left, right = figure.subplots(1, 2)
        left.axvline(ALPHA, **LEVEL)
        for d, line in zip(SIZES, (":", "-.", "-", "--"), strict=True):
            left.plot(p, chance_to_reject(p, d), linestyle=line, label=f"D = {d}")
        left.set(xlabel="p-value of infinitely many resamples", ylabel="chance to reject at .05")
        left.legend()
        wide = np.geomspace(0.001, 1.0, 120)
        for h, line in zip(STOPS, ("-", "--"), strict=True):
            runs = [resamples_run(value, h, 999) for value in wide]
            right.plot(wide, runs, linestyle=line, label=f"stop_after={h}")
        right.axhline(999, **LEVEL)
        right.set(xscale="log", xlabel="the same p-value", ylabel="resamples run, of 999")
        right.legend()


PARTS = {part.__name__: part for part in (nulls, measures, resamples)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    chosen = parser.parse_args().parts or list(PARTS)
    for unknown in set(chosen) - set(PARTS):
        parser.error(f"unknown part {unknown!r}; there are {', '.join(PARTS)}")
    for name in chosen:
        PARTS[name]()
