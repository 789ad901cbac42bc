"""Predictions in files, read a few rows at a time: the rows that were written, and nothing unpickled."""

import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import hullcal as hc
from dask_cluster import WRITERS, predictions, write_npy, write_npz, write_parquet
from hullcal import io
from hullcal.engines._stores_parquet import _member_and_class
from hullcal.engines.stores import open_store
from hullcal.io.wide_form import wide_columns

PROBS, LABELS = predictions(7000, 3, 4, dtype=np.float32)


@pytest.mark.parametrize("kind", WRITERS)
def test_any_stretch_of_rows_can_be_read(kind, tmp_path):
    store = open_store(WRITERS[kind](tmp_path, PROBS, LABELS))
    assert (store.n_samples, store.n_members, store.n_classes) == PROBS.shape
    assert store.dtype == np.float32
    assert store.labelled
    for first, last in ((0, 7000), (0, 1), (1, 2), (2499, 2501), (700, 6900), (6999, 7000)):
        probs, labels = store.read(first, last)
        np.testing.assert_array_equal(probs, PROBS[first:last])
        assert probs.dtype == np.float32
        np.testing.assert_array_equal(labels, LABELS[first:last])


@pytest.mark.parametrize("kind", WRITERS)
def test_a_store_travels_without_its_data(kind, tmp_path, monkeypatch):
    path = WRITERS[kind](tmp_path, PROBS, LABELS)
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(open_store(path.relative_to(tmp_path)))
    assert len(sent) < 5_000
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(pickle.loads(sent).read(10, 20)[0], PROBS[10:20])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_in_either_order(order, save, tmp_path):
    names = {"classes": ["a", "b", "c", "d"], "members": ["x", "y", "z"]}
    labels = np.array(names["classes"])[LABELS]
    save(tmp_path / "one.npz", probs=np.asarray(PROBS, order=order), labels=labels, **names)
    store = open_store(tmp_path / "one.npz")
    assert (store.classes, store.members) == (("a", "b", "c", "d"), ("x", "y", "z"))
    probs, read = store.read(100, 200)
    np.testing.assert_array_equal(probs, PROBS[100:200])
    np.testing.assert_array_equal(read, labels[100:200])


def test_one_file_of_predictions_alone(tmp_path):
    np.save(tmp_path / "any.npy", PROBS[:, 0])
    store = open_store(str(tmp_path / "any.npy"))
    assert (store.n_members, store.labelled) == (1, False)
    probs, labels = store.read(5, 9)
    np.testing.assert_array_equal(probs, PROBS[5:9, 0])
    assert labels is None


def test_a_zarr_array_alone_and_one_with_names(tmp_path):
    zarr.save_array(tmp_path / "plain", PROBS)
    store = open_store(tmp_path / "plain")
    assert not store.labelled
    np.testing.assert_array_equal(store.read(5, 9)[0], PROBS[5:9])
    root = zarr.open_group(tmp_path / "named", mode="w", zarr_format=2)
    root.create_array("probs", data=PROBS)
    root.create_array("members", data=np.array(["x", "y", "z"]))
    store = open_store(tmp_path / "named")
    assert store.members == ("x", "y", "z")
    np.testing.assert_array_equal(store.read(5, 9)[0], PROBS[5:9])


NAMES = [
    ["a:cat", "a:dog"],
    ["nets/v2/cat", "nets/v2/dog"],
    ["a:b:cat", " a:b : dog "],
    ["p_cat", "p_dog"],
    ["cat", "dog"],
    ["a:cat", "p_dog"],
    [],
]


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_columns_are_understood_as_by_the_reader_of_whole_files(names):
    assert _member_and_class(names) == wide_columns(names)


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (["a:cat", "a:dog", "b:cat", "b:dog"], ["cat", "dog", "dog"]),
        (["b:dog", "a:cat", "a:dog", "b:cat"], ["cat", "dog", "dog"]),
        (["p_1", "p_0"], [0, 1, 1]),
        (["p_1", "p_0"], ["0", "1", "1"]),
        (["p_cat", "p_dog"], [0, 1, 1]),
        (["m/10", "m/20"], [10, 20, 20]),
    ],
)
def test_parquet_is_read_as_the_reader_of_whole_files_does(columns, labels, tmp_path):
    numbers = np.random.default_rng(0).random((3, len(columns)))
    table = {name: numbers[:, i] for i, name in enumerate(columns)}
    pq.write_table(pa.table({**table, "Label": labels}), tmp_path / "one.parquet")
    whole = io.read(tmp_path / "one.parquet")
    store = open_store(tmp_path)
    assert (store.classes, store.members) == (whole.classes, whole.members)
    probs, read = store.read(0, 3)
    np.testing.assert_array_equal(probs, whole.probs)
    assert read.tolist() == whole.labels.tolist()


