"""How is a file damaged, whatever it holds?"""

import re

import numpy as np

#: What programs forget to expect in place of a number or a name.
WORDS = [
    *(
        "",
        "nan",
        "inf",
        "-inf",
        "-0",
        "0",
        "1",
        "1e999",
        "-1e-400",
        "1_0",
        "0x10",
        "１",
        "½",
        "true",
    ),
    *("null", "None", "=1+1", '"', '""', "'", ",", ";", ":", "/", "\n", "\r", "\r\n\n", "\t", " "),
    *(
        "\0",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x1c",
        "é",
        "\U0001f989",
        "9" * 30,
        "9" * 5000,
        "x" * 140_000,
    ),
    *(
        "probs",
        "labels",
        "label",
        "classes",
        "members",
        "row",
        "p_",
        "a:b",
        "[" * 5000,
        '{"a":' * 5000,
    ),
]
#: Numbers at which sizes overflow, and around which loops err by one.
SIZES = [
    0,
    1,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
]
ENCODINGS = ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "utf-8-sig", "cp037"]

#: A run of digits, as headers in text write their sizes.
_DIGITS = re.compile(rb"[0-9]+")


def damaged(data, rng, others=()):
    """The bytes after one to four changes, mostly one."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        change = CHANGES[rng.integers(len(CHANGES))]
        data = change(data, rng, others)
    return data


def place_in(data, rng):
    """Somewhere in the bytes; as often as not near an end, where most formats keep their headers."""
    length = len(data) + 1
    kind = rng.integers(4)
    near = min(length, 160)
    if kind == 0:
        return int(rng.integers(near))
    if kind == 1:
        return length - 1 - int(rng.integers(near))
    return int(rng.integers(length))


def flip(data, rng, others):
    """Turn over up to eight bits."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9) if changed else 0):
        place = min(place_in(data, rng), len(data) - 1)
        changed[place] ^= 1 << rng.integers(8)
    return bytes(changed)


def overwrite(data, rng, others):
    """Put a size where there may be one."""
    width = int(rng.choice([1, 2, 4, 8]))
    size = SIZES[rng.integers(len(SIZES))] % 256**width
    order = "little" if rng.integers(3) else "big"
    place = place_in(data, rng)
    return data[:place] + size.to_bytes(width, order) + data[place + width :]


def blow_up(data, rng, others):
    """Replace a number written in digits by one that is too large or too small."""
    found = list(_DIGITS.finditer(data[:20_000]))
    if not found:
        return overwrite(data, rng, others)
    one = found[rng.integers(len(found))]
    number = rng.choice(["0", "-1", "2", "7", "1" + "0" * 9, "9" * 19, "9" * 40, "1.5", "1e3"])
    return data[: one.start()] + number.encode() + data[one.end() :]


def truncate(data, rng, others):
    """Cut off the end."""
    return data[: place_in(data, rng)]


def behead(data, rng, others):
    """Cut off the beginning."""
    return data[min(place_in(data, rng), 64) :]


def remove(data, rng, others):
    """Take a piece out."""
    place = place_in(data, rng)
    return data[:place] + data[place + int(rng.integers(1, 64)) :]


def repeat(data, rng, others):
    """Write a piece twice, or many times."""
    place = place_in(data, rng)
    piece = data[place : place + int(rng.integers(1, 128))]
    return data[:place] + piece * int(rng.choice([2, 3, 300])) + data[place + len(piece) :]


def insert(data, rng, others):
    """Put in some bytes, or a word."""
    place = place_in(data, rng)
    if rng.integers(2):
        piece = rng.integers(0, 256, int(rng.integers(1, 40)), dtype=np.uint8).tobytes()
    else:
        piece = WORDS[rng.integers(len(WORDS))].encode()
    return data[:place] + piece + data[place:]


def splice(data, rng, others):
    """Go on as another file does."""
    if not others:
        return repeat(data, rng, others)
    other = others[rng.integers(len(others))]
    return data[: place_in(data, rng)] + other[place_in(other, rng) :]


def swap(data, rng, others):
    """Let two pieces change places."""
    first, second = sorted((place_in(data, rng), place_in(data, rng)))
    width = min(int(rng.integers(1, 64)), second - first)
    a, b = data[first : first + width], data[second : second + width]
    return data[:first] + b + data[first + width : second] + a + data[second + width :]


def zero(data, rng, others):
    """Lose a piece as a power cut does."""
    place = place_in(data, rng)
    width = int(rng.integers(1, 200))
    return data[:place] + bytes(len(data[place : place + width])) + data[place + width :]


def recode(data, rng, others):
    """Write text in another encoding; what is no text stays."""
    try:
        text = data.decode("utf-8")
        return text.encode(ENCODINGS[rng.integers(len(ENCODINGS))], "replace")
    except UnicodeDecodeError:
        return flip(data, rng, others)


def reword(data, rng, others):
    """Replace what stands between two separators."""
    parts = re.split(rb"([,:;\[\]{}\"\r\n ]+)", data[:50_000])
    parts[rng.integers(len(parts))] = WORDS[rng.integers(len(WORDS))].encode()
    return b"".join(parts) + data[50_000:]


CHANGES = [flip, flip, overwrite, overwrite, blow_up, blow_up, truncate, behead, remove, repeat]
CHANGES += [insert, splice, swap, zero, recode, reword, reword]
