"""The likelihood test of "the hull contains the truth", and its e-value."""

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.stats import ks_2samp

import hullcal as hc
import oracles_truth as oracle
from hullcal import evidence
from hullcal.alternatives import alternatives
from hullcal.likelihood import fit_mixture
from hullcal.objectives.chunked import ArrayPasses, Cases
from hullcal.words import facts_of


def drawn(probs, weights, seed=0):
    """Labels that follow a combination."""
    truth = oracle.mixture(probs, np.asarray(weights))
    levels = np.random.default_rng(seed).random((len(truth), 1)) * truth.sum(axis=1, keepdims=True)
    return np.minimum((truth.cumsum(axis=1) <= levels).sum(axis=1), truth.shape[1] - 1)


def members(n=60, m=4, k=3, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.full(k, 1.0), size=n)
    return np.stack(
        [[rng.dirichlet(np.maximum(k * p / spread, 0.05)) for _ in range(m)] for p in centre]
    )


def judged(probs, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        return hc.truth_test(probs, labels, **{"n_resamples": 19, "rng": 0} | options)


PROBS = members()
LABELS = drawn(PROBS, [0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(("n", "m", "k"), [(60, 4, 3), (25, 2, 2), (40, 6, 5), (8, 10, 4)])
def test_weights_are_those_of_em_and_their_gap_is_certified(n, m, k):
    probs = members(n, m, k, seed=n)
    labels = drawn(probs, np.full(m, 1 / m), seed=1)
    found = judged(probs, labels, n_resamples=0)
    best = oracle.log_likelihood(probs, labels, oracle.most_likely(probs, labels))
    assert found.log_likelihood == pytest.approx(best, abs=1e-5)
    assert found.log_likelihood + found.gap >= best
    assert 0 <= found.gap <= 1e-6
    assert found.weights.sum() == pytest.approx(1)
    assert found.log_likelihood == pytest.approx(
        oracle.log_likelihood(probs, labels, found.weights), abs=1e-9
    )


def test_the_bound_holds_however_few_steps_are_taken():
    passes = ArrayPasses(PROBS, LABELS.astype(np.int32), np.arange(4), 1)
    best = fit_mixture(passes, Cases.data()).log_likelihoods[0]
    for n_steps in range(4):
        short = fit_mixture(passes, Cases.data(), n_steps=n_steps)
        assert short.upper_bounds[0] >= best - 1e-12
    assert fit_mixture(passes, Cases.data(), n_steps=0).gaps[0] > 1e-3


@pytest.mark.parametrize(("m", "k"), [(3, 3), (2, 2), (4, 6)])
def test_the_statistic_against_its_equations(m, k):
    probs = members(50, m, k, seed=k)
    labels = drawn(probs, np.full(m, 1 / m), seed=k)
    found = judged(probs, labels, n_resamples=0)
    assert found.statistic == pytest.approx(oracle.statistic(probs, labels), abs=1e-5)
    base = oracle.mixture(probs, found.weights)
    pool = oracle.fitted(probs, labels, base, "pool", 10.0)
    np.testing.assert_allclose(found.pool, pool, atol=1e-5)
    heat = oracle.fitted(probs, labels, base, "temperature", 1.0)[0]
    assert found.temperature == pytest.approx(1 / (1 + heat), abs=1e-5)


@pytest.mark.parametrize("power", [1.0, 0.3])
def test_the_evalue_against_its_equations(power, monkeypatch):
    probs = members(40, 3, 3, seed=1)
    labels = drawn(probs**power, [0.2, 0.5, 0.3])
    order = np.random.default_rng(2).permutation(40)
    # Rows as they come: their place is the address.
    monkeypatch.setattr(evidence, "_addresses", lambda *_: np.argsort(order))
    found = judged(probs, labels, n_resamples=0).log_evalue
    ends = [10, 15, 20, 25, 31, 38, 40]
    assert found == pytest.approx(oracle.log_evalue(probs[order], labels[order], ends), abs=1e-4)


def test_null_values_against_the_exact_distribution_of_a_tiny_case():
    probs = members(5, 2, 2, seed=3)
    labels = np.array([0, 1, 1, 0, 1])
    found = judged(probs, labels, n_resamples=4000)
    truth = oracle.mixture(probs, found.weights)
    reached = 0.0
    for other in itertools.product(range(2), repeat=5):
        chance = np.prod([truth[n, y] for n, y in enumerate(other)])
        value = judged(probs, np.array(other), n_resamples=0).statistic
        reached += chance * (value >= found.statistic - 1e-9)
    assert found.pvalue == pytest.approx(reached, abs=4 * math.sqrt(0.25 / 4000))


def test_no_order_of_rows_members_or_classes_changes_the_answer():
    rng = np.random.default_rng(5)
    found = judged(PROBS, LABELS)
    rows, which, classes = (rng.permutation(n) for n in PROBS.shape)
    other = judged(
        PROBS[rows][:, which][:, :, classes], np.argsort(classes)[LABELS[rows]], n_resamples=0
    )
    assert other.statistic == pytest.approx(found.statistic, abs=1e-9)
    np.testing.assert_allclose(other.weights, found.weights[which], atol=1e-7)
    assert other.log_evalue == pytest.approx(found.log_evalue, abs=1e-9)


def test_another_seed_gives_other_null_values_and_the_same_statistic():
    one, two = judged(PROBS, LABELS), judged(PROBS, LABELS, rng=1)
    assert one.statistic == two.statistic
    assert not np.array_equal(one.null_distribution, two.null_distribution)
    assert one.log_evalue != two.log_evalue


def test_an_impossible_label_refutes_the_hypothesis():
    probs = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]] * 30)
    labels = np.array([0] * 20 + [1] * 9 + [2])
    found = judged(probs, labels)
    assert found.statistic == found.evalue == math.inf
    assert found.pvalue == 1 / 20
    assert found.impossible == (29,)
    assert "Impossible" in str(found)
    assert "29" in str(found)
    assert judged(probs, labels, n_resamples=0).pvalue == 0.0


