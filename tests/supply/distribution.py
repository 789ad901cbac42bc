"""Build the wheel and the sdist, install each in an empty environment elsewhere, and use it there.

    python tests/supply/distribution.py      # some minutes; `make test-supply`

Building takes hatchling in this environment; installing takes an index that pip can reach.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Files of the package that are not Python.
DATA = ("io/results.schema.json", "py.typed", "report/page.html", "report/style.css")


def build(target, source, into):
    """The built file; nothing is written beside the source."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def wheel_files(path):
    """Names in a wheel, and the bytes under them."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def sdist_files(path):
    """Names in an sdist, without its one folder."""
    with tarfile.open(path) as sdist:
        return {name.partition("/")[2] for name in sdist.getnames()}


def expected_files(root=ROOT):
    """What the package's folder holds that belongs to it."""
    package = root / "src" / "hullcal"
    paths = [package / name for name in DATA] + list(package.rglob("*.py"))
    return {path.relative_to(root / "src").as_posix() for path in paths}


def wheel_from_sdist(sdist, into):
    """The wheel that the sdist's own contents give."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (source,) = (path for path in into.iterdir() if path.is_dir())
    return build("wheel", source, into)


# -- in an empty environment --------------------------------------------------------------------------

SET = """
import numpy as np
rng = np.random.default_rng(0)
probs = rng.dirichlet([1.0, 1.0, 1.0], size=(100, 3))
np.savez("file.npz", probs=probs, labels=rng.integers(3, size=100))
"""
PLACE = "import hullcal; print(hullcal.__version__, hullcal.__file__)"


def run(*command, folder):
    """What a command prints, in a folder where there is nothing of this repository."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def use(package, folder, constraints):
    """Install the package alone, and let it do what a user would ask first."""
    folder.mkdir()
    environment = folder / "env"
    run(sys.executable, "-m", "venv", environment, folder=folder)
    python, program = environment / "bin" / "python", environment / "bin" / "hullcal"
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, "-c", constraints, package, folder=folder)
    place = run(python, "-c", PLACE, folder=folder)
    assert str(environment) in place, place
    said = run(program, "--version", folder=folder)
    assert said.startswith("hullcal "), said
    run(python, "-c", SET, folder=folder)
    test = (program, "test", "file.npz", "--resamples", "39", "--report", "report.html")
    assert "Does the hull contain the truth?" in run(*test, folder=folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "Content-Security-Policy" in page
    shutil.copy(Path(__file__).with_name("user_code.py"), folder)
    assert "hypothesis" in run(python, "-W", "error", "user_code.py", folder=folder)
    # The demonstration needs scikit-learn, which is an extra.
    run(*pip, "-c", constraints, "scikit-learn", folder=folder)
    run(program, "demo", "--output", "demo.html", folder=folder)
    assert (folder / "demo.html").stat().st_size > 10_000
    return said.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hullcal-supply-") as name:
        place = Path(name)
        for part in ("wheel", "sdist", "again"):
            (place / part).mkdir()
        wheel = build("wheel", ROOT, place / "wheel")
        sdist = build("sdist", ROOT, place / "sdist")
        print(f"{wheel.name}: {len(wheel_files(wheel))} files, {wheel.stat().st_size} bytes")
        print(f"{sdist.name}: {len(sdist_files(sdist))} names, {sdist.stat().st_size} bytes")
        again = wheel_from_sdist(sdist, place / "again")
        assert wheel_files(again) == wheel_files(wheel)
        print("the sdist builds the same wheel")
        for package in (wheel, sdist):
            print(f"{package.name}, installed and used:")
            for line in use(package, place / f"use-{package.suffix[1:]}", options.constraints):
                print(f"  {line}")


if __name__ == "__main__":
    main()
