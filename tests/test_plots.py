"""Plots show what was computed, on the Axes they are given, and change nothing else."""

import io
import pickle
import subprocess
import sys
from functools import cache, partial

import matplotlib as mpl
import matplotlib.pyplot as plt
import mpltern  # noqa: F401  (registers the ternary projection)
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import hullcal as hc
import test_results
from hullcal import plots, uncertainty
from hullcal.plots.canvas import as_typed, number
from hullcal.plots.results import shares
from hullcal.plots.sets import corners_of_hull, scores
from simulation import random_set

WILD = ("$\\frac{$", "<script>", "bell\a\n\x00", "n" * 5000, "$x$ & $y$", "\\$", "\ud800", "W" * 99)


a_set = partial(random_set, seed=0, n=60, m=5)
#: A result with null values as a test has them.
a_result = partial(
    test_results.result,
    statistic=0.12,
    weights=np.array([0.2, 0.5, 0.3]),
    null_distribution=np.random.default_rng(0).gamma(4.0, 0.02, size=199),
    null="refit",
    notes=(),
)


def flat(m):
    return np.full(m, 1 / m)


PROBS, LABELS = a_set()


@cache
def a_power():
    return hc.simulation.power(
        PROBS, amount=3.0, n_samples=[20, 40], n_datasets=4, n_resamples=19, rng=0
    )


@cache
def a_monitor():
    monitor = hc.Monitor(n_members=PROBS.shape[1], n_classes=PROBS.shape[2])
    for half in np.array_split(np.arange(len(LABELS)), 2):
        monitor.update(PROBS[half], LABELS[half])
    return monitor


ORDINARY = {
    "null_distribution": lambda ax=None: plots.null_distribution(a_result(), ax=ax),
    "ReliabilityDisplay": lambda ax=None: (
        plots.ReliabilityDisplay.from_predictions(LABELS, PROBS, ax=ax).ax_
    ),
    "reliability": lambda ax=None: plots.reliability(PROBS, LABELS, weights=flat(5), ax=ax),
    "weights": lambda ax=None: plots.weights(a_result(), ax=ax),
    "level_curve": lambda ax=None: plots.level_curve([a_result(), a_result(alpha=0.2)], ax=ax),
    "power_curve": lambda ax=None: plots.power_curve(a_power(), ax=ax),
    "evidence": lambda ax=None: plots.evidence(a_monitor(), ax=ax),
    "simplex": lambda ax=None: plots.simplex(PROBS, truth=[0.2, 0.3, 0.5], ax=ax),
    "size_distribution": lambda ax=None: plots.size_distribution(PROBS, LABELS, ax=ax),
    "average_against_weighted": lambda ax=None: plots.average_against_weighted(
        PROBS, LABELS, [0.6, 0.4, 0, 0, 0], ax=ax
    ),
}
every_plot = pytest.mark.parametrize("name", plots.__all__)


def drawn(ax):
    """The same, drawn; warnings are errors in this suite, so none was given."""
    ax.figure.draw_without_rendering()
    return ax


