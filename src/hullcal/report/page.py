"""The page itself: what goes into the template, and the policy that guards it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from hullcal.assessment import Assessment
from hullcal.io.results import versions
from hullcal.report.figures import ROWS, class_gaps, class_name, figures, some_rows
from hullcal.results import CalibrationTestResult
from hullcal.uncertainty import UNITS
from hullcal.words import printable

#: Members and classes listed by name.
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
        What `hullcal.assess` found, for one set or for several.
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
    # Whatever came from users reaches the page through these two alone: as printable characters,
    # and escaped.
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    return environment.from_string(template).render(
        title=title or "Calibration report",
        policy=_policy(style, script),
        style=style,
        script=script,
        parts=[_part(name, each) for name, each in named.items()],
        data=[_levels(each) for each in named.values()],  # for the script
        alpha=next(iter(named.values())).results[0].alpha,
        versions=versions(),
        command=command or "",
        units=UNITS,
        most=_SHOWN,
        number=_number,
    )


def _policy(style: str, script: str) -> str:
    """Only this style sheet and this script, by their hashes; no request to anywhere."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _part(name: str, assessment: Assessment) -> dict[str, Any]:
    """What the template shows of one set."""
    best = assessment.best
    several = best.n_members > 1  # of one classifier there is nothing to combine, and no size
    gaps = class_gaps(*some_rows(assessment), assessment.weights)
    rows = [
        (class_name(assessment.classifiers, each.k), *(f"{value:.4f}" for value in each[1:]))
        for each in gaps[:_SHOWN]
    ]
    return {
        "name": name,
        "looks": [_look(assessment, null) for null in assessment.nulls],
        "sentences": assessment.sentences(),
        "questions": list(dict.fromkeys(result.hypothesis for result in assessment.results)),
        "tests": [
            _test(*pair) for pair in zip(assessment.results, assessment.adjusted, strict=True)
        ],
        "figures": figures(assessment, gaps, part=name),
        "classes": rows if several else [(row[0], row[1], row[2], row[4]) for row in rows],
        "n_classes": len(gaps),
        "several": several,
        "combination": assessment.combination.capitalize(),
        "best": f"{best.measure} {_number(best.minimum)}",
        "weights": _weights(best),
        "sizes": assessment.sizes if several else {},
        "facts": _facts(assessment),
        "notes": _notes(assessment),
    }


def _look(assessment: Assessment, null: str) -> str:
    if not assessment.rejected(null):
        return "perhaps"
    return "unclear" if assessment.unclear(null) else "no"


def _test(result: CalibrationTestResult, adjusted: float) -> dict[str, Any]:
    low, high = result.pvalue_interval
    return {
        "measure": result.measure,
        "null": result.null,
        "rejected": adjusted <= result.alpha,
        "adjusted": _number(adjusted, 3),
        "pvalue": _number(result.pvalue, 3),
        "interval": f"{low:.3g} to {high:.3g}",
        "statistic": _number(result.statistic),
        "critical": _number(result.critical_value),
    }


def _levels(assessment: Assessment) -> list[dict[str, Any]]:
    """What the script needs to decide again at another level, in the words of the assessment."""
    tests = zip(assessment.results, assessment.adjusted, assessment.answers(), strict=True)
    return [
        {
            "null": result.null,
            "adjusted": adjusted,
            "interval": [adjusted / result.pvalue * end for end in result.pvalue_interval],
            "doubtful": result.doubtful,
            **{name: printable(words) for name, words in asdict(answer).items()},
        }
        for result, adjusted, answer in tests
    ]


def _weights(result: CalibrationTestResult) -> list[tuple[str, str]]:
    """Members with a weight, the largest first."""
    order = [m for m in np.argsort(-result.weights, kind="stable") if result.weights[m] > 0.0]
    names = result.members or [f"member {m}" for m in range(result.n_members)]
    return [(names[m], f"{result.weights[m]:.4f}") for m in order]


def _facts(assessment: Assessment) -> dict[str, str]:
    first = assessment.results[0]
    several = first.n_members > 1
    accuracy = assessment.classifiers.accuracy(assessment.labels, weights="mean")
    budget = first.settings.get("minimizer", {}).get("max_evaluations")
    facts = {
        "rows": f"{first.n_samples:,}",
        "members": f"{first.n_members:,}",
        "classes": f"{first.n_classes:,}",
        "accuracy of the average" if several else "accuracy": f"{accuracy:.4f}",
        "resamples": f"{first.n_resamples:,}",
        "search": f"{first.minimizer}, {budget} evaluations" if budget else first.minimizer,
        "seed": str(first.seed),
    }
    return {name: facts[name] for name in facts if several or name not in ("members", "search")}


def _notes(assessment: Assessment) -> list[str]:
    notes = dict.fromkeys(assessment.notes())
    if assessment.best.n_members > 1 and assessment.sizes.approximated:
        notes[
            "the generalised Hartley measure merges the less probable of more than 16 classes"
        ] = None
    if assessment.classifiers.n_samples > ROWS:
        notes[f"figures and the table of classes show {ROWS:,} of the rows, evenly spaced"] = None
    return list(notes)


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("inf", "∞")
