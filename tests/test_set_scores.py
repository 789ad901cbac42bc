"""ClassifierSet: names of members, parts of a set, what its hull holds, and how well it predicts."""

import math

import numpy as np
import pytest

import hullcal as hc
from oracles_uncertainty import distance_to_hull

NAMES = ("ash", "beech", "cedar", "dogwood")


def probs_of(seed=0, n=20, m=4, k=3, concentration=1.0):
    return np.random.default_rng([seed, n, m, k]).dirichlet(np.full(k, concentration), size=(n, m))


def labels_of(seed=0, n=20, k=3):
    return np.random.default_rng([seed, n, k]).integers(k, size=n)


# The members' names


def test_members_have_names_if_they_were_given_any():
    assert hc.ClassifierSet(probs_of()).members is None
    assert hc.ClassifierSet(probs_of(), members=list(NAMES)).members == NAMES
    assert hc.ClassifierSet(probs_of(), members=np.array(NAMES)).members == NAMES
    assert hc.ClassifierSet(probs_of()[:, 0], members=["only"]).members == ("only",)


@pytest.mark.parametrize(
    "names",
    [NAMES[:3], (*NAMES, "elm"), ("ash", "ash", "cedar", "dogwood"), (1, 2, 3, 4), ()],
    ids=["too few", "too many", "twice", "numbers", "none"],
)
def test_names_that_do_not_fit_are_refused(names):
    with pytest.raises(hc.InvalidInputError, match="`members`"):
        hc.ClassifierSet(probs_of(), members=names)


def test_the_names_cannot_be_changed():
    with pytest.raises(AttributeError):
        hc.ClassifierSet(probs_of(), members=NAMES).members = None


# Parts of a set


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ([2, 0], [2, 0]),
        (np.array([3]), [3]),
        (["dogwood", "ash"], [3, 0]),
        (("beech",), [1]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([True, False, True, False], [0, 2]),
        (np.array([False, False, False, True]), [3]),
    ],
    ids=str,
)
def test_a_subset_has_the_chosen_members_in_the_chosen_order(which, expected):
    part = hc.ClassifierSet(probs_of(), members=NAMES).subset(which)
    assert isinstance(part, hc.ClassifierSet)
    np.testing.assert_array_equal(part.probs, probs_of()[:, expected])
    assert part.members == tuple(NAMES[m] for m in expected)


def test_a_subset_keeps_the_classes_and_the_original():
    whole = hc.ClassifierSet(probs_of(), classes=["x", "y", "z"])
    part = whole.subset([1])
    assert part.classes == ("x", "y", "z")
    assert part.members is None
    assert (part.n_samples, part.n_members, part.n_classes) == (20, 1, 3)
    assert whole.n_members == 4


@pytest.mark.parametrize(
    "which",
    [[], slice(2, 2), [False] * 4, [4], [-5], [0, 17], [True, False], ["elm"], ["ash", "elm"]],
    ids=str,
)
def test_a_choice_of_no_member_is_refused(which):
    with pytest.raises(hc.InvalidInputError, match="`which`"):
        hc.ClassifierSet(probs_of(), members=NAMES).subset(which)


def test_names_choose_nothing_where_members_have_none():
    with pytest.raises(hc.InvalidInputError):
        hc.ClassifierSet(probs_of()).subset(["ash"])


# What the hull holds, by hand


def test_two_classes_are_an_interval():
    hull = hc.ClassifierSet(np.array([[[0.25, 0.75], [0.5, 0.5], [0.375, 0.625]]]))
    for p in (0.25, 0.3, 0.375, 0.5):
        assert hull.contains([p, 1 - p]).tolist() == [True]
    for p in (0.25 - 1e-6, 0.5 + 1e-6, 0.0, 1.0):
        assert hull.contains([p, 1 - p]).tolist() == [False]


def test_the_hull_ends_a_billionth_beyond_its_edge():
    # Beyond (.5, .5) by d is a total variation of d.
    hull = hc.ClassifierSet(np.array([[[0.25, 0.75], [0.5, 0.5]]]))
    assert hull.contains([0.5 + 5e-10, 0.5 - 5e-10]).tolist() == [True]
    assert hull.contains([0.5 + 1e-8, 0.5 - 1e-8]).tolist() == [False]


