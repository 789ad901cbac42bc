"""Sequences: databases read back as they were written, tf-idf as another package has it."""

import gzip
import math
import random
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles" / "sequences").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
pytest.importorskip("sklearn")
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles.sequences import (  # noqa: E402
    blast,
    catalysis,
    files,
    species,
    tasks,
)
from experiments.deep_ensembles.sequences.labelled import Labelled, balanced  # noqa: E402
from experiments.deep_ensembles.sequences.tfidf import AMINO_ACIDS, NUCLEOTIDES, Tfidf  # noqa: E402
from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402

pytestmark = pytest.mark.deep

STDAA = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"


# A literal writer of the format, for what the reader has to read back.


def packed(sequence):
    codes = ["ACGT".index(letter if letter in "ACGT" else "A") for letter in sequence]
    whole = len(codes) // 4 * 4
    data = bytes(
        codes[i] << 6 | codes[i + 1] << 4 | codes[i + 2] << 2 | codes[i + 3]
        for i in range(0, whole, 4)
    )
    last = len(codes) - whole
    for place, code in enumerate(codes[whole:]):
        last |= code << (6 - 2 * place)
    return data + bytes([last])


def stretches(sequence, longest):
    """Runs of letters other than ACGT, as (start, length), none longer than may be."""
    runs = []
    for at, letter in enumerate(sequence):
        if letter in "ACGT":
            continue
        if runs and sum(runs[-1]) == at and runs[-1][1] < longest:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((at, 1))
    return runs


def old_style(sequence):
    words = [15 << 28 | (length - 1) << 24 | start for start, length in stretches(sequence, 16)]
    return struct.pack(f">{1 + len(words)}I", len(words), *words) if words else b""


def new_style(sequence):
    words = []
    for start, length in stretches(sequence, 4096):
        words += [15 << 28 | (length - 1) << 16, start]
    return struct.pack(f">{1 + len(words)}I", 1 << 31 | len(words), *words) if words else b""


def header(title):
    text = title.encode("ascii")
    if len(text) < 128:
        length = bytes([len(text)])
    elif len(text) < 256:
        length = bytes([0x81, len(text)])
    else:
        length = bytes([0x82]) + struct.pack(">H", len(text))
    return b"0\x800\x80\xa0\x80\x1a" + length + text + b"\0\0" + b"\xa1\x800\x80" + b"\0" * 8


def offsets(chunks, first=0):
    ends = [first]
    for chunk in chunks:
        ends.append(ends[-1] + len(chunk))
    return ends


def write_index(path, kind, n_residues, longest, *tables, version=4):
    data = struct.pack(">ii", version, kind)
    for text in (b"a small database", b"Nov 16, 2026\0\0\0\0"):
        data += struct.pack(">i", len(text)) + text
    data += struct.pack(">i", len(tables[0]) - 1) + struct.pack("<q", n_residues)
    data += struct.pack(">i", longest)
    for table in tables:
        data += struct.pack(f">{len(table)}i", *table)
    path.write_bytes(data)


def write_nucleotides(folder, records, ambiguity=old_style, name="small"):
    headers = [header(title) for title, _ in records]
    parts = [(packed(sequence), ambiguity(sequence)) for _, sequence in records]
    starts = offsets([a + b for a, b in parts], first=1)
    middles = [start + len(a) for start, (a, _) in zip(starts, parts, strict=False)] + [starts[-1]]
    (folder / f"{name}.nhr").write_bytes(b"".join(headers))
    (folder / f"{name}.nsq").write_bytes(b"\0" + b"".join(a + b for a, b in parts))
    sizes = [len(sequence) for _, sequence in records]
    index = folder / f"{name}.nin"
    write_index(index, 0, sum(sizes), max(sizes), offsets(headers), starts, middles)
    return folder / name


def write_proteins(folder, records, name="small"):
    headers = [header(title) for title, _ in records]
    chunks = [bytes(STDAA.index(letter) for letter in text) + b"\0" for _, text in records]
    (folder / f"{name}.phr").write_bytes(b"".join(headers))
    (folder / f"{name}.psq").write_bytes(b"\0" + b"".join(chunks))
    sizes = [len(sequence) for _, sequence in records]
    index = folder / f"{name}.pin"
    write_index(index, 1, sum(sizes), max(sizes), offsets(headers), offsets(chunks, first=1))
    return folder / name


