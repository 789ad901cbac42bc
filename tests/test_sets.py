"""ClassifierSet: members and mixtures, parts of a set, what its hull holds, how well it predicts."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import hullcal as hc
from oracles_uncertainty import distance_to_hull

NAMES = ("ash", "beech", "cedar", "dogwood")


def probs_of(seed=0, n=20, m=4, k=3, concentration=1.0):
    return np.random.default_rng([seed, n, m, k]).dirichlet(np.full(k, concentration), size=(n, m))


def members(dtype="float64"):
    return probs_of().astype(dtype)


# The members' names


def test_members_have_names_if_they_were_given_any():
    assert hc.ClassifierSet(probs_of()).members is None
    assert hc.ClassifierSet(probs_of(), members=list(NAMES)).members == NAMES
    assert hc.ClassifierSet(probs_of(), members=np.array(NAMES)).members == NAMES
    assert hc.ClassifierSet(probs_of()[:, 0], members=["only"]).members == ("only",)


@pytest.mark.parametrize(
    "names", [NAMES[:3], (*NAMES, "elm"), ("ash", *NAMES[:3]), (1, 2, 3, 4), "ash"]
)
def test_names_that_do_not_fit_are_refused(names):
    with pytest.raises(hc.InvalidInputError, match="`members`"):
        hc.ClassifierSet(probs_of(), members=names)


# Parts of a set


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ([2, 0], [2, 0]),
        (np.array([-1]), [3]),
        ("beech", [1]),
        (["dogwood", "ash"], [3, 0]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([True, False, True, False], [0, 2]),
    ],
    ids=str,
)
def test_a_subset_has_the_chosen_members_in_the_chosen_order(which, expected):
    part = hc.ClassifierSet(probs_of(), members=NAMES).subset(which)
    assert isinstance(part, hc.ClassifierSet)
    np.testing.assert_array_equal(part.probs, probs_of()[:, expected])
    assert part.members == tuple(NAMES[m] for m in expected)


def test_a_subset_keeps_the_classes():
    part = hc.ClassifierSet(probs_of(), classes=["x", "y", "z"]).subset([1])
    assert part.classes == ("x", "y", "z")
    assert part.members is None
    assert (part.n_samples, part.n_members, part.n_classes) == (20, 1, 3)
    with pytest.raises(hc.InvalidInputError):
        part.subset(["ash"])


@pytest.mark.parametrize(
    "which",
    [[], slice(2, 2), [False] * 4, [4], [-5], [0, -4], [True, False], ["ash", "elm"]],
    ids=str,
)
def test_a_choice_of_no_member_is_refused(which):
    with pytest.raises(hc.InvalidInputError, match="`which`"):
        hc.ClassifierSet(probs_of(), members=NAMES).subset(which)


# What the hull holds, by hand


def test_two_classes_are_an_interval_that_ends_a_billionth_beyond_its_edge():
    hull = hc.ClassifierSet(np.array([[[0.25, 0.75], [0.5, 0.5], [0.375, 0.625]]]))
    for p in (0.25, 0.3, 0.375, 0.5, 0.5 + 5e-10):
        assert hull.contains([p, 1 - p]).tolist() == [True]
    for p in (0.25 - 1e-6, 0.5 + 1e-8, 0.0, 1.0):
        assert hull.contains([p, 1 - p]).tolist() == [False]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("m", "k"), [(1, 3), (2, 2), (3, 6), (25, 4)])
def test_vertices_and_the_mean_and_every_combination_are_inside(m, k, dtype):
    probs = probs_of(2, n=15, m=m, k=k).astype(dtype)
    hull = hc.ClassifierSet(probs)
    for member in range(m):
        assert hull.contains(hull.mix(np.eye(m)[member])).all()
    assert hull.contains(hull.mean()).all()
    for weights in np.random.default_rng(0).dirichlet(np.full(m, 0.5), size=10):
        assert hull.contains(hull.mix(weights)).all()


def test_probabilities_below_a_billionth_count():
    # Solvers of linear programs take coefficients below 1e-9 for 0: two of those are a step outside.
    members = np.array(
        [[0.478, 0.0003, 0.5217], [1 - 1.45e-9, 7.3e-10, 7.2e-10], [0.4, 0.6 - 2e-8, 2e-8]]
    )
    hull = hc.ClassifierSet(members[None])
    for weights in ([0.19, 0.73, 0.08], [0.01, 0.98, 0.01], [0, 1, 0]):
        assert hull.contains(weights @ members).tolist() == [True]


@pytest.mark.parametrize(
    ("seed", "n", "m", "k", "concentration"),
    [(11, 1000, 10, 10, 0.02), (16, 5000, 3, 3, 0.1)],
    ids=str,
)
def test_combinations_are_inside_in_thousands_of_instances(seed, n, m, k, concentration):
    # Enough of them to meet the rare hull that is all but flat.
    probs = probs_of(seed, n=n, m=m, k=k, concentration=concentration)
    weights = np.random.default_rng(seed).dirichlet(np.full(m, 0.5), size=n)
    points = np.einsum("nm,nmk->nk", weights, probs)
    assert hc.ClassifierSet(probs).contains(points).all()


@pytest.mark.parametrize("spread", [1e-3, 1e-12])
def test_members_that_nearly_coincide_are_still_a_hull(spread):
    probs = (1 - spread) * probs_of(12, n=50, m=1, k=4) + spread * probs_of(13, n=50, m=6, k=4)
    probs /= probs.sum(axis=2, keepdims=True)
    hull = hc.ClassifierSet(probs)
    weights = np.random.default_rng(12).dirichlet(np.ones(6), size=50)
    points = np.einsum("nm,nmk->nk", weights, probs)
    assert hull.contains(points).all()
    assert hull.contains(hull.mean()).all()
    # Beyond the largest probability of class 0 by 1e-5.
    away = np.array([1.0, 0, 0, 0]) - probs[:, 0]
    step = (probs[:, :, 0].max(axis=1) - probs[:, 0, 0] + 1e-5) / (1 - probs[:, 0, 0])
    assert not hull.contains(probs[:, 0] + step[:, None] * away).any()


def test_one_point_is_compared_with_every_instance_and_has_the_shape_of_a_row():
    hull = hc.ClassifierSet(probs_of(5, n=40))
    point = np.array([0.3, 0.3, 0.4])
    answer = hull.contains(point)
    np.testing.assert_array_equal(answer, hull.contains(np.tile(point, (40, 1))))
    assert 0 < answer.sum() < 40
    for shape in ((2,), (39, 3), (40, 2), (1, 40, 3)):
        with pytest.raises(hc.InvalidInputError, match="`point`"):
            hull.contains(np.full(shape, 1 / shape[-1]))


# What the hull holds, against a linear program


@pytest.mark.parametrize(("m", "k"), [(2, 2), (6, 3), (12, 5), (3, 5)])
def test_contains_against_the_linear_program(m, k):
    rng = np.random.default_rng([m, k])
    probs = rng.dirichlet(np.ones(k), size=(30, m))
    random = rng.dirichlet(np.full(k, 3.0), size=30)
    inside = np.einsum("nm,nmk->nk", rng.dirichlet(np.ones(m), size=30), probs)
    between = 0.5 * random + 0.5 * inside
    for points in (random, inside, between):
        answers = hc.ClassifierSet(probs).contains(points)
        for members, point, answer in zip(probs, points, answers, strict=True):
            distance = distance_to_hull(members, point)
            # Within the solver's tolerance of the edge it cannot say.
            assert not 2e-9 < distance < 1e-6
            assert answer == (distance <= 2e-9)


# Scores, by hand


@pytest.fixture
def pair():
    """Two members, four instances, three classes; labels 0, 1, 2, 0."""
    probs = np.array(
        [
            [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
            [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]],
            [[0.25, 0.25, 0.5], [0.0, 0.5, 0.5]],
            [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]],
        ]
    )
    return hc.ClassifierSet(probs), np.array([0, 1, 2, 0])


def test_scores_by_hand(pair):
    hull, labels = pair
    # The second member's third row ties 1 with 2 and says 1; the first member's last ties 0 with 1.
    np.testing.assert_array_equal(hull.accuracy(labels), [1.0, 0.25])
    # The average: (.375, .375, .25) says 0; (.25, .375, .375) says 1; the others are clear.
    assert hull.accuracy(labels, weights="mean") == hull.accuracy(labels, weights=[0.5, 0.5]) == 1.0
    log2 = math.log(2)
    np.testing.assert_allclose(hull.log_score(labels), [log2, (2 + 2 + 1 + 0) / 4 * log2])
    first = (3 * (0.25 + 0.0625 + 0.0625) + 0.5) / 4
    second = (2 * (0.5625 + 0.0625 + 0.25) + 0.5 + 0.0) / 4
    np.testing.assert_allclose(hull.brier_score(labels), [first, second])


def test_a_label_that_was_called_impossible_has_an_infinite_log_score():
    hull = hc.ClassifierSet(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]))
    np.testing.assert_allclose(hull.log_score([1, 1]), [math.inf, math.log(2)])
    assert hull.log_score([1, 1], weights="mean") == pytest.approx(-math.log(0.25 * 0.75) / 2)


# Scores, in general


def test_weights_and_labels_of_a_score_are_checked():
    labels = np.arange(20) % 3
    for name in ("accuracy", "log_score", "brier_score"):
        score = getattr(hc.ClassifierSet(members()), name)
        for weights in ("median", [0.5, 0.5], [2, -1, 0, 0]):
            with pytest.raises(hc.InvalidInputError, match="`weights`"):
                score(labels, weights=weights)
        with pytest.raises(hc.InvalidInputError, match="`labels`"):
            score(labels[:5])


def test_saturated_members_are_in_their_own_hull():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1000, 1, 10)) * 10 + rng.normal(size=(1000, 10, 10)) * 2.5
    classifiers = hc.ClassifierSet(logits, from_logits=True)
    for member in range(0, 10, 3):
        assert classifiers.contains(classifiers.probs[:, member]).all()


# Members and their mixtures


def test_the_members_are_a_read_only_view():
    given = members()
    hull = hc.ClassifierSet(given)
    assert repr(hull) == "ClassifierSet(n_samples=20, n_members=4, n_classes=3)"
    assert np.shares_memory(hull.probs, given)
    assert given.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        hull.probs[0, 0, 0] = 1


def test_a_set_cannot_be_changed():
    for name in ("probs", "n_samples", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            setattr(hc.ClassifierSet(members()), name, None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_vertex_is_its_member_bit_for_bit(dtype):
    probs = members(dtype)
    probs[range(4), range(4)] = [-0.0, 0.25, 0.75]  # a sign that adding 0 would lose
    hull = hc.ClassifierSet(probs)
    for m in range(4):
        mixed = hull.mix(np.eye(4)[m])
        assert mixed.dtype == np.float64
        assert mixed.tobytes() == probs[:, m, :].astype(np.float64).tobytes()


def test_a_mixture_is_the_weighted_sum():
    for weights in ([0.25, 0.25, 0.5, 0.0], [0.0, 0.0, 0.75, 0.25]):
        expected = np.einsum("nmk,m->nk", members("float32").astype(float), weights)
        mixed = hc.ClassifierSet(members("float32")).mix(weights)
        np.testing.assert_allclose(mixed, expected, rtol=0, atol=1e-15)


def test_a_mixture_has_the_same_bits_in_any_order_of_members():
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = hc.ClassifierSet(members()).mix(weights)
    for order in itertools.permutations(range(4)):
        mixed = hc.ClassifierSet(members()[:, order]).mix(weights[list(order)])
        np.testing.assert_array_equal(mixed, expected)


def test_of_gives_a_set_as_it_is_and_refuses_options_that_contradict_it():
    hull = hc.ClassifierSet(members(), classes=["x", "y", "z"])
    assert hc.ClassifierSet.of(hull, classes=["x", "y", "z"], from_logits=False) is hull
    for options in ({"from_log": True}, {"classes": ["a", "b", "c"]}):
        with pytest.raises(hc.InvalidInputError, match=f"`{next(iter(options))}` is settled"):
            hc.ClassifierSet.of(hull, **options)


def test_with_labels_checks_predictions_and_labels_together():
    classes = ["x", "y", "z"]
    hull, got = hc.ClassifierSet.with_labels(members(), ["y"] * 20, classes=classes)
    assert (hull.classes, got.tolist()) == (("x", "y", "z"), [1] * 20)
    assert hc.ClassifierSet.with_labels(hull, ["y"] * 20)[0] is hull
    with pytest.raises(hc.InvalidInputError, match="swapped"):
        hc.ClassifierSet.with_labels(np.arange(20) % 3, members())


def test_names_that_are_numbers_become_their_digits():
    numbered = hc.ClassifierSet(np.full((4, 1, 2), 0.5), classes=[2, 1], members=["a"])
    assert numbered.labels([2, 1, 1, 2]).tolist() == [0, 1, 1, 0]
    named = numbered.named_by_text()
    assert (named.classes, named.members) == (("2", "1"), ("a",))
    assert named.labels([0, 1, 1, 0]).tolist() == [0, 1, 1, 0]
    assert named.named_by_text() is named
    both = hc.ClassifierSet(np.full((4, 1, 2), 0.5), classes=[1, "1"]).named_by_text()
    assert len(set(both.classes)) == 2


def test_a_notebook_shows_sizes_and_names_as_text():
    probs = np.full((4, 2, 2), 0.5)
    page = hc.ClassifierSet(probs, members=["<b>", "a\x1bb"], classes=["x", "y"])._repr_html_()
    assert "2: &lt;b&gt;, a\N{REPLACEMENT CHARACTER}b" in page
    assert "<b>" not in page
    assert "2: x, y" in page
    many = hc.ClassifierSet(probs.repeat(30, axis=1), members=map(str, range(60)))
    assert ", …" in many._repr_html_()


# Where members agree, and votes ------------------------------------------------------------------


def votes(n_samples, n_members, n_classes, seed=0):
    """Members that give one class all probability, and the share of them for each class."""
    chosen = np.random.default_rng(seed).integers(n_classes, size=(n_samples, n_members))
    probs = np.eye(n_classes)[chosen]
    return probs, probs.sum(axis=1) / n_members


@pytest.mark.parametrize("n_members", range(2, 31))
def test_the_average_of_votes_is_their_share_to_the_last_bit(n_members):
    probs, shares = votes(200, n_members, 3)
    assert np.isin(shares, np.arange(n_members + 1) / n_members).all()
    classifiers = hc.ClassifierSet(probs)
    np.testing.assert_array_equal(classifiers.mean(), shares)
    np.testing.assert_array_equal(classifiers.mix(np.full(n_members, 1 / n_members)), shares)


def test_copies_of_members_are_votes_of_the_average_too():
    probs = np.array([[[1.0, 0.0]] * 8 + [[0.0, 1.0]] * 2, [[1.0, 0.0]] * 7 + [[0.0, 1.0]] * 3])
    probs, labels = np.tile(probs, (5, 1, 1)), [0, 1] * 5
    found = hc.assess(probs, labels, questions="average", n_resamples=99, rng=0)
    assert found.average.result.statistic == pytest.approx((0.2 + 0.7) / 2, abs=1e-12)


def test_nothing_is_rounded_where_members_agree():
    rng = np.random.default_rng(0)
    for seed in range(50):
        probs = rng.integers(0, 2, size=(30, 4, 1)) * [[[0.5, 0.3, 0.2]]] + [[[0.1, 0.2, 0.7]]]
        probs /= probs.sum(axis=2, keepdims=True)
        weights = rng.dirichlet(np.ones(4))
        weights[seed % 4] = 0.0
        weights /= weights.sum()
        mixed, used = hc.ClassifierSet(probs).mix(weights), probs[:, weights > 0]
        agree = (used == used[:, :1]).all(axis=1)
        assert agree.any()
        np.testing.assert_array_equal(mixed[agree], used[:, 0][agree])


def test_the_average_of_float32_rows_is_not_renormalised():
    probs = np.array([[[0.5, 0.3, 0.2]] * 2, [[0.46, 0.3, 0.24]] * 2], dtype=np.float32)
    probs, labels = np.tile(probs, (5, 1, 1)), [0, 1] * 5
    found = hc.assess(probs, labels, n_resamples=99, rng=0)
    alone = hc.calibration_test(probs[:, 0], labels, n_resamples=99, rng=0)
    assert found.average.result.statistic == alone.statistic == pytest.approx(0.48)
    assert found.effect.average.error == alone.statistic
    assert [note.code for note in found.average.result.notes if note.code == "renormalised"] == []
