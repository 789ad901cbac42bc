"""How is a test named in a grid, in files and on the command line: measure, null and search?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hullcal import measures, minimizers, nulls
from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.simulation.protocols import Protocol

__all__ = ["MeasureSpec", "MinimizerSpec", "Test", "measure_of", "minimizer_of", "null_of"]

#: Of a number behind a name; more would be no number of bins or evaluations.
_DIGITS = 18


@dataclass(frozen=True)
class MeasureSpec:
    """A measure and what a table calls it."""

    measure: Measure

    @property
    def n_bins(self) -> int | None:
        """B; None for a measure without bins."""
        return getattr(self.measure, "n_bins", None)

    @property
    def name(self) -> str:
        """The measure's name, with all settings but the bins that are not its plain name's."""
        own = self.measure.settings()
        name = self.measure.name
        plain = measures.resolve(name).settings() if name in measures.available() else {}
        # A callable's only setting is its name.
        odd = [
            f"{key}={own[key]}"
            for key in own
            if key != "n_bins" and own[key] not in (plain.get(key), name)
        ]
        return f"{name}({', '.join(odd)})" if odd else name

    def described(self) -> Any:
        """The spec that gives it again, or its settings where none does."""
        spec = self.measure.name if self.n_bins is None else f"{self.measure.name}:{self.n_bins}"
        try:
            if measure_of(spec) == self:
                return spec
        except InvalidInputError:
            pass
        return {"name": self.measure.name, "settings": self.measure.settings()}


@dataclass(frozen=True)
class MinimizerSpec:
    """A search and what a table calls it."""

    minimizer: Minimizer

    @property
    def name(self) -> str:
        """The search's name, and its budget if it was given one."""
        budget = self.minimizer.max_evaluations
        return self.minimizer.name if budget is None else f"{self.minimizer.name}:{budget}"

    def described(self) -> Any:
        """The spec that gives it again, or its settings where none does."""
        if minimizer_of(self.name) == self:
            return self.name
        return {"name": self.minimizer.name, "settings": self.minimizer.settings()}


@dataclass(frozen=True, kw_only=True)
class Test:
    """One way to test a data set."""

    # A class whose name begins like this would be taken for a test case of this program.
    __test__ = False

    measure: MeasureSpec
    null: str
    minimizer: MinimizerSpec

    def names(self) -> dict[str, Any]:
        """What a table calls it."""
        return {
            "measure": self.measure.name,
            "n_bins": self.measure.n_bins,
            "null": self.null,
            "minimizer": self.minimizer.name,
        }

    def described(self) -> dict[str, Any]:
        """What plays a part here, by name."""
        return {name: value for name, value in self.names().items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.described().items())

    def parts(self, protocol: Protocol) -> tuple[Measure, Null, Minimizer]:
        """What `calibration_test` takes, as a protocol has it."""
        return (
            protocol.measure(self.measure.measure),
            protocol.null(nulls.resolve(self.null)),
            self.minimizer.minimizer,
        )

    def check(self, n_samples: int, n_members: int, protocol: Protocol) -> None:
        """Refuse now what `calibration_test` would refuse on the first data set."""
        measure, null, search = self.parts(protocol)
        measure.check(n_samples)
        search = search.budgeted(in_test=True)
        search.check(measure, n_members)
        null.check(measure, search)

    def cost(self, n_samples: int, n_members: int, n_classes: int, n_resamples: int) -> float:
        """Roughly how many seconds the test takes: enough to cut work into pieces of like size."""
        measure = self.measure.measure
        easy = measure.easily_searched
        search = self.minimizer.minimizer.budgeted(in_test=True, easy=easy)
        budget = search.evaluations(n_members)
        once = self.null == "paper" or n_members == 1
        evaluations = budget + n_resamples if once else budget * (1 + n_resamples)
        nanoseconds = 4.0 if measure.accumulate is not None else 0.6 * n_samples
        # Searches of scipy call back into Python at every step.
        compiled = self.minimizer.minimizer.name in ("steepest", "pairwise", "random", "exact")
        each = 1e-9 * nanoseconds * n_samples * n_classes + (0.0 if compiled else 5e-4)
        return 5e-4 + evaluations * each


def measure_of(spec: Any) -> MeasureSpec:
    """Measure of a spec: "ece_conf", "ece_conf:5", a Measure or a callable.

    >>> measure_of("ece_conf:5").measure
    ConfidenceECE(n_bins=5, smooth=False)
    """
    if not isinstance(spec, str):
        return MeasureSpec(measures.resolve(spec))
    name, number = _split(spec, "measure", "bins, as in ece_conf:5")
    measure = measures.resolve(name)
    if number is None:
        return MeasureSpec(measure)
    if not hasattr(measure, "n_bins"):
        raise InvalidInputError(f"`measure` {name} has no bins; got {spec!r}. Write {name!r}.")
    return MeasureSpec(replace(measure, n_bins=number))  # type: ignore[call-arg]


def minimizer_of(spec: Any) -> MinimizerSpec:
    """Search of a spec: "steepest", "steepest:60" or a Minimizer.

    >>> minimizer_of("pairwise:200").minimizer
    Pairwise(max_evaluations=200)
    """
    if not isinstance(spec, str):
        return MinimizerSpec(minimizers.resolve(spec))
    name, number = _split(spec, "minimizer", "evaluations, as in pairwise:200")
    search = minimizers.resolve(name)
    return MinimizerSpec(search if number is None else replace(search, max_evaluations=number))


def null_of(name: Any) -> str:
    """The name of a null, checked."""
    if isinstance(name, str) and name in nulls.available():
        return name
    raise InvalidInputError(
        f"`null` must be one of {', '.join(nulls.available())}; got {name!r:.80}. "
        "A study names its nulls."
    )


def _split(spec: str, parameter: str, what: str) -> tuple[str, int | None]:
    name, colon, number = spec.partition(":")
    if not colon:
        return name, None
    sound = number.isascii() and number.isdigit() and len(number) <= _DIGITS
    if not (sound and int(number) > 0):
        raise InvalidInputError(
            f"`{parameter}` must have a positive number of {what}; got {spec!r:.80}. Correct the number."
        )
    return name, int(number)
