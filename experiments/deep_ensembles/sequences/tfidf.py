"""How often does each n-gram stand in a sequence? tf-idf, and columns on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hullcal import InvalidInputError

__all__ = ["AMINO_ACIDS", "NUCLEOTIDES", "Tfidf"]

NUCLEOTIDES = "ACGT"
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"

#: A column that is constant in training has no scale; rounding alone gives it a spread.
_LEAST_SPREAD = 1e-6
#: Letters outside the alphabet, as a share of all: more than this is another alphabet.
_MOST_STRANGE = 0.1

Features = NDArray[np.float32]


@dataclass
class Tfidf:
    """Standardised tf-idf of all n-grams over an alphabet.

    An n-gram that stands c times in a sequence and in d of the n training sequences counts
    (1 + log c)(1 + log((1 + n) / (1 + d))). A row is divided by its length, then columns are shifted
    and scaled by the mean and the standard deviation of the training rows: with raw tf-idf, whose
    entries are small, gradient descent hardly moves.

    Parameters
    ----------
    n_grams : sequence of int
        Lengths of the n-grams; the vocabulary is all of them, so none depends on the data.
    alphabet : str
        Letters. An n-gram with any other letter is not counted.

    Examples
    --------
    >>> Tfidf((1, 2), "AC").vocabulary
    ('A', 'C', 'AA', 'AC', 'CA', 'CC')
    """

    n_grams: Sequence[int]
    alphabet: str
    _idf: NDArray[np.float64] | None = field(default=None, init=False, repr=False)
    _mean: Features = field(init=False, repr=False)
    _scale: Features = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.n_grams or min(self.n_grams) < 1 or len(set(self.n_grams)) < len(self.n_grams):
            raise InvalidInputError(
                f"`n_grams` must be different lengths of at least 1; got {self.n_grams!r}. The paper "
                f"has (3, 4, 5) for nucleotides and (3,) for amino acids."
            )
        letters = self.alphabet
        if not (letters and letters.isascii()) or len(set(letters)) < len(letters):
            raise InvalidInputError(
                f"`alphabet` must be different ASCII letters; got {letters!r}. The paper's are "
                f"{NUCLEOTIDES} and {AMINO_ACIDS}."
            )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The n-grams in the order of the columns."""
        return tuple(
            "".join(letters) for n in self.n_grams for letters in product(self.alphabet, repeat=n)
        )

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return sum(len(self.alphabet) ** n for n in self.n_grams)

    def counts(self, sequences: Sequence[str]) -> Features:
        """Count the n-grams of every sequence, overlapping ones too."""
        base = len(self.alphabet)
        # A digit so negative that no others make up for it: the number is negative if one of its is.
        position = np.full(256, -(base ** (max(self.n_grams) + 1)))
        position[list(self.alphabet.encode())] = np.arange(base)
        counted = np.zeros((len(sequences), self.n_features), np.float32)
        for row, sequence in zip(counted, sequences, strict=True):
            digits = position[np.frombuffer(sequence.encode("ascii", "replace"), np.uint8)]
            first = 0
            for n in self.n_grams:
                last = first + base**n
                row[first:last] = _numbers(digits, n, base)
                first = last
        return counted

    def fit_transform(self, sequences: Sequence[str]) -> Features:
        """Learn the weights of the n-grams and the scales, and give the features."""
        if not sequences:
            raise InvalidInputError(
                "`sequences` must not be empty; got none. Fit on the training rows."
            )
        self._check_letters(sequences)
        weighted = self.counts(sequences)
        frequencies = np.count_nonzero(weighted, axis=0)
        self._idf = 1 + np.log((1 + len(sequences)) / (1 + frequencies))
        _weigh(weighted, self._idf)
        self._mean = weighted.mean(axis=0, dtype=np.float64).astype(np.float32)
        spread = weighted.std(axis=0, dtype=np.float64)
        self._scale = np.where(spread > _LEAST_SPREAD, spread, 1).astype(np.float32)
        return self._standardise(weighted)

    def transform(self, sequences: Sequence[str]) -> Features:
        """Give the features of other sequences, with the weights and scales of the training rows."""
        if self._idf is None:
            raise InvalidInputError(
                "`Tfidf` must be fitted before it transforms; got no training rows. Call "
                "`fit_transform` with them first."
            )
        weighted = self.counts(sequences)
        _weigh(weighted, self._idf)
        return self._standardise(weighted)

    def _check_letters(self, sequences: Sequence[str]) -> None:
        letters = "".join(sequences)
        strange = len(letters.translate(dict.fromkeys(map(ord, self.alphabet))))
        if strange > _MOST_STRANGE * len(letters):
            raise InvalidInputError(
                f"`sequences` must be in the letters {self.alphabet}; got {strange} others of "
                f"{len(letters)}. Write them in capitals, and RNA with T for U."
            )

    def _standardise(self, weighted: Features) -> Features:
        weighted -= self._mean
        weighted /= self._scale
        return weighted


def _weigh(counted: Features, idf: NDArray[np.float64]) -> None:
    """Turn counts into tf-idf in place: 8,000 columns take hundreds of megabytes."""
    present = counted > 0
    np.log(counted, out=counted, where=present)
    np.add(counted, 1, out=counted, where=present)
    counted *= idf
    lengths = np.linalg.norm(counted, axis=1, keepdims=True)
    counted /= np.where(lengths > 0, lengths, 1)


def _numbers(digits: NDArray[np.int64], n: int, base: int) -> NDArray[np.int64]:
    """Count the numbers of n digits in a row, without the negative ones."""
    numbers = np.zeros(max(len(digits) - n + 1, 0), np.int64)
    for place in range(n):
        numbers = numbers * base + digits[place : place + len(numbers)]
    return np.bincount(numbers[numbers >= 0], minlength=base**n)
