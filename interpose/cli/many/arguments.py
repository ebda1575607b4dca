"""The options of commands that read many experiments."""

from __future__ import annotations

import argparse

from interpose.cli.output import positive


def add_many_arguments(parser: argparse.ArgumentParser) -> None:
    """The options for how many experiments are read."""
    group = parser.add_argument_group("many experiments")
    group.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="read by N processes (default: one per processor if there is much to read)",
    )
    group.add_argument("--dask", metavar="ADDRESS", help="read on the Dask cluster whose scheduler is at ADDRESS")
    group.add_argument(
        "--no-cache", action="store_true", help="read every experiment again, and keep no partial results"
    )
