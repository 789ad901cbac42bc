"""Sequences: databases read back as they were written, classes as chosen, files of one's own."""

import gzip
import math
import random
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
pytest.importorskip("sklearn")
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles import blast, sequences  # noqa: E402
from experiments.deep_ensembles.downloads import DownloadError, unpacked  # noqa: E402
from experiments.deep_ensembles.sequences import ENCODINGS, balanced, split, tfidf  # noqa: E402

pytestmark = pytest.mark.deep

STDAA = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
AMINO_ACIDS = ENCODINGS["proteins"].alphabet


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
    assert read == records


@pytest.mark.parametrize("length", [127, 128, 256])
def test_titles_of_every_kind_of_length_come_back(tmp_path, length):
    title = drawn(length, "abc ", 3)
    ((read, _),) = blast.nucleotides(write_nucleotides(tmp_path, [(title, "ACGT")]))
    assert read == title


def test_proteins_come_back_in_all_letters_of_the_alphabet(tmp_path):
    records = [(f"P{n}|GO:1", drawn(n, STDAA[1:], 4)) for n in range(1, 10)]
    records.append(("all", STDAA[1:]))
    read = list(blast.proteins(write_proteins(tmp_path, records)))
    assert read == records
    assert blast.AMINO_ACID_CODES == STDAA


def test_an_index_of_another_kind_or_number_of_residues_is_refused(tmp_path):
    base = write_nucleotides(tmp_path, [("a title", "ACGTACGTA")])
    path = tmp_path / "small.nin"
    right = path.read_bytes()
    path.write_bytes(struct.pack(">ii", 5, 0) + right[8:])
    with pytest.raises(ValueError, match="version 4 of nucleotides; got another version"):
        next(blast.nucleotides(base))
    (tmp_path / "small.pin").write_bytes(right)
    with pytest.raises(ValueError, match="of proteins; got another version or kind"):
        next(blast.proteins(base))
    at = right.index(struct.pack("<q", 9))
    path.write_bytes(right[:at] + struct.pack("<q", 8) + right[at + 8 :])
    with pytest.raises(ValueError, match=r"must hold the 8 residues.*got 9"):
        next(blast.nucleotides(base))


# What is chosen


def test_each_sequence_counts_once_and_not_at_all_with_two_labels():
    pairs = [("AA", "x"), ("AA", "x"), ("AC", "x"), ("AG", "x"), ("AG", "y"), ("CC", "y")]
    expected = [("AA", "x"), ("AC", "x"), ("CC", "y")]
    assert balanced(pairs, min_count=1, max_count=9, seed=0) == expected


def test_small_classes_are_left_out_and_of_large_ones_some_are_drawn():
    pairs = [(f"x{i}", "large") for i in range(50)] + [(f"y{i}", "small") for i in range(2)]
    chosen = balanced(pairs, min_count=3, max_count=10, seed=0)
    assert [label for _, label in chosen] == ["large"] * 10
    assert len(set(chosen)) == 10
    assert balanced(pairs, min_count=3, max_count=10, seed=0) == chosen
    assert balanced(pairs, min_count=3, max_count=10, seed=1) != chosen


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("gb|D30032| Vibrio fischeri gene for 16S rRNA. 1543 bp ", "Vibrio fischeri"),
        (
            "gi|15419930|gb|AF300325.1|AF300325 Ralstonia taiwanensis strain 16S",
            "Ralstonia taiwanensis",
        ),
        ("gb|A1| Anabaena flos-aquae 16S ribosomal RNA", "Anabaena flos-aquae"),
        ("gb|A1| Escherichia coli, complete genome", "Escherichia coli"),
        ("gb|A1| Pseudomonas sp. gs7 16S ribosomal RNA gene", None),
        ("gb|A1| Uncultured bacterium clone 16S ribosomal RNA gene", None),
        ("gb|A1| Candidatus Phytoplasma mali 16S ribosomal RNA gene", None),
        ("gb|A1| Rhodobacteraceae strain xyz 16S ribosomal RNA gene", None),
        ("gb|A1| Doodia maxima chloroplast 16S rRNA gene", None),
        ("gb|A1| Olavius loisae endosymbiont 16S rRNA gene", None),
        ("gb|A1| Peanut witches'-broom mycoplasma 16S ribosomal RNA gene", None),
        ("", None),
    ],
)
def test_a_species_is_a_genus_and_an_epithet_of_a_bacterium(title, name):
    assert sequences.species_of(title) == name


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
    labels = [label for _, label in sequences.bacteria(small_silva(tmp_path))]
    species = ("Bacillus cereus", "Escherichia coli", "Vibrio fischeri")
    assert [labels.count(name) for name in species] == [6, 6, 7]
    assert len(labels) == 19


