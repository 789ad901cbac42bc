"""How are names, weights and tests put into words?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["printable", "result_in_words", "weights_in_words"]

#: Members shown by name.
_SHOWN = 6


def printable(text: str) -> str:
    """A user's name without characters that a terminal would obey or a page would swallow."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def weights_in_words(weights: NDArray[np.float64], members: tuple[str, ...] | None) -> str:
    """The largest weights by member, and how much the others share."""
    order = np.argsort(-weights, kind="stable")
    # One more takes no more room than saying that there is one.
    most = _SHOWN + (np.count_nonzero(weights) == _SHOWN + 1)
    shown = [m for m in order[:most] if weights[m] > 0.0005]
    words = [
        f"{weights[m]:.3f} on {f'member {m}' if members is None else printable(members[m])}"
        for m in shown
    ]
    rest = math.fsum(weights[order[len(shown) :]])
    n_rest = int(np.count_nonzero(weights)) - len(shown)
    if n_rest > 0 and rest >= 0.0005:
        words.append(f"{rest:.3f} on {n_rest} others")
    return ", ".join(words)


def result_in_words(result: Any) -> str:
    """What a `CalibrationTestResult` says of itself."""
    low, high = result.pvalue_interval
    verdict = "REJECTED" if result.rejected else "not rejected"
    to_raise = "n_resamples" + " and stop_after" * ("stop_after" in result.settings)
    lines = [
        f"Hypothesis   {result.hypothesis}",
        f"Verdict      {verdict} at alpha = {result.alpha:g}"
        + (f"  (too close to call: raise {to_raise})" if result.too_close_to_call else ""),
        f"p-value      {result.pvalue:.4g}   (95 % Monte Carlo interval {low:.4g} to {high:.4g})",
        f"Statistic    {result.measure} = {result.statistic:.6g}   "
        f"(critical value {result.critical_value:.6g})",
        *_search_in_words(result),
        f"Data         {result.n_samples} rows, {result.n_members} member"
        f"{'s' if result.n_members > 1 else ''}, {result.n_classes} classes; seed {result.seed}",
    ]
    if not result.rejected:
        lines.insert(2, "             (which is not proof that the hypothesis is true)")
    return "\n".join(lines + [f"Note         {note}" for note in result.notes])


def _search_in_words(result: Any) -> list[str]:
    run = f"Run          null {result.null}, {result.n_resamples} resamples"
    if result.n_members == 1:
        return [run]
    return [
        f"Minimum      {result.measure} = {result.minimum:.6g}, at these weights:",
        f"Weights      {weights_in_words(result.weights, result.members)}",
        "             fitted to these rows; expect worse calibration on new data",
        f"{run}; minimizer {result.minimizer}, {result.n_evaluations} evaluations",
    ]
