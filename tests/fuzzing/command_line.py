"""Senseless commands: an exit code that means something, one message, and never a traceback."""

import functools
import tempfile
from pathlib import Path

import click
import numpy as np

from fuzzing import specimens
from fuzzing.damage import json_altered, one_of, spaced, toml_altered
from hullcal import cli, measures, nulls
from io_files import npy_bytes
from test_cli import run

#: Done, rejected, bad input, stopped, interrupted; 3 would be a fault of the program.
CODES = (0, 1, 2, 4, 130)

COMMANDS = ("test", "sizes", "weights", "simulate", "power") * 2
COMMANDS += ("simulate --grid odd.json", "simulate --grid odd.toml", "measures", "demo", "odd")
#: Words for any option that takes text, and for those that take something else.
ODD = spaced(
    "- -- -1 0 1 2.5 nan inf 1e999 x é \udcff * a,b cat,dog,owl a,a,a,a <script> %s {} .. . /"
)
ODD += spaced("/dev/null ~nobody/x nul.npz 0x10 １ all None true [] --help \n \x1b[31m")
ODD += ["", " ", "9" * 30, "x" * 300]
#: What each option is given; sizes are small, since a large one is no fault and takes long.
VALUES = {
    "n_resamples": "1 3 19",
    "n_datasets": "1 2",
    "n_samples": "1 5 30",
    "n_members": "1 2 3",
    "n_classes": "2 3 9",
    "spread": "0.01 1 100 1e-9",
    "strength": "1 0.5 1e-9",
    "scenario": "S1 S1_vertex S2 S3 calibrated",
    "protocol": "paper authors paper+two_sided authors-corner",
    "alpha": "0.05 0.5 0.999 1e-300",
    "amount": "1.5 0.2 1 0 1e300 -1",
    "target": "0.8 0.01",
    "stop_after": "2 10",
    "seed": f"0 1 {10**40}",
    "rng": f"0 1 {10**40}",
    "n_jobs": "1 0 -2",
    "measures": " ".join([*measures.available(), "all"]),
    "measure": " ".join([*measures.available(), "ece_conf:5 hl_cwise:0 skce_ul:3 ece_conf:"]),
    "nulls": " ".join(nulls.available()),
    "null": " ".join(nulls.available()),
    "minimizer": "pairwise random slsqp exact cobyla pairwise:20 random:0",
    "form": "table json csv",
    "miscalibration": "temperature corner closest",
    "probs_key": "probs labels classes",
    "labels_key": "labels label probs",
    "classes": "cat,dog,owl,elk a,b 0,1,2,3",
    "output": "new.json new.csv new.txt new.html old.txt nowhere/new.txt",
    "folder": "folder study old.txt nowhere/study",
    "report": "page.html old.txt new.html",
    "journal": "kept folder old.txt",
    "engine": "local",
    "backend": "sequential threading nope",
    "grid": "grid.json grid.toml odd.json odd.toml deep.json deep.toml old.txt folder",
}
#: Options without which a command would take too long for one input.
SHORT = {
    "test": spaced("-D 3 --jobs 1"),
    "power": spaced("-D 3 -R 2 -N 6 --jobs 1"),
    "simulate": spaced("-D 3 -R 2 -N 6 -M 2 -K 3 --jobs 1"),
}


def kind_of(number):
    """Which command."""
    return COMMANDS[number % len(COMMANDS)]


@functools.cache
def files():
    """Sound and broken files for the folder in which commands run."""
    kept = specimens.predictions() | specimens.grids()
    kept |= {"broken.npz": kept["plain.npz"][:-30], "empty.csv": b"", "odd.pkl": b"\x80"}
    kept |= {"old.txt": b"old\n", "y.npy": specimens.labels()["numbers.npy"]}
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=7)
    kept |= {"a.npy": npy_bytes(rows), "b.npy": npy_bytes(rows)}
    kept["nan.npy"] = npy_bytes(np.full((7, 2, 3), np.nan))
    kept["one.npy"] = npy_bytes(np.full((1, 2, 3), 1 / 3))
    return kept | {"deep.json": b"[" * 100_000, "deep.toml": b"a = " + b"[" * 100_000}


def arguments(number, rng):
    """The words of one command."""
    name, *given = kind_of(number).split()
    if name == "odd":
        return [one_of(ODD, rng) for _ in range(rng.integers(0, 4))]
    words = [name, *SHORT.get(name, [])]
    paths = [*sorted(files()), "missing.npz", "folder", one_of(ODD, rng)]
    if name not in ("simulate", "measures", "demo"):
        sound = ["plain.npz", "long.csv", "wide.parquet", "three.zarr", "plain.h5"]
        file = one_of(sound if rng.integers(3) else paths, rng)
        words += [file] if rng.integers(8) else ["--member", "a.npy", "--member", file]
    options = cli.main.get_command(click.Context(cli.main), name).params
    options = [each for each in options if isinstance(each, click.Option)]
    for _ in range(rng.integers(0, 5) if options else 0):
        words += _option(one_of(options, rng), paths, rng)
    if not rng.integers(12):
        words.insert(int(rng.integers(len(words) + 1)), one_of(ODD, rng))
    # The demonstration itself takes half a minute; here only what it refuses is asked for.
    return words + (["--no-such-option"] if name == "demo" else given)


def _option(option, paths, rng):
    flag = one_of(option.opts, rng)
    if option.is_flag:
        return [flag]
    known = spaced(VALUES[option.name]) if option.name in VALUES else paths
    value = one_of(known if rng.integers(7) else ODD, rng)
    if value in ("9" * 30, "all") and option.name.startswith(("n_", "workers")):
        value = "0"  # an honest wish for more than a lifetime
    return [flag, value] if rng.integers(6) or not flag.startswith("--") else [f"{flag}={value}"]


def attempt(number, rng):
    """Run one command in a folder of its own."""
    words = arguments(number, rng)
    with tempfile.TemporaryDirectory(prefix="fuzzing-", ignore_cleanup_errors=True) as name:
        room = Path(name)
        (room / "folder").mkdir()
        for name, content in files().items():
            if any(name in word for word in words):
                specimens.put(room / name, content)
        (room / "odd.json").write_bytes(json_altered(files()["grid.json"], rng))
        (room / "odd.toml").write_bytes(toml_altered(files()["grid.toml"], rng))
        code, said = called(words, room)
    shown = f"{words} ended with {code}: {said[-400:]}"
    assert code in CODES, shown
    assert "Traceback" not in said, shown
    assert "internal error" not in said, shown
    assert code != 2 or said.strip(), shown
    return "done" if code in (0, 1) else "refused"


def called(words, folder):
    """The exit code of a command run in this process, and what it wrote to stderr."""
    done = run(*words, cwd=folder)
    return done.returncode, done.stderr


def warm_up():
    """Run every command once."""
    with tempfile.TemporaryDirectory() as folder:
        specimens.put(Path(folder) / "plain.npz", files()["plain.npz"])
        for name in ("test", "sizes", "weights", "power", "simulate"):
            file = [] if name == "simulate" else ["plain.npz"]
            measure = ["-m", "all", "--report", "page.html"] if name == "test" else []
            code, said = called([name, *SHORT.get(name, []), *file, *measure], Path(folder))
            assert code == 0, said
