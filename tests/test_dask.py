"""Many machines: workers of a cluster give what one machine gives, bit for bit, and faults are told."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import dask.array as da
import numpy as np
import psutil
import pytest

import hullcal as hc
from dask_cluster import (
    RANGE,
    WRITERS,
    Deadly,
    Failing,
    Given,
    at_pass,
    predictions,
    processes,
    use_small_ranges,
)
from hullcal.distinct import Distinct, traits
from hullcal.engines import Dask, _dask_cluster, _dask_origins, _dask_passes
from hullcal.engines._dask_members import distinct_members, order_of_members
from hullcal.engines.engine import EngineError
from hullcal.minimizers import Steepest

PROBS, LABELS = predictions()
QUICK = {"n_resamples": 19, "minimizer": Steepest(max_evaluations=25), "rng": 3}


@pytest.fixture(scope="module")
def client():
    with processes(2) as client:
        yield client


@pytest.fixture
def cluster(client, monkeypatch):
    """The engine at the address of two workers, with small ranges here and there."""
    use_small_ranges(monkeypatch)
    client.wait_for_workers(2, timeout=60)
    return Dask(scheduler=client.scheduler.address)


@pytest.fixture
def mortal(monkeypatch):
    """A client of two workers that may be killed: not each of them is sure to be replaced."""
    use_small_ranges(monkeypatch)
    with processes(2) as client:
        yield client


def assert_same(found, expected):
    """Every bit of what two tests found."""
    np.testing.assert_array_equal(found.null_distribution, expected.null_distribution)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.statistic == expected.statistic
    assert found.minimum == expected.minimum
    assert found.pvalue == expected.pvalue
    assert found.n_evaluations == expected.n_evaluations
    assert found.notes == expected.notes


# -- the same bits ----------------------------------------------------------------------------------

PAIRS = [
    (measure, null)
    for measure in ("ece_conf", "ece_cwise", "skce_ul")
    for null in ("paper", "recentered", "refit")
    if (measure, null) != ("skce_ul", "paper")
]


@pytest.mark.parametrize(("measure", "null"), PAIRS)
def test_workers_find_what_one_machine_finds(measure, null, cluster, monkeypatch):
    # An odd number of rows: a last row without a partner, and a last range that is not full.
    probs, labels = PROBS[:6999], LABELS[:6999]
    settings = {"measure": measure, "null": null, **QUICK}
    streamed = hc.calibration_test(probs, labels, **settings)
    lazy = da.from_array(probs, chunks=(2000, 4, 3))
    found = hc.calibration_test(lazy, labels, engine=cluster, **settings)
    assert_same(found, streamed)
    monkeypatch.setattr("hullcal.engines.local._MANY_ROWS", 2**62)
    packed = hc.calibration_test(probs, labels, **settings)
    np.testing.assert_allclose(
        found.null_distribution, packed.null_distribution, rtol=0, atol=1e-12
    )
    assert found.pvalue == packed.pvalue


@pytest.mark.parametrize(
    "chunks",
    [(7000, 4, 3), (RANGE, 4, 3), (4097, 4, 3), (777, 3, 2), ((1, 1999, 5000), 1, 1)],
    ids=["one", "aligned", "odd", "all axes", "uneven"],
)
def test_no_chunking_changes_a_bit(chunks, cluster):
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    lazy = da.from_array(PROBS, chunks=chunks)
    truth = da.from_array(LABELS, chunks=1111)
    assert_same(hc.calibration_test(lazy, truth, null="paper", engine=cluster, **QUICK), expected)


def test_an_assessment_refuses_before_its_first_test(cluster):
    told = []
    with pytest.raises(hc.InvalidInputError, match="no predictions in memory"):
        hc.assessment.assess(
            PROBS, LABELS, nulls=["refit", "stacked"], engine=cluster, n_resamples=19,
            progress=lambda *what: told.append(what),
        )  # fmt: skip
    assert told == []


def test_what_the_client_has_can_be_shown(cluster):
    found = hc.assessment.assess(
        PROBS[:300], LABELS[:300], nulls=["refit"], engine=cluster, n_resamples=19, rng=0
    )
    assert found.classifiers.n_samples == len(found.labels) == 300
    lazy = da.from_array(PROBS[:300])
    found = hc.assessment.assess(
        lazy, LABELS[:300], nulls=["refit"], engine=cluster, n_resamples=19, rng=0
    )
    with pytest.raises(hc.InvalidInputError, match="only workers have seen"):
        found.classifiers  # noqa: B018


def test_a_list_of_dask_arrays_asks_for_dask():
    lazy = [da.from_array(PROBS[:, m]) for m in range(PROBS.shape[1])]
    assert hc.engines.resolve(None, lazy).name == "dask"
    assert hc.engines.resolve(None, list(PROBS)).name == "local"


def test_large_sums_come_in_several_passes_and_change_no_bit(cluster, monkeypatch):
    expected = hc.calibration_test(PROBS, LABELS, null="paper", engine=cluster, **QUICK)
    monkeypatch.setattr("hullcal.engines.streamed._SUMS", 1)
    found = hc.calibration_test(PROBS, LABELS, null="paper", engine=cluster, **QUICK)
    assert_same(found, expected)


def test_chunks_that_are_whole_ranges_do_not_move(client, cluster):
    lazy = da.from_array(PROBS, chunks=(2 * RANGE, 4, 3))
    bounds = [(first, min(first + 2 * RANGE, 7000)) for first in range(0, 7000, 2 * RANGE)]
    assert [part.key for part in _dask_origins._blocks(lazy, bounds)] == [
        part.key for part in lazy.to_delayed().ravel()
    ]


def test_arrays_lists_and_sets_are_sent_to_the_workers(cluster):
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    members = [PROBS[:, m] for m in range(4)]
    lazy_members = [da.from_array(member, chunks=(900, 3)) for member in members]
    named = hc.ClassifierSet(PROBS, members=list("abcd"))
    for probs in (PROBS, members, lazy_members, named):
        found = hc.calibration_test(probs, list(LABELS), null="paper", engine=cluster, **QUICK)
        assert_same(found, expected)
    assert found.members == tuple("abcd")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_members", [1, 3])
def test_every_precision_and_a_single_classifier(dtype, n_members, cluster):
    probs, labels = predictions(2500, n_members, 5, dtype=dtype)
    probs = probs[:, 0] if n_members == 1 else probs
    expected = hc.calibration_test(probs, labels, null="paper", **QUICK)
    lazy = da.from_array(probs, chunks=1000)
    assert_same(hc.calibration_test(lazy, labels, null="paper", engine=cluster, **QUICK), expected)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("labels", [None, LABELS], ids=["stored labels", "other labels"])
def test_workers_read_stores_for_themselves(kind, labels, cluster, tmp_path):
    probs = PROBS.astype(np.float32)
    truth = LABELS if labels is None else np.zeros_like(LABELS)
    path = WRITERS[kind](tmp_path, probs, truth)
    expected = hc.calibration_test(probs, LABELS, null="paper", **QUICK)
    found = hc.calibration_test(path, labels, null="paper", engine=cluster, **QUICK)
    assert_same(found, expected)
    assert found.members == (("m0", "m1", "m2", "m3") if kind == "parquet" else None)


def test_a_store_that_workers_cannot_see(cluster, tmp_path, monkeypatch):
    path = WRITERS["npy"](tmp_path, PROBS, LABELS)
    origin = _dask_origins.origin_of(
        str(path), None, classes=None, from_logits=False, from_log=False
    )
    (path / "probs-004.npy").unlink()
    with pytest.raises(hc.InvalidInputError, match=r"no file .*probs-004.npy"):
        hc.calibration_test(origin.store, None, engine=cluster, **QUICK)


def test_a_bad_row_of_a_store_is_named(cluster, tmp_path):
    path = WRITERS["zarr"](tmp_path, spoiled((5000, 1, 2), np.nan), LABELS)
    with pytest.raises(hc.InvalidInputError, match=r"\(n, m, k\) = \(5000, 1, 2\)"):
        hc.calibration_test(path, None, engine=cluster, **QUICK)


def test_a_dask_array_asks_for_dask_and_for_the_current_client(client, monkeypatch):
    use_small_ranges(monkeypatch)
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    with client.as_current():
        lazy = da.from_array(PROBS, chunks=(1000, 4, 3))
        assert_same(hc.calibration_test(lazy, LABELS, null="paper", **QUICK), expected)
        found = hc.minimize(lazy, LABELS, minimizer=QUICK["minimizer"], rng=3)
    assert client.status == "running"
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_a_path_is_for_workers_and_that_is_said(tmp_path):
    for engine in (None, "local"):
        with pytest.raises(hc.InvalidInputError, match='engine="dask"'):
            hc.calibration_test(tmp_path, None, engine=engine)


def test_nothing_is_left_on_the_workers(client, cluster):
    hc.calibration_test(da.from_array(PROBS, chunks=1000), LABELS, engine=cluster, **QUICK)
    deadline = time.monotonic() + 20
    while any(client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.has_what().values())


def test_a_job_too_large_for_every_task_travels_once(cluster, monkeypatch):
    monkeypatch.setattr("hullcal.engines._dask_passes._SMALL", 0)
    monkeypatch.setattr("hullcal.engines._dask_passes._TAKEN", 1)
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    lazy = da.from_array(PROBS, chunks=1000)
    assert_same(hc.calibration_test(lazy, LABELS, null="paper", engine=cluster, **QUICK), expected)


# -- checks, chunk by chunk -------------------------------------------------------------------------


def test_rows_that_are_mended_are_counted_together(cluster):
    probs = PROBS.copy()
    probs[[3, 70, 5000, 6400], 1] *= 1 + np.array([1e-7, 2e-7, 4e-7, 3e-7])[:, np.newaxis]
    probs[[5, 4500], 0] = [1 + 1e-9, -1e-9, 0.0]
    expected = hc.calibration_test(probs, LABELS, null="paper", **QUICK)
    assert len(expected.notes) == 2
    assert "of 28000 rows were renormalised" in expected.notes[1]
    lazy = da.from_array(probs, chunks=1000)
    assert_same(hc.calibration_test(lazy, LABELS, null="paper", engine=cluster, **QUICK), expected)


@pytest.mark.parametrize("flag", ["from_logits", "from_log"])
def test_logits_and_logarithms(flag, cluster):
    settings = {"null": "paper", flag: True, **QUICK}
    expected = hc.calibration_test(np.log(PROBS), LABELS, **settings)
    lazy = da.log(da.from_array(PROBS, chunks=1000))
    assert_same(hc.calibration_test(lazy, LABELS, engine=cluster, **settings), expected)


def test_probabilities_called_logits_are_remarked_if_all_of_them_are(cluster):
    lazy = da.from_array(PROBS, chunks=RANGE)
    settings = {"null": "paper", "from_logits": True, **QUICK}
    expected = hc.calibration_test(PROBS, LABELS, **settings)
    assert expected.notes
    assert_same(hc.calibration_test(lazy, LABELS, engine=cluster, **settings), expected)
    mixed = np.where(np.arange(7000)[:, np.newaxis, np.newaxis] < 2500, PROBS, np.log(PROBS))
    lazy = da.from_array(mixed, chunks=RANGE)
    assert hc.calibration_test(lazy, LABELS, engine=cluster, **settings).notes == ()


@pytest.mark.parametrize("lazily", [True, False])
def test_labels_by_name_and_one_hot(lazily, cluster):
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    names = ["cat", "dog", "owl"]
    lazy = da.from_array(PROBS, chunks=1000)
    for labels, classes in ((np.array(names)[LABELS], names), (np.eye(3)[LABELS], None)):
        given = da.from_array(labels, chunks=900) if lazily else labels
        found = hc.calibration_test(
            lazy, given, classes=classes, null="paper", engine=cluster, **QUICK
        )
        assert_same(found, expected)


def test_members_that_are_the_same_everywhere_are_one(cluster):
    probs = PROBS[:, [2, 0, 2, 1, 0, 3]].copy()
    # A near copy differs from its model in a single row of the last chunk.
    probs[6980, 4] = probs[6980, 4][::-1]
    options = {"null": "recentered", **QUICK}
    expected = hc.calibration_test(probs, LABELS, **options)
    lazy = da.from_array(probs, chunks=1000)
    assert_same(hc.calibration_test(lazy, LABELS, engine=cluster, **options), expected)


def test_the_usual_null_on_workers_is_recentered_and_that_is_said(cluster):
    found = hc.calibration_test(PROBS, LABELS, engine=cluster, **QUICK)
    *notes, last = found.notes
    assert "null recentered was used instead of stacked" in last
    expected = hc.calibration_test(PROBS, LABELS, engine=cluster, null="recentered", **QUICK)
    assert_same(replace(found, notes=tuple(notes)), expected)


@pytest.mark.parametrize("seed", range(20))
def test_chunks_tell_members_apart_as_the_whole_does(seed):
    rng = np.random.default_rng(seed)
    probs = rng.integers(2, 4, (40, 1, 2)) + np.zeros((40, 7, 2))
    for _ in range(rng.integers(0, 6)):
        probs[rng.integers(40), rng.integers(7), rng.integers(2)] += rng.choice([-1, 1])
    whole = Distinct.of(probs)
    cuts = np.sort(rng.integers(1, 40, 3))
    chunks = [chunk for chunk in np.split(probs, cuts) if len(chunk)]
    found = distinct_members(map(order_of_members, chunks))
    found = found.numbered(sum(traits(chunk, found.positions) for chunk in chunks))
    np.testing.assert_array_equal(found.positions, whole.positions)
    np.testing.assert_array_equal(found.owner, whole.owner)


def spoiled(place, value):
    probs = PROBS.copy()
    probs[place] = value
    return probs


BAD_PREDICTIONS = [
    (spoiled((5000, 1, 2), np.nan), {}, r"\(n, m, k\) = \(5000, 1, 2\)"),
    (spoiled((5000, 1, 2), np.inf), {"from_logits": True}, r"\(n, m, k\) = \(5000, 1, 2\)"),
    (spoiled((5000, 1), [0.2, 0.2, 0.2]), {}, r"\(n, m\) = \(5000, 1\) with sum 0.6"),
    (spoiled((5000, 1), [2.0, -1.0, 0.0]), {}, r"values from -1 to 2.*from_logits"),
    (np.log(PROBS), {}, "from_log=True"),
]


@pytest.mark.parametrize(("probs", "flags", "words"), BAD_PREDICTIONS)
def test_a_bad_row_is_named_by_its_place_in_all_rows(probs, flags, words, cluster):
    lazy = da.from_array(probs, chunks=1000)
    with pytest.raises(hc.InvalidInputError, match=words) as caught:
        hc.calibration_test(lazy, LABELS, engine=cluster, **flags, **QUICK)
    if "5000" in words:
        assert "among the rows 4096 to 6143" in str(caught.value)


BAD_LABELS = [
    (np.where(np.arange(7000) == 5000, 7, LABELS), None, "7 at index 5000"),
    (np.where(np.arange(7000) == 5000, 0.5, LABELS), None, "0.5 at index 5000"),
    (np.where(np.arange(7000)[:, np.newaxis] == 5000, 1, np.eye(3)[LABELS]), None, "row 5000 = "),
    (
        np.array(["a", "b", "c", "x"])[np.where(np.arange(7000) == 5000, 3, LABELS)],
        "abc",
        "'x' at index 5000",
    ),
    (LABELS + 1, None, "1-based"),
]


@pytest.mark.parametrize("lazily", [True, False])
@pytest.mark.parametrize(("labels", "classes", "words"), BAD_LABELS)
def test_a_bad_label_is_named_by_its_place_in_all_rows(labels, classes, words, lazily, cluster):
    lazy = da.from_array(PROBS, chunks=1000)
    given = da.from_array(labels, chunks=1000) if lazily else labels
    classes = None if classes is None else list(classes)
    with pytest.raises(hc.InvalidInputError, match=words):
        hc.calibration_test(lazy, given, classes=classes, engine=cluster, **QUICK)


def test_the_first_bad_row_is_told_and_not_the_first_to_be_found(cluster):
    probs = PROBS.copy()
    probs[[3000, 5000, 6400], 0, 0] = np.nan
    lazy = da.from_array(probs, chunks=RANGE)
    with pytest.raises(hc.InvalidInputError, match=r"\(3000, 0, 0\)"):
        hc.calibration_test(lazy, LABELS, engine=cluster, **QUICK)


@pytest.mark.parametrize(
    ("probs", "labels", "options", "words"),
    [
        (da.zeros((5, 2, 2, 2)), [0] * 5, {}, "`probs` must have shape"),
        (da.zeros((0, 2, 2)), [], {}, "empty array"),
        (da.zeros((5, 2, 1)), [0] * 5, {}, "at least 2 classes"),
        (da.zeros((5, 2, 2), dtype=complex), [0] * 5, {}, "complex"),
        (da.ones((4, 5, 2)) / 2, [0] * 5, {}, r"np.moveaxis\(probs, 0, 1\)"),
        (da.ones((5, 2)) / 2, da.zeros(4), {}, "same number of samples"),
        (da.ones((5, 2)) / 2, [0] * 5, {"classes": ["a"]}, "2 distinct class names"),
        (da.ones((5, 2)), [0] * 5, {"from_log": True, "from_logits": True}, "exclude each other"),
        (da.ones((5, 2)), [0] * 5, {"from_log": 1}, "True or False"),
        (da.ones(5)[da.ones(5) > 0][:, None], [0] * 5, {}, "known shape"),
        ("/no/such/folder", None, {}, "no file or folder"),
    ],
)
def test_what_needs_no_look_at_the_rows_is_said_before_any_work(probs, labels, options, words):
    nowhere = Dask(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(hc.InvalidInputError, match=words):
        hc.calibration_test(probs, labels, engine=nowhere, **options)


def two_of_two(n_samples=7000):
    """Two members and two classes, which every search can take."""
    probs = PROBS[:n_samples, :2, :2]
    return da.from_array(probs / probs.sum(axis=2, keepdims=True)), LABELS[:n_samples] % 2


@pytest.mark.parametrize(
    "settings",
    [
        {"null": "stacked"},
        {"minimizer": "exact"},
        {"minimizer": "pairwise"},
        {"null": "refit", "minimizer": "pairwise", "measure": "skce_ul"},
    ],
    ids=str,
)
def test_what_needs_the_predictions_is_refused(settings, cluster):
    with pytest.raises(hc.InvalidInputError, match="no predictions in memory"):
        hc.calibration_test(*two_of_two(), engine=cluster, n_resamples=19, **settings)


def half(probs, labels):
    """A measure of the user's own."""
    return 0.5


