"""What a user should know beside the numbers: a code for programs, and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The sentence of each code; data fill its gaps.
_TEXTS = {
    "clipped": "{n_values} of the probabilities {were} outside [0, 1] by at most {slack:.0e}; clipped",
    "renormalised": "{n_rows} of {of_rows} rows {were} renormalised, every member "
    "counted (largest deviation {deviation:.1g})",
    "sums_left": "row sums were left as they came, within {precision} rounding "
    "(largest deviation {deviation:.1g})",
    "needless_logits": "from_logits=True, though every row was a probability vector already",
    "impossible": "{n_rows} label{s} with probability 0 under every member, so the log score of every "
    "combination is infinite; likelihoods leave such rows out",
    "beyond_memory": "predictions are on workers or do not fit into memory, so null {null} was used "
    "instead of {usual}; it needs many rows in every bin",
    "stopped": "stopped at resample {resample} of {of_resamples}: {stop_after} null values reached the "
    "statistic",
    "too_few_rows": "too few rows for so many cells: resampled rows make {share:.2f} of the noise that "
    'labels would, so the p-value of null "recentered" may be too small; use null="stacked"',
    "labels_redrawn": "the statistic is infinite, so null recentered drew labels from the "
    "maximum-likelihood combination instead of rows",
    "largest_pvalue": "null maximized: weights and statistic are where the p-value is largest",
}
#: What was done to the predictions, which is no matter of one test.
OF_INPUT = {"clipped", "renormalised", "sums_left", "needless_logits"}


@dataclass(frozen=True)
class Note:
    """One thing to know.

    Attributes
    ----------
    code : str
        What it is about; programs decide by it.
    data : dict
        The figures in it.
    """

    code: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence."""
        one = 1 in (self.data.get("n_rows"), self.data.get("n_values"))
        forms = {"s": "", "were": "was"} if one else {"s": "s", "were": "were"}
        return _TEXTS[self.code].format_map(forms | self.data)

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.code)

    def to_dict(self) -> dict[str, Any]:
        """Code, text and data, for JSON."""
        return {"code": self.code, "text": self.text, "data": dict(self.data)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Note:
        """The note that `to_dict` described; its sentence is made anew."""
        note = cls(data["code"], dict(data["data"]))
        assert note.text  # known, with all its figures
        return note


def merged(chunks: Sequence[Sequence[Note]], of_rows: int) -> tuple[Note, ...]:
    """The notes on consecutive parts of the rows as those on all of them."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for notes in chunks:
        for note in notes:
            found.setdefault(note.code, []).append(note.data)
    out = []
    for code, parts in found.items():
        if code == "needless_logits" and len(parts) < len(chunks):
            continue  # it is true of all rows, or it is no matter
        data = dict(parts[0])
        for name in data:
            if name in ("n_values", "n_rows"):
                data[name] = sum(part[name] for part in parts)
            elif name == "deviation":
                data[name] = max(part[name] for part in parts)
        if "of_rows" in data:
            data["of_rows"] = of_rows
        out.append(Note(code, data))
    return tuple(out)
