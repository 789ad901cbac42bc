"""The same seed gives the same bits: on any number of threads, from any source, from what is stored."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc
from hullcal.minimizers import Steepest

N_SAMPLES, N_MEMBERS, N_CLASSES = 300, 3, 3
QUICK = {"n_resamples": 39, "minimizer": Steepest(max_evaluations=60), "rng": 7}


def predictions(n_samples=N_SAMPLES, seed=5):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(N_CLASSES), size=(n_samples, N_MEMBERS))
    labels = (probs[:, 0].cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1)
    return probs, np.minimum(labels, N_CLASSES - 1)


PROBS, LABELS = predictions()


def bits(result):
    """All numbers of a test by their bits, as bytes."""
    single = [result.statistic, result.minimum, result.pvalue]
    numbers = [single, result.weights, result.null_distribution]
    return np.concatenate(numbers).tobytes(), result.n_evaluations, result.converged


def outcome(probs=PROBS, labels=LABELS, **options):
    return hc.calibration_test(probs, labels, **(QUICK | options))


# -- threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("null", hc.nulls.available())
@pytest.mark.parametrize("measure", hc.measures.available())
def test_no_number_of_threads_changes_a_bit(measure, null):
    options = {"measure": measure, "null": null, "n_resamples": 19}
    probs, labels = PROBS[:80], LABELS[:80]
    alone = bits(outcome(probs, labels, **options))
    for n_jobs in (2, 3):
        assert bits(outcome(probs, labels, n_jobs=n_jobs, **options)) == alone


@pytest.mark.parametrize("null", hc.nulls.available())
def test_another_seed_gives_other_bits(null):
    """The control: if the comparison could not fail, or the seed were ignored, this would fail."""
    first, again, other = (bits(outcome(null=null, rng=rng)) for rng in (7, 7, 8))
    assert first == again
    assert first != other


# -- sources ------------------------------------------------------------------------------------------


def sources(folder):
    """The same predictions, laid out and kept in other ways."""
    np.save(folder / "probs.npy", PROBS)
    np.savez(folder / "set.npz", probs=PROBS, labels=LABELS)
    yield "a memory map", np.load(folder / "probs.npy", mmap_mode="r")
    yield "a file that is read", hc.io.read(folder / "set.npz").probs
    yield "an array by columns", np.asfortranarray(PROBS)
    yield "a view with strides", np.repeat(PROBS, 2, axis=0)[::2]
    yield "nested lists", PROBS.tolist()
    yield "a list of members", [PROBS[:, m] for m in range(N_MEMBERS)]
    yield "a set of classifiers", hc.ClassifierSet(PROBS)


def test_no_source_changes_a_bit(tmp_path):
    expected = bits(outcome())
    for name, source in sources(tmp_path):
        assert bits(outcome(source)) == expected, name


def test_a_small_change_of_one_prediction_is_seen_in_the_result():
    """The control of the last test."""
    probs = PROBS.copy()
    probs[0, 0, :2] += [1e-9, -1e-9]
    assert bits(outcome(probs)) != bits(outcome())


# -- what is stored -----------------------------------------------------------------------------------


def repeated(text, probs, labels):
    """What the page on reproducibility says to do with a JSON file, as printed there."""
    page = (Path(__file__).parents[1] / "docs" / "reproducibility.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = {"text": text, "probs": probs, "labels": labels}
    exec(compile(code, "reproducibility.md", "exec"), names)
    return names["again"]


@pytest.mark.parametrize("null", hc.nulls.available())
@pytest.mark.parametrize(
    "measure", [hc.ConfidenceECE(n_bins=7), hc.SKCE(estimator="b", bandwidth=0.7), "hl_cwise"]
)
def test_a_stored_result_repeats_itself(measure, null):
    probs, labels = PROBS[:60], LABELS[:60]
    first = outcome(probs, labels, measure=measure, null=null, alpha=0.1, n_resamples=19, rng=None)
    again = repeated(hc.io.to_json(first), probs, labels)
    assert again == first
    assert bits(again) == bits(first)


def test_a_stored_result_of_a_shortened_run_repeats_itself():
    first = outcome(stop_after=3, n_resamples=199, alpha=0.5)
    assert first.n_resamples < 199
    again = repeated(hc.io.to_json(first), PROBS, LABELS)
    assert again == first
    assert bits(again) == bits(first)


def test_a_journal_carries_seed_version_and_configuration_and_repeats_the_run(tmp_path):
    first = outcome(rng=None, journal=tmp_path)
    line = (tmp_path / "journal.jsonl").read_text(encoding="utf-8").splitlines()[0]
    kept = json.loads(line)["configuration"]
    assert kept["seed"] == first.seed
    assert kept["version"] == hc.__version__
    names = [kept[name] for name in ("measure", "minimizer", "null")]
    assert names == ["ece_conf", "steepest", "stacked"]
    assert kept["settings"] == first.settings
    sizes = [kept[name] for name in ("D", "n_samples", "M", "n_classes")]
    assert sizes == [39, N_SAMPLES, N_MEMBERS, N_CLASSES]
    assert bits(outcome(rng=None, journal=tmp_path)) == bits(first)


def test_a_report_carries_seed_configuration_and_versions():
    assessed = hc.assessment.assess(
        PROBS, LABELS, n_resamples=99, rng=424_242, minimizer=Steepest(max_evaluations=61)
    )
    page = html.unescape(hc.report.render(assessed, command="hullcal test set.npz --seed 424242"))
    for fact in ("424242", "steepest, 61 evaluations", "stacked", "likelihood", "ece_conf"):
        assert fact in page
    assert "hullcal test set.npz --seed 424242" in page
    for name, version in versions().items():
        assert f"<dt>{name.lower()}</dt><dd>{version}</dd>" in page


def versions():
    import platform
    from importlib.metadata import version

    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"hullcal": hc.__version__, "Python": platform.python_version(), **packages}


def test_json_carries_seed_configuration_and_versions():
    document = json.loads(hc.io.to_json(outcome()))
    assert document["version"] == hc.__version__
    (entry,) = document["results"]
    assert entry["seed"] == 7
    assert entry["settings"] == {
        "measure": {"n_bins": 10},
        "minimizer": {"max_evaluations": 60, "best_evaluations": 60},
        "null": {},
    }
    names = [entry[name] for name in ("measure", "null", "minimizer")]
    assert names == ["ece_conf", "stacked", "steepest"]
    expected = {name.lower(): version for name, version in versions().items()}
    assert document["versions"] == expected
