"""calibration_test from input to result: the contract of every null with every measure."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal.algorithm import algorithm_1
from hullcal.minimizers import Pairwise, Steepest
from hullcal.objectives.opening import open_set
from hullcal.resampling import Loop
from simulation import NULLS, judged

MEASURES = hc.measures.available()
EVERY = [(null, measure) for null in NULLS for measure in MEASURES]
#: Coverage is measured on uncompiled loops, a hundred times slower: searches are then short.
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SEARCH = Pairwise(max_evaluations=20 if UNCOMPILED else 300)
#: For the null `maximized`, whose function of the weights is no measure.
SHORT = Steepest(max_evaluations=5)


def judge(*data, **options):
    """A short test; 2/20 is 0.1: the smallest runs that can reject, and not only by the largest rank."""
    search = SHORT if options.get("null") == "maximized" else SEARCH
    settings = {"minimizer": search, "n_resamples": 19, "alpha": 0.1, "rng": 0}
    return judged(*data, **settings | options)


def random_set(seed=0, n=30, m=3, k=3):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=(n, m)), rng.integers(k, size=n)


def brier(probs, labels):
    """A measure of the user's own."""
    return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1).mean())


# The result ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("null", "measure"), EVERY)
def test_the_result_keeps_the_contract(null, measure):
    probs, labels = random_set(1)
    before = probs.copy(), labels.copy()
    judge(probs, labels, null=null, measure=measure)
    np.testing.assert_array_equal(probs, before[0])
    np.testing.assert_array_equal(labels, before[1])
    probs.flags.writeable = labels.flags.writeable = False
    result = judge(probs, labels, null=null, measure=measure)
    t, reference = result.statistic, result.null_distribution.tolist()
    assert len(reference) == result.n_resamples == 19
    assert not np.isnan(reference).any()
    assert result.weights.shape == (3,)
    assert (result.weights >= 0).all()
    assert result.weights.sum() == pytest.approx(1, abs=1e-12)
    # p-value, decision and critical value say the same, at this level and at every other.
    assert result.pvalue == oracles.p_value(t, reference)
    assert result.critical_value == oracles.critical_value(reference, 0.1)
    assert result.rejected == (result.pvalue <= 0.1)
    for alpha in (0.04, 0.05, 0.1, 0.15, 0.5, 0.95):
        critical = oracles.critical_value(reference, alpha)
        assert result.decide(alpha) == oracles.is_above(t, critical) == (result.pvalue <= alpha)
    low, high = result.pvalue_interval
    assert 0 <= low <= (result.pvalue * 20 - 1) / 19 <= high <= 1
    # The statistic is the measure of the combination that is reported.
    mixed = hc.ClassifierSet(probs).mix(result.weights)
    assert t == pytest.approx(getattr(oracles, measure)(mixed, labels), abs=1e-10)
    search = "steepest" if null == "maximized" else "pairwise"
    assert (result.measure, result.null, result.minimizer) == (measure, null, search)
    assert (result.n_samples, result.n_members, result.n_classes) == (30, 3, 3)
    assert result.seed == 0
    assert result.n_evaluations > 19


@pytest.mark.parametrize("null", NULLS)
def test_the_hypothesis_is_said_in_words(null):
    said = judge(*random_set(), null=null).hypothesis
    assert ("truth" in said) == (null == "refit")
    assert ("calibrated" in said) == (null != "refit")


@pytest.mark.parametrize("null", NULLS)
def test_a_hopeless_set_is_rejected_and_a_true_one_is_not(null):
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(3), size=(300, 3))
    opposite = (probs.argmin(axis=2)[:, 0]).astype(int)
    sure = np.eye(3)[np.broadcast_to(((opposite + 1) % 3)[:, None], (300, 2))] * 0.98 + 0.02 / 3
    sure[:, 1] = sure[:, 1] * 0.9 + 0.1 / 3
    assert judge(sure, opposite, null=null).pvalue == 1 / 20
    labels = oracles.draw_labels(rng, probs.mean(axis=1))
    assert judge(probs, labels, null=null).pvalue > 0.1


# Seeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("null", NULLS)
def test_a_generator_is_asked_once_and_its_seed_is_kept(null):
    probs, labels = random_set(2)
    generator, twin = np.random.default_rng(5), np.random.default_rng(5)
    result = judge(probs, labels, null=null, rng=generator)
    words = twin.integers(0, 2**32, size=4, dtype=np.uint32)
    assert result.seed == sum(int(word) << (32 * i) for i, word in enumerate(words))
    assert generator.random() == twin.random()
    assert judge(probs, labels, null=null, rng=result.seed) == result
    other = judge(probs, labels, null=null, rng=generator)
    assert other.seed != result.seed
    assert not np.array_equal(other.null_distribution, result.null_distribution)


def test_without_a_seed_every_run_is_another_and_can_be_repeated():
    probs, labels = random_set(2)
    first, second = (judge(probs, labels, rng=None) for _ in range(2))
    assert first.seed != second.seed
    assert not np.array_equal(first.null_distribution, second.null_distribution)
    assert judge(probs, labels, rng=first.seed) == first


def test_the_first_resamples_of_a_longer_run_are_those_of_a_shorter_one():
    probs, labels = random_set(2)
    for null in ("paper", "recentered", "refit"):
        short = judge(probs, labels, null=null).null_distribution
        long = judge(probs, labels, null=null, n_resamples=40).null_distribution
        np.testing.assert_array_equal(long[:19], short)


# Threads and progress --------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("null", NULLS)
def test_progress_grows_to_the_total(null, n_jobs):
    seen = []
    result = judge(
        *random_set(), null=null, n_jobs=n_jobs, progress=lambda *report: seen.append(report)
    )
    done = [report[0] for report in seen]
    assert done == sorted(set(done))
    assert {report[1] for report in seen} == {19}
    assert done[-1] == 19
    assert result == judge(*random_set(), null=null)


def interrupt(done, total):
    raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("null", ["paper", "refit"])
def test_an_interrupt_ends_the_work_of_all_threads(null, n_jobs):
    evaluations, lock = 0, threading.Lock()

    def counting(probs, labels):
        nonlocal evaluations
        with lock:
            evaluations += 1
        return brier(probs, labels)

    options = {"null": null, "measure": counting, "n_resamples": 2400, "n_jobs": n_jobs}
    options["minimizer"] = Pairwise(max_evaluations=5)
    probs, labels = random_set(0, n=20)
    judge(probs, labels, **options)
    whole, evaluations = evaluations, 0
    with pytest.raises(KeyboardInterrupt):
        judge(probs, labels, **options, progress=interrupt)
    assert 0 < evaluations < 0.75 * whole
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_in_a_thread_reaches_the_caller(n_jobs):
    def fails(probs, labels):
        if threading.current_thread() is not threading.main_thread() or n_jobs == 1:
            raise ZeroDivisionError("on purpose")
        return brier(probs, labels)

    with pytest.raises(hc.InvalidInputError, match=r"`fails` raised ZeroDivisionError"):
        judge(*random_set(), null="refit", measure=fails, n_jobs=n_jobs)


# Members ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("null", "measure"), EVERY)
def test_the_order_of_members_changes_nothing(null, measure):
    probs, labels = random_set(5, m=4)
    order = np.array([2, 0, 3, 1])
    result = judge(probs, labels, null=null, measure=measure)
    permuted = judge(probs[:, order], labels, null=null, measure=measure)
    np.testing.assert_array_equal(permuted.weights, result.weights[order])
    np.testing.assert_array_equal(permuted.null_distribution, result.null_distribution)
    assert permuted.statistic == result.statistic
    assert permuted.pvalue == result.pvalue


def test_the_order_of_members_changes_no_decision_with_the_median_bandwidth():
    probs, labels = random_set(5, m=4)
    measure = hc.SKCE(estimator="ul", bandwidth="median")
    result = judge(probs, labels, measure=measure)
    permuted = judge(probs[:, ::-1], labels, measure=measure)
    assert permuted.pvalue == result.pvalue
    np.testing.assert_allclose(permuted.weights[::-1], result.weights, atol=1e-9)


@pytest.mark.parametrize(("null", "measure"), EVERY)
def test_a_copy_of_a_member_changes_no_statistic(null, measure):
    probs, labels = random_set(6)
    result = judge(probs, labels, null=null, measure=measure)
    doubled = judge(probs[:, [0, 1, 1, 2, 1]], labels, null=null, measure=measure)
    shared = doubled.weights[[1, 2, 4]]
    if null == "maximized":  # statistic and weights are those of the largest p-value
        assert doubled.pvalue == result.pvalue
    assert doubled.statistic == result.statistic
    np.testing.assert_allclose(shared, result.weights[1] / 3, rtol=1e-14)
    np.testing.assert_array_equal(doubled.weights[[0, 3]], result.weights[[0, 2]])
    if null != "paper":  # its line 3 draws from the simplex of all members, copies included
        np.testing.assert_array_equal(doubled.null_distribution, result.null_distribution)


