"""Binary problems and held-out rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hullcal import InvalidInputError, from_binary, split
from hullcal._validation import check_probs


def test_class_one_gets_p_and_class_zero_the_rest():
    p = np.array([[0.25, 1.0], [0.0, 0.5]])
    got = from_binary(p)
    np.testing.assert_array_equal(got, [[[0.75, 0.25], [0, 1]], [[1, 0], [0.5, 0.5]]])
    np.testing.assert_array_equal(from_binary(list(p.T)), got)  # a list of members
    np.testing.assert_array_equal(from_binary(p[:, 0]), got[:, :1])
    got[:] = 0
    np.testing.assert_array_equal(p, [[0.25, 1.0], [0.0, 0.5]])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f8"), ("f4", "f4"), (">f4", "f4"), ("f8", "f8"), ("i8", "f8"), ("?", "f8")],
)
def test_float32_stays_and_the_rest_becomes_float64(dtype, expected):
    got = from_binary(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert got.dtype == np.dtype(expected)
    assert got.dtype.isnative


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_result_is_always_a_valid_set(dtype):
    p = np.random.default_rng(0).random((500, 2)).astype(dtype)
    assert check_probs(from_binary(p)).notes == ()


@pytest.mark.parametrize(
    ("p", "said"),
    [
        *(
            ([[0.5, 0.5], [bad, 0.5]], r"lie in \[0, 1\].*\(n, m\) = \(1, 0\)")
            for bad in (-0.1, 1.1, np.nan, np.inf)
        ),
        *((np.zeros(shape), "got shape") for shape in [(), (0,), (3, 0), (2, 2, 2)]),
        (np.array([0.5, None]), "python objects"),
    ],
)
def test_what_is_no_probability_of_class_one_is_refused(p, said):
    with pytest.raises(InvalidInputError, match=f"`p` must .*{said}"):
        from_binary(p)


def rows(n):
    """Row i holds i, so that rows can be recognised after the split."""
    return np.repeat(np.arange(n, dtype=float), 6).reshape(n, 2, 3)


@given(n=st.integers(2, 60), fraction=st.floats(0.001, 0.999), seed=st.integers(0, 100))
def test_the_parts_are_disjoint_complete_and_in_order(n, fraction, seed):
    (probs_a, labels_a), (probs_b, labels_b) = split(
        rows(n), np.arange(n), fraction=fraction, rng=seed
    )
    assert len(labels_a) == min(max(round(fraction * n), 1), n - 1)
    assert sorted([*labels_a, *labels_b]) == list(range(n))
    assert (np.diff(labels_a) > 0).all()
    assert (np.diff(labels_b) > 0).all()
    np.testing.assert_array_equal(probs_a[:, 0, 0], labels_a)
    np.testing.assert_array_equal(probs_b[:, 1, 2], labels_b)


def test_the_default_choice_is_reproducible_and_the_seed_decides():
    def first(**options):
        return split(rows(6), range(6), **options)[0][1].tolist()

    assert first() == first() == first(rng=0)
    assert {i for seed in range(50) for i in first(rng=seed)} == set(range(6))


def test_values_and_types_are_kept_in_copies():
    names = ["a", 1, ("b", 2), None]
    (_, first), (_, second) = split(rows(4), names)
    assert sorted(map(str, [*first, *second])) == sorted(map(str, names))
    single = rows(4)[:, 0].astype(np.float16)
    (part, one_hot), _ = split(single, np.eye(4))
    assert (part.shape, part.dtype, one_hot.shape) == ((2, 3), np.float16, (2, 4))
    assert split([single, single], range(4))[0][0].shape == (2, 2, 3)
    part[:], one_hot[:] = -1, -1
    np.testing.assert_array_equal(single, rows(4)[:, 0])


@pytest.mark.deep
def test_bfloat16_survives_a_split():
    torch = pytest.importorskip("torch")
    logits = torch.randn(40, 3, 10, generator=torch.Generator().manual_seed(0))
    probs = logits.softmax(-1).to(torch.bfloat16)
    for part, _ in split(probs, range(40)):
        assert check_probs(part).probs.shape == (20, 3, 10)


@pytest.mark.parametrize(
    ("probs", "labels", "fraction", "said"),
    [
        *(
            (rows(4), range(4), bad, "`fraction` must lie strictly")
            for bad in (0, 1, np.nan, "half")
        ),
        *((rows(n), range(n), 0.5, "at least 2 rows") for n in (0, 1)),
        (rows(4), range(5), 0.5, r"\(4, 2, 3\).*\(5,\)"),
        (range(4), rows(4), 0.5, "swapped"),
    ],
)
def test_what_cannot_be_split_is_refused(probs, labels, fraction, said):
    with pytest.raises(InvalidInputError, match=said):
        split(probs, labels, fraction=fraction)