def test_an_edge_belongs_to_the_hull_and_what_is_beside_it_does_not():
    # The triangle 0-1-2 of the simplex of four classes: its edges and its inside, but nothing off it.
    hull = hc.ClassifierSet(np.eye(4)[None, :3])
    for inside in ([0.5, 0.5, 0, 0], [0.1, 0.2, 0.7, 0], [1 / 3, 1 / 3, 1 / 3, 0]):
        assert hull.contains(inside).tolist() == [True]
    for outside in ([0.5, 0.5 - 1e-6, 0, 1e-6], [0.1, 0.2, 0.7 - 1e-6, 1e-6], [0, 0, 0, 1.0]):
        assert hull.contains(outside).tolist() == [False]


def test_a_segment_holds_its_points_and_not_its_neighbours():
    ends = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    hull = hc.ClassifierSet(ends[None])
    for t in (0.0, 0.25, 1 / 3, 1.0):
        assert hull.contains(t * ends[0] + (1 - t) * ends[1]).tolist() == [True]
    for off in ([1e-6, -1e-6, 0], [0, 1e-6, -1e-6]):
        assert hull.contains(0.4 * ends[0] + 0.6 * ends[1] + off).tolist() == [False]
    for t in (-1e-5, 1 + 1e-5):
        assert hull.contains(t * ends[0] + (1 - t) * ends[1]).tolist() == [False]


def test_one_member_holds_itself_alone():
    probs = probs_of(1, m=1)
    hull = hc.ClassifierSet(probs)
    assert hull.contains(probs[:, 0]).all()
    assert not hull.contains(probs[:, 0] + [1e-6, -1e-6, 0]).any()
    assert not hull.contains(np.roll(probs[:, 0], 1, axis=0)).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("m", "k"), [(1, 3), (2, 2), (3, 3), (3, 6), (10, 3), (10, 10), (25, 4)])
def test_vertices_and_the_mean_and_every_combination_are_inside(m, k, dtype):
    probs = probs_of(2, n=15, m=m, k=k).astype(dtype)
    hull = hc.ClassifierSet(probs)
    for member in range(m):
        assert hull.contains(hull.mix(np.eye(m)[member])).all()
    assert hull.contains(hull.mean()).all()
    for weights in np.random.default_rng(0).dirichlet(np.full(m, 0.5), size=10):
        assert hull.contains(hull.mix(weights)).all()


@pytest.mark.parametrize("concentration", [0.02, 0.2])
def test_combinations_of_nearly_certain_members_are_inside(concentration):
    hull = hc.ClassifierSet(probs_of(3, n=30, m=8, k=8, concentration=concentration))
    for weights in np.random.default_rng(1).dirichlet(np.full(8, 0.3), size=10):
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
    [(11, 1000, 10, 10, 0.02), (16, 5000, 3, 3, 0.1), (19, 5000, 3, 3, 0.1)],
    ids=str,
)
def test_combinations_are_inside_in_thousands_of_instances(seed, n, m, k, concentration):
    # Enough of them to meet the rare hull that is all but flat.
    probs = probs_of(seed, n=n, m=m, k=k, concentration=concentration)
    weights = np.random.default_rng(seed).dirichlet(np.full(m, 0.5), size=n)
    points = np.einsum("nm,nmk->nk", weights, probs)
    assert hc.ClassifierSet(probs).contains(points).all()


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-8, 1e-12])
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


def test_members_given_twice_change_nothing():
    probs = probs_of(4, m=3, k=4)
    once, twice = hc.ClassifierSet(probs), hc.ClassifierSet(np.repeat(probs, 3, axis=1))
    points = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    points[::2] = once.mean()[::2]
    np.testing.assert_array_equal(once.contains(points), twice.contains(points))
    assert twice.contains(points)[::2].all()
    assert twice.contains(probs[:, 1]).all()


def test_members_on_one_line_are_a_segment():
    ends = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    steps = np.linspace(0, 1, 6)[:, None]
    hull = hc.ClassifierSet((steps * ends[0] + (1 - steps) * ends[1])[None])
    assert hull.contains(0.37 * ends[0] + 0.63 * ends[1]).tolist() == [True]
    beside = 0.37 * ends[0] + 0.63 * ends[1] + [1e-6, -1e-6, 0]
    assert hull.contains(beside).tolist() == [False]


