"""How is a file damaged so that its outer shell stays sound, and readers get to what is inside?"""

import copy
import io
import json
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np

from fuzzing.mutations import WORDS, damaged
from fuzzing.parquet import parquet_altered

#: Values that no field expects.
VALUES = [None, True, False, 0, -1, 1, 2, 0.5, 1e308, -1e-320, 10**30, 2**63, "", "x", "nan"]
VALUES += [
    "Infinity",
    "NaN",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    [1, "a"],
    {"float": "NaN"},
    {"float": []},
]
VALUES += [{"a": {"b": []}}, "x" * 10_000, list(range(2000))]


#: Types that an array may claim to have; the last ones are none.
DTYPES = ["<f8", ">f8", "<f2", "<f4", "|O", "<c16", "<M8[s]", "|S4", "<U3", "|V8", "|b1", "<i8"]
DTYPES += ["f8,f8", "<u1", "<f16", "x", ""]


def altered(value, rng):
    """JSON content with one place changed: another value, a name more or less, or a deep nest."""
    where = _places(value)
    if not where:
        return _odd(rng)
    holder, key = where[rng.integers(len(where))]
    kind = rng.integers(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[WORDS[rng.integers(len(WORDS))]] = holder.pop(key)
    elif kind == 2:
        other, name = where[rng.integers(len(where))]
        if isinstance(holder[key], str | int | float) and name in _names(other):
            holder[key], other[name] = other[name], holder[key]
    elif kind == 3 and isinstance(holder, list):
        holder.extend(holder[:50])
    elif kind == 4:
        for _ in range(int(rng.choice([1, 100, 500]))):
            holder[key] = [holder[key]] if rng.integers(2) else {"codecs": holder[key]}
    elif kind == 5 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * int(rng.choice([-1, 0, 2, 1000, 10**9, 10**18]))
    else:
        holder[key] = _odd(rng)
    return value


def _odd(rng):
    return copy.deepcopy(
        VALUES[rng.integers(len(VALUES))]
    )  # of its own, since it may be altered next


def _names(holder):
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(value):
    """Every place in a nest of lists and dictionaries."""
    found, left = [], [value]
    while left:
        each = left.pop()
        if isinstance(each, dict | list):
            for key in _names(each):
                found.append((each, key))
                left.append(each[key])
    return found


def json_altered(data, rng, others=()):
    """JSON text that is still JSON; often its text is damaged instead."""
    try:
        content = json.loads(data)
        for _ in range(rng.integers(1, 4)):
            content = altered(content, rng)
        return json.dumps(content).encode()
    except (ValueError, RecursionError):
        return damaged(data, rng, others)


def npy_altered(data, rng, others=()):
    """An array whose header says something else, with its length and padding right."""
    changes = {
        "descr": rng.choice(DTYPES),
        "fortran_order": bool(rng.integers(2)),
        "shape": tuple(
            rng.choice([0, 1, 3, 7, -1, 84, 2**31, 2**40, 2**63 - 1], rng.integers(0, 5))
        ),
    }
    size = 10
    try:
        length = struct.unpack("<H", data[8:10])[0]
        header = eval(data[size : size + length], {"__builtins__": {}})  # our own specimen
    except Exception:
        return damaged(data, rng, others)
    if not isinstance(header, dict):
        return damaged(data, rng, others)
    key = rng.choice([*changes])
    header[str(key)] = changes[key]
    if isinstance(header.get("shape"), tuple):
        header["shape"] = tuple(map(int, header["shape"]))
    text = repr(header).replace("np.str_", "str")
    if not rng.integers(6):
        text = rng.choice(
            [text[:-1], text + "," * 50, "[" * 3000, "{" * 90 + "}" * 90, "-" * 3000 + "1"]
        )
    encoded = text.encode().ljust(length - 1)[:65_000] + b"\n"
    version = bytes(rng.choice([1, 1, 1, 2, 3, 9], 1).astype(np.uint8)) + b"\0"
    form = "<H" if version[0] == 1 else "<I"
    return data[:6] + version + struct.pack(form, len(encoded)) + encoded + data[size + length :]


def zip_altered(data, rng, others=()):
    """An archive with a member damaged, renamed, missing, doubled, swapped, or blown up."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    name = names[rng.integers(len(names))]
    entries = [*members.items()]
    kind = rng.integers(8)
    if kind == 0:
        entries = [(n, c) for n, c in entries if n != name]
    elif kind == 1:
        odd = [
            "../probs.npy",
            "/probs.npy",
            "probs.npy",
            "labels.npy",
            "x.npy",
            ".npy",
            "é.npy",
            "a.pkl",
        ]
        odd += ["zarr.json", "probs/c/0/0/0", "\\probs.npy", "x" * 300 + ".npy"]
        entries = [(str(rng.choice(odd)) if n == name else n, c) for n, c in entries]
    elif kind == 2:
        entries.append((name, damaged(members[name], rng)))
    elif kind == 3:
        other = names[rng.integers(len(names))]
        exchanged = {name: members[other], other: members[name]}
        entries = [(n, exchanged.get(n, c)) for n, c in entries]
    elif kind == 4:
        # Zeros pack a thousandfold: some hundred kilobytes of archive for some hundred megabytes.
        entries = [
            (n, c + bytes(int(rng.choice([1, 10**6, 10**8])))) if n == name else (n, c)
            for n, c in entries
        ]
    else:
        inner = inside(name, members[name], rng)
        entries = [(n, inner if n == name else c) for n, c in entries]
    buffer = io.BytesIO()
    how = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2][rng.integers(3)]
    how = zipfile.ZIP_DEFLATED if kind == 4 else how
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", how) as archive:
        warnings.simplefilter("ignore")  # two members of one name are what is wanted
        for each, content in entries:
            archive.writestr(zipfile.ZipInfo(each), content, how)
    return buffer.getvalue()


def inside(name, data, rng):
    """A file in an archive or a folder, changed by what its name says it is."""
    if name.endswith((".json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")) and rng.integers(4):
        return json_altered(data, rng)
    change = SHELLS.get(Path(name).suffix.lower(), damaged)
    return (change if rng.integers(2) else damaged)(data, rng)


def safetensors_altered(data, rng, others=()):
    """A file whose header is still JSON of the length that it says."""
    length = int.from_bytes(data[:8], "little")
    header = json_altered(data[8 : 8 + length], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def journal_altered(data, rng, others=()):
    """A journal whose lines are changed and are still JSON."""
    lines = data.splitlines()
    number = int(rng.integers(len(lines)))
    if not rng.integers(6):
        lines.insert(number, lines[rng.integers(len(lines))])
    elif not rng.integers(8):
        del lines[number]
    else:
        content = json.loads(lines[number])
        for _ in range(rng.integers(1, 3)):
            content = altered(content, rng)
        lines[number] = _as_line(content)
    return b"".join(line + b"\n" for line in lines)


def _as_line(content):
    try:
        return json.dumps(content).encode()
    except RecursionError:  # so deep that only text can say it
        return b"[" * 10_000


#: What keeps the shell of a file, by the ending of its name.
SHELLS = {
    ".npy": npy_altered,
    ".npz": zip_altered,
    ".parquet": parquet_altered,
    ".safetensors": safetensors_altered,
    ".json": json_altered,
}
