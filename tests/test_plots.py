"""Plots show what was computed, on the Axes they are given, and change nothing else."""

import io
import subprocess
import sys

import matplotlib as mpl
import mpltern  # noqa: F401  (registers the ternary projection)
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import hullcal as hc
from hullcal import plots, uncertainty
from hullcal.plots._bins import histogram_edges
from hullcal.plots._text import LONGEST, as_typed, clipped, number, undrawn
from hullcal.plots.average_against_weighted import comparison
from hullcal.plots.level_curve import level_rows
from hullcal.plots.null_distribution import null_histogram
from hullcal.plots.reliability import reliability_diagram
from hullcal.plots.simplex import simplex_points
from hullcal.plots.size_distribution import size_groups
from hullcal.plots.weights import shares
from hullcal.results import CalibrationTestResult, MinimizeResult

WILD = ("$\\frac{$", "<script>", "bell\a\n\x00", "n" * 5000, "$x$ & $y$", "\\$", "\ud800", "W" * 99)


def a_set(n=60, m=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), size=(n, m))
    return probs, rng.integers(k, size=n)


def a_result(**changes):
    values = {
        "statistic": 0.12,
        "minimum": 0.08,
        "weights": np.array([0.2, 0.5, 0.3]),
        "null_distribution": np.random.default_rng(0).gamma(4.0, 0.02, size=199),
        "alpha": 0.05,
        "hypothesis": "some combination is calibrated",
        "measure": "ece_conf",
        "null": "refit",
        "minimizer": "pairwise",
        "settings": {},
        "n_evaluations": 1,
        "converged": True,
        "seed": 0,
        "n_samples": 50,
        "n_classes": 3,
    }
    return CalibrationTestResult(**values | changes)


def flat(m):
    return np.full(m, 1 / m)


PROBS, LABELS = a_set()


def a_power():
    return hc.simulation.power(
        PROBS, amount=3.0, n_samples=[20, 40], n_datasets=4, n_resamples=19, rng=0
    )


ORDINARY = {
    "null_distribution": lambda ax=None: plots.null_distribution(a_result(), ax=ax),
    "reliability": lambda ax=None: plots.reliability(PROBS, LABELS, weights=flat(5), ax=ax),
    "weights": lambda ax=None: plots.weights(a_result(), ax=ax),
    "level_curve": lambda ax=None: plots.level_curve([a_result(), a_result(alpha=0.2)], ax=ax),
    "power_curve": lambda ax=None: plots.power_curve(a_power(), ax=ax),
    "simplex": lambda ax=None: plots.simplex(PROBS, truth=[0.2, 0.3, 0.5], ax=ax),
    "size_distribution": lambda ax=None: plots.size_distribution(PROBS, LABELS, ax=ax),
    "average_against_weighted": lambda ax=None: plots.average_against_weighted(
        PROBS, LABELS, [0.6, 0.4, 0, 0, 0], ax=ax
    ),
}
every_plot = pytest.mark.parametrize("name", plots.__all__)


def saved(ax, *, form="svg"):
    """The picture as bytes; warnings are errors in this suite, so none was given."""
    file = io.BytesIO()
    ax.figure.savefig(file, format=form)
    return file.getvalue()


