"""Predictions in files, read a few rows at a time: the rows that were written, and nothing unpickled."""

import bz2
import gzip
import lzma
import os
import pickle
import tracemalloc
import zipfile
import zlib
from contextlib import nullcontext

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.lib import format as npy
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import hullcal as hc
import hullcal.io.source
import io_files
from dask_cluster import WRITERS, predictions
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


@pytest.mark.parametrize("name", [n for n in io_files.WRITERS if not n.endswith("csv")])
def test_every_file_of_arrays_and_every_wide_table_is_a_store(name, tmp_path):
    path = tmp_path / name
    io_files.WRITERS[name](path)
    if name.startswith("long"):
        refused(path, "long or wide form")
        return
    whole, store = io.read(path), open_store(path)
    assert (store.classes, store.members) == (whole.classes, whole.members)
    probs, labels = store.read(2, 5)
    np.testing.assert_array_equal(probs, io_files.PROBS[2:5])
    assert (labels is None) == (not store.labelled) == (whole.labels is None)
    assert labels is None or labels.tolist() == whole.labels[2:5].tolist()


def test_a_zarr_store_may_have_names(tmp_path):
    root = zarr.open_group(tmp_path / "named", mode="w", zarr_format=2)
    root.create_array("probs", data=PROBS)
    root.create_array("members", data=np.array(["x", "y", "z"]))
    assert open_store(tmp_path / "named").members == ("x", "y", "z")


def refused(path, words):
    with pytest.raises(hc.InvalidInputError, match=words) as caught:
        open_store(path).read(0, 7000)
    return caught


SHARDS = {
    "no shard": {},
    r"files ending in \.npy, \.npz": {"probs-0.npy": PROBS, "a.npz": {"probs": PROBS}},
    "agree in `shape`": {"probs-0.npy": PROBS, "probs-1.npy": PROBS[:, :2]},
    "agree in `dtype`": {"probs-0.npy": PROBS, "probs-1.npy": PROBS.astype(np.float64)},
    "agree in `labelled`": {"probs-0.npy": PROBS, "probs-1.npy": PROBS, "labels-1.npy": LABELS},
    "'labels-2.npy' without a partner": {"probs-0.npy": PROBS, "labels-2.npy": LABELS},
    "Call the shards `probs-000.npy`": {"probs-0.npy": PROBS, "other.npy": PROBS},
    "a label for every row": {"probs-0.npy": PROBS, "labels-0.npy": LABELS[:5]},
    "an array 'probs'": {"one.npz": {"p": PROBS, "q": PROBS}},
    "a column for every member": {"one.parquet": {"a:x": [1.0], "a:y": [0.0], "b:x": [1.0]}},
    "agree in `classes`": {
        "one.parquet": {"p_a": [0.5], "p_b": [0.5]},
        "two.parquet": {"p_a": [0.5], "p_c": [0.5]},
    },
}


@pytest.mark.parametrize("words", SHARDS)
def test_files_that_do_not_belong_together_are_refused(words, tmp_path):
    for name, content in SHARDS[words].items():
        if name.endswith("parquet"):
            pq.write_table(pa.table(content), tmp_path / name)
        elif name.endswith("npz"):
            np.savez(tmp_path / name, **content)
        else:
            np.save(tmp_path / name, content)
    refused(tmp_path, words)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_a_file_cut_short_is_told(kind, tmp_path):
    WRITERS[kind](tmp_path, PROBS, LABELS)
    store = open_store(tmp_path)
    victim = max(tmp_path.glob(f"*.{kind}"), key=lambda file: file.stat().st_size)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    with pytest.raises(hc.InvalidInputError, match=victim.name):
        store.read(0, 7000)


def test_a_zarr_store_of_no_array_is_refused(tmp_path):
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    refused(tmp_path / "empty.zarr", "none at all")


# What fuzzing has brought to light, and what was found on the way


