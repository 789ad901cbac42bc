"""What a loop keeps in `scratch` from one call to the next, and how it knows whose that is."""

from __future__ import annotations

from hullcal._compiled.jit import compiled_inline

#: The mark: no number that a loop would leave there by chance.
SAME = 1.0e-300 / 3.0


@compiled_inline
def again(scratch):  # type: ignore[no-untyped-def]
    """Whether the caller has marked the predictions as those of the last call; takes the mark away."""
    marked = scratch[-1] == SAME
    scratch[-1] = 0.0
    return marked


@compiled_inline
def all_once(row_weights):  # type: ignore[no-untyped-def]
    """Whether every row counts once."""
    others = 0
    for n in range(row_weights.shape[0]):
        others += int(row_weights[n] != 1.0)
    return others == 0
