"""Every check on user input, and every message about it."""

from __future__ import annotations

from hullcal._validation.arguments import (
    check_fraction,
    check_integer,
    check_jobs,
    check_positive,
    check_seed,
    check_weights,
)
from hullcal._validation.doors import check_set_and_labels, check_settled, check_single
from hullcal._validation.errors import (
    ApproximationWarning,
    EngineError,
    HullcalWarning,
    InvalidInputError,
)
from hullcal._validation.flags import check_flag
from hullcal._validation.labels import check_classes, check_labels
from hullcal._validation.members import check_members, check_points, check_selection
from hullcal._validation.probabilities import Predictions, check_probs

__all__ = [
    "ApproximationWarning",
    "EngineError",
    "HullcalWarning",
    "InvalidInputError",
    "Predictions",
    "check_classes",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_jobs",
    "check_labels",
    "check_members",
    "check_points",
    "check_positive",
    "check_probs",
    "check_seed",
    "check_selection",
    "check_set_and_labels",
    "check_settled",
    "check_single",
    "check_weights",
]
