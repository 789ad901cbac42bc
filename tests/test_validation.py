"""The door: what is accepted, what is mended, what is refused, and in which words."""

import ast
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import hullcal
from hullcal._validation import (
    InvalidInputError,
    check_classes,
    check_flag,
    check_fraction,
    check_integer,
    check_jobs,
    check_labels,
    check_positive,
    check_probs,
    check_seed,
    check_set_and_labels,
    check_single,
    check_weights,
    predictions,
)

EPS = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
LIMIT = {"float16": 1e-3, "float32": 1e-4, "float64": 1e-4}


def members(n=20, m=4, k=3, seed=0):
    """Rows in sixteenths, so that every sum is exact in every floating-point type."""
    return np.random.default_rng(seed).multinomial(16, np.full(k, 1 / k), size=(n, m)) / 16


def truth(n=20, k=3, seed=1):
    return np.random.default_rng(seed).integers(0, k, n)


def smooth(*shape):
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def message(call, *arguments, **options):
    """Give the message of the refusal, which must be there and have its four parts."""
    with pytest.raises(InvalidInputError) as caught:
        call(*arguments, **options)
    said = str(caught.value)
    assert re.fullmatch(r"(?s)`[^`]+` .+; got .+\. .+[.?]", said), said
    return said


def labels_of(labels, n=4, k=3, classes=None):
    return check_labels(labels, n_samples=n, n_classes=k, classes=classes).tolist()


# --- messages -------------------------------------------------------------------------------------


