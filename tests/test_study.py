"""Studies: the same numbers however they are run, and errors counted as they should be."""

import csv
import hashlib
import importlib.util
import io
import json
import re
import warnings

import joblib
import numpy as np
import pytest
from scipy.stats import binomtest

import hullcal as hc
from hullcal import InvalidInputError, simulation
from hullcal.simulation import Grid, StudyError, WorkerDied, error_rates, files, run, wilson
from hullcal.simulation.blocks import blocks_of, run_block
from hullcal.simulation.rates import kind_of_error

SIZES = {"n_samples": 12, "n_members": 3, "n_classes": 3}
#: Short searches, so that studies are quick uncompiled as well.
SHORT = {"minimizer": "pairwise:8", "n_resamples": 9}
SMALL = Grid(
    **SIZES,
    scenario=("S1", "S2", "calibrated"),
    measure=("ece_conf:5", "skce_ul"),
    null=("paper", "refit"),
    **SHORT,
    n_datasets=12,
    alpha=(0.1, 0.5),
    seed=7,
)


def same(one, two):
    assert list(one.tests) == list(two.tests)
    for name, column in one.tests.items():
        np.testing.assert_array_equal(column, two.tests[name], err_msg=name)


@pytest.fixture(scope="module")
def small():
    return run(SMALL)


# Counting


