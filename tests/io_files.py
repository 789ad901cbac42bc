"""The same predictions in every kind of file, written by other hands than those that read them."""

import csv
import io
import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from safetensors.numpy import save_file

N, M, K = 7, 3, 4
CLASSES = ("cat", "dog", "owl", "élan, or ;\nmoose")
MEMBERS = ("plain", "=1+1", "nets/v2")
_RNG = np.random.default_rng(5)
PROBS, LABELS = _RNG.dirichlet(np.ones(K), size=(N, M)), _RNG.integers(0, K, N)
NAMED = np.array([CLASSES[y] for y in LABELS])


def long_columns():
    places = [*np.ndindex(N, M, K)]
    return {
        "Row": [f"r{n}" for n, _, _ in places],
        "member": [MEMBERS[m] for _, m, _ in places],
        "CLASS": [CLASSES[k] for _, _, k in places],
        "prob": PROBS.ravel().tolist(),
        "label": [NAMED[n] for n, _, _ in places],
    }


def wide_columns():
    numbers = {
        f"{MEMBERS[m]}:{CLASSES[k]}": PROBS[:, m, k].tolist() for m in range(M) for k in range(K)
    }
    return {"label": NAMED.tolist(), **numbers}


def write_npz(path, compressed=False):
    save = np.savez_compressed if compressed else np.savez
    save(path, probs=PROBS, labels=NAMED, classes=np.array(CLASSES), members=np.array(MEMBERS))


def write_hdf5(path, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("probs", data=PROBS, **options)
        for name, values in {"labels": NAMED, "classes": CLASSES, "members": MEMBERS}.items():
            file[name] = np.char.encode(np.array(values), "utf-8")


def write_zarr(path, zarr_format=3):
    store = zarr.storage.ZipStore(path, mode="w") if path.name.startswith("zip") else path
    group = zarr.open_group(store, mode="w", zarr_format=zarr_format)
    group.create_array("probs", data=PROBS, chunks=(3, M, K))
    group.create_array("labels", data=LABELS)
    if path.name.startswith("zip"):
        store.close()


def write_safetensors(path):
    names = {"classes": json.dumps(CLASSES), "members": json.dumps(MEMBERS)}
    save_file({"probs": PROBS, "labels": LABELS}, path, metadata=names)


def write_parquet(path, columns):
    pq.write_table(pa.table(columns), path)


def write_csv(path, columns, encoding="utf-8", line_end="\r\n"):
    with open(path, "w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, lineterminator=line_end)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


#: A file of every kind, with the predictions above.
WRITERS = {
    "plain.npz": write_npz,
    "packed.npz": lambda path: write_npz(path, compressed=True),
    "plain.npy": lambda path: np.save(path, PROBS),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(PROBS)),
    "UPPER.NPY": lambda path: path.write_bytes(npy_bytes(PROBS)),
    "plain.h5": write_hdf5,
    "packed.hdf5": lambda path: write_hdf5(path, compression="gzip", chunks=(2, M, K)),
    "three.zarr": write_zarr,
    "two.zarr": lambda path: write_zarr(path, zarr_format=2),
    "zipped.zarr": write_zarr,
    "plain.safetensors": write_safetensors,
    "long.csv": lambda path: write_csv(path, long_columns()),
    "wide.csv": lambda path: write_csv(path, wide_columns()),
    "excel.csv": lambda path: write_csv(path, wide_columns(), encoding="utf-8-sig"),
    "unix.csv": lambda path: write_csv(path, long_columns(), line_end="\n"),
    "long.parquet": lambda path: write_parquet(path, long_columns()),
    "wide.parquet": lambda path: write_parquet(path, wide_columns()),
}


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
