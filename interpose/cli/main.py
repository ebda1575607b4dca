"""The command `interpose`: finds the command that was asked for, runs it, and tells errors in one line."""

from __future__ import annotations

import argparse
import codecs
import errno
import importlib
import io
import os
import sys
import textwrap
import warnings
from collections.abc import Sequence
from typing import Protocol, TextIO

from interpose import __version__
from interpose.cli.messages import tell
from interpose.cli.parser import Parser, sentence
from interpose.cli.suggestions import did_you_mean
from interpose.errors import InterposeError, UsageError

GROUPS = {
    "Record": ("run", "attach", "detach", "kernel", "control", "save", "doctor"),
    "Look": (
        *("report", "view", "flame", "top", "transactions", "events", "lines", "coverage", "heap"),
        *("processes", "overview", "sql"),
    ),
    "Compare": ("compare", "trend"),
    "Manage": ("list", "notes", "label", "archive", "consolidate", "cp", "mv", "rm", "check", "export"),
    "Advanced": ("profile", "display", "dialogue", "map", "completion"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
EXAMPLES = {
    "interpose run app.py": "record a program",
    "interpose report": "show where the time went",
    "interpose report --open": "show it as a page in the browser",
    "interpose compare test.1.er test.2.er": "show what changed between two runs",
}
OPTIONS = ("-h", "--help", "--version")
# What the same is called in other tools.
ELSEWHERE = {
    **dict.fromkeys(("record", "start", "exec", "trace"), "run"),
    **dict.fromkeys(("show", "stat", "stats", "summary", "print"), "report"),
    "diff": "compare",
    "ls": "list",
    "delete": "rm",
    "remove": "rm",
    "stop": "detach",
    "flamegraph": "flame",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # errors of a closed or full output
PLAIN = {"·": "|", "…": "*", "±": "+-", "▇": "#"}  # what reports use, for encodings without it
BROKEN_PIPE = 141  # as a shell tells it: 128 and SIGPIPE
INTERRUPTED = 130


class Closed(io.TextIOBase):
    """Stands for a standard output that was closed when the command started: writing to it is an error."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed; -o FILE writes to a file")


class Command(Protocol):
    """A module of this package that is a command.

    Where its words are not as argparse has them, it has a function `rearranged` as well, which makes them so.
    """

    NAME: str
    HELP: str
    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (sys.argv where None); returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    sys.stdout, sys.stderr = sys.stdout or Closed(), sys.stderr or io.StringIO()
    if "t" in sys.abiflags:  # a command has one thread: the lock costs it nothing
        warnings.filterwarnings("ignore", "The global interpreter lock", RuntimeWarning)
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
        tell(InterposeError(f"standard output: {error.strerror or error}"))
        return InterposeError.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(given: list[str]) -> int:
    _never_fail_to_print(sys.stdout)
    _never_fail_to_print(sys.stderr)
    _refuse_first_word(given)
    wanted = (given[0],) if given[0] in COMMANDS else COMMANDS
    if given[0].startswith("--v"):  # --version needs none
        wanted = ()
    commands = {name: load(name) for name in wanted}
    if rearranged := getattr(commands.get(given[0]), "rearranged", None):
        given = [given[0], *rearranged(given[1:])]
    arguments = make_parser(commands).parse_args(given)
    if arguments.command != "doctor":  # which tells
        _resolve_libraries()
    return commands[arguments.command].run(arguments)


def _refuse_first_word(given: list[str]) -> None:
    """Raises UsageError if the first word is not a command, and not an option that stands alone."""
    if not given:
        raise UsageError("a command is missing, for example: interpose run app.py (interpose --help lists all)")
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        raise UsageError(f"{given[0]} is not a command{_meant(given)}")
    if given[0].startswith("-") and not any(each.startswith(given[0]) for each in OPTIONS):
        meant = did_you_mean(given[0], OPTIONS, "--") or "; options follow the command"
        raise UsageError(f"{given[0]} is not an option of interpose{meant} (interpose --help)")


def _meant(given: list[str]) -> str:
    """A suggestion for words of which the first is not a command."""
    if given[0] == "help":
        return f": type interpose {' '.join(word for word in given[1:2] if word in COMMANDS)} --help".replace("  ", " ")
    if given[0] in ELSEWHERE:
        return f". Did you mean {ELSEWHERE[given[0]]}?"
    if os.path.isfile(given[0]) or given[0].endswith(".py"):
        return f". Did you mean interpose run {given[0]}?"
    return did_you_mean(given[0], COMMANDS) or "; interpose --help lists them"


def _resolve_libraries() -> None:
    """Update the file that tells programs about libraries from TOML and entry points."""
    from interpose.instrumentation import resolved, search

    home = os.environ.get("HOME", "")
    try:
        resolved.refresh(search.find_group(os.getcwd(), home))
    except (OSError, InterposeError):
        pass  # reported where libraries matter


def make_parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    """The parser of the command line with the given commands."""
    parser = Parser(
        prog="interpose",
        usage="interpose [-h] [--version] COMMAND ...",
        description=f"Show where a Python program spends its time, working or waiting.\n{_listed(commands)}",
        epilog="\n".join(["examples:", *(f"  {words:<39} {what}" for words, what in EXAMPLES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"interpose {__version__}")
    parsers = parser.add_subparsers(
        prog="interpose", dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, command in commands.items():
        made = parsers.add_parser(name, help=command.HELP, description=sentence(command.HELP), example=command.EXAMPLE)
        command.add_arguments(made)
    return parser


def _listed(commands: dict[str, Command]) -> str:
    """The commands by group, with what they do."""
    found = []
    for group, names in GROUPS.items():
        found += ["", f"{group}:"]
        for name in names:
            if name in commands:
                head = f"  {name:<13} "
                found += textwrap.wrap(commands[name].HELP, 80, initial_indent=head, subsequent_indent=" " * len(head))
    return "\n".join(found)


def load_commands() -> dict[str, Command]:
    """All commands by name."""
    return {name: load(name) for name in COMMANDS}


def load(name: str) -> Command:
    """The command of that name."""
    module: Command = importlib.import_module(f"interpose.cli.commands.{name}")
    return module


def _never_fail_to_print(stream: TextIO | Closed) -> None:
    """Letters that the encoding of `stream` does not have are shown as others that look alike, or as escapes."""
    codecs.register_error("interpose", _plain)
    if reconfigure := getattr(stream, "reconfigure", None):
        reconfigure(errors="interpose")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError) and (alike := PLAIN.get(error.object[error.start])):
        return alike, error.start + 1
    return codecs.backslashreplace_errors(error)


def _is_of_output(error: OSError) -> bool:
    """Whether standard output could not be written: what has a name is another file."""
    return error.filename is None and error.errno in FULL


def _let_go_of(stream: TextIO | Closed) -> None:
    """Write nothing more to a pipe that nobody reads, not even at the interpreter's end."""
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())
    except (OSError, ValueError):
        pass  # a stream from a caller of main()
