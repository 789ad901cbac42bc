"""A few hundred inputs that nobody would write, and what many thousands of them have brought to light.

The whole is `make fuzz`; see `fuzzing` for what is tried.
"""

import contextlib
import gc
import logging
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hullcal as hc
from fuzzing import (
    command_line,
    control,
    mutations,
    parquet,
    readers,
    specimens,
    stores,
    structures,
    toml_text,
)
from fuzzing.confined import GOOD, run
from hullcal.cli import studies
from hullcal.io.journal import Journal, configuration_of
from hullcal.io.source import Source

SEED = 2024


def faults(reports):
    return [report for report in reports if report["outcome"] not in GOOD]


# A fault cannot hide


def test_a_fault_a_crash_a_hang_and_a_flood_are_all_seen():
    reports = list(run("control", SEED, range(len(control.EXPECTED)), patience=10))
    assert {report["kind"]: report["outcome"] for report in reports} == control.EXPECTED
    said = {report["kind"]: report["said"] for report in reports}
    assert "of the reader's own making" in said["raise"]
    assert "MemoryError" in said["swell"]
    assert "control.py" in said["crash"]
    assert "control.py" in said["hang"]


def test_damage_is_done_and_is_the_same_again():
    archive = specimens.predictions()["plain.npz"]
    text = specimens.predictions()["three.zarr"]["probs/zarr.json"]
    for change, whole in {
        mutations.damaged: archive,
        structures.zip_altered: archive,
        structures.json_altered: text,
        parquet.parquet_altered: specimens.predictions()["wide.parquet"],
        toml_text.toml_altered: specimens.grids()["grid.toml"],
    }.items():
        first = [change(whole, np.random.default_rng(i)) for i in range(20)]
        assert sum(one == whole for one in first) < 4
        assert len(set(first)) > 10
        assert first == [change(whole, np.random.default_rng(i)) for i in range(20)]


# The inputs


def test_damaged_files_are_refused_or_read():
    every = len(readers.kinds())
    numbers = [i for i in range(6 * every) if not readers.kind_of(i).startswith("forged")]
    reports = list(run("readers", SEED, numbers))
    assert faults(reports) == []
    counts = Counter(report["outcome"] for report in reports)
    assert min(counts["read"], counts["refused"]) > 10  # neither harmless nor hopeless
    assert len(reports) == len(numbers)


#: Everybody who reads a file, and sound files for each.
READERS = {
    "predictions": (specimens.predictions, readers._used),
    "labels": (
        specimens.labels,
        lambda path: hc.io.reading.read_labels(Source.of(path), "labels", None),
    ),
    "store": (stores.sound, stores.used),
    "results": (specimens.results, hc.io.read_json),
    "grid": (specimens.grids, lambda path: hc.simulation.Grid(**studies._from_file(path))),
}
#: A place, how many bytes go there, and what comes instead.
EDITS = st.lists(
    st.tuples(
        st.integers(0, 2**16),
        st.integers(0, 40),
        st.binary(max_size=8) | st.sampled_from(mutations.WORDS).map(str.encode),
    ),
    min_size=1,
    max_size=3,
)


def spliced(content, edits):
    if isinstance(content, dict):  # a folder; the first place says which of its files
        inner = sorted(content)[edits[0][0] % len(content)]
        return {**content, inner: spliced(content[inner], edits)}
    for place, length, piece in edits:
        place %= len(content) + 1
        content = content[:place] + piece + content[place + length :]
    return content


@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
@pytest.mark.parametrize(
    ("reader", "name"),
    [(reader, name) for reader, (sound, _) in READERS.items() for name in sound()],
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edits=EDITS)
def test_no_edit_of_a_file_makes_its_reader_fail(reader, name, edits):
    sound, read = READERS[reader]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        specimens.put(path, spliced(sound()[name], edits))
        with contextlib.suppress(hc.InvalidInputError):
            read(path)


def test_forged_journals_are_refused_or_read():
    numbers = [i for i in range(20 * len(readers.kinds())) if "forged" in readers.kind_of(i)]
    assert faults(run("readers", SEED, numbers)) == []


def test_senseless_commands_end_with_a_code_that_means_something():
    reports = list(run("command_line", SEED, range(4 * len(command_line.COMMANDS))))
    assert faults(reports) == []
    counts = Counter(report["outcome"] for report in reports)
    assert min(counts["done"], counts["refused"]) > 10


def test_sets_at_the_edge_of_arithmetic_have_the_value_of_the_equation():
    assert faults(run("measures", SEED, range(60))) == []


# What came to light


def refused(call):
    with pytest.raises(hc.InvalidInputError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("name", ["deep.json", "deep.toml"])
def test_a_grid_nested_too_deeply_is_bad_input(name, tmp_path):
    (tmp_path / name).write_bytes(command_line._files()[name])
    code, said = command_line.called(["simulate", "--grid", name], tmp_path)
    assert code == 2
    assert said.startswith("hullcal: `--grid` must hold JSON or TOML")


def test_a_journal_nested_too_deeply_is_no_journal(tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    assert configuration_of(tmp_path) is None
    said = refused(lambda: Journal.open(tmp_path, {"seed": 0}, resume=True))
    assert "without its first line" in said


@pytest.mark.parametrize(
    "first",
    [
        {"format": 2, "hash": 5, "configuration": {}},
        {"format": 2, "hash": "x", "configuration": [1]},
        {"format": 2},
    ],
)
def test_a_first_line_can_be_json_and_no_first_line(first, tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(structures._as_line(first) + b"\n")
    assert configuration_of(tmp_path) in (None, {})
    said = refused(lambda: Journal.open(tmp_path, {"seed": 0}, resume=True))
    assert "without its first line" in said


@pytest.mark.parametrize(
    "block",
    [
        {"block": ["refit", "0", 4], "columns": {}},
        {"block": ["refit", 0, 4.5], "columns": {}},
        {"block": [None, 0, 4], "columns": {}},
        {"block": ["refit", 0, 4], "columns": [1]},
    ],
)
def test_a_line_can_be_json_and_no_block(block, tmp_path):
    with Journal.open(tmp_path, {"seed": 0}, resume=False):
        pass
    with open(tmp_path / "journal.jsonl", "ab") as file:
        file.write(structures._as_line(block) + b"\n")
    said = refused(lambda: Journal.open(tmp_path, {"seed": 0}, resume=True))
    assert "line 2" in said


def test_two_damaged_arrays_of_one_zarr_archive_leave_no_traceback_behind(tmp_path, caplog):
    path = tmp_path / "x.zarr"
    content = specimens.predictions()["zipped.zarr"]
    path.write_bytes(content.replace(b'"node_type": "array"', b'"node_type": "arrax"'))
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        assert "Bad CRC-32" in refused(lambda: hc.io.read(path))
        gc.collect()  # a task tells its fault when it is forgotten
    assert caplog.records == []


def test_a_zarr_archive_without_its_directory_says_what_is_wrong(tmp_path):
    path = tmp_path / "x.zarr"
    content = bytearray(specimens.predictions()["zipped.zarr"])
    content[content.rindex(b"PK\x01\x02")] ^= 1
    path.write_bytes(content)
    assert zipfile.is_zipfile(path)
    assert "BadZipFile" in refused(lambda: hc.io.read(path))
