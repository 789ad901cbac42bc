"""All mutants of a file, and a random sample of those of many files.

cosmic-ray is imported when it is needed: looking for doctests, pytest imports this file everywhere.
"""

import ast
import functools
import random
from dataclasses import dataclass
from pathlib import Path

#: Decorators without effect on loops that run uncompiled.
_COMPILING = {"compiled", "compiled_inline", "compiled_part", "compiled_value"}
#: What no operator changes; every one of some hundred operators looks at all nodes that are left.
_NEVER, _PUNCTUATION = {"newline", "endmarker", "string"}, set("()[]{},:.=")


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `occurrence` counts the places where the operator applies."""

    file: str
    operator: str
    occurrence: int
    line: int

    @property
    def name(self):
        return f"{self.file} {self.operator} {self.occurrence}"

    @functools.cache  # noqa: B019
    def applied(self, source):
        """The source with this change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        return mutate_code(source, get_operator(self.operator)(), self.occurrence)

    def change(self, source):
        """The lines that differ, before and after."""
        before, after = source.splitlines(), self.applied(source).splitlines()
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        return " ".join(map(str.strip, before)), " ".join(map(str.strip, after))


def mutants_of(root, file):
    """Those that could make a difference, in the order of cosmic-ray."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = (Path(root) / file).read_text(encoding="utf-8")
    skipped = _unevaluated(source)
    nodes = [node for node in ast_nodes(get_ast(source)) if node.type not in _NEVER]
    nodes = [node for node in nodes if getattr(node, "value", "") not in _PUNCTUATION]
    found = []
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue  # has to be told which names to replace
        where = operator().mutation_positions
        positions = (start for node in nodes for start, _ in where(node))
        for occurrence, (line, column) in enumerate(positions):
            if not any(first <= (line, column) < last for first, last in skipped):
                found.append(Mutant(file, name, occurrence, line))
    return found


def _unevaluated(source):
    """Where nothing is evaluated, or only compiled: pairs of (line, column)."""
    skipped = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            skipped.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            skipped += [node.returns] if node.returns is not None else []
            skipped += [
                each
                for each in node.decorator_list
                if isinstance(each, ast.Name) and each.id in _COMPILING
            ]
    # A decorator begins with its sign, one column before its name.
    return [
        ((each.lineno, each.col_offset - 1), (each.end_lineno, each.end_col_offset))
        for each in skipped
    ]


def sampled(population, size, seed):
    """So many mutants, from each file in proportion to its number, in an order that is random too."""
    draw = random.Random(seed)
    shuffled = draw.sample(population, len(population))
    # Of mutants that are sorted by file, every n-th is taken, from a place that is random.
    by_file = sorted(shuffled, key=lambda mutant: mutant.file)
    step, start = len(by_file) / min(size, len(by_file)), draw.random()
    chosen = [by_file[int((i + start) * step)] for i in range(min(size, len(by_file)))]
    return draw.sample(chosen, len(chosen))
