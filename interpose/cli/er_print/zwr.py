"""`interpose display zwr`: the nodes of globals that `interpose lines --global` stored, as M shows them."""

from __future__ import annotations

import argparse

from interpose.cli.output import add_output_argument, opened_output
from interpose.legacy.keytree import read_nodes
from interpose.legacy.zwr import zwr

NAME = "zwr"
HELP = "show what `interpose lines --global` stored, as M's ZWRITE does"
EXAMPLE = "interpose display zwr trace.db"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the SQLite file that `interpose lines --global -o FILE` wrote")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    lines = list(zwr(read_nodes(arguments.file)))
    with opened_output(arguments.output) as out:
        out.writelines(f"{line}\n" for line in lines)
    return 0
