"""From a fitted model to (probs, labels): scikit-learn's and PyTorch's ensembles, loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# scikit-learn and PyTorch are extras: a name is loaded when it is asked for, never before.
_HOME = {
    "members_from": "sklearn",
    "WeightedEnsembleClassifier": "sklearn",
    "deep_ensemble": "torch",
    "mc_dropout": "torch",
    "checkpoints": "torch",
}

if TYPE_CHECKING:
    from hullcal.ensembles.sklearn import WeightedEnsembleClassifier as WeightedEnsembleClassifier
    from hullcal.ensembles.sklearn import members_from as members_from
    from hullcal.ensembles.torch import checkpoints as checkpoints
    from hullcal.ensembles.torch import deep_ensemble as deep_ensemble
    from hullcal.ensembles.torch import mc_dropout as mc_dropout


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _HOME.values():
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*sorted(_HOME), *sorted(set(_HOME.values()))]
