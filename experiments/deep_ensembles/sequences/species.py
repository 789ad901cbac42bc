"""Which species of bacterium does a 16S rRNA come from? The data set Bacteria.

The sequences are those of SILVA SSURef 93. Its titles are those of GenBank: they begin with the
name of the organism, where it has one, and say what was sequenced. Archaea are among them.
"""

import re
from pathlib import Path

from experiments.deep_ensembles.sequences import blast
from experiments.deep_ensembles.sequences.labelled import Labelled, balanced
from hullcal import InvalidInputError

__all__ = ["load", "species_of"]

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


def species_of(title: str) -> str | None:
    """Give the genus and epithet that a title begins with; None without a named bacterium.

    Examples
    --------
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


def load(
    folder: Path,
    *,
    min_count: int = 4,
    max_count: int = 8,
    min_length: int = 900,
    seed: int = 0,
) -> Labelled:
    """Read the sequences of named species.

    A title must name the 16S rRNA. That of a genome names no gene, and will do if another title
    tells that its species has a 16S rRNA: eukaryotes have genomes too.

    Parameters
    ----------
    folder : Path
        Where the BLAST database `SSURef_93.fasta` lies.
    min_count, max_count : int
        Sequences of a species: with fewer it is left out, with more some are drawn.
    min_length : int
        Nucleotides of the shortest sequence.
    seed : int
        Of the draws.

    Returns
    -------
    Labelled
    """
    named, whole = [], []
    for title, sequence in blast.nucleotides(_database(folder)):
        if len(sequence) >= min_length and (species := species_of(title)):
            if "16S" in title:
                named.append((sequence, species))
            elif _WHOLE.search(title):
                whole.append((sequence, species))
    known = {species for _, species in named}
    pairs = named + [pair for pair in whole if pair[1] in known]
    return balanced(pairs, min_count=min_count, max_count=max_count, seed=seed)


def _database(folder: Path) -> Path:
    found = sorted(folder.glob("SSURef_93*.nin"))
    if len(found) != 1:
        raise InvalidInputError(
            f"`folder` must hold one BLAST database SSURef_93; got {len(found)} in {folder}. It is "
            f"part of the Debian package ncbi-rrna-data."
        )
    return found[0].with_suffix("")
