"""PyTorch: members equal a loop written by hand, and models are left as they were found."""

from __future__ import annotations

import copy
import gc
import re
import sys
import weakref
from collections import namedtuple
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import hullcal as hc
from hullcal.ensembles import checkpoints, deep_ensemble, mc_dropout

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.deep

nn = torch.nn
data = torch.utils.data
N, FEATURES, CLASSES = 23, 4, 3


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(n=N):
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(n, FEATURES, generator=generator)
    return inputs, torch.randint(CLASSES, (n,), generator=generator)


def loader_of(*parts, batch_size=5, **options):
    return data.DataLoader(data.TensorDataset(*parts), batch_size=batch_size, **options)


def network(seed=0, n_outputs=CLASSES, p=0.5):
    generator_state = torch.get_rng_state()
    torch.manual_seed(seed)
    layers = [nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(p)]
    model = nn.Sequential(*layers, nn.Linear(16, n_outputs))
    model[1].running_mean.fill_(0.3)
    torch.set_rng_state(generator_state)
    return model


def by_hand(models, inputs):
    """All rows at once, softmax written out: no batches, no storage, nothing of ours."""
    members = []
    for model in models:
        was = model.training
        z = model.eval()(inputs).detach().double().numpy()
        model.train(was)
        e = np.exp(z)
        members.append(e / e.sum(axis=1, keepdims=True))
    return np.stack(members, axis=1)


def flags(model):
    return [part.training for part in model.modules()]


def state_bits(model):
    return {key: value.numpy().tobytes() for key, value in model.state_dict().items()}


# --- deep ensembles -------------------------------------------------------------------------


def test_a_deep_ensemble_equals_a_loop_by_hand():
    inputs, labels = rows()
    models = [network(seed) for seed in range(3)]
    probs, found = deep_ensemble(models, loader_of(inputs, labels))
    assert probs.shape == (N, 3, CLASSES)
    assert probs.dtype == np.float32
    assert found.dtype == np.int64
    assert hc.ClassifierSet(probs).notes == ()
    np.testing.assert_allclose(probs, by_hand(models, inputs), atol=1e-6)
    np.testing.assert_array_equal(found, labels.numpy())


def test_every_way_to_give_models_gives_the_same_bits():
    loader, models = loader_of(*rows()), [network(seed).eval() for seed in range(3)]
    expected = deep_ensemble(models, loader).probs.tobytes()
    callables = [lambda x, m=model: m(x) for model in models]
    for given in (tuple(models), nn.ModuleList(models), iter(models), callables):
        assert deep_ensemble(given, loader).probs.tobytes() == expected
    assert deep_ensemble(models, loader, device="cpu").probs.tobytes() == expected


def test_a_generator_of_models_keeps_at_most_one_alive():
    alive, most = weakref.WeakSet(), []

    def make():
        for seed in range(4):
            model = network(seed)
            alive.add(model)
            most.append(len(alive))
            yield model
            del model

    gc.collect()
    gc.disable()  # only references count: a cycle would show
    try:
        probs, _ = deep_ensemble(make(), loader_of(*rows()))
    finally:
        gc.enable()
    assert most == [1, 1, 1, 1]
    assert len(alive) == 0
    np.testing.assert_allclose(probs, by_hand([network(s) for s in range(4)], rows()[0]), atol=1e-6)


def test_models_that_work_in_place_do_not_spoil_the_rows_of_the_next():
    inputs, _ = rows()

    def doubles(x):
        return x.mul_(2)[:, :CLASSES]

    kept = inputs.clone()
    # An iterator serves one pass: a list of models goes over the batches together.
    probs, labels = deep_ensemble([doubles, doubles], iter([inputs[:10], inputs[10:]]))
    assert labels is None
    np.testing.assert_array_equal(probs[:, 0], probs[:, 1])
    assert torch.equal(inputs, kept)


