"""One offline HTML page: the answers first, then what they rest on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.assessment import Assessment
from hullcal.io.results import versions
from hullcal.report.figures import ROWS, class_gaps, class_name, figures, some_rows
from hullcal.results import CalibrationTestResult
from hullcal.uncertainty import UNITS
from hullcal.verdicts import QUESTIONS
from hullcal.words import measure_in_words, printable

__all__ = ["render"]

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
    style, template = (
        room.joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "page.html")
    )
    named: Any = {"": assessments} if isinstance(assessments, Assessment) else assessments
    each_is = [isinstance(each, Assessment) for each in getattr(named, "values", list)()]
    if not all(each_is) or not each_is:
        rule, came = "must be what `hullcal.assess` gave", type(assessments).__name__
        raise refusal("assessments", rule, came, "Call `hullcal.assess` first.")
    # Whatever came from users reaches the page through these two alone: as printable characters,
    # and escaped.
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template).render(
        title=title or "Calibration report",
        # Only this style sheet, by its hash; no script, and no request to anywhere.
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        style=style,
        questions=_questions(named.values()),
        parts=[_part(name, each) for name, each in named.items()],
        versions=versions(),
        command=command or "",
        units=UNITS,
        most=_SHOWN,
        number=_number,
        zip=zip,
        measure_in_words=measure_in_words,
    )


def _questions(assessments: Iterable[Assessment]) -> dict[str, str]:
    """The questions that any of them was asked, in the words for several members if one has them."""
    asked: dict[str, str] = {}
    for each in sorted(assessments, key=lambda each: each.data.n_members == 1):
        asked = {name: each.asked(name) for name in each.answers} | asked
    return {name: asked[name] for name in QUESTIONS if name in asked}


def _part(name: str, assessment: Assessment) -> dict[str, Any]:
    """What the template shows of one set."""
    classifiers, best = assessment.classifiers, assessment.combination
    weights = None if best is None else best.weights
    gaps = class_gaps(*some_rows(assessment), weights)
    # Of one classifier there is nothing to combine, and no size.
    several = classifiers.n_members > 1
    effect = assessment.effect
    shown = () if effect is None else (effect.average, effect.combination)
    return {
        "name": name,
        "assessment": assessment,
        "several": several,
        "effects": [each for each in shown if each is not None],
        "figures": figures(assessment, gaps, part=name),
        "classes": [(class_name(classifiers, each.k), each) for each in gaps[:_SHOWN]],
        "n_classes": len(gaps),
        "weights": [] if weights is None else _weights(weights, classifiers.members),
        "sizes": assessment.sizes if several else {},
        "facts": _facts(assessment),
        "notes": _notes(assessment),
    }


def _weights(weights: Any, members: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """Members with a weight, the largest first."""
    order = [m for m in np.argsort(-weights, kind="stable") if weights[m] > 0.0]
    names = members or [f"member {m}" for m in range(len(weights))]
    return [(names[m], f"{weights[m]:.4f}") for m in order]


def _facts(assessment: Assessment) -> dict[str, str]:
    first = assessment.results[0]
    facts = {
        "level α": f"{first.alpha:g}",
        "resamples": f"{first.settings.get('n_resamples', first.n_resamples):,} at most",
        "seed": str(first.seed),
    }
    searched = assessment.answers.get("calibrated")
    if searched is not None and isinstance(test := searched.results[0], CalibrationTestResult):
        budget = test.settings.get("minimizer", {}).get("max_evaluations")
        facts["search"] = test.minimizer + (f", {budget} evaluations" if budget else "")
    return facts


def _notes(assessment: Assessment) -> list[str]:
    notes = assessment.notes
    if assessment.data.n_members > 1 and assessment.sizes.approximated:
        notes.append(
            "the generalised Hartley measure merges the less probable of more than 16 classes"
        )
    if assessment.data.n_samples > ROWS:
        notes.append(f"figures and the table of classes show {ROWS:,} of the rows, evenly spaced")
    return notes


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}".replace("inf", "∞")