def write_header(file, shape, dtype="<f8", by_columns=False):
    """An array of some hundred bytes that declares any size."""
    header = {"descr": dtype, "fortran_order": by_columns, "shape": shape}
    npy.write_array_header_1_0(file, header)
    file.write(bytes(672))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2**40, 3, 4), "<f8"),
        ((-7, 3, 4), "<U3"),
        ((7, 3, 2**62), "<f8"),
        ((2**40, 2**40, 1), "<U3"),
    ],
)
def test_an_array_declared_larger_than_its_file(shape, dtype, by_columns, tmp_path):
    with open(tmp_path / "one.npy", "wb") as file:
        write_header(file, shape, dtype, by_columns)
    with (
        zipfile.ZipFile(tmp_path / "one.npz", "w") as archive,
        archive.open("probs.npy", "w") as file,
    ):
        write_header(file, shape, dtype, by_columns)
    for name in ("one.npy", "one.npz"):
        refused(tmp_path / name, "declared, in 800 bytes|must fit into memory")


def test_a_zarr_array_that_cannot_be(tmp_path):
    zarr.create_array(tmp_path / "one.zarr", shape=(2**40, 2**40, 1), dtype="f8", chunks=(1, 1, 1))
    refused(tmp_path / "one.zarr", "predictions of shape")


def write_archive(folder, order):
    np.savez(folder / "one.npz", probs=np.asarray(PROBS, order=order))
    return folder


def write_dictionary(folder):
    """A million rows in some hundred bytes."""
    column = pa.array(np.ones(10**6))
    pq.write_table(pa.table({"p_a": column, "p_b": column}), folder / "one.parquet")
    return folder


@pytest.mark.parametrize(
    ("write", "one_fits"),
    [
        (lambda folder: write_archive(folder, "C"), True),
        (lambda folder: write_archive(folder, "F"), False),
        (lambda folder: WRITERS["zarr"](folder, PROBS, LABELS), False),
        (write_dictionary, True),
    ],
    ids=["npz", "npz by columns", "zarr", "parquet"],
)
def test_rows_that_do_not_fit_into_memory_are_not_read(write, one_fits, tmp_path, monkeypatch):
    """An archive by columns and a chunk are decoded whole, also for one row."""
    store = open_store(write(tmp_path))
    monkeypatch.setattr(hullcal.io.source, "available", lambda: 10_000)
    with pytest.raises(hc.InvalidInputError, match="must fit into memory"):
        store.read(0, 7000)
    with nullcontext() if one_fits else pytest.raises(hc.InvalidInputError):
        assert len(store.read(5, 6)[0]) == 1


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


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        ([["cat", "dog"], ["0", "1"]], "agree in `kind of labels`"),
        ([["0", "1"], ["cat", "dog"]], "agree in `kind of labels`"),
        ([["cat", "0"], ["cat", "dog"]], "'0'"),
        ([["0", "1"], ["0", "dog"]], "all names"),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_rows", [1, 4])
def test_what_labels_mean_is_decided_for_the_whole_store(shards, words, n_rows, tmp_path):
    """However many rows are read at a time, and wherever shards end."""
    columns = {"m:cat": [0.5] * 2, "m:dog": [0.5] * 2}
    for number, labels in enumerate(shards):
        pq.write_table(pa.table({**columns, "label": labels}), tmp_path / f"{number}.parquet")

    def read_all():
        store = open_store(tmp_path)
        for begin in range(0, 4, n_rows):
            probs, labels = store.read(begin, begin + n_rows)
            hc.ClassifierSet(probs, classes=store.classes).labels(labels)

    with pytest.raises(hc.InvalidInputError, match=words):
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


@pytest.mark.parametrize("codec", [BloscCodec(), ZstdCodec(), GzipCodec()])
def test_shards_of_zarr_are_read_whole_and_in_part(codec, tmp_path):
    store = open_store(sharded(tmp_path / "one.zarr", codec))
    for first, last in ((0, 7000), (600, 700), (3400, 3600)):
        np.testing.assert_array_equal(store.read(first, last)[0], PROBS[first:last])


