"""Data of one's own for Table 1: sequences in three forms, images to learn from, images fetched."""

import gzip
import sys
import types
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

from experiments.deep_ensembles import classifiers, own_sequences, rows, training  # noqa: E402
from experiments.deep_ensembles.__main__ import main  # noqa: E402
from experiments.deep_ensembles.images import folders, image_files  # noqa: E402
from experiments.deep_ensembles.images.features import extract  # noqa: E402
from experiments.deep_ensembles.pictures import Pictures  # noqa: E402
from experiments.deep_ensembles.tasks import NETWORKS, TASKS, Options, Recipe  # noqa: E402

SPECIES = ("Vibrio fischeri", "Bacillus cereus")


@pytest.fixture(autouse=True)
def aside(tmp_path, monkeypatch):
    """Nothing is read from or left in the user's cache, and no core is taken from others."""
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(*arguments):
    return main([*arguments, "--jobs", "1"])


# Sequences


def sequences(letters="ACGT", n_rows=60, length=50):
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list(letters), length)) for _ in range(n_rows)]


def written(path, letters="ACGT"):
    """The same sequences, of two species in turn, in the form that the suffix says."""
    pairs = [(sequence, SPECIES[i % 2]) for i, sequence in enumerate(sequences(letters))]
    inner = path.name.removesuffix(".gz")
    if inner.endswith((".csv", ".tsv")):
        between = "\t" if inner.endswith(".tsv") else ","
        lines = [between.join(row) for row in [("sequence", "label"), *pairs]]
    else:
        lines = [line for i, pair in enumerate(pairs) for line in (f">s{i} {pair[1]}", pair[0])]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.b.fasta", "a.fa.gz", "a.fna"])
def test_every_form_of_the_same_sequences_gives_the_same_rows(name, tmp_path):
    data = TASKS["bacteria"].data(Options({"bacteria": written(tmp_path / name)}))
    assert data.classes == ("Bacillus cereus", "Vibrio fischeri")
    assert data.train_inputs.shape == (42, 64 + 256 + 1024)
    assert data.held_inputs.shape == (18, 1344)
    other = TASKS["bacteria"].data(Options({"bacteria": written(tmp_path / "other.csv")}))
    np.testing.assert_array_equal(data.train_inputs, other.train_inputs)
    np.testing.assert_array_equal(data.held_labels, other.held_labels)


def test_proteins_of_ones_own_have_the_papers_8000_columns(tmp_path):
    path = written(tmp_path / "a.faa", own_sequences.AMINO_ACIDS)
    assert TASKS["proteins"].data(Options({"proteins": path})).train_inputs.shape == (42, 8000)


def test_a_packed_svmlight_file_is_taken(tmp_path):
    path = tmp_path / "a.libsvm.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(f"{i % 3} {1 + i % 5}:{0.5 + i / 100}" for i in range(60)))
    assert TASKS["proteins"].data(Options({"proteins": path})).train_inputs.shape == (42, 5)


@pytest.mark.parametrize("name", ["bacteria.dat", "bacteria", "bacteria.gz", "bacteria.csv.zip"])
def test_another_suffix_is_refused_with_all_that_are_taken(name, tmp_path, capsys):
    written(tmp_path / name)
    path = f"bacteria={tmp_path / name}"
    assert run("bacteria", "--path", path, "--work", str(tmp_path / "work")) == 2
    said = capsys.readouterr().err
    assert f"got '{name}'" in said
    for suffix in (*own_sequences.TABLE, *own_sequences.FASTA, *own_sequences.SVMLIGHT, ".gz"):
        assert suffix in said
    for form in ("the columns `sequence` and `label`", "`>identifier label`", "index:value"):
        assert form in said


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "seq,label\nACGT,x\n", r"must have a column 'sequence'; got .*'seq'"),
        ("a.fasta", ">s1 Vibrio\nACGT\n>s2\nACGT\n", "as in '>identifier label'; got '>s2'"),
        ("a.svm", "x 1:2\n", "must hold lines of an integer label"),
    ],
)
def test_a_file_that_does_not_look_as_it_must_is_refused(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        TASKS["bacteria"].data(Options({"bacteria": tmp_path / name}))


def test_a_file_that_is_not_there_brings_where_to_get_it(tmp_path):
    with pytest.raises(ValueError, match=r"a file that exists(.|\n)*DEEPre"):
        TASKS["proteins"].data(Options({"proteins": tmp_path / "a.csv"}))


# Images to learn from


class Trunk(torch.nn.Module):
    """As many outputs as MobileNetV2 has, from the mean of every channel."""

    def __init__(self):
        super().__init__()
        self.most = 0  # images at a time
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(3, 1000, generator=generator))

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


