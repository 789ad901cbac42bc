"""Predictions in files, read a few rows at a time: the rows that were written, and nothing unpickled."""

import bz2
import gzip
import lzma
import os
import pickle
import tracemalloc
import zipfile
import zlib

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.lib import format as npy
from safetensors.numpy import save_file

import hullcal as hc
import hullcal.io.source
from dask_cluster import WRITERS, predictions, write_npy, write_npz, write_parquet
from hullcal import io
from hullcal.io.stores import open_store

PROBS, LABELS = predictions(7000, 3, 4, dtype=np.float32)


@pytest.mark.parametrize("kind", WRITERS)
def test_any_stretch_of_rows_can_be_read(kind, tmp_path):
    store = open_store(WRITERS[kind](tmp_path, PROBS, LABELS))
    assert store.shape == PROBS.shape
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
    assert (store.shape, store.labelled) == (PROBS[:, 0].shape, False)
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
    refused(tmp_path / "absent", "must exist")
    refused(tmp_path, "no shard")


def test_shards_of_two_kinds(tmp_path):
    write_npy(tmp_path, PROBS, LABELS)
    refused(write_npz(tmp_path, PROBS, LABELS), r"files ending in \.npy, \.npz")


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
    refused(tmp_path, "without a partner")
    (tmp_path / "labels-2.npy").unlink()
    np.save(tmp_path / "labels-1.npy", LABELS[:5])
    refused(tmp_path, "a label for every row")
    np.save(tmp_path / "other.npy", PROBS)
    refused(tmp_path, "`probs-000.npy`")


def test_tables_that_do_not_belong_together(tmp_path):
    write_parquet(tmp_path, PROBS, LABELS)
    pq.write_table(pa.table({"p_a": [0.5], "p_b": [0.5]}), tmp_path / "zzz.parquet")
    refused(tmp_path, "agree in `dtype`")
    for words, columns in {
        "a column for every member and class": {"a:x": [1.0], "a:y": [0.0], "b:x": [1.0]},
        "long or wide form": {"x": [1.0], "y": [0.0]},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / "other.parquet")
        refused(tmp_path / "other.parquet", words)


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
    refused(tmp_path, "must be a readable")
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    refused(tmp_path / "empty.zarr", "none at all")


# What fuzzing has brought to light, and what was found on the way


def write_header(file, shape, dtype="<f8", by_columns=False):
    """An array of some hundred bytes that declares any size."""
    header = {"descr": dtype, "fortran_order": by_columns, "shape": shape}
    npy.write_array_header_1_0(file, header)
    file.write(bytes(672))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("dtype", ["<f8", "<U3"])
@pytest.mark.parametrize("shape", [(2**40, 3, 4), (-7, 3, 4), (7, 3, 2**62), (2**40, 2**40, 1)])
def test_an_array_declared_larger_than_its_file(shape, dtype, by_columns, tmp_path):
    with open(tmp_path / "one.npy", "wb") as file:
        write_header(file, shape, dtype, by_columns)
    refused(tmp_path / "one.npy", "declared, in 800 bytes|must fit into memory")
    with (
        zipfile.ZipFile(tmp_path / "one.npz", "w") as archive,
        archive.open("probs.npy", "w") as file,
    ):
        write_header(file, shape, dtype, by_columns)
    refused(tmp_path / "one.npz", "declared, in 800 bytes|must fit into memory")


def test_a_zarr_array_that_cannot_be(tmp_path):
    zarr.create_array(tmp_path / "one.zarr", shape=(2**40, 2**40, 1), dtype="f8", chunks=(1, 1, 1))
    refused(tmp_path / "one.zarr", "predictions of shape")


def write_by_columns(folder):
    np.savez(folder / "one.npz", probs=np.asfortranarray(PROBS))
    return folder


def write_dictionary(folder):
    """A million rows in some hundred bytes."""
    column = pa.array(np.ones(10**6))
    pq.write_table(pa.table({"p_a": column, "p_b": column}), folder / "one.parquet")
    return folder


@pytest.mark.parametrize(
    "write",
    [
        write_by_columns,
        write_dictionary,
        lambda folder: write_npz(folder, PROBS, LABELS),
        lambda folder: WRITERS["zarr"](folder, PROBS, LABELS),
    ],
    ids=["npz by columns", "parquet", "npz", "zarr"],
)
def test_rows_that_do_not_fit_into_memory_are_not_read(write, tmp_path, monkeypatch):
    store = open_store(write(tmp_path))
    monkeypatch.setattr(hullcal.io.source, "available", lambda: 10_000)
    with pytest.raises(hc.InvalidInputError, match="must fit into memory"):
        store.read(0, 7000)