def test_the_vacuous_set_holds_everything():
    points = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=30)
    hull = hc.ClassifierSet(np.tile(np.eye(5), (30, 1, 1)))
    assert hull.contains(points).all()
    assert hull.contains(np.full(5, 0.2)).all()


def test_one_point_is_asked_of_every_instance():
    probs = probs_of(5, n=40)
    point = np.array([0.3, 0.3, 0.4])
    hull = hc.ClassifierSet(probs)
    answer = hull.contains(point)
    assert answer.shape == (40,)
    assert answer.dtype == bool
    np.testing.assert_array_equal(answer, hull.contains(np.tile(point, (40, 1))))
    assert 0 < answer.sum() < 40


@pytest.mark.parametrize("shape", [(2,), (4,), (19, 3), (20, 2), (20, 4, 3), (1, 20, 3)])
def test_a_point_of_another_shape_is_refused(shape):
    with pytest.raises(hc.InvalidInputError, match="`point`"):
        hc.ClassifierSet(probs_of()).contains(np.full(shape, 1 / shape[-1]))


# What the hull holds, against a linear program


@pytest.mark.parametrize(("m", "k"), [(2, 2), (3, 3), (6, 3), (4, 4), (12, 5), (3, 5), (10, 10)])
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


@pytest.mark.parametrize(("m", "k"), [(3, 3), (6, 3), (4, 4), (12, 5)])
def test_a_millionth_beyond_the_boundary_is_outside(m, k):
    # From the mean towards a corner: bisect for the boundary, then a step to either side.
    rng = np.random.default_rng([m, k, 1])
    probs = rng.dirichlet(np.ones(k), size=(6, m))
    inner, outer = [], []
    for members in probs:
        start, corner = members.mean(axis=0), np.eye(k)[rng.integers(k)]
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            inside = distance_to_hull(members, start + middle * (corner - start)) <= 1e-9
            low, high = (middle, high) if inside else (low, middle)
        inner.append(start + (low - 1e-6) * (corner - start))
        beyond = start + (low + 1e-4) * (corner - start)
        assert distance_to_hull(members, beyond) > 1e-6
        outer.append(beyond)
    hull = hc.ClassifierSet(probs)
    assert hull.contains(np.array(inner)).all()
    assert not hull.contains(np.array(outer)).any()


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


def test_accuracy_by_hand(pair):
    hull, labels = pair
    # The second member's third row ties 1 with 2 and says 1; the first member's last ties 0 with 1.
    np.testing.assert_array_equal(hull.accuracy(labels), [1.0, 0.25])
    # The average: (.375, .375, .25) says 0; (.25, .375, .375) says 1; the others are clear.
    assert hull.accuracy(labels, weights="mean") == 1.0


def test_log_score_by_hand(pair):
    hull, labels = pair
    log2 = math.log(2)
    np.testing.assert_allclose(hull.log_score(labels), [log2, (2 + 2 + 1 + 0) / 4 * log2])
    mean = -math.log(0.375 * 0.375 * 0.5 * 0.75) / 4
    assert hull.log_score(labels, weights="mean") == pytest.approx(mean)


def test_brier_score_by_hand(pair):
    hull, labels = pair
    first = (3 * (0.25 + 0.0625 + 0.0625) + 0.5) / 4
    second = (2 * (0.5625 + 0.0625 + 0.25) + 0.5 + 0.0) / 4
    np.testing.assert_allclose(hull.brier_score(labels), [first, second])
    # (.375, .375, .25) - (1, 0, 0); the second alike; (.125, .375, -.5); (-.25, .25, 0).
    mean = (2 * (0.390625 + 0.140625 + 0.0625) + (0.015625 + 0.140625 + 0.25) + 0.125) / 4
    assert hull.brier_score(labels, weights="mean") == pytest.approx(mean)


def test_a_label_that_was_called_impossible_has_an_infinite_log_score():
    hull = hc.ClassifierSet(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]))
    np.testing.assert_allclose(hull.log_score([1, 1]), [math.inf, math.log(2)])
    assert hull.log_score([1, 1], weights=[1, 0]) == math.inf
    assert hull.log_score([1, 1], weights="mean") == pytest.approx(-math.log(0.25 * 0.75) / 2)


