"""The modules that the start of a recording takes, compiled, in one piece: the bundle.

To find and read thirty files costs more than to execute them. An installed package has a file with those that every
start imports, which `setup.py` makes and `interpose.boot` reads. `interpose attach` sends all that any start may take.
"""

from __future__ import annotations

import ast
import marshal
import os
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import MAGIC_NUMBER
from pkgutil import iter_modules
from types import CodeType
from typing import NamedTuple

FIRST = ("interpose.boot", "interpose.capture.attached")
START = "interpose.capture.session"
# Its modules are imported by computed names.
DECLARED = "interpose.instrumentation.system_library"


class Source(NamedTuple):
    """A module of interpose: its file, and the directory of its submodules, empty if there are none."""

    file: str
    directory: str

    @property
    def is_python(self) -> bool:
        return self.file.endswith(".py")


class Bundle(NamedTuple):
    """Where each module's code is in the whole `code`: by name the file, the directories of submodules or None, the
    begin and the end; the end is 0 for a compiled library, and for a module of `<start>`, which has what every start
    imports: the names in the order in which they can be executed, and the position of the codes of all, as one tuple.
    The empty name has the type of the code."""

    places: dict[str, object]
    code: bytes

    def as_file(self) -> bytes:
        """The code, the places, and in eight bytes where these begin."""
        return b"".join([self.code, marshal.dumps(self.places), len(self.code).to_bytes(8, "little")])


def make(directories: list[str], within: str = "") -> Bundle:
    """The bundle of the package in these directories; its paths continue after `within`."""
    places: dict[str, object] = {"": MAGIC_NUMBER}
    code = b""
    for name, source in sorted(_sources(directories).items()):
        compiled = marshal.dumps(_compiled(source.file, source.file.removeprefix(within))) if source.is_python else b""
        places[name] = _place(source, within, len(code), len(code) + len(compiled) if compiled else 0)
        code += compiled
    return Bundle(places, code)


def make_for_start(directories: list[str], within: str = "") -> Bundle:
    """One piece for everything that every start imports, and where the compiled libraries are. Others are read from
    their files."""
    names = [name for name in _in_order(START, directories) if name not in ("interpose", "interpose.boot")]
    found = _sources(directories)
    codes = [_compiled(found[name].file, found[name].file.removeprefix(within)) for name in names]
    code = marshal.dumps(tuple(codes))
    places: dict[str, object] = {"": MAGIC_NUMBER, "<start>": (tuple(names), 0, len(code))}
    places.update({name: _place(found[name], within) for name in found if name in names or not found[name].is_python})
    return Bundle(places, code)


def _place(source: Source, within: str, begin: int = 0, end: int = 0) -> tuple[str, list[str] | None, int, int]:
    below = [source.directory.removeprefix(within)] if source.directory else None
    return source.file.removeprefix(within), below, begin, end


def _in_order(name: str, directories: list[str], found: dict[str, bool] | None = None) -> list[str]:
    """The modules that a module imports while it is imported itself, each behind those that it needs, and it as the
    last."""
    found = {} if found is None else found
    source = None if name in found else _find(name, directories)
    if source is None or not source.is_python:
        return []
    found[name] = True
    packages = [name.rpartition(".")[0]] if "." in name else []
    needed = [*packages, *_imported_at_once(ast.parse(_text(source.file)))]
    return [*(each for other in needed for each in _in_order(other, directories, found)), name]


def _imported_at_once(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _named(node)


def _compiled(path: str, shown: str) -> CodeType:
    return compile(_text(path), shown, "exec", dont_inherit=True)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as source:
        return source.read()


def _sources(directories: list[str]) -> dict[str, Source]:
    """The modules that the first ones import, wherever in them, and those that these import."""
    found: dict[str, Source] = {}
    wanted = list(FIRST)
    while wanted:
        name = wanted.pop()
        source = None if name in found else _find(name, directories)
        if source is None:
            continue
        found[name] = source
        wanted.append(name.rpartition(".")[0])
        if source.is_python:
            wanted += _imported(ast.parse(_text(source.file)))
        if name == DECLARED:
            wanted += [each.name for each in iter_modules([source.directory], f"{name}.")]
    return found


def _find(name: str, directories: list[str]) -> Source | None:
    """The source of a module; None for a name that is not one of ours."""
    first, *inner = name.split(".")
    for directory in directories if first == "interpose" else ():
        path = os.path.join(directory, *inner)
        if os.path.exists(package := os.path.join(path, "__init__.py")):
            return Source(package, path)
        for suffix in (".py", *EXTENSION_SUFFIXES):
            if inner and os.path.exists(path + suffix):
                return Source(path + suffix, "")
    return None


def _imported(tree: ast.AST) -> Iterator[str]:
    """The imports at run time, without those for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _named(node)
        elif not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield from _imported(node)


def _named(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
