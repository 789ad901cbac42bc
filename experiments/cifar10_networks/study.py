"""Tests of each network, of the set, of its parts, and on labels whose distribution is known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hullcal as hc
from experiments import named
from experiments.tables import Rows, column, where
from hullcal.simulation import draw_labels

MEASURES = ("ece_conf", "ece_cwise")
NULLS = ("recentered", "refit")
SIZES = ("tv_diameter", "generalized_hartley", "mutual_information", "upper_entropy")
#: Combinations that one half chooses and the other half judges.
WAYS = ("average", "best network", *MEASURES)
SCORES = ("accuracy", "log_score", *MEASURES)
ALPHA = 0.05
#: GoogLeNet is the first Inception network; other families show in the names.
_FAMILY = {"googlenet": "inception"}


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work a run may do."""

    n_resamples: int = 199  # of the tests of the whole set
    n_resamples_alone: int = 1999  # Holm's correction of 28 tests needs small p-values
    n_resamples_many: int = 99  # of tests that are run many times over
    n_resamples_pair: int = 59
    n_splits: int = 10
    n_draws: int = 3
    evaluations: int = 10_000  # of a search for the smallest value
    seed: int = 0
    n_jobs: int = 1


TRIAL = Effort(
    n_resamples=19,
    n_resamples_alone=39,
    n_resamples_many=19,
    n_resamples_pair=19,
    n_splits=2,
    n_draws=1,
    evaluations=60,
)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Networks, labels, and people's label distributions of the same images in the same order."""

    networks: hc.ClassifierSet
    labels: NDArray[np.int64]
    humans: NDArray[np.float64]  # (n_samples, n_classes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the networks."""
        assert self.networks.members is not None
        return self.networks.members


def read(predictions: Path, humans: Path, rows: int | None = None) -> Collection:
    """Both files, or their first rows."""
    with np.load(predictions, allow_pickle=False) as data:
        probs, labels, members = data["probs"], data["labels"], data["members"]
    with np.load(humans, allow_pickle=False) as data:
        opinions = data["probs"].astype(np.float64)
    expected = (probs.shape[0], probs.shape[2])
    if opinions.shape != expected:
        raise hc.InvalidInputError(
            f"`humans` must have shape (n_samples, n_classes) = {expected}, one distribution for each "
            f"row of `predictions`; got {opinions.shape}. Pass the file of the same images."
        )
    return Collection(
        networks=hc.ClassifierSet(probs[:rows], members=members),
        labels=labels[:rows].astype(np.int64),
        humans=opinions[:rows] / opinions[:rows].sum(axis=1, keepdims=True),
    )