def drawn(length, letters, seed):
    return "".join(random.Random(f"{length} {seed}").choices(letters, k=length))


# Databases


@pytest.mark.parametrize("ambiguity", [old_style, new_style])
def test_nucleotides_of_every_length_come_back_with_n_for_what_is_ambiguous(tmp_path, ambiguity):
    records = [(f"gb|X{n}| number {n}", drawn(n, "ACGT", 1)) for n in range(1, 10)]
    records += [(f"ambiguous {n}", drawn(n, "ACGTNN", 2)) for n in range(1, 10)]
    records += [("a run", "ACG" + "N" * 40 + "T"), ("all of it", "N" * 5000)]
    read = list(blast.nucleotides(write_nucleotides(tmp_path, records, ambiguity)))
    assert [tuple(record) for record in read] == records


def test_any_ambiguous_letter_is_n(tmp_path):
    (record,) = blast.nucleotides(write_nucleotides(tmp_path, [("mixed", "ACRYGTK")]))
    assert record.sequence == "ACNNGTN"


def test_a_byte_is_four_nucleotides_from_the_highest_bits(tmp_path):
    base = write_nucleotides(tmp_path, [("one", "ACGTC")])
    # A C G T is 00 01 10 11; then C in the highest bits, and 1 for how many count.
    assert (tmp_path / "small.nsq").read_bytes() == b"\0" + bytes([0b00011011, 0b01000001])
    assert next(blast.nucleotides(base)).sequence == "ACGTC"


@pytest.mark.parametrize("length", [1, 127, 128, 255, 256, 700])
def test_titles_of_every_kind_of_length_come_back(tmp_path, length):
    title = drawn(length, "abc ", 3)
    (record,) = blast.nucleotides(write_nucleotides(tmp_path, [(title, "ACGT")]))
    assert record.title == title


def test_a_header_without_a_title_has_an_empty_one(tmp_path):
    base = write_nucleotides(tmp_path, [("title", "ACGT")])
    size = (tmp_path / "small.nhr").stat().st_size
    (tmp_path / "small.nhr").write_bytes(b"0\x800\x80\xa1\x80".ljust(size, b"\0"))
    assert next(blast.nucleotides(base)).title == ""


def test_proteins_come_back_in_all_letters_of_the_alphabet(tmp_path):
    records = [(f"P{n}|GO:1", drawn(n, STDAA[1:], 4)) for n in range(1, 10)]
    records.append(("all", STDAA[1:]))
    read = list(blast.proteins(write_proteins(tmp_path, records)))
    assert [tuple(record) for record in read] == records
    assert blast.AMINO_ACID_CODES == STDAA


@pytest.mark.parametrize("ending", ["nin", "nsq", "nhr"])
@pytest.mark.parametrize("kept", [0, 3, 12, -1])
def test_a_truncated_nucleotide_file_is_refused_by_name(tmp_path, ending, kept):
    base = write_nucleotides(tmp_path, [("a title", "ACGTNACGT" * 3), ("another", "ACGT" * 9)])
    path = tmp_path / f"small.{ending}"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"small\.nin` must belong to a BLAST database"):
        list(blast.nucleotides(base))


@pytest.mark.parametrize("ending", ["pin", "psq", "phr"])
def test_a_truncated_protein_file_is_refused_by_name(tmp_path, ending):
    base = write_proteins(tmp_path, [("a title", "MKV"), ("another", "MAAA")])
    path = tmp_path / f"small.{ending}"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"small\.pin` must belong to a BLAST database"):
        list(blast.proteins(base))


def test_a_missing_file_is_refused_by_name(tmp_path):
    base = write_nucleotides(tmp_path, [("a title", "ACGT")])
    (tmp_path / "small.nhr").unlink()
    with pytest.raises(ValueError, match=r"small\.nhr.*No such file"):
        blast.nucleotides(base)


def test_another_version_and_another_kind_are_refused(tmp_path):
    base = write_proteins(tmp_path, [("a title", "MKV")])
    (tmp_path / "small.nin").write_bytes((tmp_path / "small.pin").read_bytes())
    with pytest.raises(ValueError, match="it holds proteins, not nucleotides"):
        blast.nucleotides(base)
    write_index(tmp_path / "small.pin", 1, 3, 3, [0, 1], [1, 5], version=5)
    with pytest.raises(ValueError, match="its version is 5, not 4"):
        blast.proteins(base)


