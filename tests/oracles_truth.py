"""Literal versions of the truth test's equations, in plain numpy and scipy."""

import numpy as np
from scipy.differentiate import hessian, jacobian
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

FLOOR = 1e-4
#: Precisions of the standardised coefficients: in the statistic, and in what predicts later rows.
RIDGES = {"temperature": 1.0, "pool": 10.0, "classes": 10.0, "logits": 10.0}
CAUTIOUS = {"temperature": 5.0, "pool": 20.0, "classes": 20.0, "logits": 20.0}


def mixture(probs, weights):
    return np.einsum("m,nmk->nk", weights, probs)


def log_likelihood(probs, labels, weights):
    return np.log(mixture(probs, weights)[np.arange(len(labels)), labels]).sum()


def most_likely(probs, labels, n_steps=20_000):
    """EM, to the letter."""
    weights = np.full(probs.shape[1], 1.0 / probs.shape[1])
    chances = probs[np.arange(len(labels)), :, labels]
    chances = chances[chances.max(axis=1) > 0]
    for _ in range(n_steps):
        weights = weights * (chances / (chances @ weights)[:, None]).mean(axis=0)
    return weights


def families(n_classes):
    if 3 <= n_classes <= 5:
        return ["temperature", "pool", "classes", "logits"]
    return ["temperature", "pool", "classes"] if 5 < n_classes <= 50 else ["temperature", "pool"]


def n_coefficients(family, n_members, n_classes):
    sizes = {"temperature": 1, "pool": 1 + n_members, "classes": n_classes}
    return sizes.get(family, n_classes * (1 + n_classes))


def scores(probs, base, family, beta):
    """Logarithms of an alternative, but for a constant in each row; all probabilities floored."""
    logs, members = np.log(np.maximum(base, FLOOR)), np.log(np.maximum(probs, FLOOR))
    if family == "temperature":
        return (1 + beta[0]) * logs
    if family == "pool":
        found = (1 + beta[0]) * logs
        for m in range(probs.shape[1]):
            found = found + beta[1 + m] * (members[:, m] - logs)
        return found
    if family == "classes":
        return logs + beta
    own = beta.reshape(logs.shape[1], -1)
    return logs + own[:, 0] + (logs - logs.mean(axis=1, keepdims=True)) @ own[:, 1:].T


def log_alternative(probs, base, family, beta):
    return log_softmax(scores(probs, base, family, beta), axis=1)


def scales(probs, base, family):
    """Root mean squares of what each coefficient adds, around the mean of its row."""
    size = n_coefficients(family, *probs.shape[1:])
    none = scores(probs, base, family, np.zeros(size))
    added = np.array([scores(probs, base, family, unit) - none for unit in np.eye(size)])
    return np.sqrt(((added - added.mean(axis=2, keepdims=True)) ** 2).mean(axis=(1, 2)))


def fitted(probs, labels, base, family, ridge):
    """Coefficients with the largest penalised log-likelihood, by a quasi-Newton method."""
    rows, scale = np.arange(len(labels)), scales(probs, base, family)

    def loss(beta):
        log_q = log_alternative(probs, base, family, beta)[rows, labels].sum()
        return 0.5 * ridge * ((beta * scale) ** 2).sum() - log_q

    return minimize(loss, np.zeros(len(scale)), method="BFGS", options={"gtol": 1e-7}).x


def evidence(probs, labels, base, family, ridge):
    """Laplace's approximation at 0 to the average of q / p over a normal law of the coefficients."""
    rows, scale = np.arange(len(labels)), scales(probs, base, family)

    def log_q(beta):
        flat = beta.reshape(len(scale), -1).T
        found = [log_alternative(probs, base, family, b)[rows, labels].sum() for b in flat]
        return np.array(found).reshape(beta.shape[1:])

    slopes = jacobian(log_q, np.zeros(len(scale)), initial_step=0.1).df
    curvature = -hessian(log_q, np.zeros(len(scale)), initial_step=0.1).ddf
    # At a vertex the combination is a member, whose own feature is 0.
    live = scale > 1e-6
    slopes, curvature = slopes[live], curvature[np.ix_(live, live)]
    penalty = np.diag(ridge * scale[live] ** 2)
    quadratic = slopes @ np.linalg.solve(curvature + penalty, slopes)
    volume = np.linalg.slogdet(np.eye(len(slopes)) + np.linalg.solve(penalty, curvature))[1]
    floored = log_q(np.zeros((len(scale), 1)))[0] - np.log(base[rows, labels]).sum()
    return floored + (quadratic - volume) / 2


def statistic(probs, labels):
    base = mixture(probs, most_likely(probs, labels))
    found = [
        evidence(probs, labels, base, family, RIDGES[family]) for family in families(base.shape[1])
    ]
    return logsumexp(found) - np.log(len(found))


def log_evalue(probs, labels, ends):
    """Blocks that end at these rows, predicted by what was fitted on the rows before."""
    n_members, names = probs.shape[1], families(probs.shape[2])
    numerators = dict.fromkeys(names, 0.0)
    for first, last in zip([0, *ends], ends, strict=False):
        weights = most_likely(probs[:first], labels[:first]) if first else np.ones(n_members)
        weights = (first * weights + 5 / n_members) / (first + 5) if first else weights / n_members
        base = mixture(probs, weights)
        here, before = slice(first, last), slice(0, first)
        for name in names:
            beta = np.zeros(n_coefficients(name, *probs.shape[1:]))
            if first:
                beta = fitted(probs[before], labels[before], base[before], name, CAUTIOUS[name])
            log_q = log_alternative(probs[here], base[here], name, beta)
            numerators[name] += log_q[np.arange(last - first), labels[here]].sum()
    largest = log_likelihood(probs, labels, most_likely(probs, labels))
    return logsumexp(list(numerators.values())) - np.log(len(names)) - largest