def axes_for(name):
    figure = Figure(figsize=(3.35, 3.0), layout="constrained")
    return figure.add_subplot(projection="ternary" if name == "simplex" else None)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_labelled(ax, start):
    (line,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return line


# What every plot keeps to.


@every_plot
def test_a_plot_returns_the_axes_it_was_given_and_fits_into_their_column(name):
    ax = axes_for(name)
    empty = len(ax.get_children())
    assert ORDINARY[name](ax) is ax
    assert len(ax.get_children()) > empty
    assert ax.figure.axes == [ax]
    ax.figure.draw_without_rendering()
    box = ax.get_tightbbox()
    assert box.x0 >= -1  # a pixel of slack
    assert box.x1 <= ax.figure.bbox.width + 1
    assert not hasattr(ax, "_repr_png_")  # who made it, shows it
    with pytest.raises(hc.InvalidInputError, match="`ax` must be"):
        ORDINARY[name](ax=[ax])


@every_plot
def test_a_plot_of_its_own_has_the_width_of_a_column_and_touches_nothing_global(name):
    before, figures = dict(mpl.rcParams), dict(Gcf.figs)
    ax = ORDINARY[name]()
    figure = ax.figure
    assert isinstance(ax, Axes)
    assert figure.get_figwidth() == 3.35
    assert ax.get_title() == ""
    assert ax._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
    box = ax.get_tightbbox()
    assert min(box.x0, box.y0) >= -1  # a pixel of slack
    assert box.x1 <= figure.bbox.width + 1
    assert box.y1 <= figure.bbox.height + 1
    assert dict(mpl.rcParams) == before
    assert dict(Gcf.figs) == figures


def test_a_pickled_figure_still_shows_its_picture():
    figure = pickle.loads(pickle.dumps(plots.weights(a_result()).figure))
    assert figure.axes[0]._repr_png_().startswith(b"\x89PNG")


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


# Names, numbers and bins.


@pytest.mark.parametrize("name", [*WILD, "$", "café", "a_b^c"])
def test_a_name_is_shown_as_typed_and_never_as_mathematics(name):
    text = Figure().text(0, 0, as_typed(name))
    shown, is_math = text._preprocess_math(text.get_text())
    assert is_math is False
    assert shown.isprintable()
    assert len(shown) <= 24
    assert (shown == name) == (name.isprintable() and len(name) <= 24)


def test_wild_names_fit_and_survive_a_user_who_has_tex_switched_on():
    with mpl.rc_context({"text.usetex": True}):
        ax = plots.weights(a_result(members=WILD[:3]))
    assert not any(label.get_usetex() for label in ax.get_yticklabels())
    ax = plots.weights(a_result(weights=flat(len(WILD)), members=WILD), ax=axes_for("weights"))
    for form in ("svg", "png"):
        ax.figure.savefig(io.BytesIO(), format=form)
    results = [a_result(measure=name, null=name) for name in WILD]
    drawn(plots.level_curve(results, ax=axes_for("level_curve")))
    ax = drawn(plots.simplex(hc.ClassifierSet(PROBS, classes=WILD[:3])))
    assert ax.get_tlabel() == as_typed(WILD[0])


# Null distribution.


def test_bars_statistic_and_critical_value_are_those_of_the_test():
    result = a_result()
    ax = plots.null_distribution(result)
    counts, edges, _ = ax.patches[0].get_data()
    assert counts.sum() == result.n_resamples
    for count, low, high in zip(counts[:-1], edges[:-2], edges[1:-1], strict=True):
        inside = (result.null_distribution >= low) & (result.null_distribution < high)
        assert count == inside.sum()
    statistic, critical = line_labelled(ax, "statistic 0.12 "), line_labelled(ax, "critical value")
    assert statistic.get_xdata()[0] == result.statistic
    assert critical.get_xdata()[0] == result.critical_value
    assert statistic.get_linestyle() != critical.get_linestyle()
    assert ax.get_xlabel() == "ece_conf"


@pytest.mark.parametrize(
    ("statistic", "n_infinite"), [(0.1, 1), (0.1, 199), (np.inf, 0), (np.inf, 199)]
)
def test_what_is_infinite_is_said_in_the_legend(statistic, n_infinite):
    null = np.linspace(0.0, 1.0, 199)
    null[:n_infinite] = np.inf
    result = a_result(statistic=statistic, null_distribution=null, measure="<lambda> $1$")
    said = " / ".join(legend_of(drawn(plots.null_distribution(result))))
    assert (f'199 simulated values, null "refit"; {n_infinite} infinite' in said) == (
        n_infinite > 0
    )
    assert ("statistic infinite" in said) == np.isinf(statistic)
    assert ("critical value infinite" in said) == np.isinf(result.critical_value)


@pytest.mark.parametrize("null", [[0.0], [0.5] * 99, [1e-300, 1e-299], [0.0, 1e300]])
def test_odd_null_distributions_are_drawn(null):
    drawn(plots.null_distribution(a_result(null_distribution=np.array(null))))


# Reliability.


def diagram_of(probs, labels, **options):
    return plots.ReliabilityDisplay.from_predictions(labels, probs, **options)


def test_the_band_agrees_with_the_exact_distribution_of_redrawn_labels():
    p = np.array([0.55, 0.9, 0.6, 0.58, 0.95, 0.97])
    probs = np.stack([p, 1 - p], axis=1)
    diagram = diagram_of(probs, [0] * 6, n_bins=2, n_resamples=20_000, confidence=0.8)
    # Only the second bin has rows; the number of hits is a Poisson-binomial variable.
    mass = np.array([1.0])
    for chance in p:
        mass = np.convolve(mass, [1 - chance, chance])
    cumulated = mass.cumsum()
    assert np.isnan(diagram.low[0])
    assert diagram.low[1] == np.searchsorted(cumulated, 0.1) / 6
    assert diagram.high[1] == np.searchsorted(cumulated, 0.9) / 6


def test_the_band_is_that_of_the_drawn_combination_and_follows_its_seed():
    of_weighted = diagram_of(PROBS, LABELS, weights=np.eye(5)[3], rng=4)
    of_member = diagram_of(PROBS[:, 3], LABELS, rng=4)
    np.testing.assert_array_equal(of_weighted.low, of_member.low)
    np.testing.assert_array_equal(of_weighted.high, of_member.high)
    other = diagram_of(PROBS[:, 3], LABELS, rng=np.random.default_rng(5))
    assert not np.array_equal(of_member.low, other.low, equal_nan=True)


def test_the_diagram_draws_what_was_computed():
    weights = np.array([0.4, 0.6, 0, 0, 0])
    diagram = diagram_of(PROBS, LABELS, weights=weights)
    ax = diagram.ax_
    average, weighted = line_labelled(ax, "average"), line_labelled(ax, "weighted")
    for curve, line in [(diagram.average, average), (diagram.weighted, weighted)]:
        full = curve.counts > 0
        np.testing.assert_array_equal(line.get_xdata(), curve.confidence[full])
        np.testing.assert_array_equal(line.get_ydata(), curve.accuracy[full])
    assert average.get_linestyle() != weighted.get_linestyle()
    band, counts = ax.containers
    full = ~np.isnan(diagram.low)
    np.testing.assert_array_equal([bar.get_y() for bar in band], diagram.low[full])
    tops = [bar.get_y() + bar.get_height() for bar in band]
    np.testing.assert_allclose(tops, diagram.high[full])
    heights = np.array([bar.get_height() for bar in counts])
    rows = diagram.weighted.counts[full]
    np.testing.assert_allclose(heights / heights.max(), rows / rows.max())
    assert {"95 % band of weighted", "5 members"} <= set(legend_of(ax))


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]], ids=["all right", "all wrong"])
def test_one_classifier_is_drawn_once_even_if_it_is_certain(labels):
    ax = drawn(plots.reliability([[1.0, 0.0]] * 3, labels, weights=[1.0]))
    assert line_labelled(ax, "classifier").get_ydata().tolist() == [float(labels[0] == 0)]
    said = {"95 % band", "rows per bin (tallest: 3)", "calibrated", "classifier"}
    assert set(legend_of(ax)) == said