@pytest.mark.parametrize("kind", ["probs", "log_probs"])
@pytest.mark.parametrize("half", [torch.float32, torch.bfloat16])
def test_rounded_probabilities_enter_a_test_without_a_note(kind, half):
    table = torch.randn(50, 40, generator=torch.Generator().manual_seed(0)).softmax(-1)
    table = (table if kind == "probs" else table.log()).to(half)
    probs, _ = deep_ensemble([lambda x: x], [table], outputs=kind)
    assert hc.ClassifierSet(probs).notes == ()
    exact = table.double().numpy() if kind == "probs" else np.exp(table.double().numpy())
    left_alone = 4 * 40 * 2**-23  # rows whose sum is nearer to 1 than this keep their bits
    expected = exact / exact.sum(1, keepdims=True)
    np.testing.assert_allclose(probs[:, 0], expected, atol=0, rtol=1.1 * left_alone)


# --- what is left behind --------------------------------------------------------------------


def pretrained():
    model = network().train()
    model[1].eval()  # a frozen layer inside a model in training
    return model


class Stop(nn.Module):
    """Raises at the second batch."""

    def __init__(self, error):
        super().__init__()
        self.error, self.calls = error, 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 2:
            raise self.error
        return x


RUNS = {
    "deep_ensemble": lambda model, loader, **o: deep_ensemble([model, model], loader, **o),
    "in turn": lambda model, loader, **o: deep_ensemble(iter([model, model]), loader, **o),
    "mc_dropout": lambda model, loader, **o: mc_dropout(model, loader, 2, **o),
    "checkpoints": lambda model, loader, **o: checkpoints(
        model, [copy.deepcopy(model.state_dict())] * 2, loader, **o
    ),
}


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("function", RUNS)
def test_modes_parameters_and_random_state_are_as_before(function, error):
    model = pretrained()
    if error is not None:
        model.append(Stop(error))
    before = flags(model), state_bits(model), torch.get_rng_state()
    loader = loader_of(*rows())
    with nullcontext() if error is None else pytest.raises(type(error)):
        RUNS[function](model, loader)
    assert flags(model) == before[0]
    assert state_bits(model) == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled()
    if error is None:
        model.train()(rows()[0]).sum().backward()


def test_a_layer_that_undoes_its_evaluation_mode_is_allowed_to():
    class Merging(nn.Module):  # as low-rank adapters do
        merged = False

        def train(self, mode=True):
            self.merged = not mode
            return super().train(mode)

        def forward(self, x):
            assert self.merged
            return x[:, :CLASSES]

    model = nn.Sequential(Merging())
    deep_ensemble([model], loader_of(*rows()))
    assert flags(model) == [True, True]
    assert not model[0].merged


def test_a_model_is_moved_and_moved_back():
    class Elsewhere(nn.Linear):
        """Parameters on the meta device, the only second one here; numbers come with the move."""

        moves: ClassVar[list] = []

        def to(self, device):
            self.moves.append(str(device))
            self.to_empty(device=device)
            nn.init.ones_(self.weight)
            nn.init.zeros_(self.bias)
            return self

    model = Elsewhere(FEATURES, CLASSES, device="meta")
    probs, _ = deep_ensemble([model], loader_of(*rows()), device="cpu")
    assert model.moves == ["cpu", "meta"]
    assert model.weight.is_meta
    np.testing.assert_allclose(probs, 1 / CLASSES, rtol=1e-6)


def test_a_model_on_several_devices_stays_where_it_is():
    model = nn.Sequential(nn.Linear(FEATURES, 3), nn.Linear(3, 3, device="meta"))
    with pytest.raises(hc.InvalidInputError, match="must be None for a model on several devices"):
        deep_ensemble([model], loader_of(*rows()), device="cpu")
    assert model[1].weight.is_meta


# --- MC dropout -----------------------------------------------------------------------------


