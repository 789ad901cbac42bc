"""How is a grid written as TOML, with something in it that grids do not have?"""

import json
import re
import tomllib

from fuzzing.mutations import WORDS, damaged
from fuzzing.structures import altered

#: Values that JSON cannot say; the last ones TOML cannot either.
VALUES = [
    *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27T00:32:00.999999-07:00"),
    *(
        "0xff",
        "0o7",
        "0b1",
        "1_000",
        "+inf",
        "-nan",
        "-0.0",
        "'S1'",
        "'''\nS1'''",
        '"""\\\n  S1"""',
    ),
    *("[1979-05-27, 0x1]", "[nan]", "{a.b = 1}", "{}", "[{}]", "[1, 'a', []]", '"\\U0001F989"'),
    *("0000-00-00", "25:61:61", "1__0", "0xg", "", "'", '"""', "[1", "{a = 1", '"\\ud800"', "null"),
]
#: Lines that change what the lines around them mean.
LINES = [
    *("[n_samples]", "[[n_samples]]", "[alpha.beta]", "[[a.b]]", "seed.x = 1", "seed = 1", "[]"),
    *("# comment \x7f", "\ufeff", "\0", "=", "a", "'' = 1", '"\\u0000" = 1', "a.a.a = []", "\r"),
]
#: A string of JSON, or a sign that is not in one.
_SIGNS = re.compile(r'("(?:\\.|[^"\\])*")|(:)|(NaN|Infinity)')


def written(content):
    """A table as TOML; what JSON calls null, TOML has not."""
    lines = (f"{json.dumps(key)} = {_value(value)}\n" for key, value in content.items())
    return "".join(lines).encode()


def toml_altered(data, rng, others=()):
    """A table with a value, a line or any piece of its text changed."""
    kind = rng.integers(4)
    if kind == 0:
        return written(altered(tomllib.loads(data.decode()), rng))
    if kind == 1:
        return damaged(data, rng, others)
    lines = data.decode().splitlines()
    place = int(rng.integers(len(lines) + 1))
    if kind == 2 and place < len(lines):
        key = lines[place].partition("=")[0]
        lines[place] = f"{key}= {VALUES[rng.integers(len(VALUES))]}"
    else:
        pool = LINES + WORDS
        lines.insert(place, pool[rng.integers(len(pool))])
    return "\n".join(lines).encode()


def _value(value):
    """Lists, strings and most numbers are written as in JSON."""
    return _SIGNS.sub(_sign, json.dumps(value))


def _sign(found):
    string, colon, number = found.groups()
    return string or (" =" if colon else number.lower()[:3])
