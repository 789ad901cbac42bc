"""The door: what is accepted, what is mended, what is refused, and in which words."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hullcal import ClassifierSet
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_classes,
    check_fraction,
    check_integer,
    check_jobs,
    check_labels,
    check_positive,
    check_probs,
    check_seed,
    check_set_and_labels,
    check_settled,
    check_single,
    check_weights,
    probabilities,
)

EPS = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
LIMIT = {"float16": 1e-3, "float32": 1e-4, "float64": 1e-6}


def members(n: int = 20, m: int = 4, k: int = 3, seed: int = 0) -> np.ndarray:
    """Rows in sixteenths, so that every sum is exact in every floating-point type."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(16, np.full(k, 1 / k), size=(n, m)) / 16


def truth(n: int = 20, k: int = 3, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, k, n)


def message(call: Callable[[], object]) -> str:
    """Give the message of the refusal, which must be there."""
    with pytest.raises(InvalidInputError) as caught:
        call()
    return str(caught.value)


def labels_of(labels: object, n: int = 4, k: int = 3, classes: object = None) -> list[int]:
    return check_labels(labels, n_samples=n, n_classes=k, classes=classes).tolist()


# --- what every refusal has in common -------------------------------------------------------------


def test_the_error_is_a_value_error_and_the_warning_a_user_warning() -> None:
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(HullcalWarning, UserWarning)


def test_the_error_survives_a_trip_to_another_process() -> None:
    error = InvalidInputError("`probs` must be finite")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("call", "parameter", "came", "repair"),
    [
        (lambda: check_probs(np.ones(5) / 5), "`probs`", "(5,)", "from_binary"),
        (lambda: check_probs(np.ones((5, 3, 1))), "`probs`", "(5, 3, 1)", "from_binary"),
        (lambda: check_probs(np.full((2, 2), 3.0)), "`probs`", "from 3 to 3", "from_logits=True"),
        (lambda: labels_of([0, 1, 2, 3]), "`labels`", "3 at index 3", "last axis of `probs`"),
        (lambda: labels_of(["a"] * 4), "`labels`", "'a'", "`classes=[...]`"),
        (lambda: check_classes(["a", "a"], 2), "`classes`", "'a' twice", "Rename"),
        (lambda: check_integer(0, "n_bins", 1), "`n_bins`", "got 0", "n_bins=10"),
        (lambda: check_fraction(1.0, "alpha"), "`alpha`", "got 1.0", "alpha=0.05"),
        (lambda: check_positive(-1, "bandwidth"), "`bandwidth`", "got -1", "bandwidth=1.0"),
        (lambda: check_weights([1, 1], 2), "`weights`", "a sum of 2", "w / w.sum()"),
        (lambda: check_seed("x"), "`rng`", "'x'", "rng=0"),
    ],
)
def test_a_refusal_names_the_parameter_what_came_and_the_repair(
    call: Callable[[], object], parameter: str, came: str, repair: str
) -> None:
    said = message(call)
    assert said.startswith(parameter)
    assert came in said
    assert repair in said


# --- shapes ---------------------------------------------------------------------------------------


def test_three_axes_are_samples_members_classes() -> None:
    assert check_probs(members()).probs.shape == (20, 4, 3)


def test_two_axes_are_one_classifier() -> None:
    one = members()[:, 0, :]
    assert check_probs(one).probs.shape == (20, 1, 3)
    assert np.shares_memory(check_probs(one).probs, one)


@pytest.mark.parametrize("container", [list, tuple])
def test_a_list_of_arrays_is_a_list_of_members(container: Callable[..., Any]) -> None:
    probs = members()
    got = check_probs(container(probs[:, m, :] for m in range(4))).probs
    np.testing.assert_array_equal(got, probs)


def test_a_list_of_members_may_begin_with_a_nested_list() -> None:
    probs = members()
    got = check_probs([probs[:, 0, :].tolist(), probs[:, 1, :]]).probs
    np.testing.assert_array_equal(got, probs[:, :2, :])


def test_a_nested_list_of_numbers_is_read_as_numpy_reads_it() -> None:
    probs = members()
    np.testing.assert_array_equal(check_probs(probs.tolist()).probs, probs)
    np.testing.assert_array_equal(check_probs(list(probs[:, 0, :])).probs[:, 0], probs[:, 0])


def test_a_single_sample_and_a_single_member_are_valid() -> None:
    assert check_probs([[[0.5, 0.5]]]).probs.shape == (1, 1, 2)


@pytest.mark.parametrize("shape", [(), (6,), (2, 2, 2, 2)])
def test_another_number_of_axes_is_refused_with_the_shape(shape: tuple[int, ...]) -> None:
    said = message(lambda: check_probs(np.full(shape, 0.5)))
    assert "(n_samples, n_members, n_classes)" in said
    assert f"shape {shape}" in said


@pytest.mark.parametrize("shape", [(0, 3, 2), (5, 0, 2), (0, 2), (5, 3, 0)])
def test_an_empty_axis_is_refused(shape: tuple[int, ...]) -> None:
    assert f"empty array of shape {shape}" in message(lambda: check_probs(np.ones(shape)))


@pytest.mark.parametrize("shape", [(5, 1), (5, 3, 1)])
def test_a_single_class_is_refused(shape: tuple[int, ...]) -> None:
    assert "at least 2 classes" in message(lambda: check_probs(np.ones(shape)))


def test_members_of_unequal_shape_are_refused_with_their_shapes() -> None:
    said = message(lambda: check_probs([members()[:, 0], members(n=7)[:, 0]]))
    assert "(20, 3), (7, 3)" in said


def test_a_ragged_list_is_refused() -> None:
    assert "regular nested list" in message(lambda: check_probs([[0.5, 0.5], [1.0]]))


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_infinity_are_refused_with_their_number_and_the_first_index(
    bad: float, dtype: str
) -> None:
    probs = members().astype(dtype)
    probs[7, 2, 1] = bad
    probs[9, 0, 0] = bad
    said = message(lambda: check_probs(probs))
    assert "2 NaN or infinite values" in said
    assert "(n, m, k) = (7, 2, 1)" in said