@pytest.mark.parametrize(
    ("coefficients", "words"),
    [
        ([-0.03, 0.0, 0.1], "deserves less weight: member 0 (-0.03); more: member 2 (+0.10)"),
        ([-0.03, 0.0, -0.2], "deserves less weight: member 2 (-0.20)"),
        ([0.03, 0.0, 0.1], "deserves more weight: member 2 (+0.10)"),
        ([0.0, 0.0, 0.0], None),
    ],
)
def test_members_that_deserve_another_weight_are_named_with_their_coefficients(coefficients, words):
    probs = members(m=3)
    found = hc.truth_test(probs, drawn(probs, [1, 0, 0]), n_resamples=0, rng=0)
    found = dataclasses.replace(found, pool=np.array([0.0, *coefficients]))
    assert facts_of(found).get("pool") == words


def test_surprises_are_the_rows_with_the_least_likely_labels():
    found = judged(PROBS, LABELS, n_resamples=0)
    chances = oracle.mixture(PROBS, found.weights)[np.arange(60), LABELS]
    assert found.surprises == tuple(np.argsort(chances, kind="stable")[:10])
    np.testing.assert_allclose(found.surprise_probabilities, np.sort(chances)[:10])


def test_the_member_that_counts_too_much_is_named():
    probs = members(600, 3, 3, seed=4)
    noise = np.random.default_rng(0).dirichlet([0.2, 0.2, 0.2], size=600)
    both = hc.ClassifierSet(
        np.stack([probs[:, 0], 0.5 * probs[:, 0] + 0.5 * noise], axis=1), members=["good", "noisy"]
    )
    law = probs[:, 0] ** 2
    labels = drawn((law / law.sum(axis=1, keepdims=True))[:, None], [1.0])
    found = judged(both, labels, n_resamples=0)
    assert found.pool[1] > found.pool[2]
    assert "deserves less weight: noisy (" in str(found)


