"""`interpose cp`: copy experiments; one that is still written as `interpose save` does. Archives are unpacked."""

from __future__ import annotations

import argparse
from functools import partial

from interpose.cli.copies import copy
from interpose.cli.destinations import add_places_arguments, do, targets
from interpose.cli.experiment_choice import note

NAME = "cp"
HELP = "copy experiments, or unpack an archive"
EXAMPLE = "interpose cp test.1.er before.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    found = targets(arguments.experiments, arguments.target, with_archives=True)
    return max(note(do(partial(copy, source, target), target)) for source, target in found)
