"""scikit-learn: members of fitted models, and an ensemble whose weights are chosen for calibration."""

from __future__ import annotations

try:
    from hullcal.ensembles._sklearn_members import members_from
    from hullcal.ensembles._sklearn_weighted import WeightedEnsembleClassifier
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "sklearn":
        raise
    raise ImportError(
        f"`hullcal.ensembles.sklearn` needs scikit-learn ({error}); pip install scikit-learn"
    ) from error

__all__ = ["WeightedEnsembleClassifier", "members_from"]
