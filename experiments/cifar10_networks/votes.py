"""What does the test say when labels are drawn from a truth that is known?"""

import numpy as np
from numpy.typing import NDArray

from experiments.cifar10_networks.collection import Collection
from experiments.cifar10_networks.testing import ALPHA, MEASURES, Effort, Rows, tested

NULLS = ("recentered", "refit")


def drawn(truth: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One label for each row from its own distribution."""
    steps = truth.cumsum(axis=1)
    # Scaled by the last step, which rounding keeps from being 1, no draw can fall beyond it.
    below = rng.random(len(truth))[:, None] * steps[:, -1:] >= steps
    return below.sum(axis=1)


def by_truth(collection: Collection, nearest: NDArray[np.float64], effort: Effort) -> Rows:
    """Tests of the whole set on labels of four origins; all but the file's are drawn anew each time."""
    truths = {
        "people's votes": collection.humans,
        "nearest points of the hulls": nearest,
        "the average": collection.networks.mean(),
    }
    rng = np.random.default_rng(effort.seed)
    labels = [("the file's labels", 0, collection.labels)]
    labels += [
        (name, draw, drawn(truth, rng))
        for name, truth in truths.items()
        for draw in range(effort.n_draws)
    ]
    return [
        {
            "labels": name,
            "draw": draw,
            "disagreeing": float((y != collection.labels).mean()),
            "accuracy": collection.networks.accuracy(y, weights="mean"),
        }
        | tested(
            collection.networks,
            y,
            effort,
            measure=measure,
            null=null,
            n_resamples=effort.n_resamples_many,
        )
        for name, draw, y in labels
        for measure in MEASURES
        for null in NULLS
    ]


def summarised(rows: Rows) -> Rows:
    """p-values over the draws: the middle one, and from the least to the greatest."""
    result: Rows = []
    for key in dict.fromkeys((row["labels"], row["measure"], row["null"]) for row in rows):
        of_key = [row for row in rows if (row["labels"], row["measure"], row["null"]) == key]
        values = [row["p"] for row in of_key]
        result.append(
            {
                **dict(zip(("labels", "measure", "null"), key, strict=True)),
                "n_draws": len(values),
                "disagreeing": float(np.mean([row["disagreeing"] for row in of_key])),
                "accuracy": float(np.mean([row["accuracy"] for row in of_key])),
                "rejected": sum(p <= ALPHA for p in values),
                "p": float(np.median(values)),
                "p_lower": min(values),
                "p_upper": max(values),
                "statistic": float(np.median([row["statistic"] for row in of_key])),
            }
        )
    return result
