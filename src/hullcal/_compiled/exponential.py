"""exp of many non-positive numbers at once; a loop of calls of `math.exp` cannot vectorise."""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.jit import compiled

_LOG2_E = 1.0 / math.log(2.0)
#: ln 2 in two parts: products of the first with small integers are exact.
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
#: Adding and subtracting this rounds to the nearest integer.
_ROUND = 1.5 * 2.0**52
#: Below this the result would be subnormal, and counts as 0.
_LOWEST = -708.0
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(power) for power in range(2, 14)
)


@compiled
def exponentials(x, scale):  # type: ignore[no-untyped-def]
    """Replace x <= 0 by exp(x), within 1.5 units in the last place; `scale` is scratch of its size.

    With n the integer nearest to x / ln 2 and r = x - n ln 2, exp(x) = 2^n exp(r), and thirteen
    terms of the series suffice for |r| <= (ln 2) / 2.
    """
    bits = scale.view(np.int64)
    for i in range(x.shape[0]):
        clipped = max(x[i], _LOWEST)
        n = (clipped * _LOG2_E + _ROUND) - _ROUND
        r = (clipped - n * _LN2_HIGH) - n * _LN2_LOW
        # Short chains of additions side by side, joined by powers of r (Estrin's scheme).
        s = r * r
        q = s * s
        low = (_C2 + r * _C3) + s * (_C4 + r * _C5)
        middle = (_C6 + r * _C7) + s * (_C8 + r * _C9)
        high = (_C10 + r * _C11) + s * (_C12 + r * _C13)
        series = 1.0 + (r + s * (low + q * (middle + q * high)))
        # The exponent field of a double holds n + 1023.
        bits[i] = np.int64(np.int32(n) + 1023) << 52
        x[i] = series if x[i] >= _LOWEST else 0.0
    for i in range(x.shape[0]):
        x[i] *= scale[i]
