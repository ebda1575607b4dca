"""The modules that the start of a recording takes, compiled, in one piece: the bundle.

To find and read thirty files costs more than to execute them. An installed package has a file with those that every
start imports, which `setup.py` makes and `interpose.boot` reads. `interpose attach` sends all that any start may take.
"""

from __future__ import annotations

import ast
import marshal
import os
import sysconfig
from array import array
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import MAGIC_NUMBER
from pkgutil import iter_modules
from types import CodeType
from typing import Any, NamedTuple

FIRST = ("interpose.boot", "interpose.capture.attached")
IMPORTED_BEFORE = ("interpose", "interpose.boot")
START = "interpose.capture.session"
COMPILED = "interpose.timing"  # the package of the compiled libraries
FREE_THREADED = "interpose.capture.free_threads"  # which every start imports where there is no interpreter lock
SETTINGS = ("interpose.config.precedence", "interpose.config.project_file")
DECLARING = "interpose.capture.interposed"
# Its modules are imported by computed names.
DECLARED = "interpose.instrumentation.system_library"
NUMBER = "number"  # the first field of a declaration
WITHOUT_DOCSTRINGS = 2  # as in `python -OO`


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
    `<packed>` has the position of ready-made data: the `PACKED` of each module. The empty name has the type of the
    code."""

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


def make_for_start(directories: list[str], fields: tuple[str, ...], within: str = "") -> Bundle:
    """One piece for everything that every start imports, what it finds ready, and where the compiled libraries are.
    Others are read from their files. The package in the directories must be the one that is imported. `fields` are what
    timing/intrinsics.pxi reads of a declaration."""
    from interpose.config import in_force

    found = _sources(directories)
    made = _in_one_piece(_names_for_start(directories), directories, within)
    made.places.update({name: _place(each, within) for name, each in found.items() if not each.is_python})
    ready = marshal.dumps({DECLARING: tuple(packed(fields)), in_force.__name__: in_force.usual()})
    made.places["<packed>"] = (len(made.code), len(made.code) + len(ready))
    return Bundle(made.places, made.code + ready)


def make_for_settings(directories: list[str], within: str = "") -> Bundle:
    """One piece for what a start also imports if other settings are set."""
    known = dict.fromkeys([*IMPORTED_BEFORE, *_names_for_start(directories)], True)
    names = [name for each in SETTINGS for name in _in_order(each, directories, known)]
    return _in_one_piece(names, directories, within)


def _names_for_start(directories: list[str]) -> list[str]:
    known = dict.fromkeys(IMPORTED_BEFORE, True)
    begun = [START, COMPILED, *([FREE_THREADED] if sysconfig.get_config_var("Py_GIL_DISABLED") else [])]
    return [name for each in begun for name in _in_order(each, directories, known)]


def _in_one_piece(names: list[str], directories: list[str], within: str) -> Bundle:
    found = _sources(directories)
    used = {name for each in found.values() if each.is_python for name in _identifiers(ast.parse(_text(each.file)))}
    code = marshal.dumps(tuple([_lean_code(found[name], within, used) for name in names]))
    places: dict[str, object] = {"": MAGIC_NUMBER, "<start>": (tuple(names), 0, len(code))}
    return Bundle(places | {name: _place(found[name], within) for name in names}, code)


class Packed(NamedTuple):
    """What the system library declares at once, as a start with the default settings resolves it. Making the
    declarations from it takes a tenth of the time that importing the modules that declare them takes. Only those of
    modules that the program imports are made.

    For each module, `modules` has the texts that only its declarations use, separated by zero bytes, and two bytes for
    each field of each declaration. The first field is the declaration's number. For the others, the two bytes are the
    value's position in `shared` followed by these texts."""

    fields: tuple[str, ...]
    next_number: int
    shared: tuple[Any, ...]
    modules: dict[str, tuple[str, bytes]]


def packed(fields: tuple[str, ...]) -> Packed:
    from interpose import library
    from interpose.instrumentation import system_library

    system_library.forget()
    declared = library.resolve([(library.SYSTEM, system_library.standard())])
    values = {repr(value): value for each in declared for _, value in _values(each, fields)}
    users: dict[str, set[str]] = {shown: set() for shown in values}
    for each in declared:
        for shown, _ in _values(each, fields):
            users[shown].add(each.module)
    shared = [shown for shown, value in values.items() if len(users[shown]) > 1 or not isinstance(value, str)]
    modules = {}
    for module in dict.fromkeys([each.module for each in declared]):
        own = [shown for shown in values if users[shown] == {module} and shown not in shared]
        places = {shown: place for place, shown in enumerate([*shared, *own])}
        numbers = array("H")
        for each in [each for each in declared if each.module == module]:
            numbers.extend([each.number, *(places[shown] for shown, _ in _values(each, fields))])
        modules[module] = "\0".join([values[shown] for shown in own]), numbers.tobytes()
    next_number = max(each.number + max(1, len(each.kinds)) for each in declared)
    system_library.forget()  # the numbers too
    return Packed(fields, next_number, tuple([values[shown] for shown in shared]), modules)


def _values(declared: object, fields: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The values of a declaration without its number, each after its repr, which equal values of one type share."""
    return [(repr(value := getattr(declared, name)), value) for name in fields if name != NUMBER]


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


def _lean_code(source: Source, within: str, used: set[str]) -> CodeType:
    """The code of a module without what a start does not need."""
    lean = ast.fix_missing_locations(_Lean(used).visit(ast.parse(_text(source.file))))
    return compile(lean, source.file.removeprefix(within), "exec", dont_inherit=True, optimize=WITHOUT_DOCSTRINGS)


class _Lean(ast.NodeTransformer):
    """Leaves out annotations, what only they need, and the module's functions and classes that nobody names."""

    def __init__(self, used: set[str]) -> None:
        self._used = used

    def visit_Module(self, node: ast.Module) -> ast.AST:
        node.body = [each for each in node.body if self._is_needed(each)]
        return self.generic_visit(node)

    def _is_needed(self, node: ast.stmt) -> bool:
        return not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name in self._used

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def _identifiers(tree: ast.AST) -> Iterator[str]:
    """The names that a module uses; with texts, which may be names for `getattr`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


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