def axes_for(name):
    return Figure().add_subplot(projection="ternary" if name == "simplex" else None)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_labelled(ax, start):
    (line,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return line


# What every plot keeps to.


def test_every_plot_is_tried_here():
    assert set(ORDINARY) == set(plots.__all__)


@every_plot
def test_a_plot_returns_the_axes_it_was_given_and_draws_there(name):
    ax = axes_for(name)
    empty = len(ax.get_children())
    assert ORDINARY[name](ax) is ax
    assert len(ax.get_children()) > empty
    assert ax.figure.axes == [ax]


@every_plot
def test_a_plot_makes_axes_of_publication_width_when_none_is_given(name):
    ax = ORDINARY[name]()
    assert isinstance(ax, Axes)
    assert ax.figure.get_figwidth() in (3.35, 6.7)
    assert ax.get_title() == ""


@every_plot
def test_a_plot_touches_neither_settings_nor_figure_managers(name):
    before, figures = dict(mpl.rcParams), dict(Gcf.figs)
    saved(ORDINARY[name]())
    assert dict(mpl.rcParams) == before
    assert dict(Gcf.figs) == figures


@every_plot
@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_plot_is_saved_without_a_warning(name, form):
    assert len(saved(ORDINARY[name](), form=form)) > 1000


@every_plot
def test_a_plot_refuses_what_is_no_axes(name):
    with pytest.raises(hc.InvalidInputError, match="`ax` must be"):
        ORDINARY[name](ax=[axes_for(name)])


@every_plot
def test_nothing_is_written_outside_the_figure(name):
    ax = ORDINARY[name]()
    figure = ax.figure
    figure.draw_without_rendering()
    box = ax.get_tightbbox()
    assert min(box.x0, box.y0) >= -1  # a pixel of slack
    assert box.x1 <= figure.bbox.width + 1
    assert box.y1 <= figure.bbox.height + 1


@every_plot
def test_a_plot_fits_into_one_column_of_an_axes_with_ordinary_settings(name):
    figure = Figure(figsize=(3.35, 3.0), layout="constrained")
    ax = figure.add_subplot(projection="ternary" if name == "simplex" else None)
    saved(ORDINARY[name](ax))
    box = ax.get_tightbbox()
    assert box.x0 >= -1
    assert box.x1 <= figure.bbox.width + 1


def test_wild_names_fit_into_one_column_of_an_axes_with_ordinary_settings():
    for draw in (
        lambda ax: plots.weights(a_result(weights=flat(len(WILD)), members=WILD), ax=ax),
        lambda ax: plots.level_curve([a_result(measure=name) for name in WILD], ax=ax),
    ):
        saved(draw(Figure(figsize=(3.35, 3.0), layout="constrained").add_subplot()))


def test_pictures_need_no_pyplot_and_hullcal_needs_no_matplotlib():
    code = (
        "import sys, hullcal; assert 'matplotlib' not in sys.modules\n"
        "import hullcal.plots; assert 'matplotlib' not in sys.modules\n"
        "hullcal.plots.simplex([[[0.2, 0.3, 0.5]]]); assert 'matplotlib' in sys.modules\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["False"]


def test_a_plot_of_names_survives_a_user_who_has_tex_switched_on():
    with mpl.rc_context({"text.usetex": True}):
        ax = plots.weights(a_result(members=WILD[:3]))
    assert not any(label.get_usetex() for label in ax.get_yticklabels())


# Names.


@pytest.mark.parametrize("name", WILD)
def test_a_name_is_never_mathematics_and_stays_on_one_line(name):
    text = Figure().text(0, 0, as_typed(name))
    shown, is_math = text._preprocess_math(text.get_text())
    assert is_math is False
    assert shown.isprintable()
    assert len(shown) <= LONGEST


@pytest.mark.parametrize(
    "name", ["$\\frac{$", "<script>", "$x$ & $y$", "\\$", "$", "café", "a_b^c"]
)
def test_a_printable_short_name_is_shown_as_typed(name):
    text = Figure().text(0, 0, as_typed(name))
    assert text._preprocess_math(text.get_text()) == (name, False)


@pytest.mark.parametrize("name", WILD)
def test_what_was_made_for_mathematics_can_be_undone(name):
    assert undrawn(as_typed(name)) == clipped(name)


def test_a_long_name_keeps_both_ends():
    assert as_typed("seed-" + "x" * 90 + "-17", longest=11) == "seed-…xx-17"


def test_numbers_in_legends_say_infinite():
    assert [number(v) for v in (np.inf, -np.inf, 0.12345)] == [
        "infinite",
        "minus infinite",
        "0.123",
    ]


# Bins of histograms.


@pytest.mark.parametrize(
    "values",
    [[], [0.0], [3.0] * 9, [1.0, np.nextafter(1.0, 2.0)], [0.0, 5e-324], [-1e300, 1e300], [-2, -1]],
)
def test_edges_rise_and_hold_every_value(values):
    values = np.array(values, dtype=float)
    edges = histogram_edges(values)
    assert (np.diff(edges) > 0).all()
    assert np.histogram(values, edges)[0].sum() == len(values)


# Null distribution.


def test_the_histogram_has_the_counts_of_the_null_values():
    result = a_result()
    (stairs,) = plots.null_distribution(result).patches
    counts, edges, _ = stairs.get_data()
    assert counts.sum() == result.n_resamples
    for count, low, high in zip(counts[:-1], edges[:-2], edges[1:-1], strict=True):
        inside = (result.null_distribution >= low) & (result.null_distribution < high)
        assert count == inside.sum()


def test_statistic_and_critical_value_stand_where_they_are():
    result = a_result()
    ax = plots.null_distribution(result)
    assert line_labelled(ax, "statistic 0.12 ").get_xdata()[0] == result.statistic
    assert line_labelled(ax, "critical value").get_xdata()[0] == result.critical_value
    assert line_labelled(ax, "statistic").get_linestyle() != (
        line_labelled(ax, "critical").get_linestyle()
    )
    assert ax.get_xlabel() == "ece_conf"


@pytest.mark.parametrize("statistic", [0.1, np.inf])
@pytest.mark.parametrize("n_infinite", [0, 1, 150, 199])
def test_what_is_infinite_is_said_in_the_legend(statistic, n_infinite):
    null = np.linspace(0.0, 1.0, 199)
    null[:n_infinite] = np.inf
    result = a_result(statistic=statistic, null_distribution=null, measure="<lambda> $1$")
    ax = plots.null_distribution(result)
    said = " / ".join(legend_of(ax))
    assert null_histogram(null).n_infinite == n_infinite
    assert (f"199 null values, refit; {n_infinite} infinite" in said) == (n_infinite > 0)
    assert ("statistic infinite" in said) == np.isinf(statistic)
    assert ("critical value infinite" in said) == np.isinf(result.critical_value)
    saved(ax)
    saved(ax, form="png")


@pytest.mark.parametrize("null", [[0.0], [0.5] * 99, [1e-300, 1e-299], [0.0, 1e300]])
def test_odd_null_distributions_are_drawn(null):
    saved(plots.null_distribution(a_result(null_distribution=np.array(null))), form="png")


# Reliability.


def literal_curve(probs, labels, class_index, n_bins):
    """Counts, mean predictions and frequencies by a loop over rows, with exact fractions as edges."""
    from fractions import Fraction

    edges = [float(Fraction(j, n_bins)) for j in range(n_bins + 1)]
    counts, predicted, hits = [0] * n_bins, [0.0] * n_bins, [0] * n_bins
    for row, label in zip(probs, labels, strict=True):
        k = class_index
        if k is None:
            k = max(range(len(row)), key=lambda j: (row[j], -j))
        j = max(j for j in range(n_bins) if row[k] >= edges[j])
        counts[j] += 1
        predicted[j] += row[k]
        hits[j] += label == k
    empty = float("nan")
    return (
        counts,
        [p / c if c else empty for p, c in zip(predicted, counts, strict=True)],
        [h / c if c else empty for h, c in zip(hits, counts, strict=True)],
    )


@pytest.mark.parametrize("class_index", [None, 0, 2])
@pytest.mark.parametrize("n_bins", [1, 7, 10])
def test_the_curves_agree_with_a_literal_loop(class_index, n_bins):
    probs = np.round(PROBS, 1)  # many values on edges
    probs[..., -1] = np.clip(1 - probs[..., :-1].sum(axis=-1), 0, 1)
    probs /= probs.sum(axis=-1, keepdims=True)
    weights = np.array([0.5, 0.5, 0, 0, 0])
    diagram = reliability_diagram(
        probs, LABELS, weights=weights, class_index=class_index, n_bins=n_bins
    )
    classifiers = hc.ClassifierSet(probs)
    expected = [*classifiers.probs.swapaxes(0, 1), classifiers.mean(), classifiers.mix(weights)]
    found = [*diagram.members, diagram.average, diagram.weighted]
    for curve, rows in zip(found, expected, strict=True):
        counts, predicted, observed = literal_curve(rows, LABELS, class_index, n_bins)
        assert curve.counts.tolist() == counts
        np.testing.assert_allclose(curve.predicted, predicted, rtol=1e-12)
        np.testing.assert_allclose(curve.observed, observed, rtol=1e-12)


def test_the_confidence_curve_is_the_table_of_the_binning_room_and_gives_the_ece():
    diagram = reliability_diagram(PROBS[:, :1], LABELS)
    table = hc.binning.reliability_table(PROBS[:, 0], LABELS)
    np.testing.assert_array_equal(diagram.average.counts, table.counts)
    np.testing.assert_array_equal(diagram.average.observed, table.accuracy)
    np.testing.assert_array_equal(diagram.edges, table.edges)
    curve = diagram.members[0]
    gaps = np.nansum(curve.counts * np.abs(curve.observed - curve.predicted)) / len(LABELS)
    assert gaps == pytest.approx(hc.ConfidenceECE()(PROBS[:, 0], LABELS), abs=1e-12)


def share_of_bins_inside(class_index, confidence, power=1.0):
    """How many well-filled bins of 150 sets lie in their band, of how many; power 1 is calibrated."""
    rng = np.random.default_rng(2)
    inside = total = 0
    for seed in range(10**6, 10**6 + 150):
        probs = rng.dirichlet(np.ones(3), size=3000)
        labels = (rng.random((3000, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(max=2)
        claimed = probs**power / (probs**power).sum(axis=1, keepdims=True)
        diagram = reliability_diagram(
            claimed, labels, class_index=class_index, confidence=confidence, rng=seed
        )
        # In bins with few rows frequencies are coarse and a closed band holds more than its share.
        full = diagram.average.counts > 150
        held = (diagram.low <= diagram.average.observed) & (
            diagram.average.observed <= diagram.high
        )
        inside, total = inside + int(held[full].sum()), total + int(full.sum())
    return inside, total


@pytest.mark.parametrize("class_index", [None, 1])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_the_band_holds_its_share_of_bins_under_calibration(class_index, confidence):
    inside, total = share_of_bins_inside(class_index, confidence)
    low, high = stats.binom.interval(0.999, total, confidence)
    assert total > 700
    # Frequencies have steps, so the share may exceed its name a little.
    assert low <= inside <= high + 0.015 * total


def test_the_band_loses_the_bins_of_an_overconfident_classifier():
    inside, total = share_of_bins_inside(None, 0.95, power=2.0)
    assert inside < 0.5 * total


def test_the_band_agrees_with_labels_redrawn_one_by_one():
    p = np.array([0.55, 0.9, 0.6, 0.58, 0.95, 0.97])
    probs = np.stack([p, 1 - p], axis=1)
    diagram = reliability_diagram(probs, [0] * 6, n_bins=2, n_resamples=20_000, confidence=0.8)
    # Only the second bin has rows; the number of hits is a Poisson-binomial variable.
    mass = np.array([1.0])
    for chance in p:
        mass = np.convolve(mass, [1 - chance, chance])
    cumulated = mass.cumsum()
    assert np.isnan(diagram.low[0])
    assert diagram.low[1] == np.searchsorted(cumulated, 0.1) / 6
    assert diagram.high[1] == np.searchsorted(cumulated, 0.9) / 6


def test_the_band_is_that_of_the_drawn_combination_and_follows_its_seed():
    weights = np.eye(5)[3]
    of_weighted = reliability_diagram(PROBS, LABELS, weights=weights, rng=4)
    of_member = reliability_diagram(PROBS[:, 3], LABELS, rng=4)
    np.testing.assert_array_equal(of_weighted.low, of_member.low)
    np.testing.assert_array_equal(of_weighted.high, of_member.high)
    other = reliability_diagram(PROBS[:, 3], LABELS, rng=5)
    assert not np.array_equal(of_member.low, other.low, equal_nan=True)
    generator = reliability_diagram(PROBS, LABELS, rng=np.random.default_rng(0))
    again = reliability_diagram(PROBS, LABELS, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(generator.low, again.low)


def test_the_diagram_draws_what_was_computed():
    weights = np.array([0.4, 0.6, 0, 0, 0])
    ax = plots.reliability(PROBS, LABELS, weights=weights)
    diagram = reliability_diagram(PROBS, LABELS, weights=weights)
    for curve, label in [(diagram.average, "average"), (diagram.weighted, "weighted")]:
        line, full = line_labelled(ax, label), curve.counts > 0
        np.testing.assert_array_equal(line.get_xdata(), curve.predicted[full])
        np.testing.assert_array_equal(line.get_ydata(), curve.observed[full])
    assert line_labelled(ax, "average").get_linestyle() != (
        line_labelled(ax, "weighted").get_linestyle()
    )
    band, counts = ax.containers
    full = ~np.isnan(diagram.low)
    np.testing.assert_array_equal([bar.get_y() for bar in band], diagram.low[full])
    tops = [bar.get_y() + bar.get_height() for bar in band]
    np.testing.assert_allclose(tops, diagram.high[full])
    heights = np.array([bar.get_height() for bar in counts])
    np.testing.assert_allclose(
        heights / heights.max(), diagram.weighted.counts / max(diagram.weighted.counts)
    )
    assert {"95 % band of weighted", "5 members"} <= set(legend_of(ax))


def test_at_most_thirty_members_are_drawn_and_the_first_and_last_are_among_them():
    probs, labels = a_set(m=100)
    diagram = reliability_diagram(probs, labels, n_resamples=1)
    assert len(diagram.members) == 30
    for drawn, m in [(0, 0), (-1, 99)]:
        own = reliability_diagram(probs[:, m], labels, n_resamples=1).average
        np.testing.assert_array_equal(diagram.members[drawn].observed, own.observed)
    saved(plots.reliability(probs, labels))


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 2), (10, 1, 2), (80, 100, 2), (50, 3, 50)])
@pytest.mark.parametrize("class_index", [None, 1])
def test_reliability_of_sets_of_any_shape_is_drawn(n, m, k, class_index):
    probs, labels = a_set(n, m, k)
    ax = plots.reliability(probs, labels, class_index=class_index, n_bins=max(n, 2), n_resamples=3)
    saved(ax, form="png")


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]], ids=["all right", "all wrong"])
def test_reliability_of_certain_predictions_is_drawn(labels):
    ax = plots.reliability([[1.0, 0.0]] * 3, labels)
    assert line_labelled(ax, "average").get_ydata().tolist() == [float(labels[0] == 0)]
    saved(ax)