NOT_A_SUM = [
    ("hl_cwise", "hl_cwise"),
    ("skce_uq", "skce_uq"),
    ("skce_b", "skce_b"),
    (hc.SKCE(bandwidth="median"), "skce_ul"),
    (half, "half"),
]


@pytest.mark.parametrize(("measure", "name"), NOT_A_SUM, ids=[name for _, name in NOT_A_SUM])
def test_a_measure_that_is_no_sum_over_rows_is_refused_by_name(measure, name, cluster):
    words = rf'engine "dask" adds up over rows, which measure `{name}` does not\. .*engine="local"'
    for null in ("refit", "maximized"):
        with pytest.raises(hc.InvalidInputError, match=words):
            hc.calibration_test(
                *two_of_two(), engine=cluster, n_resamples=19, measure=measure, null=null
            )


# -- faults -----------------------------------------------------------------------------------------


def store(tmp_path):
    np.save(tmp_path / "probs-0.npy", PROBS)
    np.save(tmp_path / "labels-0.npy", LABELS)
    return tmp_path


SOURCES = {
    "array": lambda folder: PROBS,
    "dask array": lambda folder: da.from_array(PROBS, chunks=RANGE),
    "store": store,
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_killed_worker_changes_nothing(source, mortal, monkeypatch, tmp_path):
    options = {"null": "recentered", **QUICK}
    expected = hc.calibration_test(PROBS, LABELS, **options)

    def kill():
        os.kill(mortal.run(os.getpid).popitem()[1], signal.SIGKILL)

    begun = at_pass(monkeypatch, 5, kill)
    probs = SOURCES[source](tmp_path)
    engine = Dask(scheduler=mortal.scheduler.address)
    assert_same(hc.calibration_test(probs, LABELS, engine=engine, **options), expected)
    assert len(begun) > 5


def test_rows_that_kill_every_worker_are_named(mortal, monkeypatch):
    monkeypatch.setattr(mortal.cluster.scheduler, "allowed_failures", 1)
    engine = Dask(scheduler=mortal.scheduler.address)
    with pytest.raises(EngineError, match=r"2 workers died .*rows 4096 to 6143.* same seed"):
        hc.calibration_test(Deadly.of(PROBS, LABELS, row=5000), None, engine=engine, **QUICK)


def test_a_run_that_lost_its_cluster_goes_on_from_its_journal(
    client, cluster, monkeypatch, tmp_path
):
    # More replicates than are searched at a time, so that some are finished when the rest is lost.
    options = {"null": "refit", "engine": cluster, **QUICK, "n_resamples": 40}
    options["minimizer"] = Steepest(max_evaluations=12)
    whole = hc.calibration_test(PROBS, LABELS, **options)

    def lose():
        raise EngineError("the connection to the scheduler of the cluster was lost.")

    with monkeypatch.context() as patch:
        begun = at_pass(patch, 60, lose)
        with pytest.raises(EngineError):
            hc.calibration_test(PROBS, LABELS, journal=tmp_path, **options)
        assert len(begun) == 60
    kept = (tmp_path / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    assert 2 < len(kept) < 5
    with monkeypatch.context() as patch:
        begun = at_pass(patch, 0, lose)
        resumed = hc.calibration_test(PROBS, LABELS, journal=tmp_path, **options)
    assert_same(resumed, whole)


def test_a_cluster_that_loses_all_workers_is_not_waited_for(mortal, monkeypatch):
    monkeypatch.setattr(_dask_passes, "_LOOK", 0.2)
    at_pass(monkeypatch, 3, lambda: mortal.cluster.scale(0))
    engine = Dask(scheduler=mortal.scheduler.address)
    with pytest.raises(EngineError, match=r"has had no worker for 1 seconds.* same seed"):
        hc.calibration_test(PROBS, LABELS, engine=engine, **QUICK)


def test_answers_that_are_lost_before_they_are_fetched_are_not_waited_for(mortal, monkeypatch):
    # Workers that finish their tasks and end before anybody has asked for the answers.
    monkeypatch.setattr(_dask_passes, "_LOOK", 0.2)
    gathered = _dask_passes.Chunks._gathered

    def after_the_end(self, futures):
        mortal.cluster.scale(0)
        _until(lambda: not mortal.nthreads())
        return gathered(self, futures)

    monkeypatch.setattr(_dask_passes.Chunks, "_gathered", after_the_end)
    engine = Dask(scheduler=mortal.scheduler.address)
    with pytest.raises(EngineError, match=r"has had no worker for 1 seconds.* same seed"):
        hc.calibration_test(PROBS, LABELS, engine=engine, **QUICK)


def test_rows_that_cannot_be_read_are_named(cluster):
    with pytest.raises(EngineError, match=r"rows 0 to 2047 .*RuntimeError: the tape broke"):
        hc.calibration_test(Failing.of(PROBS, LABELS), None, engine=cluster, **QUICK)


def test_a_store_can_be_an_object(cluster):
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    given = Given.of(PROBS, LABELS)
    assert_same(hc.calibration_test(given, None, null="paper", engine=cluster, **QUICK), expected)


def test_a_scheduler_that_goes_away_is_an_error(tmp_path, monkeypatch):
    use_small_ranges(monkeypatch)
    file = str(tmp_path / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-m", "dask"]
    options = ["--scheduler-file", file, "--no-dashboard"]
    local = ["--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen([*module, "scheduler", *options, *local], **quiet) as scheduler:
        try:
            _until(lambda: os.path.exists(file))
            worker = [*module, "worker", *options, "--nthreads", "1", "--no-nanny"]
            with subprocess.Popen(worker, **quiet) as worker:
                try:
                    address = f"tcp://127.0.0.1:{_port(file)}"
                    at_pass(monkeypatch, 4, scheduler.kill)
                    began = time.monotonic()
                    with pytest.raises(
                        EngineError, match=r"connection to the scheduler.*same seed"
                    ):
                        hc.calibration_test(PROBS, LABELS, engine=Dask(scheduler=address), **QUICK)
                    # Not a matter of speed, but of not waiting for ever.
                    assert time.monotonic() - began < 100
                finally:
                    worker.kill()
        finally:
            scheduler.kill()


def _until(true):
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert true()


def _port(file):
    import json

    with open(file, encoding="utf-8") as text:
        return json.load(text)["address"].rpartition(":")[2]


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr(_dask_cluster, "_CONNECTING", 1)
    with pytest.raises(hc.InvalidInputError, match=r"`scheduler` .* 'tcp://127.0.0.1:1'"):
        hc.calibration_test(PROBS, LABELS, engine=Dask(scheduler="tcp://127.0.0.1:1"))


def test_workers_without_hullcal(cluster, monkeypatch):
    monkeypatch.setattr(_dask_cluster, "_PACKAGE", "hullcal_that_is_not_there")
    with pytest.raises(hc.InvalidInputError, match=r"no hullcal there .*Install `hullcal=="):
        hc.calibration_test(PROBS, LABELS, engine=cluster)


def test_workers_with_another_hullcal(cluster, monkeypatch):
    monkeypatch.setattr(hc, "__version__", "99.0")
    with pytest.raises(hc.InvalidInputError, match=r"there and 99\.0 here"):
        hc.calibration_test(PROBS, LABELS, engine=cluster)


def test_dask_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(hc.InvalidInputError, match="pip install dask distributed"):
        hc.calibration_test(PROBS, LABELS, engine="dask")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scheduler": "tcp://a:1", "n_workers": 2}, "exclude each other"),
        ({"scheduler": 8786}, "must be an address"),
        ({"n_workers": 0}, "`n_workers`"),
    ],
)
def test_a_cluster_is_named_in_one_way(arguments, words):
    with pytest.raises(hc.InvalidInputError, match=words):
        Dask(**arguments)


# -- a cluster of our own ---------------------------------------------------------------------------


def descendants():
    found = psutil.Process().children(recursive=True)
    return {child.pid for child in found if child.status() != psutil.STATUS_ZOMBIE}


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt, ValueError], ids=str)
def test_a_cluster_of_our_own_ends_with_the_call(ending, monkeypatch):
    use_small_ranges(monkeypatch)
    before = descendants()
    settings = {"null": "paper", "engine": Dask(n_workers=1), **QUICK}
    if ending is None:
        expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
        assert_same(hc.calibration_test(PROBS, LABELS, **settings), expected)
    else:

        def stop():
            assert len(descendants() - before) > 0
            raise ending

        at_pass(monkeypatch, 2, stop)
        with pytest.raises(ending):
            hc.calibration_test(PROBS, LABELS, **settings)
    _until(lambda: descendants() <= before)


