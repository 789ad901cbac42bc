"""Many machines: workers of a cluster give what one machine gives, bit for bit, and faults are told."""

import asyncio
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import replace

import dask.array as da
import distributed
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
from hullcal import EngineError
from hullcal.io.stores import open_store
from hullcal.minimizers import Steepest
from hullcal.objectives import chunked, dask, opening
from simulation import judged

PROBS, LABELS = predictions()
QUICK = {"n_resamples": 19, "minimizer": Steepest(max_evaluations=25), "rng": 3}


@pytest.fixture(scope="module")
def client():
    with processes(2) as client:
        yield client


@pytest.fixture
def cluster(client, monkeypatch):
    """A client of two workers, with small ranges here and there."""
    use_small_ranges(monkeypatch)
    client.wait_for_workers(2, timeout=60)
    return client


@pytest.fixture
def mortal(monkeypatch):
    """A client of two workers that may be killed: not each of them is sure to be replaced."""
    use_small_ranges(monkeypatch)
    with processes(2) as client:
        yield client


def lazily(probs=PROBS, chunks=1000):
    return da.from_array(probs, chunks=chunks)


def outcome(probs=PROBS, labels=LABELS, **options):
    return judged(probs, labels, **({"null": "paper"} | QUICK | options))


def assert_same(found, expected):
    """Every bit of what two tests found."""
    np.testing.assert_array_equal(found.null_distribution, expected.null_distribution)
    np.testing.assert_array_equal(found.weights, expected.weights)
    for name in ("statistic", "minimum", "pvalue", "n_evaluations", "notes"):
        assert getattr(found, name) == getattr(expected, name), name


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
    settings = {"measure": measure, "null": null}
    found = outcome(lazily(probs, 2000), labels, engine=cluster, **settings)
    assert_same(found, outcome(probs, labels, **settings))
    monkeypatch.setattr(opening, "_MANY_ROWS", 2**62)
    packed = outcome(probs, labels, **settings)
    np.testing.assert_allclose(
        found.null_distribution, packed.null_distribution, rtol=0, atol=1e-12
    )
    assert found.pvalue == packed.pvalue


@pytest.mark.parametrize("n_samples", [7000, 20_000])
def test_the_likelihood_test_finds_what_one_machine_finds(n_samples, cluster):
    probs, labels = predictions(n_samples, dtype=np.float32)
    how = {"n_resamples": 19, "n_orders": 2, "rng": 0}
    here = hc.truth_test(probs, labels, **how)
    there = hc.truth_test(lazily(probs, chunks=3000), labels, engine=cluster, **how)
    np.testing.assert_array_equal(there.null_distribution, here.null_distribution)
    for name in ("statistic", "log_evalue", "log_likelihood", "temperature"):
        assert getattr(there, name) == getattr(here, name), name
    np.testing.assert_array_equal(there.pool, here.pool)
    assert (there.surprises, there.impossible) == ((), ())


@pytest.mark.parametrize(
    "chunks",
    [(7000, 4, 3), (RANGE, 4, 3), (4097, 4, 3), (777, 3, 2), ((1, 1999, 5000), 1, 1)],
    ids=["one", "aligned", "odd", "all axes", "uneven"],
)
def test_no_chunking_changes_a_bit(chunks, cluster):
    found = outcome(lazily(chunks=chunks), lazily(LABELS, 1111), engine=cluster)
    assert_same(found, outcome())


@pytest.mark.parametrize(("dtype", "n_members"), [(np.float16, 3), (np.float32, 1)])
def test_neither_precision_nor_what_travels_in_parts_changes_a_bit(
    dtype, n_members, cluster, monkeypatch
):
    probs, labels = predictions(2100, n_members, 5, dtype=dtype)
    probs = probs[:, 0] if n_members == 1 else probs
    expected = outcome(probs, labels)
    for module, name, value in (
        (chunked, "_SUMS", 1),
        (dask, "_TAKEN", 1),
        (dask, "_SMALL", 0),
        (dask, "_CHUNK", 1),
    ):
        monkeypatch.setattr(module, name, value)
    for given in (probs, lazily(probs)):
        assert_same(outcome(given, labels, engine=cluster), expected)


