"""Which files are asked about: by directories, and by patterns as coverage.py reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

FILES_AT_MOST = 100_000
SOURCES, EXTENSIONS, COMPILED = (".py", ".pyw"), (".so",), (".pyc",)
_LEFT_OUT = {"__pycache__", "site-packages", "dist-packages", "node_modules"}
_GLOB = re.compile(r"^\*+/|/\*+$|\*\*+/?|\*|\?|\[!?[^\]]*\]|.", re.DOTALL)


def matcher(pattern: str, directory: str) -> re.Pattern[str]:
    """What a pattern of files means: `*` and `?` are of one name, `**` of several, as is `*` at beginning and end.

    One that begins with neither `/` nor `*` is below `directory`.
    """
    if not pattern.startswith(("/", "*", "?", "[")):
        pattern = os.path.normpath(os.path.join(directory, pattern)) + ("/" if pattern.endswith("/") else "")
    pattern = pattern + "*" if pattern.endswith("/") else pattern
    return re.compile("".join(map(_piece, _GLOB.findall(pattern))), re.DOTALL)


def _piece(piece: str) -> str:
    if piece.startswith("*"):
        if piece.endswith("/"):
            return "(?:.*/)?"
        return "[^/]*" if piece == "*" else ".*"
    if piece.startswith("/*"):
        return "/.*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 1:
        inner = piece[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(piece)


class Chosen:
    """Files in directories (any where none are named) that match one of `include`, if any, and none of `omit`."""

    def __init__(self, directories: Sequence[str], include: Sequence[str], omit: Sequence[str], place: str) -> None:
        self.directories = [os.path.realpath(os.path.join(place, each)) for each in directories]
        self._include = [matcher(each, place) for each in include]
        self._omit = [matcher(each, place) for each in omit]

    def has(self, path: str) -> bool:
        """Whether the options select the file."""
        if self.directories and not any(_is_below(path, each) for each in self.directories):
            return False
        if self._include and not any(each.fullmatch(path) for each in self._include):
            return False
        return not any(each.fullmatch(path) for each in self._omit)

    def modules(self) -> Iterator[tuple[str, str]]:
        """The paths of the modules in the given directories, and their names as far as paths show them."""
        for directory in self.directories:
            paths = [directory] if os.path.isfile(directory) else _files(directory)
            for path in paths:
                if path.endswith((*SOURCES, *EXTENSIONS, *COMPILED)) and self.has(path):
                    yield path, _name(path, directory)


def _is_below(path: str, directory: str) -> bool:
    return any(each == directory or each.startswith(directory.rstrip("/") + "/") for each in (path, real_path(path)))


def real_path(path: str) -> str:
    """The path without links; what cannot be one stays as it is."""
    return path if "\0" in path else os.path.realpath(path)


def _files(directory: str) -> Iterator[str]:
    """The files below a directory; of environments, hidden directories and experiments none."""
    found = 0
    for above, directories, names in os.walk(directory):
        directories[:] = sorted(
            each
            for each in directories
            if each not in _LEFT_OUT
            and not each.startswith(".")
            and not each.endswith(".er")
            and not os.path.exists(os.path.join(above, each, "pyvenv.cfg"))
        )
        for name in sorted(names):
            found += 1
            if found > FILES_AT_MOST:
                return
            if not name.startswith("."):
                yield os.path.join(above, name)


def _name(path: str, directory: str) -> str:
    """`shop.orders` for `shop/orders.py`; with the directory's own name where that is a package."""
    base = directory if os.path.isdir(directory) else os.path.dirname(directory)
    while os.path.exists(os.path.join(base, "__init__.py")):
        base = os.path.dirname(base)
    parts = os.path.relpath(path, base).split("/")
    parts[-1] = parts[-1].partition(".")[0]
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
