"""How are names, weights and tests put into words?"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The hypotheses H0 and H0', and both for a set of one member, for which they are the same.
CALIBRATED = "the convex hull of the members contains a calibrated classifier"
TRUTH = "the convex hull of the members contains the truth"
ONE_CALIBRATED = "the classifier is calibrated"
AVERAGE = "the plain average of the members is calibrated"

REJECTED, NOT_REJECTED = "Rejected", "Not rejected"
BORDERLINE, INCONCLUSIVE, IMPOSSIBLE = "Borderline", "Inconclusive", "Impossible"

#: What is not in doubt, and what is found false.
_STANDS = {
    CALIBRATED: "no evidence against a calibrated combination",
    TRUTH: "no evidence against a hull that contains the truth",
    ONE_CALIBRATED: "no evidence of miscalibration",
    AVERAGE: "no evidence against the plain average",
}
_FALLS = {
    CALIBRATED: "no combination found is calibrated",
    TRUTH: "evidence that labels follow no combination of the members",
    ONE_CALIBRATED: "the classifier is not calibrated",
    AVERAGE: "the plain average is not calibrated",
}
#: Members shown by name, and rows by number.
_SHOWN, _ROWS = 6, 5
#: Inverse temperatures closer to 1 have no direction.
_NO_DIRECTION = 0.02
_BARS = "▁▂▃▄▅▆▇█"
#: Measures that are expected errors of probabilities.
IN_POINTS = ("ece_conf", "ece_cwise", "ece_conf_smooth", "ece_cwise_smooth")
#: Settings of a measure that are not named, beside ten bins.
_USUAL = {"bandwidth": 1.0, "kernel": "exponential"}
#: Logarithms below which an e-value has nothing to say, and from which on powers of ten are clearer.
_NO_EVIDENCE, _WRITTEN_OUT = math.log(0.01), 12.0


def printable(text: str) -> str:
    """A user's name without characters that a terminal would obey or a page would swallow."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plural(n: int, noun: str) -> str:
    """A noun as it stands behind a number."""
    return noun if n == 1 else f"{noun}{'es' if noun.endswith('ch') else 's'}"


