"""Runs the tests of a module of the standard library, and counts by its syntax tree what its lines did.

Usage: counted_by_ast.py MODULE counted|plain. Prints how many tests ran and, if counted, by line how often its
statement was reached (`entered`) and how often the bodies of its loops began, by their level from 1 (`loops`). Lines of
which the tree does not say that clearly have no figure: several statements, statements of several lines, functions
inside. Nor have loops with a head of several lines, which are `unclear`, and those that never have a second pass.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import random
import sys
import unittest
from collections import Counter

COUNT = "__count_by_ast__"
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete, ast.Break, ast.Continue)
BLOCKS = ("body", "orelse", "finalbody")
counts: Counter[str] = Counter()


def count(key: str) -> bool:
    counts[key] += 1
    return True


def call(key: str) -> ast.Call:
    return ast.Call(ast.Name(COUNT, ast.Load()), [ast.Constant(key)], [])


def header(node: ast.stmt) -> ast.expr | None:
    """What of a compound statement stands in its first line, if only that is to be looked at."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    return node.test if isinstance(node, (ast.While, ast.If)) else None


def is_clear(node: ast.stmt) -> bool:
    """Does the tree say how often the statement's line is reached?"""
    head = header(node)
    inside = list(ast.walk(head or node))
    if any(isinstance(each, (ast.Lambda, *COMPREHENSIONS)) for each in inside) or isinstance(head, ast.Constant):
        return False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    if head:
        return head.end_lineno == node.lineno and node.body[0].lineno > node.lineno  # type: ignore[attr-defined]
    return isinstance(node, SIMPLE) and node.end_lineno == node.lineno


class Counting(ast.NodeTransformer):
    """Puts a call that counts before each statement, and into each loop."""

    def __init__(self, tree: ast.AST) -> None:
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        begun = Counter(node.lineno for node in statements)
        self.clear = {node.lineno for node in statements if is_clear(node) and begun[node.lineno] == 1}
        self._around: list[int] = []  # the lines of the loops around

    def _key(self, line: int) -> str:
        return f"{line} {1 + self._around.count(line)}"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, COMPREHENSIONS):
            return self._count_comprehension(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            around, self._around = self._around, []
            self._visit_fields(node)
            self._around = around
        elif isinstance(node, LOOPS):
            self._count_loop(node)
        else:
            self._visit_fields(node)
        return node

    def _visit_fields(self, node: ast.AST) -> None:
        super().generic_visit(node)
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [each for statement in block for each in self._counted(statement)])

    def _counted(self, node: ast.stmt) -> list[ast.stmt]:
        line = node.lineno
        return [ast.copy_location(ast.Expr(call(f"{line}")), node), node] if line in self.clear else [node]

    def _count_loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        key = self._key(node.lineno)
        self._around.append(node.lineno)
        self._visit_fields(node)
        self._around.pop()
        node.body.insert(0, ast.copy_location(ast.Expr(call(key)), node))

    def _count_comprehension(self, node: ast.AST) -> ast.AST:
        before = len(self._around)
        for clause in node.generators:  # type: ignore[attr-defined]
            clause.iter = self.visit(clause.iter)
            key = self._key(node.lineno)  # type: ignore[attr-defined]
            self._around.append(node.lineno)  # type: ignore[attr-defined]
            clause.ifs = [call(key), *(self.visit(each) for each in clause.ifs)]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        del self._around[before:]
        return node


def unclear_loops(tree: ast.AST) -> set[int]:
    """The lines of loops whose head is on several lines, or that have one pass at most."""
    found: set[int] = set()
    for node in ast.walk(tree):
        head = node if isinstance(node, COMPREHENSIONS) else header(node) if isinstance(node, LOOPS) else None
        if not head:
            continue
        end = head.end_lineno or head.lineno
        is_once = isinstance(node, LOOPS) and isinstance(node.body[-1], (ast.Return, ast.Raise, ast.Break))
        if is_once or end != node.lineno:
            found |= set(range(node.lineno, end + 1))
    return found


def loops_in_one_line(tree: ast.AST) -> set[int]:
    found = [node for node in ast.walk(tree) if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    return {node.lineno for node in found if node.end_lineno == node.lineno}


def load(name: str) -> tuple[set[int], set[int], set[int]]:
    """Load the module so that it counts.

    Gives the lines that have figures, those whose loops have none, and those that are whole loops.
    """
    spec = importlib.util.find_spec(name)
    assert spec and spec.origin
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    unclear, in_one_line, counting = unclear_loops(tree), loops_in_one_line(tree), Counting(tree)
    code = compile(ast.fix_missing_locations(counting.visit(tree)), spec.origin, "exec")
    module = importlib.util.module_from_spec(spec)
    vars(module)[COUNT] = count
    sys.modules[name] = module
    exec(code, vars(module))
    return counting.clear, unclear, in_one_line


def run_tests(name: str) -> int:
    random.seed(0)
    tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{name}")
    return unittest.TextTestRunner(verbosity=0).run(tests).testsRun


def main(name: str, how: str) -> None:
    none: set[int] = set()
    clear, unclear, in_one_line = load(name) if how == "counted" else (none, none, none)
    ran = run_tests(name)
    passed = {key: number for key, number in counts.items() if " " in key and int(key.split()[0]) not in unclear}
    entered = {line: counts[f"{line}"] for line in sorted(clear)}
    lines = {"unclear": sorted(unclear), "in_one_line": sorted(in_one_line)}
    print(json.dumps({"tests": ran, "entered": entered, "loops": passed, **lines}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