def test_the_class_is_named_as_typed():
    classifiers = hc.ClassifierSet(PROBS, classes=["a", "$b$", "c"])
    ax = plots.reliability(classifiers, np.array(["a", "$b$", "c"])[LABELS], class_index=1)
    assert ax.get_xlabel() == "probability of class \\$b\\$"
    saved(ax)


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(hc.InvalidInputError, match="`class_index` must be less than"):
        plots.reliability(PROBS, LABELS, class_index=3)


# Weights.


def test_bars_are_the_weights_largest_first():
    ax = plots.weights(a_result(members=("a", "b", "c")))
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0.3, 0.2]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "c", "a"]
    assert [text.get_text() for text in ax.texts] == ["0.500", "0.300", "0.200"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first bar is on top


def test_the_rest_is_summed_and_hatched():
    weights = np.random.default_rng(0).dirichlet(np.ones(57))
    result = a_result(weights=weights)
    bars = shares(result)
    assert bars.names[-1] == "37 others"
    assert bars.values[-1] == pytest.approx(np.sort(weights)[:37].sum())
    assert sum(bars.values) == pytest.approx(1.0)
    assert bars.names[0] == f"member {weights.argmax()}"
    ax = plots.weights(result)
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], bars.values)
    assert ax.patches[-1].get_hatch()
    assert not ax.patches[0].get_hatch()
    assert shares(result, max_shown=56).names[-1] == "1 other"
    assert shares(result, max_shown=57).n_others == 0


