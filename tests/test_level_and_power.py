"""Does every null keep its level under its own hypothesis, and which one sees more?

The bound on a level is the 99 % quantile of the binomial distribution at alpha; `refit` in S1 is held
to it from both sides. Seeds are fixed, so a test either always passes or always fails.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

from simulation import ALPHA, MEASURES, NULLS, SCENARIOS, Cell, cells, rejections

N_SETS = 100
#: 1/20 is 0.05 as well; the full grid below takes three times as many.
FEW_RESAMPLES = 19


def bounds(n_sets: int, n_cells: int = 1) -> tuple[int, int]:
    """Fewest and most rejections that an exact test has in 99 % of families of `n_cells`."""
    tail = 0.01 / n_cells
    return int(binom.ppf(tail, n_sets, ALPHA)), int(binom.ppf(1 - tail, n_sets, ALPHA))


#: Every null, every kind of measure, the middle of the simplex and a vertex; the full grid is below.
LEVEL = [
    *(
        Cell("S1 u=1", measure, null)
        for measure in ("ece_conf", "ece_cwise", "skce_ul")
        for null in ("paper", "recentered", "refit")
    ),
    *(Cell("S1 vertex u=1", measure, "refit") for measure in ("ece_conf", "skce_ul")),
    *(Cell("small S1 u=1", measure, "paper") for measure in ("hl_cwise", "skce_uq", "skce_b")),
    *(Cell("small S1 u=1", measure, "refit") for measure in ("hl_cwise", "skce_b")),
    Cell("small S1 u=1", "skce_uq", "recentered"),
    *(Cell("calibrated N=150", "ece_conf", null) for null in ("paper", "maximized", "stacked")),
    Cell("S1 u=1", "ece_conf", "stacked"),
    Cell("S1 vertex u=.1", "ece_cwise", "stacked"),
    Cell("small S1 u=1", "hl_cwise", "stacked"),
]


@pytest.mark.parametrize("cell", LEVEL, ids=str)
def test_a_true_hypothesis_is_rejected_no_more_often_than_alpha(cell):
    assert cell.hypothesis_holds
    fewest, most = bounds(N_SETS)
    count = rejections(cell, N_SETS, FEW_RESAMPLES)
    assert count <= most
    if cell.null == "refit":
        assert count >= fewest


def test_recentered_is_a_little_too_eager_where_the_truth_is_outside():
    # Calibrated, but not the truth: over 400 sets `recentered` rejects .098, .125 and .105 at N = 150,
    # 300 and 1000, beyond the 99 % bound of .078; a fine grid of weights in place of the search gives
    # the same, so it is the null and not the search. Held here to the bound of a level of .125, and to
    # less than `refit`, which tests another hypothesis.
    recentered, refit = (
        rejections(Cell("calibrated N=300", "ece_conf", null), N_SETS, FEW_RESAMPLES)
        for null in ("recentered", "refit")
    )
    assert recentered <= binom.ppf(0.99, N_SETS, 0.125)
    assert recentered < refit


def test_refit_rejects_a_calibrated_set_without_the_truth():
    # A control: if `refit` kept its level here, the two hypotheses would not have been told apart.
    cell = Cell("calibrated N=300", "ece_conf", "refit")
    assert not cell.hypothesis_holds
    # It rejects in a fifth of sets; 300 of them leave no doubt.
    _, most = bounds(300)
    assert rejections(cell, 300, FEW_RESAMPLES) > most


@pytest.mark.parametrize("scenario", ["S3 .15 u=1", "S3 .25 u=1"])
def test_recentered_sees_more_than_paper_and_refit_more_than_both(scenario):
    paper, recentered, refit = (
        rejections(Cell(scenario, "ece_conf", null), N_SETS, FEW_RESAMPLES)
        for null in ("paper", "recentered", "refit")
    )
    assert paper < recentered
    assert recentered <= refit


def test_stacked_sees_more_than_recentered_and_errs_less_where_the_truth_is_outside():
    # Over 300 such sets `stacked` rejects .077 and `recentered` .123; the same sets are counted here.
    stacked, recentered = (
        rejections(Cell("S3 .25 u=1", "ece_cwise", null), N_SETS, FEW_RESAMPLES)
        for null in ("stacked", "recentered")
    )
    assert stacked > 3 * recentered
    stacked, recentered = (
        rejections(Cell("calibrated N=300", "ece_conf", null), N_SETS, FEW_RESAMPLES)
        for null in ("stacked", "recentered")
    )
    assert stacked <= min(recentered, bounds(N_SETS)[1])


GRID = list(cells(list(SCENARIOS), MEASURES, NULLS))
GRID_SETS = 400


@pytest.mark.statistical
@pytest.mark.parametrize("cell", [cell for cell in GRID if cell.hypothesis_holds], ids=str)
def test_level_over_the_full_grid(cell):
    n_cells = sum(cell.hypothesis_holds for cell in GRID)
    fewest, most = bounds(GRID_SETS, n_cells)
    if cell.null == "recentered" and not SCENARIOS[cell.scenario].truth:
        # Known to exceed alpha; see the test on its eagerness above.
        most = int(binom.ppf(1 - 0.01 / n_cells, GRID_SETS, 0.125))
    count = rejections(cell, GRID_SETS)
    assert count <= most
    if cell.null == "refit":
        assert count >= fewest


@pytest.mark.statistical
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "hl_cwise", "skce_ul"])
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name.startswith("S3")])
def test_refit_sees_at_least_as_much_as_recentered_over_the_full_grid(scenario, measure):
    recentered, refit = (
        rejections(Cell(scenario, measure, null), GRID_SETS) for null in ("recentered", "refit")
    )
    # Both counts are noisy; three standard errors of their difference are allowed.
    noise = 3 * (2 * GRID_SETS * 0.25) ** 0.5
    assert refit >= recentered - noise
