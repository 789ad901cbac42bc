"""Run a broad choice of the tests with the oldest releases that are allowed, or with the newest.

    python tests/supply/environments.py oldest     # `make test-oldest`
    python tests/supply/environments.py newest     # `make test-newest`

The environment is made outside the repository and holds an installed copy of hullcal.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from supply.licences import declared  # noqa: E402

OLDEST = Path(__file__).with_name("oldest-constraints.txt")
#: What only tests that are not chosen here need: a browser, PyTorch, a type checker, the build.
LEFT_OUT = {"playwright", "torch", "mypy", "hatchling"}
#: Extras of users, and the group of the tests.
GROUPS = ("sklearn", "parquet", "zarr", "hdf5", "safetensors", "dask", "nlopt", "test")
TESTS = (
    *("golden", "measures", "measure_contract", "nulls", "minimizers", "algorithm", "results"),
    *("sets", "classical", "uncertainty", "scenarios", "study", "io", "stores", "streamed"),
    *("dask", "cli", "cli_simulate", "report", "plots", "ensembles_sklearn"),
)


def needed():
    """Names of all that the chosen tests may import, required or optional."""
    groups = declared()
    return sorted({one for group in (None, *GROUPS) for one in groups[group]} - LEFT_OUT)


def made(which, folder):
    """The interpreter of an environment with hullcal in it."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    how = ["--only-binary", ":all:", "-c", str(OLDEST)] if which == "oldest" else ["-U"]
    # First these, by themselves: hullcal comes as a folder, which is not a binary package.
    subprocess.run([*pip, *how, *needed()], check=True)
    subprocess.run([*pip, "--no-deps", str(ROOT)], check=True)
    return python


def tested(python, names, folder):
    """The exit code of the tests, run on a copy of them beside which there is no source."""
    for part in ("tests", "benchmarks", "experiments", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    files = [f"tests/test_{name}.py" for name in names]
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=-ra"]
    chosen = ["-m", "not statistical and not deep", *files]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((".", "tests"))}
    return subprocess.run([*command, *chosen], cwd=folder, env=environment, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("names", nargs="*", help="test files, as in `io`; a broad choice if none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=f"hullcal-{options.which}-") as name:
        python = made(options.which, Path(name) / "env")
        subprocess.run(
            [str(python), "-m", "pip", "list", "--disable-pip-version-check"], check=True
        )
        (Path(name) / "copy").mkdir()
        return tested(python, options.names or TESTS, Path(name) / "copy")


if __name__ == "__main__":
    sys.exit(main())