def test_wild_names_one_member_and_a_search_are_drawn():
    wild = a_result(weights=flat(len(WILD)), members=WILD)
    search = MinimizeResult(
        weights=np.ones(1),
        value=0.0,
        n_evaluations=1,
        converged=True,
        measure="ece_conf",
        minimizer="pairwise",
        settings={},
        seed=0,
    )
    for result in (wild, search, a_result(weights=flat(100))):
        ax = plots.weights(result)
        saved(ax)
        saved(ax, form="png")
    with pytest.raises(hc.InvalidInputError, match="`max_shown`"):
        plots.weights(wild, max_shown=0)


# Level curve.


def test_segments_dots_and_whiskers_stand_at_the_pvalues():
    results = [a_result(), a_result(statistic=0.0, null="paper"), a_result(statistic=np.inf)]
    ax = plots.level_curve(results)
    below, above, whiskers = (collection.get_segments() for collection in ax.collections)
    for row, result in enumerate(results):
        p, (low, high) = result.pvalue, result.pvalue_interval
        np.testing.assert_array_equal(below[row], [[0, row], [p, row]])
        np.testing.assert_array_equal(above[row], [[p, row], [1, row]])
        np.testing.assert_array_equal(whiskers[row], [[low, row], [high, row]])
    widths = [collection.get_linewidth()[0] for collection in ax.collections]
    assert widths[1] > 2 * widths[0]
    assert line_labelled(ax, "p, with").get_xdata().tolist() == [r.pvalue for r in results]
    assert line_labelled(ax, "α").get_xdata()[0] == 0.05
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["ece_conf, refit", "ece_conf, paper", "ece_conf, refit"]


