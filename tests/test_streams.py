"""Random numbers: the generator against its published answers, and everything drawn from it.

Seeds are fixed, so a test either always passes or always fails. Some forty checks at level 1e-4 each:
what is drawn correctly fails one of them with less than 1 % of all choices of seeds.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import hullcal as hc
import oracles
from hullcal._compiled import mixing, streams
from simulation import judged, objective_of, random_set

PURPOSES = (streams.ROWS, streams.LABELS, streams.WEIGHTS, streams.SEARCH)
TINY = 1e-4  # level of the checks below

# What the compiled loops offer, in one place ---------------------------------------------------


def philox(counter, key):
    words = streams.philox(*(np.uint64(word) for word in (*counter, *key)))
    return [int(word) for word in words]


# Philox ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (
            [0xFFFFFFFF] * 4,
            [0xFFFFFFFF] * 2,
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_philox_gives_the_published_answers(counter, key, answer):
    """Known answers of Random123 (philox4x32, 10 rounds)."""
    assert philox(counter, key) == answer


def literal_philox(counter, key):
    """Salmon et al. (2011), section 3.3, in Python's own integers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * x[0], 2**32)
        high_1, low_1 = divmod(0xCD9E8D57 * x[2], 2**32)
        x = [high_1 ^ x[1] ^ k[0], low_1, high_0 ^ x[3] ^ k[1], low_0]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return x


def test_philox_is_the_literal_one_everywhere():
    rng = np.random.default_rng(0)
    for _ in range(200):
        words = [int(word) for word in rng.integers(0, 2**32, size=6)]
        assert philox(words[:4], words[4:]) == literal_philox(words[:4], words[4:])


def test_a_uniform_is_made_of_the_first_53_bits_of_its_counter():
    rng = np.random.default_rng(1)
    key = streams.key_of(7)
    for purpose, (d, n, c) in zip(
        itertools.cycle(PURPOSES), rng.integers(0, 2**31, size=(40, 3)), strict=False
    ):
        a, b, *_ = literal_philox([int(n), int(c), int(d), int(purpose)], [int(k) for k in key])
        bits = (a >> 5 << 26) + (b >> 6)
        assert streams.uniform(key, purpose, int(d), int(n), int(c)) == bits / 2**53


def test_key_words_fit_their_registers_and_every_bit_of_a_seed_counts():
    seeds = [0, 1, 2**32, 2**64 + 1, 2**127, 2**127 + 1]
    keys = [tuple(int(word) for word in streams.key_of(seed)) for seed in seeds]
    assert all(0 <= word < 2**32 for key in keys for word in key)
    assert len(set(keys)) == len(seeds)


# Uniforms --------------------------------------------------------------------------------------


def test_no_two_places_share_a_draw():
    draws = [
        streams.uniform(streams.key_of(seed), purpose, d, n, c)
        for seed, purpose, d, n, c in itertools.product(
            (0, 1), PURPOSES, range(20), range(20), range(5)
        )
    ]
    assert len(set(draws)) == len(draws)


# Weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_members", [2, 3, 10])
@pytest.mark.parametrize(
    ("draw", "concentration"),
    [(streams.uniform_weights, 1.0), (streams.sparse_weights, 0.5)],
    ids=["uniform", "sparse"],
)
def test_weights_follow_their_dirichlet_distribution(draw, concentration, n_members):
    w = np.empty((4000, n_members))
    for d in range(4000):
        draw(streams.key_of(11), d, w[d])
    assert (w >= 0).all()
    np.testing.assert_allclose(w.sum(axis=1), 1, rtol=1e-14)
    marginal = stats.beta(concentration, concentration * (n_members - 1))
    for m in range(n_members):
        assert stats.kstest(w[:, m], marginal.cdf).pvalue > TINY
    # A sum of two weights is a beta variable as well: the joint law, not only the margins.
    if n_members > 2:
        pair = stats.beta(2 * concentration, concentration * (n_members - 2))
        assert stats.kstest(w[:, 0] + w[:, -1], pair.cdf).pvalue > TINY
    exact = stats.dirichlet(np.full(n_members, concentration))
    np.testing.assert_allclose(np.cov(w.T), exact.cov(), atol=0.15 * marginal.var())


# Labels ----------------------------------------------------------------------------------------


def test_labels_have_the_frequencies_of_their_rows_and_none_has_probability_zero():
    random = np.random.default_rng(8).dirichlet(np.ones(3), size=6)
    probs = np.vstack(
        [random, np.full(3, 1 / 3), [0.98, 0.01, 0.01], (1 - np.eye(3)) / 2, np.eye(3)]
    )
    seen = []

    def spy(_, labels):
        seen.append(labels)
        return 0.0

    judged(probs, probs.argmax(axis=1), measure=spy, null="refit", n_resamples=8000, rng=21)
    drawn = np.array(seen[1:])  # the first are the data
    for n, row in enumerate(probs):
        (possible,) = np.nonzero(row)
        counts = np.bincount(drawn[:, n], minlength=3)[possible]
        assert counts.sum() == 8000
        if len(possible) > 1:
            assert stats.chisquare(counts, 8000 * row[possible] / row.sum()).pvalue > TINY