@pytest.mark.parametrize("total", [1, 7, 100, 1000])
def test_wilson_against_scipy(total):
    for count in sorted({0, 1, total // 20, total // 2, total - 1, total}):
        interval = binomtest(count, total).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson(count, total), interval, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("null", ["paper", "recentered", "maximized", "refit"])
@pytest.mark.parametrize(
    ("scenario", "calibrated", "truth"),
    [
        ("S1", True, True),
        ("S1_vertex", True, True),
        ("S2", False, False),
        ("S3", False, False),
        ("calibrated", True, False),
    ],
)
def test_the_kind_of_error_follows_the_hypothesis_of_the_null(scenario, calibrated, truth, null):
    holds = truth if null == "refit" else calibrated
    assert kind_of_error(scenario, null) == ("Type I" if holds else "Type II")


def test_rates_against_a_plain_loop():
    """Streams, data, tests and counts written out once more, without the study's own code."""
    cell = {
        "scenario": "S1",
        "n_samples": 20,
        "n_members": 4,
        "n_classes": 3,
        "spread": 0.1,
        "strength": None,
        "protocol": "paper",
    }
    text = json.dumps(cell, sort_keys=True, separators=(",", ":"))
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    pvalues = []
    for r in range(25):
        sequences = [
            np.random.SeedSequence(3, spawn_key=(key >> 32, key & 0xFFFFFFFF, r, purpose))
            for purpose in (0, 1)
        ]
        data = simulation.scenario(
            *("S1",),
            **{"n_samples": 20, "n_members": 4, "n_classes": 3, "spread": 0.1},
            rng=np.random.default_rng(sequences[0]),
        )
        words = sequences[1].generate_state(4, np.uint32).astype("<u4").tobytes()
        result = hc.calibration_test(
            data.probs,
            data.labels,
            measure=hc.ConfidenceECE(n_bins=5),
            null="refit",
            minimizer=hc.minimizers.Pairwise(max_evaluations=15),
            n_resamples=19,
            rng=int.from_bytes(words, "little"),
        )
        pvalues.append(result.pvalue)
    rates = error_rates(
        **{"scenario": "S1", "measure": "ece_conf:5", "null": "refit", "n_samples": 20},
        **{"n_members": 4, "n_classes": 3, "spread": 0.1, "n_resamples": 19, "n_datasets": 25},
        minimizer="pairwise:15",
        alpha=(0.05, 0.25, 0.6),
        rng=3,
    )
    np.testing.assert_array_equal(rates.pvalues, pvalues)
    counts = [sum(p <= alpha for p in pvalues) for alpha in (0.05, 0.25, 0.6)]
    assert counts[2] > counts[0]
    assert (rates.rejection_rate * 25).round(9).tolist() == counts
    assert rates.error.tolist() == rates.rejection_rate.tolist()
    assert rates.kind == "Type I"
    assert (rates.lower[1], rates.upper[1]) == wilson(counts[1], 25)
    assert re.search(r"0\.25 +\d\.\d{3} +\d\.\d{3} +\d\.\d{3} to \d\.\d{3}", str(rates))


def test_errors_of_the_second_kind_are_what_was_not_rejected(small):
    for row in small.rates():
        second = (row["scenario"], row["null"]) in [
            ("S2", "paper"),
            ("S2", "refit"),
            ("calibrated", "refit"),
        ]
        assert row["kind"] == ("Type II" if second else "Type I")
        errors = 12 - row["rejections"] if second else row["rejections"]
        assert row["error"] == errors / 12
        assert (row["error_lower"], row["error_upper"]) == wilson(errors, 12)
        assert row["rejection_rate"] == row["rejections"] / 12


# The same numbers


def test_processes_change_nothing(small):
    same(run(SMALL, n_jobs=2), small)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends_change_nothing(small, backend):
    with warnings.catch_warnings():
        # Python warns of forking a process that has threads, which the one of the tests has.
        warnings.simplefilter("ignore", DeprecationWarning)
        same(run(SMALL, n_jobs=2, backend=backend), small)


def test_dask_changes_nothing_by_name_or_by_the_users_own_setting(small):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        same(run(SMALL, backend="dask"), small)
        worked = client.run(lambda: "hullcal.simulation.blocks" in __import__("sys").modules)
        assert any(worked.values())
        with joblib.parallel_config(backend="dask"):
            same(run(SMALL), small)


def test_the_order_of_blocks_and_what_is_left_of_them_change_nothing(tmp_path, small):
    run(SMALL, folder=tmp_path)
    lines = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    whole = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.name in FILES}
    assert len(lines) == 1 + len(blocks_of(SMALL)) == 4
    (tmp_path / "journal.jsonl").write_text("".join([lines[0], lines[3], lines[1]]))
    same(run(SMALL, folder=tmp_path, resume=True), small)
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole
    assert set(whole) == set(FILES)


FILES = ("tests.csv", "tests.parquet", "rates.csv", "manifest.json")


def test_a_block_is_the_same_however_it_is_cut(small):
    from hullcal.simulation.blocks import Block

    cell = SMALL.cells[1]
    _, columns = run_block(Block(cell, 5, 8), SMALL.tests, 7, 9)
    rows = small.tests["pvalue"].reshape(3, 4, 12)[1, :, 5:8]
    np.testing.assert_array_equal(columns["pvalue"], rows)


def test_a_larger_grid_repeats_the_smaller_one(small):
    larger = Grid(
        **{**SIZES, "n_members": (4, 3)},
        scenario=("S3", "calibrated", "S1"),
        measure=("ece_cwise", "ece_conf:5"),
        null=("refit", "paper"),
        **SHORT,
        **{"n_datasets": 14, "alpha": 0.1, "seed": 7},
    )
    study = run(larger)

    def chosen(tests, scenario, n_members):
        wanted = {"scenario": scenario, "n_members": n_members, "measure": "ece_conf"}
        rows = np.all([tests[key] == value for key, value in wanted.items()], axis=0)
        rows &= tests["dataset"] < 12
        return {
            null: tests["pvalue"][rows & (tests["null"] == null)] for null in ("paper", "refit")
        }

    for scenario, n_members in (("S1", 3), ("calibrated", 2)):
        one, two = (chosen(each.tests, scenario, n_members) for each in (small, study))
        for null in one:
            np.testing.assert_array_equal(one[null], two[null])
            assert len(one[null]) == 12


def test_another_seed_gives_other_numbers(small):
    other = run(Grid(**{**SMALL.configuration(), "seed": 8}))
    assert not np.array_equal(other.tests["statistic"], small.tests["statistic"])
    assert len(set(small.tests["statistic"])) == 72, "no two data sets are the same"


def test_tests_of_a_data_set_are_paired(small):
    """The statistic of a data set does not depend on the null, whose draws are the same."""
    statistics = small.tests["statistic"].reshape(3, 2, 2, 12)
    np.testing.assert_array_equal(statistics[:, :, 0], statistics[:, :, 1])


# What a grid is


def test_cells_that_are_the_same_are_one():
    grid = Grid(
        scenario=("S1", "S3", "calibrated"),
        n_members=(2, 5, 5),
        spread=(0.1, 1),
        strength=(0.5, 1.0),
        measure="ece_conf",
        n_datasets=3,
    )
    count = {name: sum(c.scenario == name for c in grid.cells) for name in grid.scenario}
    assert count == {"S1": 4, "S3": 8, "calibrated": 1}
    assert grid.n_tests == 13 * 3
    assert len({cell.key for cell in grid.cells}) == 13


def test_a_grid_is_its_configuration():
    assert Grid(**SMALL.configuration()) == SMALL
    assert json.loads(json.dumps(SMALL.configuration())) == SMALL.configuration()


def test_blocks_cover_every_data_set_once():
    grid = Grid(
        **{**SIZES, "n_samples": (10, 400)},
        **{"measure": ("ece_conf", "hl_cwise"), "null": "refit", "n_datasets": 137},
    )
    for cell in grid.cells:
        found = [r for b in blocks_of(grid) if b.cell == cell for r in range(b.first, b.last)]
        assert found == list(range(137))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"scenario": "S9"}, "`scenario` must be one of S1"),
        ({"scenario": ()}, "`scenario` must have at least one"),
        ({"n_samples": 0}, "`n_samples`"),
        ({"n_classes": 1}, "`n_classes`"),
        ({"n_members": "ten"}, "`n_members`"),
        ({"spread": -1}, "`spread`"),
        ({"strength": 1.5}, "`strength`"),
        ({"protocol": "mine"}, "`protocol`"),
        ({"measure": "ece"}, "`measure`"),
        ({"measure": "ece_conf:x"}, "`measure`.*'ece_conf:x'"),
        ({"measure": "skce_uq:3"}, "skce_uq has no bins"),
        ({"null": "refit "}, "`null`"),
        ({"minimizer": "pairwise:-1"}, "`minimizer`"),
        ({"minimizer": "exact"}, "minimizer `exact`"),
        ({"n_datasets": 0}, "`n_datasets`"),
        ({"n_resamples": 1.5}, "`n_resamples`"),
        ({"alpha": (0.05, 1.0)}, "`alpha`"),
        ({"seed": -1}, "`seed`"),
        ({"measure": "skce_ul", "n_samples": 1}, "at least 2 rows"),
        ({"measure": len, "null": "recentered"}, "needs a residual vector"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_grid_is_said_before_any_work(wrong, words):
    with pytest.raises(InvalidInputError, match=words):
        Grid(**({"measure": "ece_conf"} | wrong))


def test_levels_that_cannot_be_reached_are_said_once():
    with pytest.warns(hc.HullcalWarning, match="`n_resamples` that could is 99") as told:
        grid = Grid(**SIZES, measure="ece_conf", scenario="S1", alpha=(0.01, 0.5), n_resamples=9)
    assert len(told) == 1
    run(Grid(**(grid.configuration() | {"alpha": 0.5, "n_datasets": 2})))


def test_budgets_bins_and_objects_have_names():
    grid = Grid(
        measure=("ece_conf:5", hc.SKCE(estimator="ul", bandwidth=0.5)),
        minimizer=("pairwise:30", hc.minimizers.Random(max_evaluations=7)),
    )
    names = [test.names() for test in grid.tests]
    assert [(n["measure"], n["n_bins"]) for n in names[::2]] == [
        ("ece_conf", 5),
        ("skce_ul(bandwidth=0.5)", None),
    ]
    assert [n["minimizer"] for n in names[:2]] == ["pairwise:30", "random:7"]


# What happens when something is wrong


def _fails_for_some(probs, labels):
    if labels[0] == labels[1] == 0:
        raise ZeroDivisionError("as it must")
    return 0.5


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_test_that_fails_names_its_data_set(n_jobs):
    grid = Grid(**SIZES, scenario="S1", measure=_fails_for_some, n_datasets=30, n_resamples=20)
    with pytest.raises(
        StudyError, match=r"data set \d+ of S1 \(n_samples=12.*_fails_for_some.*must"
    ):
        run(grid, n_jobs=n_jobs)


def test_a_measure_that_cannot_be_sent_is_named():
    lock = __import__("threading").Lock()
    grid = Grid(**SIZES, measure=lambda probs, labels: float(lock.locked()), n_datasets=2)
    with pytest.raises(InvalidInputError, match=r"`measure` <lambda> must.*`n_jobs=1`"):
        run(grid, n_jobs=2)


def _kills_its_process(probs, labels):
    __import__("os").kill(__import__("os").getpid(), 9)


def test_a_dead_worker_is_said_to_be_one():
    grid = Grid(**SIZES, scenario="S1", measure=_kills_its_process, n_datasets=4)
    with pytest.raises(WorkerDied, match="a worker was lost"):
        run(grid, n_jobs=2)


def test_results_of_a_function_are_not_kept_since_it_may_change(tmp_path):
    def measure(probs, labels):
        return 0.0

    grid = Grid(**SIZES, scenario="S1", measure=measure, n_datasets=2)
    with pytest.raises(InvalidInputError, match=r"`folder` needs measures.*function 'measure'"):
        run(grid, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_protocols_that_test_differently_share_their_data_and_others_do_not():
    grid = Grid(
        scenario="S2",
        protocol=["paper", "paper+two_sided", "authors", "paper+carried_mixing"],
        measure="skce_ul",
        n_datasets=1,
    )
    paper, two_sided, authors, carried = (cell.draw(0, 5) for cell in grid.cells)
    np.testing.assert_array_equal(paper.probs, two_sided.probs)
    np.testing.assert_array_equal(paper.labels, two_sided.labels)
    assert (paper.probs != authors.probs).any()
    assert (paper.probs != carried.probs).any()


def test_resuming_and_starting_over_at_once_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="got both"):
        run(SMALL, folder=tmp_path, resume=True, force=True)


def test_one_process_keeps_its_ctrl_c(tmp_path):
    import multiprocessing
    import signal

    def work(answer):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run(Grid(**SIZES, scenario="S1", measure="ece_conf", n_datasets=1))
        answer.put(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    process = context.Process(target=work, args=(answer,))
    process.start()
    assert answer.get(timeout=120)
    process.join()


@pytest.mark.parametrize("backend", ["nonsense", "dask", "ray"])
def test_a_backend_that_is_not_there_is_an_error(backend):
    if backend == "ray" and importlib.util.find_spec("ray"):
        pytest.skip("ray is there")
    with pytest.raises(InvalidInputError, match=f"`backend` .*{backend}"):
        run(SMALL, backend=backend, n_jobs=2)


def test_folders_that_hold_something_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInputError, match="`folder` must be a folder"):
        run(SMALL, folder=tmp_path / "file")
    (tmp_path / "tests.csv").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InvalidInputError, match=r"tests\.csv"):
            run(SMALL, folder=tmp_path, resume=resume)
    assert (tmp_path / "tests.csv").read_text() == "mine"


