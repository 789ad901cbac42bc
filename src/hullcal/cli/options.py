"""Options that several commands share, the files they name, and messages in their words."""

from __future__ import annotations

import difflib
import functools
import importlib
import re
import reprlib
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import numpy as np

from hullcal._validation import InvalidInputError
from hullcal.io.tables import as_integers

Command = Callable[..., Any]
Option = Callable[[Command], Command]

PATH = click.Path(path_type=Path)
_DEFAULT = click.core.ParameterSource.DEFAULT


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


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """How tests are run."""

    measures: tuple[str, ...]
    nulls: tuple[str, ...]
    minimizer: str
    n_resamples: int
    alpha: float
    stop_after: int | None
    seed: int | None
    jobs: int
    engine: str | None
    scheduler: str | None
    workers: int | None
    journal: Path | None
    resume: bool
    quiet: bool


def known(room: str, *also: str, numbered: bool = False) -> dict[str, Any]:
    """Options of an option: names that a room does not know are refused before any file is read.

    With `numbered` a number may follow a name, as in ``ece_conf:5``.
    """

    def names() -> tuple[str, ...]:
        return (*importlib.import_module(f"hullcal.{room}").available(), *also)

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        default = context.get_parameter_source(str(parameter.name)) is _DEFAULT
        # What stands by default is known, and need not be looked for in rooms slow to enter.
        for given in () if default else (value if isinstance(value, tuple) else (value,)):
            name = given.partition(":")[0] if numbered else given
            if name not in names():
                near = difflib.get_close_matches(name, names(), n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise click.BadParameter(f"{given!r} is not one of {', '.join(names())}.{hint}")
        return value

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        return [name for name in names() if name.startswith(begun)]

    return {"callback": check, "shell_complete": complete}


_INPUT = (
    click.argument("file", type=PATH, required=False),
    click.option("--labels", type=PATH, help="File of labels, if they are not in FILE."),
    click.option(
        "--member",
        "member_files",
        type=PATH,
        multiple=True,
        help="Predictions of one member, (N, K); repeat for each, in place of FILE.",
    ),
    click.option(
        "--probs-key", default="probs", show_default=True, help="Name of the predictions in FILE."
    ),
    click.option(
        "--labels-key", default="labels", show_default=True, help="Name of the labels in FILE."
    ),
    click.option("--classes", help="Names of the classes, separated by commas."),
    click.option("--logits", is_flag=True, help="FILE holds logits."),
    click.option("--log", "log_probs", is_flag=True, help="FILE holds log-probabilities."),
)


def _positive(*names: str, default: int | None = None, **how: Any) -> Option:
    how.setdefault("type", click.IntRange(min=1))
    return click.option(*names, default=default, show_default=default is not None, **how)


def _named(*names: str, room: str, also: tuple[str, ...] = (), **how: Any) -> Option:
    numbered = room != "nulls"
    default = how.get("default")
    return click.option(
        *names, show_default=default is not None, **known(room, *also, numbered=numbered), **how
    )


def measure_option(**how: Any) -> Option:
    """Calibration measure, by name."""
    return _named("-m", "--measure", room="measures", **how)


MINIMIZER = _named(
    "--minimizer",
    room="minimizers",
    default="steepest",
    help="The search, or steepest:100 for that many evaluations from each start.",
)
ALPHA = click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Level of decisions.",
)
SEED = click.option(
    "--seed", type=click.IntRange(min=0), help="Seed; the one used is printed with the result."
)
QUIET = click.option("--quiet", is_flag=True, help="No progress bar and no notices.")
FORCE = click.option("--force", is_flag=True, help="Overwrite files that exist.")
OUTPUT = click.option("--output", type=PATH, help="Write what would be printed to this file.")


def resamples_option(default: int) -> Option:
    """D."""
    help = "Data sets drawn for each test."
    return _positive("-D", "--resamples", "n_resamples", default=default, help=help)


