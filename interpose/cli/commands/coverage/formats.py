"""`interpose coverage lcov`, `json`, `xml` and `combine`: what other tools read."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TextIO

from interpose import __version__
from interpose.analysis.coverage.coverage import Coverage
from interpose.cli.commands.coverage.arguments import (
    add_asked_arguments,
    add_branch_argument,
    add_threshold_argument,
    ended,
    opened,
)
from interpose.cli.commands.coverage.subcommand import Subcommand
from interpose.cli.output import add_output_argument, opened_output, refuse_within_experiments
from interpose.reports.coverage import data_file, json, lcov, xml

DATA_FILE = ".coverage"
_Write = Callable[[Coverage, TextIO, argparse.Namespace], None]


def _write_lcov(found: Coverage, out: TextIO, arguments: argparse.Namespace) -> None:
    lcov.write(found, os.getcwd(), out)


def _write_xml(found: Coverage, out: TextIO, arguments: argparse.Namespace) -> None:
    xml.write(found, os.getcwd(), out, __version__)


def _write_json(found: Coverage, out: TextIO, arguments: argparse.Namespace) -> None:
    json.write(found, os.getcwd(), out, __version__, arguments.branch, arguments.show_contexts)


def _add_format_arguments(parser: argparse.ArgumentParser) -> None:
    add_asked_arguments(parser)
    add_branch_argument(parser)
    add_threshold_argument(parser)
    add_output_argument(parser)


def _add_json_arguments(parser: argparse.ArgumentParser) -> None:
    _add_format_arguments(parser)
    parser.add_argument("--show-contexts", action="store_true", help="include the contexts in which each line ran")


def _writes(write: _Write) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        experiment, found = opened(arguments)
        with opened_output(arguments.output) as out:
            write(found, out, arguments)
        return ended(experiment, found, arguments)

    return run


def _add_combine_arguments(parser: argparse.ArgumentParser) -> None:
    add_asked_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=DATA_FILE, help=f"the file to write (default: {DATA_FILE})"
    )
    parser.add_argument("--append", action="store_true", help="add to an existing file")


def combine(arguments: argparse.Namespace) -> int:
    refuse_within_experiments(arguments.output)
    experiment, found = opened(arguments)
    data_file.write(found, arguments.output, arguments.append)
    return ended(experiment, found, arguments)


SUBCOMMANDS = (
    Subcommand(
        "lcov",
        "write a tracefile for LCOV",
        "interpose coverage lcov -o coverage.info",
        _add_format_arguments,
        _writes(_write_lcov),
    ),
    Subcommand(
        "json",
        "write JSON as coverage.py does",
        "interpose coverage json -o coverage.json",
        _add_json_arguments,
        _writes(_write_json),
    ),
    Subcommand(
        "xml",
        "write XML as Cobertura does",
        "interpose coverage xml -o coverage.xml",
        _add_format_arguments,
        _writes(_write_xml),
    ),
    Subcommand(
        "combine",
        "write a .coverage file (needs the package coverage)",
        "interpose coverage combine test.1.er test.2.er",
        _add_combine_arguments,
        combine,
    ),
)
