"""`interpose coverage`: which statements ran, and which did not."""

from __future__ import annotations

import argparse

from interpose.cli.commands.coverage import formats, report, sources
from interpose.cli.parser import Parser, sentence

NAME = "coverage"
HELP = "show which statements ran (needs INTERPOSE=coverage)"
EXAMPLE = "interpose coverage report"
SUBCOMMANDS = (*report.SUBCOMMANDS, *sources.SUBCOMMANDS, *formats.SUBCOMMANDS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parsers = parser.add_subparsers(dest="what", metavar="WHAT", required=True, parser_class=Parser)
    for each in SUBCOMMANDS:
        parser = parsers.add_parser(each.name, help=each.help, description=sentence(each.help), example=each.example)
        each.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    return {each.name: each.run for each in SUBCOMMANDS}[arguments.what](arguments)
