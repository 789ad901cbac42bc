"""Binary problems and held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hullcal._validation import InvalidInputError, check_probs
from hullcal.preparation import from_binary, split


def test_class_one_gets_p_and_class_zero_the_rest() -> None:
    got = from_binary([[0.25, 1.0], [0.0, 0.5]])
    np.testing.assert_array_equal(got, [[[0.75, 0.25], [0, 1]], [[1, 0], [0.5, 0.5]]])


def test_one_axis_is_one_classifier() -> None:
    assert from_binary([0.25, 0.5, 1.0]).shape == (3, 1, 2)


def test_a_list_of_arrays_is_a_list_of_members() -> None:
    got = from_binary([np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])])
    np.testing.assert_array_equal(got[:, :, 1], [[0.1, 0.4], [0.2, 0.5], [0.3, 0.6]])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f8"), ("f4", "f4"), (">f4", "f4"), ("f8", "f8"), ("i8", "f8"), ("?", "f8")],
)
def test_float32_stays_and_the_rest_becomes_float64(dtype: str, expected: str) -> None:
    p = np.array([[0, 1], [1, 0]], dtype=dtype)
    assert from_binary(p).dtype == np.dtype(expected)
    assert from_binary(p).dtype.isnative


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.sampled_from(["f2", "f4", "f8"]))
def test_the_result_is_always_a_valid_set(p: list[float], dtype: str) -> None:
    assert check_probs(from_binary(np.array(p, dtype=dtype))).notes == ()


def test_the_input_is_untouched() -> None:
    p = np.array([0.25, 0.5])
    from_binary(p)[:] = 0
    np.testing.assert_array_equal(p, [0.25, 0.5])


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_values_outside_the_unit_interval_are_refused_with_their_place(bad: float) -> None:
    with pytest.raises(InvalidInputError, match=r"`p` must lie in \[0, 1\].*\(n, m\) = \(1, 0\)"):
        from_binary([[0.5, 0.5], [bad, 0.5]])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 2, 2)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"`p` must have shape .* got shape"):
        from_binary(np.zeros(shape))


def test_objects_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="python objects"):
        from_binary(np.array([0.5, None]))


def rows(n: int) -> np.ndarray:
    """Row i holds i, so that rows can be recognised after the split."""
    return np.repeat(np.arange(n, dtype=float), 6).reshape(n, 2, 3)


@given(n=st.integers(2, 60), fraction=st.floats(0.001, 0.999), seed=st.integers(0, 100))
def test_the_parts_are_disjoint_complete_and_in_order(n: int, fraction: float, seed: int) -> None:
    (probs_a, labels_a), (probs_b, labels_b) = split(
        rows(n), np.arange(n), fraction=fraction, rng=seed
    )
    assert len(labels_a) == min(max(round(fraction * n), 1), n - 1)
    assert sorted([*labels_a, *labels_b]) == list(range(n))
    assert (np.diff(labels_a) > 0).all()
    assert (np.diff(labels_b) > 0).all()
    np.testing.assert_array_equal(probs_a[:, 0, 0], labels_a)
    np.testing.assert_array_equal(probs_b[:, 1, 2], labels_b)


def test_the_default_choice_is_reproducible_and_the_seed_matters() -> None:
    def first(**options: int) -> list[int]:
        return split(rows(50), range(50), **options)[0][1].tolist()  # type: ignore[no-any-return, arg-type]

    assert first() == first() == first(rng=0)
    assert first(rng=1) != first(rng=2)


def test_every_row_can_land_in_the_first_part() -> None:
    seen = {i for seed in range(50) for i in split(rows(6), range(6), rng=seed)[0][1].tolist()}
    assert seen == set(range(6))


def test_labels_of_any_kind_keep_their_values() -> None:
    names = ["a", 1, ("b", 2), None]
    (_, first), (_, second) = split(rows(4), names)
    assert sorted(map(str, [*first, *second])) == sorted(map(str, names))
    one_hot = split(rows(4), np.eye(4))[0][1]
    assert one_hot.shape == (2, 4)


def test_one_classifier_a_list_of_members_and_the_type_are_kept() -> None:
    single = rows(4)[:, 0].astype(np.float16)
    assert split(single, range(4))[0][0].shape == (2, 3)
    assert split(single, range(4))[0][0].dtype == np.float16
    assert split([single, single], range(4))[0][0].shape == (2, 2, 3)


def test_the_parts_are_copies() -> None:
    probs, labels = rows(4), np.arange(4)
    for part, names in split(probs, labels):
        part[:], names[:] = -1, -1
    np.testing.assert_array_equal(probs, rows(4))
    np.testing.assert_array_equal(labels, np.arange(4))


@pytest.mark.deep
def test_bfloat16_survives_a_split() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.randn(40, 3, 10, generator=torch.Generator().manual_seed(0))
    probs = logits.softmax(-1).to(torch.bfloat16)
    for part, _ in split(probs, range(40)):
        assert check_probs(part).probs.shape == (20, 3, 10)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2, np.nan, "half"])
def test_a_fraction_outside_the_open_interval_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidInputError, match="`fraction` must lie strictly between 0 and 1"):
        split(rows(4), range(4), fraction=fraction)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_rows_cannot_be_split(n: int) -> None:
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        split(rows(n), range(n))


def test_unequal_lengths_are_refused_with_both_shapes() -> None:
    with pytest.raises(InvalidInputError, match=r"\(4, 2, 3\).*\(5,\)"):
        split(rows(4), range(5))


def test_swapped_arguments_are_refused_with_the_order() -> None:
    with pytest.raises(InvalidInputError, match=r"split\(probs, labels\)"):
        split(range(4), rows(4))
