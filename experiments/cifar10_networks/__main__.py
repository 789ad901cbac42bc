"""Fourteen published networks on CIFAR-10: tests of each, of the set and of its parts, and people.

    python -m experiments.cifar10_networks predictions.npz human.npz --out docs/figures/cifar10_networks

The first file holds `probs` (n_samples, n_members, n_classes), `labels` and `members`, their names; the
second `probs` (n_samples, n_classes), how people labelled the same images. Prints every number of the
page "Fourteen networks and fifty people", and writes tables (CSV) and figures (SVG).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import hullcal as hc
from experiments import command_line
from experiments.cifar10_networks import figures, humans, study
from experiments.cifar10_networks.study import MEASURES, NULLS, Collection, Effort
from experiments.tables import Rows, show, timed, with_intervals, write


def networks(collection: Collection, effort: Effort, out: Path) -> None:
    """Each network alone."""
    rows = study.alone(collection, effort)
    shown = with_intervals(rows, "accuracy", "confidence")
    shown = with_intervals(shown, *(f"{measure}_p" for measure in MEASURES), digits=4)
    columns = ("network", "accuracy", "log_score", "confidence", *MEASURES)
    pvalues = (f"{measure}_{end}" for measure in MEASURES for end in ("p", "holm"))
    show(shown, (*columns, *pvalues), title=f"Alone, D = {effort.n_resamples_alone}")
    write(rows, out / "networks.csv")
    best = study.smallest(collection.networks, collection.labels, effort, "ece_conf")
    print(f"smallest ece_conf in the hull: {best:.4f}")
    figures.draw_alone(rows, best, out / "networks.svg")


def whole_set(collection: Collection, effort: Effort, out: Path) -> None:
    """All networks: tests, and the best combination on other rows."""
    rows = study.whole(collection, effort)
    columns = ("measure", "null", "statistic", "critical_value", "p", "evalue")
    show(with_intervals(rows, "p"), columns, title="The whole set")
    write(rows, out / "whole.csv")
    scores, weights = study.splits(collection, effort)
    summary = study.summarised(scores)
    columns = ("way", *study.SCORES, *(f"{m}_rejected" for m in MEASURES))
    title = f"On the other half: mean (least, greatest) of {effort.n_splits} splits"
    show(with_intervals(summary, *study.SCORES, digits=4), columns, title=title)
    write(summary, out / "splits.csv")
    ranges = study.weight_ranges(weights)
    columns = ("measure", "network", "weight")
    show(with_intervals(ranges, "weight", digits=2), columns, title="Weights of the splits")
    write(ranges, out / "weights.csv")
    figures.draw_weights(ranges, out / "weights.svg")


def parts_of_the_set(collection: Collection, effort: Effort, out: Path) -> None:
    """Families and pairs."""
    groups = study.groups(collection, effort)
    pairs = study.pairs(collection, effort)
    _show_parts(out, groups, "groups", MEASURES)
    _show_parts(out, pairs, "pairs", MEASURES[:1])
    counts = study.counted(pairs)
    show(counts, tuple(counts[0]), title="Pairs rejected at .05")
    g, networks = hc.ConfidenceECE(), collection.networks
    alone = {
        name: g(networks.subset([name]).mean(), collection.labels) for name in collection.names
    }
    figures.draw_pairs(pairs, alone, out / "pairs.svg")
    figures.draw_sizes(groups, pairs, out / "sizes.svg")


def _show_parts(out: Path, rows: Rows, name: str, measures: Sequence[str]) -> None:
    pvalues = [f"{measure}_{null}_p" for measure in measures for null in NULLS]
    columns = ("set", "n_members", "accuracy", *measures, *pvalues, *study.SIZES)
    title = f"{name}, D = {rows[0]['n_resamples']}"
    show(with_intervals(rows, *pvalues, digits=2), columns, title=title)
    write(rows, out / f"{name}.csv")


def one_by_one(collection: Collection, effort: Effort, out: Path) -> None:
    """Validity and size as networks join in the order of the file."""
    rows = study.growing(collection, effort)
    _show_parts(out, rows, "growing", MEASURES)
    figures.draw_growing(rows, out / "growing.svg")


def people(collection: Collection, effort: Effort, out: Path) -> None:
    """Human label distributions."""
    distances = humans.distances(collection, effort.seed)
    shares = humans.shares(distances, collection)
    numbers = ("mean", *(f"within {bound:g}" for bound in humans.WITHIN))
    columns = ("images", "n_images", "distance_to", *numbers)
    show(with_intervals(shares, *numbers), columns, title="Total variation from people")
    write(shares, out / "human_distances.csv")
    correlations = humans.sizes_and_people(collection, effort.seed)
    title = "Spearman's correlation with people's entropy"
    show(with_intervals(correlations, "rho"), ("size", "rho"), title=title)
    write(correlations, out / "human_sizes.csv")
    disagreement = humans.by_disagreement(collection)
    columns = ("dissent", "n_images", "tv_diameter")
    show(with_intervals(disagreement, "tv_diameter"), columns, title="Size by dissent")
    write(disagreement, out / "human_dissent.csv")
    figures.draw_humans(distances, disagreement, out / "humans.svg")


def drawn_labels(collection: Collection, effort: Effort, out: Path) -> None:
    """Tests on labels whose distribution is known."""
    nearest = humans.nearest_points(collection.networks.probs, collection.humans)
    rows = study.by_truth(collection, nearest, effort)
    columns = ("labels", "disagreeing", "accuracy", "measure", "null", "statistic", "p")
    title = f"Labels of known origin, D = {effort.n_resamples_many}"
    show(with_intervals(rows, "p"), columns, title=title)
    write(rows, out / "human_labels.csv")


PARTS: dict[str, Callable[[Collection, Effort, Path], None]] = {
    "networks": networks,
    "whole": whole_set,
    "subsets": parts_of_the_set,
    "growing": one_by_one,
    "people": people,
    "votes": drawn_labels,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, run the parts asked for, write."""
    parser = command_line("experiments.cifar10_networks", __doc__)
    parser.add_argument("predictions", type=Path, help=".npz with probs, labels and members")
    parser.add_argument("humans", type=Path, help=".npz with probs, people's distributions")
    parser.add_argument("--out", type=Path, default=Path("docs/figures/cifar10_networks"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--rows", type=int, help="only the first rows")
    parser.add_argument("--trial", action="store_true", help="few resamples, splits and draws")
    parser.add_argument("--jobs", type=int, default=1, help="threads; -1 for all cores")
    given = parser.parse_args(arguments)
    collection = study.read(given.predictions, given.humans, given.rows)
    effort = replace(study.TRIAL if given.trial else Effort(), n_jobs=given.jobs)
    print(f"{collection.networks}; {', '.join(collection.names)}; seed {effort.seed}")
    for name in given.only:
        timed(name, partial(PARTS[name], collection, effort, given.out))


if __name__ == "__main__":
    main()
