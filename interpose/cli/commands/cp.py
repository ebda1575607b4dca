"""`interpose cp`: copy experiments; one that is still written as `interpose save` does."""

from __future__ import annotations

import argparse
from functools import partial

from interpose.cli.copies import copy
from interpose.cli.destinations import add_places_arguments, do, targets

NAME = "cp"
HELP = "copy an experiment, or several into a directory"
EXAMPLE = "interpose cp test.1.er before.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    for source, target in targets(arguments.experiments, arguments.target):
        do(partial(copy, source, target), target)
    return 0