def families(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Networks by family, in the order of the file.

    >>> families(("resnet18", "googlenet", "resnet_orig", "inception_v3"))
    {'resnet': ['resnet18', 'resnet_orig'], 'inception': ['googlenet', 'inception_v3']}
    """
    found: dict[str, list[str]] = {}
    for name in names:
        stem = re.split(r"[\d_]", name, maxsplit=1)[0]
        found.setdefault(_FAMILY.get(stem, stem), []).append(name)
    return found


def tested(
    classifiers: Any, labels: Any, effort: Effort, measure: str, null: str, n_resamples: int
) -> dict[str, Any]:
    """The test's statistic, and its p-value with the 95 % Monte Carlo interval."""
    options = {"n_resamples": n_resamples, "alpha": ALPHA, "rng": effort.seed}
    test = hc.simulation.Test.named(named(measure, null))
    result = test.run(classifiers, labels, n_jobs=effort.n_jobs, **options)
    return {"measure": measure, "null": null} | outcome(result)


def outcome(result: Any) -> dict[str, Any]:
    """What a table has of a test."""
    low, high = result.pvalue_interval
    return {
        "n_resamples": result.n_resamples,
        "statistic": result.statistic,
        "critical_value": result.critical_value,
        "p": result.pvalue,
        "p_lower": low,
        "p_upper": high,
    }


def share(hits: Any, name: str = "share") -> dict[str, Any]:
    """A share of rows with Wilson's 95 % interval."""
    low, high = hc.simulation.wilson(int(np.sum(hits)), len(hits))
    return {name: float(np.mean(hits)), f"{name}_lower": low, f"{name}_upper": high}


def average(values: Any, name: str) -> dict[str, Any]:
    """A mean over rows with its normal 95 % interval."""
    mean = float(np.mean(values))
    reach = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {name: mean, f"{name}_lower": mean - reach, f"{name}_upper": mean + reach}


def over(values: Any, name: str) -> dict[str, Any]:
    """The mean, least and greatest of a few values."""
    mean = float(np.mean(values))
    return {name: mean, f"{name}_lower": min(values), f"{name}_upper": max(values)}


def alone(collection: Collection, effort: Effort) -> Rows:
    """A row for each network and for the average; Holm's p-values are over networks and measures."""
    labels = collection.labels
    rows: Rows = []
    for name in (*collection.names, "average"):
        if name == "average":
            classifier = hc.ClassifierSet(collection.networks.mean())
        else:
            classifier = collection.networks.subset([name])
        claimed = classifier.probs[:, 0]
        row: dict[str, Any] = {"network": name}
        row |= share(claimed.argmax(axis=1) == labels, "accuracy")
        row |= average(claimed.max(axis=1), "confidence")
        row["log_score"] = classifier.log_score(labels, weights="mean")
        for measure in MEASURES:
            found = tested(classifier, labels, effort, measure, "refit", effort.n_resamples_alone)
            row[measure] = found["statistic"]
            row[f"{measure}_critical"] = found["critical_value"]
            row |= {f"{measure}_{end}": found[end] for end in ("p", "p_lower", "p_upper")}
            row[f"{measure}_holm"] = None  # the average is no member of the family of tests
        rows.append(row)
    keys = [(row, measure) for row in rows[:-1] for measure in MEASURES]
    adjusted = hc.adjust([row[f"{measure}_p"] for row, measure in keys])
    for (row, measure), p in zip(keys, adjusted, strict=True):
        row[f"{measure}_holm"] = float(p)
    return rows


def whole(collection: Collection, effort: Effort) -> Rows:
    """Every null with every measure on all rows, then the truth by likelihood."""
    networks, labels, n_resamples = collection.networks, collection.labels, effort.n_resamples
    rows = [
        tested(networks, labels, effort, measure, null, n_resamples) | {"evalue": None}
        for measure in MEASURES
        for null in ("recentered", "stacked", "paper", "refit")
    ]
    how = {"n_resamples": n_resamples, "alpha": ALPHA, "rng": effort.seed}
    result = hc.truth_test(networks, labels, **how, n_jobs=effort.n_jobs)
    likelihood = {"measure": "likelihood", "null": "", "evalue": result.evalue}
    return [*rows, outcome(result) | likelihood]


def splits(collection: Collection, effort: Effort) -> tuple[Rows, Rows]:
    """Scores on the half that did not choose, and the weights; one row for each split and way."""
    scores: Rows = []
    weights: Rows = []
    for i in range(effort.n_splits):
        chosen_on, (probs, labels) = hc.split(
            collection.networks.probs, collection.labels, rng=effort.seed + i
        )
        elsewhere = hc.ClassifierSet(probs)
        for way in WAYS:
            chosen = _chosen(way, *chosen_on, effort)
            mixed = elsewhere.mix(chosen)
            row = {"split": i, "way": way}
            row["accuracy"] = elsewhere.accuracy(labels, weights=chosen)
            row["log_score"] = elsewhere.log_score(labels, weights=chosen)
            for measure in MEASURES:
                # The combination was fixed before these rows were seen: it is one classifier.
                test = hc.classical.resampling_test(
                    mixed, labels, measure=measure, n_resamples=effort.n_resamples, rng=effort.seed
                )
                row |= {measure: test.statistic, f"{measure}_p": test.pvalue}
            scores.append(row)
            if way in MEASURES:
                weights += [
                    {"split": i, "measure": way, "network": name, "weight": float(weight)}
                    for name, weight in zip(collection.names, chosen, strict=True)
                ]
    return scores, weights


def _chosen(way: str, probs: Any, labels: Any, effort: Effort) -> Any:
    n_members = probs.shape[1]
    if way == "average":
        return np.full(n_members, 1 / n_members)
    if way == "best network":
        return np.eye(n_members)[np.argmin(hc.ClassifierSet(probs).log_score(labels))]
    return hc.minimize(probs, labels, measure=way, rng=effort.seed).weights


def summarised(scores: Rows) -> Rows:
    """Mean, least and greatest over the splits; the splits share rows, so this is no interval."""
    rows: Rows = []
    for way in WAYS:
        of_way = where(scores, way=way)
        row: dict[str, Any] = {"way": way, "n_splits": len(of_way)}
        for score in SCORES:
            row |= over(column(of_way, score), score)
        for measure in MEASURES:
            row[f"{measure}_rejected"] = sum(one[f"{measure}_p"] <= ALPHA for one in of_way)
        rows.append(row)
    return rows


def weight_ranges(weights: Rows) -> Rows:
    """How far each network's weight goes from split to split."""
    places = dict.fromkeys((row["measure"], row["network"]) for row in weights)
    rows: Rows = []
    for measure, network in places:
        some = where(weights, measure=measure, network=network)
        rows.append(
            {"measure": measure, "network": network} | over(column(some, "weight"), "weight")
        )
    return rows


def groups(collection: Collection, effort: Effort) -> Rows:
    """Families of two or more, the first network of each family, and the whole set."""
    found = families(collection.names)
    sets = {name: members for name, members in found.items() if len(members) > 1}
    sets["one of each"] = [members[0] for members in found.values()]
    sets["all"] = list(collection.names)
    return [described(name, members, collection, effort) for name, members in sets.items()]


def growing(collection: Collection, effort: Effort) -> Rows:
    """The first network, the first two, and so on; each row is named after the one that joins."""
    return [
        described(name, collection.names[:i], collection, effort, n_resamples=effort.n_resamples)
        for i, name in enumerate(collection.names, start=1)
    ]


def pairs(collection: Collection, effort: Effort) -> Rows:
    """Every two networks."""
    found = families(collection.names)
    family = {name: stem for stem, members in found.items() for name in members}
    options = {"measures": MEASURES[:1], "n_resamples": effort.n_resamples_pair}
    return [
        {"first": first, "second": second, "same_family": family[first] == family[second]}
        | described(f"{first} + {second}", [first, second], collection, effort, **options)
        for first, second in combinations(collection.names, 2)
    ]


def described(
    name: str,
    members: Sequence[str],
    collection: Collection,
    effort: Effort,
    *,
    measures: tuple[str, ...] = MEASURES,
    n_resamples: int | None = None,
) -> dict[str, Any]:
    """Validity and size of one part of the set."""
    part, labels = collection.networks.subset(list(members)), collection.labels
    row: dict[str, Any] = {
        "set": name,
        "n_members": len(members),
        "n_resamples": n_resamples or effort.n_resamples_many,
        "accuracy": part.accuracy(labels, weights="mean"),
        "log_score": part.log_score(labels, weights="mean"),
    }
    for measure in measures:
        row[measure] = smallest(part, labels, effort, measure)
        for null in NULLS:
            found = tested(part, labels, effort, measure, null, row["n_resamples"])
            row |= {f"{measure}_{null}_{end}": found[end] for end in ("p", "p_lower", "p_upper")}
    sizes = hc.uncertainty.summary(part, n_jobs=effort.n_jobs)
    return row | {size: sizes[size] for size in SIZES}


def smallest(part: hc.ClassifierSet, labels: Any, effort: Effort, measure: str) -> float:
    """The smallest value in the hull that a long search finds."""
    search = hc.minimizers.Pairwise(max_evaluations=effort.evaluations)
    found = hc.minimize(part, labels, measure=measure, minimizer=search, rng=effort.seed)
    return float(found.value)


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
        if (kind := where(rows, same_family=same))
    ]


def by_truth(collection: Collection, nearest: NDArray[np.float64], effort: Effort) -> Rows:
    """Tests of the whole set on labels of four origins; all but the file's are drawn anew each time."""
    truths = {
        "people's votes": collection.humans,
        "nearest points of the hulls": nearest,
        "the average": collection.networks.mean(),
    }
    rng = np.random.default_rng(effort.seed)
    labels = [("the file's labels", 0, collection.labels)]
    for name, truth in truths.items():
        labels += [(name, draw, draw_labels(truth, rng)) for draw in range(effort.n_draws)]
    return [
        {
            "labels": name,
            "draw": draw,
            "disagreeing": float((y != collection.labels).mean()),
            "accuracy": collection.networks.accuracy(y, weights="mean"),
        }
        | tested(collection.networks, y, effort, measure, null, effort.n_resamples_many)
        for name, draw, y in labels
        for measure in MEASURES
        for null in NULLS
    ]