def test_certain_and_right_is_the_best_score():
    labels = labels_of()
    hull = hc.ClassifierSet(np.eye(3)[labels])
    assert hull.accuracy(labels) == [1.0]
    assert hull.log_score(labels) == [0.0]
    assert hull.brier_score(labels) == [0.0]


# Scores, in general

SCORES = ("accuracy", "log_score", "brier_score")


def literal_score(name, probs, labels):
    total = []
    for p, y in zip(probs, labels, strict=True):
        if name == "accuracy":
            total.append(float(p.tolist().index(max(p)) == y))
        elif name == "log_score":
            total.append(-math.log(p[y]))
        else:
            total.append(math.fsum((p[k] - (k == y)) ** 2 for k in range(len(p))))
    return math.fsum(total) / len(total)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(("m", "k"), [(1, 2), (4, 3), (3, 10)])
def test_scores_against_the_literal_mean(name, m, k):
    probs, labels = probs_of(6, n=30, m=m, k=k), labels_of(6, n=30, k=k)
    score = getattr(hc.ClassifierSet(probs), name)
    values = score(labels)
    assert values.shape == (m,)
    for member in range(m):
        expected = literal_score(name, probs[:, member], labels)
        assert values[member] == pytest.approx(expected, rel=1e-12)
    mean = score(labels, weights="mean")
    assert isinstance(mean, float)
    assert mean == pytest.approx(literal_score(name, probs.mean(axis=1), labels), rel=1e-12)
    weights = np.random.default_rng(0).dirichlet(np.ones(m))
    mixed = score(labels, weights=weights)
    assert isinstance(mixed, float)
    expected = literal_score(name, np.einsum("m,nmk->nk", weights, probs), labels)
    assert mixed == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_the_weights_of_a_vertex_give_the_score_of_its_member(name):
    score = getattr(hc.ClassifierSet(probs_of(7)), name)
    values = score(labels_of(7))
    for m in range(4):
        assert score(labels_of(7), weights=np.eye(4)[m]) == pytest.approx(values[m], rel=1e-13)


@pytest.mark.parametrize("name", SCORES)
def test_labels_may_be_the_names_of_classes(name):
    classes = ["x", "y", "z"]
    named = hc.ClassifierSet(probs_of(8), classes=classes)
    labels = labels_of(8)
    np.testing.assert_array_equal(
        getattr(named, name)([classes[y] for y in labels]),
        getattr(hc.ClassifierSet(probs_of(8)), name)(labels),
    )


@pytest.mark.parametrize("name", SCORES)
def test_single_precision_scores_are_nearly_the_same(name):
    double = hc.ClassifierSet(probs_of(9))
    single = hc.ClassifierSet(probs_of(9).astype(np.float32))
    labels = labels_of(9)
    np.testing.assert_allclose(
        getattr(single, name)(labels), getattr(double, name)(labels), rtol=1e-5
    )
    assert getattr(single, name)(labels).dtype == np.float64


@pytest.mark.parametrize("name", SCORES)
def test_the_average_is_never_worse_than_the_members_on_average(name):
    # Jensen, for the two scores that are convex; accuracy has no such law.
    score = getattr(hc.ClassifierSet(probs_of(10, n=200)), name)
    labels = labels_of(10, n=200)
    if name != "accuracy":
        assert score(labels, weights="mean") <= score(labels).mean()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("weights", ["median", [0.5, 0.5], [1, 1, 1, 1], [2, -1, 0, 0]], ids=str)
def test_weights_that_are_no_combination_are_refused(name, weights):
    with pytest.raises(hc.InvalidInputError, match="`weights`"):
        getattr(hc.ClassifierSet(probs_of()), name)(labels_of(), weights=weights)


@pytest.mark.parametrize("name", SCORES)
def test_labels_of_a_score_are_checked(name):
    for labels in (labels_of()[:5], labels_of() + 3):
        with pytest.raises(hc.InvalidInputError, match="`labels`"):
            getattr(hc.ClassifierSet(probs_of()), name)(labels)


def test_saturated_members_are_in_their_own_hull():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1000, 1, 10)) * 10 + rng.normal(size=(1000, 10, 10)) * 2.5
    classifiers = hc.ClassifierSet(logits, from_logits=True)
    for member in range(0, 10, 3):
        assert classifiers.contains(classifiers.probs[:, member]).all()