def short(name):
    """A task that takes a second."""
    return replace(TASKS[name], recipe=Recipe(hidden=8, epochs=2, batch_size=8), pixels=36)


def test_a_trunk_that_learns_sees_what_a_frozen_one_sees(tmp_path):
    files = folders.from_folder(pictures_in(tmp_path / "images"))
    network = Trunk()
    seen = training.Seen(network, 36, 1000)
    with torch.inference_mode():
        found = seen(torch.from_numpy(np.asarray(Pictures(files, 36))))
    np.testing.assert_allclose(found.numpy(), extract(network, files, size=36), atol=1e-4)


def test_pictures_are_chosen_as_rows_of_an_array_are_and_read_late(tmp_path, monkeypatch):
    pictures = Pictures(folders.from_folder(pictures_in(tmp_path / "images")), 36)
    array = np.asarray(pictures)
    assert array.shape == (32, 36, 36, 3)
    assert array.dtype == np.uint8
    chosen = np.array([30, 2, 2])
    np.testing.assert_array_equal(pictures[chosen], array[chosen])
    np.testing.assert_array_equal(pictures[:5][3:], array[3:5])
    np.testing.assert_array_equal(pictures[7], array[7])
    assert np.asarray(pictures[:2], dtype=np.float32).dtype == np.float32

    def refuse(path, size):
        raise AssertionError("read too early")

    monkeypatch.setattr(image_files, "read_square", refuse)
    assert len(pictures[chosen][:2]) == 2


def test_a_trunk_learns_from_a_folder_by_the_flag(tmp_path, monkeypatch, capsys):
    pictures_in(tmp_path / "256_ObjectCategories", n_images=24)
    monkeypatch.setitem(NETWORKS, "MOB", Trunk)
    monkeypatch.setitem(TASKS, "caltech256_mob", short("caltech256_mob"))
    for module in (rows, sys.modules["experiments.deep_ensembles.__main__"]):
        monkeypatch.setattr(module, "SETTINGS", (rows.Setting(5, 19, False),))
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
    data = TASKS["caltech256_mob"].data(Options({"caltech256_mob": tmp_path}, end_to_end=True))
    with torch.inference_mode():
        by_hand = trained[0](torch.from_numpy(np.asarray(data.held_inputs))).softmax(dim=1)
    single, _ = classifiers.predictions(classifiers.KINDS[0], next(work.iterdir()))
    np.testing.assert_allclose(single[:, 0], by_hand.numpy(), atol=1e-5)
    assert not (tmp_path / "cache" / "features").exists()


def test_both_parts_of_plantclef_are_pictures_if_the_trunk_learns(tmp_path):
    for part, number in (("train", 1), ("train", 2), ("test", 3)):
        (tmp_path / part).mkdir(exist_ok=True)
        Image.new("RGB", (9, 7), "green").save(tmp_path / part / f"{number}.jpg")
        record = f"<Image><ClassId>{number % 2}</ClassId></Image>"
        (tmp_path / part / f"{number}.xml").write_text(record)
    options = Options({"plantclef2015_vgg": tmp_path}, end_to_end=True)
    data = TASKS["plantclef2015_vgg"].data(options)
    assert np.asarray(data.train_inputs).shape == (2, 128, 128, 3)
    assert np.asarray(data.held_inputs).shape == (1, 128, 128, 3)
    # Few rows are few pictures.
    assert len(TASKS["plantclef2015_vgg"].data(replace(options, rows=1)).held_inputs) == 1


