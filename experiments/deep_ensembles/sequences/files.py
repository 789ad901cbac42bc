"""How do sequences in one's own files become a data set? CSV, FASTA and svmlight.

The authors' own Bacteria and Proteins come through here too: `where_to_get` says what they are.
"""

import csv
import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from experiments.deep_ensembles.sequences.labelled import Labelled
from hullcal import InvalidInputError

__all__ = ["LabelledFeatures", "from_csv", "from_fasta", "from_svmlight", "where_to_get"]

_FORMATS = (
    "As sequences: `from_csv` takes a column of sequences and one of labels (.csv, .tsv), "
    "`from_fasta` takes the label from each header. As features: `from_svmlight` takes lines of "
    "label and index:value. All take .gz. `from_sequences` and `from_features` in tasks.py split them."
)
_ORIGINALS = {
    "Bacteria": (
        "16S rRNA sequences of bacteria (2,659 classes): the collection of RIKEN (2013), with n-grams "
        "as in Fiannaca et al. (2018), BMC Bioinformatics 19(S7):198. Ask there, or the authors of the "
        "test; `bacteria()` has SILVA in its place."
    ),
    "Proteins": (
        "Enzymes (3,485 classes): the data of DEEPre, Li et al. (2018), Bioinformatics 34(5), with "
        "encodings of functional domains beside the sequences. Ask there, or the authors of the test; "
        "`proteins()` has Swiss-Prot in their place."
    ),
}
_SEQUENCE = re.compile(r"[A-Za-z*.-]+")


@dataclass(frozen=True)
class LabelledFeatures:
    """Rows of features, and the class of each by name."""

    features: NDArray[np.float32]
    labels: list[str]


def where_to_get(name: str) -> str:
    """Say what the original of a data set is, and in which formats it can be read.

    Parameters
    ----------
    name : str
        "Bacteria" or "Proteins".
    """
    original = _ORIGINALS.get(name.capitalize())
    if original is None:
        raise InvalidInputError(
            f"`name` must be one of {', '.join(_ORIGINALS)}; got {name!r}. The other data sets of the "
            f"paper are images."
        )
    return f"{original}\n{_FORMATS}"


def from_csv(path: str | Path, sequence_column: str, label_column: str) -> Labelled:
    """Read a table with a header, between tabs if its name has `.tsv` and between commas if not."""
    path, labelled = Path(path), Labelled([], [])
    with _opened(path) as file:
        table = csv.DictReader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
        found = table.fieldnames or []
        for column in (sequence_column, label_column):
            if column not in found:
                raise _bad(path, f"have a column {column!r}", f"the columns {list(found)}")
        for row in table:
            where = f"in line {table.line_num}"
            label = (row[label_column] or "").strip()
            if not label:
                raise _bad(path, "have a label in each row", f"none {where}")
            labelled.sequences.append(_sequence(path, row[sequence_column] or "", where))
            labelled.labels.append(label)
    return _some(path, labelled)


def from_fasta(path: str | Path, label: Callable[[str], str | None]) -> Labelled:
    """Read the sequences of a FASTA file.

    Parameters
    ----------
    path : str or Path
    label : callable
        From a header, without its ">", to a label; a sequence without one (None) is left out.

    Returns
    -------
    Labelled
    """
    path, labelled = Path(path), Labelled([], [])
    with _opened(path) as file:
        for header, lines in _fasta(path, file):
            sequence = _sequence(path, "".join(lines), f"under {header!r}")
            name = label(header)
            if name is not None:
                labelled.sequences.append(sequence)
                labelled.labels.append(name)
    return _some(path, labelled)


def from_svmlight(
    path: str | Path, *, n_features: int | None = None, zero_based: bool | str = "auto"
) -> LabelledFeatures:
    """Read features in the format of svmlight, one integer label in a line.

    Parameters
    ----------
    path : str or Path
    n_features : int, optional
        Columns in all; the largest index decides if this is left out.
    zero_based : bool or "auto"
        Whether the first column has the index 0; "auto" takes it so if that index occurs.

    Returns
    -------
    LabelledFeatures
        Dense, in float32; labels are the integers as text.
    """
    path = Path(path)
    rule = "hold lines of an integer label and ascending index:value"
    try:
        with path.open("rb"):
            pass  # its error tells the file, that of the reader does not always
        matrix, labels = load_svmlight_file(
            str(path), n_features=n_features, zero_based=zero_based, dtype=np.float32
        )
    except (OSError, ValueError) as error:
        raise _bad(path, rule, f"an error ({error})") from error
    if not len(labels):
        raise _bad(path, rule, "no line")
    features = matrix.toarray()
    if not np.isfinite(features).all() or not np.array_equal(labels, np.round(labels)):
        raise _bad(path, rule, "values that are not finite, or labels that are not integers")
    return LabelledFeatures(features, [str(int(label)) for label in labels])


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise _bad(path, "be a readable text in UTF-8", f"an error ({error})") from error


def _fasta(path: Path, file: TextIO) -> Iterator[tuple[str, list[str]]]:
    header: str | None = None
    lines: list[str] = []
    for line in map(str.strip, file):
        if line.startswith(">"):
            if header is not None:
                yield header, lines
            header, lines = line[1:].strip(), []
        elif header is not None:
            lines.append(line)
        elif line:
            raise _bad(path, "begin with a header, as in '>name'", repr(line[:40]))
    if header is not None:
        yield header, lines


def _sequence(path: Path, text: str, where: str) -> str:
    sequence = "".join(text.split()).upper()
    if not _SEQUENCE.fullmatch(sequence):
        raise _bad(path, "hold sequences of letters", f"{sequence[:40]!r} {where}")
    return sequence


def _some(path: Path, labelled: Labelled) -> Labelled:
    if not len(labelled):
        raise _bad(path, "hold a sequence with a label", "none")
    return labelled


def _bad(path: Path, rule: str, came: str) -> InvalidInputError:
    return InvalidInputError(f"`{path}` must {rule}; got {came}. {_FORMATS}")