def test_each_row_has_its_own_level_if_they_differ():
    ax = plots.level_curve([a_result(), a_result(alpha=0.2)])
    levels = [segment[0][0] for segment in ax.collections[-1].get_segments()]
    assert levels == [0.05, 0.2]


def test_one_result_many_results_and_wild_names_are_drawn():
    for results in (a_result(), [a_result(measure=name, null=name) for name in WILD * 5]):
        saved(plots.level_curve(results), form="png")
    assert len(level_rows(a_result())) == 1


@pytest.mark.parametrize("results", [[], [0.05]])
def test_what_is_no_result_is_refused(results):
    with pytest.raises(hc.InvalidInputError, match="`results` must be"):
        plots.level_curve(results)


# Simplex.


def test_the_points_are_the_members_their_mean_the_truth_and_the_combination():
    truth = PROBS.mean(axis=1)
    weights = np.array([0.5, 0.25, 0.25, 0, 0])
    points = simplex_points(PROBS, instance=7, truth=truth, weights=weights)
    np.testing.assert_array_equal(points.members, PROBS[7])
    np.testing.assert_allclose(points.mean, PROBS[7].mean(axis=0))
    np.testing.assert_array_equal(points.truth, truth[7])
    np.testing.assert_allclose(points.combination, hc.ClassifierSet(PROBS).mix(weights)[7])
    ax = plots.simplex(PROBS, instance=7, truth=truth, weights=weights)
    assert legend_of(ax) == ["convex hull", "members", "average", "weighted", "truth"]
    # The height of a point in the triangle is the probability of its top class.
    height = line_labelled(ax, "members").get_ydata()
    np.testing.assert_allclose(height / height.max(), PROBS[7, :, 0] / PROBS[7, :, 0].max())


