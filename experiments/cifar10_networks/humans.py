"""How far is what people say from the hull, and does the size of the set follow their disagreement?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import entropy, spearmanr

import hullcal as hc
from experiments.cifar10_networks.study import Collection, average, share
from experiments.tables import Rows

Floats = NDArray[np.float64]
#: The first is rounding: in the hull.
WITHIN = (1e-6, 0.01, 0.05, 0.1)
#: About as many people looked at each image.
VOTES = 51
#: Instances of one linear program: large enough to hide the cost of a call.
_BLOCK = 100


def nearest_points(members: Floats, points: Floats) -> Floats:
    """The point of each instance's hull that is nearest in total variation.

    Both sum to 1, so the total variation is the sum of what the point has beyond the hull's: minimise
    the sum of s under s >= h - P'w, with w on the simplex and s >= 0. Blocks of instances are one
    program.
    """
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(points), _BLOCK)]
    return np.concatenate([_nearest(members[b].astype(np.float64), points[b]) for b in blocks])


def total_variation(first: Any, second: Any) -> Floats:
    """Half the sum of absolute differences, over the last axis."""
    return 0.5 * np.abs(first - second).sum(axis=-1)


def distances(collection: Collection, seed: int) -> dict[str, Floats]:
    """Total variation from people to what the networks have, and to as many votes again."""
    humans, networks = collection.humans, collection.networks
    probs = networks.probs.astype(np.float64)
    again = np.random.default_rng(seed).multinomial(VOTES, humans) / VOTES
    vote = hc.simulation.draw_labels(humans, np.random.default_rng(seed))
    likeliest = hc.truth_test(networks, vote, n_resamples=0, rng=seed).weights
    return {
        "nearest point of the hull": total_variation(humans, nearest_points(probs, humans)),
        "nearest network": total_variation(humans[:, None], probs).min(axis=1),
        "one combination for all images": total_variation(humans, networks.mix(likeliest)),
        "average": total_variation(humans, networks.mean()),
        "as many votes again": total_variation(humans, again),
    }


def shares(found: dict[str, Floats], collection: Collection) -> Rows:
    """Shares of images within some distances, of all images and of those on which people disagree."""
    unanimous = collection.humans.max(axis=1) == 1.0
    rows: Rows = []
    for images, chosen in {
        "all": np.ones(len(unanimous), dtype=bool),
        "people agree": unanimous,
        "people disagree": ~unanimous,
    }.items():
        for what, values in found.items():
            if not chosen.any():
                continue
            row = {"images": images, "n_images": int(chosen.sum()), "distance_to": what}
            row |= average(values[chosen], "mean")
            for bound in WITHIN:
                row |= share(values[chosen] <= bound, f"within {bound:g}")
            rows.append(row)
    return rows


def sizes_and_people(collection: Collection, seed: int, n_resamples: int = 199) -> Rows:
    """Spearman's correlation between people's entropy and sizes, with bootstrap 95 % intervals."""
    rng = np.random.default_rng(seed)
    people = entropy(collection.humans, axis=1)
    networks = collection.networks
    sizes = {
        "tv_diameter": hc.uncertainty.tv_diameter(networks),
        "generalized_hartley": hc.uncertainty.generalized_hartley(networks),
        "mutual_information": hc.uncertainty.mutual_information(networks),
        "upper_entropy": hc.uncertainty.entropy_bounds(networks)[1],
        "entropy of the average": entropy(networks.mean(), axis=1),
    }
    draws = [rng.integers(len(people), size=len(people)) for _ in range(n_resamples)]
    rows: Rows = []
    for name, values in sizes.items():
        again = [spearmanr(people[rows_], values[rows_]).statistic for rows_ in draws]
        low, high = np.quantile(again, (0.025, 0.975))
        middle = float(spearmanr(people, values).statistic)
        rows.append({"size": name, "rho": middle, "rho_lower": low, "rho_upper": high})
    return rows


def by_disagreement(collection: Collection) -> Rows:
    """Mean size of the set for images by how many people in a hundred dissent from the commonest."""
    dissent = 1 - collection.humans.max(axis=1)
    sizes = hc.uncertainty.tv_diameter(collection.networks)
    edges = (0.0, 1e-9, 0.03, 0.1, 0.2, 0.4, 1.0)
    names = ("none", "to .03", "to .1", "to .2", "to .4", "more")
    rows: Rows = []
    for name, low, high in zip(names, edges, edges[1:], strict=False):
        chosen = (dissent >= low) & (dissent < high)
        if chosen.sum() > 1:
            row = {"dissent": name, "n_images": int(chosen.sum())}
            rows.append(row | average(sizes[chosen], "tv_diameter"))
    return rows


def _nearest(members: Floats, points: Floats) -> Floats:
    n_samples, n_members, n_classes = members.shape
    slack = -np.eye(n_classes)
    beyond = sparse.block_diag([np.hstack([-p.T, slack]) for p in members], format="csr")
    simplex = np.repeat([1.0, 0.0], [n_members, n_classes])[None]
    sums = sparse.block_diag([simplex] * n_samples, format="csr")
    found = linprog(
        np.tile(1.0 - simplex[0], n_samples),
        A_ub=beyond,
        b_ub=-points.ravel(),
        A_eq=sums,
        b_eq=np.ones(n_samples),
        method="highs",
    )
    if not found.success:
        raise RuntimeError(f"the linear program of the nearest points failed: {found.message}")
    weights = found.x.reshape(n_samples, -1)[:, :n_members].clip(min=0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    # The program forgives itself about 1e-7, which matters where a member is as near as that.
    solved = weights[:, None] @ members
    candidates = np.concatenate([solved, members], axis=1)
    best = total_variation(candidates, points[:, None]).argmin(axis=1)
    nearest: Floats = candidates[np.arange(n_samples), best]
    return nearest
