"""Protocols: the paper's text, the authors' scripts, and every switch between them."""

from types import SimpleNamespace

import nlopt
import numpy as np
import pytest

import hullcal as hc
from hullcal import SKCE, measures, nulls
from hullcal.minimizers import Cobyla, cobyla
from hullcal.nulls.paper import Paper
from hullcal.simulation.protocols import (
    AUTHORS,
    PAPER,
    SWITCHES,
    FirstClassHosmerLemeshow,
    Protocol,
    RightClosedECE,
    resolve,
)
from simulation import random_set

SKCES = ("b", "ul", "uq")


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_protocol_is_its_name(switch):
    for protocol in (Protocol(**{switch: True}), resolve(f"authors-{switch}"), PAPER, AUTHORS):
        assert resolve(protocol.name) == protocol
    assert resolve(f"paper+{switch}") == Protocol(**{switch: True})
    assert not getattr(resolve(f"authors-{switch}"), switch)
    assert resolve(AUTHORS) is AUTHORS


@pytest.mark.parametrize("name", ["papers", "paper+", "paper-two_sided", "authors+two_sided", 3])
def test_an_unknown_protocol_is_refused_with_what_there_is(name):
    with pytest.raises(hc.InvalidInputError, match=r"Unknown protocol .*: paper.*two_sided"):
        resolve(name)


def test_the_text_changes_nothing_and_the_scripts_what_they_change():
    changed = {
        "ece_conf": RightClosedECE(n_bins=10),
        "hl_cwise": FirstClassHosmerLemeshow(n_bins=10),
        **{
            f"skce_{each}": SKCE(estimator=each, kernel="gaussian", bandwidth=2.0) for each in SKCES
        },
        "paper": Paper(rows="permuted"),
    }
    for room, kind in ((measures, "measure"), (nulls, "null")):
        for name in room.available():
            plain = room.resolve(name)
            assert getattr(PAPER, kind)(plain) is plain
            assert getattr(AUTHORS, kind)(plain) == changed.get(name, plain)


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("name", ["ece_conf", "skce_ul"])
def test_the_interpolated_quantile_decides_as_numpy_does(name, two_sided):
    protocol = Protocol(interpolated_quantile=True, two_sided=two_sided)
    for seed in range(5):
        result = hc.calibration_test(
            *random_set(seed, 40, k=4), measure=name, null="paper", n_resamples=30, rng=seed
        )
        level = protocol.smallest_level(result)
        t = abs(result.statistic) if two_sided else result.statistic
        for alpha in np.linspace(0.003, 0.997, 200):
            rejected = t > np.quantile(result.null_distribution, 1 - alpha)
            assert rejected == (alpha >= level)


@pytest.mark.parametrize("above", [0.0, 5e-324, 1e-17, 1e-16, 1e-9])
def test_no_statistic_has_a_level_above_1(above):
    # The next number after 1 - 0 is above 1, and a study would refuse a journal that holds it.
    result = SimpleNamespace(statistic=above, null_distribution=np.array([2.0, 0.0, 1.0]))
    level = Protocol(interpolated_quantile=True).smallest_level(result)
    assert 1.0 - 1e-9 < level <= 1.0


def test_a_right_closed_bin_holds_its_right_edge():
    # .5 of two bins: the left one here, the right one in the text; .75 makes the difference.
    probs, labels = [[0.5, 0.5], [0.75, 0.25]], [0, 1]
    assert hc.ConfidenceECE(n_bins=2)(probs, labels) == pytest.approx(abs(0.5 - 0.75) / 2)
    assert RightClosedECE(n_bins=2)(probs, labels) == pytest.approx((0.5 + 0.75) / 2)


def literal_first_class(probs, labels, n_bins):
    """Rows in the order of the first class's probability, cut into parts; counts in every cell."""
    total = 0.0
    for rows in np.array_split(np.argsort(probs[:, 0]), n_bins):
        for k in range(probs.shape[1]):
            observed, expected = np.sum(labels[rows] == k), probs[rows, k].sum()
            total += (observed - expected) ** 2 / expected
    return total


@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_hosmer_lemeshow_of_the_scripts_against_its_transcription(n_bins):
    probs, labels = random_set(3, 44, k=4)
    expected = literal_first_class(probs[:, 0], labels, n_bins)
    assert FirstClassHosmerLemeshow(n_bins=n_bins)(probs[:, 0], labels) == pytest.approx(expected)


def test_the_scripts_hosmer_and_lemeshow_leave_empty_cells_out_and_cut_ties_where_they_stand():
    assert FirstClassHosmerLemeshow(n_bins=1)([[1.0, 0.0], [1.0, 0.0]], [0, 0]) == 0.0
    measure = FirstClassHosmerLemeshow(n_bins=2)
    probs = np.array([[0.5, 0.3, 0.2], [0.5, 0.1, 0.4], [0.5, 0.2, 0.3], [0.5, 0.4, 0.1]])
    labels, order = np.array([0, 1, 2, 0]), [0, 2, 1, 3]
    assert measure(probs, labels) != measure(probs[order], labels[order])
    assert "ordered" in measure.traits


def test_other_rows_and_libraries_are_refused():
    with pytest.raises(hc.InvalidInputError, match="`rows` must be"):
        Paper(rows="shuffled")
    with pytest.raises(hc.InvalidInputError, match="`library` must be"):
        Cobyla(library="prima")


def test_both_programs_of_cobyla_find_about_the_same():
    sets = [random_set(seed, 40, k=4) for seed in range(6)]

    def mean_minimum(library):
        search = Cobyla(library=library)
        return np.mean([hc.minimize(*each, minimizer=search, rng=0).value for each in sets])

    start = np.mean([hc.ConfidenceECE()(probs.mean(axis=1), labels) for probs, labels in sets])
    assert mean_minimum("nlopt") == pytest.approx(mean_minimum("scipy"), rel=0.3)
    assert mean_minimum("nlopt") < 0.9 * start


def test_a_search_that_ends_in_rounding_keeps_the_best_point_it_saw():
    # On which sets its planes cannot be told apart depends on the processor; that it says so does not.
    values = []

    def g(point):
        if len(values) == 20:
            raise nlopt.RoundoffLimited
        values.append(abs(point[0] - 0.7) + (0.1 if len(values) == 19 else 0.0))
        return values[-1]

    point, n_evaluations, ended = cobyla._nlopt(g, 3, 100)
    assert abs(point[0] - 0.7) == min(values) < values[-1]
    assert (n_evaluations, ended) == (20, False)


def test_values_whose_squares_vanish_do_not_keep_a_search_for_ever():
    probs, labels = random_set(0, 40, k=4)

    def tiny(p, y):
        return 1e-250 * hc.ConfidenceECE()(p, y)

    found = hc.minimize(probs, labels, measure=tiny, minimizer=Cobyla(library="nlopt"), rng=0)
    assert found.value <= tiny(probs.mean(axis=1), labels)
