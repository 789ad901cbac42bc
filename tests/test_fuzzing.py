"""A few hundred inputs that nobody would write, and what many thousands of them have brought to light.

The whole is `make fuzz`; see `fuzzing` for what is tried.
"""

import contextlib
import gc
import logging
import zipfile
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hullcal as hc
from fuzzing import command_line, control, damage, readers, specimens
from fuzzing.confined import GOOD, run
from hullcal.io.journal import Journal, configuration_of

SEED = 2024


def faults(reports):
    return [report for report in reports if report["outcome"] not in GOOD]


# A fault cannot hide


def test_a_fault_a_crash_a_hang_and_a_flood_are_all_seen():
    reports = list(run("control", SEED, range(len(control.EXPECTED)), patience=4))
    assert {report["kind"]: report["outcome"] for report in reports} == control.EXPECTED
    said = {report["kind"]: report["said"] for report in reports}
    assert "of the reader's own making" in said["raise"]
    assert "MemoryError" in said["swell"]
    assert "control.py" in said["crash"]
    assert "control.py" in said["hang"]


@pytest.mark.parametrize("name", ["plain.npz", "wide.parquet", "plain.npy", "plain.safetensors"])
def test_damage_is_done_and_is_the_same_again(name):
    whole = specimens.predictions()[name]
    tries = [
        [damage.inside(name, whole, np.random.default_rng(i)) for i in range(20)] for _ in range(2)
    ]
    assert tries[0] == tries[1]
    assert sum(one == whole for one in tries[0]) < 4
    assert len(set(tries[0])) > 10


# The inputs


def test_damaged_files_are_refused_or_read():
    numbers = range(3 * len(readers.kinds()))
    reports = list(run("readers", SEED, numbers))
    assert faults(reports) == []
    counts = Counter(report["outcome"] for report in reports)
    assert min(counts["read"], counts["refused"]) > 10  # neither harmless nor hopeless
    assert len(reports) == len(numbers)


def test_forged_journals_are_refused_or_read():
    numbers = [i for i in range(10 * len(readers.kinds())) if "forged" in readers.kind_of(i)]
    assert faults(run("readers", SEED + 1, numbers)) == []


def test_senseless_commands_end_with_a_code_that_means_something():
    reports = list(run("command_line", SEED, range(4 * len(command_line.COMMANDS))))
    assert faults(reports) == []
    counts = Counter(report["outcome"] for report in reports)
    assert min(counts["done"], counts["refused"]) > 10


def test_sets_at_the_edge_of_arithmetic_have_the_value_of_the_equation():
    assert faults(run("measures", SEED, range(14))) == []


#: A place, how many bytes go there, and what comes instead.
EDITS = st.lists(
    st.tuples(
        st.integers(0, 2**16),
        st.integers(0, 40),
        st.binary(max_size=8) | st.sampled_from(damage.WORDS).map(str.encode),
    ),
    min_size=1,
    max_size=3,
)


KINDS = [kind for kind in readers.kinds() if kind[0] not in ("member", "journal", "forged")]


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
    ("way", "name"),
    # Every sound file once, by whoever reads it first.
    {name: (way, name) for way, name in reversed(KINDS)}.values(),
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edits=EDITS)
def test_no_edit_of_a_file_makes_its_reader_fail(way, name, edits):
    content = spliced(readers.WAYS[way][0]()[name], edits)
    with contextlib.suppress(hc.InvalidInputError):
        readers.read(way, name, content)


# What came to light


@pytest.mark.parametrize("name", ["deep.json", "deep.toml"])
def test_a_grid_nested_too_deeply_is_bad_input(name, tmp_path):
    (tmp_path / name).write_bytes(command_line.files()[name])
    code, said = command_line.called(["simulate", "--grid", name], tmp_path)
    assert code == 2
    assert said.startswith(f"hullcal: `--grid` must be a readable `{name[4:]}` file")


@pytest.mark.parametrize(
    "first",
    [
        b"[" * 100_000,
        b'{"format": 2, "hash": 5, "configuration": {}}',
        b'{"format": 2, "hash": "x", "configuration": [1]}',
        b'{"format": 2}',
    ],
)
def test_a_line_nested_too_deeply_or_of_other_content_is_no_first_line(first, tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(first + b"\n")
    assert configuration_of(tmp_path) in (None, {})
    with (
        pytest.raises(hc.InvalidInputError, match="without its first line"),
        Journal.open(tmp_path, {"seed": 0}, resume=True),
    ):
        pass


def test_two_damaged_arrays_of_one_zarr_archive_leave_no_traceback_behind(tmp_path, caplog):
    path = tmp_path / "x.zarr"
    content = specimens.predictions()["zipped.zarr"]
    path.write_bytes(content.replace(b'"node_type": "array"', b'"node_type": "arrax"'))
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        with pytest.raises(hc.InvalidInputError, match="Bad CRC-32"):
            hc.io.read(path)
        gc.collect()  # a task tells its fault when it is forgotten
    assert caplog.records == []


def test_a_zarr_archive_without_its_directory_says_what_is_wrong(tmp_path):
    path = tmp_path / "x.zarr"
    content = bytearray(specimens.predictions()["zipped.zarr"])
    content[content.rindex(b"PK\x01\x02")] ^= 1
    path.write_bytes(content)
    assert zipfile.is_zipfile(path)
    with pytest.raises(hc.InvalidInputError, match="BadZipFile"):
        hc.io.read(path)
