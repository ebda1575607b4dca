"""A batch whose programs come from a library file by a loader of its own, as some systems have had it for decades.

    python examples/loader/loader.py examples/loader/batch.lib CREDIT INVOICE …

A library is one file with many programs. Each begins with a line `*** NAME` and lasts until the next; it is compiled at
its place in the file, so that its line numbers are those of the library. To Python all of it is one file, and no
module: which program is which only this loader knows. `interpose.d/interpose_loader.py` is the data collector that asks
it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from types import CodeType
from typing import Any

MARK = "*** "


@dataclass
class Program:
    """A program of a library: where in the file it lies, and its code."""

    name: str
    first: int
    lines: int
    code: CodeType


def load(path: str) -> dict[str, Program]:
    """The programs of the library at `path`, by name. Raises OSError, SyntaxError."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    begins = [number for number, line in enumerate(lines) if line.startswith(MARK)]
    found = {}
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        name = lines[begin].removeprefix(MARK).strip()
        source = "\n" * (begin + 1) + "\n".join(lines[begin + 1 : end])
        found[name] = Program(name, begin + 1, end - begin, compile(source, path, "exec"))
    return found


loaded: dict[str, Program] = {}
library = ""


def main() -> None:
    global library
    parser = argparse.ArgumentParser(description="Run programs of a library, one after the other.")
    parser.add_argument("library")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    library = arguments.library
    loaded.update(load(library))
    shared: dict[str, Any] = {}
    for name in arguments.programs:
        exec(loaded[name].code, shared)


if __name__ == "__main__":
    main()
