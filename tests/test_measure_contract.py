"""Laws that hold for every measure; one that is registered and in no list here fails the build."""

import dataclasses
import functools
import json
import math
import warnings

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import HullcalWarning, InvalidInputError
from hullcal._compiled.mixing import SAME
from hullcal._validation import check_single
from hullcal.kernels import GaussianTV

#: What is expected of each measure: its notion, its range, and settings that change its value.
EXPECTATIONS = {
    "ece_conf": ("confidence", "non-negative", [hc.ConfidenceECE(n_bins=b) for b in (1, 7, 30)]),
    "ece_cwise": ("classwise", "non-negative", [hc.ClasswiseECE(n_bins=b) for b in (1, 7, 30)]),
    "ece_conf_smooth": (
        *("confidence", "non-negative"),
        [hc.ConfidenceECE(n_bins=b, smooth=True) for b in (1, 7, 30)],
    ),
    "ece_cwise_smooth": (
        *("classwise", "non-negative"),
        [hc.ClasswiseECE(n_bins=b, smooth=True) for b in (1, 7, 30)],
    ),
    "hl_cwise": ("classwise", "non-negative", [hc.HosmerLemeshow(n_bins=b) for b in (1, 7, 30)]),
    "skce_ul": ("strong", "signed", "ul"),
    "skce_uq": ("strong", "signed", "uq"),
    "skce_b": ("strong", "non-negative", "b"),
}
#: Measures that depend on the order of rows, and those in which ties between classes are broken.
ORDERED = {"skce_ul"}
TIE_BREAKING = {"ece_conf", "ece_conf_smooth"}

NAMES = hc.measures.available()
every_measure = pytest.mark.parametrize("name", NAMES)


def variants(name):
    """The measure under other settings."""
    others = EXPECTATIONS[name][2]
    if not isinstance(others, str):
        return others
    make = functools.partial(hc.SKCE, estimator=others)
    return [
        make(bandwidth=0.3),
        make(bandwidth="median"),
        make(kernel="gaussian"),
        make(kernel=GaussianTV(bandwidth=0.2)),
    ]


def data(seed=0, n=40, k=4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=n), rng.integers(k, size=n)


def test_every_registered_measure_is_in_the_list_of_expectations():
    assert set(NAMES) == set(EXPECTATIONS)


@every_measure
def test_a_measure_carries_its_name_and_notion(name):
    measure = hc.measures.resolve(name)
    assert measure.name == name
    assert measure.notion == EXPECTATIONS[name][0]
    assert hc.measures.resolve(measure) is measure


# Values


@every_measure
@pytest.mark.parametrize("k", [2, 3, 6])
def test_certain_and_right_is_zero(name, k):
    labels = np.random.default_rng(k).integers(k, size=31)
    assert hc.measures.resolve(name)(np.eye(k)[labels], labels) == 0.0


@every_measure
def test_certain_and_wrong_is_positive(name):
    labels = np.zeros(20, dtype=int)
    assert hc.measures.resolve(name)(np.eye(2)[1 - labels], labels) > 0.5


@every_measure
@pytest.mark.parametrize("seed", range(10))
def test_the_range_is_as_declared(name, seed):
    value = hc.measures.resolve(name)(*data(seed))
    assert isinstance(value, float)
    assert not math.isnan(value)
    if EXPECTATIONS[name][1] == "non-negative":
        assert value >= 0.0


@every_measure
@pytest.mark.parametrize("seed", range(5))
def test_the_numbering_of_classes_does_not_matter(name, seed):
    probs, labels = data(seed)
    if name not in TIE_BREAKING:
        probs[::3] = [0.5, 0.25, 0.25, 0.0]
    order = np.random.default_rng(seed).permutation(4)
    measure = hc.measures.resolve(name)
    renamed = measure(probs[:, order], np.argsort(order)[labels])
    assert renamed == pytest.approx(measure(probs, labels), rel=1e-12, abs=1e-14)


@every_measure
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(name, seed):
    probs, labels = data(seed)
    probs[::3] = [0.5, 0.25, 0.25, 0.0]
    order = np.random.default_rng(seed).permutation(40)
    measure = hc.measures.resolve(name)
    value, shuffled = measure(probs, labels), measure(probs[order], labels[order])
    if name in ORDERED:
        assert abs(shuffled - value) > 1e-6
        # Pairs may change places, though, and so may the two rows of a pair.
        pairs = np.arange(40).reshape(20, 2)[np.random.default_rng(seed).permutation(20), ::-1]
        shuffled = measure(probs[pairs.ravel()], labels[pairs.ravel()])
    assert shuffled == pytest.approx(value, rel=1e-12, abs=1e-14)


