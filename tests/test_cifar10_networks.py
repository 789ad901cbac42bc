"""Fourteen networks: the experiment's functions on small made-up arrays, and its files if present."""

import csv
import itertools
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import hullcal as hc

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "cifar10_networks").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    pytest.skip("the study is too slow uncompiled", allow_module_level=True)
pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT))

from experiments.cifar10_networks import alone, collection, humans, subsets, votes, whole  # noqa: E402
from experiments.cifar10_networks.__main__ import main  # noqa: E402
from experiments.cifar10_networks.parts import PARTS  # noqa: E402
from experiments.cifar10_networks.testing import Effort, share, with_interval  # noqa: E402

NAMES = ("resnet18", "googlenet", "resnet_orig", "inception_v3")
SMALL = Effort(
    n_resamples=19,
    n_resamples_alone=39,
    n_resamples_many=19,
    n_resamples_pair=19,
    n_splits=2,
    n_draws=2,
    evaluations=60,
)
TINY = (
    "-D",
    "19",
    "--alone",
    "19",
    "--many",
    "19",
    "--pairs",
    "19",
    "--splits",
    "2",
    "--draws",
    "1",
)
DATA = ROOT.parent / "shared" / "data"


def made_up(n_samples=120, n_members=4, n_classes=3):
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(n_classes), size=n_samples)
    noise = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members))
    return {
        "probs": 0.7 * truth[:, None] + 0.3 * noise,
        "labels": votes.drawn(truth, rng),
        "members": np.array(NAMES[:n_members]),
        "humans": truth,
    }


@pytest.fixture
def small():
    data = made_up()
    return collection.Collection(
        networks=hc.ClassifierSet(data["probs"], members=data["members"]),
        labels=data["labels"],
        humans=data["humans"],
    )


@pytest.fixture
def files(tmp_path):
    data = made_up()
    np.savez(tmp_path / "nets.npz", **{name: data[name] for name in ("probs", "labels", "members")})
    np.savez(tmp_path / "people.npz", probs=data["humans"].astype(np.float32))
    return tmp_path / "nets.npz", tmp_path / "people.npz"


def test_families_are_the_beginnings_of_names_and_googlenet_is_an_inception():
    names = ("densenet121", "densenet161", "googlenet", "inception_v3", "vgg11_bn", "resnet_orig")
    assert collection.families(names) == {
        "densenet": ["densenet121", "densenet161"],
        "inception": ["googlenet", "inception_v3"],
        "vgg": ["vgg11_bn"],
        "resnet": ["resnet_orig"],
    }


def test_opinions_about_other_images_are_refused_with_both_shapes(files, tmp_path):
    np.savez(tmp_path / "few.npz", probs=np.full((7, 3), 1 / 3))
    with pytest.raises(hc.InvalidInputError, match=r"`humans`.*\(120, 3\).*\(7, 3\)"):
        collection.read(files[0], tmp_path / "few.npz")


def test_the_nearest_point_of_a_segment_is_the_one_found_by_hand():
    # Between (1, 0, 0) and (0, 1, 0) lies (.6, .4, 0); the point's .1 of the third class is beyond it.
    members = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    point = np.array([[0.55, 0.35, 0.1]])
    nearest = humans.nearest_points(members, point)
    assert nearest[0, 2] == 0
    assert humans.total_variation(point, nearest)[0] == pytest.approx(0.1, abs=1e-9)


def test_the_nearest_point_is_no_farther_than_any_of_a_fine_grid_of_the_hull():
    rng = np.random.default_rng(2)
    members = rng.dirichlet(np.ones(4), size=(6, 3))
    points = rng.dirichlet(np.ones(4), size=6)
    found = humans.total_variation(points, humans.nearest_points(members, points))
    steps = np.arange(0, 101) / 100
    grid = np.array([(a, b, 1 - a - b) for a, b in itertools.product(steps, steps) if a + b <= 1])
    distances = humans.total_variation(grid @ members, points[:, None])
    assert np.all(found <= distances.min(axis=1) + 1e-9)
    # A step of .01 in two weights moves a mixture by at most .02.
    assert np.all(found >= distances.min(axis=1) - 0.02)


def test_instances_of_several_blocks_keep_their_order(monkeypatch):
    rng = np.random.default_rng(3)
    members, points = rng.dirichlet(np.ones(3), size=(7, 2)), rng.dirichlet(np.ones(3), size=7)
    together = humans.total_variation(points, humans.nearest_points(members, points))
    monkeypatch.setattr(humans, "_BLOCK", 2)
    apart = humans.total_variation(points, humans.nearest_points(members, points))
    np.testing.assert_allclose(apart, together, atol=1e-9)


def test_a_point_in_the_hull_has_distance_zero_and_is_contained(small):
    inside = small.networks.mix([0.1, 0.2, 0.3, 0.4])
    nearest = humans.nearest_points(small.networks.probs, inside)
    assert humans.total_variation(inside, nearest).max() < 1e-6
    assert small.networks.contains(inside).all()


def test_the_closest_combination_is_the_one_the_points_were_made_of(small):
    weights = np.array([0.5, 0.0, 0.2, 0.3])
    points = small.networks.mix(weights)
    found = humans.closest_combination(small.networks.probs, points, n_steps=3000)
    np.testing.assert_allclose(found, weights, atol=0.01)


def test_distances_grow_from_the_hull_to_one_network(small):
    found = humans.distances(small, 0)
    hull = found["nearest point of the hull"]
    for name in ("nearest network", "one combination for all images", "average"):
        assert np.all(hull <= found[name] + 1e-9)


