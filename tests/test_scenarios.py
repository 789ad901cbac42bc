"""Simulated data sets: their draws, the boundary of a hull, and what each scenario promises."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import oracles_simulation as oracles
from hullcal import InvalidInputError
from hullcal.simulation import scenarios
from hullcal.simulation.scenarios import HOLDS, along, boundaries, boundary, in_hull, scenario

CORNERS = np.eye(3)


def stream(seed=0):
    return np.random.default_rng(seed)


# Draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.02, 0.5, 3.0, 1e6])
def test_a_class_of_a_dirichlet_draw_follows_its_beta_distribution(a):
    drawn = scenarios.dirichlet(np.tile([a, 2 * a], (5000, 1)), stream(1))
    # Above a half, doubles are too coarse for shares that tiny concentrations leave to the other.
    levels = stats.beta(a, 2 * a).cdf([*drawn[drawn[:, 0] < 0.5, 0], 0.5])
    assert stats.kstest(levels[:-1] / levels[-1], "uniform").pvalue > 1e-3
    assert stats.binomtest(len(levels) - 1, 5000, levels[-1]).pvalue > 1e-3


@pytest.mark.parametrize("a", [5e-324, 1e-300, 1e-3, 1e290])
def test_no_concentration_gives_nan_or_an_empty_row(a):
    rows = scenarios.dirichlet(a * np.array([[1.0, 2.0, 0.0]] * 200), stream(2))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=4e-16)
    assert (rows >= 0).all()
    assert (rows[:, 2] == 0).all(), "a class of concentration 0 gets nothing"


def test_vanishing_concentrations_choose_a_corner_in_proportion():
    rows = scenarios.dirichlet(np.tile([1e-309, 3e-309], (4000, 1)), stream(3))
    assert set(rows.ravel()) == {0.0, 1.0}
    assert stats.binomtest(int(rows[:, 1].sum()), 4000, 0.75).pvalue > 1e-3


def test_labels_come_as_often_as_their_distribution_says():
    p = np.array([0.0, 0.1, 0.6, 0.0, 0.3, 0.0])
    drawn = scenarios.draw_labels(np.tile(p, (20_000, 1)), stream(4))
    counts = np.bincount(drawn, minlength=6)
    assert (counts[p == 0] == 0).all(), "a class of probability 0 is never drawn"
    assert stats.chisquare(counts[p > 0], 20_000 * p[p > 0]).pvalue > 1e-3


@pytest.mark.parametrize(("uniform", "drawn"), [(0.0, 1), (1 - 2.0**-53, 2)])
@pytest.mark.parametrize("scale", [1.0, 1 + 2e-16, 0.3])
def test_the_ends_of_the_unit_interval_draw_a_possible_class(uniform, drawn, scale):
    fixed = SimpleNamespace(random=lambda shape: np.full(shape, uniform))
    assert scenarios.draw_labels(scale * np.array([[0.0, 0.3, 0.7, 0.0]]), fixed) == [drawn]


# The boundary ---------------------------------------------------------------------------------


def cases():
    """Members, start and corner: random ones, and those on which an algorithm might trip."""
    rng = stream(7)
    for m, k in [(1, 3), (2, 2), (3, 6), (12, 4), (5, 5)]:
        members = rng.dirichlet(np.ones(k), size=m)
        yield f"M={m}, K={k}", members, rng.dirichlet(np.ones(m)) @ members, 0
    members = rng.dirichlet(np.ones(4), size=4)
    yield "every member twice", np.repeat(members, 2, axis=0), members.mean(axis=0), 1
    yield "the start is a member", members, members[2], 0
    yield "the start is outside", members, np.array([0.97, 0.01, 0.01, 0.01]), 3
    yield "one member, away from the start", members[:1], members[1], 0
    yield "all corners are members", np.eye(4), members[0], 2
    yield "some corners are members", np.vstack([np.eye(4)[:2], members]), members.mean(axis=0), 2
    zeros = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.3, 0.3, 0.0, 0.4]])
    yield "zeros, towards a class without hope", zeros, zeros.mean(axis=0), 2
    yield "members on a line", np.linspace(members[0], members[1], 5), members[:2].mean(axis=0), 0
    yield "a start on a face", members, members[:3].mean(axis=0), 1


CASES = [pytest.param(p, x, np.eye(len(x))[c], id=name) for name, p, x, c in cases()]


@pytest.mark.parametrize(("members", "start", "corner"), CASES)
def test_the_boundary_is_within_one_step_of_the_line_search(members, start, corner):
    _, last = oracles.find_boundary(members, start, corner)
    step = boundaries(members[None], start[None], corner[None])[0]
    found = boundary(members, start, corner)
    if last == -1:
        assert np.isnan(step)
        np.testing.assert_array_equal(found, start)
        return
    assert last / 99 - 1e-6 <= step <= (last + 1) / 99 + 1e-6
    assert in_hull(members, found)
    assert np.allclose(found, corner) or not in_hull(members, found + 1e-6 * (corner - found))


@pytest.mark.parametrize("seed", range(8))
def test_a_triangle_is_left_where_plane_geometry_says(seed):
    rng = stream(seed)
    triangle, start = rng.dirichlet(np.ones(3), size=3), rng.dirichlet(np.full(3, 3.0))
    if seed % 2:
        start = rng.dirichlet(np.ones(3)) @ triangle
    corner = CORNERS[rng.integers(3)]
    expected = oracles.exit_from_triangle(triangle, start, corner)
    found = boundary(triangle, start, corner)
    # A ray that leaves at a small angle stays within the tolerance of 1e-9 for a while.
    np.testing.assert_allclose(found, start if expected is None else expected, rtol=0, atol=1e-6)


def test_probabilities_far_below_the_tolerance_of_linear_programs_do_no_harm():
    data = scenario("S3", n_samples=300, n_members=40, n_classes=6, spread=0.1, rng=5)
    assert data.probs.min() < 1e-60
    corner = np.eye(6)[data.corners]
    steps = boundaries(data.probs, data.mean, corner)
    inside = [in_hull(*row) for row in zip(data.probs, data.mean, strict=True)]
    np.testing.assert_array_equal(~np.isnan(steps), inside)
    assert 20 < sum(inside) < 280
    found, further = (along(data.mean, corner, steps + more) for more in (0.0, 1e-3))
    for n in np.flatnonzero(inside):
        assert in_hull(data.probs[n], found[n])
        assert steps[n] > 0.999 or not in_hull(data.probs[n], further[n])


def test_the_mean_is_outside_as_often_as_a_linear_program_says():
    # 96 % for the program of Algorithm 2, which forgives 1e-7; more in exact geometry.
    data = scenario("S2", n_samples=4000, rng=1)
    assert np.isclose((data.boundary == data.mean).all(axis=1).mean(), 0.962, atol=0.012)
    steps = boundaries(data.probs, data.mean, np.eye(10)[data.corners])
    assert np.isclose(np.isnan(steps).mean(), 0.992, atol=0.006)


def test_single_precision_is_forgiven_its_rounding():
    double = stream(3).dirichlet(np.ones(3), size=6)
    single = (double * 1.00000003).astype(np.float32)
    start = double.mean(axis=0)
    found = boundary(single, start, CORNERS[1])
    np.testing.assert_allclose(found, boundary(double, start, CORNERS[1]), atol=1e-5)
    assert found[1] > start[1] + 0.01, "the start is inside but for rounding"
    np.testing.assert_array_equal(boundary(single.astype(float), start, CORNERS[1]), start)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("members", [0.5, 0.5], r"`members` must have shape \(n_members, n_classes\).*\(2,\)"),
        ("members", [[1.0], [1.0]], "`members` must have shape .* at least 2 classes"),
        ("members", [[0.5, 0.6], [0.5, 0.5]], "`members` must hold numbers of at least 0 whose"),
        ("start", [0.2, 0.3, 0.5], r"`start` must have shape \(2,\).*got shape \(3,\)"),
        ("start", [1.5, -0.5], "`start` must hold numbers of at least 0"),
        ("corner", [np.nan, 1.0], "`corner` must hold numbers of at least 0"),
    ],
)
def test_bad_rays_are_refused_by_name(name, value, message):
    good = {"members": [[0.5, 0.5]], "start": [0.5, 0.5], "corner": [1.0, 0.0]}
    with pytest.raises(InvalidInputError, match=message):
        boundary(**(good | {name: value}))
    if name != "corner":
        members, point = (good | {name: value})["members"], (good | {name: value})["start"]
        with pytest.raises(InvalidInputError, match=message.replace("start", "point")):
            in_hull(members, point)


# The scenarios --------------------------------------------------------------------------------

SMALL = {"n_samples": 60, "n_members": 6, "n_classes": 4, "spread": 0.3}


def small(name, **changes):
    return scenario(name, **({} if name == "calibrated" else SMALL) | {"rng": 1} | changes)


@pytest.mark.parametrize("name", HOLDS)
def test_every_scenario_gives_distributions_and_labels(name):
    data = small(name)
    n, m, k = data.probs.shape
    assert (n, m, k) == ((100, 2, 2) if name == "calibrated" else (60, 6, 4))
    for rows in (data.probs, data.truth, data.mean, data.boundary):
        if rows is not None:
            assert (rows >= 0).all()
            np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-12)
    assert data.labels.shape == (n,)
    assert (data.truth[np.arange(n), data.labels] > 0).all()
    assert data.name == name
    assert (data.weights is None) == (name not in ("S1", "S1_vertex"))
    assert (data.boundary is None) == (data.corners is None) == (name not in ("S2", "S3"))


@pytest.mark.parametrize("name", ["S1", "S2", "S3"])
@pytest.mark.parametrize("spread", [1e-300, 1e300])
def test_no_spread_gives_nan(name, spread):
    data = small(name, spread=spread, n_samples=15)
    for rows in (data.probs, data.truth):
        np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-12)
    if spread < 1e-200:
        np.testing.assert_allclose(data.probs[:, 0], data.mean, atol=1e-12)


@pytest.mark.parametrize("name", ["S1", "S1_vertex"])
def test_the_truth_of_s1_is_one_combination_for_all_instances(name):
    data = small(name)
    expected = sum(w * data.probs[:, m] for m, w in enumerate(data.weights))
    np.testing.assert_allclose(data.truth, expected, atol=1e-14)
    assert all(in_hull(row, x) for row, x in zip(data.probs, data.truth, strict=True))
    assert (sorted(data.weights) == [0, 0, 0, 0, 0, 1]) == (name == "S1_vertex")


def test_weights_are_uniform_in_the_paper_and_sparse_in_the_scripts():
    for protocol, a in (("paper", 1.0), ("paper+sparse_weights", 1 / 4)):
        first = [
            scenario("S1", n_samples=1, n_members=4, rng=i, protocol=protocol).weights[0]
            for i in range(400)
        ]
        assert stats.kstest(first, stats.beta(a, 3 * a).cdf).pvalue > 1e-3


def test_the_corner_of_s2_is_the_closest_and_of_s3_any():
    closest = small("S2")
    distance = np.linalg.norm(closest.mean[:, None] - np.eye(4), axis=2)
    np.testing.assert_array_equal(closest.corners, distance.argmin(axis=1))
    anywhere = small("S3", n_samples=2000, n_members=1)
    assert stats.chisquare(np.bincount(anywhere.corners, minlength=4)).pvalue > 1e-3


@pytest.mark.parametrize("name", ["S2", "S3"])
@pytest.mark.parametrize("n_members", [4, 12])
def test_the_truth_is_beyond_the_hull_where_the_mean_is_inside(name, n_members):
    data = small(name, n_members=n_members, n_samples=300)
    inside = [in_hull(row, x) for row, x in zip(data.probs, data.mean, strict=True)]
    assert any(inside)
    for n in np.flatnonzero(inside):
        on_edge = np.abs(data.truth[n] - data.boundary[n]).max() < 1e-3
        assert on_edge or not in_hull(data.probs[n], data.truth[n])
    corner = np.eye(4)[data.corners]
    outside = np.isnan(boundaries(data.probs, data.mean, corner, tolerance=1e-7))
    assert any(outside)
    np.testing.assert_array_equal(data.boundary[outside], data.mean[outside])


@pytest.mark.parametrize("name", ["S2", "S3"])
def test_strength_scales_the_way_to_the_corner(name):
    full, quarter = small(name), small(name, strength=0.25)
    np.testing.assert_array_equal(quarter.boundary, full.boundary)
    np.testing.assert_allclose(
        quarter.truth - quarter.boundary, 0.25 * (full.truth - full.boundary), atol=1e-15
    )
    way = np.eye(4)[full.corners] - full.boundary
    share = (full.truth - full.boundary)[way != 0] / way[way != 0]
    assert 0 <= share.min() < share.max() <= 1


@pytest.mark.parametrize("closest", [True, False])
def test_truths_are_distributed_as_in_the_literal_scenario(closest):
    literal = oracles.s2_or_s3(stream(8), 30, 4, 3, 1.0, closest)
    data = scenario(
        "S2" if closest else "S3", n_samples=2000, n_members=4, n_classes=3, spread=1.0, rng=8
    )
    for ours, theirs in (
        (data.truth.max(axis=1), literal["truth"].max(axis=1)),
        (data.boundary.min(axis=1), literal["boundary"].min(axis=1)),
        (data.probs[:, 0, 0], literal["probs"][:, 0, 0]),
    ):
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


def test_the_first_member_of_calibrated_is_calibrated_and_the_truth_is_elsewhere():
    data = scenario("calibrated", n_samples=200_000, rng=2)
    claim = data.probs[:, 0, 1]
    cells = np.digitize(claim, np.linspace(0.25, 0.75, 9)[1:-1])
    for cell in range(8):
        rows = cells == cell
        error = np.sqrt(0.25 / rows.sum())
        assert abs(data.labels[rows].mean() - claim[rows].mean()) < 4.5 * error
    one = data.truth[:, 1]
    low, high = data.probs[:, :, 1].min(axis=1), data.probs[:, :, 1].max(axis=1)
    assert ((one < low) | (one > high)).mean() < 0.5
    mixed = np.linalg.lstsq((data.probs[:, 0] - data.probs[:, 1])[:, 1:], one - data.probs[:, 1, 1])
    assert mixed[1][0] / len(one) > 1e-3, "no combination is the truth"


# The authors' scripts -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "spread"), [("S2", 1.0), ("S3", 1.0), ("S3", 1e6)])
def test_the_boundary_of_the_scripts_is_their_search_with_its_index(name, spread):
    data = small(name, n_samples=20, n_members=8, n_classes=3, spread=spread, protocol="authors")
    corner = np.eye(3)[data.corners]
    agree = [
        np.allclose(oracles.scripts_boundary(*row), found, atol=1e-6)
        for *row, found in zip(data.probs, data.mean, corner, data.boundary, strict=True)
    ]
    # Their linear program and our distance may part where the mean is 1e-7 from the hull.
    assert np.mean(agree) > 0.9
    # The corner where the mean is outside; the mean where the ray never leaves a hull of corners.
    assert 0 < (data.boundary == corner).all(axis=1).sum() < 20
    assert (data.boundary == data.mean).all(axis=1).any() == (spread > 1)


@pytest.mark.parametrize("protocol", ["paper+carried_mixing", "authors"])
def test_the_mixing_variable_of_the_scripts_is_overwritten(protocol):
    data = small("S3", protocol=protocol)
    mixing = np.random.default_rng(1).spawn(3)[1].random(60)[0]
    expected = oracles.scripts_truth(data.boundary, data.corners, float(mixing))
    np.testing.assert_array_equal(data.truth, expected)


def test_what_is_no_distribution_has_its_most_probable_class_as_label():
    edge, corners = stream(6).dirichlet(np.ones(3), size=400), stream(7).integers(3, size=400)
    ours = scenarios._carried(edge, np.eye(3)[corners], 0.5, 1.0)
    np.testing.assert_array_equal(ours, oracles.scripts_truth(edge, corners, 0.5))
    assert 0.1 < (ours.max(axis=1) == 1).mean() < 0.9
    # A sum above 1 by a rounding is enough; the class is that of the vector before it is adjusted.
    edge = np.array([[0.0, 0.0, 1.0], [0.5, 0.5 + 2.0**-52, 0.0]])
    ours = scenarios._carried(edge, np.eye(3)[[2, 2]], 0.5, 1.0)
    np.testing.assert_array_equal(ours, np.eye(3)[[2, 2]])


# Seeds and messages ---------------------------------------------------------------------------


def same(one, other):
    return all(
        np.array_equal(getattr(one, field), getattr(other, field))
        for field in ("probs", "labels", "truth")
    )


@pytest.mark.parametrize("name", HOLDS)
def test_the_same_seed_gives_the_same_data_and_another_does_not(name):
    assert same(small(name, rng=3), small(name, rng=3))
    assert same(small(name, rng=stream(3)), small(name, rng=stream(3)))
    assert not same(small(name, rng=3), small(name, rng=4))
    assert not same(small(name, rng=None), small(name, rng=None))


def test_members_depend_on_nothing_but_seed_and_size():
    reference = small("S1").probs
    for name in ("S1_vertex", "S2", "S3"):
        for protocol in ("paper", "authors"):
            np.testing.assert_array_equal(small(name, protocol=protocol).probs, reference)
    np.testing.assert_array_equal(small("S3", strength=0.5).probs, reference)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "S4"}, "Unknown name 'S4'. Choose from: S1, S1_vertex, S2, S3, calibrated"),
        ({"n_classes": 1}, "`n_classes` must be an integer of at least 2; got 1"),
        ({"spread": np.inf}, "`spread` must be a finite number greater than 0; got inf"),
        ({"name": "S2", "strength": 1.5}, "`strength` must be at most 1; got 1.5"),
        ({"strength": 0.5}, "`strength` has no meaning in scenario S1; got 0.5"),
        ({"name": "calibrated", "n_members": 3}, "`n_members` must be 2 in scenario calibrated"),
        ({"name": "calibrated", "spread": 0.1}, "`spread` has no meaning in scenario calibrated"),
        ({"protocol": "scripts"}, "Unknown protocol 'scripts'. Choose from: paper, authors, "),
    ],
)
def test_bad_scenarios_are_refused_by_name(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        scenario(**({"name": "S1"} | changes))