def words(node):
    """The words of a message in the source, with braces for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(words, node.values))
    return words(node.left) + words(node.right) if isinstance(node, ast.BinOp) else "{...}"


def says_what_to_do(text):
    return "got " not in text or bool(re.search(r"(?s)got .+[.?)] +\S.+[.?}]$", text))


def test_every_error_that_is_written_out_says_what_to_do():
    assert not says_what_to_do("`alpha` must be below 1; got {...}.")
    root = Path(hullcal.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InvalidInputError":
                assert says_what_to_do(words(node.args[0])), f"{path}:{node.lineno}"


# --- shapes ---------------------------------------------------------------------------------------


def test_every_form_of_a_set_is_samples_members_classes():
    probs = members()
    first, *others = (probs[:, m] for m in range(4))
    mixed = [first.tolist(), *others]
    for form in (probs, probs.tolist(), [first, *others], (first, *others), mixed):
        np.testing.assert_array_equal(check_probs(form).probs, probs)
    for one in (probs[:, 0], list(probs[:, 0])):
        np.testing.assert_array_equal(check_probs(one).probs, probs[:, :1])
    assert check_probs([[[0.5, 0.5]]]).probs.shape == (1, 1, 2)
    for dtype in ("int8", "uint8", "bool"):
        assert check_probs(np.eye(3, dtype=dtype)).probs.tolist() == np.eye(3)[:, None].tolist()


EMPTY = [(0, 3, 2), (5, 0, 2), (5, 3, 0)]


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        *(((), "shape ()"), ((6,), "from_binary"), ((2, 2, 2, 2), ".reshape(")),
        *((shape, f"empty array of shape {shape}") for shape in EMPTY),
        *((shape, "at least 2 classes") for shape in [(5, 1), (5, 3, 1)]),
    ],
)
def test_other_shapes_are_refused(shape, word):
    said = message(check_probs, np.full(shape, 0.5))
    assert "(n_samples, n_members, n_classes)" in said
    assert word in said


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_with_their_number_and_the_first_index(bad, monkeypatch):
    probs = members().astype(np.float32)
    probs[[13, 19], 3, 2] = bad
    for block_bytes in (2**20, 3 * 4 * 3 * 4):  # the index counts across blocks
        monkeypatch.setattr(predictions, "BLOCK_BYTES", block_bytes)
        for from_logits in (False, True):
            said = message(check_probs, probs, from_logits=from_logits)
            assert "2 NaN or infinite values" in said
            assert "(n, m, k) = (13, 3, 2)" in said


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.random.default_rng(0).normal(size=(20, 4, 3)), ["[0, 1]", "from_logits=True"]),
        (np.full((20, 4, 3), 0.7), ["80 of 80 rows", "(n, m) = (0, 0)", "from_logits=True"]),
        (np.log(members() + 0.1), ["[0, 1]", "from_log=True"]),
        ([[0.0, -np.inf]], ["from_log=True"]),
        (np.full((2, 3), -7.0), ["from_logits=True"]),
        (100 * members(), ["percentages"]),
        (np.full((5, 3), 2), ["predict_proba"]),
        (members() * 1.000125, ["normalize=True", "with sum 1.0001250000000002. "]),
        ([[0.5, 0.5], [0.6, 0.5], [0.7, 0.5]], ["2 of 3 rows", "(n, m) = (2, 0) with sum 1.2"]),
        ([[1e-5, 1.000002]], ["values from 1e-05 to 1.000002. "]),
        *(
            ([row], ["must lie in [0, 1]", "np.clip(probs, 0, 1)"])
            for row in [(1 + 3e-6, -3e-6), (-2e-6, 1), (0, 1 + 2e-6)]
        ),
    ],
)
def test_what_is_not_on_the_simplex_is_refused_with_what_it_may_be(given, expected):
    said = message(check_probs, given)
    assert [word for word in expected if word not in said] == [], said


def test_values_outside_by_rounding_are_clipped_and_it_is_noted():
    given = np.array([[1 + 5e-7, -5e-7], [0.5, 0.5]])
    before = given.copy()
    got = check_probs(given)
    np.testing.assert_array_equal(got.probs[:, 0, :], [[1, 0], [0.5, 0.5]])
    (note,) = got.notes
    assert str(note) == "2 of the probabilities were outside [0, 1] by at most 1e-06; clipped"
    np.testing.assert_array_equal(given, before)


# --- the row-sum rule -----------------------------------------------------------------------------


def test_half_precision_that_is_left_alone_is_mentioned_and_excuses_not_any_sum():
    (note,) = check_probs(np.array([[0.25] * 4, [0.26, *[0.25] * 3]], dtype=np.float16)).notes
    assert "left as they came, within float16 rounding" in str(note)
    halves = np.zeros((2, 3, 2000), dtype=np.float16)
    halves[..., 0] = 0.5
    assert "must sum to 1" in message(check_probs, halves)


@settings(deadline=None)
@given(
    k=st.integers(2, 40),
    dtype=st.sampled_from(["float32", "float64"]),
    exponent=st.floats(-17, -1),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_row_sum_rule_follows_its_definition(k, dtype, exponent, seed):
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


@pytest.mark.parametrize("layout", ["Fortran order", "negative strides", "transposed", "blocks"])
def test_layout_and_blocks_never_change_what_is_renormalised(layout, monkeypatch):
    # Sums this close to the bound fall on either side of it, depending on the order of addition.
    rng = np.random.default_rng(0)
    bound = 4 * 40 * EPS["float64"]
    probs = smooth(500, 2, 40) * (1 + bound * rng.uniform(0.98, 1.02, size=(500, 2, 1)))
    whole = check_probs(probs)
    monkeypatch.setattr(predictions, "BLOCK_BYTES", 1 if layout == "blocks" else 2**23)
    other = check_probs(LAYOUTS.get(layout, np.copy)(probs))
    assert whole.notes[0].code == "renormalised"
    assert other.notes == whole.notes
    np.testing.assert_array_equal(other.probs, whole.probs)


def test_rows_are_divided_by_their_sums_on_request():
    rounded, percentages = members().round(1) + np.array([0.1, 0, 0]), 100 * members()
    votes = np.random.default_rng(0).poisson(9, (20, 4, 3))
    for counts in (rounded, percentages, votes):
        assert "`normalize=True`" in message(check_probs, counts)
        got = check_probs(counts, normalize=True)
        np.testing.assert_allclose(
            got.probs, counts / counts.sum(axis=2, keepdims=True), rtol=1e-15
        )
        assert got.notes[0].code == "renormalised"
    np.testing.assert_array_equal(check_probs(members(), normalize=True).probs, members())


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (
            [[0.5, 0.5], [0.0, 0.0]],
            "1 of 2 rows with another sum (shape (2, 2)), the worst at (n, m) = (1, 0)",
        ),
        ([[1e308, 1e308]], "with sum inf"),
        ([[1.0, -1.0]], "[0, 1]"),
        ([[1.0, np.nan]], "finite"),
        (smooth(20, 4, 3).transpose(0, 2, 1), "`np.transpose(probs, (0, 2, 1))`"),
    ],
)
def test_what_has_no_sum_to_divide_by_is_refused(given, word):
    assert word in message(check_probs, given, normalize=True)
    for other in ("from_logits", "from_log"):
        said = message(check_probs, given, normalize=True, **{other: True})
        assert "`normalize` exclude each other" in said


# --- logits and logarithms ------------------------------------------------------------------------


def test_from_logits_is_the_softmax_in_float64():
    logits = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
    exact = np.exp(logits.astype(float))
    got = check_probs(logits, from_logits=True)
    assert got.probs.dtype == np.float64
    np.testing.assert_allclose(got.probs, exact / exact.sum(-1, keepdims=True), rtol=1e-14)
    assert got.notes == ()
    assert check_probs(members(), from_logits=True).notes[0].code == "needless_logits"
    extreme = check_probs([[1e308, -1e308, 1e308]], from_logits=True).probs
    np.testing.assert_array_equal(extreme[0, 0], [0.5, 0, 0.5])


def test_from_log_is_the_exponential_in_float64_and_minus_infinity_is_zero():
    logs = np.log(smooth(5, 3, 4))
    np.testing.assert_array_equal(check_probs(logs, from_log=True).probs, np.exp(logs))
    got = check_probs([[0.0, -np.inf]], from_log=True).probs
    np.testing.assert_array_equal(got, [[[1, 0]]])
    assert check_probs(logs + 1e-7, from_log=True).notes[0].code == "renormalised"
    assert check_probs(logs.astype("float32"), from_log=True).notes == ()


@pytest.mark.parametrize(
    ("row", "word"),
    [
        *(([bad, -1.0], "(1, 0, 0)") for bad in (np.nan, np.inf)),
        ([0.5, -1.0], "at most 0 with `from_log=True` (within 1e-06); got values up to 0.5"),
        ([1000.0, -1.0], "got values up to 1000"),  # whose exponential overflows
        ([-3.0, -3.0], "pass `from_logits=True` instead"),
    ],
)
def test_from_log_refuses_what_is_no_logarithm_of_a_probability(row, word):
    assert word in message(check_probs, [[0.0, -np.inf], row], from_log=True)
    assert "`from_log`" in message(check_probs, members(), from_logits=True, from_log=True)
    assert "`from_log` must be True or False" in message(check_probs, members(), from_log="False")


# --- types, layouts and memory --------------------------------------------------------------------


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "negative strides": lambda a: a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
}


def test_a_memory_map_is_read_in_blocks_and_not_copied(tmp_path, monkeypatch):
    np.save(tmp_path / "probs.npy", members())
    given = np.load(tmp_path / "probs.npy", mmap_mode="r")
    monkeypatch.setattr(predictions, "BLOCK_BYTES", 7 * 4 * 3 * 8)
    assert [len(block) for _, block in predictions.blocks(given)] == [7, 7, 6]
    got = check_probs(given).probs
    assert type(got) is np.ndarray
    assert np.shares_memory(got, given)
    np.testing.assert_array_equal(got, members())


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (members().astype(str), "dtype <U"),
        (members().astype(bytes), "dtype |S"),
        (np.zeros((5, 2), dtype="M8[s]"), "dtype datetime64"),
        ([np.ma.masked_array(members()[:, 0])], "masked"),
        (None, "None"),
        ("probs.npy", "probs.npy"),
        ({"a": None}, "as a dict must hold an array"),
        (sparse.csr_array(members()[:, 0]), ".toarray()"),
        ([[0.5, 0.5], [1.0]], "a regular list of numbers"),
        ([members()[:, 0], members(n=7)[:, 0]], "(20, 3), (7, 3)"),
        ([np.zeros((5, 2)), np.zeros((5, 2), dtype=[("a", float)])], "PromotionError"),
    ],
)
def test_what_holds_no_plain_numbers_is_refused(given, word):
    said = message(check_probs, given)
    assert said.startswith("`probs`")
    assert word in said


# --- arrays of other packages ---------------------------------------------------------------------


class Fake:
    def __init__(self, values):
        self.values, self.shape = values, values.shape


class FakeTensor(Fake):
    """A tensor as torch has it: in a graph, on a device, and perhaps in bfloat16."""

    def __init__(self, values, dtype="torch.float32", steps=("detach", "cpu")):
        super().__init__(values)
        self.dtype, self.layout, self.steps = dtype, "torch.strided", steps

    def detach(self):
        return FakeTensor(self.values, self.dtype, self.steps[1:])

    cpu = detach

    def float(self):
        return FakeTensor(self.values, "torch.float32", self.steps)

    def numpy(self):
        if self.steps or "bfloat16" in self.dtype:
            raise TypeError("can't convert")
        return self.values


class FakeCupy(Fake):
    """An array on a device, which refuses to be converted behind one's back."""

    def get(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class FakeJax(Fake):
    """An array that speaks `__array__`."""

    def __array__(self, dtype=None, copy=None):
        return self.values


class FakeDlpack(Fake):
    """An array that speaks nothing but dlpack."""

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [FakeTensor, FakeCupy, FakeJax, FakeDlpack])
def test_foreign_arrays_are_accepted_without_a_copy(kind):
    given = members()
    got = check_probs(kind(given)).probs
    np.testing.assert_array_equal(got, given)
    assert np.shares_memory(got, given)
    listed = check_probs([kind(given[:, m].copy()) for m in range(4)]).probs
    np.testing.assert_array_equal(listed, given)
    assert labels_of(kind(np.array([0, 2, 1, 1]))) == [0, 2, 1, 1]


