"""The tests of one classifier: against their formulas, against published results, and under H0."""

import math
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaincc
from scipy.stats import binom, binomtest, chi2

import hullcal as hc
import oracles_classical as oracle
from oracles import draw_labels

ALPHA = 0.05


def smooth(seed, n=60, k=3, concentration=1.0):
    """Forecasts without ties and labels that follow them."""
    rng = np.random.default_rng([seed, n, k])
    probs = rng.dirichlet(np.full(k, concentration), size=n)
    return probs, draw_labels(rng, probs)


def coarse(seed, n=61, k=3, parts=8):
    """Forecasts in eighths, so that rows are tied across every cut and some claim 0 or 1."""
    rng = np.random.default_rng([seed, n, k, parts])
    probs = rng.multinomial(parts, np.full(k, 1 / k), size=n) / parts
    return probs, draw_labels(rng, probs)


def quiet(test, *data, **options):
    """The test, whatever it has to say about small counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        return test(*data, **options)


# Hosmer-Lemeshow: the statistic


@pytest.mark.parametrize("data", [smooth, coarse])
@pytest.mark.parametrize(("k", "n_bins"), [(2, 10), (3, 1), (3, 7), (5, 3)])
def test_hosmer_lemeshow_against_the_oracle(data, k, n_bins):
    for seed in range(4):
        probs, labels = data(seed, k=k)
        result = quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=n_bins)
        expected = oracle.hosmer_lemeshow(probs, labels, n_bins)
        assert result.statistic == pytest.approx(expected, rel=1e-10, abs=1e-10)
        assert result.degrees_of_freedom == (k - 1) * n_bins
        tail = gammaincc((k - 1) * n_bins / 2, expected / 2)
        assert result.pvalue == pytest.approx(tail, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("n", "n_bins"), [(60, 10), (21, 7)])
def test_two_classes_give_the_textbook_statistic(n, n_bins):
    for seed in range(5):
        probs, labels = smooth(seed, n=n, k=2)
        result = quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=n_bins)
        expected = oracle.hosmer_lemeshow_textbook(probs[:, 1], labels, n_bins)
        assert result.statistic == pytest.approx(expected, rel=1e-10)


def test_one_bin_is_pearsons_test_by_hand():
    # Expected counts (10, 5, 5), observed (7, 8, 5): 9/10 + 9/5 + 0 = 2.7 with 2 degrees of freedom.
    probs = np.tile([0.5, 0.25, 0.25], (20, 1))
    labels = np.repeat([0, 1, 2], [7, 8, 5])
    result = hc.classical.hosmer_lemeshow(probs, labels, n_bins=1)
    assert result.statistic == pytest.approx(2.7)
    assert result.degrees_of_freedom == 2
    assert result.pvalue == pytest.approx(math.exp(-1.35))


def test_what_is_called_impossible_counts_nothing_until_it_happens():
    probs = np.repeat([[1.0, 0.0], [0.5, 0.5]], 20, axis=0)
    for happens, statistic, pvalue in [(False, 0.0, 1.0), (True, math.inf, 0.0)]:
        labels = np.tile([0, 1], 20) * (np.arange(40) >= (0 if happens else 20))
        result = quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=2)
        assert (result.statistic, result.pvalue) == (statistic, pvalue)


# Hosmer-Lemeshow: degrees of freedom, refusals, the result


@pytest.mark.parametrize(("k", "n_bins"), [(2, 3), (4, 10)])
def test_a_fitted_model_costs_two_bins_per_free_class(k, n_bins):
    probs, labels = smooth(1, k=k)
    held_out = quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=n_bins)
    fitted = quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=n_bins, fitted=True)
    assert fitted.statistic == held_out.statistic
    assert fitted.degrees_of_freedom == (k - 1) * (n_bins - 2)
    expected = chi2.sf(fitted.statistic, (k - 1) * (n_bins - 2))
    assert fitted.pvalue == pytest.approx(expected, rel=1e-10)
    assert fitted.pvalue < held_out.pvalue
    with pytest.raises(hc.InvalidInputError, match="`n_bins`"):
        quiet(hc.classical.hosmer_lemeshow, probs, labels, n_bins=2, fitted=True)


@pytest.mark.parametrize("test", ["hosmer_lemeshow", "resampling_test", "skce_test"])
def test_several_members_and_labels_that_do_not_match_are_refused(test):
    probs, labels = smooth(0)
    test = getattr(hc.classical, test)
    with pytest.raises(hc.InvalidInputError, match=r"`probs` .* got 2 members"):
        test(np.stack([probs, probs], axis=1), labels)
    for wrong in (labels[:-1], labels + 3):
        with pytest.raises(hc.InvalidInputError, match="`labels`"):
            test(probs, wrong)


# Hosmer-Lemeshow: the warning


def bins_of_twenty(low, n_low):
    """Ten bins of 20 rows; `n_low` of them give class 1 nearly the probability `low`, the others .4."""
    p = np.repeat([low] * n_low + [0.4] * (10 - n_low), 20) + np.linspace(-1e-6, 1e-6, 200)
    return np.column_stack([1 - p, p]), np.tile([0, 0, 0, 1, 1], 40)


@pytest.mark.parametrize(("low", "n_low"), [(0.3, 5), (0.2, 4), (0.2, 5), (0.04, 1)])
def test_cells_below_one_or_a_fifth_below_five_are_worth_a_warning(low, n_low):
    data = bins_of_twenty(low, n_low)
    enough = (low, n_low) in [(0.3, 5), (0.2, 4)]  # at most 4 of 20 cells expect 20 * .2 = 4
    said = pytest.warns(hc.HullcalWarning, match="expected counts are below 5")
    with nullcontext() if enough else said:
        hc.classical.hosmer_lemeshow(*data)


def test_predictions_tied_across_a_cut_are_worth_a_warning():
    p = np.full(100, 0.5)
    with pytest.warns(hc.HullcalWarning, match="straddle"):
        hc.classical.hosmer_lemeshow(np.column_stack([1 - p, p]), np.tile([0, 1], 50), n_bins=4)


def test_a_set_of_one_and_names_of_classes_are_welcome():
    probs, labels = bins_of_twenty(0.3, 5)
    plain = hc.classical.hosmer_lemeshow(probs, labels)
    names = np.array(["no", "yes"])[labels]
    assert hc.classical.hosmer_lemeshow(probs[:, None], names, classes=["no", "yes"]) == plain
    logits = hc.classical.hosmer_lemeshow(np.log(probs), labels, from_logits=True)
    assert logits.pvalue == pytest.approx(plain.pvalue)


# The resampling test is Algorithm 1 with one member


@pytest.mark.parametrize("measure", ["ece_conf", "hl_cwise", "skce_uq", hc.ConfidenceECE(n_bins=4)])
def test_the_resampling_test_is_the_test_of_a_set_of_one(measure):
    probs, labels = smooth(5, n=50)
    options = {"measure": measure, "n_resamples": 39, "rng": 11, "alpha": 0.99}
    one = quiet(hc.classical.resampling_test, probs, labels, **options, n_jobs=2)
    other = quiet(hc.truth_test, probs[:, None, :], labels, **options)
    assert one == other
    assert one.alpha == 0.99
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)


# SKCE: the statistic and the three p-values against the oracle


@pytest.mark.parametrize("data", [smooth, coarse])
@pytest.mark.parametrize(("kernel", "bandwidth"), [("exponential", 0.2), ("gaussian", 1.0)])
def test_the_asymptotic_test_against_the_oracle(data, kernel, bandwidth):
    for seed in range(4):
        probs, labels = data(seed, n=41)
        result = quiet(hc.classical.skce_test, probs, labels, bandwidth=bandwidth, kernel=kernel)
        h = oracle.skce_terms(probs, labels, bandwidth, kernel)
        assert result.statistic == pytest.approx(oracle.skce(h, "ul"), rel=1e-10, abs=1e-14)
        assert result.pvalue == pytest.approx(oracle.asymptotic_pvalue(h), rel=1e-8)


@pytest.mark.parametrize("estimator", ["ul", "uq", "b"])
def test_the_distribution_free_test_against_the_oracle(estimator):
    for seed in range(4):
        probs, labels = smooth(seed, n=41)
        labels = np.where(np.arange(41) % 4 == 0, labels, 0)  # class 0 far too often
        options = {"estimator": estimator, "method": "distribution_free"}
        result = quiet(hc.classical.skce_test, probs, labels, **options)
        expected = oracle.skce(oracle.skce_terms(probs, labels), estimator)
        assert result.statistic == pytest.approx(expected, rel=1e-10, abs=1e-14)
        bound = oracle.distribution_free_pvalue(estimator, 41, expected)
        assert result.pvalue == pytest.approx(bound, rel=1e-9)
        if estimator == "b":
            assert 0 < bound < 1


# SKCE: the bootstrap against every possible resample


def test_a_result_shows_itself_in_a_line_and_in_a_notebook():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=40)
    labels = np.arange(40) % 3
    found = hc.classical.skce_test(probs, labels, estimator="uq", method="bootstrap", rng=0)
    assert repr(found) == f"<ClassicalTestResult: p = {found.pvalue:.4g}, {found.test}>"
    for name, fact in (line.split(maxsplit=1) for line in str(found).splitlines()):
        assert f">{name}</th>" in found._repr_html_()
        assert f">{fact}</td>" in found._repr_html_()


@pytest.mark.parametrize("seed", [0, 3])
def test_the_bootstrap_p_value_estimates_that_of_all_resamples(seed):
    n, n_resamples = 5, 4999
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet(np.ones(3), size=n), rng.integers(3, size=n)
    h = oracle.skce_terms(probs, labels)
    observed = n * oracle.skce(h, "uq")
    everything = oracle.bootstrap_distribution(h)
    assert everything.mean() == pytest.approx(0.0, abs=1e-12)  # what recentring is for
    exact = float(np.mean(everything >= observed - 1e-12))
    assert 0.02 < exact < 0.98
    options = {"estimator": "uq", "method": "bootstrap", "n_resamples": n_resamples}
    result = quiet(hc.classical.skce_test, probs, labels, **options, rng=seed)
    count = result.pvalue * (n_resamples + 1) - 1
    assert count == pytest.approx(round(count), abs=1e-6)
    assert binomtest(round(count), n_resamples, exact).pvalue > 1e-3


# SKCE: what is not offered, and what is degenerate


@pytest.mark.parametrize(
    ("estimator", "method"),
    [("ul", "bootstrap"), ("uq", "asymptotic"), ("b", "asymptotic"), ("b", "bootstrap")],
)
def test_a_combination_without_theory_is_refused_in_both_names(estimator, method):
    probs, labels = smooth(0)
    said = f"`method` `{method}` needs estimator .*; got estimator `{estimator}`"
    with pytest.raises(hc.InvalidInputError, match=said):
        hc.classical.skce_test(probs, labels, estimator=estimator, method=method)


def test_unknown_options_are_refused_by_name():
    probs, labels = smooth(0)
    for name, value in {
        "estimator": "ux",
        "method": "exact",
        "kernel": "linear",
        "bandwidth": 0,
    }.items():
        with pytest.raises(hc.InvalidInputError, match=name):
            hc.classical.skce_test(probs, labels, **{name: value})


SKCE_TESTS = [
    *(("ul", "asymptotic"), ("uq", "bootstrap")),
    *((estimator, "distribution_free") for estimator in ("ul", "uq", "b")),
]


@pytest.mark.parametrize(("estimator", "method"), SKCE_TESTS)
def test_certain_and_right_gives_no_evidence_at_all(estimator, method):
    labels = np.arange(40) % 3
    result = hc.classical.skce_test(
        np.eye(3)[labels], labels, estimator=estimator, method=method, n_resamples=19, rng=0
    )
    assert result.statistic == 0.0
    assert result.pvalue == 1.0


@pytest.mark.parametrize(
    ("probs", "labels", "statistic", "pvalue"),
    [
        (np.tile([1.0, 0.0, 0.0], (40, 1)), np.ones(40, int), 2.0, 0.0),
        # Every pair holds both labels of a fair coin: h = -1/2 each time.
        (np.full((40, 2), 0.5), np.tile([0, 1], 20), -0.5, 1.0),
    ],
)
def test_an_estimate_without_variance_is_all_the_evidence_or_none(probs, labels, statistic, pvalue):
    result = hc.classical.skce_test(probs, labels)
    assert result.statistic == pytest.approx(statistic)
    assert result.pvalue == pvalue


# Published results: three of the networks of Widmann et al. (2019)

DATA = Path(__file__).parents[2] / "shared" / "data" / "cifar10_14nets.npz"
BANDWIDTH = {
    "densenet121": 0.9973334074,
    "mobilenet_v2": 0.9986228943,
    "resnet_orig": 0.9999801517,
}
# The published script squares the sign of a negative SKCE_ul away: there the bound is 1.
PUBLISHED = [
    ("densenet121", "ul", "asymptotic", -0.00034300214660923725, 0.8392336627764564),
    ("mobilenet_v2", "ul", "asymptotic", -4.487736692275322e-5, 0.5393426329629679),
    ("resnet_orig", "ul", "asymptotic", 0.0004082206858650098, 0.26156146626936416),
    ("densenet121", "b", "distribution_free", 0.00014200255937238076, 1.0),
    ("mobilenet_v2", "b", "distribution_free", 0.00020640480253506248, 0.9998738282170359),
    ("resnet_orig", "b", "distribution_free", 0.0004270270957092768, 0.899103196672312),
    ("densenet121", "uq", "distribution_free", 0.00013014214272447108, 0.9999894144452068),
    ("mobilenet_v2", "uq", "distribution_free", 0.00019108966621409577, 0.9999771782225871),
    ("resnet_orig", "uq", "distribution_free", 0.00040901304129217786, 0.9998954481734563),
    ("resnet_orig", "ul", "distribution_free", 0.0004082206858650098, 0.9998958528434616),
]


@pytest.fixture(scope="module")
def networks():
    if not DATA.exists():
        pytest.skip(f"the predictions {DATA.name} are absent")
    with np.load(DATA) as stored:
        return stored["probs"], stored["labels"].astype(int), stored["members"].tolist()


@pytest.mark.parametrize(("name", "estimator", "method", "statistic", "pvalue"), PUBLISHED)
def test_skce_against_published_results(networks, name, estimator, method, statistic, pvalue):
    probs, labels, members = networks
    data = probs[:, members.index(name)].astype(float), labels
    options = {"estimator": estimator, "method": method, "bandwidth": BANDWIDTH[name]}
    result = hc.classical.skce_test(*data, **options)
    # The estimate is a difference of terms near 1 whose predictions were published as decimals.
    assert result.statistic == pytest.approx(statistic, rel=3e-7, abs=3e-10)
    assert result.pvalue == pytest.approx(pvalue, abs=5e-7 if method == "asymptotic" else 1e-7)


# Level and power: 300 data sets of 200 rows and three classes

N_SETS = 300
MOST = binom.ppf(0.99, N_SETS, ALPHA)  # what a test that keeps its level exceeds once in a hundred


def rejections(test, odds=(1.0, 1.0, 1.0), n_sets=N_SETS):
    """How often a test rejects if the true odds of classes are these times what forecasts say."""
    count = 0
    for d in range(n_sets):
        rng = np.random.default_rng([2023, d])
        probs = rng.dirichlet(np.ones(3), size=200)
        truth = probs * odds
        labels = draw_labels(rng, truth / truth.sum(axis=1, keepdims=True))
        count += bool(test(probs, labels, d).pvalue <= ALPHA)
    return count


def hosmer_lemeshow(**options):
    return lambda probs, labels, d: quiet(hc.classical.hosmer_lemeshow, probs, labels, **options)


def skce(estimator, method, n_resamples=39):
    options = {"estimator": estimator, "method": method, "n_resamples": n_resamples}
    return lambda probs, labels, d: hc.classical.skce_test(probs, labels, rng=d, **options)


def test_hosmer_lemeshow_keeps_its_level_on_held_out_rows_alone():
    held_out = rejections(hosmer_lemeshow(n_bins=5))
    assert held_out <= MOST
    # A control: nothing was fitted to these rows, so that the level of `fitted=True` must break.
    fitted = rejections(hosmer_lemeshow(n_bins=5, fitted=True))
    assert fitted > max(MOST, held_out)


@pytest.mark.parametrize(("estimator", "method"), SKCE_TESTS)
def test_the_tests_of_skce_keep_their_level(estimator, method):
    # A bound that holds for every distribution is far from this one.
    most = 0 if method == "distribution_free" else MOST
    assert rejections(skce(estimator, method)) <= most


@pytest.mark.parametrize(
    ("estimator", "method", "least"), [("ul", "asymptotic", 15), ("uq", "bootstrap", 45)]
)
def test_an_overstated_class_is_seen_by_skce(estimator, method, least):
    assert rejections(skce(estimator, method), odds=(0.2, 1.0, 1.0), n_sets=50) > least