def test_a_level_just_below_one_never_reaches_a_last_class_of_probability_zero():
    # Sums that round up or down; the largest uniform there is, 1 - 2**-53.
    rng = np.random.default_rng(9)
    rows = rng.dirichlet(np.ones(5), size=500)
    mixed = np.ascontiguousarray(np.hstack([rows, np.zeros((500, 2))]).T)
    cumulative = np.empty_like(mixed)
    mixing.cumulate(mixed, cumulative)
    labels = np.empty(500, dtype=np.int32)
    mixing.invert(cumulative, np.full(500, 1 - 2.0**-53), labels)
    assert labels.max() == 4
    mixing.invert(np.ascontiguousarray(cumulative[::-1] * 0 + 1.0), np.zeros(500), labels)
    assert labels.max() == 0


@pytest.mark.parametrize("n_classes", [2, 31, 32, 33, 34, 64, 65, 200])
def test_labels_of_many_classes_are_those_of_the_plain_loop(n_classes):
    rng = np.random.default_rng(n_classes)
    mixed = np.ascontiguousarray(rng.dirichlet(np.full(n_classes, 0.2), 400).T)
    mixed[:, 0], mixed[:, 1], mixed[:, 2] = 0.0, 0.0, 1.0 / n_classes
    mixed[0, 0] = mixed[-1, 1] = 1.0
    cumulative = np.empty_like(mixed)
    mixing.cumulate(mixed, cumulative)
    key = streams.key_of(9)
    plain, fast = np.empty((2, 7, 400), dtype=np.int32)
    mixing.draw_labels(cumulative, key, 3, plain)
    mixing.draw_of_many(*mixing.turned(cumulative), key, 3, fast)
    np.testing.assert_array_equal(fast, plain)
    assert plain.max() >= n_classes // 2


# Maximum-likelihood weights --------------------------------------------------------------------


def maximum_likelihood(probs, labels, row_weights=None):
    """EM weights in the user's order of members, and the rows left out."""
    objective = objective_of(probs, labels)
    left_out = objective.impossible()
    if row_weights is not None:
        objective = objective.with_row_weights(np.asarray(row_weights, dtype=float)[np.newaxis])
    return hc.ClassifierSet(probs).distinct.share(objective.maximum_likelihood()), left_out


@pytest.mark.parametrize(("m", "k"), [(2, 2), (3, 3), (5, 3), (10, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_em_against_its_literal_transcription(seed, m, k):
    probs, labels = random_set(seed, 30, m, k)
    found, left_out = maximum_likelihood(probs, labels)
    assert left_out == 0
    np.testing.assert_allclose(found, oracles.em_weights(probs, labels), rtol=0, atol=1e-9)


def test_em_leaves_out_and_counts_the_rows_that_no_member_gives_a_chance():
    probs, labels = random_set(7, 40, 3, 3)
    impossible = [3, 17, 30]
    for n in impossible:
        probs[n, :, labels[n]] = 0
        probs[n] /= probs[n].sum(axis=1, keepdims=True)
    found, left_out = maximum_likelihood(probs, labels)
    kept = np.setdiff1d(np.arange(40), impossible)
    assert left_out == 3
    np.testing.assert_allclose(found, maximum_likelihood(probs[kept], labels[kept])[0], atol=1e-12)
    np.testing.assert_allclose(found, oracles.em_weights(probs, labels), atol=1e-9)


def test_em_stays_at_the_centre_when_no_row_has_a_chance():
    probs = np.zeros((4, 3, 2))
    probs[:, :, 0] = [1.0, 1.0, 1.0]
    probs[0, 1] = [0.5, 0.5]  # members must differ, or they are one
    probs[0, 2] = [0.25, 0.75]
    found, left_out = maximum_likelihood(probs[1:], [1, 1, 1])
    np.testing.assert_allclose(found, 1 / 3)
    assert left_out == 3
    found, left_out = maximum_likelihood(probs, [0, 1, 1, 1])
    assert left_out == 3
    np.testing.assert_allclose(found, oracles.em_weights(probs, np.array([0, 1, 1, 1])), atol=1e-9)


def test_em_counts_a_row_as_often_as_it_is_drawn():
    probs, labels = random_set(12, 20, 3, 3)
    repeats = np.random.default_rng(0).multinomial(20, np.full(20, 1 / 20))
    rows = np.repeat(np.arange(20), repeats)
    found, _ = maximum_likelihood(probs, labels, repeats)
    np.testing.assert_allclose(found, maximum_likelihood(probs[rows], labels[rows])[0], atol=1e-9)


def test_em_survives_probabilities_too_small_to_invert():
    # 1 / 5e-324 is infinite, and infinity times a probability of 0 would be NaN.
    probs = np.array(
        [[[5e-324, 1.0], [0.0, 1.0], [1e-310, 1.0]], [[0.5, 0.5]] * 3, [[0.2, 0.8]] * 3]
    )
    probs[1:, 1] = [[0.6, 0.4], [0.3, 0.7]]
    found, left_out = maximum_likelihood(probs, [0, 1, 0])
    assert left_out == 0
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    for null in ("paper", "recentered", "refit", "maximized"):
        result = judged(
            probs, [0, 1, 0], null=null, measure=hc.ConfidenceECE(n_bins=2), n_resamples=19, rng=0
        )
        assert np.isfinite(result.null_distribution).all()