def test_infinities_of_both_signs_do_not_cancel_in_a_sum() -> None:
    probs = members()
    probs[0, 0] = [np.inf, -np.inf, 1]
    assert "2 NaN or infinite values" in message(lambda: check_probs(probs))


def test_the_first_index_counts_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilities, "BLOCK_BYTES", 3 * 4 * 3 * 8)
    probs = members()
    probs[[13, 19], 3, 2] = np.nan
    for from_logits in (False, True):
        said = message(lambda option=from_logits: check_probs(probs, from_logits=option))
        assert "2 NaN" in said
        assert "(13, 3, 2)" in said


def test_logits_are_refused_and_the_option_is_named() -> None:
    logits = np.random.default_rng(0).normal(size=(20, 4, 3))
    said = message(lambda: check_probs(logits))
    assert "[0, 1]" in said
    assert "from_logits=True" in said


def test_positive_logits_that_stay_in_the_unit_interval_are_refused_for_their_sums() -> None:
    logits = np.random.default_rng(0).uniform(0.6, 1.0, size=(20, 4, 3))
    said = message(lambda: check_probs(logits))
    assert "80 of 80 rows" in said
    assert "(n, m) = (0, 0)" in said
    assert "from_logits=True" in said


def test_log_probabilities_are_refused_and_their_option_is_named() -> None:
    assert "from_log=True" in message(lambda: check_probs(np.log(members() * 0.9 + 0.1 / 3)))


def test_log_probabilities_of_zero_are_recognised_too() -> None:
    with np.errstate(divide="ignore"):
        said = message(lambda: check_probs(np.log([[0.0, 1.0]])))
    assert "from_log=True" in said


def test_negative_logits_are_not_mistaken_for_log_probabilities() -> None:
    assert "from_logits=True" in message(lambda: check_probs(np.full((2, 3), -7.0)))


def test_percentages_are_recognised() -> None:
    assert "sums to 100" in message(lambda: check_probs(100 * members()))


def test_binary_probabilities_in_columns_are_recognised() -> None:
    assert "from_binary" in message(lambda: check_probs(np.full((5, 4), 0.9)))


def test_rows_a_little_off_get_a_repair_and_not_a_guess() -> None:
    said = message(lambda: check_probs(members() * 1.0001))
    assert "keepdims=True" in said
    assert "from_logits" not in said


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_outside_by_rounding_are_clipped_and_it_is_noted(dtype: str) -> None:
    given = np.array([[1 + 5e-7, -5e-7], [0.5, 0.5]], dtype=dtype)
    before = given.copy()
    got = check_probs(given)
    np.testing.assert_array_equal(got.probs[:, 0, :], [[1, 0], [0.5, 0.5]])
    assert got.notes == ("2 values were outside [0, 1] by at most 1e-06 and clipped",)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("row", [[1 + 3e-6, -3e-6], [-2e-6, 1.0], [0.0, 1.000002]])
def test_values_outside_by_more_are_refused(row: list[float]) -> None:
    assert "must lie in [0, 1]" in message(lambda: check_probs([row]))


def test_members_with_exact_zeros_and_ones_are_valid() -> None:
    hard = np.eye(3)[truth()][:, None, :].repeat(4, axis=1)
    assert check_probs(hard).notes == ()


def test_duplicated_members_are_valid() -> None:
    assert check_probs(np.repeat(members(m=1), 5, axis=1)).notes == ()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool"])
def test_whole_numbers_and_booleans_become_float64(dtype: str) -> None:
    got = check_probs(np.eye(3, dtype=dtype)).probs
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got[:, 0], np.eye(3))


# --- the row-sum rule -----------------------------------------------------------------------------


def off_by(dtype: str, deviation: float, k: int = 4) -> np.ndarray:
    """One good row, and one that is off by the deviation as nearly as the type allows."""
    row = np.full(k, 1 / k)
    row[0] += deviation
    return np.stack([np.full(k, 1 / k), row]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_rounding_of_the_inputs_type_is_left_bit_for_bit(dtype: str, sign: int) -> None:
    given = off_by(dtype, sign * 3.9 * 4 * EPS[dtype])
    got = check_probs(given)
    np.testing.assert_array_equal(got.probs[:, 0], given)
    assert not any("renormalised" in note for note in got.notes)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_little_more_is_renormalised_in_float64_and_noted(dtype: str, sign: int) -> None:
    given = off_by(dtype, sign * (4 * 4 * EPS[dtype] + 0.7 * LIMIT[dtype]))
    before = given.copy()
    got = check_probs(given)
    assert got.probs.dtype == np.float64
    assert abs(math.fsum(got.probs[1, 0]) - 1) < 1e-15
    np.testing.assert_array_equal(got.probs[0, 0], given[0])
    exact = given[1].astype(float)
    np.testing.assert_allclose(got.probs[1, 0], exact / exact.sum(), rtol=1e-15)
    assert got.notes[0].startswith("1 of 2 rows were renormalised (largest deviation ")
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_beyond_that_it_is_refused(dtype: str, sign: int) -> None:
    given = off_by(dtype, sign * (4 * 4 * EPS[dtype] + 2 * LIMIT[dtype]))
    said = message(lambda: check_probs(given))
    assert "must sum to 1" in said
    assert dtype in said
    assert "(n, m) = (1, 0)" in said


def test_many_classes_in_half_precision_do_not_excuse_any_sum() -> None:
    zeros = np.zeros((2, 3, 2000), dtype=np.float16)
    zeros[..., 0] = 0.5
    assert "must sum to 1" in message(lambda: check_probs(zeros))


def test_coarse_rows_that_are_left_alone_are_mentioned() -> None:
    (note,) = check_probs(off_by("float16", 0.01)).notes
    assert "left as they came" in note
    assert "float16" in note


def test_an_edge_value_stays_on_its_edge() -> None:
    given = np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1]])
    np.testing.assert_array_equal(check_probs(given).probs[:, 0], given)


