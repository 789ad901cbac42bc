"""What every search owes its caller, and what the exact one promises beyond that."""

import itertools
import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import HullcalWarning, InvalidInputError
from hullcal.objectives.memory import InMemory

SEARCHES = hc.minimizers.available()
MEASURES = hc.measures.available()
UNCOMPILED = bool(numba.config.DISABLE_JIT)
#: Evaluations in the tests of the contract; COBYLA's are Python calls of some milliseconds.
BUDGETS = {"steepest": 60, "pairwise": 400, "random": 400, "cobyla": 80, "slsqp": 200, "exact": 400}
if UNCOMPILED:
    BUDGETS = dict.fromkeys(BUDGETS, 30)

needs_compiler = pytest.mark.skipif(UNCOMPILED, reason="so many evaluations are for compiled loops")


def smooth_set(seed, n=40, m=4, k=3):
    """Random members, and labels from one of their combinations."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), size=(n, m))
    truth = oracles.mixture(probs, rng.dirichlet(np.ones(m)))
    return probs, oracles.draw_labels(rng, truth)


def with_budget(name, budget=None):
    return type(hc.minimizers.resolve(name))(max_evaluations=budget or BUDGETS[name])


def takes(search, measure, n_members):
    try:
        hc.minimizers.resolve(search).check(hc.measures.resolve(measure), n_members)
    except InvalidInputError:
        return False
    return True


def combinations(n_members):
    """The searches and measures that go together for a set of that size."""
    return [
        pytest.param(search, measure, id=f"{search}-{measure}")
        for search, measure in itertools.product(SEARCHES, MEASURES)
        if takes(search, measure, n_members)
    ]


def members_for(search):
    """As many members as the search can take."""
    return 2 if search == "exact" else 4


every_combination = pytest.mark.parametrize(("search", "measure"), combinations(2))
every_search = pytest.mark.parametrize("search", SEARCHES)


def find(probs, labels, search, measure, rng=0, budget=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)  # few rows
        return hc.minimize(
            probs, labels, measure=measure, minimizer=with_budget(search, budget), rng=rng
        )


def measured(measure, probs, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        return hc.measures.resolve(measure)(probs, labels)


def python_ece(probs, labels):
    return oracles.ece_conf(probs, labels)


# The list


@every_search
def test_a_search_is_a_frozen_value_with_a_name(search):
    value = hc.minimizers.resolve(search)
    assert value.name == search
    assert hc.minimizers.resolve(value) is value
    assert getattr(hc.minimizers, type(value).__name__) is type(value)
    assert len({value, type(value)(), with_budget(search)}) == 2
    with pytest.raises(AttributeError):
        value.max_evaluations = 3


@every_search
@pytest.mark.parametrize("budget", [0, -1, 2.5, "100", True])
def test_a_budget_that_is_none_is_refused(search, budget):
    with pytest.raises(InvalidInputError, match="`max_evaluations`"):
        type(hc.minimizers.resolve(search))(max_evaluations=budget)


# The contract


@every_combination
@pytest.mark.parametrize("seed", range(3))
def test_the_weights_are_on_the_simplex_and_have_the_value_that_is_said(search, measure, seed):
    probs, labels = smooth_set(seed, m=members_for(search))
    found = find(probs, labels, search, measure, rng=seed)
    assert found.weights.shape == (probs.shape[1],)
    assert np.all(found.weights >= 0.0)
    assert abs(found.weights.sum() - 1.0) <= 1e-12
    mixed = hc.ClassifierSet(probs).mix(found.weights)
    assert found.value == pytest.approx(measured(measure, mixed, labels), abs=1e-10)
    assert isinstance(found.value, float)
    assert isinstance(found.converged, bool)
    assert isinstance(found.n_evaluations, int)
    assert found.n_evaluations >= 1
    assert found.measure == measure
    assert found.minimizer == search


@every_combination
def test_a_search_is_not_worse_than_the_mean(search, measure):
    for seed in range(4):
        probs, labels = smooth_set(seed, m=members_for(search))
        mean = measured(measure, hc.ClassifierSet(probs).mean(), labels)
        assert find(probs, labels, search, measure).value <= mean + 1e-12


@needs_compiler
@pytest.mark.parametrize(
    ("search", "measure"),
    [("exact", "ece_conf"), ("exact", "ece_cwise"), ("random", "ece_cwise"), ("random", "hl_cwise")]
    + [(search, m) for search in ("slsqp", "cobyla", "pairwise") for m in MEASURES if "skce" in m],
)
def test_a_member_that_is_certain_and_right_is_found(search, measure):
    # Pairwise and the binned measures: below, in a process of its own.
    probs, labels = smooth_set(8, m=members_for(search))
    probs[:, 1] = np.eye(3)[labels]
    assert find(probs, labels, search, measure).value <= 1e-6


@every_combination
def test_the_same_seed_gives_the_same_answer(search, measure):
    probs, labels = smooth_set(1, m=members_for(search))
    once, again = (find(probs, labels, search, measure, rng=5) for _ in range(2))
    assert once == again
    from_generator = find(probs, labels, search, measure, rng=np.random.default_rng(5))
    assert find(probs, labels, search, measure, rng=from_generator.seed) == from_generator


@pytest.mark.parametrize("search", ["pairwise", "random"])
def test_another_seed_gives_another_answer(search):
    probs, labels = smooth_set(1, m=5)
    answers = {
        tuple(find(probs, labels, search, "ece_conf", rng=s, budget=400).weights) for s in range(4)
    }
    assert len(answers) > 1


@every_combination
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_members_does_not_matter(search, measure, seed):
    # Members are put in an order of their own before any search, so that nothing is left to chance.
    m = members_for(search)
    probs, labels = smooth_set(seed, m=m)
    order = np.random.default_rng(seed).permutation(m)[::-1]
    found, permuted = (find(p, labels, search, measure) for p in (probs, probs[:, order]))
    assert permuted.value == found.value
    np.testing.assert_array_equal(permuted.weights, found.weights[order])


@pytest.mark.parametrize(("search", "measure"), combinations(6))
def test_a_copy_of_a_member_changes_nothing(search, measure):
    probs, labels = smooth_set(3)
    found = find(probs, labels, search, measure)
    copied = find(probs[:, [2, 0, 1, 2, 3, 2]], labels, search, measure)
    assert copied.value == found.value
    assert copied.n_evaluations == found.n_evaluations
    np.testing.assert_array_equal(copied.weights[[1, 2, 4]], found.weights[[0, 1, 3]])
    np.testing.assert_allclose(copied.weights[[0, 3, 5]], found.weights[2] / 3, rtol=1e-15)


@every_combination
def test_one_member_needs_no_search(search, measure):
    probs, labels = smooth_set(4, m=1)
    for single in (probs, probs[:, 0], np.repeat(probs, 2, axis=1)):
        found = find(single, labels, search, measure)
        assert found.value == measured(measure, probs[:, 0], labels)
        assert found.n_evaluations == 1
        assert found.converged is True
        assert np.all(found.weights == 1.0 / len(found.weights))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("search", ["pairwise", "random"])
@pytest.mark.parametrize("budget", [1, 2, 3, 7, 50])
def test_a_budget_is_never_exceeded(search, measure, budget):
    probs, labels = smooth_set(5)
    found = find(probs, labels, search, measure, budget=budget)
    assert found.n_evaluations == budget
    assert abs(found.weights.sum() - 1.0) <= 1e-12


def test_more_evaluations_are_never_worse_for_pairwise():
    probs, labels = smooth_set(6, m=6)
    values = [
        find(probs, labels, "pairwise", "ece_conf", budget=b).value for b in (1, 2, 10, 100, 1000)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_pairwise_has_converged_only_where_no_transfer_helps():
    probs, labels = smooth_set(8, m=3)
    found = find(probs, labels, "pairwise", "ece_cwise", budget=3000)
    assert found.converged
    classifiers = hc.ClassifierSet(probs)
    for gaining, losing in itertools.permutations(range(3), 2):
        for amount in (0.5, 0.125, 0.03125, 0.0078125):
            step = min(amount, found.weights[losing])
            weights = found.weights.copy()
            weights[gaining] += step
            weights[losing] = max(weights[losing] - step, 0.0)
            moved = measured("ece_cwise", classifiers.mix(weights), labels)
            assert moved >= found.value - 1e-11
    assert not find(probs, labels, "pairwise", "ece_cwise", budget=4).converged


@pytest.mark.parametrize(
    ("search", "measure"), [("random", "ece_conf"), ("cobyla", "ece_conf"), ("slsqp", "skce_uq")]
)
def test_every_evaluation_is_counted(search, measure, monkeypatch):
    evaluated = []
    plain = InMemory.values

    def counted(self, weights, cases):
        evaluated.append(len(weights))
        return plain(self, weights, cases)

    monkeypatch.setattr(InMemory, "values", counted)
    probs, labels = smooth_set(9)
    found = find(probs, labels, search, measure)
    assert found.n_evaluations == sum(evaluated)


def test_the_value_on_an_edge_is_that_of_the_combination_that_is_returned():
    # The mean of the first row is (1/2, 1/2), or a bit beside it in another order of adding up:
    # then the predicted class, and the bin, are others than those of `mix`.
    probs = np.array([[[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]], [[0.55, 0.45]] * 3])
    for order in itertools.permutations(range(3)):
        found = find(probs[:, order], [0, 0], "random", "ece_conf", budget=1)
        mixed = hc.ClassifierSet(probs[:, order]).mix(found.weights)
        assert found.value == pytest.approx(measured("ece_conf", mixed, [0, 0]), abs=1e-10)


# What a search cannot take


@pytest.mark.parametrize("n_members", [2, 3])
def test_what_a_search_cannot_take_is_refused_by_the_names_of_both(n_members):
    probs, labels = smooth_set(0, m=n_members)
    refused = 0
    for search, measure in itertools.product(SEARCHES, MEASURES):
        if takes(search, measure, n_members):
            continue
        refused += 1
        with pytest.raises(InvalidInputError) as caught:
            hc.minimize(probs, labels, measure=measure, minimizer=search)
        message = str(caught.value)
        assert f"minimizer `{search}`" in message
        assert f"measure `{measure}`" in message or f"{n_members} members" in message
        assert "steepest" in message
        with pytest.raises(InvalidInputError, match=f"minimizer `{search}`"):
            hc.calibration_test(probs, labels, measure=measure, minimizer=search)
    assert refused == {2: 6 + 5, 3: 8 + 5}[n_members]


@pytest.mark.parametrize("search", ["exact", "slsqp"])
def test_a_callable_is_refused_by_searches_that_must_know_the_measure(search):
    # Even under the name of a measure: its breakpoints and derivatives cannot be known.
    probs, labels = smooth_set(0, m=2)
    with pytest.raises(InvalidInputError, match=f"`{search}`.*`ece_conf`"):
        hc.minimize(probs, labels, measure=oracles.ece_conf, minimizer=search)


# Exact

EXACT = {
    "ece_conf": (hc.ConfidenceECE, oracles.exact_minimum_ece_conf),
    "ece_cwise": (hc.ClasswiseECE, oracles.exact_minimum_ece_cwise),
}


def exact(probs, labels, measure):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        return hc.minimize(probs, labels, measure=measure, minimizer="exact")


@pytest.mark.parametrize("measure", EXACT)
@pytest.mark.parametrize("kind", ["smooth", "sixteenths", "corners"])
def test_exact_against_rational_arithmetic(measure, kind):
    make, oracle = EXACT[measure]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 7)), int(rng.integers(2, 4))
        n_bins = int(rng.choice([1, 2, 3, 4, 5] if n > 3 else [1, 2, 5, 10]))
        if kind == "smooth":
            probs = rng.dirichlet(np.ones(k), size=(n, 2))
        elif kind == "sixteenths":
            probs = rng.multinomial(16, np.full(k, 1 / k), size=(n, 2)) / 16
        else:
            probs = np.eye(k)[rng.integers(k, size=(n, 2))]
        labels = rng.integers(k, size=n)
        infimum = float(oracle(probs, labels, n_bins))
        found = exact(probs, labels, make(n_bins=n_bins))
        assert infimum - 1e-12 <= found.value <= infimum + 1e-9
        mixed = hc.ClassifierSet(probs).mix(found.weights)
        again = measured(make(n_bins=n_bins), mixed, labels)
        assert again == pytest.approx(found.value, abs=1e-12)


def test_an_infimum_that_is_not_attained_is_approached():
    # As by hand in the tests of the oracle: 1/12 from below, 7/12 at the breakpoint itself.
    half = [0.5, 0.5]
    probs = np.array([[half, half], [half, half], [[0.875, 0.125], half]])
    found = exact(probs, [0, 0, 1], hc.ConfidenceECE(n_bins=4))
    assert 1 / 12 <= found.value <= 1 / 12 + 1e-9


# Plain callables


@pytest.mark.parametrize("search", ["pairwise", "random"])
def test_a_python_callable_takes_the_way_of_the_measure_it_imitates(search):
    for seed in range(3):
        probs, labels = smooth_set(seed, n=15)
        compiled = find(probs, labels, search, "ece_conf", budget=60)
        python = find(probs, labels, search, python_ece, budget=60)
        assert python.value == pytest.approx(compiled.value, abs=1e-9)
        np.testing.assert_allclose(python.weights, compiled.weights, atol=1e-9)
        assert python.n_evaluations == compiled.n_evaluations
        assert python.converged == compiled.converged
        assert python.measure == "python_ece"


# Quality


@needs_compiler
@pytest.mark.parametrize("measure", ["skce_ul", "skce_uq", "skce_b"])
def test_pairwise_finds_the_minimum_that_derivatives_find(measure):
    for seed in range(4):
        probs, labels = smooth_set(seed, n=50)
        slsqp = find(probs, labels, "slsqp", measure, budget=2000)
        pairwise = find(probs, labels, "pairwise", measure, budget=5000)
        assert pairwise.value <= slsqp.value + 1e-5


# Infinities


@pytest.mark.parametrize("search", ["pairwise", "random", "cobyla"])
@pytest.mark.parametrize("seed", range(4))
def test_infinities_never_become_nan(search, seed):
    rng = np.random.default_rng(seed)
    n, m, k = 24, 3, 3
    corners = np.eye(k)[rng.integers(k, size=(n, m))]
    drawn = rng.dirichlet(np.ones(k), size=(n, m))
    probs = np.where(rng.random((n, m, 1)) < 0.7, corners, drawn)
    labels = rng.integers(k, size=n)
    found = find(probs, labels, search, hc.HosmerLemeshow(n_bins=6), budget=60)
    assert not math.isnan(found.value)
    assert abs(found.weights.sum() - 1.0) <= 1e-12


@pytest.mark.parametrize("search", ["pairwise", "random", "cobyla"])
def test_a_set_of_which_every_combination_is_infinite_has_an_answer(search):
    # Nobody gives class 2 a chance, and it comes.
    rng = np.random.default_rng(0)
    probs = np.concatenate([rng.dirichlet(np.ones(2), size=(20, 3)), np.zeros((20, 3, 1))], axis=2)
    labels = np.arange(20) % 3
    found = find(probs, labels, search, "hl_cwise", budget=40)
    assert found.value == math.inf
    assert abs(found.weights.sum() - 1.0) <= 1e-12


# Members that are certain, and on edges

APART = """
import json, sys, warnings
import numpy as np
import hullcal as hc