def test_the_hull_has_the_corners_and_every_member_inside():
    inner = np.array([1, 1, 1]) / 3
    members = np.vstack([np.eye(3), inner, [0.5, 0.5, 0.0]])
    corners = simplex_points(members[None]).hull
    assert sorted(map(tuple, corners)) == sorted(map(tuple, np.eye(3)))
    hull = simplex_points(PROBS, instance=3).hull
    assert hc.ClassifierSet(hull[None]).contains(PROBS[3].mean(axis=0)).all()
    for member in PROBS[3]:
        assert hc.ClassifierSet(hull[None]).contains(member).all()


@pytest.mark.parametrize(
    ("members", "n_corners"),
    [
        ([[0.2, 0.3, 0.5]], 1),
        ([[0.2, 0.3, 0.5]] * 4, 1),
        ([[1, 0, 0], [0, 1, 0]], 2),
        ([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.75, 0], [0, 1, 0]], 2),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 3),
    ],
)
def test_hulls_without_an_area_are_drawn_too(members, n_corners):
    probs = np.array([members], dtype=float)
    assert len(simplex_points(probs).hull) == n_corners
    saved(plots.simplex(probs), form="png")


def test_corners_carry_the_names_of_the_classes():
    ax = plots.simplex(hc.ClassifierSet(PROBS, classes=WILD[:3]))
    assert ax.get_tlabel() == as_typed(WILD[0])
    saved(ax)
    assert simplex_points(PROBS).corners == ("class 0", "class 1", "class 2")