def test_arrays_lists_and_sets_are_sent_to_the_workers(cluster):
    expected = outcome()
    members = [PROBS[:, m] for m in range(4)]
    lazy_members = [lazily(member, (900, 3)) for member in members]
    named = hc.ClassifierSet(PROBS, members=list("abcd"))
    for probs in (PROBS, members, lazy_members, Given.of(PROBS, LABELS), named):
        found = outcome(probs, list(LABELS), engine=cluster)
        assert_same(found, expected)
    assert found.members == tuple("abcd")


@pytest.mark.parametrize("labels", [None, LABELS], ids=["stored labels", "other labels"])
@pytest.mark.parametrize("kind", WRITERS)
def test_workers_read_stores_for_themselves(kind, labels, cluster, tmp_path):
    probs = PROBS.astype(np.float32)
    path = WRITERS[kind](tmp_path, probs, LABELS if labels is None else np.zeros_like(LABELS))
    found = outcome(path, labels, engine=cluster)
    assert_same(found, outcome(probs))
    assert found.members == (("m0", "m1", "m2", "m3") if kind == "parquet" else None)


def test_a_store_that_workers_cannot_see(cluster, tmp_path):
    store = open_store(WRITERS["npy"](tmp_path, PROBS, LABELS))
    (tmp_path / "probs-004.npy").unlink()
    with pytest.raises(hc.InvalidInputError, match=r"File not found: .*probs-004.npy"):
        outcome(store, None, engine=cluster)


def test_dask_arrays_go_to_the_current_client(client, monkeypatch):
    use_small_ranges(monkeypatch)
    expected = outcome()
    with client.as_current():
        assert_same(outcome(lazily()), expected)
        assert_same(outcome([lazily(PROBS[:, m]) for m in range(4)]), expected)
        found = hc.minimize(lazily(), LABELS, minimizer=QUICK["minimizer"], rng=3)
    assert client.status == "running"
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_a_path_is_for_workers_and_that_is_said(tmp_path):
    for engine in (None, "local"):
        with pytest.raises(hc.InvalidInputError, match='engine="dask"'):
            outcome(tmp_path, None, engine=engine)


def test_nothing_is_left_on_the_workers(client, cluster):
    outcome(lazily(), engine=cluster)
    _until(lambda: not any(client.has_what().values()))


def test_an_assessment_refuses_before_its_first_test(cluster):
    told = []
    options = {"engine": cluster, "null": "stacked", "progress": lambda *what: told.append(what)}
    with pytest.raises(hc.InvalidInputError, match="no predictions in memory"):
        hc.assessment.assess(lazily(), LABELS, **options)
    assert told == []


# -- checks, chunk by chunk -------------------------------------------------------------------------


def test_rows_that_are_mended_are_counted_together(cluster):
    probs = PROBS.copy()
    probs[[3, 70, 5000, 6400], 1] *= 1 + np.array([1e-7, 2e-7, 4e-7, 3e-7])[:, np.newaxis]
    probs[[5, 4500], 0] = [1 + 1e-9, -1e-9, 0.0]
    expected = outcome(probs)
    clipped, renormalised = expected.notes
    assert (clipped.code, clipped.data["n_values"]) == ("clipped", 4)
    assert renormalised.code == "renormalised"
    assert renormalised.data["of_rows"] == 28000
    assert_same(outcome(lazily(probs), engine=cluster), expected)


@pytest.mark.parametrize("flag", ["from_logits", "from_log"])
def test_logits_and_logarithms(flag, cluster):
    found = outcome(da.log(lazily()), engine=cluster, **{flag: True})
    assert_same(found, outcome(np.log(PROBS), **{flag: True}))


