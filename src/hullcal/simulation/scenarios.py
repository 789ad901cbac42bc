"""Data sets of which it is known whether the hull contains a calibrated classifier (Section 4.1)."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import hull
from hullcal._validation import (
    InvalidInputError,
    as_array,
    check_integer,
    check_positive,
    check_probs,
    check_seed,
    refusal,
    takes_rng,
    unknown,
)
from hullcal.hull import COARSE_TOLERANCE, TOLERANCE, beyond, total_variation
from hullcal.simulation.protocols import Protocol, resolve

Floats = NDArray[np.float64]

#: The paper's sizes, taken where none are given.
USUAL = {"n_members": 10, "n_classes": 10, "spread": 0.01, "strength": 1.0}
#: What a scenario takes no notice of, and what it has instead.
FIXED: dict[str, dict[str, Any]] = {
    "S1": {"strength": None},
    "S1_vertex": {"strength": None},
    "calibrated": {"n_members": 2, "n_classes": 2, "spread": None, "strength": None},
}
#: The linear program of Algorithm 2 forgives this much. It matters: with u = .01 and M = K = 10 the
#: mean is outside the hull of 96 % of instances then, and of 99 % in exact geometry.
PROGRAM_TOLERANCE = 1e-7
#: The questions that a scenario answers with yes: whether some combination of the members is calibrated
#: (H0), and whether labels follow one, the truth (H0').
HOLDS: dict[str, tuple[str, ...]] = {
    "S1": ("calibrated", "truth"),
    "S1_vertex": ("calibrated", "truth"),
    "S2": (),
    "S3": (),
    "calibrated": ("calibrated",),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """A simulated data set, and what only its maker can know.

    Attributes
    ----------
    probs, labels : ndarray of shape (n_samples, n_members, n_classes) and (n_samples,)
        Predictions of the members, and labels drawn from `truth`.
    truth : ndarray of shape (n_samples, n_classes)
        The distribution of each label.
    weights : ndarray of shape (n_members,), or None
        The combination that is the truth, in S1 and S1_vertex.
    mean : ndarray of shape (n_samples, n_classes), or None
        p_e, around which the members are drawn; None in "calibrated".
    corners, boundary : ndarray of shape (n_samples,) and (n_samples, n_classes), or None
        The class towards which the truth lies, and where the hull ends on the way there, in S2 and S3.
    """

    name: str
    probs: Floats
    labels: NDArray[np.int64]
    truth: Floats
    weights: Floats | None = None
    mean: Floats | None = None
    corners: NDArray[np.int64] | None = None
    boundary: Floats | None = None


@takes_rng
def scenario(
    name: str,
    *,
    n_samples: int = 100,
    n_members: int = 10,
    n_classes: int = 10,
    spread: float = 0.01,
    strength: float = 1.0,
    protocol: str | Protocol = "paper",
    rng: int | np.random.Generator | None = None,
) -> Simulated:
    """Draw a data set.

    Around a mean p_e ~ Dir(1/K, ..., 1/K) of each instance the members are drawn from Dir(K p_e / u).
    Then the labels: in S1 from one combination, uniform on the simplex, for the whole data set; in
    S1_vertex from one member; in S2 from a point beyond the hull, towards the corner of the simplex
    that is closest to p_e; in S3 towards a random corner. In "calibrated" one of two members is
    calibrated, yet labels follow no combination of them. `HOLDS` says which hypotheses are true.

    Parameters
    ----------
    name : {"S1", "S1_vertex", "S2", "S3", "calibrated"}
    n_samples, n_members, n_classes : int
        N, M and K, at least 1, 1 and 2. The scenario "calibrated" has two members and classes.
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

    Examples
    --------
    >>> data = scenario("S3", n_samples=50, n_members=5, n_classes=3, rng=0)
    >>> data.probs.shape, data.labels.shape
    ((50, 5, 3), (50,))
    """
    check_name(name, "name")
    n_samples = check_integer(n_samples, "n_samples", 1)
    n_members = check_integer(n_members, "n_members", 1)
    n_classes = check_integer(n_classes, "n_classes", 2)
    spread, strength = check_positive(spread, "spread"), check_strength(strength)
    given = (n_members, n_classes, spread, strength)
    for (parameter, usual), came in zip(USUAL.items(), given, strict=True):
        fixed = FIXED.get(name, {}).get(parameter, came)
        # The usual value was hardly meant.
        if came not in (fixed, usual):
            rule = "has no meaning" if fixed is None else f"must be {fixed}"
            raise refusal(parameter, f"{rule} in scenario {name}", f"{came:g}", "Leave it out.")
    followed = resolve(protocol)
    of_members, of_truth, of_labels = np.random.default_rng(check_seed(rng)).spawn(3)
    known: dict[str, Any] = {}
    if name == "calibrated":
        probs, truth = _calibrated(n_samples, of_members)
    else:
        mean = dirichlet(np.full((n_samples, n_classes), 1.0 / n_classes), of_members)
        # At 1e-290 the members are their mean to the last bit, and no quotient overflows.
        around = np.repeat(n_classes / max(spread, 1e-290) * mean[:, None, :], n_members, axis=1)
        probs = dirichlet(around, of_members)
        if name in ("S2", "S3"):
            truth, known = _outside(name == "S2", probs, mean, strength, followed, of_truth)
        else:
            if name == "S1_vertex":
                weights = np.eye(n_members)[of_truth.integers(n_members)]
            else:
                share = 1.0 / n_members if followed.sparse_weights else 1.0
                weights = dirichlet(np.full(n_members, share), of_truth)
            truth, known = weights @ probs, {"weights": weights}
        known["mean"] = mean
    labels = draw_labels(truth, of_labels)
    return Simulated(name=name, probs=probs, labels=labels, truth=truth, **known)


def check_name(name: Any, parameter: str) -> str:
    """The name of a scenario, checked."""
    if not isinstance(name, str) or name not in HOLDS:
        raise unknown(parameter, name, HOLDS)
    return name


def check_strength(strength: Any) -> float:
    """How far the truth goes towards the corner, checked."""
    number = check_positive(strength, "strength")
    if number > 1.0:
        raise refusal("strength", "must be at most 1", f"{number:g}", "At 1 the corner is reached.")
    return number


def _outside(
    closest: bool,
    probs: Floats,
    mean: Floats,
    strength: float,
    followed: Protocol,
    rng: np.random.Generator,
) -> tuple[Floats, dict[str, Any]]:
    """S2 and S3: the truth of an instance is between the boundary of its hull and a corner."""
    n_samples, n_classes = mean.shape
    mixing = rng.random(size=(n_samples,))
    # Drawn in S2 as well, so that both have the same stream.
    drawn = rng.integers(n_classes, size=(n_samples,))
    corners = mean.argmax(axis=1) if closest else drawn
    corner = np.eye(n_classes)[corners]
    steps = boundaries(probs, mean, corner, tolerance=PROGRAM_TOLERANCE)
    if followed.corner_outside:
        # The scripts search 100 points, and take the one before the first outside. If that is the first
        # of all its index is -1, which means the last, the corner; and if none is outside the index
        # keeps its initial value, 0, which means the mean. Steps on the grid survive their rounding.
        on_grid = np.floor(99 * steps + 1e-9) / 99
        steps = np.where(np.isnan(steps), 1.0, np.where(steps >= 1.0, 0.0, on_grid))
    edge = along(mean, corner, steps)
    known = {"corners": corners, "boundary": edge}
    if followed.carried_mixing:
        return _carried(edge, corner, mixing[0], strength), known
    return along(edge, corner, strength * mixing), known


def _carried(edge: Floats, corner: Floats, first: float, strength: float) -> Floats:
    """The truth of the scripts: `l = l * corner + (1 - l) * edge` with the l of the instance before."""
    truth = np.empty_like(edge)
    mixing = np.full(edge.shape[1], first)
    for n in range(len(edge)):
        share = strength * mixing
        mixing = share * corner[n] + (1.0 - share) * edge[n]
        # That need not be a distribution. The library that draws the label replaces the last entry by
        # what is missing to 1; where that leaves [0, 1] it fails, and the most probable class is taken.
        truth[n] = mixing
        truth[n, -1] = 1.0 - truth[n, :-1].sum()
        if not ((truth[n] >= 0.0) & (truth[n] <= 1.0)).all():
            truth[n] = np.arange(edge.shape[1]) == mixing.argmax()
    return truth


def _calibrated(n_samples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Two members of which the first is calibrated, and a truth that is no combination of them."""
    z1, z2 = rng.standard_normal((2, n_samples))
    known = 0.5 + 0.25 * np.tanh(z1)  # the mean of the truth given z1
    overconfident = 1.0 / (1.0 + np.exp(-6.0 * z2))
    positive = np.stack([known, overconfident, known + 0.25 * np.tanh(2.0 * z2)], axis=1)
    both = np.stack([1.0 - positive, positive], axis=2)
    return both[:, :2], both[:, 2]


def dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """One draw from each Dirichlet distribution, of concentrations (..., n_classes); 0 gets 0."""
    # Rows of shapes below 1e-200 become a corner, each with a chance in proportion to its shape; that
    # stays so if all are multiplied until no quotient by the largest overflows.
    largest = concentration.max(axis=-1, keepdims=True)
    shapes = concentration * np.maximum(1.0, 1e-200 / largest)
    # Gamma variables of shape a far below 1 underflow, so their logarithms are drawn:
    # log G(a) = log G(a + 1) - E / a, with E a standard exponential variable.
    base = rng.standard_gamma(shapes + 1.0)
    clock = rng.standard_exponential(shapes.shape)
    # Logarithms of 0 and quotients too large for a double mean "never", which is what they give.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logs = np.where(shapes > 0.0, np.log(base) - clock / shapes, -np.inf)
    draw = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares: Floats = draw / draw.sum(axis=-1, keepdims=True)
    return shares


def draw_labels(distributions: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a class from each row of distributions.

    Parameters
    ----------
    distributions : ndarray of shape (..., n_classes)
        Probabilities, or anything in proportion to them.
    rng : numpy.random.Generator

    Examples
    --------
    >>> draw_labels(np.array([[0.0, 1.0], [3.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    sums = np.cumsum(distributions, axis=-1)
    # A double below 1 times the whole is below the whole, so some sum is always above; and a class of
    # probability 0, whose sum is that of the class before, is never the first to be above.
    thresholds = rng.random(sums.shape[:-1]) * sums[..., -1]
    drawn: NDArray[np.int64] = (sums <= thresholds[..., None]).sum(axis=-1)
    return drawn


def tempered(probs: Floats, temperature: float) -> Floats:
    """Probabilities whose logits are divided by a temperature; a class of 0 keeps 0."""
    # The logarithm of each odds against the largest probability; an underflow is 0.
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        powers: Floats = np.exp(np.log(probs / probs.max(axis=1, keepdims=True)) / temperature)
    powers[probs == 0.0] = 0.0  # at an infinite temperature, too
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def in_hull(members: ArrayLike, point: ArrayLike) -> bool:
    """Whether some convex combination of the members is the point (line 7 of Algorithm 2).

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    point : array-like of shape (n_classes,)
        A distribution; a total variation of 1e-9 is forgiven, or 1e-6 if it or the members came
        in less than double precision.

    Examples
    --------
    >>> in_hull([[0.8, 0.2], [0.4, 0.6]], [0.5, 0.5])
    True
    """
    corners, given = _checked(members, point=point)
    return bool(hull.in_hull(corners[None], given[None])[0])


def boundary(members: ArrayLike, start: ArrayLike, corner: ArrayLike) -> Floats:
    r"""The last point of the hull on the way from `start` to `corner` (Algorithm 2).

    .. math:: p_{\lambda_b} = (1 - \lambda_b)\, p_0 + \lambda_b\, p_c, \qquad
        \lambda_b = \max\{\lambda \in [0, 1] : p_\lambda \in S(\mathcal{P})\}

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    start, corner : array-like of shape (n_classes,)
        p_0 and p_c, distributions. A start outside the hull is the answer, as in Algorithm 2.

    Returns
    -------
    ndarray of shape (n_classes,)
        Found as closely as `in_hull` can tell, where Algorithm 2 tries 100 points.

    Examples
    --------
    >>> boundary([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [1, 0])
    array([0.75, 0.25])
    """
    arrays = _checked(members, start=start, corner=corner)
    exact = all(array.dtype.itemsize >= 8 for array in arrays)
    whole, first, last = (array.astype(np.float64)[None] for array in arrays)
    tolerance = TOLERANCE if exact else COARSE_TOLERANCE
    found: Floats = along(first, last, boundaries(whole, first, last, tolerance=tolerance))[0]
    return found


def along(starts: Floats, corners: Floats, steps: Floats) -> Floats:
    """The points (1 - step) start + step corner; the start where the step is NaN."""
    share = np.nan_to_num(steps)[:, None]
    return (1.0 - share) * starts + share * corners


def boundaries(
    members: Floats, starts: Floats, corners: Floats, *, tolerance: float = TOLERANCE
) -> Floats:
    """The largest step in [0, 1] with which each ray is still in its hull; NaN if its start is not."""
    # Between distributions no coordinate differs by more than the total variation.
    above = members.max(axis=1) + tolerance - starts
    below = starts - members.min(axis=1) + tolerance
    rays = corners - starts
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        in_box = np.where(rays > 0.0, above, below) / np.abs(rays)
    # How far each ray stays between the smallest and largest members of every class. Most starts of
    # the paper's study are beyond these, and cost no projection.
    steps: Floats = np.clip(np.where(rays == 0.0, np.inf, in_box).min(axis=1), 0.0, 1.0)
    steps[(above < 0.0).any(axis=1) | (below < 0.0).any(axis=1)] = np.nan
    for n in np.flatnonzero(~np.isnan(steps)):
        if total_variation(beyond(members[n], starts[n])) > tolerance:
            steps[n] = np.nan
        else:
            steps[n] = _last_step(members[n], starts[n], corners[n], steps[n], tolerance)
    return steps


def _last_step(
    members: Floats, start: Floats, corner: Floats, step: float, tolerance: float
) -> float:
    """Newton's method on the distance from the hull, from a step that is too long or just right."""
    # The distance is a convex function of the step, so Newton's steps come down to the largest that is
    # near enough without passing it. A linear program would not do: HiGHS drops coefficients below
    # 1e-9 and forgives 1e-7, and predictions are often smaller than both.
    ray = corner - start
    while step > 0.0:
        gap = beyond(members, (1.0 - step) * start + step * corner)
        distance = total_variation(gap)
        # Short of the tolerance, so that another way to measure it will agree; and aimed a little
        # shorter still, so that the loop ends.
        if distance <= 0.9 * tolerance:
            return step
        too_far = float(gap @ gap) * (1.0 - 0.8 * tolerance / distance)
        # The start is inside, so that the slope is positive but for rounding.
        slope = float(gap @ ray)
        step = step - too_far / slope if slope > 0.0 else 0.0
    return 0.0


def _checked(members: ArrayLike, **points: ArrayLike) -> list[NDArray[Any]]:
    """Members of one instance and distributions over its classes, not renormalised: that moves them."""
    given = {"members": members, **points}
    arrays = {name: as_array(value, name).array for name, value in given.items()}
    shape = arrays["members"].shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
        rule = "must have shape (n_members, n_classes) with at least 2 classes"
        raise refusal("members", rule, f"shape {shape}", "Give those of one instance: `probs[n]`.")
    for name, array in arrays.items():
        if name != "members" and array.shape != shape[1:]:
            rule = f"must have shape ({shape[1]},), one number for each class of the members"
            raise refusal(name, rule, f"shape {array.shape}", "Give a single distribution.")
        try:
            check_probs(np.atleast_2d(array))
        except InvalidInputError as error:
            rule = "must hold numbers of at least 0 whose sum over the classes is 1"
            repair = "Divide by the sum, or see whether the axes are in order."
            raise refusal(name, rule, reprlib.repr(array.tolist()), repair) from error
    return list(arrays.values())