@pytest.mark.parametrize(
    ("residues", "starts", "middles", "message"),
    [
        (5, (1, 3, 5), (3, 5, 5), "it tells of 5 residues, there are 8"),
        (8, (1, 3, 99), (3, 5, 99), "the sequences end at byte 99, but their file has 5"),
        (8, (3, 1, 5), (5, 3, 5), "offsets of sequences do not ascend"),
        (8, (1, 3, 5), (1, 5, 5), "an ambiguity offset lies outside its sequence"),
        (8, (1, 3, 5), (3, 6, 5), "an ambiguity offset lies outside its sequence"),
    ],
)
def test_an_index_that_contradicts_the_files_is_refused(
    tmp_path, residues, starts, middles, message
):
    base = write_nucleotides(tmp_path, [("a", "ACGT"), ("b", "ACGT")])
    ends = offsets([header("a"), header("b")])
    write_index(tmp_path / "small.nin", 0, residues, 4, ends, starts, middles)
    with pytest.raises(ValueError, match=message):
        blast.nucleotides(base)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((2, 15 << 28), "2 words of ambiguities are told of, 1 are there"),
        ((1, 15 << 28 | 3 << 24 | 2), "an ambiguity ends at 6 of 4 nucleotides"),
        ((1 << 31 | 2, 15 << 28, 4), "an ambiguity ends at 5 of 4 nucleotides"),
        ((1 << 31 | 1, 15 << 28), "1 words of ambiguities"),
    ],
)
def test_ambiguities_outside_their_sequence_are_refused(tmp_path, words, message):
    def wrong(_):
        return struct.pack(f">{len(words)}I", *words)

    base = write_nucleotides(tmp_path, [("a", "ACGT")], wrong)
    with pytest.raises(ValueError, match=rf"small\.nsq.*{message}"):
        list(blast.nucleotides(base))


def test_a_code_that_no_amino_acid_has_is_refused(tmp_path):
    base = write_proteins(tmp_path, [("a", "MKV")])
    (tmp_path / "small.psq").write_bytes(b"\0\x0c\x1c\x13\0")
    with pytest.raises(ValueError, match=r"small\.psq.*no amino acid has the code 28"):
        blast.proteins(base)
    (tmp_path / "small.psq").write_bytes(b"\0\x0c\x0a\x13\x01")
    with pytest.raises(ValueError, match=r"small\.psq.*does not end with a zero"):
        blast.proteins(base)


# What is chosen


def test_each_sequence_counts_once_and_not_at_all_with_two_labels():
    pairs = [("AA", "x"), ("AA", "x"), ("AC", "x"), ("AG", "x"), ("AG", "y"), ("CC", "y")]
    assert balanced(pairs, min_count=1, max_count=9, seed=0) == Labelled(
        ["AA", "AC", "CC"], ["x", "x", "y"]
    )


def test_small_classes_are_left_out_and_of_large_ones_some_are_drawn():
    pairs = [(f"x{i}", "large") for i in range(50)] + [(f"y{i}", "small") for i in range(2)]
    chosen = balanced(pairs, min_count=3, max_count=10, seed=0)
    assert chosen.labels == ["large"] * 10
    assert len(set(chosen.sequences)) == 10
    assert balanced(pairs, min_count=3, max_count=10, seed=0) == chosen
    assert balanced(pairs, min_count=3, max_count=10, seed=1) != chosen
    with pytest.raises(ValueError, match=r"`min_count` must be from 1 to `max_count`; got 5 and 4"):
        balanced(pairs, min_count=5, max_count=4, seed=0)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("gb|D30032| Vibrio fischeri gene for 16S rRNA. 1543 bp ", "Vibrio fischeri"),
        (
            "gi|15419930|gb|AF300325.1|AF300325 Ralstonia taiwanensis strain 16S",
            "Ralstonia taiwanensis",
        ),
        ("gb|A1| Anabaena flos-aquae 16S ribosomal RNA", "Anabaena flos-aquae"),
        ("gb|A1| Klebsiella pneumoniae subsp. ozaenae 16S rRNA", "Klebsiella pneumoniae"),
        ("gb|A1| Escherichia coli, complete genome", "Escherichia coli"),
        ("gb|A1| Pseudomonas sp. gs7 16S ribosomal RNA gene", None),
        ("gb|A1| Ruegeria aff. gelatinovorans ch611 partial 16S rRNA gene", None),
        ("gb|A1| Uncultured bacterium clone 16S ribosomal RNA gene", None),
        ("gb|A1| Uncultured Vibrio fischeri clone 16S ribosomal RNA gene", None),
        ("gb|A1| uncultured proteobacterium clone 16S ribosomal RNA gene", None),
        ("gb|A1| Candidatus Phytoplasma mali 16S ribosomal RNA gene", None),
        ("gb|A1| Unidentified marine eubacterium 16S ribosomal RNA gene", None),
        ("gb|A1| Rhodobacteraceae strain xyz 16S ribosomal RNA gene", None),
        ("gb|A1| Bacterium mpn-isolate group 16S ribosomal RNA gene", None),
        ("gb|A1| Doodia maxima chloroplast 16S rRNA gene", None),
        ("gb|A1| Olavius loisae endosymbiont 16S rRNA gene", None),
        ("gb|A1| Candida albicans gene for 18S rRNA", None),
        ("gb|A1| Peanut witches'-broom mycoplasma 16S ribosomal RNA gene", None),
        ("", None),
    ],
)
def test_a_species_is_a_genus_and_an_epithet_of_a_bacterium(title, name):
    assert species.species_of(title) == name