@pytest.mark.parametrize(("power", "said"), [(0.5, "overconfident"), (2.0, "underconfident")])
def test_the_temperature_tells_the_direction(power, said):
    probs = members(800, 3, 4, spread=0.3)
    truth = probs.mean(axis=1) ** power
    labels = drawn((truth / truth.sum(axis=1, keepdims=True))[:, None], [1.0])
    found = judged(probs, labels, n_resamples=39)
    assert found.direction == said
    assert found.temperature == pytest.approx(1 / power, rel=0.2)
    assert found.rejected
    assert said in str(found)


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (np.array([[[0.5, 0.5]]]), [0]),
        (np.array([[[1.0, 0.0], [0.0, 1.0]]] * 12), [0, 1] * 6),
        (np.full((20, 3, 4), 0.25), [0, 1, 2, 3] * 5),
        (np.array([[[1.0, 0.0, 0.0]]] * 9), [0] * 9),
        (members(6, 12, 3), [0, 1, 2] * 2),
        (PROBS[:, :1], LABELS),
    ],
    ids=["one row", "certain", "identical", "one class predicted", "few rows", "one member"],
)
def test_odd_sets_are_tested_without_nan(probs, labels):
    found = judged(probs, labels)
    assert (found.hypothesis == "the classifier is calibrated") == (probs.shape[1] == 1)
    assert 0 < found.pvalue <= 1
    assert not np.isnan(found.null_distribution).any()
    assert not math.isnan(found.evalue)
    assert not np.isnan([*found.weights, *found.pool, found.temperature]).any()


@pytest.mark.parametrize("least", [5e-324, 1e-310, 1e-300])
def test_a_label_of_the_least_probability_is_evidence_and_no_nan(least):
    # Half of the smallest double is 0, and so was its share in any combination of more members.
    probs = np.concatenate([members(200, 8, 2), np.full((200, 8, 1), least)], axis=2)
    labels = drawn(probs[:, :, :2], np.full(8, 1 / 8))
    labels[3] = 2
    found = judged(probs, labels)
    assert (found.impossible, found.pvalue) == ((), 1 / 20)
    monitor = hc.Monitor(n_members=8, n_classes=3)
    monitor.update(probs, labels)
    for each in (found.statistic, found.log_evalue, -found.log_likelihood, monitor.log_evalue):
        assert 600 < each < 1000
    assert hc.io.from_json(hc.io.to_json(found)) == [found]


def test_labels_against_the_predictions_have_the_largest_temperature():
    probs = np.array([[[0.9, 0.1]], [[0.2, 0.8]]] * 30)
    found = judged(probs, [1, 0] * 30)
    assert found.temperature == 1000.0
    assert found.rejected
    assert "overconfident" in str(found)
    assert hc.io.from_json(hc.io.to_json([found])) == [found]


def test_copies_of_members_share_their_weight():
    twice = np.concatenate([PROBS, PROBS[:, :1]], axis=1)
    one, two = judged(PROBS, LABELS), judged(twice, LABELS)
    assert two.statistic == pytest.approx(one.statistic, abs=1e-9)
    assert two.weights[0] == pytest.approx(two.weights[4])
    assert two.weights[0] + two.weights[4] == pytest.approx(one.weights[0])


def test_a_measure_is_tested_with_labels_from_the_likeliest_combination():
    found = judged(PROBS, LABELS, measure="ece_conf", n_resamples=99)
    weights = judged(PROBS, LABELS, n_resamples=0).weights
    redrawn = [
        judged(PROBS, drawn(PROBS, weights, seed), measure="ece_conf", n_resamples=1).statistic
        for seed in range(60)
    ]
    assert ks_2samp(found.null_distribution, redrawn).pvalue > 0.001
    assert found.hypothesis == judged(PROBS, LABELS, n_resamples=0).hypothesis


