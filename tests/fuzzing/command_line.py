"""Senseless commands: an exit code that means something, one message, and never a traceback."""

import contextlib
import functools
import io
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from unittest import mock

import click
import numpy as np

from fuzzing import specimens
from fuzzing.structures import json_altered
from fuzzing.toml_text import toml_altered
from hullcal import cli, nulls
from hullcal.measures import available

#: Done, rejected, bad input, stopped, interrupted; 3 would be a fault of the program.
CODES = (0, 1, 2, 4, 130)

COMMANDS = ("test", "sizes", "weights", "simulate", "power") * 2
COMMANDS += ("simulate --grid odd.json", "simulate --grid odd.toml", "measures", "demo", "odd")
#: Words for any option that takes text, and for those that take something else.
ODD = [
    *(
        "",
        " ",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "2.5",
        "nan",
        "inf",
        "1e999",
        "9" * 30,
        "x",
        "é",
        "\udcff",
        "*",
    ),
    *(
        "\n",
        "\x1b[31m",
        "a,b",
        "cat,dog,owl",
        "a,a,a,a",
        "<script>",
        "%s",
        "{}",
        "..",
        ".",
        "/",
        "/dev/null",
    ),
    *("x" * 300, "~nobody/x", "nul.npz", "0x10", "１", "all", "None", "true", "[]", "--help"),
]
#: What each option is given; sizes are small, since a large one is no fault and takes long.
VALUES = {
    "n_resamples": ["1", "3", "19"],
    "n_datasets": ["1", "2"],
    "n_samples": ["1", "5", "30"],
    "n_members": ["1", "2", "3"],
    "n_classes": ["2", "3", "9"],
    "spread": ["0.01", "1", "100", "1e-9"],
    "strength": ["1", "0.5", "1e-9"],
    "scenario": ["S1", "S1_vertex", "S2", "S3", "calibrated"],
    "protocol": ["paper", "authors", "paper+two_sided", "authors-corner"],
    "alpha": ["0.05", "0.5", "0.999", "1e-300"],
    "amount": ["1.5", "0.2", "1", "0", "1e300", "-1"],
    "target": ["0.8", "0.01"],
    "stop_after": ["2", "10"],
    "seed": ["0", "1", "9" * 40],
    "jobs": ["1", "0", "-2"],
    "measures": [*available(), "all"],
    "measure": [*available(), "ece_conf:5", "ece_cwise:1", "hl_cwise:0", "skce_ul:3", "ece_conf:"],
    "nulls": [*nulls.available()],
    "null": [*nulls.available()],
    "minimizer": ["pairwise", "random", "slsqp", "exact", "cobyla", "pairwise:20", "random:0"],
    "form": ["table", "json", "csv"],
    "miscalibration": ["temperature", "corner", "closest"],
    "probs_key": ["probs", "labels", "classes"],
    "labels_key": ["labels", "label", "probs"],
    "classes": ["cat,dog,owl,elk", "a,b", "0,1,2,3"],
    "output": [
        "new.json",
        "new.csv",
        "new.txt",
        "new.html",
        "old.txt",
        "nowhere/new.txt",
        "folder",
        "study",
    ],
    "report": ["page.html", "old.txt", "new.html"],
    "journal": ["kept", "folder", "old.txt"],
    "engine": ["local"],
    "backend": ["sequential", "threading", "nope"],
    "grid": [
        "grid.json",
        "grid.toml",
        "odd.json",
        "odd.toml",
        "deep.json",
        "deep.toml",
        "old.txt",
        "folder",
    ],
}
#: Options without which a command would take too long for one input.
SHORT = {
    "test": ["-D", "3", "--jobs", "1"],
    "power": ["-D", "3", "-R", "2", "-N", "6", "--jobs", "1"],
    "simulate": ["-D", "3", "-R", "2", "-N", "6", "-M", "2", "-K", "3", "--jobs", "1"],
}


def kind_of(number):
    """Which command."""
    return COMMANDS[number % len(COMMANDS)]