def test_only_dropout_layers_drop():
    """By hand: evaluation mode with the mask in the place of dropout, seen by a hook."""
    model, (inputs, labels) = network().train(), rows()
    masks = []
    handle = model[3].register_forward_hook(lambda _, x, y: masks.append((y != 0) | (x[0] == 0)))
    before = state_bits(model)
    probs, _ = mc_dropout(model, loader_of(inputs, labels), 2)
    handle.remove()
    assert state_bits(model) == before  # running statistics too
    model.eval()
    with torch.no_grad():
        hidden = model[2](model[1](model[0](inputs)))
        for member in range(2):
            mask = torch.cat(masks[member::2])  # batch by batch, members in turn
            assert 0.3 < mask[hidden > 0].float().mean() < 0.7
            z = model[4](hidden * mask * 2).double().numpy()
            e = np.exp(z)
            np.testing.assert_allclose(probs[:, member], e / e.sum(1, keepdims=True), atol=1e-6)


def test_the_seed_decides_the_masks():
    model, loader = network(), loader_of(*rows())

    def bits(rng):
        return mc_dropout(model, loader, 3, rng=rng).probs.tobytes()

    first = bits(0)
    torch.manual_seed(
        99
    )  # neither the global state nor earlier calls nor the loader's draws matter
    assert bits(0) == first
    drawing = ((torch.rand(3), batch)[1] for batch in loader)
    assert mc_dropout(model, drawing, 3).probs.tobytes() == first
    assert bits(1) != first
    assert bits(np.random.default_rng(5)) == bits(np.random.default_rng(5))
    assert bits(2**100 + 1) != bits(2**100)


def test_members_and_batches_get_masks_of_their_own():
    model, (inputs, labels) = network(), rows()
    same_rows = inputs[:5].repeat(4, 1)
    probs, _ = mc_dropout(model, loader_of(same_rows, labels[:20]), 3)
    parts = {probs[start : start + 5, m].tobytes() for start in (0, 5, 10, 15) for m in range(3)}
    assert len(parts) == 12
    more, _ = mc_dropout(model, loader_of(same_rows, labels[:20]), 5)
    np.testing.assert_array_equal(more[:, :3], probs)  # a member does not depend on their number


class OwnDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(FEATURES)

    def forward(self, x):
        assert not self.norm.training
        return nn.functional.dropout(self.norm(x), 0.5, self.training)


def test_dropout_as_a_function_is_named_by_its_module():
    model = nn.Sequential(OwnDropout(), nn.Linear(FEATURES, CLASSES))
    with pytest.raises(hc.InvalidInputError, match=r"`model` must have dropout layers; got none"):
        mc_dropout(model, loader_of(*rows()))
    probs, _ = mc_dropout(model, loader_of(*rows()), 2, dropout_types=OwnDropout)
    assert (probs[:, 0] != probs[:, 1]).any()


def test_transformer_layers_drop_though_they_have_a_fast_path():
    layer = nn.TransformerEncoderLayer(FEATURES, 2, 8, dropout=0.5, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1)
    model = nn.Sequential(nn.Unflatten(1, (1, FEATURES)), encoder, nn.Flatten())
    probs, _ = mc_dropout(model, loader_of(rows()[0], rows()[1]), 2)
    assert (probs[:, 0] != probs[:, 1]).any()


def test_models_whose_dropout_does_nothing_are_refused_or_warned_of():
    with pytest.raises(hc.InvalidInputError, match="1 of them, all with p = 0"):
        mc_dropout(network(p=0.0), loader_of(*rows()))
    unused = nn.Linear(FEATURES, CLASSES)
    unused.dropout = nn.Dropout(0.5)
    with pytest.warns(hc.HullcalWarning, match="dropout changed nothing") as caught:
        mc_dropout(unused, loader_of(*rows()), 2)
    assert caught[0].filename == __file__


# --- checkpoints ----------------------------------------------------------------------------


