"""Damaged files: readers refuse them with a reason, or give something that can be used."""

import shutil
import tempfile
from pathlib import Path

import numpy as np

import hullcal as hc
from fuzzing import specimens, stores
from fuzzing.mutations import damaged
from fuzzing.structures import SHELLS, inside, journal_altered, zip_altered
from fuzzing.toml_text import toml_altered
from hullcal.cli import studies
from hullcal.io.journal import Journal
from io_files import LABELS, PROBS

_INNER = {**SHELLS, ".toml": toml_altered}
#: What a file in a folder may be called instead.
_NAMES = (
    "labels-9-9.npy",
    "x.npy",
    "x.npz",
    "x.parquet",
    "x",
    "zarr.json",
    ".zarray",
    "x/zarr.json",
)


def kinds():
    """What is read, by whom: the name of each specimen after the way in which it is read."""
    named = {
        "predictions": specimens.predictions(),
        "labels": specimens.labels(),
        "member": specimens.members(),
        "store": stores.sound(),
        "grid": specimens.grids(),
        "journal": specimens.journals(),
        "forged": specimens.journals(),
        "results": specimens.results(),
    }
    return [(way, name) for way, found in named.items() for name in found]


def kind_of(number):
    """What is damaged, and by whom it is read."""
    every = kinds()
    return " ".join(every[number % len(every)])


def attempt(number, rng):
    """Damage one file, read it, and say what came of it."""
    way, name = kind_of(number).split()
    room = tempfile.mkdtemp(prefix="fuzzing-")
    try:
        return _WAYS[way](Path(room), name, rng)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def sound(way, name):
    """Read a file as it is, which must succeed; this also warms every library up."""
    with tempfile.TemporaryDirectory() as room:
        return _WAYS[way](Path(room), name, None)


def _changed(name, content, others, rng):
    if rng is None:
        return content
    if isinstance(content, dict):
        files = dict(content)
        inner = sorted(files)[rng.integers(len(files))]
        files[inner] = inside(inner, files[inner], rng)
        if not rng.integers(10):
            del files[inner]
        elif not rng.integers(10):
            files[str(rng.choice([*sorted(files), *_NAMES]))] = files.pop(inner)
        return files
    suffix = Path(name).suffix.lower()
    packed = suffix == ".zarr" and content.startswith(b"PK")
    change = zip_altered if packed else _INNER.get(suffix, damaged)
    # Half of the time the shell itself is damaged.
    return (change if rng.integers(2) else damaged)(content, rng, others)


def _same_kind(found):
    return [content for content in found.values() if isinstance(content, bytes)]


def _read_predictions(room, name, rng):
    found = specimens.predictions()
    specimens.put(room / name, _changed(name, found[name], _same_kind(found), rng))
    return _used(room / name)


def _read_labels(room, name, rng):
    found = specimens.labels()
    specimens.put(room / "probs.npz", specimens.predictions()["plain.npz"])
    specimens.put(room / f"y-{name}", _changed(name, found[name], _same_kind(found), rng))
    return _used(room / "probs.npz", labels=room / f"y-{name}")


def _read_member(room, name, rng):
    found = specimens.members()
    specimens.put(room / name, found[name])
    specimens.put(room / f"other-{name}", _changed(name, found[name], _same_kind(found), rng))
    return _used(member_files=[room / name, room / f"other-{name}"])


def _read_store(room, name, rng):
    found = stores.sound()
    specimens.put(room / name, _changed(name, found[name], _same_kind(found), rng))
    return stores.used(room / name)


def _used(path=None, **options):
    """Read, and go on to a set as the program does."""
    data = hc.io.read(path, **options)
    assert data.probs.ndim in (2, 3), data.probs.shape
    assert not data.probs.flags.writeable
    named = {"members": data.members, "classes": data.classes}
    if data.labels is None:
        classifiers = hc.ClassifierSet(data.probs, **named)
    else:
        classifiers = hc.ClassifierSet(data.probs, **named)
        positions = classifiers.labels(data.labels)
        assert positions.min() >= 0
        assert positions.max() < classifiers.n_classes
    assert np.isfinite(np.asarray(classifiers.probs)).all()
    return "read"


def _read_grid(room, name, rng):
    found = specimens.grids()
    specimens.put(room / name, _changed(name, found[name], _same_kind(found), rng))
    grid = hc.simulation.Grid(**studies._from_file(room / name))
    # What was accepted says again what it is.
    assert hc.simulation.Grid(**grid.configuration()) == grid
    return "read"


def _read_journal(room, name, rng):
    found = specimens.journals()
    content = found[name] if rng is None else damaged(found[name], rng, _same_kind(found))
    return _resumed(room, name, content, rng)


def _read_forged(room, name, rng):
    """Lines of JSON that are not what hullcal writes."""
    content = specimens.journals()[name]
    return _resumed(room, name, content if rng is None else journal_altered(content, rng), rng)


def _resumed(room, name, content, rng):
    specimens.put(room / "journal.jsonl", content)
    if name == "test":
        options = dict(specimens.TEST)
        if rng is not None and not rng.integers(2):
            del options["rng"]  # the journal's own seed is taken then
        result = hc.calibration_test(PROBS, LABELS, journal=room, alpha=0.2, **options)
        assert 0 < result.pvalue <= 1, result.pvalue
    elif rng is not None and not rng.integers(3):
        with Journal.open(room, {"seed": 0}, resume=True):
            pass
    else:
        study = hc.simulation.run(hc.simulation.Grid(**specimens.GRID), folder=room, resume=True)
        assert len(study.rates()) == 1
    return "read"


def _read_results(room, name, rng):
    found = specimens.results()
    content = _changed(name, found[name], _same_kind(found), rng)
    if rng is None or rng.integers(2):
        specimens.put(room / name, content)
        results = hc.io.read_json(room / name)
    else:
        results = hc.io.from_json(content)
    # What was accepted can be shown, decided and written again.
    for result in results:
        str(result)
        result.decide(0.05) if hasattr(result, "decide") else result.value
    hc.io.to_csv(results)
    assert hc.io.to_json(hc.io.from_json(hc.io.to_json(results))) == hc.io.to_json(results)
    return "read"


_WAYS = {
    "predictions": _read_predictions,
    "labels": _read_labels,
    "member": _read_member,
    "store": _read_store,
    "grid": _read_grid,
    "journal": _read_journal,
    "forged": _read_forged,
    "results": _read_results,
}


def warm_up():
    """Load and run everything once, so that limits count from there."""
    for way, name in kinds():
        sound(way, name)
