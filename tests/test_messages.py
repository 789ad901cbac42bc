"""Every refusal says what came, and then what to do about it."""

import ast
import re
from pathlib import Path

import pytest

import hullcal

ROOT = Path(hullcal.__file__).parent


def text(node):
    """The words of a message, with what is filled in between braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{...}"
    if isinstance(node, ast.BinOp):
        return text(node.left) + text(node.right)
    return "{...}"


def refusals(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InvalidInputError":
            yield node.lineno, text(node.args[0])


FOUND = [(path, *found) for path in sorted(ROOT.rglob("*.py")) for found in refusals(path)]


def says_what_to_do(words):
    """A sentence follows the one that says what came, or a clause where nothing came."""
    return (
        "got " not in words or re.search(r"got .+[.?)] +\S.+[.?}]$", words, re.DOTALL) is not None
    )


def test_there_are_refusals_to_look_at():
    assert len(FOUND) > 30
    assert not says_what_to_do("`alpha` must be below 1; got {...}.")


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [pytest.param(*found, id=f"{found[0].relative_to(ROOT)}:{found[1]}") for found in FOUND],
)
def test_a_refusal_says_what_to_do(path, line, words):
    assert says_what_to_do(words), words
