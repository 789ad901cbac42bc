"""A plain Python callable as a measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.measures._base import Floats, Measure


@dataclass(frozen=True, kw_only=True)
class CustomMeasure(Measure):
    """g(probs, labels) given by the user, with probs of shape (n_samples, n_classes).

    It has no residual vector, so nulls that subtract an offset cannot take it.
    """

    notion: ClassVar[str] = "custom"
    has_residual: ClassVar[bool] = False
    order_matters: ClassVar[bool] = True  # for all we know
    function: Callable[[NDArray[np.float64], NDArray[np.int32]], float]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The callable's own name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def value(
        self,
        mixed: Floats,
        labels: NDArray[np.int32],
        row_weights: Floats,
        parameters: Floats,
        offset: Floats,
        state: Floats,
        scratch: Floats,
    ) -> float:
        """Call the user's function on a copy, and refuse what is not a number."""
        try:
            value = float(self.function(mixed.T.copy(order="C"), labels.copy()))
        except Exception as error:
            raise InvalidInputError(f"measure `{self.name}` raised {error!r}.") from error
        if math.isnan(value):
            raise InvalidInputError(
                f"measure `{self.name}` returned NaN; it must return a number for every combination."
            )
        return value

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.zeros(0)

    def state_size(self, n_classes: int) -> int:
        return 0

    def settings(self) -> dict[str, Any]:
        return {"function": self.name}
