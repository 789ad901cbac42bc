"""What do the networks learn from, and on what are they tested? Bacteria and Proteins of Table 1."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from experiments.deep_ensembles.sequences import catalysis, species
from experiments.deep_ensembles.sequences.files import LabelledFeatures
from experiments.deep_ensembles.sequences.labelled import Labelled, first_classes
from experiments.deep_ensembles.sequences.tfidf import AMINO_ACIDS, NUCLEOTIDES, Tfidf
from hullcal import InvalidInputError

__all__ = ["SequenceTask", "bacteria", "from_features", "from_sequences", "proteins"]

#: What the paper holds out for calibration and test: 2 * 1136 of 12,859 bacteria and 2 * 5088 of
#: 22,006 proteins.
BACTERIA_HELD, PROTEINS_HELD = 2272 / 12859, 10176 / 22006
#: So many rows of a class at most, and there are about as many in all as in the paper.
BACTERIA_MOST, PROTEINS_MOST = 21, 16


@dataclass(frozen=True)
class SequenceTask:
    """Features and labels of the training rows and of the rows held out.

    The labels are positions in `classes`. What is held out is for calibration and test together.
    """

    name: str
    train_features: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    held_features: NDArray[np.float32]
    held_labels: NDArray[np.int64]
    classes: tuple[str, ...]


def bacteria(
    seed: int = 0, *, n_classes: int | None = None, folder: Path | None = None
) -> SequenceTask:
    """Species from 16S rRNA: tf-idf of 3-, 4- and 5-grams, 1,344 columns.

    Parameters
    ----------
    seed : int
        Of the choice of sequences and of the split.
    n_classes : int, optional
        Keep the first few classes only, for a small version.
    folder : Path, optional
        Of the database; downloaded if left out.

    Returns
    -------
    SequenceTask
        With all classes K=1,425: 10,520 training rows and 2,258 held out.
    """
    chosen = species.load(folder or _downloaded("silva"), max_count=BACTERIA_MOST, seed=seed)
    encoder = Tfidf((3, 4, 5), NUCLEOTIDES)
    options: dict[str, Any] = {"held": BACTERIA_HELD, "seed": seed, "n_classes": n_classes}
    return from_sequences("Bacteria", chosen, encoder, **options)


def proteins(
    seed: int = 0, *, n_classes: int | None = None, folder: Path | None = None
) -> SequenceTask:
    """Catalytic activities from proteins: tf-idf of 3-grams, 8,000 columns.

    Parameters
    ----------
    seed, n_classes, folder
        As for `bacteria`.

    Returns
    -------
    SequenceTask
        With all classes K=1,688: 11,467 training rows and 9,865 held out.
    """
    chosen = catalysis.load(folder or _downloaded("swissprot"), max_count=PROTEINS_MOST, seed=seed)
    encoder = Tfidf((3,), AMINO_ACIDS)
    options: dict[str, Any] = {"held": PROTEINS_HELD, "seed": seed, "n_classes": n_classes}
    return from_sequences("Proteins", chosen, encoder, **options)


def from_sequences(
    name: str,
    labelled: Labelled,
    encoder: Tfidf,
    *,
    held: float,
    seed: int = 0,
    n_classes: int | None = None,
) -> SequenceTask:
    """Split sequences by class, and encode them by what the training rows tell.

    Parameters
    ----------
    name : str
        Of the data set.
    labelled : Labelled
        At least two sequences of each class.
    encoder : Tfidf
        Fitted here.
    held : float
        Share of the rows to hold out; it is raised until there is one for each class on average.
    seed : int
        Of the split.
    n_classes : int, optional
        Keep the first few classes only.

    Returns
    -------
    SequenceTask
    """
    if n_classes is not None:
        labelled = first_classes(labelled, n_classes)
    classes, labels, train, test = _split(labelled.labels, held, seed)
    return SequenceTask(
        name,
        encoder.fit_transform([labelled.sequences[i] for i in train]),
        labels[train],
        encoder.transform([labelled.sequences[i] for i in test]),
        labels[test],
        classes,
    )


def from_features(
    name: str, labelled: LabelledFeatures, *, held: float, seed: int = 0
) -> SequenceTask:
    """Split rows that are features already; parameters as for `from_sequences`."""
    classes, labels, train, test = _split(labelled.labels, held, seed)
    features = labelled.features
    return SequenceTask(name, features[train], labels[train], features[test], labels[test], classes)


def _split(
    names: Sequence[str], held: float, seed: int
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Give the classes, the labels, and the rows to train on and to hold out."""
    if not 0 < held < 1:
        raise InvalidInputError(
            f"`held` must be a share between 0 and 1; got {held}. The paper holds out "
            f"{BACTERIA_HELD:.3f} of the bacteria and {PROTEINS_HELD:.3f} of the proteins."
        )
    rare = sorted(name for name, count in Counter(names).items() if count < 2)
    if rare or len(set(names)) < 2:
        raise InvalidInputError(
            f"`labelled` must have two classes and two rows of each; got {len(set(names))} classes, "
            f"{len(rare)} with one row{f' ({rare[0]}, ...)' if rare else ''}. Leave those out."
        )
    classes, labels = np.unique(np.asarray(names), return_inverse=True)
    # Stratification wants room for every class on both sides.
    n_held = min(max(ceil(held * len(labels)), len(classes)), len(labels) - len(classes))
    train, test = train_test_split(
        np.arange(len(labels)), test_size=n_held, random_state=seed, stratify=labels
    )
    unseen = np.setdiff1d(labels, labels[train])
    if len(unseen):
        raise InvalidInputError(
            f"`held` must leave a training row of each class; got {held}, which leaves none of "
            f"{len(unseen)}. Hold out less."
        )
    return tuple(map(str, classes)), labels, train, test


def _downloaded(name: str) -> Path:
    # Not needed by those who bring a folder, nor by those who bring files of their own.
    from experiments.deep_ensembles.downloads import unpacked

    return Path(unpacked(name))
