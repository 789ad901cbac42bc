"""Bacteria and Proteins of Table 1: sequences with classes, from two databases or one's own files."""

import csv
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from experiments.deep_ensembles import blast
from experiments.deep_ensembles.downloads import unpacked
from hullcal import InvalidInputError


class Encoding(NamedTuple):
    """Which n-grams are counted, and where sequences come from."""

    n_grams: tuple[int, int]
    alphabet: str
    source: str
    #: So many rows of a class at most, and there are about as many in all as in the paper.
    most: int
    #: Share of the rows that the paper holds out for calibration and test.
    held: float
    original: str


ENCODINGS = {
    "bacteria": Encoding(
        (3, 5),
        "ACGT",
        "silva",
        21,
        2272 / 12859,
        "16S rRNA sequences of bacteria (2,659 classes): the collection of RIKEN (2013), with n-grams "
        "as in Fiannaca et al. (2018), BMC Bioinformatics 19(S7):198.",
    ),
    "proteins": Encoding(
        (3, 3),
        "ACDEFGHIKLMNPQRSTVWY",
        "swissprot",
        16,
        10176 / 22006,
        "Enzymes (3,485 classes): the data of DEEPre, Li et al. (2018), Bioinformatics 34(5), with "
        "encodings of functional domains beside the sequences.",
    ),
}
#: Share of one's own rows that is held out.
_HELD = 0.3
#: Letters outside the alphabet, as a share of all: more than this is another alphabet.
_MOST_STRANGE = 0.1

Pairs = list[tuple[str, str]]


class Data(NamedTuple):
    """Training rows, rows held out for calibration and test, and the names of the classes.

    Inputs are arrays or image files, and labels positions among the classes.
    """

    train_inputs: Any
    train_labels: NDArray[np.int64]
    held_inputs: Any
    held_labels: NDArray[np.int64]
    classes: tuple[str, ...]


def load(
    name: str, *, path: Path | None = None, seed: int = 0, n_classes: int | None = None
) -> Data:
    """Rows of "bacteria" or "proteins", from the paper's kind of database or from one's own file.

    The suffix of a file says which of the `FORMS` it has. The seed is of the choice of sequences and of
    the split; `n_classes` keeps the first few classes of the database only, for a trial.
    """
    encoding = ENCODINGS[name]
    if path is not None:
        read = _form(name, path)
        if read is from_svmlight:
            features, labels = from_svmlight(path)
            train, held, numbers, classes = split(labels, _HELD, seed)
            return Data(features[train], numbers[train], features[held], numbers[held], classes)
        pairs, share = read(path), _HELD
    else:
        database = {"bacteria": bacteria, "proteins": proteins}[name]
        found = database(unpacked(encoding.source))
        pairs = balanced(found, min_count=4, max_count=encoding.most, seed=seed)
        share = encoding.held
        if n_classes is not None:
            kept = set(sorted({label for _, label in pairs})[:n_classes])
            pairs = [pair for pair in pairs if pair[1] in kept]
    sequences, labels = zip(*pairs, strict=True)
    train, held, numbers, classes = split(labels, share, seed)
    inputs = tfidf([sequences[i] for i in train], [sequences[i] for i in held], encoding)
    return Data(inputs[0], numbers[train], inputs[1], numbers[held], classes)


