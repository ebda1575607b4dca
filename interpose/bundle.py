"""The modules that the start of a recording takes, compiled, one after the other in one piece: the bundle.

To find and read thirty files costs more than to execute them. An installed package has the bundle as a file, which
`setup.py` makes and `interpose.boot` reads; `interpose attach` sends it into the program.
"""

from __future__ import annotations

import ast
import marshal
import os
from collections.abc import Collection, Iterator
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
    begin and the end; the end of a compiled library is 0. The empty name has the type of the code. `<start>` has what
    every start imports: the names in the order in which they can be executed, and the position of the codes of all, as
    one tuple."""

    places: dict[str, object]
    code: bytes

    def as_file(self) -> bytes:
        """The code, the places, and in eight bytes where these begin."""
        return b"".join([self.code, marshal.dumps(self.places), len(self.code).to_bytes(8, "little")])


def make(directories: list[str], within: str = "", without: Collection[str] = ()) -> Bundle:
    """The bundle of the package in these directories; its paths continue after `within`. It has no code of the modules
    `without`, which are read from their files."""
    places: dict[str, object] = {"": MAGIC_NUMBER}
    code = b""
    for name, source in sorted(_sources(directories).items()):
        file = source.file.removeprefix(within)
        compiled = marshal.dumps(_compiled(source.file, file)) if source.is_python and name not in without else b""
        below = [source.directory.removeprefix(within)] if source.directory else None
        end = len(code) + len(compiled) if compiled else 0
        places[name] = (file, below, len(code), end)
        code += compiled
    return Bundle(places, code)


def make_for_start(directories: list[str], within: str = "") -> Bundle:
    """The same, with one piece for everything that every start imports, which is read and executed faster."""
    names = [name for name in _in_order(START, directories) if name not in ("interpose", "interpose.boot")]
    sources = [_find(name, directories) for name in names]
    codes = [_compiled(source.file, source.file.removeprefix(within)) for source in sources if source]
    together = marshal.dumps(tuple(codes))
    others = make(directories, within, without=names)
    begin = len(others.code)
    return Bundle({**others.places, "<start>": (tuple(names), begin, begin + len(together))}, others.code + together)


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
