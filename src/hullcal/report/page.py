"""The page itself: what goes into the template, and the policy that guards it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from hullcal.assessment import Assessment
from hullcal.io.results import versions
from hullcal.minimizers.steepest import Steepest
from hullcal.report.classes import ClassGap, class_gaps
from hullcal.report.figures import ROWS, class_name, figures, some_rows
from hullcal.results import CalibrationTestResult
from hullcal.uncertainty import UNITS
from hullcal.words import printable

#: Members and classes listed by name; the figures sum up the others.
_SHOWN = 20


def render(
    assessments: Assessment | Mapping[str, Assessment],
    *,
    title: str | None = None,
    command: str | None = None,
) -> str:
    """The report of one or more assessments as one HTML page that needs nothing else.

    Parameters
    ----------
    assessments : Assessment, or mapping of names to them
        What `hullcal.assessment.assess` found, for one set or for several.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command that repeats the run.

    Returns
    -------
    str
    """
    from jinja2 import Environment, StrictUndefined

    room = files("hullcal.report")
    style, script, template = (
        room.joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js", "page.html")
    )
    named = {"": assessments} if isinstance(assessments, Assessment) else dict(assessments)
    parts = [_part(number, name, each) for number, (name, each) in enumerate(named.items())]
    for index, row in enumerate(row for part in parts for row in part["rows"]):
        row["index"] = index
    first = next(iter(named.values()))
    # Whatever came from users reaches the page through the template's escaping alone.
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(template).render(
        title=printable(title or "Calibration report"),
        policy=_policy(style, script),
        style=style,
        script=script,
        data=_embedded(
            [entry for n, each in enumerate(named.values()) for entry in _data(n, each)]
        ),
        parts=parts,
        alpha=first.results[0].alpha,
        versions=[(name.replace("python", "Python"), each) for name, each in versions().items()],
        command=printable(command or ""),
    )


def _part(number: int, name: str, assessment: Assessment) -> dict[str, Any]:
    """What the template shows of one set."""
    several = assessment.best.n_members > 1
    gaps = class_gaps(*some_rows(assessment), assessment.weights)
    return {
        "number": number,
        "name": printable(name),
        "sentences": [printable(sentence) for sentence in assessment.sentences()],
        "verdicts": [_verdict(assessment, null) for null in assessment.nulls],
        "questions": list(dict.fromkeys(result.hypothesis for result in assessment.results)),
        "rows": [_row(result, adjusted) for result, adjusted in _pairs(assessment)],
        "figures": figures(assessment, gaps),
        "classes": [_class_row(assessment, each) for each in gaps[:_SHOWN]],
        "n_classes": len(gaps),
        # Of one classifier there is nothing to combine, and no size.
        "several": several,
        "combination": assessment.combination.capitalize(),
        "weights": _weights(assessment.best) if several else None,
        "sizes": _sizes(assessment) if several else None,
        "facts": _facts(assessment),
        "notes": _notes(assessment),
    }


def _verdict(assessment: Assessment, null: str) -> str:
    """The class of the sentence, and so its look."""
    if not assessment.rejected(null):
        return "perhaps"
    return "unclear" if assessment.unclear(null) else "no"


def _class_row(assessment: Assessment, each: ClassGap) -> tuple[str, ...]:
    values = [each.frequency, each.weighted, each.gap]
    if assessment.best.n_members > 1:
        values = [each.frequency, each.weighted, each.average, each.gap, each.gap_of_average]
    name = printable(class_name(assessment.classifiers, each.index))
    return (name, *(f"{value:.4f}" for value in values))


def _pairs(assessment: Assessment) -> list[tuple[CalibrationTestResult, float]]:
    return list(zip(assessment.results, assessment.adjusted, strict=True))


def _policy(style: str, script: str) -> str:
    """Only this style sheet and this script, by their hashes; no request to anywhere."""
    rules = [
        "default-src 'none'",
        f"style-src 'sha256-{_digest(style)}'",
        f"script-src 'sha256-{_digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) else ("∞" if value > 0 else "-∞")


def _row(result: CalibrationTestResult, adjusted: float) -> dict[str, Any]:
    low, high = result.pvalue_interval
    return {
        "measure": result.measure,
        "null": result.null,
        "statistic": _number(result.statistic),
        "critical": _number(result.critical_value),
        "pvalue": _number(result.pvalue, 3),
        "interval": f"{low:.3g} to {high:.3g}",
        "adjusted": _number(adjusted, 3),
        "rejected": adjusted <= result.alpha,
    }


def _data(part: int, assessment: Assessment) -> list[dict[str, Any]]:
    """What the script needs to decide again at another level, in the words of the assessment."""
    return [
        {
            "part": part,
            "null": result.null,
            "pvalue": result.pvalue,
            "interval": result.pvalue_interval,
            "adjusted": adjusted,
            "doubtful": result.doubtful,
            "answer": {name: printable(words) for name, words in asdict(answer).items()},
            # Strings where JSON has no number; nine digits are more than a picture or a table shows.
            "distribution": [
                float(f"{value:.9g}") if math.isfinite(value) else str(value)
                for value in sorted(result.null_distribution.tolist())
            ],
        }
        for (result, adjusted), answer in zip(_pairs(assessment), assessment.answers(), strict=True)
    ]


def _embedded(data: Any) -> str:
    """JSON in which no character could end the element that holds it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _weights(result: CalibrationTestResult) -> dict[str, Any]:
    order = sorted(range(result.n_members), key=lambda m: -result.weights[m])
    names = result.members or tuple(f"member {m}" for m in range(result.n_members))
    return {
        "measure": result.measure,
        "minimum": _number(result.minimum),
        "shown": [
            (printable(names[m]), f"{result.weights[m]:.4f}")
            for m in order[:_SHOWN]
            if result.weights[m] > 0.0
        ],
        "others": max(0, sum(result.weights > 0.0) - _SHOWN),
    }


def _sizes(assessment: Assessment) -> list[tuple[str, str, str]]:
    sizes = assessment.sizes
    return [(name.replace("_", " "), _number(sizes[name]), UNITS[name]) for name in UNITS]


def _facts(assessment: Assessment) -> list[tuple[str, str]]:
    first = assessment.results[0]
    accuracy = assessment.classifiers.accuracy(assessment.labels, weights="mean")
    evaluations = first.settings["minimizer"].get("max_evaluations")
    each = "a start" if first.minimizer == Steepest.name else "each"
    several = first.n_members > 1
    facts = {
        "rows": f"{first.n_samples:,}",
        "members": f"{first.n_members:,}",
        "classes": f"{first.n_classes:,}",
        "accuracy of the average" if several else "accuracy": f"{accuracy:.4f}",
        "resamples": f"{first.n_resamples:,}",
        "search": f"{first.minimizer}, {evaluations} evaluations {each}",
        "seed": str(first.seed),
    }
    if not several:
        del facts["members"], facts["search"]
    return list(facts.items())


def _notes(assessment: Assessment) -> list[str]:
    notes = dict.fromkeys(assessment.notes())
    if assessment.best.n_members > 1 and assessment.sizes.approximated:
        notes[
            "the generalised Hartley measure merges the less probable of more than 16 classes"
        ] = None
    if assessment.classifiers.n_samples > ROWS:
        notes[f"figures and the table of classes show {ROWS:,} of the rows, evenly spaced"] = None
    return [printable(note) for note in notes]
