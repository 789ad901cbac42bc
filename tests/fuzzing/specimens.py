"""Small sound files of every kind that is read, to be damaged.

A function gives files by name; a file is its bytes, a folder a dictionary of them.
"""

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
from io_files import (
    CLASSES,
    LABELS,
    MEMBERS,
    NAMED,
    PROBS,
    WRITERS,
    long_columns,
    wide_columns,
    write_csv,
    write_parquet,
)

#: The tests and the study whose journals are damaged.
TEST = {"n_resamples": 9, "alpha": 0.2}
GRID = {
    **{"scenario": "S1", "test": "calibrated:ece_conf:paper", "n_samples": 12, "n_members": 2},
    "n_classes": 2,
    **{"n_datasets": 3, "n_resamples": 9, "alpha": 0.2},
}


def specimens(write):
    """What a function leaves in a folder, and what it gives besides; made once."""

    @functools.cache
    def made():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", hc.HullcalWarning)  # so few rows deserve a note
            further = write(Path(folder)) or {}
            return {each.name: contents(each) for each in sorted(Path(folder).iterdir())} | further

    return made


@specimens
def predictions(place):
    for name, write in WRITERS.items():
        write(place / name)
    return {
        "zipped.zarr": _undated((place / "zipped.zarr").read_bytes()),
        "binary.csv": b"p_0,p_1,label\n0.25,0.75,1\n0.5,0.5,0\n1,0,0\n",
        "slash.csv": b"a/x,a/y,b/x,b/y\n0.25,0.75,.5,.5\n0.5,0.5,1,0\n",
    }


@specimens
def labels(place):
    for name in ("plain.npz", "plain.h5", "three.zarr", "two.zarr", "plain.safetensors"):
        put(place / name, predictions()[name])
    np.save(place / "hot.npy", np.eye(len(CLASSES))[LABELS])
    np.save(place / "numbers.npy", LABELS)
    (place / "names.txt").write_text("\n".join(CLASSES[label % 3] for label in LABELS))
    (place / "numbers.txt").write_text("\n".join(map(str, LABELS)))
    (place / "column.csv").write_text("\n".join(map(str, LABELS)))
    (place / "numbers.csv").write_text("\n".join(["label,other", *(f"{y},x" for y in LABELS)]))


@specimens
def members(place):
    """Files of one member each."""
    arrays = {"probs": np.ascontiguousarray(PROBS[:, 0]), "labels": LABELS}
    long = long_columns()
    kept = [i for i, member in enumerate(long["member"]) if member == MEMBERS[0]]
    wide = {f"p_{name}": PROBS[:, 0, k].tolist() for k, name in enumerate(CLASSES)}
    np.save(place / "plain.npy", arrays["probs"])
    np.savez(place / "one.npz", **arrays)
    save_file(arrays, place / "one.safetensors")
    zarr.save_group(place / "one.zarr", **arrays)
    with h5py.File(place / "one.h5", "w") as file:
        file.update(arrays)
    write_csv(place / "long.csv", {name: [cells[i] for i in kept] for name, cells in long.items()})
    write_parquet(place / "wide.parquet", {"label": NAMED.tolist(), **wide})
    return {"binary.csv": predictions()["binary.csv"]}


@specimens
def stores(place):
    """What workers of a cluster read: shards, of which one is empty, and Zarr."""
    names = {"classes": np.array(CLASSES), "members": np.array(MEMBERS)}
    for kind in ("npy", "npz", "parquet"):
        (place / kind).mkdir()
    for a, b in ((0, 3), (3, 3), (3, 7)):
        np.save(place / "npy" / f"probs-{a}-{b}.npy", PROBS[a:b])
        np.save(place / "npy" / f"labels-{a}-{b}.npy", LABELS[a:b])
        save = np.savez if a else np.savez_compressed
        probs = np.asfortranarray(PROBS[a:b])
        save(place / "npz" / f"{a}-{b}.npz", probs=probs, labels=NAMED[a:b], **names)
        columns = {name: cells[a:b] for name, cells in wide_columns().items()}
        if a < b:
            write_parquet(place / "parquet" / f"{a}-{b}.parquet", columns)
    # Names in version 2 of the format, whose text is no experiment.
    root = zarr.open_group(place / "named.zarr", mode="w", zarr_format=2)
    root.create_array("probs", data=PROBS, chunks=(3, 1, 2))
    for name, values in {"labels": NAMED, **names}.items():
        root.create_array(name, data=values)
    kept = ("plain.npy", "plain.npz", "three.zarr", "two.zarr", "zipped.zarr")
    return {name: predictions()[name] for name in kept}


@specimens
def grids(place):
    """A small study as JSON and as TOML, which writes these values alike."""
    grid = GRID | {"n_samples": [5], "n_datasets": 1, "n_resamples": 1, "seed": 0}
    (place / "grid.json").write_text(json.dumps(grid))
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in grid.items())
    (place / "grid.toml").write_text("".join(lines))


@specimens
def journals(place):
    hc.calibration_test(PROBS, LABELS, journal=place / "test", rng=5, **TEST)
    hc.simulation.run(hc.simulation.Grid(**GRID), folder=place / "study")
    for name in ("test", "study"):
        for path in (place / name).iterdir():
            path.rename(place / f"{name}.jsonl") if path.suffix == ".jsonl" else path.unlink()
        (place / name).rmdir()


@specimens
def results(place):
    """Results of every kind as JSON."""
    test = hc.calibration_test(PROBS, LABELS, rng=5, **TEST)
    search = hc.minimize(PROBS, LABELS, measure="hl_cwise", rng=0)
    classical = hc.classical.resampling_test(PROBS[:, 0], LABELS, n_resamples=9, rng=0)
    hc.io.write_json(test, place / "test.json")
    hc.io.write_json([test, search, classical], place / "several.json")


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
    """Write what `contents` gave, but for what damage has put where there is something else."""
    for name, data in content.items() if isinstance(content, dict) else [("", content)]:
        with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