@settings(deadline=None)
@given(
    k=st.integers(2, 40),
    dtype=st.sampled_from(["float32", "float64"]),
    exponent=st.floats(-17, -1),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_row_sum_rule_follows_its_definition(
    k: int, dtype: str, exponent: float, seed: int
) -> None:
    row = np.random.default_rng(seed).dirichlet(np.ones(k)) * (1 - 10**exponent)
    given = row.astype(dtype)[None]
    deviation = abs(math.fsum(given[0].astype(float)) - 1)
    left = 4 * k * EPS[dtype]
    doubt = k * EPS["float64"]  # the package does not sum exactly
    if deviation > left + LIMIT[dtype] + doubt:
        with pytest.raises(InvalidInputError):
            check_probs(given)
    elif deviation <= left - doubt:
        assert check_probs(given).probs.tobytes() == given.tobytes()
    elif left + doubt < deviation <= LIMIT[dtype]:
        got = check_probs(given)
        assert abs(math.fsum(got.probs[0, 0]) - 1) <= doubt
        assert len(got.notes) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_quick_pass_is_no_more_lenient_than_the_rule(dtype: str) -> None:
    assert "renormalised" in check_probs(off_by(dtype, 5 * 4 * EPS[dtype])).notes[0]


@pytest.mark.parametrize("layout", ["Fortran order", "negative strides", "transposed"])
def test_layout_never_changes_what_is_renormalised(layout: str) -> None:
    # Sums this close to the bound fall on either side of it, depending on the order of addition.
    rng = np.random.default_rng(0)
    bound = 4 * 40 * EPS["float64"]
    probs = rng.dirichlet(np.ones(40), size=(500, 2))
    probs *= 1 + bound * rng.uniform(0.98, 1.02, size=(500, 2, 1))
    whole, other = check_probs(probs), check_probs(LAYOUTS[layout](probs))
    assert "renormalised" in whole.notes[0]
    assert other.notes == whole.notes
    np.testing.assert_array_equal(other.probs, whole.probs)


def test_blocks_do_not_change_what_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    probs = members() * (1 + 1e-9 * np.arange(20)[:, None, None])
    whole = check_probs(probs)
    monkeypatch.setattr(probabilities, "BLOCK_BYTES", 1)
    np.testing.assert_array_equal(check_probs(probs).probs, whole.probs)
    assert check_probs(probs).notes == whole.notes
    assert whole.notes[0].startswith("76 of 80 rows were renormalised")


# --- logits and logarithms ------------------------------------------------------------------------


def test_from_logits_is_the_softmax_in_float64() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
    exact = np.exp(logits.astype(float))
    got = check_probs(logits, from_logits=True)
    assert got.probs.dtype == np.float64
    np.testing.assert_allclose(got.probs, exact / exact.sum(-1, keepdims=True), rtol=1e-14)
    assert got.notes == ()


def test_from_logits_neither_overflows_nor_underflows() -> None:
    got = check_probs([[1e308, -1e308, 1e308]], from_logits=True).probs
    np.testing.assert_array_equal(got[0, 0], [0.5, 0, 0.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_from_logits_still_refuses_what_is_not_finite(bad: float) -> None:
    said = message(lambda: check_probs([[0.0, 1.0], [bad, 1.0]], from_logits=True))
    assert "1 NaN or infinite value," in said
    assert "(1, 0, 0)" in said


def test_from_logits_of_probabilities_is_remarked_upon() -> None:
    (note,) = check_probs(members(), from_logits=True).notes
    assert "probability vector already" in note


def test_from_log_is_the_exponential_in_float64() -> None:
    logs = np.log(np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 3)))
    got = check_probs(logs, from_log=True).probs
    np.testing.assert_array_equal(got, np.exp(logs))


def test_from_log_takes_minus_infinity_for_zero() -> None:
    got = check_probs([[0.0, -np.inf]], from_log=True).probs
    np.testing.assert_array_equal(got, [[[1, 0]]])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_from_log_refuses_nan_and_plus_infinity(bad: float) -> None:
    said = message(lambda: check_probs([[0.0, -np.inf], [bad, -1]], from_log=True))
    assert "(1, 0, 0)" in said


@pytest.mark.parametrize("high", [0.5, 1000.0])
def test_from_log_refuses_positive_values_even_where_they_overflow(high: float) -> None:
    said = message(lambda: check_probs([[high, -1.0]], from_log=True))
    assert "at most 0" in said
    assert f"{high:g}" in said


def test_from_log_follows_the_row_sum_rule() -> None:
    logs = np.log(members(k=2) * 0.5 + 0.25)
    assert "renormalised" in check_probs(logs + 1e-7, from_log=True).notes[0]
    assert "from_logits=True" in message(lambda: check_probs(logs - 1, from_log=True))


def test_the_precision_of_logarithms_is_that_of_their_type() -> None:
    logs = np.log(np.random.default_rng(0).dirichlet(np.ones(5), size=(50, 2))).astype("float32")
    assert check_probs(logs, from_log=True).notes == ()


def test_logits_and_logarithms_exclude_each_other() -> None:
    said = message(lambda: check_probs(members(), from_logits=True, from_log=True))
    assert "`from_log`" in said


# --- types, layouts and memory --------------------------------------------------------------------


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float16": lambda a: a.astype(np.float16),
    "float32": lambda a: a.astype(np.float32),
    "float64": lambda a: a,
    "longdouble": lambda a: a.astype(np.longdouble),
    "big-endian float32": lambda a: a.astype(">f4"),
    "big-endian float64": lambda a: a.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "negative strides": lambda a: a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "transposed": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_answer_and_stays_untouched(layout: str) -> None:
    given = LAYOUTS[layout](members())
    bytes_before, flags_before = given.tobytes(), str(given.flags)
    got = check_probs(given).probs
    np.testing.assert_array_equal(got, members())
    assert got.dtype in (np.float32, np.float64)
    assert got.dtype.isnative
    assert given.tobytes() == bytes_before
    assert str(given.flags) == flags_before


@pytest.mark.parametrize(
    "layout", ["float32", "float64", "Fortran order", "negative strides", "transposed"]
)
def test_what_needs_no_change_is_not_copied(layout: str) -> None:
    given = LAYOUTS[layout](members())
    assert np.shares_memory(check_probs(given).probs, given)


def test_the_result_is_read_only_and_the_input_stays_writable() -> None:
    given = members()
    got = check_probs(given).probs
    assert not got.flags.writeable
    assert given.flags.writeable
    given[0, 0] = [1, 0, 0]


@pytest.mark.parametrize("transform", ["as is", "mended", "float16", "from_logits"])
def test_the_result_is_read_only_however_it_was_made(transform: str) -> None:
    given = {"mended": members() * (1 + 1e-9), "float16": members().astype(np.float16)}
    got = check_probs(given.get(transform, members()), from_logits=transform == "from_logits")
    assert not got.probs.flags.writeable


def test_a_read_only_array_is_accepted() -> None:
    given = members()
    given.setflags(write=False)
    assert np.shares_memory(check_probs(given).probs, given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_memory_map_is_not_copied(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "probs.npy", members(n=200).astype(dtype))
    given = np.load(tmp_path / "probs.npy", mmap_mode="r")
    monkeypatch.setattr(probabilities, "BLOCK_BYTES", 1000)
    got = check_probs(given).probs
    assert type(got) is np.ndarray
    assert np.shares_memory(got, given)
    np.testing.assert_array_equal(got, members(n=200))


def test_a_scan_works_through_an_array_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilities, "BLOCK_BYTES", 7 * 4 * 3 * 8)
    sizes = [len(block) for _, block in probabilities.blocks(members())]
    assert sizes == [7, 7, 6]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (members().astype(object), "python objects"),
        (members().astype(complex), "complex"),
        (np.zeros((5, 2), dtype=[("a", float), ("b", float)]), "structured"),
        (members().astype(str), "strings"),
        (members().astype(bytes), "strings"),
        (np.zeros((5, 2), dtype="M8[s]"), "dates"),
        (np.ma.masked_array(members()), "masked"),
        ([np.ma.masked_array(members()[:, 0])], "masked"),
        (None, "None"),
        ("probs.npy", "probs.npy"),
        ({"a": members()}, "dict"),
        ((row for row in members()), "generator"),
        ([np.zeros((5, 2)), np.zeros((5, 2), dtype=[("a", float)])], "one type"),
    ],
)
def test_what_holds_no_plain_numbers_is_refused(given: object, word: str) -> None:
    said = message(lambda: check_probs(given))
    assert said.startswith("`probs`")
    assert word in said


