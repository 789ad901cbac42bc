"""What each part of the study runs, prints and writes."""

from collections.abc import Callable
from pathlib import Path

from experiments.cifar10_networks import figures, humans, subsets, votes, whole
from experiments.cifar10_networks.alone import alone
from experiments.cifar10_networks.collection import Collection
from experiments.cifar10_networks.testing import MEASURES, Effort, Rows, with_interval
from experiments.type_errors import tables

_ALONE = ("network", "accuracy", "log_score", "confidence", *MEASURES)


def networks(collection: Collection, effort: Effort, out: Path) -> None:
    """Each network alone."""
    rows = alone(collection, effort)
    shown = [
        row
        | {
            "accuracy": with_interval(row, "accuracy"),
            "confidence": with_interval(row, "confidence"),
        }
        | {f"p {m}": with_interval(row, f"{m}_p", 4) for m in MEASURES}
        | {f"Holm {m}": row[f"{m}_holm"] for m in MEASURES}
        for row in rows
    ]
    columns = (*_ALONE, *(f"{word} {m}" for m in MEASURES for word in ("p", "Holm")))
    tables.show(shown, columns, title=f"Alone, D = {effort.n_resamples_alone}")
    tables.write(rows, out / "networks.csv", tuple(rows[0]))
    best = subsets.described("all", list(collection.names), collection, effort, MEASURES[:1], ())
    print(f"smallest ece_conf in the hull: {best['ece_conf']:.4f}")
    figures.draw_alone(rows, best["ece_conf"], out / "networks.svg")


def whole_set(collection: Collection, effort: Effort, out: Path) -> None:
    """All networks: tests, and the best combination on other rows."""
    rows = whole.whole(collection, effort)
    _show(rows, ("measure", "null", "statistic", "critical_value", "p"), "The whole set")
    tables.write(rows, out / "whole.csv", tuple(rows[0]))
    scores, weights = whole.splits(collection, effort)
    summary = whole.summarised(scores)
    shown = [
        row | {score: with_interval(row, score, 4) for score in whole.SCORES} for row in summary
    ]
    columns = ("way", *whole.SCORES, *(f"{m}_rejected" for m in MEASURES))
    title = f"On the other half: mean (least, greatest) of {effort.n_splits} splits"
    tables.show(shown, columns, title=title)
    tables.write(summary, out / "splits.csv", tuple(summary[0]))
    ranges = whole.weight_ranges(weights)
    tables.show(
        [row | {"weight": with_interval(row, "weight", 2)} for row in ranges],
        ("measure", "network", "weight"),
        title="Weights: mean (least, greatest)",
    )
    tables.write(ranges, out / "weights.csv", tuple(ranges[0]))
    figures.draw_weights(ranges, out / "weights.svg")


def parts_of_the_set(collection: Collection, effort: Effort, out: Path) -> None:
    """Families, all but one, and pairs."""
    groups = subsets.groups(collection, effort)
    others = subsets.all_but_one(collection, effort)
    for rows, measures, nulls, name in (
        (groups, MEASURES, subsets.NULLS, "groups"),
        (others, MEASURES[:1], subsets.NULLS[:1], "all_but_one"),
    ):
        pvalues = [f"{m}_{null}_p" for m in measures for null in nulls]
        shown = [row | {key: with_interval(row, key, 2) for key in pvalues} for row in rows]
        columns = ("set", "n_members", "accuracy", *measures, *pvalues, *subsets.SIZES)
        tables.show(shown, columns, title=f"{name}, D = {effort.n_resamples_many}")
        tables.write(rows, out / f"{name}.csv", tuple(rows[0]))
    pairs = subsets.pairs(collection, effort)
    pvalues = [f"ece_conf_{null}_p" for null in subsets.NULLS]
    shown = [row | {key: with_interval(row, key, 2) for key in pvalues} for row in pairs]
    tables.show(
        shown,
        ("set", "ece_conf", *pvalues, "tv_diameter"),
        title=f"Pairs, D = {effort.n_resamples_pair}",
    )
    counts = subsets.counted(pairs)
    tables.show(counts, tuple(counts[0]), title="Pairs rejected at .05")
    tables.write(pairs, out / "pairs.csv", tuple(pairs[0]))
    alone_values = {
        name: subsets.described(name, [name], collection, effort, MEASURES[:1], ())["ece_conf"]
        for name in collection.names
    }
    figures.draw_pairs(pairs, alone_values, out / "pairs.svg")
    figures.draw_sizes(groups, others, pairs, out / "sizes.svg")


def people(collection: Collection, effort: Effort, out: Path) -> None:
    """Human label distributions."""
    inside = humans.contained(collection)
    print(f"\nhuman distribution in the hull: {with_interval(inside, 'share')} of images")
    distances = humans.distances(collection, effort.seed)
    shares = humans.shares(distances, collection)
    bounds = [f"within {bound:g}" for bound in humans.WITHIN]
    shown = [row | {name: with_interval(row, name) for name in ("mean", *bounds)} for row in shares]
    columns = ("images", "n_images", "distance_to", "mean", *bounds)
    tables.show(shown, columns, title="Total variation from people's distribution")
    tables.write(shares, out / "human_distances.csv", tuple(shares[0]))
    correlations = humans.sizes_and_people(collection, effort.seed)
    shown = [row | {"rho": with_interval(row, "rho")} for row in correlations]
    tables.show(shown, ("size", "rho"), title="Spearman's correlation with people's entropy")
    tables.write(correlations, out / "human_sizes.csv", tuple(correlations[0]))
    disagreement = humans.by_disagreement(collection)
    shown = [row | {"tv_diameter": with_interval(row, "tv_diameter")} for row in disagreement]
    tables.show(shown, ("dissent", "n_images", "tv_diameter"), title="Size by dissent")
    tables.write(disagreement, out / "human_dissent.csv", tuple(disagreement[0]))
    figures.draw_humans(distances, disagreement, out / "humans.svg")


def drawn_labels(collection: Collection, effort: Effort, out: Path) -> None:
    """Tests on labels whose distribution is known."""
    nearest = humans.nearest_points(collection.networks.probs, collection.humans)
    rows = votes.by_truth(collection, nearest, effort)
    summary = votes.summarised(rows)
    _show(
        summary,
        (
            "labels",
            "disagreeing",
            "accuracy",
            "measure",
            "null",
            "n_draws",
            "rejected",
            "statistic",
            "p",
        ),
        f"Labels of known origin: median p (least, greatest), D = {effort.n_resamples_many}",
    )
    tables.write(rows, out / "human_labels.csv", tuple(rows[0]))


def _show(rows: Rows, columns: tuple[str, ...], title: str) -> None:
    tables.show([row | {"p": with_interval(row)} for row in rows], columns, title=title)


PARTS: dict[str, Callable[[Collection, Effort, Path], None]] = {
    "networks": networks,
    "whole": whole_set,
    "subsets": parts_of_the_set,
    "people": people,
    "votes": drawn_labels,
}
