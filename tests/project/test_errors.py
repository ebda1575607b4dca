"""All errors stand in one tree: those that a user sees, and those that are caught inside interpose."""

import ast
import builtins
import importlib
from functools import cache
from pathlib import Path

import pytest

from interpose.cli import main as command_line
from interpose.errors import Caught, InterposeError, UsageError

TOP = Path(__file__).parents[2]
ROOTS = ("InterposeError", "Caught")
HOME = TOP / "interpose" / "errors.py"

BUILT_IN = {name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)}


@cache
def classes() -> list[tuple[Path, ast.ClassDef]]:
    """Every class in the modules of the program and of what reads and writes experiments."""
    return [
        (path, node)
        for folder in ("interpose", "experiments")
        for path in sorted((TOP / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]


def bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def errors() -> dict[str, tuple[Path, list[str]]]:
    """The classes that are exceptions, directly or through one another, with what each derives from."""
    found: dict[str, tuple[Path, list[str]]] = {}
    every = [(path, node.name, bases(node)) for path, node in classes()]
    for _ in every:
        more = {
            name: (path, names)
            for path, name, names in every
            if name not in found and any(each in BUILT_IN or each in found for each in names)
        }
        if not more:
            break
        found |= more
    return found


@pytest.mark.long
def test_every_error_stands_in_the_tree():
    found = errors()

    outside = {
        f"{path.relative_to(TOP)}: {name} is a {', '.join(names)}"
        for name, (path, names) in found.items()
        if not (path == HOME and name in ROOTS) and any(each in BUILT_IN for each in names)
    }
    assert not outside
    assert {"LayoutError", "Refused", "CannotAttach", "PatternError", "NotRecorded"} <= found.keys()


def test_no_two_errors_have_one_name():
    names = [node.name for _, node in classes()]

    twice = {name for name in errors() if names.count(name) > 1}
    # interpose.config.state tells of processes that were not recorded, interpose.cli.running.child of one that ended.
    assert twice <= {"NotRecorded", "Ended"}


def test_what_is_caught_inside_is_no_error_for_a_user():
    assert not issubclass(Caught, InterposeError)
    assert not hasattr(Caught, "exit_code")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("interpose.attach.tracee", "CannotAttach"),
        ("interpose.analysis.expressions.patterns", "PatternError"),
    ],
)
def test_errors_for_users_have_an_exit_code(module, name):
    error = getattr(importlib.import_module(module), name)

    assert issubclass(error, InterposeError)
    assert error.exit_code in (1, 2)


def test_the_command_line_ends_with_the_exit_code_of_an_error(monkeypatch, capsys):
    def fail(given: list[str]) -> int:
        raise UsageError("what is wrong")

    monkeypatch.setattr(command_line, "_run", fail)

    assert command_line.main([]) == UsageError.exit_code
    assert capsys.readouterr().err == "interpose: what is wrong\n"
