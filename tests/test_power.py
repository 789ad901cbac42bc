"""Power for the user's own members: what is simulated, what is counted, and how many rows are needed."""

import csv
import io
import json
import threading
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest
from scipy.stats import binom, norm

import hullcal as hc
from hullcal import InvalidInputError, plots
from hullcal.simulation import Power, WorkerDied, power, study, wilson
from hullcal.simulation.power import draw, needed, truth
from test_cli import run as program

RNG = np.random.default_rng(0)
BASE = RNG.dirichlet([1, 1, 1], size=150)
#: Three members around one, in a hull too small to repair much.
PROBS = 0.85 * BASE[:, None] + 0.15 * RNG.dirichlet([1, 1, 1], size=(150, 3))
#: Short searches, so that tests are quick uncompiled as well.
QUICK = ":ece_conf:stacked:pairwise:8"
SHORT = {"n_samples": [20, 40], "n_datasets": 6, "n_resamples": 19, "test": f"calibrated{QUICK}"}
#: One member needs no search, and its test is exact.
ONE = {"probs": BASE, "n_resamples": 39}


def stream(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def found():
    return power(PROBS, amount=3.0, rng=3, **SHORT)


@pytest.fixture(scope="module")
def curve():
    """An easy case: one overconfident member."""
    return power(**ONE, amount=2.0, n_samples=[25, 75, 150, 300, 600], n_datasets=100, rng=5)


# What is simulated


@pytest.mark.parametrize(
    ("miscalibration", "amount", "mixed", "expected"),
    [
        # The square roots of 4, 4 and 1 parts are as 2 to 2 to 1; their squares as 16 to 16 to 1.
        ("temperature", 2.0, [4 / 9, 4 / 9, 1 / 9], [2 / 5, 2 / 5, 1 / 5]),
        ("temperature", 0.5, [4 / 9, 4 / 9, 1 / 9], [16 / 33, 16 / 33, 1 / 33]),
        *(("temperature", amount, [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]) for amount in (1e-300, 1e300)),
        ("temperature", 1e-3, [1e-320, 0.25, 0.75], [0.0, 0.0, 1.0]),
        # The most probable class, and the first of several.
        ("closest", 0.5, [0.2, 0.5, 0.3], [0.1, 0.75, 0.15]),
        ("closest", 0.5, [0.4, 0.4, 0.2], [0.7, 0.2, 0.1]),
    ],
)
def test_what_labels_follow_by_hand(miscalibration, amount, mixed, expected):
    rows = truth(np.array([mixed]), miscalibration, amount, stream())
    np.testing.assert_allclose(rows, [expected], atol=1e-15)


@pytest.mark.parametrize(
    ("kind", "none"), [("temperature", 1.0), ("corner", 0.0), ("closest", 0.0)]
)
def test_no_amount_leaves_the_truth_alone_and_the_whole_way_leads_to_a_corner(kind, none):
    np.testing.assert_allclose(truth(BASE, kind, none, stream()), BASE, rtol=1e-12)
    if kind != "temperature":
        assert set(truth(BASE, kind, 1.0, stream()).ravel()) == {0.0, 1.0}
    if kind == "corner":
        corners = truth(np.repeat(BASE, 20, axis=0), kind, 1.0, stream())
        np.testing.assert_allclose(corners.mean(axis=0), 1 / 3, atol=0.03)


def test_rows_repeat_only_where_there_are_too_few():
    for n_samples in (1, 149, 150, 151):
        probs, labels = draw(BASE[:, None], BASE, "temperature", 1.0, n_samples, stream())
        assert len(probs) == len(labels) == n_samples
        assert (len(np.unique(probs[:, 0, 0])) == n_samples) == (n_samples <= 150)


# What is counted


def test_rates_against_a_plain_loop(found):
    """Streams, data, tests and counts written out once more, without the code under test."""
    mixed = PROBS.mean(axis=1)
    rejected = {20: 0, 40: 0}
    for n_samples in rejected:
        for r in range(6):
            streams = [np.random.SeedSequence(3, spawn_key=(n_samples, r, p)) for p in (0, 1)]
            rng = np.random.default_rng(streams[0])
            rows = rng.choice(150, size=n_samples, replace=False)
            eta = mixed[rows] ** (1 / 3) / (mixed[rows] ** (1 / 3)).sum(axis=1, keepdims=True)
            below = eta.cumsum(axis=1) <= rng.random(n_samples)[:, None]
            words = streams[1].generate_state(4, np.uint32).astype("<u4").tobytes()
            result = hc.calibration_test(
                PROBS[rows],
                below.sum(axis=1).clip(max=2),
                minimizer=hc.minimizers.Pairwise(max_evaluations=8),
                n_resamples=19,
                rng=int.from_bytes(words, "little"),
            )
            rejected[n_samples] += result.rejected
    assert sum(rejected.values()) > 0
    assert (found.power * 6).round(9).tolist() == list(rejected.values())
    bounds = [wilson(count, 6) for count in rejected.values()]
    assert list(zip(found.lower, found.upper, strict=True)) == bounds


def test_processes_and_the_form_of_the_input_change_nothing_and_a_size_needs_no_other(found):
    told, before = [], PROBS.copy()
    how = {"amount": 3.0, "rng": 3} | SHORT
    assert power(PROBS, **how, n_jobs=2, progress=lambda *at: told.append(at)) == found
    assert (told[0], told[-1]) == ((0, 12), (12, 12))
    assert power(hc.ClassifierSet(PROBS), **how) == found
    assert power(PROBS, weights=[1 / 3] * 3, **how) == found
    assert power(np.log(PROBS), from_log=True, **how).power.tolist() == found.power.tolist()
    np.testing.assert_array_equal(PROBS, before)
    one = power(PROBS, **how | {"n_samples": 40})
    assert one.power.tolist() == found.power[1:].tolist()
    assert power(PROBS[:, 0], **how).weights.tolist() == [1.0]


def test_the_seed_and_the_weights_matter_and_a_generator_is_asked_once(found):
    others = [power(PROBS, amount=3.0, rng=seed, **SHORT) for seed in range(10, 14)]
    assert any(other.power.tolist() != found.power.tolist() for other in others)
    vertices = [power(PROBS, amount=3.0, rng=3, weights=w, **SHORT) for w in np.eye(3)]
    assert any(other.power.tolist() != found.power.tolist() for other in vertices)
    drawn = power(PROBS, amount=3.0, rng=np.random.default_rng(0), **SHORT)
    assert drawn == power(PROBS, amount=3.0, rng=drawn.seed, **SHORT)


def test_without_miscalibration_the_rate_is_the_level():
    one = power(**ONE, amount=1.0, n_samples=50, n_datasets=400, rng=0)
    low, high = binom.interval(0.999, 400, 0.05)
    assert low <= 400 * one.power[0] <= high
    assert one.n_needed is None
    assert "Temperature 1 is no miscalibration" in str(one)
    # A search makes the test conservative at worst, as far as so many data sets can tell.
    how = {"n_datasets": 80, "n_samples": 60, "n_resamples": 39, "test": "calibrated:pairwise:20"}
    hull = power(PROBS, miscalibration="corner", amount=0.0, rng=1, **how)
    assert 80 * hull.power[0] <= binom.ppf(0.999, 80, 0.05)
    assert "Corner 0 is no miscalibration" in str(hull)


# How many rows are needed


def test_the_needed_rows_give_the_target(curve):
    low, high = curve.n_needed_interval
    assert 25 < low < curve.n_needed < high < 600
    again = power(**ONE, amount=2.0, n_samples=curve.n_needed, n_datasets=200, rng=6)
    # The chance of this run and that of the curve, which had 100 data sets.
    assert abs(again.power[0] - 0.8) < 3.5 * np.sqrt(0.16 / 200 + 0.16 / 100)


def test_a_normal_power_curve_is_inverted_exactly():
    sizes = [100, 225, 400, 900]
    rates = norm.cdf(-2.0 + 0.15 * np.sqrt(sizes))
    exact = ((norm.ppf(0.8) + 2.0) / 0.15) ** 2
    rows, interval = needed(sizes, [(p, p, p) for p in rates], 10_000, 0.8)
    assert rows == int(np.ceil(exact))
    assert interval == (int(exact), rows)


@pytest.mark.parametrize(
    ("rates", "target", "expected"),
    [
        # Rates that fall by chance are pooled: the two in the middle count as 0.8 each.
        ([(p, p, p) for p in (0.2, 0.9, 0.7, 1.0)], 0.8, (200, (200, 200))),
        ([(0.5, 0.4, 0.6), (0.9, 0.85, 0.95)], 0.8, (275, (202, 342))),
        ([(0.1, 0.05, 0.2), (0.3, 0.2, 0.4)], 0.8, (None, (400, None))),
        ([(0.7, 0.6, 0.85), (0.75, 0.7, 0.85)], 0.8, (None, (None, None))),
        ([(0.9, 0.85, 0.95), (1.0, 0.9, 1.0)], 0.8, (None, (None, 100))),
        ([(0.0, 0.0, 0.1), (0.8, 0.7, 0.9)], 0.8, (400, (334, None))),
        # Beyond what the data sets can tell.
        ([(0.0, 0.0, 0.2), (1.0, 0.8, 1.0)], 0.9999, (400, (400, None))),
    ],
)
def test_an_answer_beyond_the_numbers_tried_is_not_made_up(rates, target, expected):
    sizes = [100, 400] if len(rates) == 2 else [100, 200, 300, 400]
    assert needed(sizes, rates, 100, target) == expected


# The result


def test_the_default_sizes_reach_beyond_the_rows():
    common = {"n_datasets": 1, "n_resamples": 19, "test": "calibrated:pairwise:2", "rng": 0}
    assert power(PROBS, **common).n_samples.tolist() == [20, 38, 75, 150, 300]
    assert power(PROBS[:10], **common).n_samples.tolist() == [20]
    for given, sizes in (([30, 20, 30], [20, 30]), (np.array(30), [30])):
        assert power(PROBS, **common, n_samples=given).n_samples.tolist() == sizes


def test_a_result_is_frozen_goes_through_json_and_speaks(found, curve):
    again = Power.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.n_needed_interval == found.n_needed_interval
    with pytest.raises(ValueError, match="read-only"):
        found.power[0] = 1.0
    low, high = curve.n_needed_interval
    said = (
        f"About {curve.n_needed} rows (95 % interval {low} to {high}) detect temperature 2 with "
        "power 0.8 (calibrated:ece_conf:stacked)."
    )
    assert said in str(curve).splitlines()
    assert "Beyond N = 150, rows are drawn with replacement." in str(curve)
    assert f"   150  {curve.power[2]:.3f}  " in str(curve)
    assert "An error that other weights repair is never detected by this question." in str(found)
    assert "other weights" not in str(curve)
    assert repr(curve) == f"<Power: {said}>"
    assert f'<td style="text-align:left">{curve.power[2]:.3f} (95 % interval' in curve._repr_html_()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"power": [0.1, 0.2]}, "More than 40 rows, the most tried, are needed to detect"),
        ({"power": [0.9, 1.0]}, "The fewest rows tried, 20, detect temperature 3 with power 0.8"),
        ({"n_needed": 30, "n_needed_interval": (None, None)}, "less than 20 to more than 40"),
    ],
)
def test_the_sentence_says_what_is_not_known(found, changes, said):
    values = found.to_dict() | {"n_needed": None} | changes
    assert said in Power.from_dict(values).sentence()


# Bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"miscalibration": "heat"}, "Choose from: temperature, corner, closest"),
        ({"amount": 0}, "`amount` must be a finite number greater than 0"),
        ({"miscalibration": "closest", "amount": 1.5}, r"`amount` must lie in \[0, 1\] for clo"),
        ({"miscalibration": "closest", "amount": True}, r"`amount` must lie in \[0, 1\] for clo"),
        ({"n_samples": []}, "`n_samples` must have at least one value"),
        ({"test": "truth:skce_ul", "n_samples": 1}, "needs at least 2 rows"),
        ({"weights": "median"}, "`weights` must"),
        ({"target": 0.05}, "`target` must be above `alpha`"),
        ({"probs": PROBS * 3}, "from_logits"),
    ],
)
def test_bad_input_is_refused_before_any_work(changes, message):
    told = []
    arguments = {"probs": PROBS, "progress": lambda *at: told.append(at)} | SHORT | changes
    with pytest.raises(InvalidInputError, match=message):
        power(**arguments)
    assert told == []


class KilledWorker(Exception):
    """As dask has one, which is of no class that Python knows."""

    __module__ = "distributed.scheduler"


@pytest.mark.parametrize("loss", [CancelledError, EOFError, KilledWorker])
def test_a_worker_that_is_lost_is_said_to_be_in_whatever_words(loss, monkeypatch):
    def run_block(block, **how):
        if threading.current_thread() is not threading.main_thread():
            raise loss("gone\nwith details")

    monkeypatch.setattr(study, "run_block", run_block)
    with (
        joblib.parallel_config(backend="threading"),
        pytest.raises(WorkerDied, match=rf"^a worker was lost \({loss.__name__}: gone\)$"),
    ):
        power(PROBS, rng=0, n_jobs=2, **SHORT)


