"""`interpose mv`: rename or move experiments; what they say of paths and dates stays as recorded."""

from __future__ import annotations

import argparse
from functools import partial

from interpose.cli.destinations import add_places_arguments, do, refuse_running, targets
from interpose.experiments.maintenance.copying import move

NAME = "mv"
HELP = "rename an experiment, or move several into a directory"
EXAMPLE = "interpose mv test.1.er before.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places_arguments(parser)
    parser.add_argument("-f", dest="force", action="store_true", help="move it even while its program runs")


def run(arguments: argparse.Namespace) -> int:
    found = targets(arguments.experiments, arguments.target)
    for source, _ in found:
        if not arguments.force:
            refuse_running(source)
    for source, target in found:
        do(partial(move, source, target), target)
    return 0
