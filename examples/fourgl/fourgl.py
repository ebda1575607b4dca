"""Runs programs in a small language of the fourth generation, a statement a line.

    python examples/fourgl/fourgl.py examples/fourgl/ORDERS.4gl

    * a comment                         LET name = expression
    PARAGRAPH name                      REPEAT count        … END
    SQL statement                       FETCH name = statement
    WAIT seconds                        DISPLAY expression
    CALL program                        (another file beside this one, on the same variables)

In SQL, `:name` stands for a variable. Python sees only the interpreter, which is the same few lines whatever program
runs: `interpose.d/interpose_fourgl.py` is the data collector that says which program, paragraph and statement it was.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Running:
    """A program that runs: its name, and how far it has come."""

    program: str
    paragraph: str = ""
    statement: int = 0


running: list[Running] = []  # each was called by the one before it


class Interpreter:
    """Runs programs on one database and one set of variables."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        self._variables: dict[str, Any] = {}

    def call(self, path: str) -> None:
        """Run the program at `path`. Raises OSError, ValueError."""
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
        running.append(Running(os.path.basename(path).removesuffix(".4gl")))
        self._block(path, lines, 0, len(lines))
        running.pop()

    def _block(self, path: str, lines: list[str], begin: int, end: int) -> None:
        number = begin
        while number < end:
            verb, _, rest = lines[number].partition(" ")
            running[-1].statement = number + 1
            number += 1
            if verb == "REPEAT":
                last = _end_of(lines, number)
                for _ in range(int(self._value(rest))):
                    self._block(path, lines, number, last)
                number = last + 1
            elif verb == "CALL":
                self.call(os.path.join(os.path.dirname(path), f"{rest}.4gl"))
            elif verb == "PARAGRAPH":
                running[-1].paragraph = rest
            elif verb not in ("", "*"):
                self._run(verb, rest)

    def _run(self, verb: str, rest: str) -> None:
        if verb == "SQL":
            self._database.execute(rest, self._variables)
        elif verb == "FETCH":
            name, _, statement = rest.partition(" = ")
            self._variables[name] = self._database.execute(statement, self._variables).fetchone()[0]
        elif verb == "LET":
            name, _, expression = rest.partition(" = ")
            self._variables[name] = self._value(expression)
        elif verb == "WAIT":
            time.sleep(float(self._value(rest)))
        elif verb == "DISPLAY":
            print(self._value(rest), flush=True)
        else:
            raise ValueError(f"{running[-1].program}:{running[-1].statement}: {verb} is no statement")

    def _value(self, expression: str) -> Any:
        return eval(expression, {"__builtins__": {}}, self._variables)


def _end_of(lines: list[str], number: int) -> int:
    """The line of the END that ends the block which begins at `number`."""
    depth = 1
    for place in range(number, len(lines)):
        depth += lines[place].startswith("REPEAT ") - (lines[place] == "END")
        if depth == 0:
            return place
    raise ValueError("REPEAT without END")


if __name__ == "__main__":
    Interpreter().call(sys.argv[1])
