"""How is a file damaged: anywhere in its bytes, or so that its shell stays sound and is opened?"""

import copy
import datetime
import io
import json
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def spaced(text):
    """The words of a text that blanks separate."""
    return text.split(" ")


#: What programs forget to expect in place of a number or a name.
WORDS = spaced("nan inf -inf -0 0 1 -1 1.5 1e999 -1e-400 1_0 0x10 １ ½ true null None =1+1 é 🦉")
WORDS += spaced(
    'probs labels label classes members row p_ a:b , ; : / " \' "" \n \r \t \0 \x85 \x1c'
)
WORDS += ["", " ", "\ufeff", "\u2028", "\r\n\n", "9" * 19, "9" * 30, "9" * 5000]
WORDS += ["x" * 140_000, "[" * 5000, '{"a":' * 5000]
#: Numbers at which sizes overflow, and around which loops err by one.
SIZES = [0, 1, *(2**bits + off for bits in (7, 8, 15, 16, 31, 32, 62, 63) for off in (-1, 0))]
ENCODINGS = ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "utf-8-sig", "cp037"]
#: Values that no field of JSON expects.
VALUES = [None, True, False, 0, -1, 1, 2, 0.5, 1e308, -1e-320, 10**30, 2**63, "", "x", "nan"]
VALUES += ["Infinity", "\ud800", [], {}, [[]], [None], [1, "a"], {"float": "NaN"}, {"float": []}]
VALUES += [{"a": {"b": []}}, "x" * 10_000, list(range(2000))]
#: Values and lines of TOML that JSON cannot say, or that TOML cannot either.
TOML = spaced(
    "1979-05-27T07:32:00Z 0xff 1_000 +inf 'S1' [1979-05-27] {a.b=1} [1,'a',[]] 25:61:61 ' [1"
)
TOML += spaced("[n_samples] [[n_samples]] [alpha.beta] seed.x=1 [] = a ''=1 \0")
#: Names in archives and folders: out of them, of other kinds, of Zarr's own.
ODD_NAMES = spaced(
    "../probs.npy /probs.npy probs.npy labels-9-9.npy .npy é.npy a.pkl x.npz x.parquet"
)
ODD_NAMES += spaced("zarr.json .zarray probs/c/0/0/0")
#: Types that an array may claim to have; the last ones are none.
DTYPES = spaced("<f8 >f8 <f2 <f4 |O <c16 <M8[s] |S4 <U3 |V8 |b1 <i8 f8,f8 <u1 <f16 x")
#: Cells of types that no number, name or label has, and their type where it is not theirs already.
CELLS = [
    *((None, None), (True, None), (2**63, pa.uint64()), (0.5, pa.float16()), ("0.5", None)),
    *(("", None), (b"\xff", None), (0, pa.timestamp("ns")), ([0.5], None), ({"a": 0.5}, None)),
    *((datetime.date(1, 1, 1), None), ("x", pa.dictionary(pa.int8(), pa.string()))),
    *((1, pa.decimal128(38, 37)), ([], pa.list_(pa.float64(), 0))),
]


def one_of(pool, rng):
    return pool[rng.integers(len(pool))]


# Anywhere