@functools.cache
def _files():
    """Sound and broken files for the folder in which commands run."""
    kept = dict(specimens.predictions())
    whole = kept["plain.npz"]
    kept |= {"broken.npz": whole[:-30], "empty.csv": b"", "old.txt": b"old\n", "odd.pkl": b"\x80"}
    kept["y.npy"] = specimens.labels()["numbers.npy"]
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=7)
    for name in ("a.npy", "b.npy"):
        kept[name] = specimens.npy_bytes(rows)
    kept["nan.npy"] = specimens.npy_bytes(np.full((7, 2, 3), np.nan))
    kept["one.npy"] = specimens.npy_bytes(np.full((1, 2, 3), 1 / 3))
    kept["deep.json"], kept["deep.toml"] = b"[" * 100_000, b"a = " + b"[" * 100_000
    return kept


def arguments(number, rng):
    """The words of one command."""
    name, *given = kind_of(number).split()
    if name == "odd":
        return [str(rng.choice(ODD)) for _ in range(rng.integers(0, 4))]
    parameters = [each for each in _command(name).params if isinstance(each, click.Option)]
    # The demonstration itself takes half a minute; here only what it refuses is asked for.
    words = [name, *SHORT.get(name, [])]
    files = [*sorted(_files()), "missing.npz", "folder", str(rng.choice(ODD))]
    if name not in ("simulate", "measures", "demo"):
        sound = ["plain.npz", "long.csv", "wide.parquet", "three.zarr", "plain.h5"]
        file = str(rng.choice(sound if rng.integers(3) else files))
        words += [file] if rng.integers(8) else ["--member", "a.npy", "--member", file]
    for _ in range(rng.integers(0, 5) if parameters else 0):
        option = parameters[rng.integers(len(parameters))]
        words += _option(option, files, rng)
    if not rng.integers(12):
        words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(ODD)))
    if name == "demo":
        words += ["--no-such-option"]
    return words + given


@functools.cache
def _command(name):
    return cli.main.get_command(click.Context(cli.main), name)


def _option(option, files, rng):
    flag = option.opts[rng.integers(len(option.opts))]
    if option.is_flag:
        return [flag]
    pool = VALUES.get(option.name, files)
    value = str(rng.choice(pool)) if rng.integers(7) else ODD[rng.integers(len(ODD))]
    risky = option.name in ("n_resamples", "n_datasets", "n_samples", "n_members", "n_classes")
    if (risky or option.name in ("jobs", "workers")) and value in ("9" * 30, "all"):
        value = "0"  # an honest wish for more than a lifetime
    return [flag, value] if rng.integers(6) or not flag.startswith("--") else [f"{flag}={value}"]


def attempt(number, rng):
    """Run one command in a folder of its own."""
    words = arguments(number, rng)
    room = Path(tempfile.mkdtemp(prefix="fuzzing-"))
    try:
        for name, content in _files().items():
            if any(name in word for word in words):
                specimens.put(room / name, content)
        (room / "folder").mkdir()
        for suffix, change in {".json": json_altered, ".toml": toml_altered}.items():
            grid = specimens.grids()[f"grid{suffix}"]
            (room / f"grid{suffix}").write_bytes(grid)
            (room / f"odd{suffix}").write_bytes(change(grid, rng))
        code, said = called(words, room)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    shown = f"{words} ended with {code}: {said[-400:]}"
    assert code in CODES, shown
    assert "Traceback" not in said, shown
    assert "internal error" not in said, shown
    assert code != 2 or said.strip(), shown
    return "done" if code in (0, 1) else "refused"


def called(words, folder):
    """The exit code of a command run in this process, and what it wrote to stderr."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    before = os.getcwd(), signal.getsignal(signal.SIGINT)
    os.chdir(folder)
    try:
        with (
            mock.patch.object(sys, "argv", ["hullcal", *words]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            cli.run(words)
        code = None
    except SystemExit as end:
        code = end.code
    finally:
        os.chdir(before[0])
    err.flush()
    return code, err.buffer.getvalue().decode("utf-8")


def warm_up():
    """Run every command once."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        specimens.put(room / "plain.npz", _files()["plain.npz"])
        for name in ("test", "sizes", "weights", "power", "simulate"):
            file = [] if name == "simulate" else ["plain.npz"]
            measure = ["-m", "all", "--report", "page.html"] if name == "test" else []
            code, said = called([name, *SHORT.get(name, []), *file, *measure], room)
            assert code == 0, said
