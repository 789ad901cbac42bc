"""The program `hullcal`: its commands, each loaded when it is called, and how it ends."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from hullcal._validation import unknown
from hullcal.cli.running import ending

#: The command's name, and the file that holds it.
_COMMANDS = {
    "test": "testing",
    "sizes": "others",
    "weights": "others",
    "monitor": "others",
    "simulate": "studies",
    "power": "studies",
    "measures": "others",
    "demo": "others",
}


class _Commands(click.Group):
    """Commands in the order of use; listing them imports none but the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(str(unknown("command", args[0], _COMMANDS)), ctx)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"hullcal.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from hullcal.io.results import versions

    own, python, *others = versions().items()
    click.echo(" ".join(own))
    click.echo(", ".join([f"Python {python[1]}", *map(" ".join, others)]))
    context.exit()


_EXAMPLES = """hullcal tests whether a set of classifiers is calibrated. Three ways to begin:

  hullcal demo                                   three real ensembles, and a report
  hullcal test predictions.npz                   your own: probs (rows, members, classes), labels
  hullcal test predictions.npz --report x.html   the same, with a page to look at

`hullcal --help` lists all commands."""


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and those of the packages that compute.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Test whether a set of classifiers, an ensemble, gives probabilities that can be trusted.

    Three questions: is the plain average of its members calibrated, is some weighted average, and does
    their convex hull contain the true probabilities?

    Start with `hullcal test FILE`, or with `hullcal demo` if there is no file yet.
    """
    if context.invoked_subcommand is None:
        click.echo(_EXAMPLES)


def run(arguments: list[str] | None = None) -> None:
    """Run the program and end it with its exit code."""
    with ending():
        value: Any = main.main(arguments, prog_name="hullcal", standalone_mode=False)
    sys.exit(value if isinstance(value, int) else 0)