@every_measure
def test_a_class_that_nobody_predicts_and_that_never_comes_only_rescales(name):
    probs, labels = data(3)
    wider = np.hstack([probs, np.zeros((40, 1))])
    measure = hc.measures.resolve(name)
    share = 4 / 5 if name in ("ece_cwise", "ece_cwise_smooth") else 1.0
    assert measure(wider, labels) == pytest.approx(share * measure(probs, labels), rel=1e-12)


@every_measure
@pytest.mark.parametrize("seed", range(5))
def test_float32_gives_nearly_the_value_of_float64(name, seed):
    probs, labels = data(seed)
    measure = hc.measures.resolve(name)
    value = measure(probs.astype(np.float32), labels)
    assert value == pytest.approx(measure(probs, labels), rel=1e-5, abs=1e-6)


@every_measure
def test_the_layout_in_memory_does_not_matter(name):
    probs, labels = data()
    measure = hc.measures.resolve(name)
    value = measure(probs, labels)
    wide = np.zeros((40, 8))
    wide[:, ::2] = probs
    for other in (np.asfortranarray(probs), wide[:, ::2], probs[::-1][::-1], probs.tolist()):
        assert measure(other, labels.tolist()) == value


@every_measure
@pytest.mark.parametrize("n", [2, 40])
def test_the_input_is_left_untouched(name, n):
    probs, labels = data(n=n)
    before = probs.copy(), labels.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        for measure in (hc.measures.resolve(name), *variants(name)):
            measure(probs, labels)
    np.testing.assert_array_equal(probs, before[0])
    np.testing.assert_array_equal(labels, before[1])
    assert probs.flags.writeable
    assert labels.flags.writeable


# Settings


@pytest.mark.parametrize("measure", [hc.measures.resolve(name) for name in NAMES])
def test_other_labels_of_the_same_predictions_are_evaluated_as_if_these_were_new(measure):
    # What was kept from the last call must neither be missed nor be taken for that of other predictions.
    rng = np.random.default_rng(6)
    n, k = 61, 4
    sizes = measure.state_size(k), measure.scratch_size(k, n)
    state, scratch = np.zeros(sizes[0]), np.full(sizes[1], np.nan)
    nothing, ones = measure.no_offset(k), np.ones(n)
    for _ in range(3):
        mixed = np.ascontiguousarray(rng.dirichlet(np.ones(k), size=n).T)
        parameters = measure.parameters(mixed.T)
        counts = rng.multinomial(n, np.full(n, 1 / n)).astype(float)
        if measure.rows_per_unit == 2:
            counts[1::2] = counts[: n - 1 : 2]
        for i, weights in enumerate([ones, ones, counts, ones, counts, counts]):
            labels = rng.integers(k, size=n).astype(np.int32)
            if "places" in measure.traits and i > 0:
                scratch[-1] = SAME
            found = measure.value(mixed, labels, weights, parameters, nothing, state, scratch)
            afresh = measure.evaluate(mixed, labels, parameters, row_weights=weights)
            assert found == afresh


@every_measure
def test_other_settings_give_another_value(name):
    # Labels that follow the forecasts: gaps of both signs, which fewer bins would cancel.
    probs, _ = data()
    labels = oracles.draw_labels(np.random.default_rng(1), probs)
    values = [g(probs, labels) for g in (hc.measures.resolve(name), *variants(name))]
    assert len({round(value, 10) for value in values}) == len(values)


@every_measure
def test_a_measure_is_a_frozen_and_hashable_value(name):
    measure = hc.measures.resolve(name)
    twin = dataclasses.replace(measure)
    assert twin == measure
    assert hash(twin) == hash(measure)
    family = {measure, twin, *variants(name)}
    assert len(family) == 1 + len(variants(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure.n_bins = 3
    assert measure == twin


@every_measure
def test_settings_are_plain_and_tell_measures_apart(name):
    family = [hc.measures.resolve(name), *variants(name)]
    written = [json.dumps(measure.settings(), sort_keys=True) for measure in family]
    assert len(set(written)) == len(family)


@pytest.mark.parametrize("measure", [hc.ConfidenceECE, hc.ClasswiseECE, hc.HosmerLemeshow])
@pytest.mark.parametrize("n_bins", [0, -1, 2.5, "10", None, True, math.nan])
def test_a_number_of_bins_that_is_none_is_refused(measure, n_bins):
    with pytest.raises(InvalidInputError, match="`n_bins`"):
        measure(n_bins=n_bins)


@pytest.mark.parametrize("measure", [hc.ConfidenceECE, hc.ClasswiseECE, hc.HosmerLemeshow])
@pytest.mark.parametrize("n_bins", [5.0, np.int64(5), np.float64(5.0)])
def test_an_integral_number_of_bins_is_accepted_in_any_type(measure, n_bins):
    other = measure(n_bins=n_bins)
    assert other(*data()) == measure(n_bins=5)(*data())
    assert json.loads(json.dumps(other.settings())) == {"n_bins": 5}


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"estimator": "u"}, "Unknown estimator 'u'"),
        ({"estimator": None}, "Unknown estimator None"),
        ({"kernel": "rbf"}, "Unknown kernel 'rbf'"),
        ({"bandwidth": 0.0}, "`bandwidth`"),
    ],
)
def test_settings_of_skce_that_make_no_sense_are_refused(settings, parameter):
    with pytest.raises(InvalidInputError, match=parameter):
        hc.SKCE(**settings)


