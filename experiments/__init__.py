"""Figures and tables from real data and from the paper, each by one command, by public names alone."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter


def command_line(module: str, description: str | None) -> ArgumentParser:
    """The parser of ``python -m module``, which shows the description as it was typed."""
    own = {"prog": f"python -m {module}", "description": description}
    return ArgumentParser(**own, formatter_class=RawDescriptionHelpFormatter)


def named(measure: str, null: str) -> str:
    """The test whose null values are made so; those of a test of the truth by a measure are "refit".

    >>> named("ece_conf:5", "stacked"), named("ece_conf", "refit")
    ('calibrated:ece_conf:5:stacked', 'truth:ece_conf')
    """
    return f"truth:{measure}" if null == "refit" else f"calibrated:{measure}:{null}"
