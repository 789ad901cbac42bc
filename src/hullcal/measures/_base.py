"""What a measure is: a frozen value that can be called, and a loop that objectives can run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._validation import InvalidInputError, check_single, warn

Floats = NDArray[np.float64]

#: What may hold of a measure; see `Measure`.
Trait = Literal["residual", "derivatives", "ordered", "places", "rests"]


class _Missing:
    """Stands for the mean member where there is none: nothing can be done with it."""

    def __array__(self, *_: object, **__: object) -> NDArray[np.generic]:
        raise TypeError("there is no mean member here.")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A calibration measure g(p, D).

    A subclass names itself, states its notion of calibration, and offers a compiled loop

        value(mixed, labels, row_weights, parameters, offset, state, scratch) -> float

    over `mixed` predictions of shape (n_classes, n_samples). It leaves the residual vector, whose
    norm is the value, in the first places of `state`; `offset` is subtracted from that vector first.
    Row weights add up to the number of rows. An *additive* measure also offers the two halves of that
    loop, `accumulate` (a block of rows into `state`) and `finish` (a value from `state`), so that an
    objective can run it over chunks.

    Replicates are often evaluated at the same weights, and then only their labels differ. A measure
    with the trait "places" leaves in `scratch` what does not depend on labels, and finds it there if
    `hullcal._compiled.mixing.again` says that the predictions are those of the last call.

    What holds of a measure is listed in `traits`:

    - ``"residual"``: the value is a norm of a residual vector, from which an offset can be subtracted.
    - ``"derivatives"``: a search may rely on them.
    - ``"ordered"``: the value depends on the order of the rows.
    - ``"places"``: the last float of `scratch` is the mark that `again` looks at.
    - ``"rests"``: the form over entries needs the sums of all other probabilities, class by class.
    """

    name: ClassVar[str]
    notion: ClassVar[str]
    value: ClassVar[Callable[..., float]]
    accumulate: ClassVar[Callable[..., None] | None] = None
    finish: ClassVar[Callable[..., float] | None] = None
    traits: ClassVar[frozenset[Trait]] = frozenset({"residual"})
    #: How many consecutive rows stay together when rows are resampled with their labels.
    rows_per_unit: ClassVar[int] = 1
    min_samples: ClassVar[int] = 1

    @classmethod
    def defaults(cls) -> tuple[Measure, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def __call__(self, probs: ArrayLike, labels: ArrayLike) -> float:
        """The measure of one classifier: `probs` of shape (n_samples, n_classes)."""
        predictions, classes = check_single(probs, labels)
        self.check(len(classes))
        mixed = np.ascontiguousarray(predictions.T, dtype=np.float64)
        return self.evaluate(mixed, classes, self.parameters(predictions))

    def evaluate(
        self,
        mixed: Floats,
        labels: NDArray[np.int32],
        parameters: Floats,
        *,
        row_weights: Floats | None = None,
        offset: Floats | None = None,
        state: Floats | None = None,
    ) -> float:
        """The value of mixed predictions, unchecked; `state` is left as the loop leaves it."""
        n_classes, n_samples = mixed.shape
        return float(
            self.value(
                mixed,
                labels,
                np.ones(n_samples) if row_weights is None else row_weights,
                parameters,
                self.no_offset(n_classes) if offset is None else offset,
                np.zeros(self.state_size(n_classes)) if state is None else state,
                np.zeros(self.scratch_size(n_classes, n_samples)),
            )
        )

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        """What the loop must know, fixed once per data set; `average` is the mean member (N, K)."""
        raise NotImplementedError

    def state_size(self, n_classes: int) -> int:
        """Floats of state, of which the residual vector has the first, as many as `no_offset`."""
        raise NotImplementedError

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        """Floats of working memory for a block of rows."""
        return 0

    def no_offset(self, n_classes: int) -> Floats:
        """The offset that changes nothing."""
        return np.zeros(self.state_size(n_classes))

    def offset_at(self, mixed: Floats, labels: NDArray[np.int32], parameters: Floats) -> Floats:
        """The residual vector of the data, to be subtracted from those of replicates."""
        state = np.zeros(self.state_size(len(mixed)))
        self.evaluate(mixed, labels, parameters, state=state)
        return state[: len(self.no_offset(len(mixed)))].copy()

    def halves_agree(self) -> bool:
        """Whether `accumulate` and `finish` are there, and are those of the class that made `value`."""
        owner = next(kind for kind in type(self).__mro__ if "value" in vars(kind))
        return self.accumulate is not None and "accumulate" in vars(owner)

    def streams(self) -> bool:
        """Whether the value can be had from sums over blocks of rows, without the mean member."""
        return self.halves_agree() and self.parameters_without_average() is not None

    def parameters_without_average(self) -> Floats | None:
        """The parameters, if they do not depend on the mean member, which passes over rows never see."""
        try:
            return self.parameters(_Missing())  # type: ignore[arg-type]
        except Exception:
            # Whatever a loop's author does with the mean member fails in its own way.
            return None

    def over_entries(self, n_classes: int, n_samples: int) -> Measure | None:
        """The same measure of a few entries of the predictions, if it can be had from them.

        Its `value` takes `mixed` of shape (1, n_entries), sorted by row and then by class, positions
        of entries for labels, and `entry_parameters` for parameters.
        """
        return None

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        """A loop that takes many labellings of the same rows together, if that spares much work.

        of_labellings(mixed, drawn, parameters, out) leaves in `out` what `value` gives, up to rounding,
        for each column of `drawn`, (n_samples, n_labellings), every row counting once. A labelling has
        the same value, bit for bit, whatever the others.
        """
        return None

    def matters(self, members: Floats) -> NDArray[np.bool_]:
        """Which probabilities (n_classes, n_samples) have to be entries, whatever the weights."""
        raise NotImplementedError

    def entry_parameters(
        self, rows: NDArray[np.int32], classes: NDArray[np.int32], n_samples: int
    ) -> Floats:
        """What the loop over entries must know."""
        raise NotImplementedError

    def check(self, n_samples: int) -> None:
        """Refuse data for which the measure is not defined; warn of too few rows."""
        if n_samples < self.min_samples:
            raise InvalidInputError(
                f"measure `{self.name}` needs at least {self.min_samples} rows; got {n_samples}. "
                "Gather more, or choose another measure."
            )
        n_bins = max(2, getattr(self, "n_bins", 2))
        if n_samples < n_bins:
            few = "1 row is" if n_samples == 1 else f"{n_samples} rows are"
            warn(
                f"{few} fewer than the {n_bins} that measure `{self.name}` needs. "
                "Use more rows or fewer bins."
            )

    def settings(self) -> dict[str, Any]:
        """The fields that make this measure differ from others of its kind."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class CustomMeasure(Measure):
    """g(probs, labels) given by the user, with probs of shape (n_samples, n_classes).

    It has no residual vector, so nulls that subtract an offset cannot take it.
    """

    notion: ClassVar[str] = "custom"
    traits: ClassVar[frozenset[Trait]] = frozenset({"ordered"})  # for all we know
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


#: Mixed predictions lie between the members', but for this much of rounding.
ROUNDING = 1e-12


def as_floats(numbers: NDArray[np.integer]) -> Floats:
    """Unsigned 32-bit numbers packed into an array of floats, to be viewed by a compiled loop."""
    padded = np.zeros(-(-len(numbers) // 2) * 2, dtype=np.uint32)
    padded[: len(numbers)] = numbers
    return padded.view(np.float64)