def tfidf(
    train: Sequence[str], held: Sequence[str], encoding: Encoding
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features of both parts: 1 + log counts of all n-grams over the alphabet, weighted by training rows.

    The vocabulary is all n-grams, so none depends on the data; one with a strange letter is not counted.
    """
    alphabet = encoding.alphabet
    letters = "".join(train)
    strange = len(letters.translate(dict.fromkeys(map(ord, alphabet))))
    if strange > _MOST_STRANGE * len(letters):
        raise InvalidInputError(
            f"`sequences` must be in the letters {alphabet}; got {strange} others of {len(letters)}. "
            "Write RNA with T for U."
        )
    least, most = encoding.n_grams
    vectorizer = TfidfVectorizer(
        analyzer="char",
        lowercase=False,
        ngram_range=encoding.n_grams,
        vocabulary=[
            "".join(gram) for n in range(least, most + 1) for gram in product(alphabet, repeat=n)
        ],
        sublinear_tf=True,
        dtype=np.float32,
    )
    return vectorizer.fit_transform(train).toarray(), vectorizer.transform(held).toarray()


def split(
    names: Sequence[str], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Rows to train on and to hold out, by class, then all labels as numbers and the classes."""
    counts = Counter(names)
    rare = sorted(name for name, count in counts.items() if count < 2)
    if rare or len(counts) < 2:
        raise InvalidInputError(
            f"`labels` must have two classes and two rows of each; got {len(counts)} classes, "
            f"{len(rare)} with one row{f' ({rare[0]}, ...)' if rare else ''}. Leave those out."
        )
    classes, labels = np.unique(np.asarray(names), return_inverse=True)
    # Stratification wants room for every class on both sides.
    n_held = min(max(ceil(share * len(labels)), len(classes)), len(labels) - len(classes))
    train, held = train_test_split(
        np.arange(len(labels)), test_size=n_held, random_state=seed, stratify=labels
    )
    return train, held, labels, tuple(map(str, classes))


def balanced(
    pairs: Iterable[tuple[str, str]], *, min_count: int, max_count: int, seed: int
) -> Pairs:
    """Each sequence once, class by class, with `min_count` to `max_count` drawn of a class.

    A sequence that comes with two labels is left out: no classifier could tell which is right.
    """
    label_of: dict[str, str | None] = {}
    for sequence, label in pairs:
        same = label_of.setdefault(sequence, label) == label
        label_of[sequence] = label if same else None
    groups: dict[str, list[str]] = defaultdict(list)
    for sequence, only in label_of.items():
        if only is not None:
            groups[only].append(sequence)
    rng = np.random.default_rng(seed)
    chosen: Pairs = []
    for label, group in sorted(groups.items()):
        if len(group) >= min_count:
            drawn = np.sort(rng.permutation(len(group))[:max_count])
            chosen += [(group[i], label) for i in drawn]
    return chosen


# Bacteria: species of SILVA SSURef 93, whose titles are those of GenBank


#: After the accession: a genus and an epithet in full. "sp." is no epithet, nor is "witches'-broom".
_BINOMIAL = re.compile(r"(?:\S+\|\S* +)?([A-Z][a-z]{2,}) ([a-z][a-z-]{2,})(?![\w.'])")
#: Ranks above the genus take its place where it is not known.
_RANK = re.compile(r"aceae$|ales$|archaeon$|proteobacteri|^(Actino|Cyano|Eu)?[Bb]acteri(a|um|al)$")
#: What else stands at the place of a genus: where it was found, how it lives, what it made ill.
_FOUND = (
    "Uncultured Uncultivated Unidentified Unclassified Unknown Candidatus Candidate Alpha Beta Gamma "
    "Delta Epsilon Primary Secondary Endosymbiont Symbiont Marine Arctic Antarctic Polar Glacial "
    "Glacier River Hydrothermal Thermal Soil Agricultural Swine Poultry Bovine Human Rumen Drinking "
    "Mucus Sponge Banisveld Blackwater Hailaer Low High Gram Gas Anoxic Magnetic Filamentous "
    "Psychrophilic Benzene Enrichment Bisgaard Coconut Clover Flavescence Bermuda Napier Nebraska "
    "Pigeon Rape Rubus Strawberry Sugarcane Sweet Tomato Rainbow"
)
#: Hosts, named for what lives in them, and other eukaryotes under the heading of 16S.
_EUKARYOTES = (
    "Alvinella Bathymodiolus Calyptogena Haemaphysalis Leucoagaricus Maorithyas Olavius Oligobrachia "
    "Sitophilus Tuber Acanthamoeba Aureobasidium Brachiola Candida Cryptosporidium Encephalitozoon "
    "Entamoeba Euglena Giardia Nosema Skeletonema Theileria Trichomonas"
)
_WHAT = (
    "gene genes partial clone strain isolate bacterium bacteria bacterial proteobacterium "
    "cyanobacterium actinobacterium archaeon crenarchaeote organism species genomospecies taxon group "
    "phytoplasma yellows yellowing eubacterium symbiont endosymbiont chloroplast plastid oral marine from"
)
_NO_GENUS = frozenset(_FOUND.split() + _EUKARYOTES.split())
_NO_EPITHET = frozenset(_WHAT.split())
#: Organelles have a 16S rRNA too, some eukaryotes something like one, and a host is no bacterium.
_ELSEWHERE = re.compile(r"chloroplast|plastid|mitochond|16S.like|18S|symbiont", re.IGNORECASE)
_WHOLE = re.compile(r"genom|chromosome", re.IGNORECASE)
_LEAST_LENGTH = 900


def species_of(title: str) -> str | None:
    """The genus and species epithet that a title begins with; None without a named bacterium.

    >>> species_of("gb|D30032| Actinobacillus pleuropneumoniae gene for 16S rRNA. 1543 bp")
    'Actinobacillus pleuropneumoniae'
    >>> species_of("gb|AF456212| Pseudomonas sp. gs7 16S ribosomal RNA gene") is None
    True
    """
    found = _BINOMIAL.match(title)
    if found is None or _ELSEWHERE.search(title):
        return None
    genus, epithet = found.groups()
    if genus in _NO_GENUS or _RANK.search(genus) or epithet in _NO_EPITHET:
        return None
    return f"{genus} {epithet}"


def bacteria(folder: Path) -> Pairs:
    """Sequences of named species, long enough, whose title names the 16S rRNA.

    That of a genome names no gene, and is taken if another title tells that its species has a 16S
    rRNA: eukaryotes have genomes too.
    """
    named, whole = [], []
    for title, sequence in blast.nucleotides(folder / "SSURef_93.fasta"):
        if len(sequence) >= _LEAST_LENGTH and (species := species_of(title)):
            if "16S" in title:
                named.append((sequence, species))
            elif _WHOLE.search(title):
                whole.append((sequence, species))
    known = {species for _, species in named}
    return named + [pair for pair in whole if pair[1] in known]


# Proteins: the most specific catalytic term of the Gene Ontology, in Swiss-Prot of January 2014

CATALYTIC_ACTIVITY = "GO:0003824"
Ancestors = Callable[[str], frozenset[str]]


def ancestry(lines: Iterable[str]) -> Ancestors:
    """The function from a term to all terms above it.

    A line of the graph holds parent, child, a number and the kind of relation, of which `is_a` counts.
    """
    parents: dict[str, set[str]] = {}
    for line in lines:
        parent, child, _, relation = line.rstrip("\n").split("\t")
        if relation == "is_a":
            parents.setdefault(child, set()).add(parent)

    @cache
    def above(term: str) -> frozenset[str]:
        direct = parents.get(term, set())
        return frozenset(direct).union(*map(above, direct))

    return above


def most_specific(terms: set[str], above: Ancestors) -> str | None:
    """The one catalytic term that is above no other term; None if there is none or are several."""
    general = frozenset().union(*map(above, terms))
    specific = [term for term in terms - general if CATALYTIC_ACTIVITY in above(term)]
    return specific[0] if len(specific) == 1 else None


def proteins(folder: Path) -> Iterator[tuple[str, str]]:
    """Sequences with exactly one most specific catalytic term; annotations are in database order."""
    with (folder / "goGraph.txt").open(encoding="utf-8") as lines:
        above = ancestry(lines)
    annotations = (folder / "goasp_annot.dat").read_text(encoding="utf-8").splitlines()
    records = blast.proteins(folder / "goasp.fasta")
    for line, (title, sequence) in zip(annotations, records, strict=True):
        accession, *terms = line.split()
        if title.partition("|")[0] != accession:
            raise InvalidInputError(
                f"`goasp_annot.dat` must be in the order of goasp.fasta; got {accession}, where the "
                f"database has `{title}`. Fetch both again."
            )
        if term := most_specific(set(terms), above):
            yield sequence, term


# One's own files

TABLE = (".csv", ".tsv")
FASTA = (".fasta", ".fa", ".fna", ".faa")
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
FORMS = (
    f"A table ({', '.join(TABLE)}) has a header with the columns `sequence` and `label`; FASTA "
    f"({', '.join(FASTA)}) has headers as in `>identifier label`, and the label may be several words; "
    f"svmlight ({', '.join(SVMLIGHT)}) has features, lines of an integer label and index:value. All "
    "may be packed, with .gz behind the suffix."
)
_SEQUENCE = re.compile(r"[A-Za-z*.-]+")


def _form(name: str, path: Path) -> Callable[[Path], Pairs]:
    """The reader that the suffix of a file asks for."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    readers = dict.fromkeys(TABLE, from_table) | dict.fromkeys(FASTA, from_fasta)
    readers |= dict.fromkeys(SVMLIGHT, from_svmlight)
    if suffix not in readers:
        raise InvalidInputError(
            f"`--path {name}=FILE` must say by its suffix which form it has; got {path.name!r}. {FORMS}"
        )
    if not path.is_file():
        raise InvalidInputError(
            f"`--path {name}=FILE` must name a file that exists; got {path}. {FORMS} The paper's: "
            f"{ENCODINGS[name].original} Ask there, or the authors of the test."
        )
    return readers[suffix]


def from_table(path: Path) -> Pairs:
    """Sequences and labels of a table, between tabs if its name has `.tsv` and between commas if not."""
    pairs: Pairs = []
    with _opened(path) as file:
        table = csv.DictReader(file, delimiter="\t" if ".tsv" in path.suffixes else ",")
        for column in ("sequence", "label"):
            if column not in (table.fieldnames or []):
                raise _bad(path, f"have a column {column!r}", f"the columns {table.fieldnames}")
        for row in table:
            where = f"in line {table.line_num}"
            pairs.append(_pair(path, row["sequence"] or "", row["label"] or "", where))
    return pairs


def from_fasta(path: Path) -> Pairs:
    """Sequences of a FASTA file, with all but the first word of a header as the label."""
    with _opened(path) as file:
        before, *records = re.split(r"^>", file.read(), flags=re.MULTILINE)
    if before.strip() or not records:
        raise _bad(path, "begin with a header, as in '>identifier label'", repr(before[:40]))
    pairs: Pairs = []
    for record in records:
        header, _, sequence = record.partition("\n")
        label = header.strip().partition(" ")[2]
        pairs.append(
            _pair(path, sequence, label, f"under '>identifier label', which is {header!r}")
        )
    return pairs


def from_svmlight(path: Path) -> tuple[NDArray[np.float32], list[str]]:
    """Dense features in float32, and integer labels as text."""
    rule = "hold lines of an integer label and ascending index:value"
    try:
        matrix, labels = load_svmlight_file(str(path), dtype=np.float32)
    except (OSError, ValueError) as error:
        raise _bad(path, rule, f"an error ({error})") from error
    features = matrix.toarray()
    if not np.isfinite(features).all() or not np.array_equal(labels, np.round(labels)):
        raise _bad(path, rule, "values that are not finite, or labels that are not integers")
    return features, [str(int(label)) for label in labels]


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline=None) as file:
            yield file
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise _bad(path, "be a readable text in UTF-8", f"an error ({error})") from error


def _pair(path: Path, text: str, label: str, where: str) -> tuple[str, str]:
    sequence = "".join(text.split()).upper()
    if not _SEQUENCE.fullmatch(sequence) or not label.strip():
        came = f"{sequence[:40]!r} with the label {label!r} {where}"
        raise _bad(path, "hold sequences of letters, each with a label", came)
    return sequence, label.strip()


def _bad(path: Path, rule: str, came: str) -> InvalidInputError:
    return InvalidInputError(f"`{path}` must {rule}; got {came}. {FORMS}")