def test_probabilities_called_logits_are_remarked_if_all_of_them_are(cluster):
    expected = outcome(from_logits=True)
    assert [note.code for note in expected.notes] == ["needless_logits"]
    assert_same(outcome(lazily(), from_logits=True, engine=cluster), expected)
    mixed = np.where(np.arange(7000)[:, np.newaxis, np.newaxis] < 2500, PROBS, np.log(PROBS))
    assert outcome(lazily(mixed), from_logits=True, engine=cluster).notes == ()


@pytest.mark.parametrize("hold", [lazily, np.asarray], ids=["lazy", "here"])
def test_labels_by_name_and_one_hot(hold, cluster):
    names = ["cat", "dog", "owl"]
    for labels, classes in ((np.array(names)[LABELS], names), (np.eye(3)[LABELS], None)):
        found = outcome(lazily(), hold(labels), classes=classes, engine=cluster)
        assert_same(found, outcome())


def test_members_that_are_the_same_everywhere_are_one(cluster):
    probs = PROBS[:, [2, 0, 2, 1, 0, 3]].copy()
    # A near copy differs from its model in a single row of the last chunk.
    probs[6980, 4] = probs[6980, 4][::-1]
    found = outcome(lazily(probs), null="recentered", engine=cluster)
    assert_same(found, outcome(probs, null="recentered"))


def test_the_usual_null_on_workers_is_recentered_and_that_is_said(cluster):
    found = outcome(null=None, engine=cluster)
    *notes, last = found.notes
    assert last == hc.notes.Note("beyond_memory", {"null": "recentered", "usual": "stacked"})
    expected = outcome(null="recentered", engine=cluster)
    assert_same(replace(found, notes=tuple(notes)), expected)


def spoiled(place, value):
    probs = PROBS.copy()
    probs[place] = value
    return probs


# Row 5000 is in the range from 4096 to 6143, as its row 904.
PLACE = r"in the rows from 4096 to 6143, counted from 4096: .*"


@pytest.mark.parametrize(
    ("probs", "flags", "words"),
    [
        (spoiled((5000, 1, 2), np.nan), {}, rf"{PLACE}\(n, m, k\) = \(904, 1, 2\)"),
        (spoiled((5000, 1, 2), np.inf), {"from_logits": True}, rf"{PLACE}\(904, 1, 2\)"),
        (spoiled((5000, 1), [0.2, 0.2, 0.2]), {}, rf"{PLACE}\(n, m\) = \(904, 1\) with sum 0.6"),
        (spoiled((5000, 1), [2.0, -1.0, 0.0]), {}, rf"{PLACE}values from -1 to 2.*from_logits"),
        (spoiled(([3000, 5000, 6400], 0, 0), np.nan), {}, r"rows from 2048 .*\(952, 0, 0\)"),
        (np.log(PROBS), {}, "from_log=True"),
    ],
)
def test_the_first_bad_row_is_named_by_its_place(probs, flags, words, cluster):
    for given in (lazily(probs), Given.of(probs, LABELS)):
        with pytest.raises(hc.InvalidInputError, match=words):
            outcome(given, LABELS, engine=cluster, **flags)


SPOILED = np.arange(7000) == 5000
NAMES = np.array(["a", "b", "c", "x"])


@pytest.mark.parametrize(
    ("labels", "classes", "words"),
    [
        (np.where(SPOILED, 7, LABELS), None, "7 at index {}"),
        (np.where(SPOILED, 0.5, LABELS), None, "0.5 at index {}"),
        (np.where(SPOILED[:, np.newaxis], 1, np.eye(3)[LABELS]), None, "row {} = "),
        (NAMES[np.where(SPOILED, 3, LABELS)], list("abc"), "'x' at index {}"),
        (LABELS + 1, None, "1-based"),
    ],
)
def test_a_bad_label_is_named_by_its_place(labels, classes, words, cluster):
    with pytest.raises(hc.InvalidInputError, match=words.format(5000)):
        outcome(lazily(), labels, classes=classes, engine=cluster)
    words = words if "{" not in words else PLACE + words.format(904)
    with pytest.raises(hc.InvalidInputError, match=words):
        outcome(lazily(), lazily(labels), classes=classes, engine=cluster)


