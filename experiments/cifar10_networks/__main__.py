"""Fourteen published networks on CIFAR-10: tests of each, of the set and of its parts, and people.

    python -m experiments.cifar10_networks predictions.npz human.npz --out docs/figures/cifar10_networks

The first file holds `probs` (n_samples, n_members, n_classes), `labels` and `members`, their names; the
second `probs` (n_samples, n_classes), how people labelled the same images. Prints every number of the
page "Fourteen networks and fifty people", and writes tables (CSV) and figures (SVG).
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from experiments.cifar10_networks.collection import read
from experiments.cifar10_networks.parts import PARTS
from experiments.cifar10_networks.testing import Effort
from experiments.type_errors.running import in_words


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, run the parts asked for, write."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.cifar10_networks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("predictions", type=Path, help=".npz with probs, labels and members")
    parser.add_argument("humans", type=Path, help=".npz with probs, people's distributions")
    parser.add_argument("--out", type=Path, default=Path("docs/figures/cifar10_networks"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--rows", type=int, help="only the first rows, for a trial")
    numbers = {
        "n_resamples": ("-D", "--resamples", "null values of a test of the whole set"),
        "n_resamples_alone": ("--alone", "of a test of one network"),
        "n_resamples_many": ("--many", "of a test of a part of the set, or of drawn labels"),
        "n_resamples_pair": ("--pairs", "of a test of a pair"),
        "n_splits": ("--splits", "halves that choose weights for the other half"),
        "n_draws": ("--draws", "times that labels are drawn"),
        "seed": ("--seed", "seed of everything"),
        "n_jobs": ("--jobs", "threads; -1 for all cores"),
    }
    defaults = {field.name: field.default for field in fields(Effort)}
    for name, (*flags, text) in numbers.items():
        parser.add_argument(
            *flags, dest=name, type=int, default=defaults[name], help=f"{text} (%(default)s)"
        )
    options = parser.parse_args(arguments)
    collection = read(options.predictions, options.humans, options.rows)
    effort = Effort(**{name: getattr(options, name) for name in numbers})
    print(f"{collection.networks}; {', '.join(collection.names)}; seed {effort.seed}")
    for name in options.only:
        began = time.perf_counter()
        PARTS[name](collection, effort, options.out)
        print(f"{name} took {in_words(time.perf_counter() - began)}", flush=True)


if __name__ == "__main__":
    main()
