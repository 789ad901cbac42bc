"""From a fitted model to (probs, labels): scikit-learn's and PyTorch's ensembles, loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# scikit-learn and PyTorch are extras: a name is loaded when it is used, never before.
_HOME = {
    "members_from": "sklearn",
    "WeightedEnsembleClassifier": "weighted",
    "deep_ensemble": "torch",
    "mc_dropout": "torch",
    "checkpoints": "torch",
}

if TYPE_CHECKING:
    from hullcal.ensembles.sklearn import members_from as members_from
    from hullcal.ensembles.torch import checkpoints as checkpoints
    from hullcal.ensembles.torch import deep_ensemble as deep_ensemble
    from hullcal.ensembles.torch import mc_dropout as mc_dropout
    from hullcal.ensembles.weighted import WeightedEnsembleClassifier as WeightedEnsembleClassifier


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _HOME.values():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise ImportError(
            f"`hullcal.ensembles.{name}` needs scikit-learn ({error}); pip install scikit-learn"
        ) from error
    globals()[name] = value = getattr(module, name) if name in _HOME else module
    return value


def __dir__() -> list[str]:
    return [*sorted(_HOME), *sorted(set(_HOME.values()))]
