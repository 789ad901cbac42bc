"""Where does PyTorch come from, and what is said where it is missing?"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["load_torch"]


def load_torch() -> Any:
    """Import torch on first use, so that this room can be entered without it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"hullcal.ensembles.torch needs PyTorch, which cannot be imported ({error}). "
            "Install it with `pip install torch`."
        ) from error
