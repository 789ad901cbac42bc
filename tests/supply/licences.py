"""Which licences do the dependencies have? Writes LICENSES.md from the metadata of what is installed.

python tests/supply/licences.py             # says what differs
python tests/supply/licences.py --update    # writes it
"""

import argparse
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "LICENSES.md"
#: The heading of every extra and group; a package stands in the first that has it.
SECTIONS = {
    "Required": (None,),
    "Optional": ("sklearn", "torch", "parquet", "zarr", "hdf5", "safetensors", "dask", "nlopt"),
    "For tests, experiments and benchmarks": ("test", "deep", "bench", "lint", "dev"),
    "For the documentation": ("docs",),
    "For the build": ("build",),
}
HEAD = """# Licences of the dependencies

hullcal is under BSD-3-Clause (see LICENSE). Here is what it imports, and what tests, documentation and
the build use beside it: the versions that were tested together, and the licences that their metadata
state. Made by `python tests/supply/licences.py --update`.
"""


def declared(root=ROOT):
    """Packages of pyproject.toml and their lower bounds, by extra or group; None: required."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups = {
        None: project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
        **project["dependency-groups"],
        "build": project["build-system"]["requires"],
    }
    # A group may include another, which is listed by itself.
    split = {
        group: [one.partition(">=") for one in listed if isinstance(one, str)]
        for group, listed in groups.items()
    }
    return {group: {name: bound for name, _, bound in each} for group, each in split.items()}


def licence(package):
    """Version and licence of an installed package: its expression, or its classifiers, or its words."""
    found = metadata(package)
    # What follows a plus sign tells builds for one kind of machine apart.
    version = found["Version"].partition("+")[0]
    expression = found.get("License-Expression")
    if expression:
        return version, expression
    kinds = [
        line.rpartition(" :: ")[2]
        for line in found.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    # Some put the whole text there; its first line is its name.
    first = (found.get("License") or "").strip().partition("\n")[0]
    return version, ", ".join(kinds) or first or "not stated"


def page(root=ROOT):
    """The whole page; a package that is not installed cannot be asked."""
    groups, text = declared(root), HEAD
    for heading, extras in SECTIONS.items():
        rows = {}
        for extra in extras:
            for package in groups.pop(extra):
                if f"| {package} |" not in text:
                    rows.setdefault(package, (package, *licence(package), extra or ""))
        text += f"\n## {heading}\n\n| package | version | licence | extra or group |\n|---|---|---|---|\n"
        text += "".join(f"| {' | '.join(row)} |\n" for row in sorted(rows.values()))
    if groups:
        raise SystemExit(f"extras or groups without a section: {', '.join(groups)}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write what differs")
    options = parser.parse_args()
    try:
        new = page()
    except PackageNotFoundError as error:
        raise SystemExit(f"not installed, so its licence is not known: {error.name}") from error
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    changed = sorted(set(new.splitlines()) ^ set(old.splitlines()))
    print("\n".join(changed) or "nothing differs")
    if options.update:
        PAGE.write_text(new, encoding="utf-8")
    return 0 if options.update or not changed else 1


if __name__ == "__main__":
    sys.exit(main())
