"""`hullcal monitor`: add files to the state of a monitor, and say what the evidence is."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hullcal._validation import InvalidInputError
from hullcal.cli.options import PATH, Files, format_option
from hullcal.cli.running import REJECTED


@click.command("monitor", short_help="Do labels still follow a combination of the members?")
@click.argument("state", type=PATH)
@click.argument("files", nargs=-1, type=PATH, metavar="[FILE]...")
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Level of the decision; settled when the state is new.",
)
@click.option(
    "--alarm-every",
    type=int,
    default=1000,
    show_default=True,
    help="Batches between false alarms, on average at least; settled when the state is new.",
)
@click.option("--reset", is_flag=True, help="Restart the evidence before the files are added.")
@format_option
@click.option("--exit-code", is_flag=True, help="End with 1 if rejected.")
def monitor(
    state: Path,
    files: tuple[Path, ...],
    alpha: float,
    alarm_every: int,
    reset: bool,
    form: str,
    exit_code: bool,
) -> int:
    """Watch whether labels still follow some combination of the members.

    STATE is a file that holds the evidence so far; it is made if there is none. Each FILE, with
    predictions and labels as for `hullcal test`, is one more batch, in the order given. The decision
    is valid whenever one looks.

    \b
    hullcal monitor state.npz monday.npz tuesday.npz
    hullcal monitor state.npz wednesday.npz --exit-code
    """  # noqa: D301
    from hullcal.monitor import Monitor

    watch = Monitor.load(state) if state.exists() else None
    if watch is None and not files:
        raise InvalidInputError(f"File not found: {state}. Name the files of the first batches.")
    if watch is not None and reset:
        watch.reset()
    for file in files:
        classifiers, labels = Files.named(file).read()
        if watch is None:
            sizes = {"n_members": classifiers.n_members, "n_classes": classifiers.n_classes}
            watch = Monitor(**sizes, alpha=alpha, alarm_every=alarm_every)
        watch.update(classifiers, labels)
    assert watch is not None
    watch.save(state)
    if form == "table":
        click.echo(str(watch))
    else:
        # Numbers that JSON does not have are left out.
        found = {
            "n_rows": watch.n_rows,
            "log_evalue": watch.log_evalue,
            "pvalue": watch.pvalue,
            "rejected": watch.rejected,
            "alarm": watch.alarm,
            "temperature": watch.temperature,
        }
        if form == "json":
            finite = {
                name: None if value == float("inf") else value for name, value in found.items()
            }
            click.echo(json.dumps(finite, indent=2))
        else:
            click.echo(",".join(found) + "\n" + ",".join(map(str, found.values())))
    return REJECTED if exit_code and watch.rejected else 0