def test_sparse_matrices_are_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    assert ".toarray()" in message(lambda: check_probs(sparse.csr_array(members()[:, 0])))
    assert ".toarray()" in message(lambda: check_labels(sparse.eye(3), n_samples=3, n_classes=3))


# --- arrays of other packages ---------------------------------------------------------------------


class FakeTensor:
    """A tensor as torch has it: in a graph, on a device, and perhaps in bfloat16."""

    def __init__(
        self, values: np.ndarray, dtype: str = "torch.float32", detached: bool = False
    ) -> None:
        self.values, self.dtype, self.detached, self.shape = values, dtype, detached, values.shape
        self.on_cpu = False
        self.layout = "torch.strided"

    def detach(self) -> FakeTensor:
        return FakeTensor(self.values, self.dtype, detached=True)

    def cpu(self) -> FakeTensor:
        self.on_cpu = self.detached
        return self

    def float(self) -> FakeTensor:
        new = FakeTensor(self.values, "torch.float32", self.detached)
        new.on_cpu = self.on_cpu
        return new

    def numpy(self) -> np.ndarray:
        if not self.on_cpu or "bfloat16" in self.dtype:
            raise TypeError("can't convert")
        return self.values

    def __getitem__(self, index: object) -> FakeTensor:
        return FakeTensor(self.values[index], self.dtype)  # type: ignore[call-overload]


class FakeFrame:
    """A data frame: `get` wants a key, `to_numpy` does not."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def get(self, key: str) -> None: ...

    def to_numpy(self) -> np.ndarray:
        return self.values


class FakeCupy:
    """An array on a device, which refuses to be converted behind one's back."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def get(self) -> np.ndarray:
        return self.values

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class FakeJax:
    """An array that speaks `__array__`."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.values


class FakeDlpack:
    """An array that speaks nothing but dlpack."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def __dlpack__(self, **options: object) -> object:
        return self.values.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> object:
        return self.values.__dlpack_device__()


FOREIGN = [FakeTensor, FakeFrame, FakeCupy, FakeJax, FakeDlpack]


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_arrays_are_accepted_without_a_copy(kind: Callable[[np.ndarray], Any]) -> None:
    given = members()
    got = check_probs(kind(given)).probs
    np.testing.assert_array_equal(got, given)
    assert np.shares_memory(got, given)


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_list_of_foreign_members_is_accepted(kind: Callable[[np.ndarray], Any]) -> None:
    given = members()
    got = check_probs([kind(given[:, m].copy()) for m in range(4)]).probs
    np.testing.assert_array_equal(got, given)


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_labels_are_accepted(kind: Callable[[np.ndarray], Any]) -> None:
    assert labels_of(kind(np.array([0, 2, 1, 1]))) == [0, 2, 1, 1]