def small_silva(folder):
    """Three species of six, one of them by its genome, and what must not be among them."""
    records = []
    for i, name in enumerate(["Vibrio fischeri", "Bacillus cereus", "Escherichia coli"]):
        # Letters in other proportions, so that the species differ.
        letters = "ACGT" + "ACG"[i] * 3
        records += [(f"gb|X{n}| {name} 16S rRNA", drawn(950, letters, (i, n))) for n in range(5)]
        records.append((f"gb|G{i}| {name}, complete genome", drawn(950, letters, (i, 9))))
    for n in range(6):
        records.append((f"gb|Y{n}| Giardium totum, complete genome", drawn(950, "ACGT", ("e", n))))
        records.append((f"gb|Z{n}| Short brevis 16S rRNA", drawn(899, "ACGT", ("s", n))))
    records.append(records[0])
    write_nucleotides(folder, records, name="SSURef_93.fasta")
    return folder


def test_bacteria_are_long_named_and_known_by_their_16s(tmp_path):
    labelled = species.load(small_silva(tmp_path))
    assert labelled.classes == ("Bacillus cereus", "Escherichia coli", "Vibrio fischeri")
    assert [labelled.labels.count(name) for name in labelled.classes] == [6, 6, 6]
    fewer = species.load(tmp_path, max_count=5)
    assert [fewer.labels.count(name) for name in fewer.classes] == [5, 5, 5]
    with pytest.raises(ValueError, match=r"`folder` must hold one BLAST database SSURef_93; got 0"):
        species.load(tmp_path / "elsewhere")


GRAPH = [
    "GO:0003674\tGO:0003824\t1\tis_a\n",
    "GO:0003824\tGO:kinase\t1\tis_a\n",
    "GO:kinase\tGO:hexokinase\t1\tis_a\n",
    "GO:transferase\tGO:hexokinase\t1\tis_a\n",
    "GO:0003824\tGO:transferase\t1\tis_a\n",
    "GO:0003824\tGO:part\t1\tpart_of\n",
    "GO:0003674\tGO:binding\t1\tis_a\n",
]


def test_ancestors_are_all_terms_above_by_is_a():
    above = catalysis.ancestry(GRAPH)
    assert above("GO:hexokinase") == {"GO:kinase", "GO:transferase", "GO:0003824", "GO:0003674"}
    assert above("GO:part") == above("GO:unknown") == frozenset()
    with pytest.raises(ValueError, match="four fields in a line; got 2 in line 1"):
        catalysis.ancestry(["a\tb\n"])


@pytest.mark.parametrize(
    ("terms", "term"),
    [
        ({"GO:hexokinase", "GO:kinase", "GO:transferase"}, "GO:hexokinase"),
        ({"GO:kinase", "GO:binding"}, "GO:kinase"),
        ({"GO:kinase", "GO:transferase"}, None),
        ({"GO:binding"}, None),
        ({"GO:0003824"}, None),
        ({"GO:part"}, None),
        (set(), None),
    ],
)
def test_a_protein_needs_exactly_one_most_specific_catalytic_term(terms, term):
    assert catalysis.most_specific(terms, catalysis.ancestry(GRAPH)) == term