def test_bfloat16_is_judged_by_its_own_precision():
    probs = smooth(50, 10).astype(np.float32)
    coarse = (probs.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.abs(coarse.sum(-1) - 1).max() > 1e-3
    tensor, labels = FakeTensor(coarse, "torch.bfloat16"), np.zeros(50, int)
    np.testing.assert_array_equal(check_probs(tensor).probs[:, 0], coarse)
    np.testing.assert_array_equal(check_single(tensor, labels)[0], coarse)
    # One coarse member makes a list of members coarse.
    np.testing.assert_array_equal(check_probs([probs, tensor]).probs[:, 1], coarse)
    with pytest.raises(InvalidInputError):
        check_probs(coarse)


def test_what_a_foreign_array_cannot_give_is_reported_with_its_reason():
    class Broken(Fake):
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("spans several hosts")

    assert "RuntimeError: spans several hosts" in message(check_probs, Broken(members()))
    tensor = FakeTensor(members())
    tensor.layout = "torch.sparse_coo"
    assert ".to_dense()" in message(check_probs, tensor)


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_torch_tensors_in_a_graph_are_accepted(dtype):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(members(), requires_grad=True).to(getattr(torch, dtype))
    np.testing.assert_array_equal(check_probs(tensor).probs, members())
    np.testing.assert_array_equal(check_probs(list(tensor.unbind(1))).probs, members())
    assert labels_of(torch.tensor([0, 1, 2, 0])) == [0, 1, 2, 0]
    assert ".to_dense()" in message(check_probs, tensor[:, 0].detach().to_sparse())
    assert "`probs`" in message(check_probs, tensor.to("meta"))


def test_pandas_objects_are_accepted():
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(members()[:, m], columns=list("abc")) for m in range(4)]
    np.testing.assert_array_equal(check_probs(frames).probs, members())
    assert labels_of(pd.Series([0, 1, 2, 0])) == [0, 1, 2, 0]
    names = pd.Series(["a", "c", "b", "a"])
    for series in (names, names.astype("category"), names.astype("string")):
        assert labels_of(series, classes=frames[0].columns) == [0, 2, 1, 0]
        assert "`classes`" in message(labels_of, series)
    assert labels_of(pd.get_dummies(names)) == [0, 2, 1, 0]