def test_starting_over_leaves_nothing_of_the_study_before(tmp_path):
    run(SMALL, folder=tmp_path)

    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SMALL, folder=tmp_path, force=True, progress=stop)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "journal.jsonl"}


def test_the_table_says_what_each_test_was(tmp_path, small):
    run(SMALL, folder=tmp_path / "a" / "b")
    with open(tmp_path / "a" / "b" / "tests.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == SMALL.n_tests == 144
    last = rows[-1]
    assert (last["scenario"], last["n_members"], last["spread"], last["n_bins"]) == (
        *("calibrated", "2", "", ""),
    )
    assert rows[0]["n_bins"] == "5"
    assert [float(row["pvalue"]) for row in rows] == small.tests["pvalue"].tolist()
    assert [float(row["statistic"]) for row in rows] == small.tests["statistic"].tolist()
    parquet = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "a/b/tests.parquet")
    assert parquet.column_names == list(rows[0])
    assert parquet["pvalue"].to_pylist() == small.tests["pvalue"].tolist()
    assert parquet["strength"].to_pylist()[-1] is None


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a", "  =a", "＝a", "a=1"])
@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_a_name_that_a_spreadsheet_would_run_stands_behind_an_apostrophe(name):
    def measure(probs, labels):
        return -0.25

    measure.__name__ = name
    study = run(Grid(**SIZES, scenario="S1", measure=measure, n_datasets=1, n_resamples=3))
    test, rate, result = (
        next(csv.DictReader(table.splitlines()))
        for table in (
            files.tests_csv(study),
            files.rates_csv(study.rates()),
            # Single results have the same guard.
            hc.io.to_csv(hc.minimize(np.full((4, 1, 2), 0.5), [0, 1, 0, 1], measure=measure)),
        )
    )
    shown = name if name == "a=1" else f"'{name}"
    assert test["measure"] == rate["measure"] == result["measure"] == shown
    # The minus of a number is no formula.
    assert test["statistic"] == result["statistic"] == "-0.25"


