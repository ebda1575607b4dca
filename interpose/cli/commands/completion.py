"""`interpose completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator

from interpose.errors import UsageError

NAME = "completion"
HELP = "print a script that makes a shell complete commands and options"
EXAMPLE = "interpose completion bash"
SHELLS = ("bash", "zsh", "tcsh", "fish")
_PATHS = ("EXPERIMENT", "FILE", "DIRECTORY", "PROGRAM", "TARGET")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help=f"{', '.join(SHELLS)} (needs the package shtab)"
    )


def run(arguments: argparse.Namespace) -> int:
    main = importlib.import_module("interpose.cli.main")  # which imports this module
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        raise UsageError("completion needs the package shtab: pip install shtab") from None
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise UsageError(f"this shtab does not know {arguments.shell}: pip install --upgrade shtab")
    parser = main.make_parser(main.load_commands())
    for each in _parsers_below(parser):
        for action in each._actions:
            if isinstance(action, argparse._SubParsersAction) and action.help == argparse.SUPPRESS:
                action.help = None  # shtab leaves out what is suppressed
            elif action.choices is None and action.metavar in _PATHS:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    sys.stdout.write(shtab.complete(parser, arguments.shell) + "\n")
    return 0


def _parsers_below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser, and those of all commands and of what these consist of."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _parsers_below(each)