def test_other_numbers_of_classes_other_axes_and_rows_beyond_the_end_are_refused():
    for k in (2, 50):
        with pytest.raises(hc.InvalidInputError, match="3 classes"):
            plots.simplex(a_set(k=k)[0])
    with pytest.raises(hc.InvalidInputError, match="ternary"):
        plots.simplex(PROBS, ax=Figure().add_subplot())
    with pytest.raises(hc.InvalidInputError, match="`instance` must be less"):
        plots.simplex(PROBS, instance=60)


# Size distribution.


@pytest.mark.parametrize(
    "size", ["mutual_information", "generalized_hartley", "tv_diameter", "interval_width"]
)
def test_the_groups_are_the_sizes_of_the_right_and_the_wrong(size):
    groups = size_groups(PROBS, LABELS, size=size)
    values = getattr(uncertainty, size)(PROBS)
    right = PROBS.mean(axis=1).argmax(axis=1) == LABELS
    np.testing.assert_array_equal(groups.right, values[right])
    np.testing.assert_array_equal(groups.wrong, values[~right])
    saved(plots.size_distribution(PROBS, LABELS, size=size))


def test_the_entropy_range_is_upper_less_lower_and_weights_decide_who_predicts():
    weights = np.eye(5)[2]
    groups = size_groups(PROBS, LABELS, size="entropy_range", weights=weights)
    lower, upper = uncertainty.entropy_bounds(PROBS)
    right = PROBS[:, 2].argmax(axis=1) == LABELS
    np.testing.assert_array_equal(groups.right, (upper - lower)[right])


def test_densities_and_medians_are_drawn_and_counted():
    groups = size_groups(PROBS, LABELS)
    ax = plots.size_distribution(PROBS, LABELS)
    for stairs, line, values in zip(
        ax.patches, ax.lines, (groups.right, groups.wrong), strict=True
    ):
        density, edges, _ = stairs.get_data()
        assert (density * np.diff(edges)).sum() == pytest.approx(1.0)
        np.testing.assert_allclose(
            density * np.diff(edges) * len(values), np.histogram(values, edges)[0], atol=1e-9
        )
        assert line.get_xdata()[0] == np.median(values)
    assert ax.patches[0].get_hatch() != ax.patches[1].get_hatch()
    assert [str(len(groups.right)) in legend_of(ax)[0], str(len(groups.wrong)) in legend_of(ax)[1]]
    assert legend_of(ax)[0].startswith(f"right ({len(groups.right)} instances")


