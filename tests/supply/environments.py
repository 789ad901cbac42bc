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

#: What only tests that are not chosen here need: a browser, PyTorch, a type checker, the build.
LEFT_OUT = {"playwright", "torch", "mypy", "hatchling"}
#: Extras of users, and the group of the tests.
GROUPS = ("sklearn", "parquet", "zarr", "hdf5", "safetensors", "dask", "nlopt", "test")
#: The first release of a series that runs with the other packages, where it is not the first of all;
#: matplotlib 3.10 uses names that later releases of pyparsing warn of, and zarr 3.1 those of numcodecs.
FIRST = {"scikit-learn": "1.7.2", "pandas": "2.2.2", "pyparsing": "3.1.2", "numcodecs": "0.16.1"}
TESTS = (
    *("golden", "measures", "measure_contract", "nulls", "minimizers", "algorithm", "results"),
    *("sets", "classical", "uncertainty", "scenarios", "study", "io", "stores", "streams"),
    *("dask", "cli", "cli_bad_input", "report", "plots", "ensembles_sklearn"),
)


def needed():
    """The lower bounds of all that the chosen tests may import; the highest if there are several."""
    groups = declared()
    found = {}
    for name, bound in (each for group in (None, *GROUPS) for each in groups[group].items()):
        release = [int(part) for part in bound.split(".")]
        found[name] = max(found.get(name, []), release + [0] * (3 - len(release)))
    return {name: ".".join(map(str, found[name])) for name in sorted(found.keys() - LEFT_OUT)}


def made(which, folder):
    """The interpreter of an environment with hullcal in it."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    oldest = [f"{name}=={release}" for name, release in (needed() | FIRST).items()]
    how = ["--only-binary", ":all:", *oldest] if which == "oldest" else ["-U", *needed()]
    # First these, by themselves: hullcal comes as a folder, which is not a binary package.
    subprocess.run([*pip, *how], check=True)
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
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "list"], check=True)
        (Path(name) / "copy").mkdir()
        return tested(python, options.names or TESTS, Path(name) / "copy")


if __name__ == "__main__":
    sys.exit(main())
