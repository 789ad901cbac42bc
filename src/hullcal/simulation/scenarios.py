"""Data sets of which it is known whether the hull contains a calibrated classifier (Section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_integer, check_positive, check_seed, refusal
from hullcal.simulation import draws
from hullcal.simulation.boundary import along, boundaries
from hullcal.simulation.protocols import Protocol, resolve

Floats = NDArray[np.float64]

N_MEMBERS, N_CLASSES, SPREAD, STRENGTH = 10, 10, 0.01, 1.0
#: The linear program of Algorithm 2 forgives this much. It matters: with u = .01 and M = K = 10 the
#: mean is outside the hull of 96 % of instances then, and of 99 % in exact geometry.
PROGRAM_TOLERANCE = 1e-7
#: The scripts search 100 points from the mean to the corner.
N_STEPS = 99


@dataclass(frozen=True)
class Holds:
    """Which hypotheses are true of a scenario.

    Attributes
    ----------
    calibrated : bool
        H0: some combination of the members is calibrated.
    truth : bool
        H0′: labels follow some combination of the members. It implies H0.
    """

    calibrated: bool
    truth: bool


HOLDS = {
    "S1": Holds(calibrated=True, truth=True),
    "S1_vertex": Holds(calibrated=True, truth=True),
    "S2": Holds(calibrated=False, truth=False),
    "S3": Holds(calibrated=False, truth=False),
    "calibrated": Holds(calibrated=True, truth=False),
}


def names() -> tuple[str, ...]:
    """The scenarios that can be drawn."""
    return tuple(HOLDS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """A simulated data set, and what only its maker can know.

    Attributes
    ----------
    name : str
        The scenario.
    probs : ndarray of shape (n_samples, n_members, n_classes)
        Predictions of the members.
    labels : ndarray of int and shape (n_samples,)
        Drawn from `truth`.
    truth : ndarray of shape (n_samples, n_classes)
        The distribution of each label.
    weights : ndarray of shape (n_members,), or None
        The combination that is the truth, in S1 and S1_vertex.
    mean : ndarray of shape (n_samples, n_classes), or None
        p_e, around which the members are drawn; None in "calibrated".
    corners : ndarray of int and shape (n_samples,), or None
        The class towards which the truth lies, in S2 and S3.
    boundary : ndarray of shape (n_samples, n_classes), or None
        Where the hull ends on the way there, in S2 and S3.
    """

    name: str
    probs: Floats
    labels: NDArray[np.int64]
    truth: Floats
    weights: Floats | None = None
    mean: Floats | None = None
    corners: NDArray[np.int64] | None = None
    boundary: Floats | None = None


def scenario(
    name: str,
    *,
    n_samples: int = 100,
    n_members: int = N_MEMBERS,
    n_classes: int = N_CLASSES,
    spread: float = SPREAD,
    strength: float = STRENGTH,
    protocol: str | Protocol = "paper",
    rng: int | np.random.Generator | None = None,
) -> Simulated:
    """Draw a data set.

    Around a mean p_e ~ Dir(1/K, ..., 1/K) of each instance the members are drawn from Dir(K p_e / u).
    Then the labels: in S1 from one combination, uniform on the simplex, for the whole data set; in
    S1_vertex from one member; in S2 from a point beyond the hull, towards the corner of the simplex
    that is closest to p_e; in S3 towards a random corner. In "calibrated" one of two members is
    calibrated, yet labels follow no combination of them.

    Parameters
    ----------
    name : {"S1", "S1_vertex", "S2", "S3", "calibrated"}
        The scenario; `HOLDS` says which hypotheses are true of it.
    n_samples : int
        N, at least 1.
    n_members, n_classes : int
        M, at least 1, and K, at least 2. The scenario "calibrated" has two of each.
    spread : float
        u, above 0: how far the members are from their mean.
    strength : float
        At most 1: how far towards the corner the truth may go, in S2 and S3. It is
        b + strength w (corner - b) with b the boundary of the hull and w uniform on (0, 1).
    protocol : str or Protocol
        "paper" for the paper's text, "authors" for what the authors' scripts do instead.
    rng : int, numpy.random.Generator or None
        Seed. Members, truth and labels have a stream each, so data sets that differ in scenario,
        strength or protocol alone share their members.

    Returns
    -------
    Simulated

    Examples
    --------
    >>> data = scenario("S3", n_samples=50, n_members=5, n_classes=3, rng=0)
    >>> data.probs.shape, data.labels.shape
    ((50, 5, 3), (50,))
    """
    if not isinstance(name, str) or name not in HOLDS:
        rule = f"must be one of {', '.join(HOLDS)}"
        raise refusal("name", rule, repr(name), 'Pass for example "S1".')
    n_samples = check_integer(n_samples, "n_samples", 1)
    n_members = check_integer(n_members, "n_members", 1)
    n_classes = check_integer(n_classes, "n_classes", 2)
    spread = check_positive(spread, "spread")
    strength = _check_strength(strength, name)
    followed = resolve(protocol)
    if name == "calibrated":
        _check_sizes(n_members, n_classes, spread)
    streams = np.random.default_rng(check_seed(rng)).spawn(3)
    if name == "calibrated":
        return _calibrated(n_samples, streams)
    mean = draws.dirichlet(np.full((n_samples, n_classes), 1.0 / n_classes), streams[0])
    # At 1e-290 the members are their mean to the last bit, and no quotient overflows.
    around = np.repeat(n_classes / max(spread, 1e-290) * mean[:, None, :], n_members, axis=1)
    probs = draws.dirichlet(around, streams[0])
    if name in ("S1", "S1_vertex"):
        return _inside(name, probs, mean, followed, streams)
    return _outside(name, probs, mean, strength, followed, streams)


def _check_strength(strength: Any, name: str) -> float:
    number = check_positive(strength, "strength")
    if number > 1.0:
        raise refusal("strength", "must be at most 1", f"{number:g}", "At 1 the corner is reached.")
    if number != STRENGTH and name not in ("S2", "S3"):
        rule = f"must be 1 in scenario {name}, whose truth does not go towards a corner"
        raise refusal("strength", rule, f"{number:g}", "Leave it out, or choose S2 or S3.")
    return number


def _check_sizes(n_members: int, n_classes: int, spread: float) -> None:
    """Refuse sizes that "calibrated" does not have; their defaults were hardly meant."""
    sizes = {"n_members": (n_members, N_MEMBERS), "n_classes": (n_classes, N_CLASSES)}
    for name, (size, default) in sizes.items():
        if size not in (2, default):
            raise refusal(name, "must be 2 in scenario calibrated", f"{size}", "Leave it out.")
    if spread != SPREAD:
        rule = "has no meaning in scenario calibrated"
        raise refusal("spread", rule, f"{spread:g}", "Leave it out.")


def _inside(
    name: str,
    probs: Floats,
    mean: Floats,
    followed: Protocol,
    streams: list[np.random.Generator],
) -> Simulated:
    """S1: the truth is a combination of the members, the same for all instances."""
    n_members = probs.shape[1]
    if name == "S1_vertex":
        weights = np.eye(n_members)[streams[1].integers(n_members)]
    else:
        concentration = 1.0 / n_members if followed.sparse_weights else 1.0
        weights = draws.dirichlet(np.full(n_members, concentration), streams[1])
    truth = weights @ probs
    labels = draws.labels(truth, streams[2])
    return Simulated(name=name, probs=probs, labels=labels, truth=truth, weights=weights, mean=mean)


def _outside(
    name: str,
    probs: Floats,
    mean: Floats,
    strength: float,
    followed: Protocol,
    streams: list[np.random.Generator],
) -> Simulated:
    """S2 and S3: the truth of an instance is between the boundary of its hull and a corner."""
    n_samples, n_classes = mean.shape
    mixing: Floats = streams[1].random(size=(n_samples,))
    corners: NDArray[np.int64] = streams[1].integers(n_classes, size=(n_samples,))
    if name == "S2":
        corners = mean.argmax(axis=1)
    corner = np.eye(n_classes)[corners]
    steps = boundaries(probs, mean, corner, tolerance=PROGRAM_TOLERANCE)
    if followed.corner_outside:
        steps = _misnamed(steps)
    edge = along(mean, corner, steps)
    if followed.carried_mixing:
        truth = _carried(edge, corner, mixing[0], strength)
    else:
        truth = along(edge, corner, strength * mixing)
    return Simulated(
        name=name,
        probs=probs,
        labels=draws.labels(truth, streams[2]),
        truth=truth,
        mean=mean,
        corners=corners,
        boundary=edge,
    )


def _misnamed(steps: Floats) -> Floats:
    """The steps of the scripts, whose index is that of the point before the first one outside.

    If that is the first of all the index is -1, which means the last, the corner; and if none is
    outside the index keeps its initial value, 0, which means the mean.
    """
    # A step that was meant to be on the grid must not be lost to rounding.
    on_grid = np.floor(N_STEPS * steps + 1e-9) / N_STEPS
    return np.where(np.isnan(steps), 1.0, np.where(steps >= 1.0, 0.0, on_grid))


def _carried(edge: Floats, corner: Floats, first: float, strength: float) -> Floats:
    """The truth of the scripts: `l = l * corner + (1 - l) * edge` with the l of the instance before.

    What comes out need not be a distribution. The library that draws the label replaces its last
    entry by what is missing to 1; if some entry is then outside [0, 1], it fails and the label is
    the most probable class.
    """
    truth = np.empty_like(edge)
    mixing = np.full(edge.shape[1], first)
    for n in range(len(edge)):
        share = strength * mixing
        mixing = share * corner[n] + (1.0 - share) * edge[n]
        truth[n] = mixing
        truth[n, -1] = 1.0 - truth[n, :-1].sum()
        if not ((truth[n] >= 0.0) & (truth[n] <= 1.0)).all():
            truth[n] = np.arange(edge.shape[1]) == mixing.argmax()
    return truth


def _calibrated(n_samples: int, streams: list[np.random.Generator]) -> Simulated:
    """Two members of which the first is calibrated, and labels that follow no combination.

    The probability of class 1 is η = 1/2 + tanh(z1)/4 + tanh(2 z2)/4. The first member says
    1/2 + tanh(z1)/4, which is the mean of η given z1; the second, overconfident, 1/(1 + exp(-6 z2)).
    """
    z1, z2 = streams[0].standard_normal((2, n_samples))
    known = 0.5 + 0.25 * np.tanh(z1)
    overconfident = 1.0 / (1.0 + np.exp(-6.0 * z2))
    probs = np.stack([_two_classes(known), _two_classes(overconfident)], axis=1)
    truth = _two_classes(known + 0.25 * np.tanh(2.0 * z2))
    labels = draws.labels(truth, streams[2])
    return Simulated(name="calibrated", probs=probs, labels=labels, truth=truth)


def _two_classes(positive: Floats) -> Floats:
    return np.stack([1.0 - positive, positive], axis=1)
