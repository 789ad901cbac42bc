"""What do bits rest on that is not ours: the mathematical library, numpy, scipy, nlopt?

Additions, products, quotients and square roots are the same bits on every machine, and so are our own
exponentials. Logarithms and cosines are those of the machine, and may differ in the last place.
"""

import hashlib
import math
from importlib.metadata import PackageNotFoundError, version

import numba
import numpy as np


@numba.njit
def _elementary(x, out):
    for i in range(x.shape[0]):
        out[0, i] = math.log(x[i])
        out[1, i] = math.log1p(-x[i])
        out[2, i] = math.exp(-x[i])
        out[3, i] = math.cos(2.0 * math.pi * x[i])
        out[4, i] = math.lgamma(1.0 + x[i])


def _digest(values):
    return hashlib.sha256(values.tobytes()).hexdigest()[:16]


def machine():
    """A short name for each thing that bits may rest on; equal names, equal bits."""
    x = np.arange(1, 4096) / 4096.0
    out = np.empty((5, len(x)))
    _elementary(x, out)
    # numpy chooses its own loops for logarithms and exponentials, by the processor, and its library
    # for matrix products does so too, for each shape in its own way.
    square = np.sqrt(x[:4032]).reshape(64, 63)  # sums of short fractions are exact
    products = np.concatenate(
        [
            *((square[:n, :k] @ square[:n, :k].T).ravel() for n, k in ((64, 63), (3, 5), (10, 10))),
            *(square[0, :k] @ square[:n, :k].T for n, k in ((64, 63), (5, 3), (10, 10))),
            *(square[:n, 0] @ square[:n, :k] for n, k in ((10, 3), (10, 10), (50, 7))),
        ]
    )
    ours = _digest(out)
    theirs = _digest(np.concatenate([np.log(x), np.exp(-x), np.tanh(x), products]))
    return {
        "libm": ours,
        "numpy": f"{version('numpy')} {theirs}",
        "scipy": version("scipy"),
        "nlopt": _version_or_none("nlopt"),
    }


def _version_or_none(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None
