"""The data set and the computations whose numbers are kept.

Every entry says what its bits rest on beside our own arithmetic: see `machine.py`.
"""

import hashlib
import importlib.util
import itertools

import numpy as np

import hullcal as hc
import simulation
from hullcal.minimizers import Cobyla, Exact, Pairwise, Random, Slsqp, Steepest

N_SAMPLES, N_MEMBERS, N_CLASSES = 60, 3, 3
SEED = 20230419
#: Probabilities are whole multiples of 1 / UNIT, so they are exact.
UNIT = 2**20


def integers():
    """A linear congruential generator in integer arithmetic, which no package can change."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def data():
    """Members around a truth that the labels follow; the last member is too sure of itself."""
    draw = integers()
    probs = np.empty((N_SAMPLES, N_MEMBERS, N_CLASSES))
    labels = np.empty(N_SAMPLES, dtype=np.int32)
    for row in range(N_SAMPLES):
        truth = [1 + next(draw) % 1000 for _ in range(N_CLASSES)]
        for member in range(N_MEMBERS):
            shares = [each + next(draw) % 300 for each in truth]
            if member == N_MEMBERS - 1:
                shares = [share * share for share in shares]
            probs[row, member] = _exact(shares)
        ends = list(itertools.accumulate(truth))
        level = next(draw) % ends[-1]
        labels[row] = sum(end <= level for end in ends)
    return probs, labels


def _exact(shares):
    total = sum(shares)
    parts = [share * UNIT // total for share in shares[1:]]
    return [(UNIT - sum(parts)) / UNIT, *(part / UNIT for part in parts)]


def digest(probs, labels):
    """A name of the data, so that a file tells when they have changed."""
    return hashlib.sha256(probs.tobytes() + labels.tobytes()).hexdigest()[:16]


def plain(value):
    """What JSON can hold, with floats by their bits."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(value).hex()
    return value.item() if isinstance(value, np.generic) else value


def entry(rests_on, configuration, found):
    return {"rests_on": rests_on, "configuration": configuration, "found": plain(found)}


def of_test(measure, null):
    """One test; a pair that is refused is kept by the words of the refusal."""
    probs, labels = data()
    options = {"measure": measure, "null": null, "n_resamples": 39, "alpha": 0.1, "rng": SEED}
    result = simulation.judged(probs, labels, **options)
    found = {
        "statistic": result.statistic,
        "weights": result.weights,
        "null_distribution": result.null_distribution,
        "pvalue": result.pvalue,
        "critical_value": result.critical_value,
        "n_evaluations": result.n_evaluations,
        "converged": result.converged,
        "seed": result.seed,
        "settings": result.settings,
    }
    # Restarts of the search are drawn by logarithms and cosines. What numpy contributes to
    # `stacked` decides which labels are drawn, and no number beyond that.
    configuration = {**options, "minimizer": "steepest", "data": digest(probs, labels)}
    return entry(["libm"], configuration, found)


#: A search, a measure that it takes, how many members, and what its bits rest on. Searches of scipy add
#: up in numpy and in a library for matrices, which choose their loops by the processor.
SEARCHES = {
    "steepest": (Steepest(max_evaluations=60), "ece_conf", 3, ["libm"]),
    "pairwise": (Pairwise(max_evaluations=300), "ece_conf", 3, ["libm"]),
    "exact": (Exact(), "ece_cwise", 2, []),
    "random": (Random(max_evaluations=300), "ece_conf", 3, ["numpy"]),
    "cobyla": (Cobyla(max_evaluations=60), "ece_conf", 3, ["scipy", "numpy"]),
    "cobyla by nlopt": (None, "ece_conf", 3, ["nlopt"]),
    "slsqp": (Slsqp(max_evaluations=300), "skce_uq", 3, ["scipy", "numpy", "libm"]),
}


def minimized():
    """Every search, once."""
    probs, labels = data()
    out = {}
    for name, (search, measure, n_members, rests_on) in SEARCHES.items():
        if search is None:
            if importlib.util.find_spec("nlopt") is None:
                continue
            search = Cobyla(max_evaluations=60, library="nlopt")
        result = hc.minimize(
            probs[:, :n_members], labels, measure=measure, minimizer=search, rng=SEED
        )
        found = {
            "value": result.value,
            "weights": result.weights,
            "n_evaluations": result.n_evaluations,
            "converged": result.converged,
        }
        configuration = {"measure": measure, "n_members": n_members, "settings": result.settings}
        out[name] = entry(rests_on, {**configuration, "rng": SEED}, found)
    return out


def simulated():
    """Every scenario, by numpy's random numbers and by its logarithms and exponentials."""
    out = {}
    for name in hc.simulation.HOLDS:
        sizes = {"n_members": 3, "n_classes": 3, "spread": 0.5}
        if name == "calibrated":
            sizes = {"n_members": 2, "n_classes": 2}
        options = {"name": name, "n_samples": 8, **sizes, "rng": SEED}
        drawn = hc.simulation.scenario(**options)
        found = {"probs": drawn.probs, "labels": drawn.labels, "truth": drawn.truth}
        if drawn.weights is not None:
            found["weights"] = drawn.weights
        out[name] = entry(["numpy", "libm"], options, found)
    return out


def classical():
    """Tests of one classifier: the first member."""
    probs, labels = data()
    one = probs[:, 0]
    bootstrap = {"estimator": "uq", "method": "bootstrap", "n_resamples": 39, "rng": SEED}
    resampled = {"measure": "ece_cwise", "n_resamples": 39, "alpha": 0.1, "rng": SEED}
    bounds = [{"estimator": each, "method": "distribution_free"} for each in ("ul", "uq", "b")]
    tests = [
        ("hosmer_lemeshow", {"n_bins": 2}, ["scipy"]),
        ("resampling_test", resampled, ["libm"]),
        ("skce_test", {"estimator": "ul", "method": "asymptotic"}, ["numpy", "libm"]),
        ("skce_test", bootstrap, ["numpy", "libm"]),
        *(("skce_test", bound, ["libm"]) for bound in bounds),
    ]
    out = {}
    for test, options, rests_on in tests:
        result = getattr(hc.classical, test)(one, labels, **options)
        found = {"statistic": result.statistic, "pvalue": result.pvalue}
        if result.null_distribution.size:
            found["null_distribution"] = result.null_distribution
        name = " ".join(
            [test, *(str(options[key]) for key in ("estimator", "method") if key in options)]
        )
        out[name] = entry(rests_on, options, found)
    return out


def sizes():
    """How large the set is."""
    probs, _ = data()
    return {"summary": entry(["numpy", "libm"], {}, dict(hc.uncertainty.summary(probs)))}


def cases():
    """Every file by its name, and how its content is computed."""
    tests = itertools.product(hc.measures.available(), simulation.NULLS)
    return {
        **{
            f"{measure}-{null}": lambda measure=measure, null=null: {"test": of_test(measure, null)}
            for measure, null in tests
        },
        "minimize": minimized,
        "scenario": simulated,
        "classical": classical,
        "uncertainty": sizes,
    }