@pytest.mark.parametrize(
    ("probs", "labels", "options", "words"),
    [
        (da.zeros((5, 2, 2, 2)), [0] * 5, {}, "`probs` must have shape"),
        (da.zeros((0, 2, 2)), [], {}, "empty array"),
        (da.zeros((5, 2, 1)), [0] * 5, {}, "at least 2 classes"),
        (da.zeros((5, 2, 2), dtype=complex), [0] * 5, {}, "complex"),
        (da.ones((4, 5, 2)) / 2, [0] * 5, {}, r"np.transpose\(probs, \(1, 0, 2\)\)"),
        (da.ones((5, 2)) / 2, da.zeros(4), {}, "same number of samples"),
        (da.ones((5, 2)) / 2, [0] * 5, {"classes": ["a"]}, "2 distinct class names"),
        (da.ones((5, 2)), [0] * 5, {"from_log": True, "from_logits": True}, "exclude each other"),
        (da.ones((5, 2)), [0] * 5, {"from_log": 1}, "True or False"),
        (da.ones(5)[da.ones(5) > 0][:, None], [0] * 5, {}, "known shape"),
        (da.ones((5, 2)).to_delayed()[0, 0], [0] * 5, {}, "must be an array"),
        ([da.ones((5, 2)).to_delayed()[0, 0]] * 2, [0] * 5, {}, "must be an array"),
        ([da.ones((5, 2)), da.ones((4, 2))], [0] * 5, {}, "members of one shape"),
        (da.ones((5, 2)), None, {}, "`labels` must be an array"),
        ("/no/such/folder", None, {}, "not found: /no"),
    ],
)
def test_what_needs_no_look_at_the_rows_is_said_before_any_work(
    probs, labels, options, words, monkeypatch
):
    monkeypatch.setattr(dask, "connected", None)
    with pytest.raises(hc.InvalidInputError, match=words):
        outcome(probs, labels, engine="dask", **options)


def half(probs, labels):
    """A measure of the user's own."""
    return 0.5


PREDICTIONS = "no predictions in memory"
A_SUM = r'engine "dask" adds up over rows, which measure `{}` does not\. .*engine="local"'


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"null": "stacked"}, PREDICTIONS),
        ({"minimizer": "exact"}, PREDICTIONS),
        ({"null": "refit", "minimizer": "pairwise", "measure": "skce_ul"}, PREDICTIONS),
        ({"measure": "hl_cwise"}, A_SUM.format("hl_cwise")),
        ({"measure": "skce_uq"}, A_SUM.format("skce_uq")),
        ({"measure": "skce_b", "null": "maximized"}, A_SUM.format("skce_b")),
        ({"measure": hc.SKCE(bandwidth="median")}, A_SUM.format("skce_ul")),
        ({"measure": half}, A_SUM.format("half")),
    ],
)
def test_what_workers_cannot_do_is_refused_by_name(settings, words, cluster):
    # Two members and two classes, which every search can take.
    probs = PROBS[:, :2, :2] / PROBS[:, :2, :2].sum(axis=2, keepdims=True)
    with pytest.raises(hc.InvalidInputError, match=words):
        outcome(lazily(probs), LABELS % 2, engine=cluster, **({"null": "refit"} | settings))
    if "null" not in settings:
        with cluster.as_current(), pytest.raises(hc.InvalidInputError, match=words):
            hc.minimize(lazily(probs), LABELS % 2, **settings)


# -- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["dask array", "store"])
def test_a_killed_worker_changes_nothing(source, mortal, monkeypatch, tmp_path):
    expected = outcome(null="recentered")
    stored = source == "store"
    probs = WRITERS["npy"](tmp_path, PROBS, LABELS) if stored else lazily(chunks=RANGE)

    def kill():
        os.kill(mortal.run(os.getpid).popitem()[1], signal.SIGKILL)

    begun = at_pass(monkeypatch, 5, kill)
    assert_same(outcome(probs, null="recentered", engine=mortal), expected)
    assert len(begun) > 5