def test_bfloat16_is_judged_by_its_own_precision() -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(10), size=(50, 3)).astype(np.float32)
    coarse = (probs.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.abs(coarse.sum(-1) - 1).max() > 1e-3
    got = check_probs(FakeTensor(coarse, "torch.bfloat16"))
    np.testing.assert_array_equal(got.probs, coarse)
    with pytest.raises(InvalidInputError):
        check_probs(coarse)


def test_the_coarsest_member_sets_the_precision_of_a_list() -> None:
    fine = np.full((2, 3), 1 / 3)
    coarse = fine.astype(np.float16)
    assert np.abs(coarse.astype(float).sum(-1) - 1).max() > 2e-6
    np.testing.assert_array_equal(check_probs([fine, coarse]).probs[:, 1], coarse)


def test_sparse_tensors_are_refused() -> None:
    tensor = FakeTensor(members())
    tensor.layout = "torch.sparse_coo"
    assert ".to_dense()" in message(lambda: check_probs(tensor))


def test_a_failure_inside_a_foreign_package_is_told_with_its_reason() -> None:
    class Broken:
        shape = (2, 2)

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise RuntimeError("spans several hosts")

    said = message(lambda: check_probs(Broken()))
    assert "Broken" in said
    assert "spans several hosts" in said


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_torch_tensors_in_a_graph_are_accepted(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(members(), requires_grad=True).to(getattr(torch, dtype))
    np.testing.assert_array_equal(check_probs(tensor).probs, members())
    np.testing.assert_array_equal(check_probs(list(tensor.unbind(1))).probs, members())
    assert labels_of(torch.tensor([0, 1, 2, 0])) == [0, 1, 2, 0]


@pytest.mark.deep
def test_torch_softmax_in_half_precision_is_accepted() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.randn(100, 3, 10, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.bfloat16, torch.float16):
        check_probs(logits.to(dtype).softmax(-1))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_sparse_and_meta_tensors_of_torch_are_refused() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(members()[:, 0])
    for sparse in (tensor.to_sparse(), tensor.to_sparse_csr()):
        assert ".to_dense()" in message(lambda sparse=sparse: check_probs(sparse))
    assert "`probs`" in message(lambda: check_probs(tensor.to("meta")))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_jax_arrays_are_accepted(dtype: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    given = jnp.asarray(members(), dtype=dtype)
    np.testing.assert_array_equal(check_probs(given).probs, members())
    assert labels_of(jnp.asarray([0, 1, 2, 0])) == [0, 1, 2, 0]


def test_jax_bfloat16_is_judged_by_its_own_precision() -> None:
    jax = pytest.importorskip("jax")
    logits = jax.random.normal(jax.random.key(0), (100, 3, 10), dtype="bfloat16")
    check_probs(jax.nn.softmax(logits))


def test_pandas_objects_are_accepted() -> None:
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(members()[:, m], columns=list("abc")) for m in range(4)]
    np.testing.assert_array_equal(check_probs(frames).probs, members())
    assert labels_of(pd.Series([0, 1, 2, 0])) == [0, 1, 2, 0]
    names = pd.Series(["a", "c", "b", "a"])
    for series in (names, names.astype("category"), names.astype("string")):
        assert labels_of(series, classes=frames[0].columns) == [0, 2, 1, 0]
        assert "`classes`" in message(lambda series=series: labels_of(series))
    assert labels_of(pd.get_dummies(names)) == [0, 2, 1, 0]


def test_polars_objects_are_accepted() -> None:
    pl = pytest.importorskip("polars")
    frames = [pl.DataFrame(members()[:, m]) for m in range(4)]
    np.testing.assert_array_equal(check_probs(frames).probs, members())
    assert labels_of(pl.Series([0, 1, 2, 0])) == [0, 1, 2, 0]
    classes = pl.Series(["a", "b", "c"])
    assert labels_of(pl.Series(["a", "c", "b", "a"]), classes=classes) == [0, 2, 1, 0]


def test_xarray_objects_are_accepted() -> None:
    xr = pytest.importorskip("xarray")
    np.testing.assert_array_equal(check_probs(xr.DataArray(members())).probs, members())


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u8", ">i4", "f2", "f4", "f8"])
def test_numbers_of_any_width_are_labels(dtype: str) -> None:
    given = np.array([0, 2, 1, 2], dtype=dtype)
    before = given.copy()
    got = check_labels(given, n_samples=4, n_classes=3)
    assert got.dtype == np.int32
    assert got.tolist() == [0, 2, 1, 2]
    assert not np.shares_memory(got, given)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize(
    "given",
    [
        [0, 2, 1, 2],
        (0, 2, 1, 2),
        [0.0, 2.0, 1.0, 2.0],
        np.array([[0], [2], [1], [2]]),
        np.eye(3)[[0, 2, 1, 2]],
        np.eye(3, dtype=bool)[[0, 2, 1, 2]],
        np.eye(3, dtype=int)[[0, 2, 1, 2]].tolist(),
        np.array([2, 1, 2, 0])[::-1],
    ],
)
def test_every_form_of_label_is_understood(given: object) -> None:
    assert labels_of(given) == [0, 2, 1, 2]


def test_a_range_and_booleans_are_labels() -> None:
    assert labels_of(range(3), n=3) == [0, 1, 2]
    assert labels_of([True, False, True], n=3, k=2) == [1, 0, 1]
    assert labels_of(np.array([[True], [False]]), n=2, k=2) == [1, 0]


def test_a_class_may_be_absent() -> None:
    assert labels_of([1, 1, 1, 1], k=5) == [1, 1, 1, 1]


@settings(deadline=None)
@given(st.data())
def test_all_forms_of_the_same_labels_agree(data: st.DataObject) -> None:
    k = data.draw(st.integers(2, 12))
    positions = data.draw(st.lists(st.integers(0, k - 1), min_size=1, max_size=30))
    n, array = len(positions), np.array(positions)
    names = data.draw(st.lists(st.text(), min_size=k, max_size=k, unique=True))
    numbers = data.draw(st.lists(st.integers(), min_size=k, max_size=k, unique=True))
    plain = [positions, array, array.astype(float), array[:, None], np.eye(k)[array]]
    for form in plain:
        assert labels_of(form, n, k) == positions
        assert labels_of(form, n, k, classes=names) == positions
    assert labels_of([names[i] for i in positions], n, k, classes=names) == positions
    assert labels_of([numbers[i] for i in positions], n, k, classes=numbers) == positions


@pytest.mark.parametrize("names", [["cat", "dog", "eel"], np.array(["cat", "dog", "eel"])])
@pytest.mark.parametrize("kind", [list, np.array, lambda a: np.array(a, dtype=object)])
def test_names_are_looked_up_in_classes(names: Any, kind: Callable[[Any], Any]) -> None:
    assert labels_of(kind(["eel", "cat", "cat", "dog"]), classes=names) == [2, 0, 0, 1]


def test_integers_beside_named_classes_are_positions() -> None:
    assert labels_of([2, 0, 0, 1], classes=["cat", "dog", "eel"]) == [2, 0, 0, 1]


def test_integers_beside_integer_classes_are_names() -> None:
    assert labels_of([1, 3, 2, 1], classes=[3, 2, 1]) == [2, 0, 1, 2]
    assert labels_of(np.array([1.0, 3, 2, 1]), classes=np.array([3, 2, 1])) == [2, 0, 1, 2]


def test_integers_that_only_doubles_could_hold_together_stay_what_they_are() -> None:
    huge = 2**63 + 1
    assert labels_of([0, huge], 2, 2, classes=[0, huge]) == [0, 1]
    with pytest.raises(InvalidInputError, match="`labels` must be among `classes`"):
        labels_of([0, huge - 1], 2, 2, classes=[0, huge])
    assert labels_of([0, 1.0], 2, 2) == [0, 1]


def test_positions_beside_classes_named_by_other_numbers_are_told_so() -> None:
    hint = "If labels are positions 0, 1, ..., leave `classes` out"
    for labels, told in ([0, 2, 1], True), ([1, 3, 4], False), (["a", "b", "b"], False):
        with pytest.raises(InvalidInputError, match="mind type and spelling") as caught:
            check_labels(labels, n_samples=3, n_classes=3, classes=[1, 2, 3])
        assert (hint in str(caught.value)) is told


def test_one_hot_rows_are_positions_whatever_the_classes_are_called() -> None:
    assert labels_of(np.eye(3)[[2, 0, 0, 1]], classes=[3, 2, 1]) == [2, 0, 0, 1]


def test_any_hashable_can_name_a_class_and_none_is_converted() -> None:
    classes = [("a", 1), "1", 1]
    assert labels_of([1, "1", ("a", 1), 1], classes=classes) == [2, 1, 0, 2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["a", "b", "a", "b"], ["strings", "`classes`"]),
        (np.array(["a", "b", "a", "b"]), ["strings", "`classes`"]),
        (np.array(["a", "b", "a", "b"], dtype=object), ["strings", "`classes`"]),
        (np.array([b"a", b"b", b"a", b"b"]), ["strings", "`classes`"]),
        ([1, 2, 3, 1], ["1-based", "`labels - 1`"]),
        ([0, -100, 2, -100], ["2 times -100", "ignore index"]),
        ([0, 1, -1, 2], ["-1 at index 2"]),
        ([0, 1, 7, 9], ["7 at index 2", "2 such", "from 0 to 2"]),
        ([2, 2, 3, 3], ["3 at index 2", "`labels - 1`"]),
        ([0, 1, 0.5, 2], ["0.5 at index 2", "whole numbers"]),
        ([0, 1, float("nan"), 2], ["nan at index 2", "whole numbers"]),
        ([0, 1, 2], ["(3,)", "(4, n_members, 3)"]),
        (np.zeros((1, 4)), ["(1, 4)", "np.ravel"]),
        (np.zeros((4, 2)), ["(4, 2)", "(4, 3) if one-hot"]),
        (np.zeros((4, 3)), ["one-hot", "row 0"]),
        (np.full((4, 3), 1 / 3), ["one-hot", "argmax"]),
        (np.array([[1, 0, 0], [0, 1, 1], [1, 0, 0], [1, 0, 0]]), ["one-hot", "row 1"]),
        (np.zeros((4, 3, 2)), ["(4, 3, 2)"]),
        (np.array(2), ["()"]),
        (np.array([0, 1, 2, 0], dtype=object), ["python objects"]),
        (np.array([0, 1, 2, 0], dtype=complex), ["complex"]),
        (np.zeros(4, dtype=[("a", int)]), ["structured"]),
        (np.ma.masked_array([0, 1, 2, 0]), ["masked"]),
        ([0, 1, None, 2], ["python objects"]),
        ([0, 1, [2], 2], ["python objects"]),
        ("0120", ["'0120'"]),
        (None, ["None"]),
    ],
)
def test_bad_labels_are_refused_with_the_reason(given: object, words: list[str]) -> None:
    said = message(lambda: labels_of(given))
    assert said.startswith("`labels`")
    for word in words:
        assert word in said


