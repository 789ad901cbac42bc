"""How messages written for Python read on the command line: options in place of parameters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hullcal._validation import InvalidInputError

#: Parameters that are options of the same name.
_SAME = ("alpha", "measure", "null", "minimizer", "force", "journal", "engine")
_OPTIONS = {
    "member_files": "--member",
    "probs_key": "--probs-key",
    "labels_key": "--labels-key",
    "from_logits": "--logits",
    "from_log": "--log",
    "n_resamples": "--resamples",
    "n_jobs": "--jobs",
    "rng": "--seed",
    **{name: f"--{name}" for name in _SAME},
}
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")
#: Code in Python is passed to a function; whoever has a file saves it there.
_PASSED = re.compile(r"\b([Pp])ass(?= `(?!-))")


@contextmanager
def as_options(*, quiet: bool = False, **others: str) -> Iterator[None]:
    """Reword errors and notes that pass through here; each note is shown once, or never if quiet.

    Parameters
    ----------
    quiet : bool
        Whether notes are left out.
    **others : str
        What further parameters are called here, such as ``path="FILE"``.
    """
    show, seen = warnings.showwarning, set()

    def show_once(message: Warning | str, category: type[Warning], *where: Any) -> None:
        text = in_options(str(message), **others)
        if text not in seen and not quiet:
            seen.add(text)
            show(text, category, *where)

    with warnings.catch_warnings():
        warnings.showwarning = show_once  # type: ignore[assignment]
        try:
            yield
        except InvalidInputError as error:
            raise InvalidInputError(in_options(str(error), **others)) from error


def in_options(message: str, **others: str) -> str:
    """Say a message with the names of options.

    >>> in_options("`alpha` must be below 1. Pass `alpha=0.05`, `from_log=True` or `labels - 1`.")
    '`--alpha` must be below 1. Pass `--alpha 0.05`, `--log` or `labels - 1`.'
    >>> in_options("They look 1-based. Pass `labels - 1`.")
    'They look 1-based. Save `labels - 1`.'
    """
    names = _OPTIONS | others

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name == "classes" and value:
            return "`--classes first,second,...`"
        if name not in names:
            return found.group()
        return f"`{names[name]}`" if value in (None, "True") else f"`{names[name]} {value}`"

    return _PASSED.sub(_save, _PARAMETER.sub(option, message))


def _save(found: re.Match[str]) -> str:
    return "Save" if found.group(1) == "P" else "save"
