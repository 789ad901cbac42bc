"""The journal of a study: what it keeps, and what it refuses."""

import json
import os
import subprocess
import sys

import pytest

from hullcal import InvalidInputError
from hullcal.io.journal import Journal

SAME = {"seed": 0, "measure": ["ece_conf"]}
FIRST, SECOND, THIRD = ("ab", 0, 2), ("ab", 2, 4), ("cd", 0, 2)
COLUMNS = {"pvalue": [[0.1, 1 / 3]], "statistic": [["inf", -5e-324]]}


@pytest.fixture
def path(tmp_path):
    with Journal.open(tmp_path, SAME, resume=False) as journal:
        for key in (FIRST, SECOND, THIRD):
            journal.append(key, COLUMNS)
    return tmp_path / "journal.jsonl"


def opened(folder, configuration=SAME):
    """The blocks of a journal."""
    with Journal.open(folder, configuration, resume=True) as journal:
        return journal.blocks


def test_what_was_appended_is_there_to_the_last_bit(path):
    assert opened(path.parent) == dict.fromkeys((FIRST, SECOND, THIRD), COLUMNS)


def test_every_line_is_json_and_the_first_says_what_the_study_is(path):
    header, *blocks = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(blocks) == 3
    assert (header["configuration"], header["format"], len(header["hash"])) == (SAME, 2, 64)


def test_a_torn_last_line_is_forgotten_wherever_it_was_torn(path):
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        path.write_bytes(whole[:end])
        assert list(opened(path.parent)) == [FIRST, SECOND]
        assert path.read_bytes() == whole[:last]


def test_what_follows_a_torn_line_or_zeros_as_after_a_power_cut_is_not_lost_with_them(path):
    whole = path.read_bytes()
    for torn in (whole[:-10], whole[: whole.rindex(b"\n", 0, -1) + 1] + bytes(50)):
        path.write_bytes(torn)
        with Journal.open(path.parent, SAME, resume=True) as journal:
            journal.append(THIRD, COLUMNS)
        assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_an_error_that_says_which(path):
    lines = path.read_bytes().splitlines(keepends=True)
    blocks = (b'["ab", 2, "4"]', b'["ab", 2, 4.5]', b"[null, 2, 4]")
    others = [lines[2].replace(b'["ab", 2, 4]', block) for block in blocks]
    listed = b'{"block": ["ab", 2, 4], "columns": [1]}\n'
    for damaged in (b"\0" * 50 + b"\n", b"{}\n", listed, *others):
        path.write_bytes(b"".join([*lines[:2], damaged, lines[3]]))
        with pytest.raises(InvalidInputError, match=r"line 3 of .*journal.jsonl damaged"):
            opened(path.parent)


def test_another_configuration_is_refused_and_both_are_named(path):
    with pytest.raises(InvalidInputError, match="seed: 0 there, 1 now"):
        opened(path.parent, SAME | {"seed": 1})
    with pytest.raises(InvalidInputError, match='numpy: null there, "9" now'):
        opened(path.parent, SAME | {"numpy": "9"})
    assert len(opened(path.parent)) == 3


def test_settings_that_cannot_be_written_down_have_no_journal(tmp_path):
    # A grid is only one of the things that have settings and a journal.
    with pytest.raises(InvalidInputError, match="`folder` needs settings that can be written down"):
        opened(tmp_path, {"measure": object()})


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from hullcal.io.journal import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InvalidInputError, match="another run holds"):
            opened(tmp_path)
        holder.kill()
    opened(tmp_path)


@pytest.mark.parametrize("name", [".lock", "journal.jsonl", "rates.csv"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_in_a_folder_are_refused_before_anything_is_written(name, kind, tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    folder.mkdir()
    outside.write_text("mine")
    if kind == "link":
        (folder / name).symlink_to(outside)
    else:
        os.mkfifo(folder / name)
    with pytest.raises(
        InvalidInputError, match="`folder` must hold regular files and folders only"
    ):
        opened(folder)
    assert outside.read_text() == "mine"
    assert os.listdir(folder) == [name]