def test_one_row_of_many_that_are_stored_by_columns_takes_memory_for_all(tmp_path, monkeypatch):
    stores = {name: tmp_path / name for name in ("rows", "columns")}
    for name, folder in stores.items():
        folder.mkdir()
        np.savez(folder / "one.npz", probs=np.asarray(PROBS, order="C" if name == "rows" else "F"))
    monkeypatch.setattr(hullcal.io.source, "available", lambda: 10_000)
    np.testing.assert_array_equal(open_store(stores["rows"]).read(5, 6)[0], PROBS[5:6])
    with pytest.raises(hc.InvalidInputError, match="must fit into memory"):
        open_store(stores["columns"]).read(5, 6)


def test_what_zarr_notes_about_a_sound_store_is_not_printed(tmp_path):
    path = WRITERS["zarr"](tmp_path, PROBS, LABELS)
    (path / "notes").mkdir()
    (path / "notes" / "today.txt").write_text("no array")
    (path / ".zgroup").write_text('{"zarr_format": 2}')  # of both versions, which zarr remarks on
    assert open_store(path).labelled


def test_a_table_that_has_lost_rows_is_not_filled_up(tmp_path):
    columns = {"p_a": np.full(7, 0.5), "p_b": np.full(7, 0.5)}
    pq.write_table(pa.table(columns), tmp_path / "one.parquet")
    store = open_store(tmp_path)
    pq.write_table(pa.table(columns).slice(0, 1), tmp_path / "one.parquet")
    with pytest.raises(hc.InvalidInputError, match="1 rows where 7 were declared"):
        store.read(0, 7)


@pytest.mark.parametrize(
    "other", [["0", "1"], [[0], [1]], np.array([0, 1], dtype="M8[s]")], ids=["text", "2-d", "dates"]
)
def test_labels_of_two_kinds_are_not_mixed(other, tmp_path):
    np.savez(tmp_path / "0.npz", probs=PROBS[:2], labels=[0, 1])
    np.savez(tmp_path / "1.npz", probs=PROBS[:0], labels=np.array([], dtype="U1"))
    np.savez(tmp_path / "2.npz", probs=PROBS[:2], labels=other)
    with pytest.raises(hc.InvalidInputError, match=r"0\.npz|2\.npz"):
        open_store(tmp_path).read(0, 4)


def test_columns_of_truth_values_are_numbers_and_those_of_text_are_not(tmp_path):
    votes = np.array([[True, False], [False, True]])
    pq.write_table(pa.table({"a:x": votes[:, 0], "a:y": votes[:, 1]}), tmp_path / "0.parquet")
    store = open_store(tmp_path)
    np.testing.assert_array_equal(store.read(0, 2)[0][:, 0], votes)
    pq.write_table(pa.table({"a:x": ["1", "0"], "a:y": ["0", "1"]}), tmp_path / "0.parquet")
    with pytest.raises(hc.InvalidInputError, match="must hold numbers; got the type string"):
        open_store(tmp_path)


@pytest.mark.parametrize("first", ["names", "numbers"])
@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_what_labels_mean_is_decided_for_the_whole_store(first, n_rows, tmp_path):
    """However many rows are read at a time, and wherever shards end."""
    kinds = {"names": ["cat", "dog", "cat"], "numbers": ["0", "1", "0"]}
    columns = {"m:cat": [0.5] * 3, "m:dog": [0.5] * 3}
    for name, other in (("a", first), ("b", ({*kinds} - {first}).pop())):
        pq.write_table(pa.table({**columns, "label": kinds[other]}), tmp_path / f"{name}.parquet")
    store = open_store(tmp_path)

    def read_all():
        for begin in range(0, 6, n_rows):
            probs, labels = store.read(begin, min(begin + n_rows, 6))
            hc.ClassifierSet(probs, classes=store.classes).labels(labels)

    with pytest.raises(hc.InvalidInputError, match="all names" if first == "numbers" else "'0'"):
        read_all()


@pytest.mark.parametrize("kind", ["npz", "parquet", "zarr"])
def test_a_store_without_rows_is_refused(kind, tmp_path):
    path = WRITERS[kind](tmp_path, PROBS[:0], LABELS[:0])
    with pytest.raises(hc.InvalidInputError, match="must have at least one row"):
        open_store(path)


# A store of hostile files


def sharded(path, compressor):
    zarr.create_array(
        path, data=PROBS, chunks=(500, 3, 4), shards=(3500, 3, 4), compressors=[compressor]
    )
    return path