# The picture


def test_the_curve_shows_rates_intervals_and_the_needed_rows(curve):
    ax = plots.power_curve(curve)
    labels = {str(line.get_label()): line for line in ax.lines}
    rates = labels["temperature 2, calibrated:ece_conf:stacked"]
    np.testing.assert_array_equal(rates.get_xdata(), curve.n_samples)
    np.testing.assert_array_equal(rates.get_ydata(), curve.power)
    assert labels["target 0.8"].get_ydata()[0] == 0.8
    assert labels["level α = 0.05"].get_ydata()[0] == 0.05
    assert labels[f"{curve.n_needed} rows needed"].get_xdata()[0] == curve.n_needed
    (whiskers,) = ax.collections
    ends = [np.transpose([curve.n_samples, bound]) for bound in (curve.lower, curve.upper)]
    np.testing.assert_array_equal(whiskers.get_segments(), np.stack(ends, axis=1))
    with pytest.raises(InvalidInputError, match="`found` must be a Power"):
        plots.power_curve(0.8)
    # One point, without an answer.
    values = curve.to_dict() | {"n_needed": None}
    values |= {name: values[name][:1] for name in ("n_samples", "power", "lower", "upper")}
    plots.power_curve(Power.from_dict(values)).figure.draw_without_rendering()