def test_checkpoints_equal_a_loop_by_hand():
    models, (inputs, labels) = [network(seed) for seed in (3, 4)], rows()
    states = (model.state_dict() for model in models)
    probs, found = checkpoints(network(0), states, loader_of(inputs, labels))
    np.testing.assert_allclose(probs, by_hand(models, inputs), atol=1e-6)
    np.testing.assert_array_equal(found, labels.numpy())


def test_a_checkpoint_that_does_not_fit_is_torchs_error_with_its_number():
    model, good = network(), network(1).state_dict()
    before = state_bits(model)
    for bad, message in (
        (good | {"4.bias": torch.ones(9)}, "size mismatch for 4.bias"),
        ("epoch8.pt", "to be dict-like"),
    ):
        with pytest.raises((RuntimeError, TypeError), match=message) as caught:
            checkpoints(model, [good, bad], loader_of(*rows()))
        assert caught.value.__notes__ == ["This is checkpoint 1 in `states`."]
    with pytest.raises(hc.InvalidInputError, match=r"themselves as checkpoint 1\. .*deepcopy"):
        checkpoints(model, [good, model.state_dict()], loader_of(*rows()))
    assert state_bits(model) == before


# --- loaders --------------------------------------------------------------------------------


def test_a_shuffling_loader_is_refused():
    for options in (
        {"shuffle": True},
        {"sampler": data.SubsetRandomSampler(range(9))},
        {"batch_sampler": data.BatchSampler(data.RandomSampler(range(N)), 5, False)},
    ):
        loader = data.DataLoader(data.TensorDataset(*rows()), **options)
        with pytest.raises(hc.InvalidInputError, match=r"`loader` must .*shuffles \(.*Sampler\)"):
            deep_ensemble([network()], loader)


class Stream(data.IterableDataset):
    """Rows without a length; in its second pass it may give others."""

    def __init__(self, change=lambda rows, n_pass: rows):
        self.change, self.n_passes = change, 0

    def __iter__(self):
        pairs = list(zip(*rows(), strict=True))
        self.n_passes += 1
        yield from self.change(pairs, self.n_passes)


@pytest.mark.parametrize(
    "change",
    [lambda pairs: pairs[::-1], lambda pairs: pairs[:-1], lambda pairs: [x for x, _ in pairs]],
    ids=["order", "fewer", "unlabelled"],
)
def test_other_rows_or_labels_in_a_later_pass_are_refused(change):
    stream = Stream(lambda pairs, n_pass: pairs if n_pass == 1 else change(pairs))
    with pytest.raises(hc.InvalidInputError, match=r"\d+ rows after 23.* in the pass of member 1"):
        RUNS["in turn"](network(), data.DataLoader(stream, batch_size=5))


def test_a_loader_of_unknown_length_gives_the_same_bits():
    model = network()
    known = RUNS["in turn"](model, loader_of(*rows()))
    unknown = RUNS["in turn"](model, data.DataLoader(Stream(), batch_size=5))
    assert unknown.probs.shape == (N, 2, CLASSES)
    assert unknown.probs.tobytes() == known.probs.tobytes()
    np.testing.assert_array_equal(unknown.labels, known.labels)


def test_an_iterator_serves_one_pass_and_is_refused_for_more():
    assert mc_dropout(network(), iter(loader_of(*rows())), 3).probs.shape == (N, 3, CLASSES)
    with pytest.raises(hc.InvalidInputError, match=r"0 rows after 23.*not an iterator"):
        deep_ensemble(iter([network(), network()]), iter(loader_of(*rows())))


class Keywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, first, second):
        return SimpleNamespace(logits=self.head(first + second["deep"][0]))


Named = namedtuple("Named", ["inputs", "labels"])


