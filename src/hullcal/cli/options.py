"""Options that several commands share, the files they name, and messages in their words."""

from __future__ import annotations

import functools
import importlib
import os
import re
import reprlib
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import numpy as np

from hullcal._validation import InvalidInputError, as_integers, refusal, unknown
from hullcal.cli.running import nobody_reads

Command = Callable[..., Any]
Option = Callable[[Command], Command]

PATH = click.Path(path_type=Path)
_DEFAULT = click.core.ParameterSource.DEFAULT
#: How files begin that are no text.
_BEGINNINGS = {
    **{b"\x93NUMPY": ".npy", b"\x80": ".npy", b"PK": ".npz"},
    **{b"PAR1": ".parquet", b"\x89HDF": ".h5"},
}
#: What predictions are, and the parameters that say so.
_FLAGS = {"logits": "from_logits", "log_probs": "from_log", "normalize": "normalize"}


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
    normalize: bool

    @classmethod
    def named(cls, file: Path) -> Files:
        """One file with predictions and labels under their usual names."""
        usual: dict[str, Any] = {"probs_key": "probs", "labels_key": "labels", "member_files": ()}
        usual |= dict.fromkeys(("labels", "classes")) | dict.fromkeys(_FLAGS, False)
        return cls(file=file, **usual)

    @property
    def options(self) -> dict[str, Any]:
        """What is said of the predictions beside them."""
        flags = {name: getattr(self, option) for option, name in _FLAGS.items()}
        return {"classes": self.names, **flags}

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

        with as_options(path="FILE", labels="--labels"), _named(self.file) as file:
            data = io.read(
                file,
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


@contextmanager
def _named(file: Path | None) -> Iterator[Any]:
    """The file, or what comes from standard input, if it is a hyphen, in a file for as long as needed."""
    if str(file) != "-":
        yield file
        return
    from hullcal.io.source import Source

    stream = sys.stdin.buffer
    begin = stream.read(6)
    kind = next((kind for magic, kind in _BEGINNINGS.items() if begin.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="hullcal-") as folder:
        path = Path(folder, f"stdin{kind}")
        with path.open("wb") as copy:
            copy.write(begin)
            shutil.copyfileobj(stream, copy)
        yield Source(path, called="standard input")


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """How tests are run."""

    measures: tuple[str, ...]
    questions: tuple[str, ...]
    null: str | None
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


def named_option(*names: str, room: str, also: tuple[str, ...] = (), **how: Any) -> Option:
    """Names that a room does not know are refused before any file is read, and known ones completed.

    A number may follow the name of a measure or of a search, as in ``ece_conf:5``.
    """

    def known() -> tuple[str, ...]:
        return (*importlib.import_module(f"hullcal.{room}").available(), *also)

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        default = context.get_parameter_source(str(parameter.name)) is _DEFAULT
        # What stands by default is known, and need not be looked for in rooms slow to enter.
        if default or value is None:
            return value
        several = isinstance(value, tuple)
        names = [one for each in value for one in each.split(",")] if several else [value]
        for given in names:
            name = given if room == "nulls" else given.partition(":")[0]
            if name not in known():
                raise click.BadParameter(str(unknown(room.removesuffix("s"), given, known())))
        return tuple(dict.fromkeys(names)) if several else value

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        return [name for name in known() if name.startswith(begun)]

    how |= {"callback": check, "shell_complete": complete}
    return click.option(*names, show_default="default" in how, **how)


def count_option(*names: str, default: int | None = None, **how: Any) -> Option:
    """A number of things, at least one."""
    how |= {"type": click.IntRange(min=1), "default": default}
    return click.option(*names, show_default=default is not None, **how)


def fraction_option(name: str, *, default: float, help: str) -> Option:
    """A number between 0 and 1, and neither of them."""
    kind = click.FloatRange(0, 1, min_open=True, max_open=True)
    return click.option(name, type=kind, default=default, show_default=True, help=help)


_INPUT = (
    click.argument("file", type=PATH, required=False),  # or a hyphen
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
    click.option(
        "--normalize",
        is_flag=True,
        help="Divide rows by their sums, such as rounded ones or votes.",
    ),
)


def measure_option(**how: Any) -> Option:
    """Calibration measure, by name."""
    return named_option("-m", "--measure", room="measures", **how)


MINIMIZER = named_option(
    "--minimizer",
    room="minimizers",
    default="steepest",
    help="The search, or steepest:100 for that many evaluations from each start.",
)
ALPHA = fraction_option("--alpha", default=0.05, help="Level of decisions.")
SEED = click.option(
    "--seed", type=click.IntRange(min=0), help="Seed; the one used is printed with the result."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress bar and no notices.")
VERBOSE = click.option(
    "-v", "--verbose", is_flag=True, help="Print the figures of every test, too."
)
FORCE = click.option("--force", is_flag=True, help="Overwrite files that exist.")
OUTPUT = click.option(
    "-o",
    "--output",
    type=PATH,
    help="Write to this file (.txt, .json or .csv) instead of printing.",
)


def resamples_option(default: int) -> Option:
    """D."""
    help = "Data sets drawn for each test."
    return count_option("-D", "--resamples", "n_resamples", default=default, help=help)


def jobs_option(what: str) -> Option:
    """Threads or processes."""
    help = f"{what}; results do not change."
    return click.option("--jobs", type=int, default=-1, show_default="all cores", help=help)


_TEST = (
    named_option(
        "-m",
        "--measure",
        "measures",
        room="measures",
        also=("all",),
        multiple=True,
        default=("ece_conf",),
        help="Calibration measure (see `hullcal measures`), or ece_conf:5 for five bins; several as "
        'a,b, or "all" that take less than a minute.',
    ),
    click.option(
        "--question",
        "questions",
        type=click.Choice(["average", "calibrated", "truth"]),
        multiple=True,
        help="Which question to ask; repeat for several.  [default: all three]",
    ),
    named_option(
        "--null",
        room="nulls",
        help='How "calibrated" gets its reference distribution: stacked, recentered, maximized or '
        "paper.  [default: stacked, or recentered beyond memory]",
    ),
    MINIMIZER,
    resamples_option(999),
    ALPHA,
    click.option(
        "--stop-after",
        type=click.IntRange(min=2),
        metavar="H",
        default=100,
        show_default=True,
        help="Stop a test once H null values have reached its statistic: p is clearly large.",
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
    count_option("--workers", help="Start so many Dask workers here."),
    click.option(
        "--journal",
        type=PATH,
        metavar="FOLDER",
        help="Keep finished resamples in this folder, so that an interrupted run can be resumed.",
    ),
    click.option("--resume", is_flag=True, help="Resume an interrupted run (needs --journal)."),
)


def _by_output(context: click.Context, parameter: click.Parameter, form: str) -> str:
    """The form, or that of the ending of the file it goes to."""
    output = context.params.get("output")
    if output is not None and context.get_parameter_source("form") is _DEFAULT:
        forms = {".json": "json", ".csv": "csv", ".txt": "table", "": "table"}
        if output.suffix.lower() not in forms:
            raise click.BadParameter(
                f"{output.name!r} must end in .txt, .json or .csv.", param_hint="'--output'"
            )
        return forms[output.suffix.lower()]
    return form


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    callback=_by_output,
    help="What is printed; the ending of --output decides if this is left out.",
)


def input_options(command: Command) -> Command:
    """FILE and everything that says how to read it, as one argument `files`."""

    @functools.wraps(command)
    def reworded(**arguments: Any) -> Any:
        _check_not_input(arguments["files"], arguments)
        with as_options(quiet=arguments.get("quiet", False)):
            return command(**arguments)

    return _gathered(reworded, "files", Files, _INPUT)


def _check_not_input(files: Files, arguments: Mapping[str, Any]) -> None:
    """Refuse an output that is an input, by whichever link: also `--force` must not destroy it."""
    given = (files.file, files.labels, *files.member_files)
    inputs = {os.path.realpath(path) for path in given if path is not None}
    for name in ("output", "report"):
        path = arguments.get(name)
        if path is not None and os.path.realpath(path) in inputs:
            rule, came = "must not be an input", repr(str(path))
            raise refusal(f"--{name}", rule, came, "Name another file.")


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


def print_or_write(text: str, output: Path | None, *, force: bool) -> None:
    """Results go to stdout, or to the file that was named."""
    from hullcal import io

    text = text.rstrip("\n")
    if output is not None:
        io.write_atomic(output, text + "\n", force=force)
        return
    try:
        click.echo(text)
    except BrokenPipeError:
        # Whoever has read enough of it still wants the report, and the decision.
        nobody_reads(sys.stdout)


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


#: What parameters are called here; some are options of the same name.
_OPTIONS = {
    **{
        name: f"--{name}"
        for name in [
            "alpha",
            "measure",
            "null",
            "minimizer",
            "force",
            "journal",
            "engine",
            "normalize",
        ]
    },
    **{name: f"--{name.replace('_', '-')}" for name in ("probs_key", "labels_key")},
    **{"member_files": "--member", "from_logits": "--logits", "from_log": "--log"},
    **{
        "n_resamples": "--resamples",
        "stop_after": "--stop-after",
        "n_jobs": "--jobs",
        "rng": "--seed",
    },
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

    save = {"P": "Save", "p": "save"}
    return _PASSED.sub(lambda found: save[found[1]], _PARAMETER.sub(option, message))