def small_swissprot(folder):
    terms = ("GO:kinase", "GO:hexokinase", "GO:binding")
    letters = (AMINO_ACIDS[:8], AMINO_ACIDS[8:], AMINO_ACIDS)
    rows = [
        (f"P{i}{n}", term, drawn(80, letters[i], n))
        for i, term in enumerate(terms)
        for n in range(6)
    ]
    write_proteins(folder, [(f"{a}|{t},{t}", text) for a, t, text in rows], name="goasp.fasta")
    (folder / "goasp_annot.dat").write_text("".join(f"{a}\t{t}\t{t}\n" for a, t, _ in rows))
    (folder / "goGraph.txt").write_text("".join(GRAPH))
    return folder


def test_proteins_are_those_that_catalyse(tmp_path):
    labelled = catalysis.load(small_swissprot(tmp_path))
    assert labelled.labels == ["GO:hexokinase"] * 6 + ["GO:kinase"] * 6
    assert set(labelled.sequences[0]) <= set(AMINO_ACIDS[8:])


def test_annotations_out_of_order_and_missing_files_are_refused(tmp_path):
    path = small_swissprot(tmp_path) / "goasp_annot.dat"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    with pytest.raises(ValueError, match=r"in the order of goasp\.fasta; got P01 in line 1"):
        catalysis.load(tmp_path)
    path.write_text("".join([*lines, "P99\tGO:kinase\n"]))
    with pytest.raises(ValueError, match="got P99 in line 19, where the database has the end"):
        catalysis.load(tmp_path)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="got 17 lines for more sequences"):
        catalysis.load(tmp_path)
    (tmp_path / "goGraph.txt").unlink()
    with pytest.raises(ValueError, match=r"`folder` must hold goGraph\.txt.*No such file"):
        catalysis.load(tmp_path)


# Features


@pytest.mark.parametrize(
    ("n_grams", "alphabet", "others"), [((3, 4, 5), NUCLEOTIDES, "N"), ((3,), AMINO_ACIDS, "XUB")]
)
def test_tfidf_is_that_of_scikit_learn_standardised(n_grams, alphabet, others):
    sequences = [drawn(200 + 10 * i, alphabet * 20 + others, i) for i in range(30)]
    ours = Tfidf(n_grams, alphabet)
    theirs = TfidfVectorizer(
        analyzer="char",
        ngram_range=(min(n_grams), max(n_grams)),
        lowercase=False,
        vocabulary=list(ours.vocabulary),
        sublinear_tf=True,
    )
    raw = theirs.fit_transform(sequences[:20]).toarray()
    held = theirs.transform(sequences[20:]).toarray()
    mean, spread = raw.mean(axis=0), raw.std(axis=0)
    spread[raw.max(axis=0) == raw.min(axis=0)] = 1
    train = ours.fit_transform(sequences[:20])
    assert train.dtype == np.float32
    assert train.shape == (20, ours.n_features) == (20, len(ours.vocabulary))
    np.testing.assert_allclose(train, (raw - mean) / spread, atol=2e-4)
    np.testing.assert_allclose(ours.transform(sequences[20:]), (held - mean) / spread, atol=2e-4)


def test_the_paper_has_1344_and_8000_columns():
    assert Tfidf((3, 4, 5), NUCLEOTIDES).n_features == 1344
    assert Tfidf((3,), AMINO_ACIDS).n_features == 8000


