"""Sets at the edge of arithmetic: no NaN, the oracle's value, and a p-value in (0, 1]."""

import math
from dataclasses import replace

import numpy as np
import pytest

import hullcal as hc
import oracles

#: Every measure with the equation it must follow, and every null.
ORACLES = {name: getattr(oracles, name) for name in hc.measures.available()}
NULLS = hc.nulls.available()
#: Oracles and loops add up in other orders.
NEAR = 1e-9


def kind_of(number):
    """Which measure, and which null."""
    names = [*ORACLES]
    return f"{names[number % len(names)]} {NULLS[number // len(names) % len(NULLS)]}"


def attempt(number, rng):
    """Draw a set, and compare what is computed of it with what must hold."""
    measure, null = kind_of(number).split()
    probs, labels = drawn(rng)
    checked = hc.ClassifierSet(probs)
    if measure.startswith("skce") and len(labels) < 2:
        with pytest.raises(hc.InvalidInputError, match=measure):  # pairs need two rows
            hc.calibration_test(checked, labels, measure=measure, null=null, n_resamples=9, rng=0)
        return "refused"
    _compare(checked.probs[:, rng.integers(checked.n_members)], labels, measure, rng)
    weights = rng.dirichlet(np.full(checked.n_members, 0.5))
    _compare(checked.mix(weights / weights.sum()), labels, measure, rng)
    _check_test(checked, labels, measure, null, rng)
    return "done"


def drawn(rng):
    """Probabilities of shape (N, M, K) and labels, with whatever makes arithmetic hard."""
    n, m, k = rng.integers(1, 41), rng.integers(1, 7), rng.integers(2, 9)
    n = 1 if not rng.integers(12) else n
    kind = rng.integers(7)
    if kind == 0:  # ties, on the edges of bins
        probs = rng.multinomial(10, np.full(k, 1 / k), size=(n, m)) / 10
    elif kind == 1:  # certain, and sometimes certainly wrong
        probs = np.eye(k)[rng.integers(0, k, (n, m))]
    elif kind == 2:  # everybody says the same
        probs = np.repeat(rng.dirichlet(np.ones(k), size=(n, 1)), m, axis=1)
    elif kind == 3:  # no row differs from another
        probs = np.repeat(rng.dirichlet(np.ones(k), size=(1, m)), n, axis=0)
    elif kind == 4:  # numbers too small to have all their digits
        probs = rng.dirichlet(np.full(k, 0.3), size=(n, m))
        probs[..., 0] = rng.choice([5e-324, 1e-310, 1e-300, 0.0], (n, m))
        rest = probs[..., 1:]
        probs[..., 1:] = np.where(rest.sum(-1, keepdims=True) > 0, rest, 1)
        probs[..., 1:] /= probs[..., 1:].sum(-1, keepdims=True)
    elif kind == 5:  # far from each other
        probs = rng.dirichlet(np.full(k, 0.02), size=(n, m)) + 1e-300
        probs /= probs.sum(-1, keepdims=True)
    else:
        probs = rng.dirichlet(np.ones(k), size=(n, m))
    if m > 1 and not rng.integers(4):
        probs[:, -1] = probs[:, 0]  # a member twice
    labels = rng.integers(0, k, n)
    if not rng.integers(4):
        labels = np.full(n, rng.integers(k))
    dtype = (np.float16, np.float32, np.float64, np.float64)[rng.integers(4)]
    if dtype == np.float16:
        # Half precision rounds by more than its rows may be off, unless digits are few.
        counts = np.floor(probs * 64)
        counts += (64 - counts.sum(-1, keepdims=True)) * np.eye(k)[probs.argmax(axis=-1)]
        probs = counts / 64
    return probs.astype(dtype), labels


def _compare(probs, labels, measure, rng):
    """The value of one classifier, and that of the equation written out."""
    given = hc.measures.resolve(measure)
    oracle = ORACLES[measure]
    # What is computed with, in all its digits: rows may have been renormalised.
    checked = hc.ClassifierSet(probs).probs[:, 0].astype(np.float64)
    if not measure.startswith("skce") and rng.integers(2):
        n_bins = int(rng.choice([1, 2, 7, 15, 50]))
        given, wanted = replace(given, n_bins=n_bins), oracle(checked, labels, n_bins)
    else:
        wanted = oracle(checked, labels)
    value = given(probs, labels)
    assert not math.isnan(value), (measure, value)
    same = value == wanted or abs(value - wanted) <= NEAR * max(1, abs(wanted))
    assert same, f"{given} is {value!r}, and its equation {wanted!r}"


def _check_test(checked, labels, measure, null, rng):
    seed, n_resamples = int(rng.integers(2**62)), int(rng.choice([1, 9, 19]))
    result = hc.calibration_test(
        checked, labels, measure=measure, null=null, n_resamples=n_resamples, rng=seed
    )
    assert not math.isnan(result.statistic), result.statistic
    assert not np.isnan(result.null_distribution).any(), result.null_distribution
    assert len(result.null_distribution) == n_resamples
    assert 0 < result.pvalue <= 1, result.pvalue
    assert (result.weights >= 0).all(), result.weights
    assert abs(result.weights.sum() - 1) < 1e-9, result.weights
    assert result.rejected == (result.pvalue <= 0.05)
    assert result.pvalue == oracles.p_value(result.statistic, list(result.null_distribution))
    assert "nan" not in str(result).split()
    mixed = checked.mix(result.weights)
    if not _at_a_jump(mixed):
        # The minimum is the measure at the weights, whatever the search did.
        value = float(hc.measures.resolve(measure)(mixed, labels))
        near = abs(value - result.minimum) <= 1e-5 * max(1, abs(value))
        assert value == result.minimum or near, (value, result.minimum)
    # And the statistic is that, or a mean of values of which it is the smallest.
    assert result.minimum <= result.statistic + 1e-12, (result.minimum, result.statistic)
    if null in ("paper", "maximized"):
        assert result.minimum == result.statistic
    again = hc.io.from_json(hc.io.to_json(result))[0]
    assert again == result


def _at_a_jump(mixed, n_bins=10, width=1e-6):
    """Whether the last digits of a mixture decide on a bin, a predicted class or an order."""
    edges = np.abs(mixed * n_bins - np.rint(mixed * n_bins)) < width
    top = np.sort(mixed, axis=1)[:, -2:]
    ties = np.diff(np.sort(mixed, axis=0), axis=0) < width
    tiny = mixed < width  # which Hosmer and Lemeshow divide by
    return edges.any() or (np.diff(top, axis=1) < width).any() or ties.any() or tiny.any()


def warm_up():
    """Compile every measure with every null."""
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), size=(12, 2)), rng.integers(0, 3, 12)
    for number in range(len(ORACLES) * len(NULLS)):
        measure, null = kind_of(number).split()
        hc.calibration_test(probs, labels, measure=measure, null=null, n_resamples=2, rng=0)