@pytest.mark.parametrize("key", ["labels", "y", None])
def test_batches_of_every_form(key):
    inputs, labels = rows()
    model, keywords = Keywords(), {"first": inputs, "second": {"deep": [inputs, "text"]}}
    expected = by_hand([nn.Sequential(model.head)], 2 * inputs)
    several = tuple(keywords.values())
    for batch in (
        keywords | ({key: labels} if key else {}),
        (several, labels) if key else (several,),
        [keywords, labels] if key else [keywords],
        Named(list(several), labels if key else None),
    ):
        probs, found = deep_ensemble([model], [batch], outputs=lambda out: out.logits)
        np.testing.assert_allclose(probs, expected, atol=1e-6)
        assert found is None if key is None else found.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "`loader` must give at least one row"),
        ([(1, 2, 3)], r"batches \(inputs, labels\), dicts, or inputs alone; got a tuple of 3"),
        ([{"x": 1, "y": 2, "label": 3}], "one of the keys .*; got 'label' and 'y'"),
        (torch.ones(3), "`loader` must be an iterable of batches; got .*Tensor"),
        (
            [(rows()[0], rows()[1]), rows()[0]],
            "must give labels with every batch or with none; got a change at row 23",
        ),
        ([(rows()[0], rows()[1][:4])], r"In the batch from row 0 on: `labels`.*\b4\b.*\b23\b"),
        (
            [(rows()[0], rows()[1]), (rows()[0], rows()[1] + 5)],
            "In the batch from row 23 on: `labels` must be class positions from 0 to 2",
        ),
    ],
    ids=["empty", "three", "keys", "tensor", "some", "length", "range"],
)
def test_loaders_that_cannot_be_used_are_refused(batches, message):
    with pytest.raises(hc.InvalidInputError, match=message):
        deep_ensemble([network()], batches)


# --- outputs --------------------------------------------------------------------------------


def test_a_wrong_choice_of_outputs_is_noticed():
    inputs, labels = rows()
    loader = loader_of(inputs, labels)
    soft = nn.Sequential(network(), nn.Softmax(-1))
    logs = nn.Sequential(network(), nn.LogSoftmax(-1))
    for models, outputs, message in (
        ([network(), soft], "logits", r'`outputs` is "logits".*`outputs="probs"`'),
        (
            [network()],
            "probs",
            r"`outputs=\"probs\"` does not fit member 0 in the batch from row 0",
        ),
        ([logs], "probs", "log-probabilities"),
        ([network()], "log_probs", r'fit member 0.*`outputs="logits"`'),
        ([network()], "logit", r'must be "logits", "probs".*got .logit.'),
    ):
        with pytest.raises(hc.InvalidInputError, match=message):
            deep_ensemble(models, loader, outputs=outputs)
    expected = by_hand([network()], inputs)
    for model, outputs in ((soft, "probs"), (logs, "log_probs"), (logs, "logits")):
        got = deep_ensemble([model], loader, outputs=outputs).probs
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("model", [lambda x: x, torch.squeeze], ids=["(n, 1)", "(n,)"])
@pytest.mark.parametrize("kind", ["logits", "probs", "log_probs"])
def test_one_column_is_the_class_one_of_two(model, kind):
    z = rows(21)[0][:, 0] * 3  # the last batch has one row, which `squeeze` makes a number
    p = 1 / (1 + np.exp(-z.double().numpy()))
    column = {"logits": z, "probs": z.sigmoid(), "log_probs": nn.functional.logsigmoid(z)}[kind]
    loader = loader_of(column[:, None], (z > 0).float()[:, None])
    probs, labels = deep_ensemble([model], loader, outputs=kind)
    np.testing.assert_allclose(probs[:, 0], np.stack([1 - p, p], 1), atol=1e-6)
    np.testing.assert_array_equal(labels, (z > 0).numpy())
    assert hc.ClassifierSet(probs).notes == ()


def test_one_column_of_logits_that_look_like_probabilities_brings_a_warning():
    with pytest.warns(hc.HullcalWarning, match=r'pass `outputs="probs"`') as caught:
        deep_ensemble([lambda x: x[:, :1].sigmoid()], [rows()[0]])
    assert caught[0].filename == __file__