def test_n_grams_overlap_and_never_span_a_strange_letter():
    encoder = Tfidf((1, 2), "AC")
    counted = encoder.counts(["AAAC", "ANC", "A", "", "é€A"])
    assert encoder.vocabulary == ("A", "C", "AA", "AC", "CA", "CC")
    assert counted.tolist() == [
        [3, 1, 2, 1, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
    ]


def test_tfidf_of_two_sequences_by_hand():
    encoder = Tfidf((1,), "AC")
    train = encoder.fit_transform(["AA", "AAC"])
    # A stands in both, C in one of two; the rows are (1, 0) and (a, c), standardised to -1 and 1.
    np.testing.assert_allclose(train, [[1, -1], [-1, 1]], rtol=1e-5)
    a, c = 1 + math.log(2), 1 + math.log(3 / 2)
    first, second = a / math.hypot(a, c), c / math.hypot(a, c)
    # One C alone: the row (0, 1).
    expected = [(0 - (1 + first) / 2) / ((1 - first) / 2), (1 - second / 2) / (second / 2)]
    np.testing.assert_allclose(encoder.transform(["C"])[0], expected, rtol=1e-5)


def test_a_column_that_is_constant_in_training_is_not_blown_up():
    encoder = Tfidf((1,), "ACG")
    encoder.fit_transform(["AC"] * 7)
    assert np.abs(encoder.transform(["AAAACG", "G"])).max() < 2


def test_held_out_rows_do_not_change_what_was_learned():
    sequences = [drawn(60, NUCLEOTIDES, i) for i in range(6)]
    encoder = Tfidf((2,), NUCLEOTIDES)
    encoder.fit_transform(sequences[:4])
    alone = encoder.transform(sequences[4:5])
    together = encoder.transform(sequences[4:] + sequences[:4])
    np.testing.assert_array_equal(alone[0], together[0])


def test_tfidf_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="`Tfidf` must be fitted before it transforms"):
        Tfidf((1,), "AC").transform(["A"])
    with pytest.raises(ValueError, match="`sequences` must not be empty"):
        Tfidf((1,), "AC").fit_transform([])
    with pytest.raises(ValueError, match=r"got 4 others of 16.*RNA with T for U"):
        Tfidf((3,), NUCLEOTIDES).fit_transform(["ACGU" * 4])
    for n_grams in ((), (0,), (2, 2)):
        with pytest.raises(ValueError, match="`n_grams` must be different lengths"):
            Tfidf(n_grams, "AC")
    for alphabet in ("", "AA", "é"):
        with pytest.raises(ValueError, match="`alphabet` must be different ASCII letters"):
            Tfidf((1,), alphabet)


# Data sets


@pytest.mark.parametrize("kind", ["bacteria", "proteins"])
def test_a_small_task_has_every_class_to_learn_and_features_from_training_rows(tmp_path, kind):
    folder = {"bacteria": small_silva, "proteins": small_swissprot}[kind](tmp_path)
    task = getattr(tasks, kind)(folder=folder)
    assert task.name == kind.capitalize()
    assert list(task.classes) == sorted(task.classes)
    assert set(task.train_labels) == set(task.held_labels) == set(range(len(task.classes)))
    assert len(task.train_labels) + len(task.held_labels) == 6 * len(task.classes)
    assert task.train_features.dtype == task.held_features.dtype == np.float32
    np.testing.assert_allclose(task.train_features.mean(axis=0), 0, atol=1e-5)
    # The letters differ by class, so that the nearest training row is of the same class.
    nearest = (task.held_features @ task.train_features.T).argmax(axis=1)
    np.testing.assert_array_equal(task.train_labels[nearest], task.held_labels)


