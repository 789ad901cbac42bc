"""What reaches a user: the files of the wheel, the types, the versions allowed and their licences.

`supply/` holds the long checks: installing the wheel elsewhere, the oldest and the newest packages.
"""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hullcal as hc
from mutation import subjects
from supply import distribution, environments, licences

ROOT = Path(__file__).parents[1]
SOURCE = Path(hc.__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "src").exists(), reason="the source is not here, only an installed hullcal"
)


# -- the wheel ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel, the sdist, and the wheel that the sdist gives."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    folders = [tmp_path_factory.mktemp(name) for name in ("wheel", "sdist", "again")]
    wheel = distribution.build("wheel", ROOT, folders[0])
    sdist = distribution.build("sdist", ROOT, folders[1])
    return wheel, sdist, distribution.wheel_from_sdist(sdist, folders[2])


def test_the_wheel_holds_the_package_its_data_and_nothing_else(built):
    names = set(distribution.wheel_files(built[0]))
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == distribution.expected_files()
    kinds = {name.partition("/")[2] for name in about}
    assert kinds == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert not [name for name in names if "test" in Path(name).parts[:-1]]


def test_the_sdist_builds_the_same_wheel_and_holds_the_tests(built):
    wheel, sdist, again = built
    assert distribution.wheel_files(again) == distribution.wheel_files(wheel)
    names = distribution.sdist_files(sdist)
    for name in ("pyproject.toml", "LICENSE", "README.md", "Makefile", "tests/test_supply.py"):
        assert name in names
    assert "tests/golden/machine.json" in names
    stray = re.compile(r"__pycache__|\.pyc$|\.git/|\.venv|\.nbi$|\.nbc$")
    assert not [name for name in names if stray.search(name)]


def test_the_wheel_names_what_it_needs_and_its_program(built):
    files = distribution.wheel_files(built[0])
    (about,) = (files[name].decode() for name in files if name.endswith("/METADATA"))
    assert f"Version: {hc.__version__}\n" in about
    assert "License-Expression: BSD-3-Clause\n" in about
    required = re.findall(r"^Requires-Dist: ([^;\n]+)$", about, re.MULTILINE)
    assert {one.partition(">=")[0] for one in required} == set(licences.declared()[None])
    (programs,) = (files[name].decode() for name in files if name.endswith("/entry_points.txt"))
    assert "hullcal = hullcal.__main__:main" in programs


# -- types --------------------------------------------------------------------------------------------


USER_CODE = Path(distribution.__file__).with_name("user_code.py").read_text(encoding="utf-8")


#: Types that were Any would let these pass.
MISTAKES = """
result = hc.calibration_test([[[0.5, 0.5]]], [0], n_resamples="many")
text: str = result.pvalue
found: list[int] = result.weights
hc.minimizers.Pairwise(budget=3)
hc.nulls.Paper().hypotesis
hc.SKCE(estimator="uqq")
"""


def test_a_strict_type_checker_takes_a_users_code_and_finds_the_mistakes_in_it(tmp_path):
    (tmp_path / "user_code.py").write_text(USER_CODE + MISTAKES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "user_code.py"],
        cwd=tmp_path,  # a project of its own
        env=os.environ | {"MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    said = done.stdout
    places = [int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line]
    sound = USER_CODE.count("\n")
    assert places == [sound + n for n in range(2, 8)], said


def test_the_user_code_uses_every_public_name_that_needs_no_extra():
    used = set(re.findall(r"\bhc\.(\w+)", USER_CODE))
    public = {name for name in dir(hc) if not name.startswith("_")}
    # Warnings and errors of clusters are not called; ensembles need extras.
    assert public - used == {"ApproximationWarning", "EngineError", "HullcalWarning", "ensembles"}


@pytest.mark.parametrize("room", [hc.measures, hc.nulls, hc.minimizers], ids=lambda r: r.__name__)
def test_a_type_checker_is_told_of_every_class_that_is_found_by_name(room):
    text = Path(room.__file__).read_text(encoding="utf-8")
    told = set(re.findall(r"^    from hullcal\.\w+\.\w+ import (\w+) as \1$", text, re.MULTILINE))
    assert told == {type(value).__name__ for value in room._registry._values.values()}


# -- versions and licences ----------------------------------------------------------------------------


def test_every_package_that_make_installs_is_pinned():
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {canonicalize_name(pin) for pin in re.findall(r"^([\w.-]+)==", pins, re.MULTILINE)}
    asked = {canonicalize_name(each) for listed in licences.declared().values() for each in listed}
    seen = set()
    while asked:
        seen.add(name := asked.pop())
        with contextlib.suppress(PackageNotFoundError):  # of another extra, system or Python
            needed = map(Requirement, requires(name) or ())
            found = (one for one in needed if not one.marker or one.marker.evaluate({"extra": ""}))
            asked |= {canonicalize_name(one.name) for one in found} - seen
    assert seen - pinned == set()


def test_the_hooks_run_the_ruff_that_make_lint_runs():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (hook,) = re.findall(r"ruff-pre-commit\n    rev: v(.+)", hooks)
    assert f"\nruff=={hook}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_oldest_environment_has_the_highest_lower_bound_of_every_package():
    oldest = environments.needed()
    assert oldest["numpy"] == "2.0.0"
    assert oldest["zarr"] == "3.1.3"  # by the tests, though users may have 3.0
    assert not environments.LEFT_OUT & oldest.keys()
    assert [n for n in environments.TESTS if not (ROOT / f"tests/test_{n}.py").exists()] == []


def test_every_test_that_judges_mutants_exists():
    names = [
        f"tests/{path.name}::{name}"
        for path in (ROOT / "tests").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    for file, patterns in subjects.TESTS.items():
        assert (ROOT / file).exists()
        for pattern in patterns:
            begins = re.split(r"[*\[]", pattern)[0]
            assert any(name.startswith(begins) for name in names), pattern


def test_every_dependency_has_a_row_among_the_licences():
    page = licences.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w.-]+) \| [\d][\w.]* \| ([^|]+) \|", page, re.MULTILINE)
    stated = {name: licence.strip() for name, licence in rows}
    declared = {one for listed in licences.declared().values() for one in listed}
    assert stated.keys() == declared
    assert "not stated" not in stated.values()
    assert len(rows) == len(stated)


def test_the_licences_of_installed_packages_are_those_on_the_page():
    page = licences.PAGE.read_text(encoding="utf-8")
    for package in licences.declared()[None]:
        version, licence = licences.licence(package)
        if f"| {package} | {version} |" in page:  # another release may say it in other words
            assert f"| {package} | {version} | {licence} |" in page
