"""What the terminal shows: plain text in columns, safe to pipe."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from hullcal.words import weights_in_words

#: Probabilities beyond which nothing is computed but what was asked for.
_MANY = 2**24


def command_line(seed: int) -> str:
    """The command as it was typed, to be repeated: with the seed, if that was left to chance."""
    name, *words = sys.argv[1:] or [""]
    given = {word.partition("=")[0] for word in words}
    if "--seed" not in given:
        words = ["--seed", str(seed), *words]
    # What it wrote will be there.
    if given & {"--report", "--output", "-o"} and "--force" not in given:
        words.append("--force")
    return shlex.join(["hullcal", name, *words])


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells under their headings, the first column to the left and the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def assessment(found: Any) -> str:
    """Answers in words, then the figures."""
    results = found.results
    several = len(found.measures) > 1
    header = ["measure", "null", "statistic", "critical", "p", "95 % interval"]
    header += ["adjusted p"] * several + ["decision"]
    rows = []
    for result, adjusted in zip(results, found.adjusted, strict=True):
        low, high = result.pvalue_interval
        row = [
            *(result.measure, result.null),
            *(f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
            *(f"{result.pvalue:.3g}", f"{low:.3g} to {high:.3g}"),
        ]
        row += [f"{adjusted:.3g}"] * several
        rows.append([*row, "rejected" if adjusted <= result.alpha else "not rejected"])
    first = results[0]
    fewest, most = (end(result.n_resamples for result in results) for end in (min, max))
    resamples = str(most) if fewest == most else f"{fewest} to {most}"
    lines = [
        f"{first.n_samples} rows, {first.n_members} member{'s' * (first.n_members > 1)}, "
        f"{first.n_classes} classes; {resamples} resamples, alpha {first.alpha:g}, "
        f"seed {first.seed}",
        "",
        *found.sentences(),
        "",
        columns(header, rows),
        "",
        *(_weights_in_words(found) if first.n_members > 1 else ()),
        *_quality_in_words(found),
    ]
    if not all(found.rejected(null) for null in found.nulls):
        lines.append("Not rejecting is no proof.")
    return "\n".join(lines + [f"Note: {note}" for note in found.notes()])


def _quality_in_words(found: Any) -> list[str]:
    """What somebody would use: how good is the average, and what do the weights cost?"""
    classifiers = found.data.classifiers
    # Only workers have seen the predictions, or they are too many to be mixed by the way.
    if classifiers is None or classifiers.probs.size > _MANY:
        return []
    average = found.quality("mean")
    if found.best.n_members == 1:
        return [f"Accuracy {average['accuracy']:.3f}."]
    pairs = (("plain average", average), (found.combination, found.quality(found.weights)))
    said = (
        f"the {name} has " + ", ".join(f"{what} {value:.4g}" for what, value in each.items())
        for name, each in pairs
    )
    sentence = "; ".join(said) + "."
    return [sentence[0].upper() + sentence[1:]]


def _weights_in_words(found: Any) -> list[str]:
    best = found.best
    shown = weights_in_words(best.weights, best.members)
    return [
        f"{found.combination.capitalize()} by {best.measure} ({best.minimum:.4g}): {shown}",
        "Weights are fitted to these rows; expect worse calibration on new data.",
    ]
