"""Which form has a file of one's own sequences? Its suffix says, and a task is made of it."""

from pathlib import Path

from experiments.deep_ensembles.sequences import files
from experiments.deep_ensembles.sequences.tasks import (
    SequenceTask,
    from_features,
    from_sequences,
)
from experiments.deep_ensembles.sequences.tfidf import AMINO_ACIDS, NUCLEOTIDES, Tfidf
from hullcal import InvalidInputError

TABLE = (".csv", ".tsv")
FASTA = (".fasta", ".fa", ".fna", ".faa")
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
FORMS = (
    f"A table ({', '.join(TABLE)}) has a header with the columns `sequence` and `label`; FASTA "
    f"({', '.join(FASTA)}) has headers as in `>identifier label`, and the label may be several words; "
    f"svmlight ({', '.join(SVMLIGHT)}) has features, lines of an integer label and index:value. All "
    "may be packed, with .gz behind the suffix."
)
#: The paper's n-grams.
_ENCODINGS = {"bacteria": ((3, 4, 5), NUCLEOTIDES), "proteins": ((3,), AMINO_ACIDS)}
_HELD = 0.3


def load(name: str, path: Path, *, seed: int) -> SequenceTask:
    """Read sequences and encode them, or read features, and split them by class.

    Parameters
    ----------
    name : {"bacteria", "proteins"}
    path : Path
        A file as `FORMS` has it.
    seed : int
        Of the split.

    Returns
    -------
    SequenceTask
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in TABLE + FASTA + SVMLIGHT:
        raise InvalidInputError(
            f"`--path {name}=FILE` must say by its suffix which form it has; got {path.name!r}. {FORMS}"
        )
    if not path.is_file():
        raise InvalidInputError(
            f"`--path {name}=FILE` must name a file that exists; got {path}. {FORMS} The paper's: "
            f"{files.where_to_get(name)}"
        )
    if suffix in SVMLIGHT:
        return from_features(name, files.from_svmlight(path), held=_HELD, seed=seed)
    if suffix in TABLE:
        labelled = files.from_csv(path, "sequence", "label")
    else:
        labelled = files.from_fasta(path, lambda header: _label(path, header))
    return from_sequences(name, labelled, Tfidf(*_ENCODINGS[name]), held=_HELD, seed=seed)


def _label(path: Path, header: str) -> str:
    # To leave such a sequence out would be to test other data than were named.
    if len(words := header.split(maxsplit=1)) < 2:
        raise InvalidInputError(
            f"`{path}` must have headers as in '>identifier label'; got {'>' + header!r}. Write the "
            "class of the sequence behind its name."
        )
    return words[1]