# Refusals


BAD = {
    "NaN": ([[0.5, math.nan], [0.5, 0.5]], [0, 1]),
    "logits": ([[3.0, -2.0], [1.0, 4.0]], [0, 1]),
    "three axes": (np.full((2, 2, 2), 0.5), [0, 1]),
    "no rows": (np.zeros((0, 2)), []),
    "a label too large": ([[0.5, 0.5], [0.5, 0.5]], [0, 2]),
    "swapped": ([0, 1], [[0.5, 0.5], [0.25, 0.75]]),
}


@every_measure
@pytest.mark.parametrize("what", BAD)
def test_what_the_door_refuses_every_measure_refuses_in_the_same_words(name, what):
    with pytest.raises(InvalidInputError) as door:
        check_single(*BAD[what])
    with pytest.raises(InvalidInputError) as measure:
        hc.measures.resolve(name)(*BAD[what])
    assert str(measure.value) == str(door.value)


@pytest.mark.parametrize("name", ["skce_ul", "skce_uq", "skce_b"])
def test_skce_needs_a_pair_of_rows(name):
    one_row = [[0.5, 0.5]]
    for call in (hc.minimize, hc.calibration_test, lambda p, y, measure: measure(p, y)):
        with pytest.raises(InvalidInputError, match=f"`{name}` needs at least 2 rows; got 1"):
            call(one_row, [0], measure=hc.measures.resolve(name))


@pytest.mark.parametrize(
    "name", ["ece_conf", "ece_cwise", "ece_conf_smooth", "ece_cwise_smooth", "hl_cwise"]
)
def test_fewer_rows_than_bins_are_warned_of_and_measured(name):
    probs, labels = data(n=9)
    measure = hc.measures.resolve(name)
    with pytest.warns(HullcalWarning, match=f"9 rows .* `{name}`"):
        assert measure(probs, labels) > 0.0
    search = hc.minimizers.Pairwise(max_evaluations=5)
    with pytest.warns(HullcalWarning, match=f"9 rows .* `{name}`"):
        assert hc.minimize(probs, labels, measure=measure, minimizer=search).value > 0.0
    measure(*data(n=10))  # as many rows as bins: nothing to say


@pytest.mark.parametrize(
    "call",
    [
        lambda probs, labels: hc.ConfidenceECE()(probs, labels),
        lambda probs, labels: hc.minimize(probs, labels, minimizer="random"),
        lambda probs, labels: hc.calibration_test(probs, labels, n_resamples=19),
    ],
)
def test_a_warning_points_at_the_line_of_the_user(call):
    with pytest.warns(HullcalWarning, match="9 rows") as caught:
        call(*data(n=9))
    assert [warning.filename for warning in caught] == [__file__]
    assert [warning.lineno for warning in caught] == [call.__code__.co_firstlineno]


@pytest.mark.parametrize("measure", [hc.ConfidenceECE, hc.ClasswiseECE, hc.HosmerLemeshow])
@pytest.mark.parametrize("n_bins", [1, 10])
def test_a_single_row_is_warned_of_whatever_the_number_of_bins(measure, n_bins):
    with pytest.warns(HullcalWarning, match="row"):
        assert measure(n_bins=n_bins)([[0.75, 0.25]], [0]) >= 0.0


# Plain callables


def brier(probs, labels):
    return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1).mean())


def test_a_callable_is_a_measure():
    probs, labels = data()
    measure = hc.measures.resolve(brier)
    assert measure.name == "brier"
    assert measure.settings() == {"function": "brier"}
    assert measure(probs, labels) == brier(probs, labels)
    assert measure == hc.measures.resolve(brier)
    assert hash(measure) == hash(hc.measures.resolve(brier))