def wide_frame(package):
    """Predictions and labels as a table with a column for each member and class, labels in front."""
    names = np.array(["cat", "dog", "owl"])
    columns = {
        f"{m}:{name}": members()[:, i, k]
        for k, name in enumerate(names)
        for i, m in enumerate("abcd")
    }
    return package.DataFrame({"label": names[truth()], **columns})


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_in_wide_form_is_understood_as_the_same_table_in_a_file(package):
    frame = wide_frame(pytest.importorskip(package))
    got = hullcal.ClassifierSet(frame)
    np.testing.assert_array_equal(got.probs, members())
    assert (got.members, got.classes) == (tuple("abcd"), ("cat", "dog", "owl"))
    _, labels = hullcal.ClassifierSet.with_labels(frame, None)
    np.testing.assert_array_equal(labels, truth())
    _, labels = hullcal.ClassifierSet.with_labels(frame, 2 - truth())
    np.testing.assert_array_equal(labels, 2 - truth())
    _, labels = hullcal.ClassifierSet.with_labels(members(), frame["label"], classes=got.classes)
    np.testing.assert_array_equal(labels, truth())
    (part, _), _ = hullcal.split(frame, frame["label"])
    assert part.shape == (10, 4, 3)
    less = frame[[name for name in frame.columns if name != "a:dog"]]
    assert "none for ('a', 'dog')" in message(check_probs, less)