def test_a_run_is_resumed_from_its_journal(tmp_path):
    seen = []
    first = judged(PROBS, LABELS, journal=tmp_path)
    assert hc.io.from_json(hc.io.to_json([first])) == [first]
    assert "likelihood" in hc.io.to_csv([first])
    again = judged(
        PROBS, LABELS, journal=tmp_path, rng=None, progress=lambda *told: seen.append(told)
    )
    assert again == first
    assert seen[-1] == (19, 19)
    with pytest.raises(hc.InvalidInputError, match="same data"):
        judged(PROBS, 2 - LABELS, journal=tmp_path)


def test_resampling_stops_early():
    found = judged(PROBS, LABELS, n_resamples=999, stop_after=5)
    assert found.n_resamples < 999
    assert found.pvalue == pytest.approx(5 / (found.n_resamples + 1))


def test_bad_arguments_are_refused():
    for options, said in (
        ({"n_resamples": -1}, "n_resamples"),
        ({"alpha": 1.0}, "alpha"),
        ({"measure": "brier"}, "measure"),
        ({"n_resamples": 0, "measure": "ece_conf"}, "n_resamples"),
    ):
        with pytest.raises(hc.InvalidInputError, match=said):
            judged(PROBS, LABELS, **options)


def test_families_by_the_number_of_classes():
    # Coefficients by class for few classes only, and none at all for two or many.
    assert [len(alternatives(k)) for k in (2, 3, 5, 6, 50, 51)] == [2, 4, 4, 3, 3, 2]
    probs = members(30, 2, 51, seed=2)
    found = judged(probs, drawn(probs, [0.5, 0.5]))
    assert np.isfinite(found.null_distribution).all()


@pytest.mark.parametrize("sees", [0, 1], ids=["one class off", "handedness"])
def test_what_a_pool_cannot_see_is_seen(sees):
    probs = members(600, 4, 3, seed=5, spread=0.5)
    law = probs.mean(axis=1)
    if sees == 0:
        law = law * [0.4, 1.0, 1.0]
    else:
        # Each class gains what follows it in the circle, and loses what comes before.
        law = law * np.exp(2.0 * (np.roll(law, -1, axis=1) - np.roll(law, 1, axis=1)))
    found = judged(probs, drawn((law / law.sum(axis=1, keepdims=True))[:, None], [1.0]))
    assert found.rejected


# Rows in ranges, and beyond the rows that predictors are fitted on ----------------------------------


@pytest.fixture(scope="module")
def many():
    probs = members(2_000, 3, 3, seed=8)
    probs = np.concatenate([probs] * 10)
    return probs.astype(np.float32), drawn(probs, [0.5, 0.5, 0.0], seed=2)


def test_threads_and_layouts_of_the_same_numbers_change_no_bit(many):
    probs, labels = many
    found = judged(probs, labels, n_resamples=3)
    assert not found.rejected
    for other in (np.asfortranarray(probs), probs.astype(">f4"), probs[::-1][::-1]):
        again = judged(other, labels, n_resamples=3, n_jobs=2)
        np.testing.assert_array_equal(again.null_distribution, found.null_distribution)
        assert (again.statistic, again.log_evalue) == (found.statistic, found.log_evalue)


def test_many_rows_against_the_equations(many):
    probs, labels = many
    found = judged(probs, labels, n_resamples=0)
    exact = probs / probs.sum(axis=2, dtype=float, keepdims=True)
    best = oracle.log_likelihood(exact, labels, found.weights)
    assert found.log_likelihood == pytest.approx(best, rel=1e-12)
    assert found.log_evalue < 0
    wrong = drawn(probs[:, ::-1] ** 0.3, [1.0, 0.0, 0.0])
    assert judged(probs, wrong, n_resamples=0).log_evalue > 100


# E-values -------------------------------------------------------------------------------------------