def test_a_damaged_image_is_named_before_a_trunk_learns(tmp_path):
    pictures_in(tmp_path / "images")
    (tmp_path / "images" / "001.ak47" / "torn.jpg").write_bytes(b"")
    options = Options({"caltech256_mob": tmp_path / "images"}, end_to_end=True)
    with pytest.raises(ValueError, match=r"1 damaged of 33: .*torn\.jpg"):
        TASKS["caltech256_mob"].data(options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bacteria", "bacteria has none"),
        ("caltech101_vgg", "--path caltech101_vgg=FOLDER, or --download"),
        ("plantclef2015_mob", "--path plantclef2015_mob=FOLDER"),
    ],
)
def test_a_trunk_cannot_learn_without_images(name, message, capsys):
    with pytest.raises(SystemExit):
        run(name, "--end-to-end")
    assert message in capsys.readouterr().err


# Images fetched by torchvision


def torchvision(monkeypatch, caltech256):
    """A package of the same form, without a network."""
    package = types.ModuleType("torchvision")
    package.datasets = types.ModuleType("torchvision.datasets")
    package.datasets.Caltech101 = None
    package.datasets.Caltech256 = caltech256
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.datasets", package.datasets)


@pytest.fixture
def loaded(monkeypatch):
    """Tasks on Caltech-256 that tell how many images they found, and do no more."""
    found = []

    def rows_of(name, options, *_):
        found.append((name, len(folders.caltech256(options.paths[name]))))
        return [[], []]

    monkeypatch.setattr(sys.modules["experiments.deep_ensembles.__main__"], "rows_of", rows_of)
    return found


def test_images_are_fetched_once_and_serve_all_tasks_of_their_set(loaded, monkeypatch, tmp_path):
    calls = []

    def fetch(root, download):
        calls.append((root, download))
        pictures_in(Path(root) / "caltech256" / "256_ObjectCategories", n_images=2)

    torchvision(monkeypatch, fetch)
    tasks = ("caltech256_mob", "caltech256_vgg")
    for _ in range(2):
        assert run(*tasks, "--download", "caltech256") == 0
    assert calls == [(str(tmp_path / "cache" / "images"), True)]
    assert loaded == [("caltech256_mob", 4), ("caltech256_vgg", 4)] * 2


def test_a_path_goes_before_a_download(loaded, monkeypatch, tmp_path):
    torchvision(
        monkeypatch,
        lambda root, download: pictures_in(Path(root) / "caltech256" / "256_ObjectCategories"),
    )
    pictures_in(tmp_path / "mine", n_images=1)
    path = ("--path", f"caltech256_vgg={tmp_path / 'mine'}")
    assert run("caltech256_mob", "caltech256_vgg", "--download", "caltech256", *path) == 0
    assert loaded == [("caltech256_mob", 32), ("caltech256_vgg", 2)]


def test_images_that_were_unpacked_in_part_are_not_taken_for_all(loaded, monkeypatch, capsys):
    def interrupted(root, download):
        pictures_in(Path(root) / "caltech256" / "256_ObjectCategories", n_images=1)
        raise KeyboardInterrupt

    torchvision(monkeypatch, interrupted)
    assert run("caltech256_mob", "--download", "caltech256") == 130
    assert run("caltech256_mob", "--download", "caltech256") == 2
    assert "may be unpacked in part. Delete that folder" in capsys.readouterr().err
    assert not loaded


def test_a_server_that_does_not_answer_is_an_error_in_words(loaded, monkeypatch, capsys):
    def unanswered(root, download):
        raise RuntimeError("no route to host")

    torchvision(monkeypatch, unanswered)
    assert run("caltech256_mob", "--download", "caltech256") == 2
    said = capsys.readouterr().err
    assert "no route to host" in said
    assert "name their folder by `--path`" in said
    assert not loaded


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("caltech256", "Install torchvision, or: Get Caltech-256"),
        ("plantclef2015", "LifeCLEF 2015"),
        ("bacteria", "`name` must be one of caltech101"),
    ],
)
def test_a_download_that_cannot_be_says_what_to_do(data, message, loaded, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert run("caltech256_mob", "--download", data) == 2
    assert message in capsys.readouterr().err
    assert not loaded


def test_images_that_are_missing_bring_the_way_to_fetch_them(tmp_path, capsys):
    assert run("caltech256_mob", "--work", str(tmp_path / "work")) == 2
    said = capsys.readouterr().err
    assert "`--download caltech256` fetches them" in said
    assert "`pip install torchvision`" in said
