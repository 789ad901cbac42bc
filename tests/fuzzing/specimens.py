"""Small sound files of every kind that is read, to be damaged."""

import contextlib
import functools
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import zarr
from safetensors.numpy import save_file

import hullcal as hc
from fuzzing.toml_text import written
from io_files import (
    CLASSES,
    LABELS,
    MEMBERS,
    NAMED,
    PROBS,
    WRITERS,
    long_columns,
    npy_bytes,
    write_csv,
    write_parquet,
)

RESAMPLES = 9
#: The tests and the study whose journals are damaged.
TEST = {"null": "refit", "n_resamples": RESAMPLES, "rng": 5}
GRID = {
    **{"scenario": "S1", "measure": "ece_conf", "n_samples": 12, "n_members": 2, "n_classes": 2},
    **{"n_datasets": 3, "n_resamples": RESAMPLES, "alpha": 0.2},
}


@functools.cache
def predictions():
    """Files of predictions by name; a file is its bytes, a folder a dictionary of them."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            path = Path(folder) / name
            write(path)
            found[name] = contents(path)
    found["zipped.zarr"] = _undated(found["zipped.zarr"])
    found["binary.csv"] = b"p_0,p_1,label\n0.25,0.75,1\n0.5,0.5,0\n1,0,0\n"
    found["slash.csv"] = b"a/x,a/y,b/x,b/y\n0.25,0.75,.5,.5\n0.5,0.5,1,0\n"
    return found


@functools.cache
def labels():
    """Files of labels by name."""
    kept = ("plain.npz", "plain.h5", "three.zarr", "two.zarr", "plain.safetensors")
    found = {name: predictions()[name] for name in kept}
    found["names.txt"] = "\n".join(CLASSES[label % 3] for label in LABELS).encode()
    found["numbers.txt"] = "\n".join(map(str, LABELS)).encode()
    found["numbers.csv"] = b"label,other\n" + b"".join(b"%d,x\n" % label for label in LABELS)
    found["column.csv"] = b"".join(b"%d\n" % label for label in LABELS)
    found["hot.npy"] = npy_bytes(np.eye(len(CLASSES))[LABELS])
    found["numbers.npy"] = npy_bytes(LABELS)
    return found


@functools.cache
def members():
    """Files of one member each by name."""
    arrays = {"probs": np.ascontiguousarray(PROBS[:, 0]), "labels": LABELS}
    long = long_columns()
    kept = [i for i, member in enumerate(long["member"]) if member == MEMBERS[0]]
    wide = {f"p_{name}": PROBS[:, 0, k].tolist() for k, name in enumerate(CLASSES)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "one.npz", **arrays)
        save_file(arrays, place / "one.safetensors")
        zarr.save_group(place / "one.zarr", **arrays)
        with h5py.File(place / "one.h5", "w") as file:
            file.update(arrays)
        columns = {name: [cells[i] for i in kept] for name, cells in long.items()}
        write_csv(place / "long.csv", columns)
        write_parquet(place / "wide.parquet", {"label": NAMED.tolist(), **wide})
        found = {each.name: contents(each) for each in sorted(place.iterdir())}
    return found | {
        "plain.npy": npy_bytes(arrays["probs"]),
        "binary.csv": predictions()["binary.csv"],
    }


@functools.cache
def grids():
    """A small study as JSON and as TOML."""
    grid = GRID | {"n_samples": [5], "n_datasets": 1, "n_resamples": 1, "seed": 0}
    return {"grid.json": json.dumps(grid).encode(), "grid.toml": written(grid)}


@functools.cache
def journals():
    """The journal of a test and that of a study."""
    with tempfile.TemporaryDirectory() as folder, _unwarned():
        first, second = Path(folder) / "test", Path(folder) / "study"
        hc.calibration_test(PROBS, LABELS, journal=first, alpha=0.2, **TEST)
        hc.simulation.run(hc.simulation.Grid(**GRID), folder=second)
        return {each.name: (each / "journal.jsonl").read_bytes() for each in (first, second)}


@functools.cache
def results():
    """Results of every kind as JSON."""
    with _unwarned():
        test = hc.calibration_test(PROBS, LABELS, alpha=0.2, **TEST)
        search = hc.minimize(PROBS, LABELS, measure="hl_cwise", rng=0)
        classical = hc.classical.resampling_test(PROBS[:, 0], LABELS, n_resamples=9, rng=0)
    return {
        "test.json": hc.io.to_json(test).encode(),
        "several.json": hc.io.to_json([test, search, classical]).encode(),
    }


@contextlib.contextmanager
def _unwarned():
    """So few rows and resamples deserve a note, which is not wanted here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        yield


def _undated(data):
    """An archive without the time of day, so that an input is the same tomorrow."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name))
    return buffer.getvalue()


def contents(path):
    """The bytes of a file, or those of all files in a folder."""
    if not path.is_dir():
        return path.read_bytes()
    files = sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path)): each.read_bytes() for each in files}


def put(path, content):
    """Write what `contents` gave."""
    if not isinstance(content, dict):
        path.write_bytes(content)
        return
    path.mkdir()
    for name, data in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