GRAPH = [
    "GO:0003674\tGO:0003824\t1\tis_a\n",
    "GO:0003824\tGO:kinase\t1\tis_a\n",
    "GO:kinase\tGO:hexokinase\t1\tis_a\n",
    "GO:transferase\tGO:hexokinase\t1\tis_a\n",
    "GO:0003824\tGO:transferase\t1\tis_a\n",
    "GO:0003824\tGO:part\t1\tpart_of\n",
    "GO:0003674\tGO:binding\t1\tis_a\n",
]


@pytest.mark.parametrize(
    ("terms", "term"),
    [
        ({"GO:hexokinase", "GO:kinase", "GO:transferase"}, "GO:hexokinase"),
        ({"GO:kinase", "GO:binding"}, "GO:kinase"),
        ({"GO:kinase", "GO:transferase"}, None),
        ({"GO:binding"}, None),
        (set(), None),
    ],
)
def test_a_protein_needs_exactly_one_most_specific_catalytic_term(terms, term):
    assert sequences.most_specific(terms, sequences.ancestry(GRAPH)) == term


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
    pairs = list(sequences.proteins(small_swissprot(tmp_path)))
    assert [label for _, label in pairs] == ["GO:kinase"] * 6 + ["GO:hexokinase"] * 6
    assert set(pairs[-1][0]) <= set(AMINO_ACIDS[8:])


def test_annotations_out_of_order_are_refused(tmp_path):
    path = small_swissprot(tmp_path) / "goasp_annot.dat"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    with pytest.raises(ValueError, match=r"in the order of goasp\.fasta; got P01"):
        list(sequences.proteins(tmp_path))
    path.write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="longer"):
        list(sequences.proteins(tmp_path))


# Features


def test_tfidf_by_hand_on_all_n_grams_of_the_alphabet():
    small = ENCODINGS["bacteria"]._replace(n_grams=(1, 2), alphabet="AC")
    train, held = tfidf(["AA", "AAC" * 4], ["CNC"], small)
    # Columns are A, C, AA, AC, CA, CC; both rows have A and AA, the second has C, AC and CA too.
    assert train.dtype == np.float32
    both, one = 1.0, 1 + math.log(3 / 2)
    first = np.array([(1 + math.log(2)) * both, 0, both, 0, 0, 0])
    counts = np.array([8, 4, 4, 4, 3, 0])
    logs = np.array([1 + math.log(c) if c else 0 for c in counts])
    second = logs * [both, one, both, one, one, 0]
    expected = [row / np.linalg.norm(row) for row in (first, second)]
    np.testing.assert_allclose(train, expected, rtol=1e-5)
    # No n-gram spans a strange letter.
    np.testing.assert_allclose(held, [[0, 1, 0, 0, 0, 0]], rtol=1e-5)


def test_the_paper_has_1344_and_8000_columns_and_another_alphabet_is_refused():
    for name, columns in (("bacteria", 1344), ("proteins", 8000)):
        letters = ENCODINGS[name].alphabet
        train, held = tfidf([letters * 3], [letters], ENCODINGS[name])
        assert train.shape == held.shape == (1, columns)
    with pytest.raises(ValueError, match=r"got 4 others of 16.*RNA with T for U"):
        tfidf(["ACGU" * 4], ["ACGT"], ENCODINGS["bacteria"])


