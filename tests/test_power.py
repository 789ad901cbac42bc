"""Power for the user's own members: what is simulated, what is counted, and how many rows are needed."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest
from scipy.stats import binom, norm

import hullcal as hc
from hullcal import InvalidInputError, plots
from hullcal.nulls import Paper
from hullcal.simulation import Power, StudyError, WorkerDied, power, running, wilson
from hullcal.simulation.miscalibration import Alternative
from hullcal.simulation.power import needed

RNG = np.random.default_rng(0)
BASE = RNG.dirichlet([1, 1, 1], size=150)
#: Three members around one, in a hull too small to repair much.
PROBS = 0.85 * BASE[:, None] + 0.15 * RNG.dirichlet([1, 1, 1], size=(150, 3))
#: Short searches, so that tests are quick uncompiled as well.
SHORT = {"n_samples": [20, 40], "n_datasets": 6, "n_resamples": 19, "minimizer": "pairwise:8"}
#: One member needs no search, and its test is exact.
ONE = {"probs": BASE, "n_resamples": 39}


def alternative(mixed, miscalibration, amount):
    mixed = np.array(mixed)
    return Alternative(
        probs=mixed[:, None], mixed=mixed, miscalibration=miscalibration, amount=amount
    )


def truth(mixed, miscalibration, amount, seed=0):
    each = alternative(mixed, miscalibration, amount)
    return each.truth(np.arange(len(mixed)), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def found():
    return power(PROBS, amount=3.0, rng=3, **SHORT)


@pytest.fixture(scope="module")
def curve():
    """An easy case: one overconfident member."""
    return power(**ONE, amount=2.0, n_samples=[25, 75, 150, 300, 600], n_datasets=200, rng=5)


# What is simulated


def test_a_temperature_takes_roots_and_powers():
    # The square roots of 4, 4 and 1 parts are as 2 to 2 to 1; their squares as 16 to 16 to 1.
    mixed = [[4 / 9, 4 / 9, 1 / 9]]
    np.testing.assert_allclose(truth(mixed, "temperature", 2.0), [[2 / 5, 2 / 5, 1 / 5]])
    np.testing.assert_allclose(truth(mixed, "temperature", 0.5), [[16 / 33, 16 / 33, 1 / 33]])
    np.testing.assert_allclose(truth(BASE, "temperature", 1.0), BASE, rtol=1e-12)


@pytest.mark.parametrize("amount", [1e-300, 1e-3, 1e3, 1e300])
def test_extreme_temperatures_of_certain_predictions_are_distributions(amount):
    rows = truth([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1e-320, 0.25, 0.75]], "temperature", amount)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert rows[0].tolist() == [1.0, 0.0, 0.0]
    assert rows[1].tolist() == [0.5, 0.5, 0.0]
    assert np.isfinite(rows).all()


def test_the_closest_corner_is_the_most_probable_class_and_the_first_of_several():
    rows = truth([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]], "closest", 0.5)
    np.testing.assert_allclose(rows, [[0.1, 0.75, 0.15], [0.7, 0.2, 0.1]])


def test_a_random_corner_is_any_class_and_on_average_the_uniform_distribution():
    mixed = np.tile([0.2, 0.5, 0.3], (30_000, 1))
    rows = truth(mixed, "corner", 0.1)
    corners = (rows - 0.9 * mixed) / 0.1
    np.testing.assert_allclose(
        np.sort(corners, axis=1), np.tile([0.0, 0.0, 1.0], (30_000, 1)), atol=1e-9
    )
    np.testing.assert_allclose(rows.mean(axis=0), 0.9 * mixed[0] + 0.1 / 3, atol=0.001)


@pytest.mark.parametrize("miscalibration", ["corner", "closest"])
def test_no_share_of_the_way_is_no_miscalibration_and_the_whole_is_the_corner(miscalibration):
    np.testing.assert_array_equal(truth(BASE, miscalibration, 0.0), BASE)
    assert set(truth(BASE, miscalibration, 1.0).ravel()) == {0.0, 1.0}


def test_rows_repeat_only_where_there_are_too_few():
    each = alternative(BASE, "temperature", 1.0)
    for n_samples in (1, 149, 150):
        probs, labels = each.draw(np.random.default_rng(0), n_samples)
        assert len(np.unique(probs[:, 0, 0])) == n_samples == len(labels)
    probs, _ = each.draw(np.random.default_rng(0), 151)
    assert len(probs) == 151
    assert len(np.unique(probs[:, 0, 0])) < 130


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


def test_the_number_of_processes_and_the_other_sizes_change_nothing(found):
    told = []
    again = power(PROBS, amount=3.0, rng=3, n_jobs=2, progress=lambda *at: told.append(at), **SHORT)
    assert again == found
    assert told[0] == (0, 12)
    assert told[-1] == (12, 12)
    one = power(PROBS, amount=3.0, rng=3, **SHORT | {"n_samples": 40})
    assert one.power.tolist() == found.power[1:].tolist()


def test_the_seed_matters_and_a_generator_is_asked_once(found):
    others = [power(PROBS, amount=3.0, rng=seed, **SHORT) for seed in range(10, 14)]
    assert any(other.power.tolist() != found.power.tolist() for other in others)
    drawn = power(PROBS, amount=3.0, rng=np.random.default_rng(0), **SHORT)
    assert drawn == power(PROBS, amount=3.0, rng=drawn.seed, **SHORT)


def test_without_miscalibration_the_rate_is_the_level():
    one = power(**ONE, amount=1.0, n_samples=50, n_datasets=1000, rng=0)
    low, high = binom.interval(0.999, 1000, 0.05)
    assert low <= 1000 * one.power[0] <= high
    assert one.nothing_to_detect
    assert one.n_needed is None
    assert "no miscalibration" in str(one)
    # A search makes the test conservative at worst, as far as so many data sets can tell.
    hull = power(PROBS, miscalibration="corner", amount=0.0, rng=1, n_datasets=80, n_samples=60,
                 n_resamples=39, minimizer="pairwise:20")  # fmt: skip
    assert 80 * hull.power[0] <= binom.ppf(0.999, 80, 0.05)
    assert hull.nothing_to_detect


def test_power_grows_with_the_rows_and_with_the_amount(curve):
    assert curve.lower[-1] > curve.upper[1] > curve.power[1] > curve.upper[0]
    low, high = (
        power(**ONE, amount=amount, n_samples=150, n_datasets=100, rng=2) for amount in (1.2, 3.0)
    )
    assert high.lower[0] > low.upper[0]


# How many rows are needed


def test_the_needed_rows_give_the_target(curve):
    low, high = curve.n_needed_interval
    assert 25 < low < curve.n_needed < high < 600
    again = power(**ONE, amount=2.0, n_samples=curve.n_needed, n_datasets=300, rng=6)
    # The chance of this run and that of the curve, which had 200 data sets.
    assert abs(again.power[0] - 0.8) < 3.5 * np.sqrt(0.16 / 300 + 0.16 / 200)
    assert abs(np.interp(curve.n_needed, curve.n_samples, curve.power) - 0.8) < 0.1


def test_a_normal_power_curve_is_inverted_exactly():
    sizes = [100, 225, 400, 900]
    rates = norm.cdf(-2.0 + 0.15 * np.sqrt(sizes))
    exact = ((norm.ppf(0.8) + 2.0) / 0.15) ** 2
    rows, (low, high) = needed(sizes, [(p, p, p) for p in rates], 10_000, 0.8)
    assert rows == int(np.ceil(exact))
    assert (low, high) == (int(exact), rows)


def test_rates_that_fall_by_chance_are_pooled():
    rates = [(p, p, p) for p in (0.2, 0.9, 0.7, 1.0)]
    # The two in the middle count as 0.8 each, which the second number of rows then reaches.
    assert needed([100, 200, 300, 400], rates, 1000, 0.8)[0] == 200


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([(0.1, 0.05, 0.2), (0.3, 0.2, 0.4)], (None, (400, None))),
        ([(0.7, 0.6, 0.85), (0.75, 0.7, 0.85)], (None, (None, None))),
        ([(0.9, 0.85, 0.95), (1.0, 0.9, 1.0)], (None, (None, 100))),
        ([(0.0, 0.0, 0.1), (0.8, 0.7, 0.9)], (400, (322, None))),
    ],
)
def test_an_answer_beyond_the_numbers_tried_is_not_made_up(rates, expected):
    rows, (low, high) = needed([100, 400], rates, 100, 0.8)
    assert rows == expected[0]
    assert high == expected[1][1]
    assert (low is None) == (expected[1][0] is None)
    assert low is None or 100 < low <= 400


def test_a_target_beyond_what_the_data_sets_can_tell_stays_among_the_numbers_tried():
    rows, _ = needed([100, 400], [(0.0, 0.0, 0.2), (1.0, 0.8, 1.0)], 10, 0.9999)
    assert rows == 400


# The distance


def test_mixing_may_repair_what_is_wrong_with_the_mean():
    """The mean of a sure and an undecided member is too sure for a truth that a mixture gives."""
    sure = np.where(RNG.random((100, 1)) < 0.5, [[0.98, 0.02]], [[0.02, 0.98]])
    members = np.stack([sure, np.full_like(sure, 0.5)], axis=1)
    far = power(members, rng=0, amount=3.0, **SHORT).distance
    by_hand = 0.74 ** (1 / 3) / (0.74 ** (1 / 3) + 0.26 ** (1 / 3))
    assert far["at_weights"] == pytest.approx(0.74 - by_hand, abs=0.015)
    assert far["minimum"] < 0.01
    single = power(sure, rng=0, amount=3.0, **SHORT).distance
    assert single["minimum"] == single["at_weights"] > 0.1 > single["by_chance"]


def test_weights_choose_the_combination():
    vertex = power(PROBS, weights=[0, 1, 0], amount=3.0, rng=3, **SHORT)
    mean = power(PROBS, weights="mean", amount=3.0, rng=3, **SHORT)
    spelled = power(PROBS, weights=[1 / 3] * 3, amount=3.0, rng=3, **SHORT)
    assert mean == spelled
    assert vertex.distance != mean.distance


@pytest.mark.parametrize("measure", ["ece_cwise:4", "hl_cwise", "skce_ul", "skce_uq"])
def test_other_measures_have_a_power_too(measure):
    found = power(PROBS[:, :2], measure=measure, null="refit", rng=0, n_samples=20, n_datasets=2,
                  n_resamples=19, minimizer="pairwise:4")  # fmt: skip
    assert found.measure == measure.split(":")[0]
    assert found.settings["measure"].get("n_bins") in (4, 10, None)
    assert found.distance["minimum"] <= found.distance["at_weights"]


# The result


def test_settings_of_the_null_are_kept_with_the_others():
    one = power(PROBS, null=Paper(rows="permuted"), rng=0, **SHORT)
    assert one.settings["null"] == {"rows": "permuted"}
    assert set(one.settings) == {"measure", "minimizer", "null"}


def test_the_default_sizes_reach_beyond_the_rows():
    common = {"n_datasets": 1, "n_resamples": 19, "minimizer": "pairwise:2", "rng": 0}
    assert power(PROBS, **common).n_samples.tolist() == [20, 38, 75, 150, 300]
    assert power(PROBS[:10], **common).n_samples.tolist() == [20]
    assert power(PROBS, **common | {"n_samples": [30, 20, 30]}).n_samples.tolist() == [20, 30]
    assert power(PROBS, **common | {"n_samples": np.array(30)}).n_samples.tolist() == [30]


def test_a_result_is_frozen_goes_through_json_and_speaks(found, curve):
    again = Power.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.n_needed_interval == found.n_needed_interval
    with pytest.raises(ValueError, match="read-only"):
        found.power[0] = 1.0
    low, high = curve.n_needed_interval
    said = (
        f"About {curve.n_needed} rows (95 % interval {low} to {high}) detect temperature 2 with "
        "power 0.8 (ece_conf)."
    )
    assert said in str(curve).splitlines()
    assert "Beyond N = 150, rows are drawn with replacement." in str(curve)
    assert f"   150  {curve.power[2]:.3f}  " in str(curve)


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
        (
            {"miscalibration": "heat"},
            "`miscalibration` must be one of temperature, corner, closest",
        ),
        ({"amount": 0}, "`amount` must be a finite number greater than 0"),
        ({"amount": float("nan")}, "`amount` must be a finite number greater than 0"),
        ({"miscalibration": "corner", "amount": 1.5}, r"`amount` must lie in \[0, 1\] for corner"),
        ({"miscalibration": "closest", "amount": float("nan")}, r"`amount` must lie in \[0, 1\]"),
        ({"miscalibration": "closest", "amount": True}, r"`amount` must lie in \[0, 1\]"),
        ({"miscalibration": "closest", "amount": 10**400}, r"`amount` must lie in \[0, 1\]"),
        ({"n_samples": []}, "`n_samples` must have at least one value"),
        ({"n_samples": 0}, "`n_samples` must be an integer of at least 1"),
        ({"n_samples": [10, 2.5]}, "`n_samples` must be an integer"),
        ({"measure": "ece"}, "`measure`"),
        ({"measure": "skce_ul", "n_samples": 1}, "needs at least 2 rows"),
        ({"measure": lambda probs, labels: 0.0, "null": "recentered"}, "needs a residual vector"),
        ({"null": "none"}, "`null`"),
        ({"minimizer": "guess"}, "`minimizer`"),
        ({"weights": "median"}, '`weights` must be "mean" or one weight per member'),
        ({"weights": [0.5, 0.5]}, r"`weights` must have shape \(3,\)"),
        ({"n_datasets": 0}, "`n_datasets` must be an integer of at least 1"),
        ({"n_resamples": 0}, "`n_resamples` must be an integer of at least 1"),
        ({"alpha": 1.0}, "`alpha` must lie strictly between 0 and 1"),
        ({"target": 1.0}, "`target` must lie strictly between 0 and 1"),
        ({"target": 0.05}, "`target` must be above `alpha`"),
        ({"rng": -1}, "`rng` must be"),
        ({"n_jobs": 0}, "`n_jobs` must be"),
        ({"probs": PROBS * np.nan}, "NaN"),
        ({"probs": PROBS * 3}, "from_logits"),
    ],
)
def test_bad_input_is_refused_before_any_work(changes, message):
    told = []
    arguments = {"probs": PROBS, "progress": lambda *at: told.append(at)} | SHORT | changes
    with pytest.raises(InvalidInputError, match=message):
        power(**arguments)
    assert told == []


def test_warnings_are_given_once_and_point_here():
    with pytest.warns(hc.HullcalWarning, match="smallest `n_resamples` that could is 19") as warned:
        power(PROBS, rng=0, **SHORT | {"n_resamples": 9})
    assert [each.filename for each in warned] == [__file__]
    with pytest.warns(hc.HullcalWarning, match="rows are fewer") as warned:
        power(PROBS, rng=0, **SHORT | {"n_samples": [5, 7]})
    assert [each.filename for each in warned] == [__file__]


def test_a_test_that_fails_names_its_data_set():
    def failing(probs, labels):
        if len(labels) == 20:
            raise ZeroDivisionError("never 20")
        return 0.0

    with pytest.raises(StudyError, match=r"data set 0 of 20 rows, failing, null refit: .*never 20"):
        power(PROBS, measure=failing, null="refit", rng=0, **SHORT)


class KilledWorker(Exception):
    """As dask has one, which is of no class that Python knows."""

    __module__ = "distributed.scheduler"


@pytest.mark.parametrize(
    "loss", [CancelledError, ConnectionResetError, EOFError, TimeoutError, KilledWorker]
)
def test_a_worker_that_is_lost_is_said_to_be_in_whatever_words(loss, monkeypatch):
    def run_block(block, **how):
        if threading.current_thread() is not threading.main_thread():
            raise loss("gone\nwith details")

    monkeypatch.setattr(running, "run_block", run_block)
    with (
        joblib.parallel_config(backend="threading"),
        pytest.raises(WorkerDied, match=rf"^a worker was lost \({loss.__name__}: gone\)$"),
    ):
        power(PROBS, rng=0, n_jobs=2, **SHORT)


def test_input_is_left_alone_and_logits_are_accepted(found):
    before = PROBS.copy()
    logits = power(np.log(PROBS), from_log=True, amount=3.0, rng=3, **SHORT)
    np.testing.assert_array_equal(PROBS, before)
    assert logits.power.tolist() == found.power.tolist()
    assert power(hc.ClassifierSet(PROBS), amount=3.0, rng=3, **SHORT) == found
    one = power(PROBS[:, 0], rng=0, **SHORT)
    assert one.weights.tolist() == [1.0]


# The picture


def test_the_curve_shows_rates_intervals_and_the_needed_rows(curve):
    ax = plots.power_curve(curve)
    labels = {str(line.get_label()): line for line in ax.lines}
    rates = labels["temperature 2, ece_conf"]
    np.testing.assert_array_equal(rates.get_xdata(), curve.n_samples)
    np.testing.assert_array_equal(rates.get_ydata(), curve.power)
    assert labels["target 0.8"].get_ydata()[0] == 0.8
    assert labels["level α = 0.05"].get_ydata()[0] == 0.05
    assert labels[f"{curve.n_needed} rows needed"].get_xdata()[0] == curve.n_needed
    (whiskers,) = ax.collections
    for n, low, high, segment in zip(
        curve.n_samples, curve.lower, curve.upper, whiskers.get_segments(), strict=True
    ):
        np.testing.assert_array_equal(segment, [[n, low], [n, high]])
    with pytest.raises(InvalidInputError, match="`found` must be a Power"):
        plots.power_curve(0.8)


def test_a_curve_of_one_point_without_an_answer_is_drawn(found):
    values = found.to_dict() | {"n_needed": None}
    for name in ("n_samples", "power", "lower", "upper"):
        values[name] = values[name][:1]
    plots.power_curve(Power.from_dict(values)).figure.draw_without_rendering()


# The program


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "hullcal", "power", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "members.npz"
    # Labels that no test would take.
    np.savez(path, probs=PROBS, labels=np.full(150, -100))
    return path


OPTIONS = ("-N", 20, "-N", 40, "-R", 6, "-D", 19, "--minimizer", "pairwise:8", "--amount", 3)


def test_the_program_prints_what_python_finds(file, found):
    done = program(file, *OPTIONS, "--seed", 3, "--jobs", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{found}\n"


def test_the_program_writes_json_and_csv(file, found, tmp_path):
    output = tmp_path / "power.json"
    done = program(
        file, *OPTIONS, *("--seed", 3, "--jobs", 1, "--format", "json"), "--output", output
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert Power.from_dict(json.loads(output.read_text())) == found
    done = program(file, *OPTIONS, "--seed", 3, "--jobs", 1, "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [int(row["n_samples"]) for row in rows] == found.n_samples.tolist()
    assert [float(row["upper"]) for row in rows] == found.upper.tolist()
    again = program(file, "--output", output)
    assert again.returncode == 2
    assert "`--output` must not exist yet" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--amount", 0), "`--amount` must be a finite number greater than 0"),
        (("--miscalibration", "corner", "--amount", 2), "`--amount` must lie in [0, 1]"),
        (("--null", "none"), "'none' is not one of"),
        (("-m", "ece_con"), "Did you mean ece_conf?"),
        (("-m", "skce_uq:5"), "`--measure` skce_uq has no bins"),
        (("--target", 0.01), "`--target` must be above `--alpha`"),
    ],
)
def test_the_program_refuses_bad_options_in_their_own_names(file, arguments, said, capsys):
    from hullcal.cli import run

    with pytest.raises(SystemExit) as end:
        run(["power", str(file), *map(str, arguments)])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