def test_votes_drawn_again_are_as_many_and_center_on_the_distribution():
    people = np.tile([0.7, 0.3, 0.0], (5000, 1))
    again = humans.redrawn(people, 0)
    counts = again * humans.VOTES
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    np.testing.assert_allclose(again.mean(axis=0), people[0], atol=0.005)


def test_labels_are_drawn_as_often_as_their_distribution_says():
    truth = np.tile([0.5, 0.0, 0.2, 0.3, 0.0], (40_000, 1))
    labels = votes.drawn(truth, np.random.default_rng(0))
    shares = np.bincount(labels, minlength=5) / len(labels)
    np.testing.assert_allclose(shares, truth[0], atol=0.01)
    assert shares[1] == shares[4] == 0


def test_certain_rows_are_drawn_without_chance():
    labels = votes.drawn(np.eye(4)[[2, 0, 3]], np.random.default_rng(0))
    assert labels.tolist() == [2, 0, 3]


def test_a_seed_draws_the_votes_again_and_another_seed_others(small):
    def values(seed):
        effort = Effort(**{**vars(SMALL), "seed": seed, "n_draws": 1})
        rows = votes.by_truth(small, small.networks.mean(), effort)
        return [(row["labels"], row["disagreeing"]) for row in rows]

    assert values(0) == values(0)
    assert values(0) != values(5)


def test_the_pvalues_of_networks_are_adjusted_over_networks_and_measures(small):
    rows = alone.alone(small, SMALL)
    assert [row["network"] for row in rows] == [*NAMES, "average"]
    found = [
        (row[f"{m}_p"], row[f"{m}_holm"]) for row in rows[:-1] for m in ("ece_conf", "ece_cwise")
    ]
    # Holm by hand: the i-th smallest of eight times 8 - i, and never less than the one before.
    expected = np.maximum.accumulate([(8 - i) * p for i, (p, _) in enumerate(sorted(found))])
    np.testing.assert_allclose([holm for _, holm in sorted(found)], expected.clip(max=1.0))
    assert rows[-1]["ece_conf_holm"] is None
    labels, probs = small.labels, small.networks.probs
    assert rows[2]["accuracy"] == np.mean(probs[:, 2].argmax(axis=1) == labels)
    assert rows[-1]["confidence"] == pytest.approx(probs.mean(axis=1).max(axis=1).mean())


def test_weights_are_judged_on_rows_that_did_not_choose_them(small):
    scores, weights = whole.splits(small, SMALL)
    (first, chosen), (second, judged) = hc.split(small.networks.probs, small.labels, rng=0)
    logs = [-np.log(first[np.arange(len(chosen)), m, chosen]).mean() for m in range(4)]
    best = int(np.argmin(logs))
    expected = np.mean(second[:, best].argmax(axis=1) == judged)
    (row,) = [row for row in scores if row["split"] == 0 and row["way"] == "best network"]
    assert row["accuracy"] == expected
    for measure in ("ece_conf", "ece_cwise"):
        total = sum(r["weight"] for r in weights if r["split"] == 1 and r["measure"] == measure)
        assert total == pytest.approx(1.0)


def test_every_pair_is_looked_at_once_and_counted_by_family(small):
    rows = subsets.pairs(small, SMALL)
    assert {frozenset((row["first"], row["second"])) for row in rows} == {
        frozenset(pair) for pair in itertools.combinations(NAMES, 2)
    }
    counts = {row["pairs"]: row["n_pairs"] for row in subsets.counted(rows)}
    assert counts == {"within a family": 2, "across families": 4}


def test_a_share_has_wilson_s_interval():
    # Wilson (1927) by hand: 1 of 10 at z = 1.959964.
    found = share(np.arange(10) == 3)
    assert with_interval(found, "share") == ".100 (.018, .404)"


def test_every_part_prints_its_numbers_and_writes_tables_and_figures(files, tmp_path, capsys):
    out = tmp_path / "out"
    main([*map(str, files), f"--out={out}", *TINY])
    printed = capsys.readouterr().out
    for name in PARTS:
        assert f"{name} took" in printed
    paths = sorted(out.iterdir())
    assert {path.stem for path in paths if path.suffix == ".svg"} == {
        *("networks", "weights", "pairs", "sizes", "humans"),
    }
    for path in paths:
        assert str(path) in printed
        if path.suffix == ".svg":
            content = path.read_text()
            ElementTree.fromstring(content)
            assert "<dc:date>" not in content
        else:
            assert list(csv.DictReader(path.read_text().splitlines()))


def test_the_same_command_writes_the_same_files(files, tmp_path):
    def told(folder):
        main([*map(str, files), f"--out={folder}", *TINY, "--only", "whole", "--rows", "60"])
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert told(tmp_path / "first") == told(tmp_path / "again")


@pytest.mark.skipif(not (DATA / "cifar10h_probs.npz").exists(), reason="the files are not here")
def test_people_and_networks_look_at_the_same_images():
    found = collection.read(DATA / "cifar10_14nets.npz", DATA / "cifar10h_probs.npz", rows=500)
    assert len(found.names) == 14
    # People's commonest answer is the label of nearly all images; in another order of a tenth.
    assert (found.humans.argmax(axis=1) == found.labels).mean() > 0.95
    assert set(collection.families(found.names)) == {
        *("densenet", "inception", "mobilenet", "resnet", "vgg"),
    }
