"""Table 1: small versions of every data set, from the download to the table, and trunks that learn."""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
train_test_split = pytest.importorskip("sklearn.model_selection").train_test_split
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles import table, training  # noqa: E402
from experiments.deep_ensembles.__main__ import main  # noqa: E402
from experiments.deep_ensembles.downloads import DownloadError  # noqa: E402
from experiments.deep_ensembles.tasks import (  # noqa: E402
    NETWORKS,
    TASKS,
    Data,
    Options,
    Recipe,
    Task,
)

import hullcal as hc  # noqa: E402

AT_HAND = [name for name, task in TASKS.items() if task.at_hand]
FEW = (table.Setting(5, 39, True), table.Setting(10, 59, False))


def blobs(n_rows=120, n_classes=3, seed=0):
    """Clouds of points that overlap a little."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_classes
    points = rng.normal(size=(n_rows, 5)) + 2.0 * np.eye(5)[labels]
    half = n_rows // 2
    names = tuple(f"class {k}" for k in range(n_classes))
    points = points.astype(np.float32)
    return Data(points[:half], labels[:half], points[half:], labels[half:], names)


@pytest.fixture
def small(monkeypatch):
    """A task that takes a second, and few resamples."""
    calls = []

    def load(task, options):
        calls.append(options)
        return blobs()

    task = Task(
        "blobs",
        "CIFAR-10",
        "MOB",
        Recipe(hidden=8, epochs=5, learning_rate=0.1, batch_size=8),
        load,
    )
    monkeypatch.setitem(TASKS, "blobs", task)
    monkeypatch.setattr(table, "SETTINGS", FEW)
    return calls


def run(*arguments):
    return main([*arguments, "--jobs", "1"])


def test_a_run_prints_the_paper_and_ours_and_writes_both(small, tmp_path, capsys):
    def lines(name):
        return (tmp_path / "out" / f"{name}.csv").read_text().splitlines()

    assert run("blobs", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")) == 0
    said = capsys.readouterr().out
    assert "60 rows to learn from, 60 held out, K = 3; 13 networks to train" in said
    found = list(csv.DictReader(lines("table1_B5_D39")))
    assert [row["classifier"] for row in found] == ["S", "DN(0.1)", "DN(0.6)", "DE"]
    assert all(float(row["accuracy"]) > 0.5 for row in found)
    tests = {"p_conf_authors", "p_cwise_paper", "p_conf_recentered", "p_cwise_stacked"}
    assert tests | {"p_cwise_refit", "p_truth", "evalue"} <= set(found[0])
    # The paper's single network on CIFAR-10: accuracy .7804, ECE .0194, rejected.
    single = list(csv.reader(lines("table1_B10_D59_conf")))[1]
    assert (single[:4], single[5], single[11]) == (
        ["CIFAR-10", "MOB", "S", ".7804"],
        ".0194",
        "yes",
    )
    assert single[4] == f"{float(found[0]['accuracy']):.4f}".removeprefix("0")
    ensemble = list(csv.reader(lines("table1_B5_D39_cwise")))[4]
    # "yes (.025)" says what the numbers say.
    for column, name in ((16, "p_cwise_refit"), (17, "p_truth")):
        p = float(found[3][name])
        told = f"{'yes' if p <= 0.05 else 'no'} ({p:.3f})".replace("0.", ".")
        assert ensemble[column].rstrip("?") == told


def test_what_was_done_is_not_done_again(small, tmp_path, capsys):
    work = ("--work", str(tmp_path))
    assert run("blobs", *work) == 0
    first = capsys.readouterr().out.split("\n\n", 1)[1]
    folder = next(tmp_path.iterdir())
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert run("blobs", *work) == 0
    assert len(small) == 1
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert capsys.readouterr().out.split("\n\n", 1)[1] == first


def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_bits(small, tmp_path, monkeypatch):
    assert run("blobs", "--work", str(tmp_path / "whole")) == 0
    train, left = training.train, [5]

    def tire(*arguments, **settings):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return train(*arguments, **settings)

    monkeypatch.setattr(training, "train", tire)
    assert run("blobs", "--work", str(tmp_path / "stopped")) == 130
    folder = next((tmp_path / "stopped").iterdir())
    assert len(list(folder.glob("*_*.npy"))) == 5
    monkeypatch.setattr(training, "train", train)
    assert run("blobs", "--work", str(tmp_path / "stopped")) == 0
    for path in (tmp_path / "whole" / folder.name).glob("*.npy"):
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_members_differ_and_a_single_network_does_not_drop_out(small, tmp_path):
    folder = training.learn(TASKS["blobs"], Options(), tmp_path, n_jobs=1)
    shapes = {}
    for kind in training.KINDS:
        probs, _ = training.predictions(kind, folder)
        shapes[kind.name] = probs.shape
        for m in range(1, probs.shape[1]):
            assert np.abs(probs[:, m] - probs[:, 0]).max() > 1e-4
        np.testing.assert_allclose(probs.sum(axis=2), 1.0, atol=1e-6)
    assert shapes == {
        "S": (60, 1, 3),
        "DN(0.1)": (60, 10, 3),
        "DN(0.6)": (60, 10, 3),
        "DE": (60, 10, 3),
    }
    single, _ = training.predictions(training.KINDS[0], folder)
    ensemble, _ = training.predictions(training.KINDS[3], folder)
    assert (np.abs(single - ensemble).max(axis=(0, 2)) > 1e-4).all()


def test_a_column_that_never_varied_in_training_is_not_blown_up():
    features = np.zeros((40, 2), dtype=np.float32)
    features[:, 1] = np.arange(40)
    seen = training.Standardised(features)(torch.tensor([[0.05, 19.5]]))
    np.testing.assert_allclose(seen.numpy(), [[0.05, 0.0]], atol=1e-6)


def test_too_few_rows_for_a_batch_are_refused(small, tmp_path, capsys):
    TASKS["blobs"] = replace(TASKS["blobs"], recipe=Recipe(hidden=8, epochs=1, batch_size=61))
    assert run("blobs", "--work", str(tmp_path)) == 2
    assert "at least one batch of 61 rows" in capsys.readouterr().err


def test_other_labels_under_the_same_networks_are_refused(small, tmp_path):
    task = TASKS["blobs"]
    folder = training.learn(task, Options(), tmp_path, n_jobs=1)
    (folder / "single_0.npy").unlink()
    changed = replace(task, load=lambda task, options: blobs(seed=0, n_rows=126))
    with pytest.raises(ValueError, match="got other labels"):
        training.learn(changed, Options(), tmp_path, n_jobs=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("blobs", "--path", "nonsense"),
        ("blobs", "--rows", "1"),
        ("bacteria", "--end-to-end"),
    ],
)
def test_bad_usage_ends_before_any_work(arguments, small, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
    assert not small


def test_a_row_is_what_the_public_functions_say(small, tmp_path):
    folder = training.learn(TASKS["blobs"], Options(), tmp_path, n_jobs=1)
    kind = training.KINDS[3]
    found = table.rows(kind, folder, FEW[:1], n_jobs=1, seed=0)[0]
    probs, digest = training.predictions(kind, folder)
    labels = np.load(folder / "labels.npy")
    calibration, test = train_test_split(np.arange(60), test_size=0.5, random_state=2022)
    mean = probs[test].astype(np.float64).mean(axis=1)
    assert found["accuracy"] == pytest.approx((mean.argmax(axis=1) == labels[test]).mean())
    assert found["ece_conf"] == pytest.approx(hc.ConfidenceECE(n_bins=5)(mean, labels[test]))
    options = {"measure": hc.ClasswiseECE(n_bins=5), "n_resamples": 39, "rng": 0}
    result = hc.truth_test(probs[calibration], labels[calibration], **options)
    assert found["p_cwise_refit"] == result.pvalue
    mixed = np.einsum("nmk,m->nk", probs[test].astype(np.float64), result.weights)
    assert found["weighted_ece_cwise"] == pytest.approx(
        hc.ClasswiseECE(n_bins=5)(mixed, labels[test]), abs=1e-9
    )
    assert found["sha256"] == digest


def test_the_papers_table_has_forty_rows():
    theirs = table.published()
    assert len(theirs) == 40
    assert theirs["Bacteria", "--", "DE"]["weighted_ece_conf"] == "0.0642"
    assert {(task.dataset, task.architecture) for task in TASKS.values()} == {
        place[:2] for place in theirs
    }


@pytest.mark.parametrize("name", AT_HAND)
def test_a_small_version_of_the_real_data_goes_from_download_to_table(name, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "SETTINGS", FEW)
    options = Options(rows=60)
    try:
        n_classes = len(TASKS[name].data(options).classes)
    except DownloadError as error:
        pytest.skip(f"no registry can be reached: {error}")
    work, out = ("--work", str(tmp_path)), ("--out", str(tmp_path / "out"))
    assert run(name, "--rows", "60", *work, *out) == 0
    lines = (tmp_path / "out" / "table1_B5_D39.csv").read_text().splitlines()
    # Better than guessing, on real pictures and sequences.
    assert float(list(csv.DictReader(lines))[3]["accuracy"]) > 2.0 / n_classes


# Images of one's own, and trunks that learn


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """Nothing is read from or left in the user's cache, and no core is taken from others."""
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Trunk(torch.nn.Module):
    """A few outputs from the mean of every channel."""

    n_outputs = 20

    def __init__(self):
        super().__init__()
        self.most = 0  # images at a time
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(3, 20, generator=generator))

    def forward(self, images):
        self.most = max(self.most, len(images))
        return images.mean(dim=(2, 3)) @ self.weight


