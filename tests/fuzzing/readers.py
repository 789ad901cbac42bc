"""Damaged files: readers refuse them with a reason, or give something that can be used."""

import itertools
import tempfile
import warnings
from pathlib import Path

import numpy as np

import hullcal as hc
from fuzzing import specimens
from fuzzing.damage import damaged, folder_altered, inside, journal_altered
from hullcal.cli import studies
from hullcal.io.stores import open_store
from hullcal.objectives import dask
from io_files import LABELS, PROBS

#: Rows of a chunk of a store, and chunks after which it has shown enough of itself.
ROWS, CHUNKS = 1000, 20


def _used(path=None, **options):
    """Read predictions, and go on to a set as the program does."""
    data = hc.io.read(path, **options)
    assert data.probs.ndim in (2, 3), data.probs.shape
    assert not data.probs.flags.writeable
    classifiers = hc.ClassifierSet(data.probs, members=data.members, classes=data.classes)
    if data.labels is not None:
        positions = classifiers.labels(data.labels)
        assert positions.min() >= 0
        assert positions.max() < classifiers.n_classes
    assert np.isfinite(np.asarray(classifiers.probs)).all()


def _labels(path):
    probs = path.with_name("of-labels.npz")
    specimens.put(probs, specimens.predictions()["plain.npz"])
    _used(probs, labels=path)


def _member(path):
    sound = path.with_name(f"other-{path.name}")
    specimens.put(sound, specimens.members()[path.name])
    _used(member_files=[sound, path])


def _store(path):
    """Open a store as the client does, and read and check all of it as workers do."""
    store = open_store(path)
    # A store without labels gets as many as it needs, unless that is beyond reason.
    given = None if store.labelled else np.zeros(store.shape[0] % 10_000, dtype=np.int64)
    source = dask._Input.of(store, given, None, {"from_logits": False, "from_log": False})
    n_samples = source.shape[0]
    for first in itertools.islice(range(0, n_samples, ROWS), CHUNKS):
        last = min(first + ROWS, n_samples)
        labels = None if source.labels is None else source.labels[first:last]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # notes of a library go to the worker's log
            try:
                chunk = dask._checked(
                    source.probs, labels, (first, last), n_samples, source.reading
                )
            except MemoryError as error:  # the client tells it as an EngineError
                raise hc.InvalidInputError("memory") from error
        assert chunk.rows.probs.shape == (last - first, *source.shape[1:])
        assert chunk.rows.labels.shape == (last - first,)
        assert np.isfinite(chunk.rows.probs).all()
        assert chunk.rows.labels.min() >= 0
        assert chunk.rows.labels.max() < source.shape[2]
        dask._summary(chunk)


def _grid(path):
    grid = hc.simulation.Grid(**studies._from_file(path))
    # What was accepted says again what it is.
    assert hc.simulation.Grid(**grid.configuration()) == grid


def _journal(path):
    of_a_test = path.stem == "test"
    path = path.rename(path.with_name("journal.jsonl"))
    if of_a_test:
        result = hc.calibration_test(PROBS, LABELS, journal=path.parent, **specimens.TEST)
        assert 0 < result.pvalue <= 1, result.pvalue
    else:
        grid = hc.simulation.Grid(**specimens.GRID)
        assert len(hc.simulation.run(grid, folder=path.parent, resume=True).rates()) == 1


def _results(path):
    results = hc.io.read_json(path)
    # What was accepted can be shown, decided and written again.
    for result in results:
        str(result)
        result.decide(0.05) if hasattr(result, "decide") else result.value
    hc.io.to_csv(results)
    assert hc.io.to_json(hc.io.from_json(hc.io.to_json(results))) == hc.io.to_json(results)


#: Sound files, and who reads them.
WAYS = {
    "predictions": (specimens.predictions, _used),
    "labels": (specimens.labels, _labels),
    "member": (specimens.members, _member),
    "store": (specimens.stores, _store),
    "grid": (specimens.grids, _grid),
    "journal": (specimens.journals, _journal),
    "forged": (specimens.journals, _journal),
    "results": (specimens.results, _results),
}


def kinds():
    """What is read, by whom: the name of each specimen after the way in which it is read."""
    return [(way, name) for way, (sound, _) in WAYS.items() for name in sound()]


def kind_of(number):
    """What is damaged, and by whom it is read."""
    return " ".join(kinds()[number % len(kinds())])


def attempt(number, rng):
    """Damage one file and read it."""
    way, name = kind_of(number).split()
    found = WAYS[way][0]()
    others = [content for content in found.values() if isinstance(content, bytes)]
    if isinstance(found[name], dict):
        content = folder_altered(found[name], rng)
    elif way in ("journal", "forged"):
        content = (damaged if way == "journal" else journal_altered)(found[name], rng, others)
    else:
        content = inside(name, found[name], rng, others)
    return read(way, name, content)


def read(way, name, content):
    """Let a file be read in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzzing-", ignore_cleanup_errors=True) as folder:
        specimens.put(Path(folder) / name, content)
        WAYS[way][1](Path(folder) / name)
    return "read"


def warm_up():
    """Read everything as it is, so that limits count from there."""
    for way, name in kinds():
        read(way, name, WAYS[way][0]()[name])