@pytest.mark.parametrize("wrong", [0, 1], ids=["all right", "all wrong"])
@pytest.mark.parametrize("m", [1, 4])
def test_an_empty_group_is_said_and_sets_of_one_member_are_drawn(wrong, m):
    probs = a_set(m=m, k=2)[0]
    labels = (probs.mean(axis=1).argmax(axis=1) + wrong) % 2
    ax = plots.size_distribution(probs, labels)
    assert ["right (no instances)", "wrong (no instances)"][1 - wrong] in legend_of(ax)
    saved(ax)
    saved(ax, form="png")


@pytest.mark.parametrize(("m", "k"), [(100, 2), (3, 50)])
def test_sizes_of_many_members_and_of_many_classes_are_drawn(m, k):
    saved(plots.size_distribution(*a_set(20, m, k)))


def test_an_unknown_size_is_refused_with_the_known_ones():
    with pytest.raises(hc.InvalidInputError, match="entropy_range"):
        plots.size_distribution(PROBS, LABELS, size="diameter")


# Average against weighted.


def test_the_lanes_hold_accuracy_and_both_errors():
    weights = np.array([0.6, 0.4, 0, 0, 0])
    accuracy, confidence, classwise = comparison(PROBS, LABELS, weights).lanes
    classifiers = hc.ClassifierSet(PROBS)
    np.testing.assert_array_equal(accuracy.members, classifiers.accuracy(LABELS))
    assert accuracy.weighted == classifiers.accuracy(LABELS, weights=weights)
    mean, mixed = PROBS.mean(axis=1), PROBS[:, 0] * 0.6 + PROBS[:, 1] * 0.4
    assert confidence.average == pytest.approx(hc.ConfidenceECE()(mean, LABELS), abs=1e-9)
    assert classwise.weighted == pytest.approx(hc.ClasswiseECE()(mixed, LABELS), abs=1e-9)
    for m in range(5):
        assert classwise.members[m] == hc.ClasswiseECE()(PROBS[:, m], LABELS)


def test_points_stand_in_proportion_between_the_printed_ends():
    weights = [0.6, 0.4, 0, 0, 0]
    ax = plots.average_against_weighted(PROBS, LABELS, weights)
    texts = [text.get_text() for text in ax.texts]
    for y, lane in enumerate(comparison(PROBS, LABELS, weights).lanes):
        low, high = lane.scale
        _, members, average, weighted = ax.lines[4 * y : 4 * y + 4]
        for line, value in [
            (members, lane.members),
            (average, lane.average),
            (weighted, lane.weighted),
        ]:
            np.testing.assert_allclose(low + (high - low) * line.get_xdata(), value, atol=1e-12)
            assert set(line.get_ydata()) == {y}
        assert len({line.get_marker() for line in (members, average, weighted)}) == 3
        said = f"average {number(lane.average)}, weighted {number(lane.weighted)}"
        assert texts[3 * y : 3 * y + 3] == [said, number(low), number(high)]


@pytest.mark.parametrize(("n", "m", "k"), [(10, 1, 2), (30, 1, 3), (30, 100, 2), (30, 3, 50)])
def test_sets_of_any_shape_are_compared(n, m, k):
    ax = plots.average_against_weighted(*a_set(n, m, k), flat(m))
    saved(ax)
    saved(ax, form="png")


def test_a_set_of_equal_members_has_one_number_a_lane():
    ax = plots.average_against_weighted([[[1.0, 0.0]] * 2] * 10, [0, 1] * 5, [0.5, 0.5])
    assert [text.get_text() for text in ax.texts[:2]] == ["average 0.5, weighted 0.5", "0.5"]
    saved(ax)


def test_few_rows_are_warned_of_once():
    with pytest.warns(hc.HullcalWarning, match="rows are fewer") as warned:
        ax = plots.average_against_weighted(*a_set(1, 3, 2), flat(3))
    assert len(warned) == 1
    assert warned[0].filename == __file__
    saved(ax)