def test_a_seed_by_another_name_is_answered_with_its_own():
    with pytest.raises(TypeError, match="no argument `random_state`; the seed is called `rng`"):
        plots.reliability(PROBS, LABELS, random_state=0)


def test_the_class_is_named_as_typed_and_one_that_is_not_there_is_refused():
    classifiers = hc.ClassifierSet(PROBS, classes=["a", "$b$", "c"])
    ax = plots.reliability(classifiers, np.array(["a", "$b$", "c"])[LABELS], class_index=1)
    assert drawn(ax).get_xlabel() == "probability of class \\$b\\$"
    with pytest.raises(hc.InvalidInputError, match="`class_index` must be less than"):
        plots.reliability(PROBS, LABELS, class_index=3)


def test_the_display_is_used_as_that_of_scikit_learn_and_shows_the_same_points():
    X, y = make_classification(400, weights=[0.4], random_state=0)
    forest = RandomForestClassifier(7, min_samples_leaf=5, random_state=0).fit(X[::2], y[::2])
    # Nine bins, and no prediction on an edge: theirs are closed on the right.
    theirs = CalibrationDisplay.from_estimator(forest, X[1::2], y[1::2], n_bins=9)
    ours = plots.ReliabilityDisplay.from_estimator(
        forest, X[1::2], y[1::2], n_bins=9, class_index=1
    )
    np.testing.assert_allclose(ours.line_.get_xdata(), theirs.prob_pred, rtol=1e-12)
    np.testing.assert_allclose(ours.line_.get_ydata(), theirs.prob_true, rtol=1e-12)
    assert len(ours.members) == 7
    other = plots.ReliabilityDisplay.from_predictions(
        y[1::2], forest.predict_proba(X[1::2]), n_bins=9, class_index=1
    )
    np.testing.assert_allclose(other.line_.get_ydata(), theirs.prob_true, rtol=1e-12)
    # What theirs promise: `plot` gives the display itself, whose Axes and Figure are the last.
    for display in (theirs, ours):
        ax = Figure().subplots()
        assert display.plot(ax=ax) is display
        assert (display.ax_, display.figure_) == (ax, ax.figure)
        assert display.line_ in ax.lines
        assert display.plot().ax_ is not ax
    plt.close("all")


