"""`interpose display`: what an experiment tells beside its calls. Each subject is a module like a command."""

from __future__ import annotations

import argparse

from interpose.commands import statistics, zwr
from interpose.commands.main import Command

NAME = "display"
HELP = "show what an experiment tells of itself (display statistics), or what it stored (display zwr)"
SUBJECTS: dict[str, Command] = {statistics.NAME: statistics, zwr.NAME: zwr}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parsers = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    for name, subject in SUBJECTS.items():
        subject.add_arguments(parsers.add_parser(name, help=subject.HELP, description=subject.HELP))


def run(arguments: argparse.Namespace) -> int:
    return SUBJECTS[arguments.subject].run(arguments)