def pictures_in(folder, names=("001.ak47", "002.american-flag"), n_images=16):
    """Images of which the first class has little red, and no two of one size."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for i in range(n_images):
            pixels = rng.integers(256, size=(30 + i, 50, 3)).astype(np.uint8)
            pixels[:, :, 0] //= 1 + 3 * (k == 0)
            Image.fromarray(pixels).save(folder / name / f"{k + 1:03}_{i:04}.jpg")
    return folder


@pytest.mark.usefixtures("aside")
def test_images_of_ones_own_are_asked_for_and_then_used(tmp_path, monkeypatch, capsys):
    assert run("caltech256_mob", "--work", str(tmp_path / "work")) == 2
    assert "--path caltech256_mob=FOLDER" in capsys.readouterr().err
    pictures_in(tmp_path / "256_ObjectCategories", n_images=8)
    monkeypatch.setitem(NETWORKS, "MOB", Trunk)
    data = TASKS["caltech256_mob"].data(Options({"caltech256_mob": tmp_path}))
    assert data.train_inputs.shape == (8, 20)
    assert sorted(data.held_labels) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert data.classes == ("001.ak47", "002.american-flag")


@pytest.mark.usefixtures("aside")
def test_a_trunk_learns_from_a_folder_by_the_flag(tmp_path, monkeypatch, capsys):
    pictures_in(tmp_path / "256_ObjectCategories", n_images=24)
    task = TASKS["caltech256_mob"]
    short = replace(task, recipe=Recipe(hidden=8, epochs=2, batch_size=8), pixels=36)
    monkeypatch.setitem(NETWORKS, "MOB", Trunk)
    monkeypatch.setitem(TASKS, "caltech256_mob", short)
    monkeypatch.setattr(table, "SETTINGS", (table.Setting(5, 19, False),))
    trained, train = [], training.train

    def remember(*arguments, **settings):
        trained.append(train(*arguments, **settings))
        return trained[-1]

    monkeypatch.setattr(training, "train", remember)
    path = ("--path", f"caltech256_mob={tmp_path}")
    work = tmp_path / "work"
    assert run("caltech256_mob", *path, "--end-to-end", "--work", str(work)) == 0
    assert "24 rows to learn from, 24 held out, K = 2; 13 networks" in capsys.readouterr().out
    assert len(trained) == 13
    assert {network[0].network.most for network in trained} == {8}  # also for those held out
    before = Trunk().weight
    assert all(not torch.equal(network[0].network.weight, before) for network in trained)
    # What is held out is predicted from its own pixels, in its order.
    data = short.data(Options({"caltech256_mob": tmp_path}, end_to_end=True))
    with torch.inference_mode():
        by_hand = trained[0](torch.from_numpy(np.asarray(data.held_inputs))).softmax(dim=1)
    single, _ = training.predictions(training.KINDS[0], next(work.iterdir()))
    np.testing.assert_allclose(single[:, 0], by_hand.numpy(), atol=1e-5)
    assert not (tmp_path / "cache" / "features").exists()


def test_a_damaged_image_is_named_before_a_trunk_learns(tmp_path):
    pictures_in(tmp_path / "images")
    (tmp_path / "images" / "001.ak47" / "torn.jpg").write_bytes(b"")
    options = Options({"caltech256_mob": tmp_path / "images"}, end_to_end=True)
    with pytest.raises(ValueError, match=r"torn\.jpg, which is not"):
        TASKS["caltech256_mob"].data(options)
