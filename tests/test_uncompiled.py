"""The compiled loops run uncompiled and give the same numbers.

Run as a program, this file prints the outcome of every measure under every null as JSON.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import hullcal as hc
from hullcal._compiled.jit import is_compiled

N, M, K, D = 12, 3, 3, 9


def data(kind):
    """Members and labels; "tied" ones are in quarters, with zeros, ones and bin edges."""
    rng = np.random.default_rng(11)
    if kind == "tied":
        probs = rng.multinomial(4, np.full(K, 1 / K), size=(N, M)) / 4
        probs[rng.random((N, M)) < 0.2] = np.eye(K)[0]
    else:
        probs = rng.dirichlet(np.ones(K), size=(N, M))
    return probs, rng.integers(K, size=N)


def outcomes(kind):
    """Statistic, weights, null values and p-value of every measure under every null."""
    probs, labels = data(kind)
    pairwise = hc.minimizers.Pairwise(max_evaluations=40)
    steepest = hc.minimizers.Steepest(max_evaluations=5)
    found = {}
    for measure in hc.measures.available():
        for null in hc.nulls.available():
            result = hc.calibration_test(
                probs,
                labels,
                measure=measure,
                null=null,
                minimizer=steepest if null == "maximized" else pairwise,
                n_resamples=D,
                alpha=0.2,
                rng=3,
            )
            found[f"{measure} {null}"] = {
                "statistic": result.statistic,
                "weights": result.weights.tolist(),
                "null": result.null_distribution.tolist(),
                "pvalue": result.pvalue,
                "n_evaluations": result.n_evaluations,
                "converged": result.converged,
            }
    return found


def elsewhere(kind, *, compiled):
    """The same outcomes from a process of its own, compiled or not."""
    source = Path(hc.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, __file__, kind],
        env={
            **os.environ,
            "PYTHONPATH": str(source),
            "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    answer = json.loads(done.stdout)
    assert answer["compiled"] is compiled
    return answer["outcomes"]


@pytest.mark.parametrize("kind", ["smooth", "tied"])
def test_every_measure_and_null_gives_the_same_numbers_uncompiled(kind):
    # Both in processes of their own: a loop that writes beside its array must be seen as that.
    expected, got = (elsewhere(kind, compiled=compiled) for compiled in (True, False))
    assert expected.keys() == got.keys()
    assert len(expected) == len(hc.measures.available()) * len(hc.nulls.available())
    for what, numbers in expected.items():
        for name in ("statistic", "weights", "null"):
            np.testing.assert_allclose(
                got[what][name], numbers[name], rtol=1e-12, atol=1e-12, err_msg=f"{what}: {name}"
            )
        for name in ("pvalue", "n_evaluations", "converged"):
            assert got[what][name] == numbers[name], f"{what}: {name}"
        assert not np.isnan(got[what]["null"]).any()


@pytest.mark.parametrize("measure", hc.measures.available())
def test_the_loops_are_compiled_here_unless_that_is_switched_off(measure):
    switched_off = bool(numba.config.DISABLE_JIT)
    assert is_compiled(hc.measures.resolve(measure).value) is not switched_off


if __name__ == "__main__":
    loop = hc.measures.resolve("ece_conf").value
    print(json.dumps({"compiled": is_compiled(loop), "outcomes": outcomes(sys.argv[1])}))
