"""exp(-x) of many x >= 0 at once; a loop of calls of `math.exp` cannot vectorise."""

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
#: Beyond this the result would be subnormal, and counts as 0.
_LAST = 708.0
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(power) for power in range(2, 14)
)
#: (1 - exp(-x)) / x, interpolated at the twelve Chebyshev nodes of [0, 1]: off by 3e-17 at most.
_D0, _D1, _D2, _D3 = 1.0, -0.4999999999999964, 0.1666666666664944, -0.041666666663443576
_D4, _D5, _D6 = 0.008333333302138762, -0.0013888887104824001, 0.0001984120502317959
_D7, _D8, _D9 = -2.4800032289946006e-05, 2.753231109497008e-06, -2.7289403227036547e-07
_D10, _D11 = 2.3200975871202737e-08, -1.3221480811326931e-09


@compiled
def decays(x, scale):  # type: ignore[no-untyped-def]
    """Replace x >= 0 by exp(-x), within 1.5 units in the last place; `scale` is scratch of its size.

    With n the integer nearest to -x / ln 2 and r = -x - n ln 2, exp(-x) = 2^n exp(r), and thirteen
    terms of the series suffice for |r| <= (ln 2) / 2.
    """
    bits = scale.view(np.int64)
    for i in range(x.shape[0]):
        exponent = -min(x[i], _LAST)
        n = (exponent * _LOG2_E + _ROUND) - _ROUND
        r = (exponent - n * _LN2_HIGH) - n * _LN2_LOW
        # Short chains of additions side by side, joined by powers of r (Estrin's scheme).
        s = r * r
        q = s * s
        low = (_C2 + r * _C3) + s * (_C4 + r * _C5)
        middle = (_C6 + r * _C7) + s * (_C8 + r * _C9)
        high = (_C10 + r * _C11) + s * (_C12 + r * _C13)
        series = 1.0 + (r + s * (low + q * (middle + q * high)))
        # The exponent field of a double holds n + 1023.
        bits[i] = np.int64(np.int32(n) + 1023) << 52
        x[i] = series if x[i] <= _LAST else 0.0
    for i in range(x.shape[0]):
        x[i] *= scale[i]


@compiled
def short_decays(x):  # type: ignore[no-untyped-def]
    """Replace 0 <= x <= 1 by exp(-x), within 2 units in the last place, at half the cost of `decays`."""
    for i in range(x.shape[0]):
        r = x[i]
        s = r * r
        q = s * s
        low = (_D0 + r * _D1) + s * (_D2 + r * _D3)
        middle = (_D4 + r * _D5) + s * (_D6 + r * _D7)
        high = (_D8 + r * _D9) + s * (_D10 + r * _D11)
        x[i] = 1.0 - r * ((low + q * middle) + (q * q) * high)