def test_columns_name_the_classes_unless_they_are_their_positions():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(members()[:, 0])
    for columns, classes in {
        (0, 1, 2): None,
        ("0", "1", "2"): None,
        (1, 2, 3): (1, 2, 3),
        ("3", "1", "2"): (3, 1, 2),
        ("p_x", "p_y", "p_z"): ("x", "y", "z"),
        ("x", "y", "z"): ("x", "y", "z"),
    }.items():
        frame = rows.set_axis(list(columns), axis=1)
        for form in (frame, [frame, frame], {"a": frame, "b": frame}):
            got = hullcal.ClassifierSet(form)
            assert got.classes == classes
            np.testing.assert_array_equal(got.probs[:, 0], members()[:, 0])
    assert hullcal.ClassifierSet(frame, classes=[7, 8, 9]).classes == (7, 8, 9)
    assert "follow the columns" in message(hullcal.ClassifierSet, frame, classes=["z", "y", "x"])
    other = rows.set_axis(["y", "x", "z"], axis=1)
    assert "agree in their columns" in message(hullcal.ClassifierSet, [frame, other])


def test_a_dict_of_arrays_names_the_members():
    given = {"first": members()[:, 0], "second": members()[:, 1].tolist()}
    got = hullcal.ClassifierSet(given)
    assert got.members == ("first", "second")
    np.testing.assert_array_equal(got.probs, members()[:, :2])
    assert hullcal.ClassifierSet(given, members=["x", "y"]).members == ("x", "y")
    for wrong in ({}, {"a": members()}, {"a": members()[:, 0, 0], "b": members()[:, 0, 0]}):
        assert "for each member" in message(check_probs, wrong)


# --- labels ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_all_forms_of_the_same_labels_agree(data):
    k = data.draw(st.integers(2, 12))
    positions = data.draw(st.lists(st.integers(0, k - 1), min_size=1, max_size=30))
    n, array = len(positions), np.array(positions)
    names = data.draw(st.lists(st.text(), min_size=k, max_size=k, unique=True))
    numbers = data.draw(st.lists(st.integers(), min_size=k, max_size=k, unique=True))
    one_hot = np.eye(k)[array]
    plain = [positions, tuple(positions), array, array.astype(float), array[:, None], one_hot]
    for form in [*plain, one_hot.astype(bool), one_hot.astype(int).tolist()]:
        assert labels_of(form, n, k) == positions
        assert labels_of(form, n, k, classes=names) == positions
    named = [names[i] for i in positions]
    for form in (named, np.array(named, dtype=object)):
        assert labels_of(form, n, k, classes=names) == positions
    assert labels_of([numbers[i] for i in positions], n, k, classes=numbers) == positions
    assert labels_of(one_hot, n, k, classes=numbers) == positions