def refused(path, words):
    with pytest.raises(hc.InvalidInputError, match=words) as caught:
        open_store(path).read(0, 7000)
    return caught


def test_nothing_there(tmp_path):
    refused(tmp_path / "absent", "no file or folder")
    refused(tmp_path, "no shard")


def test_shards_of_two_kinds(tmp_path):
    write_npy(tmp_path, PROBS, LABELS)
    refused(write_npz(tmp_path, PROBS, LABELS), r"files ending in \.npy, \.npz")


def test_python_objects_are_never_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    objects = np.array([Bomb(), 1], dtype=object)
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / "probs.npy", objects, allow_pickle=True)
    refused(tmp_path / "npy", "Python objects")
    (tmp_path / "dump").mkdir()
    objects.dump(tmp_path / "dump" / "probs.npy")
    refused(tmp_path / "dump", "Python objects")
    np.savez(tmp_path / "one.npz", probs=objects)
    refused(tmp_path / "one.npz", "Python objects")
    np.savez(tmp_path / "two.npz", probs=PROBS, labels=np.repeat(objects, 3500))
    refused(tmp_path / "two.npz", "Python objects")


def test_a_zarr_store_that_would_unpickle(tmp_path):
    folder = tmp_path / "bad.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=2)
    root.create_array("probs", data=PROBS, compressors=None)
    metadata = folder / "probs" / ".zarray"
    told = metadata.read_text(encoding="utf-8")
    assert '"compressor": null' in told
    metadata.write_text(told.replace('"compressor": null', '"compressor": {"id": "pickle"}'))
    consolidated = folder / ".zmetadata"
    consolidated.unlink(missing_ok=True)
    refused(folder, "Python objects|pickle")


def test_a_zarr_store_with_an_unknown_codec(tmp_path):
    folder = tmp_path / "odd.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=2)
    root.create_array("probs", data=PROBS, compressors=None)
    metadata = folder / "probs" / ".zarray"
    told = metadata.read_text(encoding="utf-8")
    metadata.write_text(told.replace('"filters": null', '"filters": [{"id": "base64"}]'))
    refused(folder, "the codec 'base64'")


def test_shards_that_do_not_belong_together(tmp_path):
    np.save(tmp_path / "probs-0.npy", PROBS)
    np.save(tmp_path / "probs-1.npy", PROBS[:, :2])
    refused(tmp_path, "agree in `shape`")
    np.save(tmp_path / "probs-1.npy", PROBS.astype(np.float64))
    refused(tmp_path, "agree in `dtype`")
    np.save(tmp_path / "probs-1.npy", PROBS)
    np.save(tmp_path / "labels-1.npy", LABELS)
    refused(tmp_path, "agree in `labelled`")
    np.save(tmp_path / "labels-2.npy", LABELS)
    refused(tmp_path, "without predictions")
    (tmp_path / "labels-2.npy").unlink()
    np.save(tmp_path / "labels-1.npy", LABELS[:5])
    refused(tmp_path, "as many as the predictions")
    np.save(tmp_path / "other.npy", PROBS)
    refused(tmp_path, "named probs")


def test_tables_that_do_not_belong_together(tmp_path):
    write_parquet(tmp_path, PROBS, LABELS)
    pq.write_table(pa.table({"p_a": [0.5], "p_b": [0.5]}), tmp_path / "zzz.parquet")
    refused(tmp_path, "the same columns")
    for name, columns in {
        "incomplete": {"a:x": [1.0], "a:y": [0.0], "b:x": [1.0]},
        "shapeless": {"x": [1.0], "y": [0.0]},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        refused(tmp_path / f"{name}.parquet", "a column for every member and class")
    pq.write_table(pa.table({"p_a": [0.5, None], "p_b": [0.5, 0.5]}), tmp_path / "gap.parquet")
    with pytest.raises(hc.InvalidInputError, match="no empty cell"):
        open_store(tmp_path / "gap.parquet").read(0, 2)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_a_file_cut_short_is_told(kind, tmp_path):
    WRITERS[kind](tmp_path, PROBS, LABELS)
    store = open_store(tmp_path)
    victim = max(tmp_path.glob(f"*.{kind}"), key=lambda file: file.stat().st_size)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    with pytest.raises(hc.InvalidInputError, match=victim.name):
        store.read(0, 7000)


def test_archives_without_predictions(tmp_path):
    np.savez(tmp_path / "one.npz", p=PROBS, q=PROBS)
    refused(tmp_path, "an array 'probs'")
    with zipfile.ZipFile(tmp_path / "one.npz", "w") as archive:
        archive.writestr("probs.npy", b"nothing")
    refused(tmp_path, "readable files")
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    refused(tmp_path / "empty.zarr", "none at all")
