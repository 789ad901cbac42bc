"""hullcal: does the convex hull of these classifiers contain a calibrated one?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names are loaded on first use, so that importing hullcal costs little more than importing numpy.
_HOME = {
    "calibration_test": "algorithm",
    "minimize": "algorithm",
    "adjust": "results",
    "CalibrationTestResult": "results",
    "MinimizeResult": "results",
    "split": "preparation",
    "from_binary": "preparation",
    "ClassifierSet": "sets",
    "ConfidenceECE": "measures.ece_conf",
    "ClasswiseECE": "measures.ece_cwise",
    "HosmerLemeshow": "measures.hl_cwise",
    "SKCE": "measures.skce",
    "InvalidInputError": "_validation",
    "HullcalWarning": "_validation",
}
_ROOMS = ("binning", "kernels", "measures", "minimizers", "nulls", "simplex")

__all__ = ["__version__", *sorted(_HOME), *_ROOMS]

if TYPE_CHECKING:
    from hullcal import binning, kernels, measures, minimizers, nulls, simplex
    from hullcal._validation import HullcalWarning, InvalidInputError
    from hullcal.algorithm import calibration_test, minimize
    from hullcal.measures.ece_conf import ConfidenceECE
    from hullcal.measures.ece_cwise import ClasswiseECE
    from hullcal.measures.hl_cwise import HosmerLemeshow
    from hullcal.measures.skce import SKCE
    from hullcal.preparation import from_binary, split
    from hullcal.results import CalibrationTestResult, MinimizeResult, adjust
    from hullcal.sets import ClassifierSet


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"hullcal.{_HOME[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"hullcal.{name}")
    else:
        raise AttributeError(f"module 'hullcal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