def test_progress_counts_tests_and_begins_where_a_study_was_left(tmp_path):
    told = []
    run(SMALL, folder=tmp_path, progress=lambda *counts: told.append(counts))
    assert told == [(0, 144), (48, 144), (96, 144), (144, 144)]
    told.clear()
    run(SMALL, folder=tmp_path, resume=True, progress=lambda *counts: told.append(counts))
    assert told == [(144, 144)]


def test_a_protocol_decides_by_its_own_rule():
    """Under the authors' rule a negative SKCE far from 0 rejects."""
    options = {"n_samples": 30, "n_members": 3, "n_classes": 3, "n_datasets": 60}
    options |= {"scenario": "S1", "measure": "skce_ul", "null": "paper", "minimizer": "pairwise:9"}
    rates = [
        error_rates(**options, n_resamples=40, protocol=protocol, alpha=0.5, rng=0).rejection_rate[
            0
        ]
        for protocol in ("paper", "paper+two_sided")
    ]
    assert rates[1] > rates[0] + 0.15


def test_one_test_takes_one_value_of_everything():
    with pytest.raises(InvalidInputError, match=r"`n_samples` must be one value.*Grid"):
        error_rates(n_samples=(10, 20))


@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_a_line_end_in_a_name_ends_no_line():
    def measure(probs, labels):
        return 0.25

    measure.__name__ = "=cmd\rx\ny"
    study = run(Grid(**SIZES, scenario="S1", measure=measure, n_datasets=2, n_resamples=3))
    for table in (files.tests_csv(study), files.rates_csv(study.rates())):
        header, *rows = csv.reader(io.StringIO(table, newline=""))
        assert {len(row) for row in rows} == {len(header)}
        assert {row[header.index("measure")] for row in rows} == {"'=cmd\rx\ny"}


@pytest.mark.parametrize("switch", ["resume", "force"])
def test_what_a_switch_is_about_has_to_be_named(switch, tmp_path):
    with pytest.raises(InvalidInputError, match="`folder` must name what"):
        run(SMALL, **{switch: True})
    (tmp_path / "tests.csv").write_text("kept")
    with pytest.raises(InvalidInputError, match=f"`{switch}` must be True or False"):
        run(SMALL, folder=tmp_path, **{switch: "no"})
    assert (tmp_path / "tests.csv").read_text() == "kept"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"folder": 5}, "`folder` must be a path"), ({"backend": 7}, "`backend` must be one")],
)
def test_what_is_no_folder_and_no_backend(options, words):
    with pytest.raises(InvalidInputError, match=words):
        run(SMALL, **options)
