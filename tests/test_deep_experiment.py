"""Table 1: small versions of every data set, from the download to the table."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles import classifiers, rows, table, training  # noqa: E402
from experiments.deep_ensembles.__main__ import main  # noqa: E402
from experiments.deep_ensembles.downloads.errors import Unreachable  # noqa: E402
from experiments.deep_ensembles.images import caltech_features  # noqa: E402
from experiments.deep_ensembles.tasks import TASKS, Data, Options, Recipe, Task  # noqa: E402

AT_HAND = [name for name, task in TASKS.items() if task.at_hand]
FEW = (rows.Setting(5, 39, True), rows.Setting(10, 59, False))


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
    for module in (rows, sys.modules["experiments.deep_ensembles.__main__"]):
        monkeypatch.setattr(module, "SETTINGS", FEW)
    return calls


def run(*arguments):
    return main([*arguments, "--jobs", "1"])


def test_a_run_prints_the_paper_and_ours_and_writes_both(small, tmp_path, capsys):
    assert run("blobs", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")) == 0
    said = capsys.readouterr().out
    assert "60 rows to learn from, 60 held out, K = 3; 13 networks to train" in said
    with (tmp_path / "out" / "table1_B5_D39.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [row["classifier"] for row in found] == ["S", "DN(0.1)", "DN(0.6)", "DE"]
    assert all(float(row["accuracy"]) > 0.5 for row in found)
    assert {"p_conf_authors", "p_cwise_paper", "p_conf_recentered", "p_cwise_refit"} <= set(
        found[0]
    )
    # The paper's single network on CIFAR-10: accuracy .7804, ECE .0194, rejected.
    with (tmp_path / "out" / "table1_B10_D59_conf.csv").open() as file:
        single = list(csv.reader(file))[1]
    assert (single[:4], single[5], single[11]) == (
        ["CIFAR-10", "MOB", "S", ".7804"],
        ".0194",
        "yes",
    )
    assert single[4] == f"{float(found[0]['accuracy']):.4f}".removeprefix("0")
    with (tmp_path / "out" / "table1_B5_D39_cwise.csv").open() as file:
        ensemble = list(csv.reader(file))[4]
    # "yes (.025)" says what the numbers say.
    p = float(found[3]["p_cwise_refit"])
    assert ensemble[15].rstrip("?") == f"{'yes' if p <= 0.05 else 'no'} ({p:.3f})".replace(
        "0.", "."
    )


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


def test_other_settings_have_another_folder(small, tmp_path):
    task = TASKS["blobs"]
    folders = {
        classifiers.folder_of(task, Options(), tmp_path),
        classifiers.folder_of(task, Options(seed=1), tmp_path),
        classifiers.folder_of(task, Options(rows=10), tmp_path),
        classifiers.folder_of(
            replace(task, recipe=Recipe(hidden=9, epochs=3)), Options(), tmp_path
        ),
    }
    assert len(folders) == 4


def test_members_differ_and_a_single_network_does_not_drop_out(small, tmp_path):
    folder = classifiers.learn(TASKS["blobs"], Options(), tmp_path, n_jobs=1)
    shapes = {}
    for kind in classifiers.KINDS:
        probs, _ = classifiers.predictions(kind, folder)
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
    single, _ = classifiers.predictions(classifiers.KINDS[0], folder)
    ensemble, _ = classifiers.predictions(classifiers.KINDS[3], folder)
    assert (np.abs(single - ensemble).max(axis=(0, 2)) > 1e-4).all()


def test_training_is_gradient_descent_with_momentum():
    data = blobs(n_rows=80)
    recipe = Recipe(hidden=4, epochs=2, learning_rate=0.1, momentum=0.5, batch_size=40)

    def trunk():
        return training.Standardised(data.train_inputs)

    network = training.train(trunk, data, recipe, dropout=0.0, seed=3)
    # A full batch of 40 rows is one step, whatever their order: two steps by hand.
    torch.manual_seed(3)
    by_hand = training.classifier(trunk(), recipe, 3, 0.0)
    velocity = [torch.zeros_like(parameter) for parameter in by_hand.parameters()]
    for _ in range(2):
        by_hand.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            by_hand(torch.from_numpy(data.train_inputs)), torch.from_numpy(data.train_labels)
        )
        loss.backward()
        with torch.no_grad():
            for i, parameter in enumerate(by_hand.parameters()):
                velocity[i] = 0.5 * velocity[i] + parameter.grad
                parameter -= 0.1 * velocity[i]
    for ours, parameter in zip(network.parameters(), by_hand.parameters(), strict=True):
        np.testing.assert_allclose(
            ours.detach().numpy(), parameter.detach().numpy(), rtol=0, atol=1e-6
        )


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
    folder = classifiers.learn(task, Options(), tmp_path, n_jobs=1)
    (folder / "single_0.npy").unlink()
    changed = replace(task, load=lambda task, options: blobs(seed=0, n_rows=126))
    with pytest.raises(ValueError, match="got other labels"):
        classifiers.learn(changed, Options(), tmp_path, n_jobs=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("blobs", "--path", "nonsense"),
        ("blobs", "--path", "blub=folder"),
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
    from sklearn.model_selection import train_test_split

    import hullcal as hc

    folder = classifiers.learn(TASKS["blobs"], Options(), tmp_path, n_jobs=1)
    kind = classifiers.KINDS[3]
    found = rows.rows(kind, folder, FEW[:1], n_jobs=1)[0]
    probs, digest = classifiers.predictions(kind, folder)
    labels = np.load(folder / "labels.npy")
    calibration, test = train_test_split(np.arange(60), test_size=0.5, random_state=2022)
    mean = probs[test].astype(np.float64).mean(axis=1)
    assert found["accuracy"] == pytest.approx((mean.argmax(axis=1) == labels[test]).mean())
    assert found["ece_conf"] == pytest.approx(hc.ConfidenceECE(n_bins=5)(mean, labels[test]))
    result = hc.calibration_test(
        probs[calibration],
        labels[calibration],
        measure=hc.ClasswiseECE(n_bins=5),
        null="refit",
        n_resamples=39,
        rng=0,
    )
    assert found["p_cwise_refit"] == result.pvalue
    mixed = np.einsum("nmk,m->nk", probs[test].astype(np.float64), result.weights)
    assert found["weighted_ece_cwise"] == pytest.approx(
        hc.ClasswiseECE(n_bins=5)(mixed, labels[test]), abs=1e-9
    )
    assert found["sha256"] == digest


def test_tests_are_run_again_for_other_predictions(small, tmp_path):
    folder = classifiers.learn(TASKS["blobs"], Options(), tmp_path, n_jobs=1)
    kind = classifiers.KINDS[0]
    before = rows.rows(kind, folder, FEW[:1], n_jobs=1)[0]
    path = classifiers.files_of(kind, folder)[0]
    np.save(path, np.load(path)[:, :, ::-1])
    after = rows.rows(kind, folder, FEW[:1], n_jobs=1)[0]
    assert after["sha256"] != before["sha256"]
    assert after["accuracy"] != before["accuracy"]


def test_the_papers_table_has_forty_rows():
    theirs = table.published()
    assert len(theirs) == 40
    assert theirs["Bacteria", "--", "DE"]["weighted_ece_conf"] == "0.0642"
    assert {(task.dataset, task.architecture) for task in TASKS.values()} == {
        place[:2] for place in theirs
    }


def test_images_of_ones_own_are_asked_for_and_then_used(tmp_path, monkeypatch, capsys):
    assert run("caltech256_mob", "--work", str(tmp_path / "work")) == 2
    assert "--path caltech256_mob=FOLDER" in capsys.readouterr().err
    rng = np.random.default_rng(0)
    for name in ("001.ak47", "002.american-flag", "257.clutter"):
        folder = tmp_path / "256_ObjectCategories" / name
        folder.mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(256, size=(40, 50, 3)).astype(np.uint8)
            pixels[:, :, 0] //= 1 + 3 * name.startswith("001")
            Image.fromarray(pixels).save(folder / f"{name[:3]}_{i:04}.jpg")
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        sys.modules["experiments.deep_ensembles.tasks"],
        "NETWORKS",
        {"MOB": Averages, "VGG": Averages},
    )
    options = Options({"caltech256_mob": tmp_path})
    data = TASKS["caltech256_mob"].data(options)
    assert data.train_inputs.shape == (8, 3)
    assert sorted(data.held_labels) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert data.classes == ("001.ak47", "002.american-flag")


class Averages(torch.nn.Module):
    """The mean of every channel: a network that needs no weights."""

    def forward(self, images):
        return images.mean(dim=(2, 3))


def test_features_in_svmlight_form_are_taken_for_sequences(tmp_path):
    path = tmp_path / "bacteria.svm"
    lines = [f"{i % 3} {1 + i % 5}:{0.5 + i / 100}" for i in range(60)]
    path.write_text("\n".join(lines), encoding="utf-8")
    data = TASKS["bacteria"].data(Options({"bacteria": path}))
    assert data.train_inputs.shape[1] == 5
    assert len(data.classes) == 3
    assert len(data.train_labels) + len(data.held_labels) == 60


@pytest.mark.parametrize("name", AT_HAND)
def test_a_small_version_of_the_real_data_goes_from_download_to_table(
    name, tmp_path, monkeypatch, capsys
):
    needs_files = name.startswith("caltech101")
    if needs_files and not caltech_features.place().is_dir():
        pytest.skip("the feature files of Caltech-101 are not here")
    for module in (rows, sys.modules["experiments.deep_ensembles.__main__"]):
        monkeypatch.setattr(module, "SETTINGS", FEW)
    try:
        code = run(name, "--rows", "60", "--work", str(tmp_path), "--out", str(tmp_path / "out"))
    except Unreachable as error:
        pytest.skip(f"no registry can be reached: {error}")
    said = capsys.readouterr()
    if code == 2 and "cannot be reached" in said.err:
        pytest.skip(said.err)
    assert code == 0, said.err
    with (tmp_path / "out" / "table1_B5_D39.csv").open() as file:
        found = list(csv.DictReader(file))
    settings = json.loads(next(tmp_path.glob(f"{name}-*/settings.json")).read_text())
    # Better than guessing, on real pictures and sequences.
    assert float(found[3]["accuracy"]) > 2.0 / settings["n_classes"]


def test_the_trunk_learns_too_if_told_to(tmp_path, monkeypatch):
    task = TASKS["cifar10_mob"]
    short = replace(task, recipe=Recipe(hidden=8, epochs=1, batch_size=8), pixels=32)
    options = Options(rows=8, end_to_end=True)
    try:
        data = short.data(options)
    except Unreachable as error:
        pytest.skip(f"no registry can be reached: {error}")
    assert data.train_inputs.dtype == np.uint8
    monkeypatch.setattr(classifiers, "KINDS", classifiers.KINDS[:2])
    before = training.Seen(mobilenet(), 32, 1000).network.state_dict()
    kept = {}
    train = training.train

    def remember(*arguments, **settings):
        kept["network"] = train(*arguments, **settings)
        return kept["network"]

    monkeypatch.setattr(training, "train", remember)
    folder = classifiers.learn(short, options, tmp_path, n_jobs=1)
    probs, _ = classifiers.predictions(classifiers.KINDS[1], folder)
    assert probs.shape == (8, 10, 10)
    after = kept["network"][0].network.state_dict()
    assert not torch.equal(before["features.0.0.weight"], after["features.0.0.weight"])


def mobilenet():
    from experiments.deep_ensembles.images import mobilenet as networks

    return networks.pretrained()