def test_labels_beside_classes_are_names_and_none_is_converted():
    assert labels_of([1, 3, 2, 1], classes=[3, 2, 1]) == [2, 0, 1, 2]
    assert labels_of(np.array([1.0, 3, 2, 1]), classes=np.array([3, 2, 1])) == [2, 0, 1, 2]
    assert labels_of([1, "1", ("a", 1), 1], classes=[("a", 1), "1", 1]) == [2, 1, 0, 2]
    huge = 2**63 + 1  # only doubles could hold both
    assert labels_of([0, huge], 2, 2, classes=[0, huge]) == [0, 1]
    assert "among `classes`" in message(labels_of, [0, huge - 1], 2, 2, classes=[0, huge])
    assert labels_of([True, False], 2, 2) == [1, 0]
    assert "(labels + 1) // 2" in message(labels_of, [-1, 1, 1, -1], k=2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "b", "a", "b"], ["strings", "`classes=[...]`"]),
        (np.array([b"a", b"b", b"a", b"b"]), ["strings", "`classes=[...]`"]),
        ([0, -100, 2, -100], ["2 times -100", "ignore index"]),
        ([0, 1, 7, 9], ["7 at index 2", "2 such", "from 0 to 2"]),
        ([2, 2, 3, 3], ["1-based", "`labels - 1`"]),
        ([0, 1, 0.5, 2], ["0.5 at index 2", "whole numbers"]),
        ([0, 1, float("nan"), 2], ["nan at index 2", "whole numbers"]),
        ([0, 1, 2], ["(3,)", "(4, n_members, 3)"]),
        (np.zeros((1, 4)), ["(1, 4)", "np.ravel"]),
        (np.zeros((4, 2)), ["(4, 2)", "(4, 3) if one-hot"]),
        (np.full((4, 3), 1 / 3), ["one-hot", "row 0", "argmax"]),
        (np.array([[1, 0, 0], [0, 1, 1], [1, 0, 0], [1, 0, 0]]), ["one-hot", "row 1"]),
        (np.array(2), ["()"]),
        (np.zeros(4, dtype=[("a", int)]), ["real numbers"]),
        (np.ma.masked_array([0, 1, 2, 0]), ["masked"]),
        ([0, 1, [2], 2], ["dtype object"]),
        ("0120", ["'0120'"]),
        (None, ["None"]),
    ],
)
def test_bad_labels_are_refused_with_the_reason(given, expected):
    said = message(labels_of, given)
    assert said.startswith("`labels`")
    assert [word for word in expected if word not in said] == [], said


@pytest.mark.parametrize("unknown", ["bird", 7, None, ["cat"], ("a", ["b"]), float("nan")])
def test_an_unknown_name_is_refused_with_its_place(unknown):
    said = message(labels_of, ["cat", "dog", unknown, "eel"], classes=["cat", "dog", "eel"])
    assert "at index 2. The classes are ('cat', 'dog', 'eel')" in said
    assert "If labels are positions 0, 1, ..., leave `classes` out" in said


@pytest.mark.parametrize(
    ("classes", "word"),
    [
        (["a", "b"], "got 2"),
        ([1, 2, 1.0], "got 3, 2 of them different"),
        (["a", "b", ["c"]], "['c']"),
        ("abc", "'abc'"),
        ({"a", "b", "c"}, "order"),
        (3, "3"),
        (np.array("abc"), "not a sequence"),
    ],
)
def test_bad_classes_are_refused(classes, word):
    said = message(check_classes, classes, 3)
    assert said.startswith("`classes` must be a sequence of 3 distinct class names")
    assert word in said


# --- predictions and labels together --------------------------------------------------------------