def test_plus_and_minus_one_are_recognised() -> None:
    assert "(labels + 1) // 2" in message(lambda: labels_of([-1, 1, 1, -1], k=2))


@pytest.mark.parametrize("unknown", ["bird", 7, None, ["cat"], float("nan")])
def test_an_unknown_name_is_refused_with_its_place(unknown: object) -> None:
    said = message(lambda: labels_of(["cat", "dog", unknown, "eel"], classes=["cat", "dog", "eel"]))
    assert "at index 2 (1 unknown in all)" in said
    assert "'eel'" in said


@pytest.mark.parametrize(
    ("classes", "word"),
    [
        (["a", "b"], "got 2"),
        (["a", "b", "a"], "'a' twice"),
        ([1, 2, 1.0], "1 twice"),
        (["a", "b", ["c"]], "list"),
        ("abc", "'abc'"),
        ({"a", "b", "c"}, "order"),
        (3, "3"),
        (np.array("a"), "got 1"),
    ],
)
def test_bad_classes_are_refused(classes: object, word: str) -> None:
    said = message(lambda: check_classes(classes, 3))
    assert said.startswith("`classes` must be a sequence of 3 distinct class names")
    assert word in said


def test_classes_come_back_as_a_tuple_of_python_objects() -> None:
    assert check_classes(None, 3) is None
    got = check_classes(np.array([3, 5]), 2)
    assert got == (3, 5)
    assert got is not None
    assert all(type(name) is int for name in got)


# --- predictions and labels together --------------------------------------------------------------


def test_a_fitting_pair_passes() -> None:
    given, labels = members(), truth()
    predictions, got = check_set_and_labels(given, labels)
    assert np.shares_memory(predictions.probs, given)
    np.testing.assert_array_equal(got, labels)