@pytest.mark.parametrize("rows", [(0, 7000), (0, 10)], ids=["whole shard", "inner chunk"])
def test_a_blosc_frame_in_a_shard_is_checked_before_it_is_decoded(rows, tmp_path):
    path = sharded(tmp_path / "one.zarr", BloscCodec())
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
    inside, kept = path / name, tmp_path / "outside"
    if inside.exists():
        inside.rename(kept)
    for words in ("a link out of it", "a pipe or device"):
        if words == "a link out of it":
            inside.symlink_to(kept)
        else:
            os.mkfifo(inside)
        for read in (open_store, io.read):
            with pytest.raises(hc.InvalidInputError, match=words):
                read(path)
        inside.unlink()


def test_a_folder_of_shards_with_a_link_out_of_it_is_refused(tmp_path):
    (tmp_path / "here").mkdir()
    np.save(tmp_path / "secret.npy", PROBS)
    (tmp_path / "here" / "probs-0.npy").symlink_to(tmp_path / "secret.npy")
    refused(tmp_path / "here", "a link out of it")


@pytest.mark.parametrize("name", ["classes", "members"])
def test_names_are_as_many_as_members_and_classes(name, tmp_path):
    np.savez_compressed(tmp_path / "one.npz", probs=PROBS, **{name: np.zeros(10**6, dtype="<U1")})
    refused(tmp_path / "one.npz", f"a name for each of the {name}")


@pytest.mark.parametrize("name", ["classes", "labels"])
def test_text_of_no_bytes_takes_no_room_in_a_file_and_is_refused(name, tmp_path):
    shape = (7000, 10**9)[: 2 if name == "labels" else 1]
    with zipfile.ZipFile(tmp_path / "one.npz", "w") as archive:
        with archive.open("probs.npy", "w") as file:
            np.save(file, PROBS)
        with archive.open(f"{name}.npy", "w") as file:
            write_header(file, shape, "<U0")
    refused(tmp_path / "one.npz", "declared, in 800 bytes|must fit into memory")


@pytest.mark.parametrize("filters", [{}, {"shuffle": True, "fletcher32": True}], ids=str)
def test_a_chunk_of_hdf5_that_unfolds_beyond_its_shape_and_type_is_refused(filters, tmp_path):
    chunks = {"chunks": (500, 2, 4), "compression": "gzip"}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("probs", data=PROBS, **chunks, **filters)
    store = open_store(tmp_path / "a.h5")
    np.testing.assert_array_equal(store.read(400, 1600)[0], PROBS[400:1600])
    with h5py.File(tmp_path / "a.h5", "a") as file:
        array = file["probs"].id
        array.write_direct_chunk((500, 0, 0), zlib.compress(bytes(10**7)))
    assert len(store.read(1000, 1600)[0]) == 600
    for rows in ((0, 7000), (999, 1001)):
        with pytest.raises(hc.InvalidInputError, match="unfolds beyond its shape and type"):
            store.read(*rows)


@pytest.mark.parametrize(("name", "n"), [("classes", 4), ("labels", 7000)])
def test_a_name_of_a_billion_blanks_is_refused(name, n, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["probs"] = PROBS
        file.create_dataset(name, shape=(n,), dtype="S1000000000", chunks=(1,), compression="gzip")
    refused(tmp_path / "a.h5", "names of at most 16384 bytes")
    with pytest.raises(hc.InvalidInputError, match="names of at most 16384 bytes"):
        io.read(tmp_path / "a.h5")


def test_a_string_repeated_in_parquet_is_kept_once(tmp_path):
    long = "x" * 2**18
    table = {"row": [*range(400)], "member": ["a"] * 400, "class": [long] * 400}
    pq.write_table(pa.table({**table, "p": np.ones(400)}), tmp_path / "one.parquet")
    tracemalloc.start()
    assert io.read(tmp_path / "one.parquet").classes == (long,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**18
