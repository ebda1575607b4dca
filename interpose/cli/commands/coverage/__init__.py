"""`interpose coverage`: which statements ran, and which did not."""

from __future__ import annotations

import argparse

from interpose.cli.commands.coverage import formats, report, sources

NAME = "coverage"
HELP = "tell which statements ran and which did not, where that was recorded (INTERPOSE=coverage)"
SUBCOMMANDS = (*report.SUBCOMMANDS, *sources.SUBCOMMANDS, *formats.SUBCOMMANDS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parsers = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for each in SUBCOMMANDS:
        each.add_arguments(parsers.add_parser(each.name, help=each.help, description=each.help))


def run(arguments: argparse.Namespace) -> int:
    return {each.name: each.run for each in SUBCOMMANDS}[arguments.what](arguments)
