"""What a user may write: the public names, with the types that a strict checker must find.

`mypy --strict` reads it as it stands in a user's project; run as a program, it is a first use of an
installed hullcal and prints a verdict.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, assert_type

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import hullcal as hc

Floats = NDArray[np.float64]


def predictions() -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    members = rng.dirichlet([1.0, 1.0, 1.0], size=(120, 3))
    return members, rng.integers(3, size=120)


def tests(probs: Floats, labels: NDArray[np.int64]) -> hc.CalibrationTestResult:
    result = hc.calibration_test(
        probs,
        labels,
        measure=hc.ConfidenceECE(n_bins=5),
        null="recentered",
        minimizer=hc.minimizers.Pairwise(max_evaluations=50),
        n_resamples=39,
        rng=1,
    )
    assert_type(result, hc.CalibrationTestResult)
    assert_type(result.pvalue, float)
    assert_type(result.pvalue_interval, tuple[float, float])
    assert_type(result.statistic, float)
    assert_type(result.critical_value, float)
    assert_type(result.weights, Floats)
    assert_type(result.null_distribution, Floats)
    assert_type(result.rejected, bool)
    assert_type(result.decide(0.01), bool)
    assert_type(result.converged, bool)
    assert_type(result.seed, int)
    assert_type(result.hypothesis, str)
    assert_type(result.members, tuple[str, ...] | None)
    assert_type(hc.adjust([result, result]), Floats)
    assert_type(hc.CalibrationTestResult.from_dict(result.to_dict()), hc.CalibrationTestResult)
    likelihood = hc.truth_test(probs, labels, n_resamples=19, rng=1)
    assert isinstance(likelihood, hc.TruthTestResult)
    assert_type(likelihood.evalue, float)
    assert_type(likelihood.temperature, float)
    assert_type(hc.combine_evalues([likelihood.evalue, 2.0]), float)
    monitor = hc.Monitor(n_members=3, n_classes=3)
    monitor.update(probs, labels)
    assert_type(monitor.pvalue, float)
    return result


def searches(probs: Floats, labels: NDArray[np.int64]) -> None:
    found = hc.minimize(probs, labels, measure="ece_cwise", minimizer="random", rng=0)
    assert_type(found, hc.MinimizeResult)
    assert_type(found.weights, Floats)
    assert_type(found.value, float)
    assert_type(hc.minimizers.Pairwise().max_evaluations, int | None)
    assert_type(hc.minimizers.Cobyla(), hc.minimizers.Cobyla)
    assert_type(hc.nulls.Paper(), hc.nulls.Paper)
    for names in (hc.measures.available(), hc.nulls.available(), hc.minimizers.available()):
        assert_type(names, tuple[str, ...])


def brier(probs: Floats, labels: NDArray[np.int64]) -> float:
    return float(((probs - np.eye(3)[labels]) ** 2).sum(axis=1).mean())


def measures(probs: Floats, labels: NDArray[np.int64]) -> None:
    one = probs[:, 0]
    for measure in (hc.ConfidenceECE(), hc.ClasswiseECE(), hc.HosmerLemeshow(n_bins=5)):
        assert_type(measure(one, labels), float)
    assert_type(hc.SKCE(estimator="uq", bandwidth="median")(one, labels), float)
    assert_type(hc.measures.SKCE(), hc.SKCE)
    assert_type(hc.kernels.ExponentialTV(bandwidth=2.0)([1, 0], [0, 1]), float)
    assert_type(hc.binning.reliability_table(one, labels).counts, NDArray[np.int64])
    assert_type(hc.simplex.project([0.5, 0.7]), Floats)
    hc.minimize(probs, labels, measure=brier, rng=0)


def sets(probs: Floats, labels: NDArray[np.int64]) -> None:
    classifiers = hc.ClassifierSet(probs, members=["left", "middle", "right"])
    assert_type(classifiers.mix([0.5, 0.25, 0.25]), Floats)
    assert_type(classifiers.mean(), Floats)
    assert_type(classifiers.contains(classifiers.mean()), NDArray[np.bool_])
    assert_type(classifiers.subset(["left"]), hc.ClassifierSet)
    sizes = hc.uncertainty.summary(classifiers)
    assert_type(sizes, hc.uncertainty.Sizes)
    assert_type(sizes.tv_diameter, float)
    assert_type(hc.uncertainty.tv_diameter(probs), Floats)
    assert_type(hc.uncertainty.entropy_bounds(probs), tuple[Floats, Floats])
    hc.from_binary([0.2, 0.7])
    (first, _), (_, second) = hc.split(probs, labels, fraction=0.5, rng=0)
    assert len(first) + len(second) == len(labels)


def classical(probs: Floats, labels: NDArray[np.int64]) -> None:
    one = probs[:, 0]
    chi_squared = hc.classical.hosmer_lemeshow(one, labels, n_bins=2)
    assert_type(chi_squared, hc.ClassicalTestResult)
    assert_type(chi_squared.pvalue, float)
    assert_type(chi_squared.degrees_of_freedom, int | None)
    resampled = hc.classical.resampling_test(one, labels, n_resamples=39, rng=0)
    assert_type(resampled, hc.CalibrationTestResult)
    assert_type(hc.classical.skce_test(one, labels), hc.ClassicalTestResult)


def simulations() -> None:
    drawn = hc.simulation.scenario("S3", n_samples=20, n_members=3, n_classes=3, rng=0)
    assert_type(drawn, hc.simulation.Simulated)
    assert_type(drawn.probs, Floats)
    assert_type(hc.simulation.in_hull(drawn.probs[0], drawn.probs[0].mean(axis=0)), bool)
    grid = hc.simulation.Grid(
        scenario="S1", test="truth", n_datasets=2, n_samples=20, n_resamples=19, alpha=0.2
    )
    study = hc.simulation.run(grid)
    assert_type(study, hc.simulation.Study)
    assert_type(study.rates(), list[dict[str, Any]])


def files(result: hc.CalibrationTestResult, probs: Floats, labels: NDArray[np.int64]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "set.npz"
        np.savez(path, probs=probs, labels=labels)
        assert_type(hc.io.read(path), hc.io.Dataset)
        hc.io.write_json(result, Path(folder) / "result.json")
        assert hc.io.read_json(Path(folder) / "result.json") == [result]
    assert_type(hc.io.to_json([result]), str)
    assert_type(hc.io.to_csv(result), str)


def pages(result: hc.CalibrationTestResult, probs: Floats, labels: NDArray[np.int64]) -> str:
    assert_type(hc.plots.null_distribution(result), Axes)
    assert_type(hc.plots.weights(result), Axes)
    assert_type(hc.plots.reliability(probs, labels, n_resamples=20), Axes)
    assert_type(hc.plots.simplex(probs), Axes)
    display = hc.plots.ReliabilityDisplay.from_predictions(labels, probs, n_resamples=20)
    assert_type(display.plot(), hc.plots.ReliabilityDisplay)
    found = hc.assess(probs, labels, n_resamples=99, rng=1)
    assert isinstance(found, hc.Assessment)
    assert_type(found.calibrated, hc.assessment.Answer | None)
    assert_type(found.answers["truth"].headline, str)
    assert_type(found.results, tuple[hc.CalibrationTestResult | hc.TruthTestResult, ...])
    assert_type(found.advice, tuple[str, ...])
    assert_type(hc.testing.assert_calibrated(probs, labels, alpha=0.01), hc.Assessment)
    assert isinstance(hc.assess({"one": probs}, labels, n_resamples=99, rng=1), hc.Assessments)
    page = hc.report.render(found, title="Three members")
    assert_type(page, str)
    return page


def main() -> None:
    probs, labels = predictions()
    result = tests(probs, labels)
    searches(probs, labels)
    measures(probs, labels)
    sets(probs, labels)
    classical(probs, labels)
    simulations()
    files(result, probs, labels)
    page = pages(result, probs, labels)
    try:
        hc.calibration_test([[0.5, 0.6]], [0])
    except hc.InvalidInputError as error:
        print(error)
    assert page.startswith("<!DOCTYPE html>")
    print(result)


if __name__ == "__main__":
    main()