def test_a_callable_gets_rows_by_classes_and_labels():
    seen = []

    def note(probs, labels):
        seen.append((probs.shape, probs.dtype, labels.shape, labels.dtype.kind))
        return 0.0

    hc.measures.resolve(note)(*data(n=40, k=4))
    assert seen == [((40, 4), np.float64, (40,), "i")]


class Scaled:
    """A callable with a state of its own."""

    def __call__(self, probs, labels):
        return 2.0 * brier(probs, labels)


@pytest.mark.parametrize(
    ("function", "name"),
    [(lambda p, y: 1.0, "<lambda>"), (functools.partial(brier), "partial"), (Scaled(), "Scaled")],
)
def test_every_kind_of_callable_has_a_name_to_be_called_by(function, name):
    measure = hc.measures.resolve(function)
    assert measure.name == name
    assert measure(*data()) == function(*data())


def not_a_number(probs, labels):
    return math.nan


def stumbling(probs, labels):
    raise ZeroDivisionError("no rows of that kind")


def speechless(probs, labels):
    return None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (not_a_number, "`not_a_number` returned NaN"),
        (stumbling, "`stumbling` raised .*no rows of that kind"),
        (speechless, "`speechless`"),
    ],
)
def test_a_callable_that_fails_is_named(function, words):
    probs, labels = data()
    members = np.stack([probs, probs[::-1]], axis=1)
    with pytest.raises(InvalidInputError, match=words) as caught:
        hc.measures.resolve(function)(probs, labels)
    if function is stumbling:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(InvalidInputError, match=words):
        hc.minimize(members, labels, measure=function)
    for null in ("stacked", "paper", "maximized"):
        with pytest.raises(InvalidInputError, match=words):
            hc.calibration_test(members, labels, measure=function, null=null, n_resamples=19)
    with pytest.raises(InvalidInputError, match=words):
        hc.truth_test(members, labels, measure=function, n_resamples=19)


def test_a_callable_that_fails_late_is_not_silently_dropped():
    calls = []

    def failing_late(probs, labels):
        calls.append(1)
        return math.nan if len(calls) > 5 else brier(probs, labels)

    rng = np.random.default_rng(0)
    members, labels = rng.dirichlet(np.ones(3), size=(20, 3)), rng.integers(3, size=20)
    for minimizer in ("pairwise", "random", "cobyla"):
        calls.clear()
        with pytest.raises(InvalidInputError, match="`failing_late` returned NaN"):
            hc.minimize(members, labels, measure=failing_late, minimizer=minimizer, rng=0)


def test_an_interruption_inside_a_callable_is_not_swallowed():
    def interrupted(probs, labels):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.measures.resolve(interrupted)(*data())


@pytest.mark.parametrize("n", [1, 2, 30])
def test_a_callable_that_writes_on_what_it_gets_changes_nothing(n):
    rng = np.random.default_rng(0)
    members, labels = rng.dirichlet(np.ones(3), size=(n, 3)), rng.integers(3, size=n)
    before = members.copy(), labels.copy()

    def scribbling(probs, labels):
        value = brier(probs, labels)
        probs[:] = 0.0
        labels[:] = 0
        return value

    search = hc.minimizers.Pairwise(max_evaluations=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        clean = hc.minimize(members, labels, measure=brier, minimizer=search, rng=0)
        found = hc.minimize(members, labels, measure=scribbling, minimizer=search, rng=0)
        single = hc.measures.resolve(scribbling)(members[:, 0], labels)
        tested, spoiled = (
            hc.truth_test(members, labels, measure=g, minimizer=search, n_resamples=19, rng=0)
            for g in (brier, scribbling)
        )
    np.testing.assert_array_equal(members, before[0])
    np.testing.assert_array_equal(labels, before[1])
    np.testing.assert_array_equal(found.weights, clean.weights)
    np.testing.assert_array_equal(spoiled.null_distribution, tested.null_distribution)
    assert found.value == clean.value
    assert single == brier(members[:, 0], labels)


def test_a_callable_has_no_residual_and_the_null_that_needs_one_says_so():
    probs, labels = data()
    with pytest.raises(InvalidInputError, match=r"null `recentered`.*measure `brier`.*stacked"):
        hc.calibration_test(probs, labels, measure=brier, null="recentered")
    for null in ("stacked", "maximized", "paper"):
        search = hc.minimizers.Steepest(max_evaluations=5)
        result = hc.calibration_test(
            probs, labels, measure=brier, null=null, minimizer=search, n_resamples=19, rng=0
        )
        assert result.measure == "brier"
        assert 0.0 < result.pvalue <= 1.0
