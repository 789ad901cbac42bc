"""Which data are the benchmarks run on? The paper's scenarios, as the tests' oracles draw them."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

Set = tuple[np.ndarray, np.ndarray]


@cache
def _oracles() -> ModuleType:
    path = Path(__file__).parents[1] / "tests" / "oracles.py"
    spec = importlib.util.spec_from_file_location("oracles", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def s1(seed: int, n_samples: int, spread: float, n_members: int = 10, n_classes: int = 10) -> Set:
    """The hull contains the truth: members (N, M, K) and labels."""
    rng = np.random.default_rng(seed)
    return _oracles().scenario_s1(rng, n_samples, n_members, n_classes, spread)


def s3(seed: int, n_samples: int, spread: float, strength: float) -> Set:
    """The truth lies beyond the hull, towards a random corner; M = K = 10."""
    rng = np.random.default_rng(seed)
    return _oracles().scenario_s3_fast(rng, n_samples, 10, 10, spread, strength)


def plain(seed: int, n_samples: int, n_members: int = 10, n_classes: int = 10) -> Set:
    """Members uniform on the simplex, labels from their mean: any size in no time."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members))
    levels = rng.random((n_samples, 1))
    labels = (probs.mean(axis=1).cumsum(axis=1)[:, :-1] <= levels).sum(axis=1)
    return probs, labels
