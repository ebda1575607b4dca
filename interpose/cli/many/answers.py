"""What `interpose report` says of many experiments, from their answers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from interpose.analysis.calls import profile
from interpose.analysis.calls.profile import Profile
from interpose.analysis.partial.partial import Question
from interpose.analysis.partial.reductions import ROWS, TRANSACTIONS
from interpose.analysis.profile.rows import WITH_CODE, finished_with_code
from interpose.analysis.transactions import response_times
from interpose.analysis.transactions.response_times import Transactions
from interpose.cli.many.reading import Many, ask
from interpose.cli.many.reductions import SCREEN
from interpose.cli.output import paint_for, width_of
from interpose.reports.screen.many import ManyScreen, summary_of_many, whole_report_of_many


def screen(paths: Sequence[str], arguments: argparse.Namespace) -> tuple[Many, ManyScreen]:
    """The first screen."""
    many = ask(paths, Question(SCREEN, is_scaled=not arguments.unscaled), arguments)
    return many, ManyScreen(many.partial.head, many.partial.value, many.failed)


def write_screen(made: ManyScreen, out: TextIO) -> None:
    """Write the first screen as wide as `out` is."""
    fitting = replace(made, width=width_of(out), paint=paint_for(out))
    out.writelines(f"{line}\n" for line in summary_of_many(fitting))


def write_screen_as_json(made: ManyScreen, out: TextIO) -> None:
    """Write what the first screen says as one object."""
    out.write(json.dumps(whole_report_of_many(made), indent=1) + "\n")


def transactions(paths: Sequence[str], arguments: argparse.Namespace) -> tuple[Many, Transactions]:
    """The transactions, scaled unless the arguments say otherwise."""
    many = ask(paths, Question(TRANSACTIONS), arguments)
    return many, response_times.finished(many.partial.value, not arguments.unscaled)


def rows(paths: Sequence[str], by: str, arguments: argparse.Namespace) -> tuple[Many, Profile]:
    """The rows of calls by one grouping, with code where that grouping has it."""
    question = Question(ROWS, by, is_scaled=not arguments.unscaled, with_code=True, several=True)
    many = ask(paths, question, arguments)
    finish = finished_with_code if by in WITH_CODE else profile.finished
    return many, finish(many.partial.value, by)