def test_a_display_shows_its_picture_unless_it_was_drawn_on_given_axes():
    display = plots.ReliabilityDisplay.from_predictions(LABELS, PROBS)
    assert display._repr_png_().startswith(b"\x89PNG")
    assert display.plot(ax=axes_for("reliability"))._repr_png_() is None
    assert len(repr(display)) < 100


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
    ax = drawn(plots.weights(result))
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], bars.values)
    assert ax.patches[-1].get_hatch()
    assert not ax.patches[0].get_hatch()
    assert shares(result, max_shown=56).names[-1] == "1 other"
    assert shares(result, max_shown=57).n_others == 0
    with pytest.raises(hc.InvalidInputError, match="`max_shown`"):
        plots.weights(result, max_shown=0)


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


def test_one_result_many_and_different_levels_are_drawn_and_what_is_no_result_is_refused():
    for results in (a_result(), [a_result()] * 20):
        drawn(plots.level_curve(results))
    ax = plots.level_curve([a_result(), a_result(alpha=0.2)])
    assert [segment[0][0] for segment in ax.collections[-1].get_segments()] == [0.05, 0.2]
    assert "α of the test" in legend_of(ax)
    for results in ([], [0.05]):
        with pytest.raises(hc.InvalidInputError, match="`results` must be"):
            plots.level_curve(results)


# Simplex.


def test_the_points_are_the_members_their_mean_the_truth_and_the_combination():
    truth = PROBS.mean(axis=1)
    weights = np.array([0.5, 0.25, 0.25, 0, 0])
    ax = plots.simplex(PROBS, instance=7, truth=truth, weights=weights)
    assert legend_of(ax) == ["convex hull", "members", "average", "weighted", "truth"]
    for name, points in (
        ("members", PROBS[7]),
        ("average", PROBS[7].mean(axis=0)),
        ("weighted", weights @ PROBS[7]),
        ("truth", truth[7]),
    ):
        # In a triangle of height 1 the first class goes up, and the last to the right.
        top, left, right = np.atleast_2d(points).T
        line = line_labelled(ax, name)
        np.testing.assert_allclose(line.get_ydata(), top, atol=1e-6)
        np.testing.assert_allclose(line.get_xdata(), (right - left) / np.sqrt(3), atol=1e-6)
    assert [ax.get_tlabel(), ax.get_llabel(), ax.get_rlabel()] == [f"class {k}" for k in range(3)]


def test_hulls_without_an_area_are_drawn_too():
    line = [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.75, 0], [0, 1, 0]]
    point = [[0.2, 0.3, 0.5]] * 4
    for members, n_corners in (
        (point[:1], 1),
        (point, 1),
        (line[::3], 2),
        (line, 2),
        (np.eye(3), 3),
    ):
        assert len(corners_of_hull(np.array(members, dtype=float))) == n_corners
    drawn(plots.simplex([point, line]))
    drawn(plots.simplex([point, line], instance=1))


def test_other_numbers_of_classes_other_axes_and_rows_beyond_the_end_are_refused():
    for k in (2, 50):
        with pytest.raises(hc.InvalidInputError, match="3 classes"):
            plots.simplex(a_set(k=k)[0])
    with pytest.raises(hc.InvalidInputError, match="ternary"):
        plots.simplex(PROBS, ax=Figure().add_subplot())
    with pytest.raises(hc.InvalidInputError, match="`instance` must be less"):
        plots.simplex(PROBS, instance=60)