def test_options_reach_both() -> None:
    logits, names = np.log(members() + 1), np.array(["x", "y", "z"])
    predictions, got = check_set_and_labels(logits, names[truth()], classes=names, from_logits=True)
    np.testing.assert_array_equal(predictions.probs, check_probs(logits, from_logits=True).probs)
    np.testing.assert_array_equal(got, truth())


@pytest.mark.parametrize(
    "labels",
    [truth(), truth().astype(float), np.eye(3)[truth()], truth()[:, None], truth().astype(str)],
)
@pytest.mark.parametrize("two_axes", [False, True])
def test_swapped_arguments_are_recognised(labels: np.ndarray, two_axes: bool) -> None:
    probs = members()[:, 0] if two_axes else members()
    said = message(lambda: check_set_and_labels(labels, probs))
    assert "swapped" in said
    assert str(labels.shape) in said
    assert str(probs.shape) in said


def test_a_swapped_list_of_members_is_recognised() -> None:
    listed = [members()[:, m] for m in range(4)]
    assert "swapped" in message(lambda: check_set_and_labels(truth(), listed))


def test_binary_probabilities_beside_one_hot_labels_do_not_look_swapped() -> None:
    said = message(lambda: check_set_and_labels(np.full(20, 0.3), np.eye(3)[truth()]))
    assert "swapped" not in said
    assert "from_binary" in said


def test_hard_predictions_beside_one_hot_labels_do_not_look_swapped() -> None:
    _, labels = check_set_and_labels(np.eye(3)[truth(seed=5)], np.eye(3)[truth()])
    np.testing.assert_array_equal(labels, truth())


def test_as_many_labels_as_classes_are_no_reason_to_move_the_classes() -> None:
    said = message(lambda: check_set_and_labels(members(), [0, 1, 2]))
    assert "same rows" in said
    assert "moveaxis" not in said


@pytest.mark.parametrize(
    ("order", "repair"),
    [
        ((1, 0, 2), "np.moveaxis(probs, 0, 1)"),  # (M, N, K)
        ((0, 2, 1), "np.moveaxis(probs, 1, 2)"),  # (N, K, M)
        ((2, 0, 1), "np.moveaxis(probs, 0, 2)"),  # (K, N, M)
        ((1, 2, 0), "np.moveaxis(probs, 2, 0)"),  # (M, K, N)
        ((2, 1, 0), "np.transpose(probs, (2, 1, 0))"),  # (K, M, N)
    ],
)
def test_a_wrong_order_of_axes_is_reported_with_the_order_that_fits(
    order: tuple[int, int, int], repair: str
) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 4)).transpose(order)
    said = message(lambda: check_set_and_labels(probs, truth()))
    assert f"`{repair}`" in said
    assert str(probs.shape) in said
    mended = eval(repair, {"np": np, "probs": probs})  # the repair must work as it is written
    assert mended.shape == (20, 4, 3)
    check_set_and_labels(mended, truth())


def test_one_classifier_with_classes_first_is_reported() -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=20).T
    said = message(lambda: check_set_and_labels(probs, truth()))
    assert "`np.moveaxis(probs, 0, 1)`" in said
    assert "(3, 20)" in said
    assert "(20,)" in said


def test_logits_with_members_first_are_reported_by_their_shape() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 20, 3))
    said = message(lambda: check_set_and_labels(logits, truth(), from_logits=True))
    assert "`np.moveaxis(probs, 0, 1)`" in said


def test_the_wrong_axis_is_found_without_labels_too() -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 4)).transpose(0, 2, 1)
    assert "`np.moveaxis(probs, 1, 2)`" in message(lambda: check_probs(probs))


def test_a_fitting_array_is_never_suspected_of_a_wrong_order() -> None:
    uniform = np.full((4, 4, 4), 0.25)  # every axis sums to one, every axis fits the labels
    predictions, truth = check_set_and_labels(uniform, [0, 1, 2, 3])
    np.testing.assert_array_equal(predictions.probs, uniform)
    assert truth.tolist() == [0, 1, 2, 3]


def test_a_list_of_samples_is_reported_with_the_way_to_stack_it() -> None:
    said = message(lambda: check_set_and_labels(list(members()), truth()))
    assert "`np.stack(probs)`" in said


@pytest.mark.parametrize("n", [19, 21, 1])
def test_a_length_that_fits_no_axis_is_reported_with_both_shapes(n: int) -> None:
    said = message(lambda: check_set_and_labels(members(), np.zeros(n, dtype=int)))
    assert "(20, 4, 3)" in said
    assert f"({n},)" in said
    assert "moveaxis" not in said


def test_one_measure_takes_one_classifier() -> None:
    given = members()[:, 0]
    probs, labels = check_single(given, truth())
    assert probs.shape == (20, 3)
    assert np.shares_memory(probs, given)
    assert not probs.flags.writeable
    np.testing.assert_array_equal(labels, truth())


@pytest.mark.parametrize("probs", [members(), members()[:, :1], [members()[:, 0]] * 2])
def test_one_measure_sends_a_set_to_the_test(probs: object) -> None:
    said = message(lambda: check_single(probs, truth()))
    assert "calibration_test" in said
    assert "probs[:, 0, :]" in said


def test_one_measure_knows_the_same_faults() -> None:
    assert "swapped" in message(lambda: check_single(truth(), members()[:, 0]))
    assert "(19,)" in message(lambda: check_single(members()[:, 0], truth()[1:]))
    assert "from_logits" not in message(lambda: check_single(members()[:, 0] * 1.01, truth()))


def test_one_measure_keeps_the_precision_of_bfloat16() -> None:
    probs = np.full((4, 3), 0.33203125)
    check_single(FakeTensor(probs.astype(np.float32), "torch.bfloat16"), [0, 1, 2, 0])
    with pytest.raises(InvalidInputError):
        check_single(probs, [0, 1, 2, 0])


@pytest.mark.parametrize("option", ["classes", "from_logits", "from_log"])
def test_what_a_set_has_settled_cannot_be_changed_beside_it(option: str) -> None:
    value = ["x", "y"] if option == "classes" else True
    said = message(lambda: check_settled(("a", "b"), 2, **{option: value}))  # type: ignore[arg-type]
    assert said.startswith(f"`{option}` is settled")
    check_settled(("a", "b"), 2, classes=np.array(["a", "b"]))


