"""The monitor: the e-process in batches, its file, its detector and its command."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import hullcal as hc
from hullcal.cli import main


def batch(seed, n=100, wrong=False, m=3, k=3):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.7), size=(n, m))
    truth = probs @ np.eye(k)
    truth = truth.mean(axis=1) ** (0.1 if wrong else 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    levels = rng.random((n, 1))
    return probs, np.minimum((truth.cumsum(axis=1) <= levels).sum(axis=1), k - 1)


def watched(batches, **options):
    monitor = hc.Monitor(n_members=3, n_classes=3, **options)
    for each in batches:
        monitor.update(*each)
    return monitor


def test_a_valid_stream_is_not_rejected_and_a_wrong_one_is():
    valid = watched(batch(i) for i in range(15))
    assert not valid.rejected
    assert valid.evalue < 20
    wrong = watched(batch(i, wrong=True) for i in range(15))
    assert wrong.rejected
    assert wrong.pvalue <= 0.05
    assert wrong.temperature > 1.5
    assert "rejected" in repr(wrong)


def test_valid_streams_hardly_ever_pass_the_threshold_at_any_time():
    ever = 0
    for stream in range(30):
        ever += watched(batch(1000 * stream + i, n=20) for i in range(10)).rejected
    assert ever <= 1


def test_a_late_change_is_detected_sooner_than_by_all_rows():
    stream = [batch(i, n=200) for i in range(30)] + [
        batch(i, 200, wrong=True) for i in range(30, 45)
    ]
    monitor = watched(stream)
    before = [each for each in monitor.history if each[0] <= 6000]
    assert max(each[2] for each in before) < math.log(1000)
    assert monitor.alarm
    first = [next(n for n, *logs in monitor.history if logs[i] >= math.log(1000)) for i in (0, 1)]
    assert first[1] < first[0]
    assert monitor.detector > monitor.evalue


def test_a_change_after_a_long_valid_past_is_learned_from_its_first_rows():
    # Predictors of the latest 4,096 rows alone, most of them old, raise no alarm so soon.
    rng = np.random.default_rng(0)
    monitor = hc.Monitor(n_members=3, n_classes=3)
    for number in range(31):
        probs = rng.dirichlet(np.ones(3), size=(100, 3))
        law = probs.mean(axis=1) ** (1.0 if number < 25 else 0.3)
        monitor.update(probs, hc.simulation.draw_labels(law, rng))
        assert not (monitor.alarm and number < 25)
    assert monitor.alarm


def test_batches_of_one_row_and_a_batch_with_impossible_labels():
    probs, labels = batch(0, n=15)
    one_by_one = watched((probs[i : i + 1], labels[i : i + 1]) for i in range(15))
    together = watched([(probs, labels)])
    assert one_by_one.n_rows == together.n_rows == 15
    assert one_by_one.log_evalue == pytest.approx(together.log_evalue, abs=1e-6)
    certain = np.zeros((2, 3, 3))
    certain[:, :, 0] = 1.0
    together.update(certain, [0, 1])
    assert together.evalue == math.inf
    assert together.rejected
    assert together.pvalue == 0.0


def test_sums_that_are_all_too_small_are_no_evidence():
    # Labels follow the predictions, whose rows sum to .99: float16 may leave as much, and it adds up.
    exact, short = watched([]), watched([])
    for i in range(5):
        probs, labels = batch(i, n=300)
        probs = (0.99 * probs).astype(np.float16)
        short.update(probs, labels)
        probs = probs.astype(np.float64)
        exact.update(probs / probs.sum(axis=2, keepdims=True), labels)
    assert short.log_evalue == pytest.approx(exact.log_evalue, abs=1e-6)
    assert short.log_evalue < 1.0


@pytest.mark.parametrize(
    ("given", "how"),
    [(np.log, "from_logits"), (np.log, "from_log"), (lambda probs: 100 * probs, "normalize")],
)
def test_a_batch_may_hold_logits_logarithms_or_percentages(given, how):
    probs, labels = batch(0)
    plain, other = watched([(probs, labels)]), watched([])
    other.update(given(probs), labels, **{how: True})
    assert other.log_evalue == pytest.approx(plain.log_evalue, abs=1e-9)
    with pytest.raises(hc.InvalidInputError, match=how):
        other.update(given(probs), labels)


def test_what_interrupts_an_update_leaves_the_monitor_as_it_was(monkeypatch):
    monitor, other = watched([batch(0)]), watched([batch(0)])

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hullcal.monitor.fit_mixture", interrupted)
        with pytest.raises(KeyboardInterrupt):
            monitor.update(*batch(1))
    monitor.update(*batch(2))
    other.update(*batch(2))
    assert monitor.history == other.history


def test_a_reset_restarts_the_evidence():
    monitor = watched(batch(i, wrong=True) for i in range(10))
    monitor.reset()
    assert (monitor.n_rows, monitor.evalue, monitor.rejected) == (0, 1.0, False)
    assert monitor.history == []
    monitor.update(*batch(77))
    assert monitor.n_rows == 100


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (np.full((4, 2, 3), 1 / 3), [0] * 4),
        (np.full((4, 3, 4), 0.25), [0] * 4),
        (np.full((4, 3, 3), 1 / 3), [0] * 5),
        (np.full((4, 3, 3), np.nan), [0] * 4),
        (np.full((4, 3, 3), 1 / 3), [0, 1, 2, 3]),
        (np.zeros((0, 3, 3)), []),
    ],
)
def test_a_batch_that_is_refused_leaves_the_monitor_as_it_was(probs, labels, tmp_path):
    monitor = watched([batch(0)])
    monitor.save(tmp_path / "before.npz")
    with pytest.raises(hc.InvalidInputError):
        monitor.update(probs, labels)
    old = hc.Monitor.load(tmp_path / "before.npz")
    monitor.update(*batch(1))
    old.update(*batch(1))
    assert monitor.history == old.history


def test_batches_with_other_names_or_in_another_order_are_refused(tmp_path):
    probs, labels = batch(0)
    monitor = hc.Monitor(n_members=3, n_classes=3)
    monitor.update(hc.ClassifierSet(probs, classes=["a", "b", "c"]), np.array(list("abc"))[labels])
    monitor.save(tmp_path / "state.npz")
    monitor = hc.Monitor.load(tmp_path / "state.npz")
    with pytest.raises(hc.InvalidInputError, match=r"classes of the batches before.*'a', 'b', 'c'"):
        monitor.update(hc.ClassifierSet(probs, classes=["b", "a", "c"]), ["a"] * 100)
    monitor.update(probs, labels)  # without names, positions count
    with pytest.raises(hc.InvalidInputError, match="classes of the batches before"):
        monitor.update(hc.ClassifierSet(probs, classes=["x", "y", "z"]), ["x"] * 100)
    assert monitor.n_rows == 200


def test_a_state_that_was_read_back_goes_on_as_if_nothing_had_happened(tmp_path):
    monitor = watched([batch(0)])
    for i in range(1, 12):
        monitor.save(tmp_path / "state.npz")
        again = hc.Monitor.load(tmp_path / "state.npz")
        monitor.update(*batch(i))
        again.update(*batch(i))
        assert again.history == monitor.history
        assert again.pvalue == monitor.pvalue
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_what_is_no_state_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    for content in (b"PK\x03\x04 no archive", b"\x80\x04."):
        path.write_bytes(content)
        with pytest.raises(hc.InvalidInputError, match=r"Monitor\.save"):
            hc.Monitor.load(path)
    monitor = watched([batch(0), batch(1)])
    state = monitor._state()
    for name, place, value in (
        ("numbers", 0, 1.0),  # of another format
        ("numbers", 1, 2.0),
        ("numbers", 3, 1e6),
        ("numbers", 5, np.nan),
        ("recent_labels", 7, 3),
        ("recent_labels", 7, -1),
        ("recent", (0, 0), 0.0),
        ("recent", (0, 0, 0), np.nan),
        ("chances", (0, 0), -0.1),
        ("numerators", 0, np.nan),
        ("predictors", (0, 5), np.inf),
        ("starts", (1, 0), 7e9),
        ("starts", (1, 9), -1.0),
        ("starts", (1, -1), np.nan),
        ("history", (0, 1), np.nan),
    ):
        odd = state[name].copy()
        odd[place] = value
        np.savez(path, **state | {name: odd})
        with pytest.raises(hc.InvalidInputError, match=r"Monitor\.save|alpha"):
            hc.Monitor.load(path)
    for name, array in state.items():
        np.savez(path, **state | {name: array[:0]})
        if name != "history":
            with pytest.raises(hc.InvalidInputError, match=r"Monitor\.save"):
                hc.Monitor.load(path)
    np.savez(path, **state | {"recent_labels": np.array([{}], dtype=object)})
    with pytest.raises(hc.InvalidInputError, match="Python objects"):
        hc.Monitor.load(path)
    for odd in (tmp_path, tmp_path / "none.npz"):
        with pytest.raises(hc.InvalidInputError, match=r"path|File not found"):
            hc.Monitor.load(odd)


def test_what_is_printed_has_the_threshold_and_the_next_step(tmp_path):
    valid = watched([batch(0)])
    assert re.fullmatch(
        r"Monitor: 100 rows in 1 batch, e-value \S+ \(20 or more rejects at 0.05\): not rejected",
        str(valid),
    )
    assert valid.impossible == ()
    wrong = watched(batch(i, wrong=True) for i in range(15))
    step = (
        "Next step: the best combination of the latest rows is overconfident; divide its logits by"
    )
    assert f"{step} {wrong.temperature:.2f}. " in str(wrong)
    assert "`reset`" in str(wrong)
    wrong.history.append((1501, 0.0, 0.0))
    wrong._starts[0] = replace(wrong._starts[0], log_evalue=0.0)
    assert re.search(r"e-value 1, once \S+ \(20 or more", repr(wrong))
    probs, labels = batch(1)
    probs[4] = probs[9] = [1.0, 0.0, 0.0]
    labels[[4, 9]] = 1
    valid.update(probs, labels)
    valid.save(tmp_path / "s.npz")
    again = hc.Monitor.load(tmp_path / "s.npz")
    assert again.impossible == (104, 109)
    words = (
        "Impossible: 2 labels have probability 0 under every member (rows 104, 109), counted from 0"
    )
    assert words in str(again)
    assert "check these labels" in str(again)
    said = CliRunner().invoke(main, ["monitor", str(tmp_path / "s.npz"), "--format", "json"]).output
    assert json.loads(said)["impossible"] == [104, 109]
    said = CliRunner().invoke(main, ["monitor", str(tmp_path / "s.npz")]).output
    assert "restart the evidence with `--reset`" in said
    again.reset()
    assert again.impossible == ()


def test_a_notebook_shows_the_decision_and_the_next_step():
    assert ">Not rejected</strong>: 100 rows" in watched([batch(0)])._repr_html_()
    page = watched(batch(i, wrong=True) for i in range(15))._repr_html_()
    assert ">Rejected</strong>: 1500 rows in 15 batches" in page
    assert "Next step" in page


def test_a_failing_disk_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    monitor = watched([batch(0)])
    monitor.save(path)
    before = path.read_bytes()
    monitor.update(*batch(1))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        monitor.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["state.npz"]


def test_the_command_appends_files_to_a_state(tmp_path):
    run = CliRunner().invoke
    for i in range(4):
        probs, labels = batch(i, n=300, wrong=i > 0)
        np.savez(tmp_path / f"{i}.npz", probs=probs, labels=labels)
    state, *files = (str(tmp_path / name) for name in ("s.npz", "0.npz", "1.npz", "2.npz", "3.npz"))
    found = run(main, ["monitor", state, files[0], "--exit-code"], standalone_mode=False)
    assert found.return_value == 0
    assert "not rejected" in found.output
    found = run(main, ["monitor", state, *files[1:], "--exit-code"], standalone_mode=False)
    assert found.return_value == 1
    said = json.loads(run(main, ["monitor", state, "--format", "json"]).output)
    assert said["n_rows"] == 1200
    assert said["rejected"]
    assert run(main, ["monitor", state, "--format", "csv"]).output.startswith("n_rows,")
    assert "0 rows" in run(main, ["monitor", state, "--reset"]).output
    assert isinstance(run(main, ["monitor", state, state]).exception, hc.InvalidInputError)
    missing = run(main, ["monitor", str(tmp_path / "none.npz")])
    assert isinstance(missing.exception, hc.InvalidInputError)


def test_the_command_refuses_another_level_than_that_of_the_state(tmp_path):
    file, state = tmp_path / "0.npz", tmp_path / "s.npz"
    np.savez(file, **dict(zip(("probs", "labels"), batch(0), strict=True)))

    def run(*how):
        return CliRunner().invoke(main, ["monitor", str(state), *how], standalone_mode=False)

    run(str(file), "--alpha", "0.01", "--alarm-every", "50")
    before = state.read_bytes()
    for option, other in (("--alpha", "0.05"), ("--alarm-every", "1000")):
        refused = run(str(file), option, other).exception
        assert isinstance(refused, hc.InvalidInputError)
        assert f"`{option}` was settled" in str(refused)
    assert state.read_bytes() == before
    assert "rejects at 0.01" in run(str(file), "--alpha", "0.01", "--alarm-every", "50").output


def test_the_command_reads_files_as_the_others_do(tmp_path):
    probs, labels = batch(0)
    names = np.array(["cat", "dog", "owl"])
    np.savez(tmp_path / "x.npz", z=np.log(probs), y=names[labels])
    np.savez(tmp_path / "z.npz", probs=probs)
    state, file = str(tmp_path / "s.npz"), str(tmp_path / "x.npz")
    how = ["--logits", "--probs-key", "z", "--labels-key", "y", "--classes", "cat,dog,owl"]
    found = CliRunner().invoke(main, ["monitor", state, file, *how, "--format", "json"])
    log_evalue = json.loads(found.output)["log_evalue"]
    assert log_evalue == pytest.approx(watched([(probs, labels)]).log_evalue, abs=1e-9)
    for odd, words in ((tmp_path, "Name a file"), (tmp_path / "z.npz", "`--labels-key`")):
        refused = CliRunner().invoke(main, ["monitor", state, str(odd)]).exception
        assert isinstance(refused, hc.InvalidInputError)
        assert words in str(refused)
        assert "--engine" not in str(refused)
        assert "--labels " not in str(refused)


def test_the_evidence_is_drawn_with_its_threshold():
    monitor = watched(batch(i, wrong=True) for i in range(4))
    ax = hc.plots.evidence(monitor)
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_allclose(
        lines["e-value of all rows"].get_ydata() * math.log(10),
        [each[1] for each in monitor.history],
    )
    assert lines["threshold 1/α = 20"].get_ydata()[0] == pytest.approx(math.log10(20))
    with pytest.raises(hc.InvalidInputError, match="at least one batch"):
        hc.plots.evidence(hc.Monitor(n_members=2, n_classes=2))


def test_bad_arguments_are_refused():
    for options in ({"n_members": 0}, {"n_classes": 1}, {"alpha": 0.0}):
        with pytest.raises(hc.InvalidInputError):
            hc.Monitor(**{"n_members": 2, "n_classes": 2} | options)