# One member ------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
def test_nulls_of_one_member_are_one_test_without_a_search(measure):
    probs, labels = random_set(8, m=1)
    results = {null: judge(probs, labels, null=null, measure=measure) for null in NULLS}
    for null in ("recentered", "maximized", "stacked"):
        np.testing.assert_array_equal(
            results[null].null_distribution, results["refit"].null_distribution
        )
    for null, result in results.items():
        assert result.statistic == hc.measures.resolve(measure)(probs[:, 0], labels)
        np.testing.assert_array_equal(result.weights, [1.0])
        # Where p-values are maximised, the data are evaluated by line 7 and for a p-value.
        assert result.n_evaluations == 20 + (null == "maximized")
        assert result.converged


# Input -----------------------------------------------------------------------------------------


def test_labels_may_be_names_of_classes():
    probs, labels = random_set(11)
    names = np.array(["ant", "bee", "cat"])
    expected = judge(probs, labels)
    assert judge(probs, names[labels], classes=names) == expected
    assert judge(hc.ClassifierSet(probs, classes=names), names[labels]) == expected


@pytest.mark.parametrize("option", ["from_logits", "from_log"])
def test_logits_and_logarithms_are_understood(option):
    probs, labels = random_set(11)
    given = np.log(probs) + (3.5 if option == "from_logits" else 0.0)
    expected, result = judge(probs, labels), judge(given, labels, **{option: True})
    assert result.pvalue == expected.pvalue
    assert result.statistic == pytest.approx(expected.statistic, abs=1e-12)
    assert hc.minimize(given, labels, **{option: True}, rng=0).value == pytest.approx(
        hc.minimize(probs, labels, rng=0).value, abs=1e-9
    )


# Warnings and refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "enough"), [(0.05, 19), (0.1, 9), (0.01, 99), (0.001, 999), (0.07, 14)]
)
def test_too_few_resamples_are_warned_of_with_the_number_that_would_do(alpha, enough):
    probs, labels = random_set(0, m=1)
    with pytest.warns(hc.HullcalWarning, match=rf"smallest `n_resamples` that could is {enough}\."):
        result = judge(probs, labels, alpha=alpha, n_resamples=enough - 1)
    assert result.critical_value == np.inf
    assert not result.rejected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judge(probs, labels, alpha=alpha, n_resamples=enough)


def test_warnings_point_at_the_line_of_the_caller():
    with pytest.warns(hc.HullcalWarning) as caught:
        hc.calibration_test(*random_set(n=4), n_resamples=1, rng=0)
    assert [warning.filename for warning in caught] == [__file__] * 2


BAD = [
    ("n_resamples", 0), ("n_resamples", -1), ("n_resamples", 2.5), ("n_resamples", True),
    ("n_resamples", None), ("n_resamples", "many"),
    ("alpha", 0), ("alpha", 1), ("alpha", -0.1), ("alpha", np.nan), ("alpha", "small"),
    ("n_jobs", 0), ("n_jobs", -2), ("n_jobs", 1.5),
    ("rng", -1), ("rng", 0.5), ("rng", "seed"), ("rng", np.random.RandomState(0)),
    ("null", "nope"), ("null", 3), ("minimizer", "nope"), ("minimizer", 3),
    ("measure", "nope"), ("measure", 3), ("measure", None), ("measure", hc.ConfidenceECE),
    ("engine", "spark"), ("engine", 1), ("stop_after", 1), ("stop_after", 2.5),
    ("progress", "yes"), ("progress", 3), ("progress", [print]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_argument_is_refused_by_name_before_any_work(name, value):
    worked = []

    def spy(probs, labels):
        worked.append(1)
        return 0.0

    options = {"measure": spy, "null": "stacked", "progress": lambda *report: worked.append(1)}
    with pytest.raises(hc.InvalidInputError, match=rf"(`|Unknown ){name}\b"):
        judge(*random_set(), **{**options, name: value})
    assert not worked


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("measure", "ece_conf, .*skce_uq"),
        ("null", "maximized, paper, recentered, stacked"),
        ("minimizer", "cobyla, exact, pairwise, random, slsqp"),
    ],
)
def test_an_unknown_name_is_refused_with_the_list_of_those_there_are(name, listed):
    with pytest.raises(hc.InvalidInputError, match=f"Unknown {name} 'nope'. Choose from: {listed}"):
        judge(*random_set(), **{name: "nope"})


