"""`hullcal measures`: what there is to choose from."""

from __future__ import annotations

import click


@click.command("measures")
def command() -> None:
    """List the measures by notion of calibration, nulls and searches."""
    from hullcal import measures, minimizers, nulls

    by_notion: dict[str, list[str]] = {}
    for name in measures.available():
        by_notion.setdefault(measures.resolve(name).notion, []).append(name)
    click.echo("measures")
    for notion, names in sorted(by_notion.items()):
        click.echo(f"  {notion:<12}{', '.join(names)}")
    click.echo("nulls")
    for name in nulls.available():
        click.echo(f"  {name:<12}{nulls.resolve(name).hypothesis}")
    click.echo(f"minimizers\n  {', '.join(minimizers.available())}")
