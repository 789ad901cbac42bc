"""hullcal: does the convex hull of these classifiers contain a calibrated one?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names are loaded on first use, so that importing hullcal costs little more than importing numpy.
_HOME = {
    "assess": "assessment",
    "Assessment": "assessment",
    "Assessments": "assessment",
    "calibration_test": "algorithm",
    "minimize": "algorithm",
    "truth_test": "truth",
    "TruthTestResult": "results",
    "combine_evalues": "evidence",
    "Monitor": "monitor",
    "adjust": "results",
    "CalibrationTestResult": "results",
    "ClassicalTestResult": "classical",
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
    "ApproximationWarning": "_validation",
    "EngineError": "_validation",
}
_ROOMS = (
    "assessment",
    "binning",
    "classical",
    "ensembles",
    "io",
    "kernels",
    "measures",
    "minimizers",
    "nulls",
    "plots",
    "report",
    "simplex",
    "simulation",
    "testing",
    "uncertainty",
)

if TYPE_CHECKING:
    from hullcal import assessment as assessment
    from hullcal import binning as binning
    from hullcal import classical as classical
    from hullcal import ensembles as ensembles
    from hullcal import io as io
    from hullcal import kernels as kernels
    from hullcal import measures as measures
    from hullcal import minimizers as minimizers
    from hullcal import nulls as nulls
    from hullcal import plots as plots
    from hullcal import report as report
    from hullcal import simplex as simplex
    from hullcal import simulation as simulation
    from hullcal import testing as testing
    from hullcal import uncertainty as uncertainty
    from hullcal._validation import ApproximationWarning as ApproximationWarning
    from hullcal._validation import EngineError as EngineError
    from hullcal._validation import HullcalWarning as HullcalWarning
    from hullcal._validation import InvalidInputError as InvalidInputError
    from hullcal.algorithm import calibration_test as calibration_test
    from hullcal.algorithm import minimize as minimize
    from hullcal.assessment import Assessment as Assessment
    from hullcal.assessment import Assessments as Assessments
    from hullcal.assessment import assess as assess
    from hullcal.classical import ClassicalTestResult as ClassicalTestResult
    from hullcal.evidence import combine_evalues as combine_evalues
    from hullcal.measures.ece_conf import ConfidenceECE as ConfidenceECE
    from hullcal.measures.ece_cwise import ClasswiseECE as ClasswiseECE
    from hullcal.measures.hl_cwise import HosmerLemeshow as HosmerLemeshow
    from hullcal.measures.skce import SKCE as SKCE
    from hullcal.monitor import Monitor as Monitor
    from hullcal.preparation import from_binary as from_binary
    from hullcal.preparation import split as split
    from hullcal.results import CalibrationTestResult as CalibrationTestResult
    from hullcal.results import MinimizeResult as MinimizeResult
    from hullcal.results import TruthTestResult as TruthTestResult
    from hullcal.results import adjust as adjust
    from hullcal.sets import ClassifierSet as ClassifierSet
    from hullcal.truth import truth_test as truth_test


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
    return ["__version__", *sorted(_HOME), *_ROOMS]
