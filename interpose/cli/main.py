"""The command `interpose`: finds the command that was asked for, runs it, and tells errors in one line."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, TextIO

from interpose import __version__
from interpose.cli.messages import tell
from interpose.cli.parser import Parser
from interpose.cli.suggestions import did_you_mean
from interpose.errors import InterposeError, UsageError

COMMANDS = (
    "run",
    "attach",
    "detach",
    "report",
    "profile",
    "transactions",
    "events",
    "compare",
    "lines",
    "coverage",
    "dialogue",
    "overview",
    "display",
    "processes",
    "list",
    "notes",
    "label",
    "control",
    "consolidate",
    "archive",
    "save",
    "cp",
    "mv",
    "rm",
    "check",
    "export",
    "map",
    "doctor",
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of an output that takes no more
BROKEN_PIPE = 141  # as a shell tells it: 128 and SIGPIPE
INTERRUPTED = 130


class Command(Protocol):
    """A module of this package that is a command.

    Where its words are not as argparse has them, it has a function `rearranged` as well, which makes them so.
    """

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (sys.argv where None); gives the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except InterposeError as error:
        tell(error)
        return error.exit_code
    except BrokenPipeError:
        _let_go_of(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        if not _is_of_output(error):
            raise
        _let_go_of(sys.stdout)
        tell(InterposeError(f"standard output: {error.strerror}"))
        return InterposeError.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(given: list[str]) -> int:
    _never_fail_to_print(sys.stdout)
    _never_fail_to_print(sys.stderr)
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        raise UsageError(f"{given[0]} is not a command{_meant(given)}")
    wanted = (given[0],) if given and given[0] in COMMANDS else COMMANDS
    commands = {name: load(name) for name in wanted}
    if rearranged := getattr(commands.get(given[0]) if given else None, "rearranged", None):
        given = [given[0], *rearranged(given[1:])]
    arguments = make_parser(commands).parse_args(given)
    if arguments.command != "doctor":  # which tells
        _resolve_libraries()
    return commands[arguments.command].run(arguments)


def _meant(given: list[str]) -> str:
    """What was probably meant by words of which the first is not a command."""
    if os.path.isfile(given[0]) or given[0].endswith(".py"):
        return f". Did you mean interpose run {given[0]}?"
    return did_you_mean(given[0], COMMANDS) or "; interpose --help lists them"


def _resolve_libraries() -> None:
    """Bring up to date what programs are told of libraries that take TOML or entry points to be found."""
    from interpose.instrumentation import resolved, search

    home = os.environ.get("HOME", "")
    try:
        resolved.refresh(search.find_group(os.getcwd(), home))
    except (OSError, InterposeError):
        pass  # told where the libraries matter


def make_parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    """The parser of the command line with the given commands."""
    parser = Parser(
        prog="interpose",
        description="Where does a Python program spend its time: working or waiting, in which call?",
    )
    parser.add_argument("--version", action="version", version=f"interpose {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands.items():
        command.add_arguments(parsers.add_parser(name, help=command.HELP, description=command.HELP))
    return parser


def load_commands() -> dict[str, Command]:
    """All commands by name."""
    return {name: load(name) for name in COMMANDS}


def load(name: str) -> Command:
    """The command of that name."""
    module: Command = importlib.import_module(f"interpose.cli.commands.{name}")
    return module


def _never_fail_to_print(stream: TextIO) -> None:
    """Letters that the encoding of `stream` does not have are shown as escapes."""
    if reconfigure := getattr(stream, "reconfigure", None):
        reconfigure(errors="backslashreplace")


def _is_of_output(error: OSError) -> bool:
    """Whether standard output could not be written: what has a name is another file."""
    return error.filename is None and error.errno in FULL


def _let_go_of(stream: TextIO) -> None:
    """Have nothing more written to a pipe that nobody reads, not at the interpreter's end either."""
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())
    except (OSError, ValueError):
        pass  # a stream of somebody who calls main() themselves
