"""Options that several commands share: which files, and how a test is run."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from hullcal._validation import InvalidInputError
from hullcal.cli.inputs import Files
from hullcal.cli.wording import as_options

Command = Callable[..., Any]

_FILE = click.Path(path_type=Path)


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


_DEFAULT = click.core.ParameterSource.DEFAULT

_INPUT = (
    click.argument("file", type=_FILE, required=False),
    click.option("--labels", type=_FILE, help="File of labels, if they are not in FILE."),
    click.option(
        "--member",
        "member_files",
        type=_FILE,
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
_TEST = (
    click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        default=("ece_conf",),
        show_default=True,
        **known("measures", "all", numbered=True),
        help="Calibration measure (`hullcal measures` lists them), or ece_conf:5 for five bins; repeat "
        'for several, or "all".',
    ),
    click.option(
        "--null",
        "nulls",
        multiple=True,
        **known("nulls"),
        help="How the reference distribution is made: stacked, recentered, refit, maximized or paper; "
        "repeat for several. Left out, both questions are answered: stacked and refit.",
    ),
    click.option(
        "--minimizer",
        default="steepest",
        show_default=True,
        **known("minimizers", numbered=True),
        help="The search, or steepest:100 for that many evaluations from each start.",
    ),
    click.option(
        "-D",
        "--resamples",
        "n_resamples",
        type=click.IntRange(min=1),
        default=999,
        show_default=True,
        help="Data sets drawn for each test.",
    ),
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.05,
        show_default=True,
        help="Level of decisions.",
    ),
    click.option(
        "--stop-after",
        type=click.IntRange(min=2),
        metavar="H",
        help="Stop resampling once H null values have reached the statistic; 10 is usual.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Seed; the one used is printed with the result.",
    ),
    click.option(
        "--jobs", default=-1, show_default="all cores", help="Threads; results do not change."
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        help="Who evaluates: this machine, or the workers of a Dask cluster. FILE may then be a Zarr "
        "store or a folder of .npy, .npz or Parquet shards that is never read here.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
    click.option("--workers", type=click.IntRange(min=1), help="Start so many Dask workers here."),
    click.option(
        "--journal",
        type=_FILE,
        metavar="FOLDER",
        help="Keep finished resamples there, so that a run that was stopped can go on.",
    ),
    click.option("--resume", is_flag=True, help="Go on with the run whose journal this is."),
    click.option("--quiet", is_flag=True, help="No progress bar and no notices."),
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


def test_options(command: Command) -> Command:
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