# Data sets


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Both databases, small, in place of those that are downloaded."""
    small_silva(tmp_path)
    small_swissprot(tmp_path)
    monkeypatch.setattr(sequences, "unpacked", lambda name: tmp_path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["bacteria", "proteins"])
def test_a_small_set_has_every_class_to_learn_and_features_that_tell_them_apart(kind):
    found = sequences.load(kind)
    assert list(found.classes) == sorted(found.classes)
    assert set(found.train_labels) == set(found.held_labels) == set(range(len(found.classes)))
    assert len(found.train_labels) + len(found.held_labels) == 6 * len(found.classes)
    # The letters differ by class, so that the nearest training row is of the same class.
    nearest = (found.held_inputs @ found.train_inputs.T).argmax(axis=1)
    np.testing.assert_array_equal(found.train_labels[nearest], found.held_labels)


@pytest.mark.parametrize(("share", "n_held"), [(0.05, 7), (0.46, 33), (0.95, 63)])
def test_a_split_by_class_has_the_size_asked_for_where_there_is_room(share, n_held):
    names = [f"class {i % 7}" for i in range(70)]
    train, held, labels, classes = split(names, share, 0)
    assert len(held) == n_held
    assert sorted([*train, *held]) == list(range(70))
    assert set(labels[train]) == set(range(7))
    assert [classes[label] for label in labels] == names


def test_a_split_refuses_lonely_rows():
    with pytest.raises(ValueError, match=r"got 3 classes, 1 with one row \(c, \.\.\.\)"):
        split(["a", "a", "b", "b", "c"], 0.5, 0)
    with pytest.raises(ValueError, match="got 1 classes"):
        split(["a"] * 5, 0.5, 0)


# Files of one's own


def written(path, letters="ACGT"):
    """The same sequences, of two species in turn, in the form that the suffix says."""
    species = ("Vibrio fischeri", "Bacillus cereus")
    pairs = [(drawn(50, letters, i), species[i % 2]) for i in range(60)]
    inner = path.name.removesuffix(".gz")
    if inner.endswith((".csv", ".tsv")):
        between = "\t" if inner.endswith(".tsv") else ","
        lines = [between.join(row) for row in [("sequence", "label"), *pairs]]
    elif inner.endswith((".svm", ".libsvm")):
        lines = [f"{i % 3} {1 + i % 5}:{0.5 + i / 100}" for i in range(60)]
    else:
        lines = [f">s{i} {name}\n{text[:20]}\n{text[20:]}" for i, (text, name) in enumerate(pairs)]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.b.fasta", "a.fa.gz"])
def test_every_form_of_the_same_sequences_gives_the_same_rows(name, tmp_path):
    found = sequences.load("bacteria", path=written(tmp_path / name))
    assert found.classes == ("Bacillus cereus", "Vibrio fischeri")
    assert (found.train_inputs.shape, found.held_inputs.shape) == ((42, 1344), (18, 1344))
    other = sequences.load("bacteria", path=written(tmp_path / "other.csv"))
    np.testing.assert_array_equal(found.train_inputs, other.train_inputs)
    np.testing.assert_array_equal(found.held_labels, other.held_labels)


@pytest.mark.parametrize("name", ["a.svm", "a.libsvm.gz"])
def test_features_in_svmlight_form_are_taken_as_they_are(name, tmp_path):
    found = sequences.load("proteins", path=written(tmp_path / name))
    assert (found.train_inputs.shape, found.held_inputs.shape) == ((42, 5), (18, 5))
    assert found.classes == ("0", "1", "2")
    values = np.sort(np.concatenate([found.train_inputs, found.held_inputs]).max(axis=1))
    np.testing.assert_allclose(values, 0.5 + np.arange(60) / 100, rtol=1e-6)


@pytest.mark.parametrize("name", ["bacteria", "bacteria.csv.zip"])
def test_another_suffix_is_refused_with_all_that_are_taken(name, tmp_path):
    with pytest.raises(ValueError, match=f"got '{name}'") as error:
        sequences.load("bacteria", path=tmp_path / name)
    for suffix in (*sequences.TABLE, *sequences.FASTA, *sequences.SVMLIGHT, ".gz"):
        assert suffix in str(error.value)


def test_a_file_that_is_not_there_brings_where_to_get_it(tmp_path):
    with pytest.raises(ValueError, match=r"a file that exists(.|\n)*DEEPre"):
        sequences.load("proteins", path=tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"seq,label\nACGT,x\n", r"must have a column 'sequence'; got .*'seq'"),
        ("a.csv", b"sequence,label\nACGT,x\nAC1T,y\n", "got 'AC1T' with the label 'y' in line 3"),
        ("a.csv", b"\xff\xfe", "readable text in UTF-8"),
        (
            "a.fasta",
            b">s1 Vibrio\nACGT\n>s2\nACGT\n",
            "with the label '' under '>identifier label'",
        ),
        ("a.fasta", b"ACGT\n>s1 Vibrio\nACGT\n", "begin with a header"),
        ("a.svm", b"x 1:2\n", "must hold lines of an integer label"),
        ("a.svm", b"1.5 1:2\n", "labels that are not integers"),
    ],
)
def test_a_file_that_does_not_look_as_it_must_is_refused(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        sequences.load("bacteria", path=tmp_path / name)


# The real thing, where it can be had


def downloaded(name):
    try:
        return unpacked(name)
    except DownloadError as error:
        pytest.skip(f"{name} cannot be had: {error}")


def test_silva_has_as_many_records_as_its_index_says_and_sizes_of_the_paper():
    base = downloaded("silva") / "SSURef_93.fasta"
    assert sum(1 for _ in blast.nucleotides(base)) == 204_065
    found = sequences.load("bacteria")
    assert len(found.classes) == 1425
    assert (len(found.train_labels), len(found.held_labels)) == (10_520, 2_258)  # 10,587 and 2,272
    assert np.bincount(found.train_labels, minlength=1425).min() == 3
    nearest = (found.held_inputs @ found.train_inputs.T).argmax(axis=1)
    assert np.mean(found.train_labels[nearest] == found.held_labels) > 0.8


def test_swissprot_has_as_many_records_as_its_index_says_and_a_small_version():
    base = downloaded("swissprot") / "goasp.fasta"
    assert sum(1 for _ in blast.proteins(base)) == 459_503
    found = sequences.load("proteins", n_classes=20)
    assert len(found.classes) == 20
    assert all(name.startswith("GO:") for name in found.classes)
    assert found.train_inputs.shape == (len(found.train_labels), 8000)
