"""How often does the interval of an effect hold the calibration error of new rows?

    python -m experiments.intervals --sets 150

prints the coverage and the mean width of the 95 % interval that `hullcal.assess` gives the average, for
single classifiers of three classes whose labels follow them at a temperature.
"""

import argparse

import numpy as np

import hullcal as hc
from hullcal.effects import Quality
from hullcal.simulation.scenarios import draw_labels, tempered

SIZES, TEMPERATURES, MANY_ROWS = (60, 200, 1000), (1.0, 1.2, 1.5, 2.5), 200_000


def true_error(temperature: float) -> float:
    """The error of the predicted class in ten bins, from the probabilities of very many rows."""
    probs = np.random.default_rng(5).dirichlet([1, 1, 1], size=MANY_ROWS)
    top = probs.argmax(axis=1)
    gaps = tempered(probs, temperature)[np.arange(MANY_ROWS), top] - probs.max(axis=1)
    bins = np.minimum((probs.max(axis=1) * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, weights=gaps)).sum() / MANY_ROWS)


def interval(n_samples: int, temperature: float, index: int) -> tuple[float, float]:
    """That of one set of rows."""
    rng = np.random.default_rng([n_samples, int(10 * temperature), index])
    probs = rng.dirichlet([1, 1, 1], size=n_samples)
    labels = draw_labels(tempered(probs, temperature), rng).astype(np.int32)
    found = Quality.of(probs, labels, hc.ConfidenceECE(), fitted=False).interval
    assert found is not None
    return found


def main() -> None:
    """Print a line for each size and temperature."""
    parser = argparse.ArgumentParser(description="Coverage of the interval of an effect.")
    parser.add_argument("--sets", type=int, default=150)
    sets = parser.parse_args().sets
    print(f"{sets} sets a line\n rows  temperature  true error  coverage  mean width")
    for n_samples in SIZES:
        for temperature in TEMPERATURES:
            true = true_error(temperature)
            ends = np.array([interval(n_samples, temperature, index) for index in range(sets)])
            held = ((ends[:, 0] <= true + 1e-9) & (true <= ends[:, 1])).mean()
            width = (ends[:, 1] - ends[:, 0]).mean()
            print(f"{n_samples:5}{temperature:13}{true:12.3f}{held:10.3f}{width:12.3f}")


if __name__ == "__main__":
    main()