# The program

OPTIONS = ("-N", 20, "-N", 40, "-R", 6, "-D", 19, "--test", f"calibrated{QUICK}", "--amount", 3)


@pytest.fixture
def said(tmp_path):
    """Exit code, output and messages of the program."""
    # Labels that no test would take.
    np.savez(tmp_path / "members.npz", probs=PROBS, labels=np.full(150, -100))

    def run(*arguments):
        done = program("power", tmp_path / "members.npz", *arguments)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_program_finds_what_python_finds_in_every_format(said, found, tmp_path):
    assert said(*OPTIONS, "--seed", 3, "--jobs", 2, "--quiet") == (0, f"{found}\n", "")
    output = tmp_path / "power.json"
    written = ("--seed", 3, "--format", "json", "--quiet", "--output", output)
    assert said(*OPTIONS, *written) == (0, "", "")
    assert Power.from_dict(json.loads(output.read_text())) == found
    _, table, _ = said(*OPTIONS, "--seed", 3, "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [int(row["n_samples"]) for row in rows] == found.n_samples.tolist()
    assert [float(row["upper"]) for row in rows] == found.upper.tolist()
    code, _, words = said("--output", output)
    assert (code, "`--output` must not exist yet" in words) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--amount", 0), "`--amount` must be a finite number greater than 0"),
        (("--miscalibration", "corner", "--amount", 2), "`--amount` must lie in [0, 1]"),
        (("--test", "truth:skce_uq:5"), "`--test` skce_uq has no bins"),
    ],
)
def test_the_program_refuses_bad_options_in_their_own_names(said, arguments, words):
    code, _, told = said(*arguments)
    assert (code, words in told) == (2, True), told
