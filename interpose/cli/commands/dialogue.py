"""`interpose dialogue`: what the terminal showed and what was typed, to read or to replay."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from interpose.analysis.recording.dialogue import Spoken, is_kept, lines_of, lost_pieces, spoken
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, opened_output, write_table
from interpose.errors import UsageError
from interpose.reports.formats.screening import RESET, Sieve
from interpose.reports.formats.units import SECOND_NS, count
from interpose.reports.tables.dialogue import asciicast, lines_table, pieces_table

NAME = "dialogue"
HELP = "show what a terminal showed (needs INTERPOSE_DIALOGUE=1)"
EXAMPLE = "interpose dialogue --replay"
CAST = "asciicast"
TABLES_OF_LINES = ("text", "markdown")
FASTEST = 1000.0
LONGEST_WAIT_S = 60.0  # of the recorded pauses; nobody wants to watch a lunch break


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument("--replay", action="store_true", help="show it again in this terminal, at its original speed")
    parser.add_argument("--speed", type=_speed, metavar="N", help="with --replay: N times as fast")
    add_output_arguments(parser, CAST)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.01 <= speed <= FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.01 to {FASTEST:.0f}")
    return speed


def run(arguments: argparse.Namespace) -> int:
    if arguments.replay and (arguments.output or arguments.format != "text"):
        raise UsageError("--replay writes to the terminal; it excludes --format and -o")
    if arguments.speed and not arguments.replay:
        raise UsageError("--speed needs --replay")
    experiment = open_experiment(arguments.experiment)
    if not is_kept(experiment):
        raise UsageError(f"{experiment.name}: no dialogue was kept (record with INTERPOSE_DIALOGUE=1, at a terminal)")
    pieces = spoken(experiment)
    if arguments.replay:
        replay(pieces, sys.stdout, arguments.speed or 1.0, time.sleep)
    elif arguments.format == CAST:
        with opened_output(arguments.output) as out:
            out.writelines(f"{line}\n" for line in asciicast(experiment.founder.log, pieces))
    elif arguments.format in TABLES_OF_LINES:
        write_table(lines_table(experiment, lines_of(pieces)), arguments)
    else:
        write_table(pieces_table(experiment, pieces), arguments)
    if lost := lost_pieces(experiment):
        say(f"{experiment.name}: {count(lost, 'piece')} of the dialogue not kept: INTERPOSE_DIALOGUE was full")
    return note_damages(experiment)


def replay(pieces: Iterable[Spoken], out: TextIO, speed: float, wait: Callable[[float], object]) -> None:
    """Write the pieces to `out` with the time that passed between them, a minute at most, divided by `speed`."""
    sieve, last_ns = Sieve(), 0
    try:
        for each in pieces:
            if each.what in ("shown", "typed") and (text := sieve.pass_on(each.as_on_screen)):
                if last_ns and each.piece.time_ns > last_ns:
                    wait(min((each.piece.time_ns - last_ns) / SECOND_NS, LONGEST_WAIT_S) / speed)
                last_ns = each.piece.time_ns
                out.write(text)
                out.flush()
    finally:
        out.write(f"{RESET}\n" if out.isatty() else "")
