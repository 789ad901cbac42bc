"""Is any network calibrated by itself?"""

from typing import Any

import hullcal as hc
from experiments.cifar10_networks.collection import Collection
from experiments.cifar10_networks.testing import (
    MEASURES,
    Effort,
    Rows,
    average,
    share,
    tested,
)


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
            found = tested(
                classifier,
                labels,
                effort,
                measure=measure,
                null="refit",
                n_resamples=effort.n_resamples_alone,
            )
            row[measure] = found["statistic"]
            row[f"{measure}_critical"] = found["critical_value"]
            row |= {f"{measure}_{end}": found[end] for end in ("p", "p_lower", "p_upper")}
        rows.append(row)
    networks = rows[:-1]
    keys = [(i, measure) for i in range(len(networks)) for measure in MEASURES]
    adjusted = hc.adjust([networks[i][f"{measure}_p"] for i, measure in keys])
    for measure in MEASURES:
        rows[-1][f"{measure}_holm"] = None  # the average is no member of the family of tests
    for (i, measure), p in zip(keys, adjusted, strict=True):
        networks[i][f"{measure}_holm"] = float(p)
    return rows
