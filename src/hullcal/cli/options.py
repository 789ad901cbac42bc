"""What commands share: their options, the files they name, and messages in the words of options."""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np

from hullcal import io
from hullcal._validation import InvalidInputError, as_integers, refusal, unknown
from hullcal.cli.running import nobody_reads
from hullcal.io.reading import opened
from hullcal.io.source import Source
from hullcal.words import printable

Function = Callable[..., Any]
Option = Callable[[Function], Function]

PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)
FRACTION = click.FloatRange(0, 1, min_open=True, max_open=True)
_DEFAULT = click.core.ParameterSource.DEFAULT
#: Files that are named in a message.
_SHOWN = 5
#: How files begin that are no text.
_BEGINNINGS = {
    **{b"\x93NUMPY": ".npy", b"\x80": ".npy", b"PK": ".npz"},
    **{b"PAR1": ".parquet", b"\x89HDF": ".h5"},
}


class Command(click.Command):
    """Checks outputs before any work; errors and notes name options, each note once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; of several files, say how they are named."""
        ctx.allow_extra_args = any(each.name == "member_files" for each in self.params)
        others = super().parse_args(ctx, args)
        if others and not ctx.resilient_parsing:
            files = [ctx.params["file"], *others]
            raise click.UsageError(
                f"FILE must be one file with all members; got {' '.join(map(_quoted, files))}. Files "
                f"of one member each are {_members(files)}; labels are `--labels FILE`.",
                ctx,
            )
        return others

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with as_options(quiet=ctx.params.get("quiet", False)):
            _check_outputs(ctx.params)
            return super().invoke(ctx)


def _quoted(path: Path | str) -> str:
    return printable(shlex.quote(str(path)))


def _members(files: Sequence[Path | str]) -> str:
    """The options that name files of one member each."""
    shown = " ".join(f"--member {_quoted(each)}" for each in files[:_SHOWN])
    return f"`{shown}{' ...' * (len(files) > _SHOWN)}`"


def _check_outputs(given: dict[str, Any]) -> None:
    """Refuse what could not be written in the end, or would destroy an input, by whichever link."""
    inputs = (given.get("file"), given.get("labels"), *given.get("member_files", ()))
    taken = {os.path.realpath(path): "" for path in inputs if path is not None}
    for name in ("output", "report"):
        path = given.get(name)
        if path is None:
            continue
        other = taken.setdefault(os.path.realpath(path), name)
        if other != name:
            rule = f"must be another file than `--{other}`" if other else "must not be an input"
            raise refusal(f"--{name}", rule, repr(str(path)), "Name another file.")
        with as_options(path=f"--{name}"):
            io.check_output(path, force=given["force"])
        if name == "report":
            check_page(path, "--report")


def check_page(path: Path, option: str) -> None:
    """Refuse a report whose ending says that it is something else."""
    if path.suffix.lower() not in (".html", ".htm"):
        repair = "Name an HTML page; browsers print it as PDF."
        raise refusal(option, "must end in .html or .htm", repr(path.name), repair)


# Options


def named(*names: str, room: str, also: tuple[str, ...] = (), **how: Any) -> Option:
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

    return click.option(*names, callback=check, shell_complete=complete, **how)


MINIMIZER = named(
    "--minimizer",
    room="minimizers",
    default="steepest",
    help="The search, or steepest:100 for that many evaluations from each start.",
)
ALPHA = click.option("--alpha", type=FRACTION, default=0.05, help="Level of decisions.")
SEED = click.option(
    "--seed",
    "rng",
    type=click.IntRange(min=0),
    help="Seed; the one used is printed with the result.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress bar and no notices.")


def resamples(default: int) -> Option:
    """D."""
    help = "Data sets drawn for each test."
    return click.option("-D", "--resamples", "n_resamples", type=COUNT, default=default, help=help)


def jobs(what: str) -> Option:
    """Threads or processes."""
    help = f"{what}; results do not change."
    return click.option(
        "--jobs", "n_jobs", type=int, default=-1, show_default="all cores", help=help
    )