def in_columns(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Cells under each other, to the left; or to the right, but for the first column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if numbers and c else cell.ljust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


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
        words.append(f"{rest:.3f} on {n_rest} {plural(n_rest, 'other')}")
    return ", ".join(words)


def trust_in_words(coefficients: NDArray[np.float64], members: tuple[str, ...] | None) -> str:
    """The members whose predictions count too much in a combination, and too little."""
    names = [f"member {m}" for m in range(len(coefficients))] if members is None else members
    low, high = (
        f"{printable(names[m])} ({coefficients[m]:+.2f})"
        for m in (np.argmin(coefficients), np.argmax(coefficients))
    )
    if coefficients.min() >= 0.0:
        return f"deserves more weight: {high}"
    return f"deserves less weight: {low}" + f"; more: {high}" * bool(coefficients.max() > 0.0)


def rows_in_words(rows: tuple[int, ...]) -> str:
    """Row numbers, and a word where there are more."""
    shown = ", ".join(map(str, rows[:_ROWS]))
    return f"{plural(len(rows), 'row')} {shown}{', …' * (len(rows) > _ROWS)}"


def impossible_in_words(n_rows: int, rows: tuple[int, ...]) -> str:
    """How many labels refute a set, and where they are if that is known."""
    have = "label has" if n_rows == 1 else "labels have"
    where = f" ({rows_in_words(rows)})" if rows else ""
    return f"{n_rows} {have} probability 0 under every member{where}"


def evalue_in_words(log_evalue: float) -> str:
    """An e-value of any size: two digits of it, or a power of ten."""
    if log_evalue == math.inf:
        return "infinite"
    if log_evalue < _NO_EVIDENCE:
        return "below 0.01"
    if log_evalue < _WRITTEN_OUT:
        return f"{float(f'{math.exp(log_evalue):.2g}'):g}"
    return f"10^{log_evalue / math.log(10.0):.1f}"


def has_direction(temperature: float) -> bool:
    """Whether a temperature differs from 1 by more than rounding."""
    return abs(1.0 / temperature - 1.0) >= _NO_DIRECTION


def direction(temperature: float) -> str:
    """What a temperature says of the probabilities whose logits should be divided by it."""
    if not has_direction(temperature):
        return "neither over- nor underconfident"
    return "overconfident" if temperature > 1.0 else "underconfident"


def measure_in_words(result: Any) -> str:
    """The measure of a test, with those of its settings that are not the usual ones."""
    name = printable(str(getattr(result, "measure", "likelihood")))
    settings = result.settings.get("measure", {})
    if settings.get("n_bins", 10) != 10:
        name += f":{settings['n_bins']}"
    for key, usual in _USUAL.items():
        if settings.get(key, usual) != usual:
            name += f" ({key} {settings[key]})"
    return name


def headline(result: Any, adjusted: float | None = None) -> str:
    """One of five words for a test, whose p-value may have been adjusted for others."""
    p = result.pvalue if adjusted is None else adjusted
    if any(note.code == "impossible" and note.data["refutes"] for note in result.notes):
        return IMPOSSIBLE
    if p <= result.alpha and any(note.code == "too_few_rows" for note in result.notes):
        return INCONCLUSIVE
    # Whatever else the p-value could have been is adjusted by the same factor.
    low, high = (
        end * p / result.pvalue if result.pvalue else end for end in result.pvalue_interval
    )
    if low <= result.alpha <= high and result.n_resamples:
        return BORDERLINE
    return REJECTED if p <= result.alpha else NOT_REJECTED


class Verdict(NamedTuple):
    """The headline of a test with its p-value, what follows from it, and how large the effect is."""

    head: str
    claim: str
    size: str = ""

    def __str__(self) -> str:
        return f"{self.head}: {'; '.join(filter(None, self[1:]))}."


def verdict(
    result: Any,
    adjusted: float | None = None,
    *,
    word: str | None = None,
    size: str | None = None,
    several: bool = True,
    whose: str = ",",
) -> Verdict:
    """What a test says.

    `word` is the headline where other tests decide with it, `size` how large the effect is where more
    is known of it than in the result, `several` whether p is adjusted for several measures, `whose`
    what stands between p and the measure.
    """
    word = headline(result, adjusted) if word is None else word
    p = result.pvalue if adjusted is None else adjusted
    name = "p" if adjusted is None or not several else "adjusted p"
    how = measure_in_words(result)
    if hasattr(result, "log_evalue"):  # evidence without resampling, too
        how += f"; e-value {evalue_in_words(result.log_evalue)}"
    head = f"{word} ({name} = {p:.3g}{whose} {how})"
    if word == IMPOSSIBLE:
        n_rows = next(note.data["n_rows"] for note in result.notes if note.code == "impossible")
        return Verdict(head, impossible_in_words(n_rows, getattr(result, "impossible", ())))
    if word == INCONCLUSIVE:
        return Verdict(head, 'too few rows per bin for "recentered"; use null="stacked"')
    if word == BORDERLINE:
        low, high = result.pvalue_interval
        around = f"95 % Monte Carlo interval of p {low:.3g} to {high:.3g}"
        if adjusted is not None:
            around = f"alpha = {result.alpha:g} is within the Monte Carlo interval of p"
        more = "`n_resamples`" + " and `stop_after`" * stopped_early(result)
        return Verdict(head, f"{around}; increase {more}")
    claims = _STANDS if word == NOT_REJECTED else _FALLS
    if size is None:
        # A temperature that is no evidence has no direction.
        size = "" if word == NOT_REJECTED and hasattr(result, "temperature") else _size(result)
    return Verdict(head, claims[result.hypothesis], size)


def stopped_early(result: Any) -> bool:
    """Whether a test ran fewer resamples than it might have."""
    return bool(result.n_resamples < result.settings.get("n_resamples", 0))


def _size(result: Any) -> str:
    """How large the effect is, from the result alone."""
    if hasattr(result, "temperature"):
        if math.isinf(result.log_evalue):
            return ""
        whose = (
            "it is"
            if result.hypothesis == ONE_CALIBRATED
            else "the combination that fits the labels best is"
        )
        return f"{whose} {result.direction} (temperature {result.temperature:.2f})"
    whose = "the best combination is" if result.hypothesis in (CALIBRATED, TRUTH) else "it is"
    if result.measure not in IN_POINTS:
        return f"{result.measure} = {result.minimum:.3g}"
    return f"{whose} off by {100 * result.minimum:.1f} points"


def null_in_words(result: Any, *, width: int = 24) -> str:
    """A histogram of the null values in one line, with a mark where the statistic is."""
    finite = result.null_distribution[np.isfinite(result.null_distribution)]
    if not len(finite):
        return ""
    low, high = float(finite.min()), float(finite.max())
    at = result.statistic
    if math.isfinite(at):
        low, high = min(low, at), max(high, at)
    # Values that are all but equal would leave no numbers for the edges between them.
    room = 100 * width * float(np.spacing(max(abs(low), abs(high), 1e-9)))
    counts, edges = np.histogram(finite, bins=width, range=(low, max(high, low + room)))
    heights = np.ceil(counts / counts.max() * (len(_BARS) - 1)).astype(int)
    line = "".join(_BARS[height] if height else " " for height in heights)
    place = int(np.clip(np.searchsorted(edges, at, side="right") - 1, 0, width - 1))
    return f"{line[:place]}▲{line[place + 1 :]}"


def facts_of(result: Any) -> dict[str, str]:
    """What a test found and how it was run, line by line."""
    low, high = result.pvalue_interval
    d, several = result.n_resamples, result.n_members > 1
    likelihood = hasattr(result, "log_evalue")
    facts = {"hypothesis": result.hypothesis}
    if d:
        facts["p-value"] = (
            f"{result.pvalue:.4g} (95 % Monte Carlo interval {low:.3g} to {high:.3g})"
        )
        name = "log-likelihood ratio" if likelihood else measure_in_words(result)
        critical = f"critical value {result.critical_value:.4g} at alpha = {result.alpha:g}"
        facts["statistic"] = f"{name} = {result.statistic:.4g} ({critical})"
        facts["null"] = f"{null_in_words(result)}  (▲ statistic)"
    else:
        facts["p-value"] = f"{result.pvalue:.4g} (1 / e-value; no resampling)"
    if likelihood:
        facts["e-value"] = (
            f"{evalue_in_words(result.log_evalue)} ({1 / result.alpha:g} or more rejects)"
        )
        facts["temperature"] = (
            f"{result.temperature:.3g}: the combination that fits the labels best is {result.direction}"
        )
    elif several:
        facts["minimum"] = f"{measure_in_words(result)} = {result.minimum:.4g}, at these weights:"
    if several:
        facts["weights"] = (
            f"{weights_in_words(result.weights, result.members)} (fitted to these rows; expect "
            "worse calibration on new data)"
        )
    if likelihood and several and result.pool[1:].any():
        facts["pool"] = trust_in_words(result.pool[1:], result.members)
    if likelihood and result.surprises and not result.impossible:
        pairs = zip(result.surprises[:_ROWS], result.surprise_probabilities, strict=False)
        facts["surprises"] = "least likely labels: " + ", ".join(
            f"row {row} ({chance:.2g})" for row, chance in pairs
        )
    how = [] if likelihood else [f"null {result.null}"]
    if several and not likelihood:
        how.append(f"minimizer {result.minimizer}, {result.n_evaluations} evaluations")
    facts["run"] = "; ".join([*how, f"{d} {plural(d, 'resample')}", f"seed {result.seed}"])
    n, members = result.n_samples, f"{result.n_members} {plural(result.n_members, 'member')}"
    facts["data"] = f"{n} {plural(n, 'row')}, {members}, {result.n_classes} classes"
    return facts


def result_in_words(result: Any) -> str:
    """The verdict of a test, then the facts."""
    lines = [f"  {name:<12} {value}" for name, value in facts_of(result).items()]
    lines += [f"  note         {note}" for note in result.notes]
    if headline(result) == NOT_REJECTED:
        lines.append("Failing to reject does not prove calibration.")
    return "\n".join([str(verdict(result)), *lines])


#: Colours of headlines, readable on light and dark pages.
COLOURS = {
    REJECTED: "#c2410c",
    IMPOSSIBLE: "#c2410c",
    BORDERLINE: "#a16207",
    INCONCLUSIVE: "#a16207",
    NOT_REJECTED: "#0369a1",
}


def in_html(said: object, facts: dict[str, str], word: str = "") -> str:
    """A verdict that begins with `word`, if any, and facts; names are text, never markup."""
    rest = html.escape(str(said).removeprefix(word))
    colour = COLOURS.get(word, "inherit")
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    first = f'<strong style="color:{colour}">{word}</strong>' if word else ""
    table = f"<table>{rows}</table>" if rows else ""
    return f"<div><p>{first}{rest}</p>{table}</div>"
