"""How many times faster is a test than the authors' own manner of running it?"""

from dataclasses import dataclass

import numpy as np
import scipy

import hullcal as hc
from benchmarks import literal
from benchmarks.sets import s1
from benchmarks.tables import Target, at_least, at_most, print_table, print_targets, print_title
from benchmarks.timing import best_seconds, seconds

N_SAMPLES, N_RESAMPLES, SPREAD = 100, 100, 0.01
#: Resamples of the literal refit test that are really run; the rest is extrapolated.
LITERAL_REFITS = 2
#: Least ratios of the literal paper's test to our paper's test and to our refit test.
BOUNDS = {
    "ece_conf": (1500, 80),
    "ece_cwise": (500, 30),
    "hl_cwise": (50, 3),
    "skce_ul": (500, 30),
}


@dataclass(frozen=True)
class Row:
    """Seconds for one test with one measure."""

    measure: str
    literal_null: float
    literal_lean_null: float
    literal_search: float
    literal_evaluations: int
    literal_refit: float
    paper: float
    refit: float
    stacked: float
    pairwise_refit: float
    recentered: float
    maximized: float

    @property
    def literal_paper(self) -> float:
        """The opponent: lines 1 to 5, and line 7."""
        return self.literal_null + self.literal_search

    @property
    def literal_lean(self) -> float:
        """The opponent with the leaner draw of labels."""
        return self.literal_lean_null + self.literal_search


def ours(
    probs: np.ndarray, labels: np.ndarray, measure: str, null: str, minimizer: str = "steepest"
) -> float:
    """Seconds of our whole call, checks included, after compilation."""

    def call() -> None:
        hc.calibration_test(
            probs,
            labels,
            measure=measure,
            null=null,
            minimizer=minimizer,
            n_resamples=N_RESAMPLES,
            rng=0,
        )

    call()
    return best_seconds(call, at_least=1.0, fewest=1)


def literal_refit(probs: np.ndarray, labels: np.ndarray, measure: str) -> float:
    """Seconds of the literal refit test: every labelling costs one COBYLA, D + 1 in all."""
    rng = np.random.default_rng(0)
    some = seconds(
        lambda: literal.literal_refit_test(probs, labels, measure, LITERAL_REFITS, 0.05, rng)
    )
    return some * (N_RESAMPLES + 1) / (LITERAL_REFITS + 1)


def literal_null(probs: np.ndarray, measure: str, lean: bool) -> float:
    """Seconds of lines 1 to 5 in the authors' manner, the shortest of three runs."""
    g = literal.MEASURES[measure]
    return best_seconds(
        lambda: literal.literal_null(probs, g, N_RESAMPLES, np.random.default_rng(0), lean),
        fewest=3,
    )


def measure_row(probs: np.ndarray, labels: np.ndarray, measure: str) -> Row:
    """Both sides for one measure: ours before and after the opponent, in case of a busy moment."""
    g = literal.MEASURES[measure]
    nulls = hc.nulls.available()
    before = {null: ours(probs, labels, measure, null) for null in nulls}
    opponent = {
        "literal_null": literal_null(probs, measure, lean=False),
        "literal_lean_null": literal_null(probs, measure, lean=True),
        "literal_search": best_seconds(lambda: literal.minimise(probs, labels, g)),
        "literal_refit": literal_refit(probs, labels, measure),
    }
    pairwise = ours(probs, labels, measure, "refit", "pairwise")
    after = {null: ours(probs, labels, measure, null) for null in nulls}
    return Row(
        measure=measure,
        literal_evaluations=literal.minimise(probs, labels, g)[2],
        **opponent,
        pairwise_refit=pairwise,
        **{null: min(before[null], after[null]) for null in nulls},
    )


def targets_of(rows: list[Row]) -> list[Target]:
    """What the speed of a test must reach."""
    found = []
    for row in rows:
        if row.measure in BOUNDS:
            paper, refit = BOUNDS[row.measure]
            found.append(
                at_least(f"paper's test, {row.measure}", row.literal_paper / row.paper, paper)
            )
            found.append(
                at_least(f"refit test, {row.measure}", row.literal_paper / row.refit, refit)
            )
    for row in rows:
        if row.measure.startswith("ece"):
            ratio = row.pairwise_refit / row.refit
            found.append(at_least(f"refit, pairwise / steepest, {row.measure}", ratio, 1.5))
    for row in rows:
        if row.measure in BOUNDS:
            # Equal work is equal up to what two measurements of one call differ by.
            found.append(
                at_most(f"recentered / refit, {row.measure}", row.recentered / row.refit, 1.05)
            )
    return found


def print_rows(rows: list[Row]) -> None:
    """The opponent in detail, then the ratios."""
    print_table(
        ["measure", "lines 1-5 s", "lean s", "COBYLA s", "evaluations", "paper s", "lean paper s"],
        [
            [
                row.measure,
                f"{row.literal_null:.2f}",
                f"{row.literal_lean_null:.2f}",
                f"{row.literal_search:.2f}",
                str(row.literal_evaluations),
                f"{row.literal_paper:.2f}",
                f"{row.literal_lean:.2f}",
            ]
            for row in rows
        ],
        f"The literal opponent; SciPy {scipy.__version__}, whose COBYLA is itself Python from 1.16 on",
    )
    print_table(
        [
            *("measure", "literal s", "paper ms", "ratio", "lean ratio", "refit ms", "ratio"),
            *("by pairwise ms", "recentered ms", "stacked ms", "maximized ms"),
            *("literal refit s", "refit/refit"),
        ],
        [
            [
                row.measure,
                f"{row.literal_paper:.2f}",
                f"{1e3 * row.paper:.2f}",
                f"{row.literal_paper / row.paper:,.0f}",
                f"{row.literal_lean / row.paper:,.0f}",
                f"{1e3 * row.refit:.1f}",
                f"{row.literal_paper / row.refit:,.1f}",
                f"{1e3 * row.pairwise_refit:.1f}",
                f"{1e3 * row.recentered:.1f}",
                f"{1e3 * row.stacked:.1f}",
                f"{1e3 * row.maximized:.0f}",
                f"{row.literal_refit:.0f}",
                f"{row.literal_refit / row.refit:,.0f}",
            ]
            for row in rows
        ],
        "Ours; both ratios are to the literal paper's test. The literal refit test is extrapolated "
        f"from {LITERAL_REFITS} of its {N_RESAMPLES} resamples",
    )


def run() -> list[Target]:
    """Print both tables and the targets."""
    print_title("Speed: one test against the authors' manner of running it")
    probs, labels = s1(0, N_SAMPLES, SPREAD)
    budget = hc.minimizers.Steepest.test_budget
    print(
        f"S1, N={N_SAMPLES}, M=K=10, u={SPREAD}, D={N_RESAMPLES}, one thread, after compilation; "
        f"our search has the test's default budget of {budget} evaluations a start; `pairwise` is the "
        "first-improvement search, at 200 evaluations (50 for HL and SKCE)"
    )
    rows = [measure_row(probs, labels, measure) for measure in literal.MEASURES]
    print_rows(rows)
    targets = targets_of(rows)
    print_targets(targets)
    return targets
