"""Options that several commands share: where predictions come from, and how a test is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hullcal._validation import InvalidInputError

Command = Callable[..., Any]

_FILE = click.Path(path_type=Path)


def input_options(command: Command) -> Command:
    """FILE and everything that says how to read it."""
    for decorate in reversed(
        [
            click.argument("file", type=_FILE, required=False),
            click.option("--labels", type=_FILE, help="File of labels, if they are not in FILE."),
            click.option(
                "--member",
                "member_files",
                type=_FILE,
                multiple=True,
                help="Predictions of one member, (N, K); repeat for each, in place of FILE.",
            ),
            click.option("--probs-key", default="probs", show_default=True, help="Name in FILE."),
            click.option("--labels-key", default="labels", show_default=True, help="Name in FILE."),
            click.option("--classes", help="Names of the classes, separated by commas."),
            click.option("--logits", is_flag=True, help="FILE holds logits."),
            click.option("--log", "log_probs", is_flag=True, help="FILE holds log-probabilities."),
        ]
    ):
        command = decorate(command)
    return command


def test_options(command: Command) -> Command:
    """How tests are run."""
    for decorate in reversed(
        [
            click.option(
                "-m",
                "--measure",
                "measures",
                multiple=True,
                default=("ece_conf",),
                show_default=True,
                help='Calibration measure; repeat for several, or "all".',
            ),
            click.option(
                "--null",
                "nulls",
                multiple=True,
                help="How the reference distribution is made; repeat for several. Left out, both "
                "questions are answered: recentered and refit.",
            ),
            click.option("-D", "--resamples", "n_resamples", default=999, show_default=True),
            click.option("--alpha", default=0.05, show_default=True, help="Level of decisions."),
            click.option("--seed", type=int, help="Seed; the one used is printed with the result."),
            click.option(
                "--jobs",
                default=-1,
                show_default="all cores",
                help="Threads; results do not change.",
            ),
            click.option("--quiet", is_flag=True, help="No progress bar and no notices."),
        ]
    ):
        command = decorate(command)
    return command


def read_set(
    file: Path | None,
    *,
    labels: Path | None,
    member_files: tuple[Path, ...],
    probs_key: str,
    labels_key: str,
    classes: str | None,
    logits: bool,
    log_probs: bool,
    needs_labels: bool = True,
) -> tuple[Any, Any]:
    """The classifiers of the files, and the labels (None if there are none and none are needed)."""
    from hullcal import io
    from hullcal.sets import ClassifierSet

    data = io.read(
        file,
        member_files=member_files,
        labels=labels,
        probs_key=probs_key,
        labels_key=labels_key,
    )
    if data.labels is None and needs_labels:
        raise InvalidInputError(
            f"`labels` must come with the predictions; {', '.join(data.sources)} holds none. Put "
            "them under the key `labels`, or pass `--labels FILE`."
        )
    names = data.classes if classes is None else [name.strip() for name in classes.split(",")]
    classifiers = ClassifierSet(
        data.probs, classes=names, members=data.members, from_logits=logits, from_log=log_probs
    )
    return classifiers, data.labels
