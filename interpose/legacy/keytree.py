"""Globals in a file of sqlite: a row for each node, its subscripts as JSON."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from interpose.errors import InterposeError
from interpose.legacy.nodes import Node, Subscript

_MAKE = (
    "CREATE TABLE IF NOT EXISTS nodes"
    " (name TEXT NOT NULL, subscripts TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, subscripts))"
)
_NODES_AT_MOST = 10_000_000


def write_nodes(path: str, nodes: Iterable[Node]) -> int:
    """Put nodes into the file at `path`, which is made if it does not exist; return their number. Raises
    InterposeError."""
    rows = [(node.name, json.dumps(node.subscripts), node.value) for node in nodes]
    try:
        with closing(sqlite3.connect(path)) as tree, tree:
            tree.execute(_MAKE)
            tree.executemany("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)", rows)
    except sqlite3.Error as error:
        raise InterposeError(f"{path}: {error}") from error
    return len(rows)


def read_nodes(path: str) -> Iterator[Node]:
    """The nodes of the file at `path`. Raises InterposeError if it is something else."""
    if not os.path.isfile(path):
        raise InterposeError(f"{path}: {'not a file' if os.path.exists(path) else 'no such file'}")
    try:
        with closing(sqlite3.connect(f"file:{_escaped(path)}?mode=ro", uri=True)) as tree:
            found = tree.execute("SELECT name, subscripts, value FROM nodes LIMIT ?", (_NODES_AT_MOST,)).fetchall()
    except sqlite3.Error as error:
        raise InterposeError(f"{path}: {error}") from error
    for name, subscripts, value in found:
        yield Node(str(name), _subscripts(path, subscripts), str(value))


def _escaped(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _subscripts(path: str, text: object) -> tuple[Subscript, ...]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(type(each) in (str, int) for each in found):
        raise InterposeError(f"{path}: {text!r} are not subscripts")
    return tuple(found)