def test_without_a_cluster_there_is_one_process_a_core(monkeypatch):
    use_small_ranges(monkeypatch)
    monkeypatch.setattr(_dask_cluster, "_cores", lambda: 1)
    before, seen = descendants(), []
    at_pass(monkeypatch, 1, lambda: seen.extend(descendants() - before))
    expected = hc.calibration_test(PROBS, LABELS, null="paper", **QUICK)
    assert_same(hc.calibration_test(PROBS, LABELS, null="paper", engine="dask", **QUICK), expected)
    assert seen


def test_no_package_of_the_cluster_is_loaded_before_it_is_needed():
    code = "import sys, hullcal, hullcal.engines.dask, hullcal.io.stores; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    roots = {name.partition(".")[0] for name in loaded}
    assert roots.isdisjoint({"dask", "distributed", "zarr", "pyarrow"})


SCRIPT = """
    import sys
    import numpy as np
    import hullcal as hc
    from hullcal.engines import Dask, _dask_passes

    if __name__ == "__main__":
        total = _dask_passes.DaskPasses.total
        def loudly(self, job):
            print("pass", flush=True)
            return total(self, job)
        _dask_passes.DaskPasses.total = loudly
        probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=(400, 3))
        resamples = int(sys.argv[1])
        settings = {"null": "paper", "n_resamples": resamples, "rng": 0}
        hc.calibration_test(probs, [0, 1] * 200, engine=Dask(n_workers=2), **settings)
"""


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_script_says_nothing_at_its_end(interrupted, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script), "99999" if interrupted else "19"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # A shell in the background ignores Ctrl-C, and what it starts would too.
    heeding = {"preexec_fn": functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, start_new_session=True, **pipes, **heeding) as process:
        try:
            assert process.stdout.readline() == "pass\n"
            workers = psutil.Process(process.pid).children(recursive=True)
            assert len(workers) >= 2
            if interrupted:
                # As a terminal does: to the workers as well.
                os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    if interrupted:
        assert errors.rstrip().endswith("KeyboardInterrupt")
        # A coroutine of distributed's that was at work just then is dropped by Python, and told.
        dropped = errors.count("Exception ignored in: <coroutine object Future.")
        assert errors.count("Traceback (most recent call last)") == 1 + dropped, errors
    else:
        assert errors == ""
        assert process.returncode == 0
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive


@pytest.mark.parametrize(
    "settings",
    [
        {"minimizer": "exact"},
        {"measure": hc.SKCE(bandwidth="median")},
        {"measure": lambda probs, labels: 0.1},
    ],
)
def test_a_search_refuses_what_workers_cannot_do(settings, cluster):
    array = pytest.importorskip("dask.array")
    probs = array.from_array(np.full((30, 2, 3), 1 / 3), chunks=(10, 2, 3))
    with pytest.raises(hc.InvalidInputError, match="dask"):
        hc.minimize(probs, np.arange(30) % 3, **settings)