# Size distribution.


def entropy_range(probs):
    lower, upper = uncertainty.entropy_bounds(probs)
    return upper - lower


@pytest.mark.parametrize("weights", [None, np.eye(5)[2]], ids=["average", "one member"])
@pytest.mark.parametrize(
    "size",
    ["mutual_information", "generalized_hartley", "tv_diameter", "interval_width", "entropy_range"],
)
def test_densities_and_medians_are_those_of_the_right_and_the_wrong(size, weights):
    values = entropy_range(PROBS) if size == "entropy_range" else getattr(uncertainty, size)(PROBS)
    predictions = PROBS.mean(axis=1) if weights is None else PROBS[:, 2]
    is_right = predictions.argmax(axis=1) == LABELS
    ax = drawn(plots.size_distribution(PROBS, LABELS, size=size, weights=weights))
    groups = (values[is_right], values[~is_right])
    for stairs, line, group, said in zip(ax.patches, ax.lines, groups, legend_of(ax), strict=True):
        density, edges, _ = stairs.get_data()
        counts = density * np.diff(edges) * len(group)
        np.testing.assert_allclose(counts, np.histogram(group, edges)[0], atol=1e-9)
        assert counts.sum() == pytest.approx(len(group))
        assert line.get_xdata()[0] == np.median(group)
        assert f"({len(group)} instances" in said
    assert ax.patches[0].get_hatch() != ax.patches[1].get_hatch()


def test_an_unknown_size_is_refused():
    with pytest.raises(hc.InvalidInputError, match="entropy_range"):
        plots.size_distribution(PROBS, LABELS, size="diameter")


@pytest.mark.parametrize("wrong", [0, 1], ids=["all right", "all wrong"])
def test_an_empty_group_is_said_and_sets_of_one_member_are_drawn(wrong):
    probs = a_set(m=1, k=2)[0]
    labels = (probs.mean(axis=1).argmax(axis=1) + wrong) % 2
    ax = drawn(plots.size_distribution(probs, labels))
    assert ["right (no instances)", "wrong (no instances)"][1 - wrong] in legend_of(ax)


# Average against weighted.


def test_the_scores_are_accuracy_and_both_errors():
    weights = np.array([0.6, 0.4, 0, 0, 0])
    accuracy, confidence, classwise = scores(PROBS, LABELS, weights).values()
    classifiers = hc.ClassifierSet(PROBS)
    np.testing.assert_array_equal(accuracy[:5], classifiers.accuracy(LABELS))
    assert accuracy[6] == classifiers.accuracy(LABELS, weights=weights)
    mean, mixed = PROBS.mean(axis=1), PROBS[:, 0] * 0.6 + PROBS[:, 1] * 0.4
    assert confidence[5] == pytest.approx(hc.ConfidenceECE()(mean, LABELS), abs=1e-9)
    assert classwise[6] == pytest.approx(hc.ClasswiseECE()(mixed, LABELS), abs=1e-9)
    assert classwise[4] == hc.ClasswiseECE()(PROBS[:, 4], LABELS)


def test_points_stand_in_proportion_between_the_printed_ends():
    weights = [0.6, 0.4, 0, 0, 0]
    ax = plots.average_against_weighted(PROBS, LABELS, weights)
    texts = [text.get_text() for text in ax.texts]
    for y, values in enumerate(scores(PROBS, LABELS, weights).values()):
        low, high = values.min(), values.max()
        lines = ax.lines[4 * y + 1 : 4 * y + 4]
        for line, some in zip(lines, (values[:5], values[5:6], values[6:]), strict=True):
            np.testing.assert_allclose(low + (high - low) * line.get_xdata(), some, atol=1e-12)
            assert set(line.get_ydata()) == {y}
        assert len({line.get_marker() for line in lines}) == 3
        said = f"average {number(values[5])}, weighted {number(values[6])}"
        assert texts[3 * y : 3 * y + 3] == [said, number(low), number(high)]
