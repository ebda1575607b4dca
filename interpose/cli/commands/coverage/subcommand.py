"""What a subcommand of `interpose coverage` is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A subcommand: its name, its help in a line, an example, its arguments, and its function, which returns the exit
    code."""

    name: str
    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