def test_half_precision_and_large_outputs_are_widened_first():
    logits = (rows()[0][:, :CLASSES] * 20).to(torch.float16)
    probs, _ = deep_ensemble([lambda x: x], [logits])
    exact = np.exp(logits.double().numpy())
    np.testing.assert_allclose(probs[:, 0], exact / exact.sum(1, keepdims=True), atol=1e-6)
    far, _ = deep_ensemble([lambda x: x], [torch.tensor([[1e4, 0.0, -1e4], [-3e38, 3e38, 0.0]])])
    np.testing.assert_array_equal(far[:, 0], [[1, 0, 0], [0, 1, 0]])


def test_outputs_that_are_not_finite_are_named_by_member_and_row():
    inputs, labels = rows()

    def broken(x):
        x[(x == inputs[17]).all(1), 1] = np.nan
        return x[:, :CLASSES]

    with pytest.raises(hc.InvalidInputError, match=r"member 1 .* row 15 on: .* = \(2, 0, 1\)"):
        deep_ensemble([network(), broken], loader_of(inputs, labels))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x: (x, x), r"tuple from member 0\. .*`outputs=lambda out: out.logits`"),
        (lambda x: x[:, :, None], r"shape \(5, 4, 1\) from member 0"),
        (lambda x: x[:, :0], r"member 0 in the batch from row 0 on: .*shape \(5, 0\)"),
        (lambda x: x.argmax(1), r"floating-point tensors.*; got torch.int64.* from member 0"),
        (lambda x: x, r"same classes always; got shape \(5, 3\) from member 1 .*\(5, 4\)"),
        (lambda x: x[1:, :3], r"one row of outputs.*; got shape \(5, 3\) from member 1 .*\(4, 3\)"),
    ],
    ids=["tuple", "axes", "empty", "classes", "columns", "rows"],
)
def test_outputs_of_another_form_are_refused_with_the_way_out(output, message):
    with pytest.raises(hc.InvalidInputError, match=message):
        deep_ensemble([output, network()], loader_of(*rows()))


# --- the rest -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "totals"), [("deep_ensemble", {10}), ("mc_dropout", {10}), ("in turn", {5, 10})]
)
def test_progress_counts_batches_times_members(function, totals):
    seen = []
    RUNS[function](network(), loader_of(*rows()), progress=lambda *pair: seen.append(pair))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert all(done <= total for done, total in seen)
    assert seen[-1] == (10, 10)
    assert {total for _, total in seen} <= totals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deep_ensemble([], loader_of(*rows())), "must be at least one model or state"),
        (
            lambda: deep_ensemble(network(), []),
            r"list or iterator .*one Sequential\. .*`\[model\]`",
        ),
        (lambda: checkpoints(network(), [], []), "must be at least one model or state"),
        (lambda: mc_dropout([network()], []), "`model` must be a torch.nn.Module; got .*list"),
        (lambda: mc_dropout(network(), [], 0), "`n_members` must be an integer of at least 1"),
        (lambda: mc_dropout(network(), [], dropout_types=["Dropout"]), "must be a type"),
        (lambda: deep_ensemble([network()], [], dtype="float16"), "`dtype` must be"),
        (lambda: deep_ensemble([network()], [], device="abacus"), "Expected one of cpu"),
        (lambda: deep_ensemble([network()], [], device="meta"), "meta tensors"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call()


def test_the_module_imports_without_torch_and_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (lambda: deep_ensemble([], []), lambda: checkpoints(0, [], [])):
        with pytest.raises(ImportError, match="pip install torch"):
            call()


def test_every_block_of_the_guide_runs(tmp_path, monkeypatch):
    page = Path(__file__).parents[1] / "docs" / "ensembles_torch.md"
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) >= 6
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    with torch.random.fork_rng(devices=[]):
        for block in found:
            exec(compile(block, str(page), "exec"), names)
    assert names["result"].n_samples == len(names["labels"])