def test_evalues_multiply():
    assert hc.combine_evalues([2.0, 0.5, 30.0]) == 30.0
    found = judged(PROBS, LABELS, n_resamples=0)
    assert hc.combine_evalues([found, found]) == pytest.approx(found.evalue**2)
    for bad in ([], [-1.0], [math.nan], ["a"], [0.0, math.inf]):
        with pytest.raises(hc.InvalidInputError, match="evalues"):
            hc.combine_evalues(bad)


def test_the_mean_evalue_over_all_labellings_is_at_most_one(monkeypatch):
    # Exact: every labelling of the rows, weighted by its probability under a combination.
    monkeypatch.setattr(evidence, "_FIRST_FIT", 4)
    probs = members(7, 2, 2, seed=4)
    truth = oracle.mixture(probs, np.array([0.3, 0.7]))
    mean = 0.0
    for labels in itertools.product(range(2), repeat=7):
        chance = np.prod([truth[n, y] for n, y in enumerate(labels)])
        mean += chance * judged(probs, np.array(labels), n_resamples=0).evalue
    assert 0.0 < mean <= 1.0


def test_evalues_of_several_orders_are_averaged():
    one = [judged(PROBS, LABELS, n_resamples=0, rng=seed).log_evalue for seed in range(20)]
    several = [
        judged(PROBS, LABELS, n_resamples=0, n_orders=8, rng=seed).log_evalue for seed in range(20)
    ]
    assert np.std(several) < 0.6 * np.std(one)
    assert np.mean(np.exp(several)) == pytest.approx(np.mean(np.exp(one)), rel=0.5)
    found = judged(PROBS, LABELS, n_resamples=0, n_orders=8)
    assert found.settings["n_orders"] == 8
    with pytest.raises(hc.InvalidInputError, match="n_orders"):
        judged(PROBS, LABELS, n_orders=0)


@pytest.mark.parametrize("row", [[0.6, 0.4], [0.5, 0.3, 0.2]])
def test_rows_that_predictions_cannot_tell_apart_are_not_taken_in_the_order_of_their_labels(row):
    # Sorted by label, a sequence is easily predicted until the label changes, and then is not.
    probs = np.array([[row, np.full(len(row), 1 / len(row))]] * 400)
    labels = drawn(probs, [1.0, 0.0])
    mixed = judged(probs, labels, n_resamples=0).log_evalue
    in_order = judged(probs, np.sort(labels), n_resamples=0).log_evalue
    assert in_order == pytest.approx(mixed, abs=3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sums_that_are_all_too_small_are_no_evidence(dtype):
    # What rounding may leave of a row's sum adds up over the rows of a likelihood.
    probs = members(500, 3, 3, seed=6)
    labels = drawn(probs, [0.3, 0.3, 0.4])
    short = (probs * (0.99 if dtype == np.float16 else 1 - 1e-6)).astype(dtype)
    exact = short / short.sum(axis=2, dtype=float, keepdims=True)
    found, other = (judged(each, labels, n_resamples=0) for each in (short, exact))
    assert found.statistic == pytest.approx(other.statistic, abs=1e-6)
    assert found.log_evalue < 1.0


@pytest.mark.parametrize(
    "probs",
    [
        np.repeat(members(80, 1, 3), 3, axis=1),
        np.where(np.arange(3) == np.arange(80)[:, None, None] % 3, 1 - 2e-300, 1e-300)
        * np.ones((80, 2, 3)),
        members(80, 12, 3, spread=50.0),
        np.round(members(80, 4, 3), 1)[np.arange(80) % 5],
    ],
    ids=["identical members", "tiny probabilities", "nearly certain members", "duplicated rows"],
)
def test_evidence_against_a_hull_with_the_truth_is_rare(probs):
    probs = probs / probs.sum(axis=2, keepdims=True)
    m = probs.shape[1]
    logs = [
        judged(probs, drawn(probs, np.full(m, 1 / m), seed), n_resamples=0, rng=seed).log_evalue
        for seed in range(40)
    ]
    assert np.mean(np.exp(logs)) < 1.0
    assert np.max(logs) < math.log(20)