def jobs_option(what: str) -> Option:
    """Threads or processes."""
    help = f"{what}; results do not change."
    return click.option("--jobs", type=int, default=-1, show_default="all cores", help=help)


_TEST = (
    _named(
        "-m",
        "--measure",
        "measures",
        room="measures",
        also=("all",),
        multiple=True,
        default=("ece_conf",),
        help="Calibration measure (`hullcal measures` lists them), or ece_conf:5 for five bins; repeat "
        'for several, or "all".',
    ),
    _named(
        "--null",
        "nulls",
        room="nulls",
        multiple=True,
        help="How the reference distribution is made: stacked, recentered, refit, maximized or paper; "
        "repeat for several. Left out, both questions are answered: stacked and refit.",
    ),
    MINIMIZER,
    resamples_option(999),
    ALPHA,
    click.option(
        "--stop-after",
        type=click.IntRange(min=2),
        metavar="H",
        help="Stop resampling once H null values have reached the statistic; 10 is usual.",
    ),
    SEED,
    jobs_option("Threads"),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        help="Backend: this machine, or the workers of a Dask cluster. FILE may then be a Zarr "
        "store or a folder of .npy, .npz, .h5, .safetensors or .parquet shards.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
    _positive("--workers", help="Start so many Dask workers here."),
    click.option(
        "--journal",
        type=PATH,
        metavar="FOLDER",
        help="Keep finished resamples there, so that a run that was stopped can go on.",
    ),
    click.option("--resume", is_flag=True, help="Resume an interrupted run (needs --journal)."),
    QUIET,
)


def _by_output(context: click.Context, parameter: click.Parameter, form: str) -> str:
    """The form, or that of the ending of the file it goes to."""
    output = context.params.get("output")
    if output is not None and context.get_parameter_source("form") is _DEFAULT:
        return {".json": "json", ".csv": "csv"}.get(output.suffix.lower(), form)
    return form


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    callback=_by_output,
    help="What is printed; left out, an --output that ends in .json or .csv says it.",
)


def input_options(command: Command) -> Command:
    """FILE and everything that says how to read it, as one argument `files`."""

    @functools.wraps(command)
    def reworded(**arguments: Any) -> Any:
        with as_options(quiet=arguments.get("quiet", False)):
            return command(**arguments)

    return _gathered(reworded, "files", Files, _INPUT)


def testing_options(command: Command) -> Command:
    """How tests are run, as one argument `how`."""
    return _gathered(command, "how", TestOptions, _TEST)


def _gathered(
    command: Command, name: str, kind: type[Any], options: tuple[Callable[[Command], Command], ...]
) -> Command:
    """Add options to a command that takes their values together, as one object."""

    @functools.wraps(command)
    def gathering(**arguments: Any) -> Any:
        own = {field.name: arguments.pop(field.name) for field in fields(kind)}
        return command(**{name: kind(**own)}, **arguments)

    for decorate in reversed(options):
        decorate(gathering)
    return gathering


def check_outputs(*, force: bool, **paths: Path | None) -> None:
    """Refuse before any work what could not be written after it; named as the options are."""
    from hullcal import io

    taken: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        with as_options(path=f"--{name}"):
            target = io.check_output(path, force=force)
        if target in taken:
            raise InvalidInputError(
                f"`--{name}` must be another file than `--{taken[target]}`; got {str(path)!r} for "
                "both. Name two files."
            )
        taken[target] = name


def command_line(seed: int) -> str:
    """The command as it was typed, to be repeated: with the seed, if that was left to chance."""
    name, *words = sys.argv[1:] or [""]
    given = {word.partition("=")[0] for word in words}
    if "--seed" not in given:
        words = ["--seed", str(seed), *words]
    # What it wrote will be there.
    if given & {"--report", "--output", "-o"} and "--force" not in given:
        words.append("--force")
    return shlex.join(["hullcal", name, *words])


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells under their headings, the first column to the left and the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


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