def test_swapped_arguments_are_recognised():
    one_hot = np.eye(3)[truth()]
    for labels in (truth().astype(float), one_hot, truth()[:, None], truth().astype(str)):
        for probs in (members(), members()[:, 0], list(np.moveaxis(members(), 1, 0))):
            said = message(check_set_and_labels, labels, probs)
            assert "swapped" in said
            assert str(labels.shape) in said
    check_set_and_labels(np.eye(3)[truth(seed=5)], one_hot)  # hard ones are not swapped


@pytest.mark.parametrize(
    ("order", "repair"),
    [
        ((0, 2, 1), "np.transpose(probs, (0, 2, 1))"),  # (N, K, M)
        ((2, 0, 1), "np.transpose(probs, (1, 2, 0))"),  # (K, N, M)
        ((1, 2, 0), "np.transpose(probs, (2, 0, 1))"),  # (M, K, N)
        ((2, 1, 0), "np.transpose(probs, (2, 1, 0))"),  # (K, M, N)
        (None, "np.transpose(probs, (1, 0))"),  # (K, N) of one classifier
    ],
)
def test_a_wrong_order_of_axes_is_reported_with_the_order_that_fits(order, repair):
    fitting = smooth(20, 3) if order is None else smooth(20, 4, 3)
    probs = fitting.transpose(order)
    said = message(check_set_and_labels, probs, truth())
    assert f"`{repair}`" in said
    assert str(probs.shape) in said
    mended = eval(repair, {"np": np, "probs": probs})  # the repair must work as it is written
    np.testing.assert_array_equal(mended, fitting)


def test_the_order_is_found_for_logits_for_lists_and_without_labels():
    logits = np.random.default_rng(0).normal(size=(4, 20, 3))
    said = message(check_set_and_labels, logits, truth(), from_logits=True)
    assert "`np.transpose(probs, (1, 0, 2))`" in said
    said = message(check_set_and_labels, list(members()), truth())  # samples, taken for members
    assert "`np.stack(probs)`" in said
    assert "`np.transpose(probs, (0, 2, 1))`" in message(
        check_probs, smooth(20, 4, 3).transpose(0, 2, 1)
    )


def test_a_length_that_fits_no_axis_is_reported_with_both_shapes():
    # Three is the number of classes, which is no reason to move them.
    said = message(check_set_and_labels, smooth(20, 4, 3), np.zeros(3, dtype=int))
    assert "(20, 4, 3)" in said
    assert "(3,)" in said
    assert "transpose" not in said


def test_one_measure_takes_one_classifier_and_sends_a_set_to_the_test():
    given = members()[:, 0]
    probs, labels = check_single(given, truth())
    assert np.shares_memory(probs, given)
    np.testing.assert_array_equal(probs, given)
    np.testing.assert_array_equal(labels, truth())
    assert "swapped" in message(check_single, truth(), given)
    for several in (members(), members()[:, :1], [given] * 2):
        said = message(check_single, several, truth())
        assert "calibration_test" in said
        assert "probs[:, 0, :]" in said


# --- everything that is not data ------------------------------------------------------------------


def test_a_number_in_any_guise_is_a_count_a_level_or_a_size():
    for value in (3, np.int8(3), np.uint64(3), 3.0, np.float32(3), np.array(3)):
        got = check_integer(value, "n_bins", 3)
        assert type(got) is int
        assert got == 3
    assert check_fraction(np.float32(0.5), "alpha") == 0.5
    assert type(check_fraction(np.float64(0.05), "alpha")) is float
    assert check_positive(2, "bandwidth") == 2.0


NO_NUMBERS = ("3", [3], 3 + 0j, math.nan, math.inf)


@pytest.mark.parametrize(
    ("check", "rule", "values"),
    [
        (lambda v: check_integer(v, "a", 1), "an integer of at least 1", (0, 2.5, None, True)),
        (lambda v: check_fraction(v, "a"), "strictly between 0 and 1", (0, 1, -0.1, None, True)),
        (lambda v: check_positive(v, "a"), "a finite number greater", (0, 10**400, None, np.True_)),
        (check_jobs, "at least 1, or -1 for all cores", (0, -2, 1.5, None, True)),
        (check_seed, "None, a `numpy.random.Generator` or", (-1, 1.0, 2**4096, np.random, True)),
        (lambda v: check_flag(v, "a"), "must be True or False", (0, 1, "False", None)),
    ],
)
def test_arguments_that_break_their_rule_are_refused(check, rule, values):
    for value in (*values, *NO_NUMBERS):
        assert rule in message(check, value)


