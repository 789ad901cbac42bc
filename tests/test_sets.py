"""ClassifierSet: the convex hull of its members."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hullcal._validation import InvalidInputError
from hullcal.sets import ClassifierSet


def members(dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 4)).astype(dtype)


def test_the_sizes_are_those_of_the_array() -> None:
    hull = ClassifierSet(members())
    assert (hull.n_samples, hull.n_members, hull.n_classes) == (20, 4, 3)
    assert repr(hull) == "ClassifierSet(n_samples=20, n_members=4, n_classes=3)"


def test_the_members_are_a_read_only_view() -> None:
    given = members()
    hull = ClassifierSet(given)
    assert np.shares_memory(hull.probs, given)
    assert given.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        hull.probs[0, 0, 0] = 1


@pytest.mark.parametrize("name", ["probs", "classes", "notes", "n_samples", "anything"])
def test_a_set_cannot_be_changed(name: str) -> None:
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        setattr(ClassifierSet(members()), name, None)


def test_what_was_done_to_the_input_is_kept() -> None:
    assert ClassifierSet(members()).notes == ()
    assert ClassifierSet(members() * (1 + 1e-8)).notes[0].code == "renormalised"


def test_logits_and_logarithms_are_understood() -> None:
    logs = np.log(members())
    for options in ({"from_logits": True}, {"from_log": True}):
        np.testing.assert_allclose(ClassifierSet(logs, **options).probs, members(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_vertex_is_its_member_bit_for_bit(dtype: str) -> None:
    probs = members(dtype)
    probs[range(4), range(4)] = [-0.0, 0.25, 0.75]  # a sign that adding 0 would lose
    hull = ClassifierSet(probs)
    for m in range(4):
        mixed = hull.mix(np.eye(4)[m])
        assert mixed.dtype == np.float64
        assert mixed.tobytes() == probs[:, m, :].astype(np.float64).tobytes()


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any))
def test_a_mixture_is_the_weighted_sum(counts: list[int]) -> None:
    weights = np.array(counts) / sum(counts)
    expected = np.zeros((20, 3))
    for m in range(4):
        expected += weights[m] * members("float32")[:, m, :].astype(float)
    mixed = ClassifierSet(members("float32")).mix(weights)
    np.testing.assert_allclose(mixed, expected, rtol=0, atol=1e-15)


def test_a_mixture_has_the_same_bits_in_any_order_of_members() -> None:
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = ClassifierSet(members()).mix(weights)
    for order in itertools.permutations(range(4)):
        mixed = ClassifierSet(members()[:, order]).mix(weights[list(order)])
        np.testing.assert_array_equal(mixed, expected)


def test_a_mixture_is_ours_to_write_to() -> None:
    hull = ClassifierSet(members())
    hull.mix([1, 0, 0, 0])[:] = 0
    np.testing.assert_array_equal(hull.probs, members())


def test_the_mean_is_the_average_member() -> None:
    np.testing.assert_allclose(ClassifierSet(members()).mean(), members().mean(axis=1), rtol=1e-14)


def test_weights_are_checked() -> None:
    with pytest.raises(InvalidInputError, match=r"`weights` must have shape \(4,\)"):
        ClassifierSet(members()).mix([0.5, 0.5])


def test_labels_are_checked_against_samples_and_classes() -> None:
    hull = ClassifierSet(members(), classes=["x", "y", "z"])
    assert hull.classes == ("x", "y", "z")
    assert hull.labels(["z", "x"] * 10).tolist() == [2, 0] * 10
    with pytest.raises(InvalidInputError, match="`labels`"):
        hull.labels(["z", "x"])


def test_classes_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="`classes`"):
        ClassifierSet(members(), classes=["x"])


def test_of_gives_a_set_as_it_is() -> None:
    hull = ClassifierSet(members(), classes=["x", "y", "z"])
    assert ClassifierSet.of(hull) is hull
    assert ClassifierSet.of(hull, classes=["x", "y", "z"], from_logits=False) is hull


def test_of_makes_a_set_of_anything_else() -> None:
    made = ClassifierSet.of(np.log(members()), classes=["x", "y", "z"], from_log=True)
    np.testing.assert_array_equal(made.probs, np.exp(np.log(members())))
    assert made.classes == ("x", "y", "z")


@pytest.mark.parametrize("options", [{"from_log": True}, {"classes": ["a", "b", "c"]}])
def test_of_refuses_options_that_contradict_the_set(options: dict[str, object]) -> None:
    hull = ClassifierSet(members(), classes=["x", "y", "z"])
    with pytest.raises(InvalidInputError, match=f"`{next(iter(options))}` is settled"):
        ClassifierSet.of(hull, **options)


def test_with_labels_checks_predictions_and_labels_together() -> None:
    labels = np.arange(20) % 3
    hull, got = ClassifierSet.with_labels(members(), labels)
    np.testing.assert_array_equal(got, labels)
    assert hull.probs.shape == (20, 4, 3)
    with pytest.raises(InvalidInputError, match="swapped"):
        ClassifierSet.with_labels(labels, members())


def test_with_labels_takes_a_set_and_its_names() -> None:
    hull = ClassifierSet(members(), classes=["x", "y", "z"])
    same, got = ClassifierSet.with_labels(hull, ["y"] * 20)
    assert same is hull
    assert got.tolist() == [1] * 20


def test_with_labels_keeps_the_names_it_was_given() -> None:
    hull, got = ClassifierSet.with_labels(members(), ["y"] * 20, classes=["x", "y", "z"])
    assert hull.classes == ("x", "y", "z")
    assert got.tolist() == [1] * 20


def test_names_that_are_numbers_become_their_digits():
    numbered = ClassifierSet(np.full((4, 1, 2), 0.5), classes=[2, 1], members=["a"])
    assert numbered.labels([2, 1, 1, 2]).tolist() == [0, 1, 1, 0]
    named = numbered.named_by_text()
    assert (named.classes, named.members) == (("2", "1"), ("a",))
    assert named.labels([0, 1, 1, 0]).tolist() == [0, 1, 1, 0]
    assert named.named_by_text() is named
    plain = ClassifierSet(np.full((4, 1, 2), 0.5))
    assert plain.named_by_text() is plain


def test_a_number_and_its_digits_stay_two_classes():
    both = ClassifierSet(np.full((4, 1, 2), 0.5), classes=[1, "1"]).named_by_text()
    assert len(set(both.classes)) == 2
