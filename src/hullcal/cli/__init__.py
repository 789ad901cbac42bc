"""The program `hullcal`: its commands, each loaded when it is called, and how it ends."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from hullcal.cli.running import ending, told_of_readers

#: The command's name, and the file that holds it.
_COMMANDS = {
    "test": "testing",
    "sizes": "others",
    "weights": "others",
    "simulate": "studies",
    "power": "studies",
    "measures": "others",
    "demo": "others",
}


class _Commands(click.Group):
    """Commands in the order of use; listing them imports none but the one that is called."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with told_of_readers():  # help and version are printed here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with told_of_readers():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

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


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and those of the packages that compute.",
)
def main() -> None:
    """Does the convex hull of these classifiers contain a calibrated one?

    Start with `hullcal test FILE`, or with `hullcal demo` if there is no file yet.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run the program and end it with its exit code."""
    with ending():
        value: Any = main.main(arguments, prog_name="hullcal", standalone_mode=False)
    sys.exit(value if isinstance(value, int) else 0)