@pytest.mark.parametrize("other", ["random_state", "seed"])
@pytest.mark.parametrize(
    "call",
    [
        *(hullcal.calibration_test, hullcal.truth_test, hullcal.minimize, hullcal.assess),
        *(hullcal.split, hullcal.classical.resampling_test, hullcal.classical.skce_test),
        hullcal.simulation.power,
    ],
    ids=lambda call: call.__name__,
)
def test_a_seed_under_the_name_of_other_packages_is_answered_with_ours(call, other):
    with pytest.raises(TypeError, match=rf"\(\) has no argument `{other}`.*`rng=0`"):
        call(members(), truth(), **{other: 0})


def test_members_side_by_side_are_not_taken_for_classes():
    wide = members().reshape(len(truth()), -1)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wide, columns=[f"model{i}_c{i}" for i in range(wide.shape[1])])
    _, m, k = members().shape
    for flat in (wide, frame):
        with pytest.raises(hullcal.InvalidInputError, match=rf"reshape\(-1, {m}, {k}\)"):
            hullcal.calibration_test(flat, truth())


def test_one_measure_is_answered_with_the_argument_of_several():
    with pytest.raises(TypeError, match=r"assess\(\) has no argument `measure`.*measures="):
        hullcal.assess(members(), truth(), measure="ece_conf")


@pytest.mark.parametrize("other", ["logits", "log"])
@pytest.mark.parametrize("call", [hullcal.assess, hullcal.truth_test, hullcal.minimize])
def test_a_flag_as_the_command_line_calls_it_is_answered_with_ours(call, other):
    with pytest.raises(TypeError, match=rf"has no argument `{other}`.*`from_{other}=True`"):
        call(members(), truth(), **{other: True})


def test_an_integer_seed_is_kept_and_others_give_fresh_bits():
    for seed in (0, 7, 2**4096 - 1, np.int64(7), np.uint8(3)):
        got = check_seed(seed)
        assert type(got) is int
        assert got == seed
    assert "an integer of 16610 bits" in message(check_seed, 10**5000)
    assert check_seed(None) != check_seed(None) < 2**48
    words = np.random.default_rng(5).integers(0, 2**32, size=4, dtype=np.uint32)
    generator = np.random.default_rng(5)
    assert check_seed(generator) == sum(int(word) * 2 ** (32 * i) for i, word in enumerate(words))
    assert check_seed(generator) != check_seed(np.random.default_rng(5))


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_all_cores_are_no_more_than_the_environment_allows(name, monkeypatch):
    for other in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(other, raising=False)
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for set_to, expected in {"1": 1, "": ours, "0": ours, "many": ours, "-2": ours}.items():
        monkeypatch.setenv(name, set_to)
        assert check_jobs(-1) == expected
    monkeypatch.setenv(name, "1")
    assert check_jobs(7) == 7  # who names a number gets it


def test_weights_are_copied_into_float64_and_must_lie_on_the_simplex():
    given = np.array([0.25, 0.75], dtype=np.float32)
    got = check_weights(given, 2)
    assert got.dtype == np.float64
    assert not np.shares_memory(got, given)
    check_weights([0.5, 0.5 + 9e-9], 2)
    for weights, word in (
        ([0.5, 0.5, 0], "shape (3,)"),
        ([[0.5, 0.5]], "shape (1, 2)"),
        ([1.5, -0.5], "[1.5, -0.5]"),
        ([np.nan, 1], "nan"),
        ([np.inf, -np.inf], "inf"),
        ([0.5, 0.5 + 2e-8], "sum 1.00000002"),
        (["a", "b"], "dtype <U1"),
    ):
        assert word in message(check_weights, weights, 2)
