"""An objective over pairs of rows that keeps no predictions: every answer brings all ranges together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.engines.objective import Draw
from hullcal.engines.streamed import Floats, Passes, Streamed
from hullcal.measures import Measure


@dataclass(frozen=True, slots=True)
class PairStreamed(Streamed):
    """g by passes over pairs of ranges, for a measure that has `finish_pairs`.

    Labels can be drawn anew in every pass; rows cannot, since copies of a row would be pairs that
    no two ranges make. EM and all else that is about rows alone is a pass over them as ever.
    """

    #: Who passes, for messages.
    engine: str = field(default="dask", kw_only=True)

    @classmethod
    def of(cls, measure: Measure, passes: Passes, *, engine: str = "dask") -> PairStreamed:
        """The data's objective, for a measure that adds up over pairs of rows."""
        parameters = measure.parameters_without_average()
        assert parameters is not None
        offset = measure.no_offset(passes.n_classes)
        return cls(measure, passes, parameters, offset, engine=engine)

    def recentered(self, weights: Floats) -> NoReturn:
        self._refuse("recentered")

    def drawing_rows(self, key: NDArray[np.uint64]) -> Draw:
        self._refuse("recentered")

    def resampled(
        self,
        key: NDArray[np.uint64],
        replicates: NDArray[np.int64],
        weights: Floats,
        *,
        permuted: bool = False,
    ) -> NoReturn:
        self._refuse("paper")

    def _refuse(self, null: str) -> NoReturn:
        raise InvalidInputError(
            f"null `{null}` resamples rows, which engine `{self.engine}` cannot do for measure "
            f'`{self.measure.name}`, a sum over pairs of rows. Use null="refit" or "maximized", '
            'measure="skce_ul", or engine="local" on data that fit into memory.'
        )
