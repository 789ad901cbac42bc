"""What the options say of the files, and what is read from them."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation import InvalidInputError
from hullcal.cli.wording import as_options
from hullcal.io.tables import as_integers


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where predictions and labels come from."""

    file: Path | None
    labels: Path | None
    member_files: tuple[Path, ...]
    probs_key: str
    labels_key: str
    classes: str | None
    logits: bool
    log_probs: bool

    @property
    def options(self) -> dict[str, Any]:
        """What is said of the predictions beside them."""
        return {"classes": self.names, "from_logits": self.logits, "from_log": self.log_probs}

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the classes as they were typed."""
        if self.classes is None:
            return None
        return tuple(name.strip() for name in self.classes.split(","))

    def classes_of(self, labels: Any, there: Sequence[Any] | None) -> Sequence[Any] | None:
        """Names of the classes as these labels call them: numeric labels mean numbers, not digits.

        Names that are there, in the file, are not replaced: another order would mean other classes.
        Positions are no names.
        """
        if self.names is None:
            return there
        if there is not None and list(there) != list(range(len(there))):
            if tuple(map(str, there)) != self.names:
                raise InvalidInputError(
                    f"`--classes` must be left out where FILE names its classes; got "
                    f"{self.classes!r:.80} beside {reprlib.repr(tuple(there))}. Leave it out."
                )
            return there
        if getattr(labels, "dtype", np.dtype(int)).kind in "OSTU":
            return self.names
        return tuple(as_integers(self.names))

    def read(self, *, needs_labels: bool = True) -> tuple[Any, Any]:
        """The classifiers of the files, and labels that they understand; None if none are needed."""
        from hullcal import io
        from hullcal.sets import ClassifierSet

        with as_options(path="FILE", labels="--labels"):
            data = io.read(
                self.file,
                member_files=self.member_files,
                labels=self.labels,
                probs_key=self.probs_key,
                labels_key=self.labels_key,
                needs_labels=needs_labels,
            )
        if data.labels is None and needs_labels:
            raise InvalidInputError(
                f"`labels` must come with the predictions; got none in "
                f"{', '.join(map(repr, data.sources))}. "
                "Name the array or column with `--labels-key`, or pass `--labels FILE`."
            )
        options = self.options | {"classes": self.classes_of(data.labels, data.classes)}
        try:
            classifiers = ClassifierSet(data.probs, members=data.members, **options)
            if needs_labels:
                classifiers.labels(data.labels)
            return classifiers, data.labels
        except InvalidInputError:
            # Seen side by side, predictions and labels tell more of what is wrong with either.
            if data.labels is not None:
                ClassifierSet.with_labels(data.probs, data.labels, **options)
            raise