def damaged(data, rng, others=()):
    """The bytes after one to four changes, mostly one: a piece of them is replaced by another."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        first, last = one_of([_token, _piece, _piece, _end], rng)(data, rng)
        piece = one_of(PIECES, rng)(data[first:last], rng, others)
        data = data[:first] + piece + data[last:]
    return data


def _token(data, rng):
    """A number or a word between two separators."""
    found = [match.span() for match in re.finditer(rb"[^,:;\[\]{}\"\s]+", data[:20_000])]
    return one_of(found, rng) if found else _piece(data, rng)


def _piece(data, rng):
    """Often near an end, where most formats keep their headers."""
    near = int(rng.integers(min(len(data), 160) + 1))
    first = one_of([near, len(data) - near, int(rng.integers(len(data) + 1))], rng)
    return first, first + int(rng.choice([0, 1, 2, 4, 8, rng.integers(200)]))


def _end(data, rng):
    """All from a place on, or up to it."""
    first, _ = _piece(data, rng)
    return (first, len(data)) if rng.integers(2) else (0, min(first, 64))


def _flipped(old, rng, others):
    changed = bytearray(old)
    for _ in range(rng.integers(1, 9) if changed else 0):
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def _size(old, rng, others):
    width = int(rng.choice([1, 2, 4, 8]))
    return (one_of(SIZES, rng) % 256**width).to_bytes(width, one_of(["little", "big"], rng))


def _elsewhere(old, rng, others):
    other = one_of(others, rng) if others else old
    return other[int(rng.integers(len(other) + 1)) :]


def _recoded(old, rng, others):
    """In another encoding; what is no text stays."""
    try:
        return old.decode("utf-8").encode(one_of(ENCODINGS, rng), "replace")
    except UnicodeDecodeError:
        return _flipped(old, rng, others)


PIECES = [
    _flipped,
    _flipped,
    _size,
    _size,
    _elsewhere,
    _recoded,
    lambda old, rng, others: b"",
    lambda old, rng, others: bytes(len(old)),
    lambda old, rng, others: old * int(rng.choice([2, 3, 300])),
    lambda old, rng, others: rng.bytes(int(rng.integers(1, 40))),
    lambda old, rng, others: one_of(WORDS, rng).encode(),
    lambda old, rng, others: one_of(WORDS, rng).encode(),
]


# Inside a shell that stays sound


def altered(value, rng):
    """JSON content with one place changed: another value, a name more or less, or a deep nest."""
    places = _places(value)
    if not places:
        return copy.deepcopy(one_of(VALUES, rng))
    holder, key = one_of(places, rng)
    kind = rng.integers(9)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[one_of(WORDS, rng)] = holder.pop(key)
    elif kind == 2 and isinstance(holder, list):
        holder.extend(holder[:50])
    elif kind == 3:
        for _ in range(int(rng.choice([1, 100, 500]))):
            holder[key] = [holder[key]] if rng.integers(2) else {"codecs": holder[key]}
    elif kind == 4 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * int(rng.choice([-1, 0, 2, 1000, 10**9, 10**18]))
    else:  # of its own, since it may be altered next
        holder[key] = copy.deepcopy(one_of(VALUES, rng))
    return value


def _places(value):
    """Every place in a nest of lists and dictionaries."""
    found, left = [], [value]
    while left:
        each = left.pop()
        if isinstance(each, dict | list):
            keys = each if isinstance(each, dict) else range(len(each))
            found += [(each, key) for key in keys]
            left += [each[key] for key in keys]
    return found


def json_altered(data, rng, others=()):
    """JSON text that is still JSON, unless it is nested too deeply for that."""
    try:
        content = json.loads(data)
        for _ in range(rng.integers(1, 4)):
            content = altered(content, rng)
        return json.dumps(content).encode()
    except (ValueError, RecursionError):
        return damaged(data, rng, others)


def journal_altered(data, rng, others=()):
    """Lines of JSON that are not what hullcal writes: one is changed, doubled or missing."""
    lines = data.splitlines()
    place, kind = int(rng.integers(len(lines))), rng.integers(8)
    if kind == 0:
        del lines[place]
    else:
        lines[place] = one_of(lines, rng) if kind == 1 else json_altered(lines[place], rng)
    return b"".join(line + b"\n" for line in lines)


def toml_altered(data, rng, others=()):
    """A table in which a key has another value, or a line more."""
    lines = data.decode().splitlines()
    place = int(rng.integers(len(lines)))
    key = f"{lines[place].partition('=')[0]}= " if rng.integers(2) else ""
    lines[place : place + bool(key)] = [key + one_of(TOML + WORDS, rng)]
    return "\n".join(lines).encode()


def npy_altered(data, rng, others=()):
    """An array whose header says something else, with its length right."""
    try:
        file = io.BytesIO(data)
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except Exception:  # damaged before, or of text
        return damaged(data, rng, others)
    header = {"descr": dtype.str, "fortran_order": fortran, "shape": shape}
    sizes = [0, 1, 3, 7, -1, 84, 2**31, 2**40, 2**63 - 1]
    odd = tuple(int(each) for each in rng.choice(sizes, rng.integers(0, 5)))
    key = one_of([*header], rng)
    header[key] = {"descr": one_of(DTYPES, rng), "fortran_order": not fortran, "shape": odd}[key]
    text = repr(header) if rng.integers(6) else "[" * 3000
    version = one_of([1, 1, 1, 2, 3, 9], rng)
    length = (len(text) + 1).to_bytes(2 if version == 1 else 4, "little")
    return data[:6] + bytes([version, 0]) + length + text.encode() + b"\n" + data[file.tell() :]


def safetensors_altered(data, rng, others=()):
    """A file whose header is still JSON of the length that it says."""
    length = int.from_bytes(data[:8], "little")
    header = json_altered(data[8 : 8 + length], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def zip_altered(data, rng, others=()):
    """An archive with a member damaged, renamed, missing, doubled, swapped, or blown up."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place, kind = int(rng.integers(len(members))), rng.integers(8)
    name, content = members.pop(place)
    if kind == 1:
        members.append((one_of(ODD_NAMES, rng), content))
    elif kind == 2:
        members += [(name, content), (name, damaged(content, rng))]
    elif kind == 3:
        members.append((name, one_of([*members, (name, content)], rng)[1]))
    elif kind == 4:  # zeros pack a thousandfold
        members.append((name, content + bytes(int(rng.choice([1, 10**6, 10**8])))))
    elif kind:
        members.append((name, inside(name, content, rng)))
    packed = zipfile.ZIP_DEFLATED if kind == 4 or rng.integers(2) else zipfile.ZIP_BZIP2
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", packed) as archive:
        warnings.simplefilter("ignore")  # two members of one name are what is wanted
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, packed)
    return buffer.getvalue()