def test_a_seed_repeats_a_task_and_another_does_not(tmp_path):
    first, again, other = (tasks.bacteria(seed, folder=small_silva(tmp_path)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.train_features, again.train_features)
    np.testing.assert_array_equal(first.held_labels, again.held_labels)
    assert not np.array_equal(first.train_features, other.train_features)


def test_the_first_few_classes_make_a_smaller_task(tmp_path):
    task = tasks.bacteria(n_classes=2, folder=small_silva(tmp_path))
    assert task.classes == ("Bacillus cereus", "Escherichia coli")
    for n_classes in (1, 4):
        with pytest.raises(ValueError, match=f"`n_classes` must be from 2 to the 3.*{n_classes}"):
            tasks.bacteria(n_classes=n_classes, folder=tmp_path)


@pytest.mark.parametrize("held", [0.05, 0.2, 0.46, 0.95])
def test_a_split_by_class_has_the_size_asked_for_where_there_is_room(held):
    names = [f"class {i % 7}" for i in range(70)]
    features = np.arange(140, dtype=np.float32).reshape(70, 2)
    task = tasks.from_features("mine", files.LabelledFeatures(features, names), held=held)
    n_held = {0.05: 7, 0.2: 14, 0.46: 33, 0.95: 63}[held]
    assert len(task.held_labels) == n_held
    assert set(task.train_labels) == set(range(7))
    # Every row is there once, and with its own label.
    for rows, labels in (
        (task.train_features, task.train_labels),
        (task.held_features, task.held_labels),
    ):
        np.testing.assert_array_equal(rows[:, 0] / 2 % 7, labels)
    both = np.concatenate([task.train_features, task.held_features])
    assert sorted(both[:, 0]) == sorted(features[:, 0])


def test_a_split_refuses_lonely_rows_and_shares_that_are_none():
    features = np.zeros((5, 1), np.float32)
    lonely = files.LabelledFeatures(features, ["a", "a", "b", "b", "c"])
    with pytest.raises(ValueError, match=r"got 3 classes, 1 with one row \(c, \.\.\.\)"):
        tasks.from_features("mine", lonely, held=0.5)
    with pytest.raises(ValueError, match="got 1 classes"):
        tasks.from_features("mine", files.LabelledFeatures(features, ["a"] * 5), held=0.5)
    for held in (0, 1, math.nan):
        with pytest.raises(ValueError, match="`held` must be a share between 0 and 1"):
            tasks.from_features("mine", lonely, held=held)


# Files of one's own


def test_a_table_gives_sequences_and_labels(tmp_path):
    rows = ["id,seq,name", '1,acg t,"Bacillus, cereus"', "2,NNA, x "]
    expected = Labelled(["ACGT", "NNA"], ["Bacillus, cereus", "x"])
    (tmp_path / "a.csv").write_text("\ufeff" + "\r\n".join(rows), encoding="utf-8")
    assert files.from_csv(str(tmp_path / "a.csv"), "seq", "name") == expected
    with gzip.open(tmp_path / "a.tsv.gz", "wt") as file:
        file.write("seq\tname\nACGT\tBacillus, cereus\nNNA\tx\n")
    assert files.from_csv(tmp_path / "a.tsv.gz", "seq", "name") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"have a column 'seq'; got the columns \[\]"),
        ("seq,label\n", r"have a column 'name'; got the columns \['seq', 'label'\]"),
        ("seq,name\n", "hold a sequence with a label; got none"),
        ("seq,name\nACGT\n", "have a label in each row; got none in line 2"),
        ("seq,name\n,x\n", "hold sequences of letters; got '' in line 2"),
        ("seq,name\nAC7,x\n", "hold sequences of letters; got 'AC7' in line 2"),
    ],
)
def test_a_bad_table_is_refused_with_the_place(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.csv` must {message}"):
        files.from_csv(tmp_path / "a.csv", "seq", "name")


def test_files_that_are_no_text_or_not_there_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"seq,name\n\xff\xfe,x\n")
    (tmp_path / "a.fasta.gz").write_bytes(b">no gzip\nACGT\n")
    with pytest.raises(ValueError, match=r"a\.csv` must be a readable text in UTF-8"):
        files.from_csv(tmp_path / "a.csv", "seq", "name")
    with pytest.raises(ValueError, match=r"a\.fasta\.gz` must be a readable text"):
        files.from_fasta(tmp_path / "a.fasta.gz", str.lower)
    with pytest.raises(ValueError, match=r"b\.fasta` must be a readable text.*No such file"):
        files.from_fasta(tmp_path / "b.fasta", str.lower)
    with pytest.raises(ValueError, match=r"b\.svm` must hold lines.*No such file"):
        files.from_svmlight(tmp_path / "b.svm")


def test_fasta_takes_its_labels_from_the_headers(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_text(
        "\n>X1| Vibrio fischeri 16S\nACGT\nacg\n\n>X2| Vibrio sp. 16S\nTTT\n>X3|GO 1\nM*\n"
    )
    assert files.from_fasta(path, species.species_of) == Labelled(["ACGTACG"], ["Vibrio fischeri"])
    by_accession = files.from_fasta(path, lambda header: header.partition("|")[0])
    assert by_accession == Labelled(["ACGTACG", "TTT", "M*"], ["X1", "X2", "X3"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "hold a sequence with a label; got none"),
        ("ACGT\n", "begin with a header, as in '>name'; got 'ACGT'"),
        (">a\n>b\nACGT\n", "hold sequences of letters; got '' under 'a'"),
        (">a\nAC,GT\n", "hold sequences of letters; got 'AC,GT' under 'a'"),
    ],
)
def test_a_bad_fasta_is_refused_with_the_place(tmp_path, text, message):
    (tmp_path / "a.fasta").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.fasta` must {message}"):
        files.from_fasta(tmp_path / "a.fasta", str.upper)


def test_svmlight_gives_dense_features(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("7 1:0.5 3:2\n-1 2:1\n")
    labelled = files.from_svmlight(path)
    assert labelled.labels == ["7", "-1"]
    assert labelled.features.dtype == np.float32
    assert labelled.features.tolist() == [[0.5, 0, 2], [0, 1, 0]]
    assert files.from_svmlight(path, n_features=5).features.shape == (2, 5)
    assert files.from_svmlight(path, zero_based=True).features.shape == (2, 4)


@pytest.mark.parametrize("text", ["", "a 1:2\n", "1 x\n", "1 1:nan\n", "1.5 1:2\n"])
def test_bad_svmlight_is_refused(tmp_path, text):
    (tmp_path / "a.svm").write_text(text)
    with pytest.raises(ValueError, match=r"a\.svm` must hold lines of an integer label"):
        files.from_svmlight(tmp_path / "a.svm")


def test_one_s_own_sequences_become_a_task(tmp_path):
    lines = [f"{drawn(40, 'ACGT', i)},class {i % 2}" for i in range(10)]
    (tmp_path / "a.csv").write_text("\n".join(["seq,name", *lines]))
    labelled = files.from_csv(tmp_path / "a.csv", "seq", "name")
    task = tasks.from_sequences("mine", labelled, Tfidf((2,), NUCLEOTIDES), held=0.4)
    assert task.classes == ("class 0", "class 1")
    assert task.train_features.shape == (6, 16)
    assert task.held_features.shape == (4, 16)


def test_the_originals_are_named_with_the_formats_that_can_be_read():
    assert "Fiannaca et al. (2018)" in files.where_to_get("Bacteria")
    assert "DEEPre, Li et al. (2018)" in files.where_to_get("proteins")
    for loader in ("from_csv", "from_fasta", "from_svmlight"):
        assert loader in files.where_to_get("Bacteria")
        assert callable(getattr(files, loader))
    with pytest.raises(ValueError, match="`name` must be one of Bacteria, Proteins; got 'Plants'"):
        files.where_to_get("Plants")


# The real thing, where it can be had


@pytest.fixture(scope="module")
def downloaded():
    downloads = pytest.importorskip("experiments.deep_ensembles.downloads")

    def folder(name):
        try:
            return downloads.unpacked(name)
        except downloads.DownloadError as error:
            pytest.skip(f"{name} cannot be had: {error}")

    return folder


def test_silva_has_as_many_records_as_its_index_says_and_species_enough(downloaded):
    folder = downloaded("silva")
    (index,) = folder.glob("SSURef_93*.nin")
    assert sum(1 for _ in blast.nucleotides(index.with_suffix(""))) == 204_065
    labelled = species.load(folder)
    counts = [labelled.labels.count(name) for name in labelled.classes]
    assert len(counts) == 1425
    assert (min(counts), max(counts)) == (4, 8)
    assert min(map(len, labelled.sequences)) >= 900


def test_swissprot_has_as_many_records_as_its_index_says_and_classes_enough(downloaded):
    folder = downloaded("swissprot")
    assert sum(1 for _ in blast.proteins(folder / "goasp.fasta")) == 459_503
    labelled = catalysis.load(folder)
    assert len(labelled.classes) == 1688
    assert len(set(labelled.sequences)) == len(labelled)


def test_bacteria_have_the_sizes_of_the_paper_and_resemble_their_own_species(downloaded):
    task = tasks.bacteria(folder=downloaded("silva"))
    assert len(task.classes) == 1425
    assert (len(task.train_labels), len(task.held_labels)) == (10_520, 2_258)  # 10,587 and 2,272
    assert np.bincount(task.train_labels, minlength=1425).min() == 3
    unit = [
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (task.held_features, task.train_features)
    ]
    nearest = (unit[0] @ unit[1].T).argmax(axis=1)
    assert np.mean(task.train_labels[nearest] == task.held_labels) > 0.8


def test_proteins_come_in_a_small_version(downloaded):
    task = tasks.proteins(n_classes=20, folder=downloaded("swissprot"))
    assert len(task.classes) == 20
    assert all(name.startswith("GO:") for name in task.classes)
    assert task.train_features.shape == (len(task.train_labels), 8000)
