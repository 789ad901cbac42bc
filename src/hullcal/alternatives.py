"""Alternatives to the best combination: families of classifiers that explain labels it does not.

Like the combination, they are fitted to several cases at once by sums over rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.exponential import decays
from hullcal._compiled.jit import compiled, compiled_inline
from hullcal._compiled.mixing import mix
from hullcal.likelihood import MOST_PASSES, climbed, opened
from hullcal.objectives import _row_loops as loops
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import Cases, Job, Passes, Rows

#: Alternatives to a combination p̄: it has another temperature; members deserve other trust; classes are
#: more or less likely than it says, whatever it says or depending on that.
TEMPERATURE, POOL, CLASSES, LOGITS = range(4)
#: Pseudo-observations that pull the standardised coefficients of each towards 0, where it is p̄.
RIDGES = 1.0, 10.0, 10.0, 10.0
#: The last two have a coefficient or more for each class, and are tried with so many classes at least and
#: at most. With two, a class that is off hardly differs from other weights, and they would cost power.
_CLASSES_OF = {CLASSES: (3, 50), LOGITS: (3, 5)}
#: Probabilities below this count as this where logarithms are features.
FLOOR = 1e-4
#: The last Newton step gains less, unless said otherwise; standardised coefficients move at most so far
#: in one; features that vary less are constant.
_CLOSE, _LONGEST_STEP, _CONSTANT = 1e-8, 2.0, 1e-9


def alternatives(n_classes: int) -> tuple[int, ...]:
    """The families that are tried with so many classes."""
    some = (kind for kind, (least, most) in _CLASSES_OF.items() if least <= n_classes <= most)
    return TEMPERATURE, POOL, *some


def n_coefficients(kind: int, n_members: int, n_classes: int) -> int:
    """How many coefficients a family has."""
    return (1, 1 + n_members, n_classes, n_classes * (1 + n_classes))[kind]


def average_ratios(
    passes: Passes, cases: Cases, weights: Floats, pool: Sums | None = None
) -> Floats:
    r"""The logarithm of the likelihood ratio of all alternatives to a combination, averaged, by case.

    The average is over the families, and in each over a normal law of its coefficients whose precision
    is the ridge. With slopes :math:`s` and curvature :math:`H` of the log-likelihood at the combination
    and penalties :math:`R`, Laplace's approximation to it is
    :math:`\exp(s^\top (H + R)^{-1} s / 2) \, |I + R^{-1} H|^{-1/2}`: nothing has to be iterated.
    `pool` is what `at_combination` found for POOL, if that is known.
    """
    found = []
    for kind in alternatives(passes.n_classes)[1:]:
        known = pool if kind == POOL else None
        sums = known or at_combination(passes, cases, weights, kind)
        found.append(sums.evidence(sums.slopes.shape[1], RIDGES[kind]))
        if kind == POOL:
            # A temperature is the first coefficient of a pool, alone.
            found.append(sums.evidence(1, RIDGES[TEMPERATURE]))
    ratios: Floats = np.logaddexp.reduce(found) - math.log(len(found))
    return ratios + sums.likelihoods - sums.bases


def fit_alternative(
    passes: Passes,
    cases: Cases,
    weights: Floats,
    kind: int,
    ridge: float,
    pool: Sums | None = None,
    close: float = _CLOSE,
) -> Floats:
    r"""Coefficients of the likeliest classifier of a family around a combination of each case.

    With :math:`\bar p` the combination and :math:`z` the logarithms of it less their mean, its
    probabilities are proportional to

    .. math:: \bar p_k^{1+\beta}, \quad
        \bar p_k^{1+\beta_0} \prod_m (p^{(m)}_k / \bar p_k)^{\beta_m}, \quad
        \bar p_k \exp(\beta_k), \quad
        \bar p_k \exp(\beta_{k0} + \textstyle\sum_j \beta_{kj} z_j)

    for TEMPERATURE, POOL, CLASSES and LOGITS. Features are standardised by the root mean square of their
    deviations from the row's mean, over all rows and classes. `pool` is what `at_combination` found for
    POOL, if that is known: a temperature begins there as well.
    """
    size = n_coefficients(kind, len(passes.positions), passes.n_classes)
    penalties, last = np.zeros((len(cases), size)), np.zeros((len(cases), size))

    def evaluated(at: Floats, which: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        if penalties.any():
            sums = Sums.of(passes, cases.only(which), weights[which], kind, at, wanted=1)
        else:
            known = pool if kind in (TEMPERATURE, POOL) else None
            sums = known or at_combination(passes, cases, weights, kind)
            penalties[:] = ridge * sums.squares[:, :size]
        slopes, curvature, penalty = sums.penalised(penalties[which], ridge)
        slopes -= penalty * at
        steps = np.linalg.solve(curvature, slopes[:, :, np.newaxis])[:, :, 0]
        # The last step, which gains no more than `close`, is taken without a look.
        ended = ((steps * slopes).sum(axis=1) / 2.0 <= close)[:, np.newaxis]
        last[which] = np.where(ended, steps, 0.0)
        longest = np.abs(steps * np.sqrt(penalty / ridge)).max(axis=1)
        steps *= np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))[:, np.newaxis]
        penalised: Floats = sums.likelihoods - (penalty * at**2).sum(axis=1) / 2.0
        left: Floats = np.where(ended, 0.0, steps)
        return penalised, left, penalised

    coefficients, _, _ = climbed(evaluated, np.zeros(last.shape), MOST_PASSES)
    return coefficients + last


def at_combination(passes: Passes, cases: Cases, weights: Floats, kind: int) -> Sums:
    """The sums of a family where its coefficients are 0 and it is the combination."""
    size = n_coefficients(kind, len(passes.positions), passes.n_classes)
    return Sums.of(passes, cases, weights, kind, np.zeros((len(cases), size)), wanted=2)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass tells of an alternative with some coefficients, case by case."""

    likelihoods: Floats
    #: Log-likelihoods of the combination.
    bases: Floats
    #: Mean squares of the features, slopes and curvature of the log-likelihood.
    squares: Floats
    slopes: Floats
    curvature: Floats

    @classmethod
    def of(
        cls, passes: Passes, cases: Cases, weights: Floats, kind: int, at: Floats, *, wanted: int
    ) -> Sums:
        job = _AlternativeSums(
            kind=kind, cases=cases, weights=weights, at=at, wanted=wanted, **passes.sizes
        )
        found, size = passes.total(job), at.shape[1]
        squares = found[:, 3 : 3 + size] / np.maximum(found[:, 2:3], 1.0)
        curvature = found[:, 3 + 2 * size :].reshape(len(found), -1, size)
        return cls(found[:, 0], found[:, 1], squares, found[:, 3 + size : 3 + 2 * size], curvature)

    def penalised(self, penalty: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
        """Slopes, curvature with the penalty in it, and the penalty, for so many coefficients."""
        size = penalty.shape[1]
        # Those of constant features stay 0.
        live = penalty > ridge * _CONSTANT**2
        penalty = np.where(live, penalty, 1.0)
        both = live[:, :, np.newaxis] & live[:, np.newaxis, :]
        curvature = np.where(both, self.curvature[:, :size, :size], 0.0)
        curvature += penalty[:, :, np.newaxis] * np.eye(size)
        return np.where(live, self.slopes[:, :size], 0.0), curvature, penalty

    def evidence(self, size: int, ridge: float) -> Floats:
        """The average likelihood ratio of `average_ratios` over the first so many coefficients."""
        slopes, curvature, penalty = self.penalised(ridge * self.squares[:, :size], ridge)
        steps = np.linalg.solve(curvature, slopes[:, :, np.newaxis])[:, :, 0]
        volumes = np.linalg.slogdet(curvature)[1] - np.log(penalty).sum(axis=1)
        found: Floats = ((steps * slopes).sum(axis=1) - volumes) / 2.0
        return found


def temperature_of(coefficient: float) -> float:
    """The temperature that a coefficient of the logarithms stands for; 1,000 at most."""
    # Labels that run against the predictions would make it negative.
    return 1.0 / max(1.0 + float(coefficient), 1e-3)


@dataclass(frozen=True, kw_only=True)
class _AlternativeSums(Job):
    """Log-likelihoods of alternative and combination, and the number of terms in squares of features.

    If wanted, these squares, slopes and the curvature follow.
    """

    kind: int
    cases: Cases
    weights: Floats
    at: Floats
    #: 0 for log-likelihoods alone, 1 for slopes and curvature, 2 for the squares as well.
    wanted: int

    @property
    def shape(self) -> tuple[int, int]:
        n_features = self.at.shape[1]
        return len(self.cases), 3 + (2 * n_features + n_features**2) * (self.wanted > 0)

    def _add(self, rows: Rows, sums: Floats) -> None:
        own = self.kind, self.weights, np.ascontiguousarray(self.at), self.wanted, sums
        _alternative_sums(*own, *self._arguments(self.cases, rows))


@compiled
def _alternative_sums(  # type: ignore[no-untyped-def]
    alternative, weights, at, wanted, sums, probs, positions, labels, first, block_rows,
    kind, key, replicates, label_weights, draws, n_units, rows_per_unit,
):  # fmt: skip
    n_classes = probs.shape[2]
    n_members, n_cases, n_features = positions.shape[0], replicates.shape[0], at.shape[1]
    # Features of a row and class side by side, in whole fours, so that the inner loop has no rest: those
    # of the classes are the same for all.
    by_class = alternative in (CLASSES, LOGITS)
    n_own = n_features // n_classes if by_class else n_features
    padded = (n_own + 3) // 4 * 4 if n_own > 1 else 1
    curvature, means = np.empty((n_features, n_features + 3)), np.empty(padded)
    begin = 0
    while begin < len(probs):
        end = loops.end_of_block(begin, first, len(probs), block_rows, rows_per_unit)
        n_block = end - begin
        members, case_labels, case_weights = opened(
            probs[begin:end], positions, labels[begin:end], first + begin,
            kind, key, replicates, label_weights,
        )  # fmt: skip
        logs = np.zeros((n_block, n_classes, n_members if alternative == POOL else 0))
        for m in range(logs.shape[2]):
            for k in range(n_classes):
                for n in range(n_block):
                    logs[n, k, m] = math.log(max(members[m, k, n], FLOOR))
        mixed, flat = np.empty((n_classes, n_block)), np.empty(n_block * n_classes)
        scores, scratch = flat.reshape(n_block, n_classes), np.empty(n_block * n_classes)
        features = np.zeros((n_block, 1 if by_class else n_classes, padded))
        for case in range(n_cases):
            n_used = n_block
            while n_used > 0 and case_weights[case, n_used - 1] == 0.0:
                n_used -= 1
            if n_used == 0:
                continue
            own, beta, labels_here = sums[case], at[case], case_labels[case]
            mix(members, weights[case], mixed)
            for n in range(n_used):
                _row_features(mixed, n, logs[n], by_class, n_own, scores[n], features[n])
                _scored(features[n], by_class, n_own, beta, scores[n])
            for n in range(n_used):
                label, largest = labels_here[n], 0.0
                for m in range(n_members):
                    largest = max(largest, members[m, label, n])
                if case_weights[case, n] != 0.0 and largest > 0.0:
                    own[0] -= scores[n, label]
                    own[1] += math.log(mixed[label, n]) if mixed[label, n] > 0.0 else -np.inf
                    own[2] += n_classes
                else:
                    case_weights[case, n] = 0.0
            decays(flat[: n_used * n_classes], scratch[: n_used * n_classes])
            curvature[:] = 0.0
            slopes = own[3 + n_features : 3 + 2 * n_features]
            for n in range(n_used):
                if case_weights[case, n] == 0.0:
                    continue
                total = 0.0
                for k in range(n_classes):
                    total += scores[n, k]
                own[0] -= math.log(total)
                if wanted == 0:
                    continue
                label = labels_here[n]
                for k in range(n_classes):
                    scores[n, k] /= total
                if by_class:
                    _add_by_class(features[n], scores[n], label, n_own, slopes, curvature)
                else:
                    _add_by_feature(features[n], scores[n], label, n_own, means, slopes, curvature)
                if wanted == 2:
                    _add_squares(features[n], by_class, n_classes, n_own, own[3 : 3 + n_features])
            if wanted == 0:
                continue
            target = own[3 + 2 * n_features :].reshape(n_features, n_features)
            for f in range(n_features):
                for g in range(n_features):
                    target[f, g] += curvature[max(f, g), min(f, g)]
        begin = end


@compiled_inline
def _row_features(mixed, n, logs, by_class, n_own, base, features):  # type: ignore[no-untyped-def]
    """Logarithms of the combination in a row, and the features of an alternative there."""
    mean = 0.0
    for k in range(base.shape[0]):
        base[k] = math.log(max(mixed[k, n], FLOOR))
        mean += base[k] / base.shape[0]
    if by_class:
        features[0, 0] = 1.0
        for j in range(1, n_own):
            features[0, j] = base[j - 1] - mean
        return
    for k in range(base.shape[0]):
        features[k, 0] = base[k]
        for m in range(logs.shape[1]):
            features[k, m + 1] = logs[k, m] - base[k]


@compiled_inline
def _scored(features, by_class, n_own, beta, scores):  # type: ignore[no-untyped-def]
    """From logarithms of the combination to what those of the alternative lack to the largest."""
    largest = -np.inf
    for k in range(scores.shape[0]):
        row, begin = features[0 if by_class else k], k * n_own if by_class else 0
        for f in range(n_own):
            scores[k] += beta[begin + f] * row[f]
        largest = max(largest, scores[k])
    for k in range(scores.shape[0]):
        scores[k] = largest - scores[k]


@compiled_inline
def _add_by_feature(features, q, label, n_own, means, slopes, curvature):  # type: ignore[no-untyped-def]
    """Slopes and the lower half of the curvature, of features that differ between classes."""
    padded = means.shape[0]
    for f in range(padded):
        means[f] = 0.0
    for k in range(q.shape[0]):
        for f in range(padded):
            means[f] += q[k] * features[k, f]
    for f in range(n_own):
        slopes[f] += features[label, f] - means[f]
    for k in range(q.shape[0]):
        for f in range(n_own):
            weighted = q[k] * (features[k, f] - means[f])
            for g in range(min(f // 4 * 4 + 4, padded)):
                curvature[f, g] += weighted * features[k, g]


@compiled_inline
def _add_by_class(features, q, label, n_own, slopes, curvature):  # type: ignore[no-untyped-def]
    """The same, of features that all classes share, each with coefficients of its own."""
    row = features[0]
    for k in range(q.shape[0]):
        residual = (1.0 if k == label else 0.0) - q[k]
        for f in range(n_own):
            slopes[k * n_own + f] += residual * row[f]
        for other in range(k + 1):
            both = q[k] * ((1.0 if other == k else 0.0) - q[other])
            for f in range(n_own):
                into = curvature[k * n_own + f]
                for g in range(n_own):
                    into[other * n_own + g] += both * row[f] * row[g]


@compiled_inline
def _add_squares(features, by_class, n_classes, n_own, out):  # type: ignore[no-untyped-def]
    """Squared deviations of each feature from the row's mean."""
    for f in range(n_own):
        if by_class:
            # Of one class it is this feature, of all others 0.
            square = features[0, f] ** 2 * (1.0 - 1.0 / n_classes)
            for k in range(n_classes):
                out[k * n_own + f] += square
            continue
        mean = 0.0
        for k in range(n_classes):
            mean += features[k, f] / n_classes
        for k in range(n_classes):
            out[f] += (features[k, f] - mean) ** 2