def parquet_altered(data, rng, others=()):
    """A sound file with a column more or less, of another name or type, or with other cells."""
    table = pq.read_table(io.BytesIO(data))
    place, kind = int(rng.integers(table.num_columns)), rng.integers(8)
    name, column = table.column_names[place], table.column(place)
    if kind == 0:
        table = table.remove_column(place)
    elif kind == 1:
        table = table.set_column(place, one_of([*table.column_names, *WORDS], rng), column)
    elif kind == 2:
        table = table.append_column(one_of([*table.column_names, *WORDS], rng), column)
    elif kind == 3 and table.num_rows:
        cells = column.to_pylist()
        numbers = [np.nan, np.inf, -np.inf, 2.0, -0.5, 1e308, 5e-324, None]
        odd = numbers if isinstance(cells[0], float) else [None, "", "nobody"]
        cells[rng.integers(len(cells))] = one_of(odd, rng)
        table = table.set_column(place, name, pa.array(cells, column.type))
    elif kind == 4:
        table = pa.concat_tables([table] * int(rng.choice([2, 3, 100])))
    elif kind == 5:
        table = table.slice(0, int(rng.integers(2)))
    else:
        cell, of = one_of(CELLS, rng)
        table = table.set_column(place, name, pa.array([cell] * table.num_rows, of))
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression=one_of(["none", "snappy", "gzip", "brotli", "lz4", "zstd"], rng),
        row_group_size=int(rng.choice([1, 2, 1000])),
        data_page_version=one_of(["1.0", "2.0"], rng),
        use_dictionary=bool(rng.integers(2)),
        store_schema=bool(rng.integers(2)),
    )
    return buffer.getvalue()


#: What keeps the shell of a file, by the ending of its name.
SHELLS = {
    ".npy": npy_altered,
    ".npz": zip_altered,
    ".parquet": parquet_altered,
    ".safetensors": safetensors_altered,
    ".toml": toml_altered,
    ".jsonl": journal_altered,
    **dict.fromkeys((".json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"), json_altered),
}


def inside(name, data, rng, others=()):
    """A file changed by what its name says it is; half of the time the shell itself is damaged."""
    ending = Path(name).suffix.lower() or name.rpartition("/")[2]
    change = zip_altered if ending == ".zarr" else SHELLS.get(ending, damaged)
    return (change if rng.integers(2) else damaged)(data, rng, others)


def folder_altered(files, rng):
    """A folder, a dictionary of its files, of which one is changed, missing or misnamed."""
    files = dict(files)
    name = one_of(sorted(files), rng)
    content = inside(name, files.pop(name), rng)
    kind = rng.integers(10)
    if kind == 0:
        return files
    # Not out of the folder: that would be a file of the trial's own.
    odd = [name for name in ODD_NAMES if ".." not in name and not name.startswith("/")]
    return files | {one_of([*sorted(files), *odd], rng) if kind == 1 else name: content}