@pytest.mark.parametrize("minimizer", ["exact", "slsqp", "pairwise"])
def test_a_step_function_is_refused_by_searches_that_cannot_take_it(minimizer):
    measure = "skce_ul" if minimizer == "slsqp" else "ece_conf"
    with pytest.raises(hc.InvalidInputError, match=rf"`maximized`.*`{minimizer}`.*steepest"):
        judge(*random_set(m=2), null="maximized", minimizer=minimizer, measure=measure)


@pytest.mark.parametrize("minimizer", ["cobyla", "random", "pairwise", "slsqp", "exact"])
@pytest.mark.parametrize("null", ["paper", "recentered", "refit"])
def test_every_search_serves_every_null_that_can_take_it(null, minimizer):
    measure = "skce_ul" if minimizer == "slsqp" else "ece_conf"
    options = {"null": null, "minimizer": minimizer, "measure": measure, "n_resamples": 9}
    alone, shared = (judge(*random_set(m=2), n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert alone.minimizer == minimizer
    assert alone == shared


# Measures of the user's own --------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("null", ["paper", "refit", "maximized"])
def test_a_callable_gives_the_answer_of_the_measure_it_computes(null, measure):
    """The literal transcription, given as the user's own measure, is an outside witness of all of it."""
    probs, labels = random_set(13, n=12, m=2)
    search = SHORT if null == "maximized" else Pairwise(max_evaluations=25)
    options = {"null": null, "minimizer": search, "n_resamples": 9}
    expected = judge(probs, labels, measure=measure, **options)
    result = judge(probs, labels, measure=getattr(oracles, measure), **options)
    assert result.measure == measure
    assert result.pvalue == expected.pvalue
    assert result.statistic == pytest.approx(expected.statistic, abs=1e-10)
    np.testing.assert_allclose(result.null_distribution, expected.null_distribution, atol=1e-10)


# Data that once brought the house down ---------------------------------------------------------


#: Of one row, the probability of its label; and members that are certain, rightly or wrongly.
@pytest.mark.parametrize("smallest", [0.0, 5e-324, 1e-310, 1e-300, "certain"])
def test_probabilities_at_the_end_of_their_range_give_numbers(smallest):
    program = """
    import sys, numpy as np, hullcal as hc
    from simulation import NULLS, judged
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], size=(20, 3)), rng.integers(3, size=20)
    if sys.argv[1] == "certain":
        probs = np.eye(3)[rng.integers(3, size=(20, 3))]
    else:
        probs[0], labels[0] = [1.0, float(sys.argv[1]), 0.0], 1
    for null in NULLS:
        for measure in hc.measures.available():
            print(null, measure, flush=True)
            result = judged(probs, labels, null=null, measure=measure, n_resamples=19, rng=0)
            assert np.isfinite(result.weights).all(), result.weights
            assert not np.isnan([result.statistic, *result.null_distribution]).any()
            assert 0 < result.pvalue <= 1
    """
    # In a fresh interpreter, where a crash cannot take the tests along.
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(smallest)],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(("null", "measure"), EVERY)
def test_a_handful_of_rows_is_enough(null, measure):
    for n in (1, 2, 3):
        probs, labels = random_set(15, n=n)
        if n == 1 and measure.startswith("skce"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hc.HullcalWarning)
            result = judge(probs, labels, null=null, measure=measure)
        assert not np.isnan(result.null_distribution).any()
        assert 0 < result.pvalue <= 1


def test_data_that_are_open_are_tested_again_without_a_copy():
    probs, labels = random_set()
    loop = Loop(n_resamples=39, seed=3)
    with open_set(probs, labels) as data:
        packed = []
        for null in ("recentered", "stacked"):
            tools = hc.ConfidenceECE(), hc.nulls.resolve(null), SEARCH, loop
            found = algorithm_1(data, *tools, alpha=0.05, progress=False)
            assert found == judge(probs, labels, null=null, n_resamples=39, alpha=0.05, rng=3)
            packed.append(data.objective(hc.ConfidenceECE(), in_memory=True, n_jobs=1).members)
        assert packed[0] is packed[1]