def test_rows_that_kill_every_worker_are_named(mortal, monkeypatch):
    monkeypatch.setattr(mortal.cluster.scheduler, "allowed_failures", 1)
    with pytest.raises(EngineError, match=r"2 workers died .*rows 4096 to 6143.* same seed"):
        outcome(Deadly.of(PROBS, LABELS, row=5000), None, engine=mortal)


def test_a_cluster_that_loses_all_workers_is_not_waited_for(mortal, monkeypatch):
    monkeypatch.setattr(dask, "_LOOK", 0.2)
    at_pass(monkeypatch, 3, lambda: mortal.cluster.scale(0))
    with pytest.raises(EngineError, match=r"has had no worker for 1 seconds.* same seed"):
        outcome(engine=mortal)


def test_answers_that_are_lost_before_they_are_fetched_are_not_waited_for(mortal, monkeypatch):
    # Workers that finish their tasks and end before anybody has asked for the answers.
    monkeypatch.setattr(dask, "_LOOK", 0.2)
    gathered = dask.DaskSet._gathered

    def after_the_end(self, futures):
        mortal.cluster.scale(0)
        _until(lambda: not mortal.nthreads())
        return gathered(self, futures)

    monkeypatch.setattr(dask.DaskSet, "_gathered", after_the_end)
    with pytest.raises(EngineError, match=r"has had no worker for 1 seconds.* same seed"):
        outcome(engine=mortal)


def test_rows_that_cannot_be_read_are_named(cluster):
    with pytest.raises(EngineError, match=r"rows 0 to 2047 .*RuntimeError: the tape broke"):
        outcome(Failing.of(PROBS, LABELS), None, engine=cluster)


@contextmanager
def running(*words):
    """A program of dask's, for as long as it is needed."""
    command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_scheduler_that_goes_away_is_an_error(tmp_path, monkeypatch):
    use_small_ranges(monkeypatch)
    file = tmp_path / "scheduler.json"
    where = ["--scheduler-file", str(file)]
    lost = pytest.raises(EngineError, match=r"connection to the scheduler.*same seed")
    with running("scheduler", *where, "--host", "127.0.0.1", "--port", "0") as scheduler:
        _until(file.exists)
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        with running("worker", *where, "--nthreads", "1", "--no-nanny"):
            at_pass(monkeypatch, 4, scheduler.kill)
            began = time.monotonic()
            with dask.at_address(address) as client, lost:
                outcome(engine=client)
        # Not a matter of speed, but of not waiting for ever.
        assert time.monotonic() - began < 100