CODECS = {
    "blosc": zarr.codecs.BloscCodec(),
    "zstd": zarr.codecs.ZstdCodec(),
    "gzip": zarr.codecs.GzipCodec(),
}


@pytest.mark.parametrize("codec", CODECS)
def test_shards_of_zarr_are_read_whole_and_in_part(codec, tmp_path):
    store = open_store(sharded(tmp_path / "one.zarr", CODECS[codec]))
    for first, last in ((0, 7000), (600, 700), (3400, 3600)):
        np.testing.assert_array_equal(store.read(first, last)[0], PROBS[first:last])


@pytest.mark.parametrize("rows", [(0, 7000), (0, 10)], ids=["whole shard", "inner chunk"])
def test_a_blosc_frame_in_a_shard_is_checked_before_it_is_decoded(rows, tmp_path):
    path = sharded(tmp_path / "one.zarr", CODECS["blosc"])
    shard = path / "c" / "0" / "0" / "0"
    content = bytearray(shard.read_bytes())
    content[12:16] = (2**32 - 1).to_bytes(4, "little")  # the first frame claims 4 GB
    shard.write_bytes(content)
    with pytest.raises(hc.InvalidInputError, match="a Blosc frame of"):
        open_store(path).read(*rows)


PACKED = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "lzma": lzma.compress,
    "zstd": numcodecs.Zstd().encode,
    "lz4": numcodecs.LZ4().encode,
    "blosc": numcodecs.Blosc().encode,
}


@pytest.mark.parametrize("codec", PACKED)
def test_a_chunk_that_unfolds_beyond_its_shape_and_type_is_refused(codec, tmp_path):
    compressor = numcodecs.get_codec({"id": codec})
    zarr.create_array(
        tmp_path / "a.zarr", data=PROBS[:9], chunks=(9, 3, 4), compressors=compressor, zarr_format=2
    )
    np.testing.assert_array_equal(io.read(tmp_path / "a.zarr").probs, PROBS[:9])
    (tmp_path / "a.zarr" / "0.0.0").write_bytes(PACKED[codec](bytes(10**7)))
    with pytest.raises(hc.InvalidInputError, match="unfolds beyond its shape and type"):
        io.read(tmp_path / "a.zarr")


@pytest.mark.parametrize("name", ["probs/c/0/0/0", "probs/zarr.json", "labels", "more.txt"])
def test_a_zarr_store_with_links_out_of_it_or_pipes_is_refused(name, tmp_path):
    path = WRITERS["zarr"](tmp_path, PROBS, LABELS)
    inside = path / name
    kept = tmp_path / "outside"
    if inside.exists():
        inside.rename(kept)
    inside.symlink_to(kept)
    for read in (open_store, io.read):
        with pytest.raises(hc.InvalidInputError, match="a link out of it"):
            read(path)
    inside.unlink()
    os.mkfifo(inside)
    for read in (open_store, io.read):
        with pytest.raises(hc.InvalidInputError, match="a pipe or device"):
            read(path)


def test_a_folder_of_shards_with_a_link_out_of_it_is_refused(tmp_path):
    (tmp_path / "here").mkdir()
    np.save(tmp_path / "secret.npy", PROBS)
    (tmp_path / "here" / "probs-0.npy").symlink_to(tmp_path / "secret.npy")
    refused(tmp_path / "here", "a link out of it")


def test_names_are_as_many_as_members_and_classes(tmp_path):
    """A name of no bytes takes no room in a file, and many of them much in memory."""
    for name in ("classes", "members"):
        np.savez(tmp_path / "one.npz", probs=PROBS, **{name: np.zeros(10**6, dtype="<U0")})
        refused(tmp_path / "one.npz", f"a name for each of the {name}")


def test_a_string_repeated_in_parquet_is_kept_once(tmp_path):
    long = "x" * 2**18
    table = {"row": [*range(400)], "member": ["a"] * 400, "class": [long] * 400}
    pq.write_table(pa.table({**table, "p": np.ones(400)}), tmp_path / "one.parquet")
    tracemalloc.start()
    assert io.read(tmp_path / "one.parquet").classes == (long,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**18


@pytest.mark.parametrize("kind", ["h5", "safetensors"])
def test_other_files_of_arrays_are_stores_too(kind, tmp_path):
    path = tmp_path / f"one.{kind}"
    if kind == "h5":
        with h5py.File(path, "w") as file:
            file["probs"], file["labels"] = PROBS, LABELS
    else:
        save_file({"probs": PROBS, "labels": LABELS}, path)
    probs, labels = open_store(path).read(2499, 2501)
    np.testing.assert_array_equal(probs, PROBS[2499:2501])
    np.testing.assert_array_equal(labels, LABELS[2499:2501])
