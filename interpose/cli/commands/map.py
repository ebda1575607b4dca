"""`interpose map`: which library has each intrinsic, what it passes on to, how it is interposed, or why not."""

from __future__ import annotations

import argparse
import os
import sys

from interpose.cli.experiment_choice import open_experiment
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, write_table
from interpose.config import precedence
from interpose.errors import InterposeError, UsageError
from interpose.instrumentation import interpreters, mapping
from interpose.instrumentation.interpreters import Interpreter
from interpose.instrumentation.mapping import Mapped, Row
from interpose.reports.tables.map import map_table

NAME = "map"
HELP = "list the functions that are timed, and why others are not"
EXAMPLE = "interpose map --for app.py"
NOT_THERE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="only this function, class or module; * stands for any text"
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--for", dest="program", metavar="PROGRAM", help="ask the interpreter of this program; it is not run"
    )
    chosen.add_argument("--experiment", metavar="EXPERIMENT", help="show what was timed in this experiment")
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; gives 2 where a library declares a name that its module has not, and there is no catch-all."""
    wanted = precedence.in_force(os.environ)
    if arguments.experiment:
        found = mapping.map_experiment(open_experiment(arguments.experiment, archive=False).founder)
    else:
        found = mapping.map_program(interpreter_of(arguments.program), wanted)
    rows = [row for row in found.rows if is_asked_for(row, arguments.target)]
    if not rows:
        raise InterposeError(f"{arguments.target}: no library declares it")
    write_table(map_table(rows), arguments)
    return complain(found, "skip" if arguments.experiment else wanted.unsat)


def complain(found: Mapped, unsat: str) -> int:
    """Print on stderr what is wrong with libraries; return the exit code: 2 if names do not exist and no catch-all
    handles them."""
    for line in found.complaints():
        say(line)
    not_there = [each.name for each in found.libraries if each.why_not]
    return NOT_THERE if found.unknown and (unsat == "off" or unsat in not_there) else 0


def interpreter_of(program: str | None) -> Interpreter:
    """The interpreter of a script or command, with that as its argument; otherwise this one. Raises UsageError."""
    if program is None:
        return Interpreter(sys.executable)
    try:
        found = interpreters.interpreter_of([program])
    except interpreters.NotPython as error:
        raise UsageError(f"--for {program}: {error}") from error
    except FileNotFoundError as error:
        raise UsageError(f"--for {program}: no such program") from error
    if program.endswith(".py") and not os.path.exists(program):
        raise UsageError(f"--for {program}: no such file")
    return found


def is_asked_for(row: Row, target: str | None) -> bool:
    """Whether the row is of that name or target, or below it; of a native call, the function's name is enough."""
    if target is None:
        return True
    dotted = target.replace(":", ".")
    names = (row.name, row.name.partition(" (")[0], row.target.replace(":", "."), row.function)
    if any(letter in dotted for letter in "*?["):
        from fnmatch import fnmatchcase

        return any(fnmatchcase(name, dotted) for name in names)
    return any(name == dotted or name.startswith(f"{dotted}.") for name in names)
