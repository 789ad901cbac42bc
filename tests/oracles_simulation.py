"""Algorithm 2, the scenarios of Section 4.1 and the authors' scripts, line by line and slow.

Nothing of the package is imported here; loops are plain on purpose.
"""

import numpy as np

from oracles import in_hull


def find_boundary(members: np.ndarray, p_0: np.ndarray, p_c: np.ndarray) -> tuple[np.ndarray, int]:
    """Algorithm 2 with 100 steps; also the index of the last step inside, -1 if there is none."""
    boundary, last = p_0, -1  # line 3
    for i, lam in enumerate(np.linspace(0.0, 1.0, 100)):  # line 4
        p_lam = (1 - lam) * p_0 + lam * p_c  # line 5
        if not in_hull(p_lam, members):  # lines 1, 2, 6 and 7
            break
        boundary, last = p_lam, i
    return boundary, last


def scripts_boundary(members: np.ndarray, p_0: np.ndarray, p_c: np.ndarray) -> np.ndarray:
    """The same search as in the scripts, where the index of the answer starts at 0."""
    line = [(1 - lam) * p_0 + lam * p_c for lam in np.linspace(0.0, 1.0, 100)]
    index = 0
    for i in range(100):
        if not in_hull(line[i], members):
            index = i - 1
            break
    return line[index]  # -1 is the last


def members_of(rng: np.random.Generator, m: int, k: int, u: float) -> tuple[np.ndarray, np.ndarray]:
    """p_e ~ Dir(1/K) and M members ~ Dir(K p_e / u); only for concentrations that numpy can draw."""
    p_e = rng.dirichlet(np.full(k, 1 / k))
    while np.any(p_e <= 0):
        p_e = rng.dirichlet(np.full(k, 1 / k))
    return p_e, rng.dirichlet(k * p_e / u, size=m)


def s2_or_s3(rng, n: int, m: int, k: int, u: float, closest: bool) -> dict[str, np.ndarray]:
    """S2 (closest corner) and S3 (random corner), truth uniform from boundary to corner."""
    drawn = {name: [] for name in ("probs", "mean", "corners", "boundary", "truth", "labels")}
    for _ in range(n):
        p_e, members = members_of(rng, m, k, u)
        c = int(np.argmax(p_e)) if closest else int(rng.integers(k))
        p_c = np.eye(k)[c]
        boundary, _ = find_boundary(members, p_e, p_c)
        w = rng.random()
        truth = boundary + w * (p_c - boundary)
        row = (members, p_e, c, boundary, truth, rng.choice(k, p=truth / truth.sum()))
        for name, value in zip(drawn, row, strict=True):
            drawn[name].append(value)
    return {name: np.array(values) for name, values in drawn.items()}


def scripts_truth(boundaries: np.ndarray, corners: np.ndarray, w: float) -> np.ndarray:
    """What the scripts draw labels from: `l` is a number once, and a vector ever after."""
    k = boundaries.shape[1]
    truth = []
    mixing = w
    for b, c in zip(boundaries, corners, strict=True):
        y_c = [1.0 if j == c else 0.0 for j in range(k)]
        if isinstance(mixing, float):
            mixed = [mixing * y_c[j] + (1 - mixing) * b[j] for j in range(k)]
        else:
            mixed = [mixing[j] * y_c[j] + (1 - mixing[j]) * b[j] for j in range(k)]
        adjusted = np.array(mixed)
        adjusted[-1] = 1 - adjusted[:-1].sum()
        if min(adjusted) < 0 or max(adjusted) > 1:
            truth.append([1.0 if j == int(np.argmax(mixed)) else 0.0 for j in range(k)])
        else:
            truth.append(list(adjusted))
        mixing = mixed
    return np.array(truth)


def exit_from_triangle(
    triangle: np.ndarray, start: np.ndarray, corner: np.ndarray
) -> np.ndarray | None:
    """K = M = 3 by plane geometry: where the segment from a point inside crosses an edge."""
    ray = (corner - start)[:2]
    nearest = 1.0
    for a, b in ((0, 1), (1, 2), (2, 0)):
        edge = (triangle[b] - triangle[a])[:2]
        outward = np.array([edge[1], -edge[0]])
        if outward @ (triangle[3 - a - b] - triangle[a])[:2] > 0:
            outward = -outward
        gap = outward @ (triangle[a][:2] - start[:2])
        if gap < 0:
            return None
        if outward @ ray > 0:
            nearest = min(nearest, gap / (outward @ ray))
    return start + nearest * (corner - start)