def _gathered(name: str, kind: type[Any], *options: Option) -> Option:
    """Options of a command that takes their values together, as one argument."""

    def decorated(command: Function) -> Function:
        @functools.wraps(command)
        def gathering(**arguments: Any) -> Any:
            names = [field.name for field in fields(kind) if field.name in arguments]
            own = {name: arguments.pop(name) for name in names}
            return command(**{name: kind(**own)}, **arguments)

        for decorate in reversed(options):
            decorate(gathering)
        return gathering

    return decorated


# Files

_READING = (
    click.option("--probs-key", default="probs", help="Name of the predictions in FILE."),
    click.option("--labels-key", default="labels", help="Name of the labels in FILE."),
    click.option("--classes", help="Names of the classes, separated by commas."),
    click.option("--logits", "from_logits", is_flag=True, help="FILE holds logits."),
    click.option("--log", "from_log", is_flag=True, help="FILE holds log-probabilities."),
    click.option(
        "--normalize",
        is_flag=True,
        help="Divide rows by their sums, such as rounded ones or votes.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where predictions and labels come from, and what is said of them."""

    file: Path | None = None
    labels: Path | None = None
    member_files: tuple[Path, ...] = ()
    probs_key: str = "probs"
    labels_key: str = "labels"
    classes: str | None = None
    from_logits: bool = False
    from_log: bool = False
    normalize: bool = False

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the classes as they were typed."""
        if self.classes is None:
            return None
        return tuple(name.strip() for name in self.classes.split(","))

    def options(self, labels: Any, there: Sequence[Any] | None) -> dict[str, Any]:
        """What is said of the predictions beside them, with classes as these labels call them.

        Names that are there, in the file, are not replaced: another order would mean other classes.
        """
        classes = there
        are_names = there is not None and list(there) != list(range(len(there)))
        if self.names is not None and not are_names:
            # Numeric labels mean numbers, not digits.
            numeric = getattr(labels, "dtype", np.dtype(int)).kind not in "OSTU"
            classes = tuple(as_integers(self.names)) if numeric else self.names
        elif self.names is not None and tuple(map(str, there or ())) != self.names:
            rule = "must be left out where FILE names its classes"
            came = f"{self.classes!r:.80} beside {reprlib.repr(there)}"
            raise refusal("--classes", rule, came, "Leave it out.")
        flags = {name: getattr(self, name) for name in ("from_logits", "from_log", "normalize")}
        return {"classes": classes, **flags}

    def read(self, *, needs_labels: bool = True) -> tuple[Any, Any]:
        """The classifiers of the files, and labels that they understand; None if none are needed."""
        from hullcal.sets import ClassifierSet

        if self.file is not None and self.file.is_dir() and not self.file.suffix:
            raise _folder_for_file(self.file)
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
            came = f"none in {', '.join(map(repr, data.sources))}"
            repair = "Name the array or column with `--labels-key`"
            repair += ", or pass `--labels FILE`." if "member_files" in _option_names() else "."
            raise refusal("labels", "must come with the predictions", came, repair)
        options = {"members": data.members, **self.options(data.labels, data.classes)}
        if not needs_labels:
            return ClassifierSet(data.probs, **options), None
        return ClassifierSet.with_labels(data.probs, data.labels, **options)[0], data.labels


def _folder_for_file(folder: Path) -> InvalidInputError:
    """The error for a folder in place of a file: how this command takes what it holds, if it does."""
    known, repairs = _option_names(), []
    files = (each for each in sorted(folder.glob("*.npy")) if _holds_one_member(each))
    members = list(islice(files, _SHOWN + 1))
    if "member_files" in known and len(members) > 1:
        repairs.append(f"Files of one member each are {_members(members)}.")
    if "engine" in known:
        repairs.append("Shards of the rows are for `--engine dask`.")
    rule, came = "must be a file, or a Zarr store", f"a folder, {str(folder)!r}"
    return refusal("FILE", rule, came, " ".join(repairs) or "Name a file.")


def _holds_one_member(path: Path) -> bool:
    """Whether a file holds an array (rows, classes)."""
    with suppress(InvalidInputError):
        if path.is_file():
            with opened(Source.of(path)) as parts:
                return len(parts.probs.shape) == 2
    return False


reads_files = _gathered(
    "files",
    Files,
    click.argument("file", type=PATH, required=False),  # or a hyphen
    click.option("--labels", type=PATH, help="File of labels, if they are not in FILE."),
    click.option(
        "--member",
        "member_files",
        type=PATH,
        multiple=True,
        help="Predictions of one member, (N, K); repeat for each, in place of FILE.",
    ),
    *_READING,
)
#: How each of several files is read.
reads_batches = _gathered("reading", Files, *_READING)


@contextmanager
def _named(file: Path | None) -> Iterator[Any]:
    """The file, or what comes from standard input, if it is a hyphen, in a file for as long as needed."""
    if str(file) != "-":
        yield file
        return
    stream = sys.stdin.buffer
    begin = stream.read(6)
    kind = next((kind for magic, kind in _BEGINNINGS.items() if begin.startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory(prefix="hullcal-") as folder:
        path = Path(folder, f"stdin{kind}")
        with path.open("wb") as copy:
            copy.write(begin)
            shutil.copyfileobj(stream, copy)
        yield Source(path, called="standard input")


# What is printed


FORCE = click.option("--force", is_flag=True, help="Overwrite files that exist.")


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


FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    callback=_by_output,
    help="What is printed; the ending of --output decides if this is left out.",
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go, and in which form."""

    form: str
    output: Path | None = None
    force: bool = False

    def show(self, **forms: Callable[[], str]) -> None:
        """Print the form that was asked for, or write it to the file that was named."""
        text = forms[self.form]().rstrip("\n")
        if self.output is not None:
            io.write_atomic(self.output, text + "\n", force=self.force)
            return
        try:
            click.echo(text)
        except BrokenPipeError:
            # Whoever has read enough of it still wants the report, and the decision.
            nobody_reads(sys.stdout)


shows_results = _gathered(
    "out",
    Output,
    click.option(
        "-o",
        "--output",
        type=PATH,
        help="Write to this file (.txt, .json or .csv) instead of printing.",
    ),
    FORMAT,
    FORCE,
)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Numbers under their names."""
    return "\n".join(",".join(map(str, line)) for line in (rows[0], *(r.values() for r in rows)))


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


# Messages

_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")
#: Code in Python is passed to a function; whoever has a file saves it there.
_PASSED = re.compile(r"\b([Pp])ass(?= `(?!-))")


@contextmanager
def as_options(*, quiet: bool = False, **others: str) -> Iterator[None]:
    """Reword errors and notes that pass through here; each note is shown once, or never if quiet.

    `others` says what further parameters are called here, such as ``path="FILE"``.
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
    """Say a message with the names of options, which the running command knows.

    >>> names = {"alpha": "--alpha", "from_log": "--log"}
    >>> in_options("`alpha` must be below 1. Pass `alpha=0.05`, `from_log=True` or `y - 1`.", **names)
    '`--alpha` must be below 1. Pass `--alpha 0.05`, `--log` or `y - 1`.'
    >>> in_options("They look 1-based. Pass `labels - 1`.")
    'They look 1-based. Save `labels - 1`.'
    """
    names = _option_names() | others

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name == "classes" and value:
            return "`--classes first,second,...`"
        if name not in names:
            return found.group()
        return f"`{names[name]}`" if value in (None, "True") else f"`{names[name]} {value}`"

    save = {"P": "Save", "p": "save"}
    return _PASSED.sub(lambda found: save[found[1]], _PARAMETER.sub(option, message))


def _option_names() -> dict[str, str]:
    """What the running command calls parameters, which are named as here or as their options."""
    context = click.get_current_context(silent=True)
    names: dict[str | None, str] = {}
    for option in [] if context is None else context.command.params:
        flag = max(option.opts, key=len)
        if isinstance(option, click.Option):
            names |= dict.fromkeys((option.name, flag[2:].replace("-", "_")), flag)
    # Those may be in FILE as well.
    return {str(name): flag for name, flag in names.items() if name not in ("labels", "classes")}