# --- everything that is not data ------------------------------------------------------------------


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), 3.0, np.float32(3), np.array(3)])
def test_an_integer_in_any_guise_is_accepted(value: object) -> None:
    got = check_integer(value, "n_bins", 1)
    assert type(got) is int
    assert got == 3


@pytest.mark.parametrize(
    "value", [0, -1, True, np.True_, 2.5, math.nan, math.inf, "3", None, [3], 3 + 0j]
)
def test_what_is_no_count_is_refused(value: object) -> None:
    assert "`n_bins` must be an integer of at least 1" in message(
        lambda: check_integer(value, "n_bins", 1)
    )


def test_the_minimum_itself_is_accepted() -> None:
    assert check_integer(2, "n_samples", 2) == 2


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, math.nan, math.inf, True, "0.05", None, [0.5]])
def test_a_level_outside_the_open_interval_is_refused(value: object) -> None:
    assert "`alpha` must lie strictly between 0 and 1" in message(
        lambda: check_fraction(value, "alpha")
    )


def test_a_level_inside_is_accepted() -> None:
    assert check_fraction(np.float32(0.5), "alpha") == 0.5
    assert type(check_fraction(np.float64(0.05), "alpha")) is float


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "1", None, 10**400])
def test_what_is_not_positive_is_refused(value: object) -> None:
    assert "finite number greater than 0" in message(lambda: check_positive(value, "bandwidth"))


def test_a_positive_number_is_accepted() -> None:
    assert check_positive(2, "bandwidth") == 2.0


def test_weights_are_copied_into_float64() -> None:
    given = np.array([0.25, 0.75], dtype=np.float32)
    got = check_weights(given, 2)
    assert got.dtype == np.float64
    assert not np.shares_memory(got, given)
    np.testing.assert_array_equal(check_weights([0, 1], 2), [0, 1])
    check_weights([0.5, 0.5 + 9e-9], 2)


@pytest.mark.parametrize(
    ("weights", "word"),
    [
        ([0.5, 0.5, 0], "shape (3,)"),
        ([[0.5, 0.5]], "shape (1, 2)"),
        ([1.5, -0.5], "-0.5 at index 1"),
        ([np.nan, 1], "nan at index 0"),
        ([np.inf, 0], "inf at index 0"),
        ([0.5, 0.5 + 2e-8], "a sum of 1.00000002"),
        ([0, 0], "a sum of 0"),
        (["a", "b"], "strings"),
    ],
)
def test_bad_weights_are_refused(weights: object, word: str) -> None:
    said = message(lambda: check_weights(weights, 2))
    assert said.startswith("`weights`")
    assert word in said


def test_fresh_seeds_differ() -> None:
    first, second = check_seed(None), check_seed(None)
    assert first != second
    assert 0 <= first < 2**128


@pytest.mark.parametrize("seed", [0, 7, 2**200, np.int64(7), np.uint8(3)])
def test_an_integer_seed_is_kept_however_large(seed: int) -> None:
    got = check_seed(seed)
    assert type(got) is int
    assert got == seed


def test_a_generator_is_asked_once_for_128_bits() -> None:
    words = np.random.default_rng(5).integers(0, 2**32, size=4, dtype=np.uint32)
    expected = sum(int(word) * 2 ** (32 * i) for i, word in enumerate(words))
    generator = np.random.default_rng(5)
    assert check_seed(generator) == expected
    assert check_seed(generator) != expected


@pytest.mark.parametrize(
    "rng", [-1, 1.0, "1", True, np.random.RandomState(0), np.random.SeedSequence(0), np.random]
)
def test_another_source_of_randomness_is_refused_with_what_is_accepted(rng: object) -> None:
    said = message(lambda: check_seed(rng))
    assert "None, a `numpy.random.Generator` or a non-negative integer" in said


# --- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_all_cores_are_no_more_than_the_environment_allows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(other, raising=False)
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert check_jobs(-1) == ours
    monkeypatch.setenv(name, "1")
    assert check_jobs(-1) == 1
    for nonsense in ("", "0", "many", "-2"):
        monkeypatch.setenv(name, nonsense)
        assert check_jobs(-1) == ours
    monkeypatch.setenv(name, "1")
    assert check_jobs(7) == 7  # who names a number gets it


def test_workers_of_joblib_do_not_take_all_cores_each() -> None:
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(check_jobs)(-1) for _ in range(2))
    assert sum(found) <= max(2, os.cpu_count())


@pytest.mark.parametrize("seed", [10**5000, -(10**5000)], ids=["large", "negative"])
def test_a_seed_that_nobody_could_write_down_is_refused(seed):
    with pytest.raises(InvalidInputError, match=r"up to 4096 bits.* an integer of 16610 bits"):
        check_seed(seed)
    assert check_seed(2**4096 - 1) == 2**4096 - 1


def test_a_count_that_nobody_could_write_down_is_refused():
    with pytest.raises(InvalidInputError, match="an integer of 16610 bits"):
        check_integer(-(10**5000), "n_bins", 1)


@pytest.mark.parametrize("jobs", [0, -2, 1.5, "2", None, True])
def test_jobs_are_a_count_or_all(jobs):
    with pytest.raises(InvalidInputError, match="at least 1, or -1 for all cores"):
        check_jobs(jobs)


def test_zeros_are_no_votes_to_be_divided():
    with pytest.raises(InvalidInputError, match="All values are 0") as refused:
        ClassifierSet(np.zeros((10, 2, 3)))
    assert "divide" not in str(refused.value)


def test_a_label_that_cannot_be_looked_up_is_unknown():
    labels = np.empty(2, dtype=object)
    labels[:] = [("a", ["b"]), "cat"]
    with pytest.raises(InvalidInputError, match="must be among `classes`"):
        ClassifierSet(np.full((2, 1, 2), 0.5), classes=["cat", "dog"]).labels(labels)
