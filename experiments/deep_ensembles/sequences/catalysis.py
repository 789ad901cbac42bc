"""Which reaction does a protein catalyse? The data set Proteins.

The sequences are those of Swiss-Prot of January 2014, with the terms of the Gene Ontology that each
is annotated with. A class is the most specific catalytic term of a protein.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TextIO

from experiments.deep_ensembles.sequences import blast
from experiments.deep_ensembles.sequences.labelled import Labelled, balanced
from hullcal import InvalidInputError

__all__ = ["CATALYTIC_ACTIVITY", "ancestry", "load", "most_specific"]

CATALYTIC_ACTIVITY = "GO:0003824"

Ancestors = Callable[[str], frozenset[str]]


def ancestry(lines: Iterable[str], name: str = "goGraph.txt") -> Ancestors:
    """Read a graph of terms, and give the function from a term to all terms above it.

    Parameters
    ----------
    lines : iterable of str
        Parent, child, a number and the kind of relation, between tabs. Only `is_a` counts.
    name : str
        Of the file, for messages.
    """
    parents: dict[str, set[str]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 4:
            raise InvalidInputError(
                f"`{name}` must have four fields in a line; got {len(fields)} in line {number}. "
                f"Fetch it again."
            )
        parent, child, _, relation = fields
        if relation == "is_a":
            parents.setdefault(child, set()).add(parent)

    @cache
    def above(term: str) -> frozenset[str]:
        direct = parents.get(term, set())
        return frozenset(direct).union(*map(above, direct))

    return above


def most_specific(terms: set[str], above: Ancestors) -> str | None:
    """Give the one catalytic term that is above no other term; None if there is none or are several."""
    general = frozenset().union(*map(above, terms))
    specific = [term for term in terms - general if CATALYTIC_ACTIVITY in above(term)]
    return specific[0] if len(specific) == 1 else None


def load(
    folder: Path,
    *,
    min_count: int = 4,
    max_count: int = 8,
    min_length: int = 1,
    seed: int = 0,
) -> Labelled:
    """Read the proteins with exactly one most specific catalytic term.

    Parameters
    ----------
    folder : Path
        Where the BLAST database `goasp.fasta`, `goasp_annot.dat` and `goGraph.txt` lie.
    min_count, max_count : int
        Proteins of a term: with fewer it is left out, with more some are drawn.
    min_length : int
        Amino acids of the shortest protein.
    seed : int
        Of the draws.

    Returns
    -------
    Labelled
    """
    with _opened(folder, "goGraph.txt") as lines:
        above = ancestry(lines)
    pairs = (
        (sequence, term)
        for sequence, terms in _annotated(folder)
        if len(sequence) >= min_length and (term := most_specific(terms, above))
    )
    return balanced(pairs, min_count=min_count, max_count=max_count, seed=seed)


def _opened(folder: Path, name: str) -> TextIO:
    try:
        return (folder / name).open(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"`folder` must hold {name}; it cannot be read in {folder} ({error.strerror}). It is part "
            f"of the Debian package metastudent-data."
        ) from error


def _annotated(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """Give every sequence with its terms: the annotations come in the order of the database."""
    records = blast.proteins(folder / "goasp.fasta")
    number = 0
    with _opened(folder, "goasp_annot.dat") as lines:
        for number, line in enumerate(lines, 1):
            accession, *terms = line.split() or [""]
            record = next(records, None)
            if record is None or record.title.partition("|")[0] != accession:
                came = "the end" if record is None else f"`{record.title}`"
                raise _unlike(f"{accession} in line {number}, where the database has {came}")
            yield record.sequence, set(terms)
    if next(records, None) is not None:
        raise _unlike(f"{number} lines for more sequences")


def _unlike(came: str) -> InvalidInputError:
    return InvalidInputError(
        f"`goasp_annot.dat` must be in the order of goasp.fasta; got {came}. Fetch both again."
    )
