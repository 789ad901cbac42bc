"""Does the hull of all networks contain a calibrated one, and what are its weights worth elsewhere?"""

from typing import Any

import numpy as np

import hullcal as hc
from experiments.cifar10_networks.collection import Collection
from experiments.cifar10_networks.testing import MEASURES, Effort, Rows, tested

NULLS = ("recentered", "stacked", "paper", "refit")
#: Combinations that one half chooses and the other half judges.
WAYS = ("average", "best network", *MEASURES)
SCORES = ("accuracy", "log_score", *MEASURES)


def whole(collection: Collection, effort: Effort) -> Rows:
    """Every null with every measure on all rows."""
    return [
        tested(
            collection.networks,
            collection.labels,
            effort,
            measure=measure,
            null=null,
            n_resamples=effort.n_resamples,
        )
        for measure in MEASURES
        for null in NULLS
    ]


def splits(collection: Collection, effort: Effort) -> tuple[Rows, Rows]:
    """Scores on the half that did not choose, and the weights; one row for each split and way."""
    scores: Rows = []
    weights: Rows = []
    for i in range(effort.n_splits):
        chosen_on, judged_on = hc.split(
            collection.networks.probs, collection.labels, rng=effort.seed + i
        )
        elsewhere = hc.ClassifierSet(judged_on[0])
        for way in WAYS:
            chosen = _chosen(way, *chosen_on, effort)
            mixed = elsewhere.mix(chosen)
            scores.append(
                {"split": i, "way": way}
                | {
                    "accuracy": elsewhere.accuracy(judged_on[1], weights=chosen),
                    "log_score": elsewhere.log_score(judged_on[1], weights=chosen),
                    "ece_conf": hc.ConfidenceECE()(mixed, judged_on[1]),
                    "ece_cwise": hc.ClasswiseECE()(mixed, judged_on[1]),
                }
                | _calibrated(mixed, judged_on[1], effort)
            )
            if way in MEASURES:
                names = zip(collection.names, chosen, strict=True)
                weights += [
                    {"split": i, "measure": way, "network": name, "weight": float(weight)}
                    for name, weight in names
                ]
    return scores, weights


def summarised(scores: Rows) -> Rows:
    """Mean, least and greatest over the splits; the splits share rows, so this is no interval."""
    rows: Rows = []
    for way in WAYS:
        of_way = [row for row in scores if row["way"] == way]
        row: dict[str, Any] = {"way": way, "n_splits": len(of_way)}
        for score in SCORES:
            values = [one[score] for one in of_way]
            row |= {
                score: float(np.mean(values)),
                f"{score}_lower": min(values),
                f"{score}_upper": max(values),
            }
        for measure in MEASURES:
            row[f"{measure}_rejected"] = sum(one[f"{measure}_p"] <= 0.05 for one in of_way)
        rows.append(row)
    return rows


def weight_ranges(weights: Rows) -> Rows:
    """How far each network's weight goes from split to split."""
    rows: Rows = []
    for measure, network in dict.fromkeys((row["measure"], row["network"]) for row in weights):
        key = (measure, network)
        values = [row["weight"] for row in weights if (row["measure"], row["network"]) == key]
        rows.append(
            {
                "measure": measure,
                "network": network,
                "weight": float(np.mean(values)),
                "weight_lower": min(values),
                "weight_upper": max(values),
            }
        )
    return rows


def _chosen(way: str, probs: Any, labels: Any, effort: Effort) -> Any:
    n_members = probs.shape[1]
    if way == "average":
        return np.full(n_members, 1 / n_members)
    if way == "best network":
        return np.eye(n_members)[np.argmin(hc.ClassifierSet(probs).log_score(labels))]
    search = hc.minimizers.Pairwise(max_evaluations=effort.evaluations)
    return hc.minimize(probs, labels, measure=way, minimizer=search, rng=effort.seed).weights


def _calibrated(mixed: Any, labels: Any, effort: Effort) -> dict[str, float]:
    """The combination was fixed before these rows were seen, so it is tested as one classifier."""
    options = {"n_resamples": effort.n_resamples, "rng": effort.seed}
    return {
        f"{measure}_p": hc.classical.resampling_test(
            mixed, labels, measure=measure, **options
        ).pvalue
        for measure in MEASURES
    }
