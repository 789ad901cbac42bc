"""Numbers that were found once are found again: bit for bit where what they rest on is the same.

The files and what made them are in `golden/`; `python tests/golden/make_golden.py` says what differs.
"""

import itertools
import json
import math

import numba
import numpy as np
import pytest

import hullcal as hc
import simulation
from golden import make_golden
from golden.cases import UNIT, cases, data
from golden.machine import machine

# Uncompiled loops are compared with compiled ones in test_uncompiled.py, on smaller data.
pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="golden numbers are those of the compiled loops"
)

CASES = cases()
#: A last place of a logarithm moves weights by 1e-16, and numbers that follow from them by little more.
RTOL, ATOL = 1e-12, 1e-14


def kept(name):
    return make_golden.read(make_golden.FOLDER / f"{name}.json")


def differing(entry, here, there):
    """Which of the things that an entry rests on are not those that it was made with."""
    return [thing for thing in entry["rests_on"] if here[thing] != there[thing]]


def assert_same(found, expected, differ, place=""):
    """Every bit; within the tolerance where a logarithm may have another last place."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for name in expected:
            assert_same(found[name], expected[name], differ, f"{place}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, differ, f"{place}[{i}]")
    elif differ and _is_float(found) and _is_float(expected):
        got, wanted = float.fromhex(found), float.fromhex(expected)
        close = got == wanted or math.isclose(got, wanted, rel_tol=RTOL, abs_tol=ATOL)
        assert close, f"{place}: {got!r}, not {wanted!r} (made with another {', '.join(differ)})"
    else:
        assert found == expected, place


def _is_float(value):
    return isinstance(value, str) and ("0x" in value or value in ("inf", "-inf", "nan"))


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_found_again(name):
    here, there = machine(), kept("machine")
    found = json.loads(json.dumps(CASES[name]()))
    for part, expected in kept(name).items():
        differ = differing(expected, here, there)
        if differ and {"scipy", "nlopt"} & set(expected["rests_on"]) and name == "minimize":
            # One other last place, and such a search walks another path, to another point as good.
            value, wanted = (
                float.fromhex(one["found"]["value"]) for one in (found[part], expected)
            )
            assert value == pytest.approx(wanted, rel=0.1), part
            continue
        assert_same(found[part], expected, differ, f"{name}, {part}")


def test_every_measure_under_every_null_and_every_search_has_its_numbers():
    pairs = itertools.product(hc.measures.available(), simulation.NULLS)
    tests = {f"{measure}-{null}" for measure, null in pairs}
    files = {path.stem for path in make_golden.FOLDER.glob("*.json")}
    assert files == tests | {"minimize", "scenario", "classical", "uncertainty", "machine"}
    searches = {part.partition(" ")[0] for part in kept("minimize")}
    assert searches == set(hc.minimizers.available())
    assert set(kept("scenario")) == set(hc.simulation.HOLDS)


def test_the_data_are_exact_and_sum_to_one_without_rounding():
    probs, labels = data()
    numerators = probs * UNIT
    assert np.array_equal(numerators, np.rint(numerators))
    assert np.array_equal(numerators.sum(axis=2), np.full(probs.shape[:2], UNIT))
    assert probs.min() > 0.0
    assert set(labels) == {0, 1, 2}


# -- the comparison itself can fail -------------------------------------------------------------------


def test_one_bit_is_noticed():
    expected = kept("ece_conf-refit")["test"]["found"]
    last = float.fromhex(expected["null_distribution"][-1])
    for other in (math.nextafter(last, 1.0), last + 1e-9):
        changed = json.loads(json.dumps(expected))
        changed["null_distribution"][-1] = other.hex()
        with pytest.raises(AssertionError, match=r"null_distribution\[38\]"):
            assert_same(changed, expected, [])
    with pytest.raises(AssertionError, match="made with another libm"):
        assert_same(changed, expected, ["libm"])


def test_a_last_place_is_allowed_where_the_logarithms_are_others():
    expected = kept("ece_conf-refit")["test"]["found"]
    changed = json.loads(json.dumps(expected))
    changed["statistic"] = math.nextafter(float.fromhex(expected["statistic"]), 1.0).hex()
    assert_same(changed, expected, ["libm"])
    changed["n_evaluations"] += 1
    with pytest.raises(AssertionError, match="n_evaluations"):
        assert_same(changed, expected, ["libm"])


# -- the script ---------------------------------------------------------------------------------------


def test_the_script_writes_nothing_until_it_is_told_to(tmp_path, capsys):
    path = tmp_path / "uncertainty.json"
    path.write_text('{"summary": {"found": {"tv_diameter": "0x1.0p-1"}}}', encoding="utf-8")
    before = path.read_bytes()
    assert make_golden.main(["uncertainty"], tmp_path) == 1
    said = capsys.readouterr().out
    assert "summary.found.tv_diameter: 0.5 (0x1.0p-1) was kept" in said
    assert "--update" in said
    assert path.read_bytes() == before
    assert make_golden.main(["uncertainty", "--update"], tmp_path) == 0
    assert make_golden.read(path) == CASES["uncertainty"]()
    assert make_golden.main(["uncertainty"], tmp_path) == 0
    assert capsys.readouterr().out.endswith("nothing differs\n")


def test_the_script_knows_no_file_but_its_own(tmp_path, capsys):
    with pytest.raises(SystemExit):
        make_golden.main(["uncertainity"], tmp_path)
    assert "no such file: uncertainity" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
