"""Which parts of the set are valid, and how large are they? Families, all but one, pairs."""

from itertools import combinations
from typing import Any

import hullcal as hc
from experiments.cifar10_networks.collection import Collection, families
from experiments.cifar10_networks.testing import ALPHA, MEASURES, Effort, Rows, tested

NULLS = ("recentered", "refit")
SIZES = ("tv_diameter", "generalized_hartley", "mutual_information", "upper_entropy")


def groups(collection: Collection, effort: Effort) -> Rows:
    """Families of two or more, the first network of each family, and the whole set."""
    found = families(collection.names)
    sets = {name: members for name, members in found.items() if len(members) > 1}
    sets["one of each"] = [members[0] for members in found.values()]
    sets["all"] = list(collection.names)
    return [
        described(name, members, collection, effort, MEASURES, NULLS)
        for name, members in sets.items()
    ]


def all_but_one(collection: Collection, effort: Effort) -> Rows:
    """The set without each network in turn, by one measure and one null: fourteen like questions."""
    names = collection.names
    return [
        described(
            f"without {left_out}",
            [name for name in names if name != left_out],
            collection,
            effort,
            MEASURES[:1],
            NULLS[:1],
        )
        for left_out in names
    ]


def pairs(collection: Collection, effort: Effort) -> Rows:
    """Every two networks."""
    found = families(collection.names)
    family = {name: stem for stem, members in found.items() for name in members}
    return [
        {"first": first, "second": second, "same_family": family[first] == family[second]}
        | described(
            f"{first} + {second}",
            [first, second],
            collection,
            effort,
            MEASURES[:1],
            NULLS,
            n_resamples=effort.n_resamples_pair,
        )
        for first, second in combinations(collection.names, 2)
    ]


def described(
    name: str,
    members: list[str],
    collection: Collection,
    effort: Effort,
    measures: tuple[str, ...],
    nulls: tuple[str, ...],
    n_resamples: int | None = None,
) -> dict[str, Any]:
    """Validity and size of one part of the set."""
    part = collection.networks.subset(members)
    labels = collection.labels
    row: dict[str, Any] = {
        "set": name,
        "n_members": len(members),
        "n_resamples": n_resamples or effort.n_resamples_many,
        "accuracy": part.accuracy(labels, weights="mean"),
        "log_score": part.log_score(labels, weights="mean"),
    }
    search = hc.minimizers.Pairwise(max_evaluations=effort.evaluations)
    for measure in measures:
        best = hc.minimize(part, labels, measure=measure, minimizer=search, rng=effort.seed)
        row[measure] = best.value
        for null in nulls:
            found = tested(
                part,
                labels,
                effort,
                measure=measure,
                null=null,
                n_resamples=row["n_resamples"],
            )
            row |= {f"{measure}_{null}_{end}": found[end] for end in ("p", "p_lower", "p_upper")}
    sizes = hc.uncertainty.summary(part, n_jobs=effort.n_jobs)
    return row | {size: sizes[size] for size in SIZES}


def counted(rows: Rows) -> Rows:
    """How many pairs are rejected, within families and across."""
    return [
        {
            "pairs": "within a family" if same else "across families",
            "n_pairs": len(kind),
            "smallest": min(row["ece_conf"] for row in kind),
            "largest": max(row["ece_conf"] for row in kind),
        }
        | {
            f"{null} rejected": sum(row[f"ece_conf_{null}_p"] <= ALPHA for row in kind)
            for null in NULLS
        }
        for same in (True, False)
        if (kind := [row for row in rows if row["same_family"] is same])
    ]