warnings.simplefilter("ignore", hc.HullcalWarning)
measure, found = sys.argv[1], []
for seed in range(40):
    rng = np.random.default_rng(seed)
    n, m, k = int(rng.integers(1, 30)), int(rng.integers(2, 7)), int(rng.integers(2, 5))
    probs = rng.multinomial(4, np.full(k, 1 / k), size=(n, m)) / 4
    probs[rng.random((n, m)) < 0.3] = np.eye(k)[0]
    labels = rng.integers(k, size=n)
    if seed % 4 == 0:
        probs[:, 0] = np.eye(k)[labels]  # certain and right
    search = hc.minimizers.Pairwise(max_evaluations=200)
    values = []
    for order in (slice(None), slice(None, None, -1)):
        result = hc.minimize(
            probs[:, order], labels, measure=measure, minimizer=search, rng=0
        )
        values.append(result.value)
    found.append([seed % 4 == 0, *values, *result.weights])
print(json.dumps(found))
"""


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "hl_cwise"])
def test_members_with_exact_zeros_and_ones_are_searched_safely(measure):
    # In a process of its own: a sum in the wrong place would take all other tests with it.
    done = subprocess.run(
        [sys.executable, "-c", APART, measure],
        env={**os.environ, "PYTHONPATH": str(Path(hc.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for certain_and_right, value, in_another_order, *weights in json.loads(done.stdout):
        assert value >= 0.0
        assert value == in_another_order
        assert value == pytest.approx(0.0, abs=1e-12) or not certain_and_right
        assert min(weights) >= 0.0
        assert abs(sum(weights) - 1.0) <= 1e-12


def test_the_exact_search_reaches_limits_that_rounding_hides():
    # In the third row the members differ so little that the first steps into a cell change no bin.
    # Just below .6 it shares the bin of the others: 1.7 are claimed and 2 come true, .3 of 3 rows.
    probs = [[[0.55, 0.45]] * 2] * 2 + [[[0.599, 0.401], [0.601, 0.399]]]
    with pytest.warns(hc.HullcalWarning, match="3 rows"):
        found = hc.minimize(probs, [0, 0, 1], minimizer="exact")
    assert found.value == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
@pytest.mark.parametrize(("spread", "seed"), [(0.01, 55), (0.001, 3), (0.0001, 5)])
def test_no_search_finds_less_than_the_exact_one_where_members_nearly_agree(measure, spread, seed):
    data = hc.simulation.scenario(
        "S1", n_samples=20, n_members=2, n_classes=3, spread=spread, rng=seed
    )
    found = exact(data.probs, data.labels, measure)
    searched = find(data.probs, data.labels, "pairwise", measure)
    assert found.value <= searched.value + 1e-9


@pytest.mark.parametrize(("seed", "n_members"), [(51, 3), (7, 20)])
def test_slsqp_ends_with_the_gradient_that_spends_its_budget(seed, n_members):
    data = hc.simulation.scenario(
        "S1", n_samples=60, n_members=n_members, n_classes=3, spread=1.0, rng=seed
    )
    for budget in (1, 50, 200):
        found = find(data.probs, data.labels, "slsqp", "skce_ul", budget=budget)
        # Two starts, of which each finishes a gradient and is evaluated once more at its end.
        assert found.n_evaluations <= budget + 2 * (n_members + 2)
        mixed = hc.ClassifierSet(data.probs).mix(found.weights)
        assert found.value == pytest.approx(measured("skce_ul", mixed, data.labels), abs=1e-12)
