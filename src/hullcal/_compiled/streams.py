"""Counter-based random numbers: a draw depends on its address and on nothing else.

The address is (seed, purpose, replicate, row, copy), the generator Philox 4x32-10 (Salmon et al.,
2011). Since no state is carried, no number of threads, workers or chunks can change a draw.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline

# What a stream is for: the last word of the counter.
ROWS, LABELS, WEIGHTS, SEARCH, SIGNS, SPLITS = (np.uint64(purpose) for purpose in range(6))

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_FIVE, _SIX = np.uint64(5), np.uint64(6)


def key_of(seed: int) -> NDArray[np.uint64]:
    """The two key words of a seed of any size."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint32).astype(np.uint64)


@compiled_inline
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Ten rounds on four counter words and two key words, each a uint64 below 2**32."""
    # The masks change nothing but tell the compiler that 32-bit products will do: a loop over draws
    # then runs several at a time.
    c0, c1, c2, c3 = c0 & _LOW, c1 & _LOW, c2 & _LOW, c3 & _LOW
    k0, k1 = k0 & _LOW, k1 & _LOW
    for _ in range(10):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> _HALF) ^ c1 ^ k0,
            product_1 & _LOW,
            (product_0 >> _HALF) ^ c3 ^ k1,
            product_0 & _LOW,
        )
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@compiled_inline
def uniform(key, purpose, replicate, row, copy):  # type: ignore[no-untyped-def]
    """One double in [0, 1) with 53 random bits."""
    a, b, _, _ = philox(
        np.uint64(row), np.uint64(copy), np.uint64(replicate), purpose, key[0], key[1]
    )
    high, low = np.int32(a >> _FIVE), np.int32(b >> _SIX)
    return (high * 67108864.0 + low) / 9007199254740992.0


@compiled
def uniforms(key, purpose, replicate, out):  # type: ignore[no-untyped-def]
    """The first copy's number of rows 0, 1, ...; a loop of its own, so that it vectorises."""
    for row in range(out.shape[0]):
        out[row] = uniform(key, purpose, replicate, row, 0)


@compiled
def uniform_weights(key, replicate, out):  # type: ignore[no-untyped-def]
    """One draw from Dirichlet(1, ..., 1), the uniform distribution on the simplex, into `out`."""
    total = 0.0
    for m in range(out.shape[0]):
        out[m] = -math.log1p(-uniform(key, WEIGHTS, replicate, m, 0))
        total += out[m]
    for m in range(out.shape[0]):
        out[m] /= total


@compiled
def sparse_weights(key, restart, out):  # type: ignore[no-untyped-def]
    """One draw from Dirichlet(1/2, ..., 1/2): half a squared normal is a Gamma(1/2) variable."""
    total = 0.0
    for m in range(out.shape[0]):
        radius = -math.log1p(-uniform(key, SEARCH, restart, m, 0))
        angle = math.cos(2.0 * math.pi * uniform(key, SEARCH, restart, m, 1))
        out[m] = radius * angle * angle
        total += out[m]
    for m in range(out.shape[0]):
        out[m] /= total