@pytest.mark.parametrize(
    ("said", "words"),
    [(None, "no answer within 1 seconds"), (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(99), "MemoryError")],
    ids=["silent", "of another kind"],
)
def test_a_server_that_is_no_scheduler_is_not_waited_for(said, words, monkeypatch):
    monkeypatch.setattr(dask, "_CONNECTING", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as stranger:
                stranger.sendall(said)
                stranger.recv(2**16)

        answering = threading.Thread(target=answer)
        if said is not None:
            answering.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused = pytest.raises(hc.InvalidInputError, match=f"`scheduler` must be .*{words}")
        with refused, dask.at_address(address):
            pass
        if said is not None:
            answering.join()


def _until(true):
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert true()


def test_workers_without_hullcal_or_with_another(mortal, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(hc, "__version__", "99.0")
        with pytest.raises(hc.InvalidInputError, match=r"same hullcal.*Install `hullcal==99\.0`"):
            outcome(engine=mortal)
    # No module of it is loaded by workers that have done nothing yet.
    mortal.run(exec, "import sys; sys.modules['hullcal'] = None")
    with pytest.raises(hc.InvalidInputError, match=r"no hullcal .*Install `hullcal=="):
        outcome(engine=mortal)


def test_dask_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(hc.InvalidInputError, match="pip install dask distributed"):
        outcome(engine="dask")


def test_a_client_that_does_not_wait_is_refused(client):
    async def ask():
        options = {"asynchronous": True, "set_as_default": False}
        async with distributed.Client(client.scheduler.address, **options) as impatient:
            with pytest.raises(hc.InvalidInputError, match="must be a client that waits"):
                outcome(engine=impatient)

    asyncio.run(ask())


# -- a cluster of our own ---------------------------------------------------------------------------


def workers():
    """Processes started by this one and by those, but for the tracker of Python that stays."""
    found = psutil.Process().children(recursive=True)
    alive = {child for child in found if child.status() != psutil.STATUS_ZOMBIE}
    return {child for child in alive if "resource_tracker" not in " ".join(child.cmdline())}


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt, ValueError], ids=str)
def test_a_cluster_of_our_own_has_a_process_a_core_and_ends_with_the_call(ending, monkeypatch):
    use_small_ranges(monkeypatch)
    expected, before = outcome(), workers()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    seen = []

    def stop():
        started = [" ".join(worker.cmdline()) for worker in workers() - before]
        seen.append(sum("spawn_main" in command for command in started))
        if ending is not None:
            raise ending

    at_pass(monkeypatch, 2, stop)
    if ending is None:
        assert_same(outcome(engine="dask"), expected)
    else:
        with pytest.raises(ending):
            outcome(engine="dask")
    assert seen == [1]
    _until(lambda: workers() <= before)


async def _knock(address, key):
    options = {"timeout": 5, "asynchronous": True, "set_as_default": False}
    async with distributed.Client(address, security=key, **options):
        pass


def _listening():
    """Where this process and those that it has started listen."""
    ours = [psutil.Process(), *workers()]
    return {c.laddr for each in ours for c in each.net_connections() if c.status == "LISTEN"}


def test_nobody_else_can_connect_to_a_cluster_of_our_own_or_read_its_pages():
    before = _listening()
    with dask.local_cluster(1) as own:
        assert own.submit(sum, [1, 2]).result() == 3
        host = own.scheduler.address.removeprefix("tls://")
        for address, key in (
            (f"tcp://{host}", distributed.Security()),
            (f"tls://{host}", distributed.Security.temporary()),
        ):
            with pytest.raises(OSError):
                asyncio.run(_knock(address, key))
        opened = _listening() - before
        assert {place.ip for place in opened} == {"127.0.0.1"}
        for place in opened:
            for page in ("info/main/workers.html", "json/counts.json", "health", "metrics"):
                with pytest.raises(OSError):  # urllib's own errors are such
                    urllib.request.urlopen(f"http://127.0.0.1:{place.port}/{page}", timeout=10)


def test_a_cluster_of_our_own_is_not_started_without_keys(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(hc.InvalidInputError, match="pip install cryptography"):
        outcome(engine="dask")


SCRIPT = """
    import os
    import sys
    import numpy as np
    import hullcal as hc
    from hullcal.objectives import dask

    if __name__ == "__main__":
        os.sched_getaffinity = lambda _: {0, 1}
        total = dask.DaskSet.total
        def loudly(self, job):
            print("pass", flush=True)
            return total(self, job)
        dask.DaskSet.total = loudly
        probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=(400, 3))
        settings = {"null": "paper", "n_resamples": int(sys.argv[1]), "rng": 0}
        hc.calibration_test(probs, [0, 1] * 200, engine="dask", **settings)
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
            started = psutil.Process(process.pid).children(recursive=True)
            assert len(started) >= 2
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
        # It may come while dask handles an error of its own, which Python then tells first.
        dropped += errors.count(
            "During handling of the above exception, another exception occurred"
        )
        assert errors.count("Traceback (most recent call last)") == 1 + dropped, errors
    else:
        assert errors == ""
        assert process.returncode == 0
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not alive
