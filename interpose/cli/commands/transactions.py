"""`interpose transactions`: how long users waited for answers, and why."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator

from interpose.analysis.analysis import Analysis
from interpose.analysis.partial.partial import Question
from interpose.analysis.partial.reductions import TRANSACTIONS
from interpose.analysis.profile.by_transaction import code_by_transaction
from interpose.analysis.transactions.response_times import Throttled, Transactions, finished, transactions
from interpose.cli.experiment_choice import (
    add_experiments_argument,
    note_damages,
    open_paths,
    paths_of,
    refuse_sampled,
)
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.many.reading import ask
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, positive, write_table
from interpose.cli.parser import add_unscaled_argument
from interpose.errors import UsageError
from interpose.reports.formats.units import count, duration
from interpose.reports.tables.transactions import SORTS, arranged, code_table, transactions_table

NAME = "transactions"
HELP = "show response times and think times by transaction"
EXAMPLE = "interpose transactions"
TRANSACTION, FUNCTION = "transaction", "function"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    parser.add_argument(
        "--by",
        choices=(TRANSACTION, FUNCTION),
        metavar="WHAT",
        default=TRANSACTION,
        help="one row for each transaction (default), or function: the CPU time of each one in it",
    )
    parser.add_argument("--sort", choices=SORTS, metavar="COLUMN", help=f"sort rows by {', '.join(SORTS)}")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows of transactions that have a name")
    add_unscaled_argument(parser)
    add_many_arguments(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    paths = paths_of(arguments.experiments)
    if len(paths) > 1 and arguments.by == TRANSACTION:
        many = ask(paths, Question(TRANSACTIONS), arguments)
        _write(finished(many.partial.value, not arguments.unscaled), arguments)
        return note_damages(many)
    experiment = open_paths(paths)
    refuse_sampled(experiment)
    analysis = Analysis(experiment)
    made = transactions(analysis, is_scaled=not arguments.unscaled)
    if arguments.by == FUNCTION:
        made.rows = arranged(made.rows, arguments.sort, arguments.limit)
        rows = code_by_transaction(analysis, made)
        if not rows:
            raise UsageError("--by function: no Python code was sampled (record with interpose run --profile)")
        write_table(code_table(rows, experiment.founder.log), arguments)
        _remark(made)
    else:
        _write(made, arguments)
    return note_damages(experiment)


def _write(made: Transactions, arguments: argparse.Namespace) -> None:
    made.rows = arranged(made.rows, arguments.sort, arguments.limit)
    write_table(transactions_table(made), arguments)
    _remark(made)


def _throttled(found: Counter[Throttled]) -> Iterator[str]:
    """A line for the transactions, and one for the other calls, that the budget throttled."""
    said = {True: "those after it are not in the table", False: "the time of those after it is in code"}
    for is_transaction, what in said.items():
        alike = {each: calls for each, calls in found.items() if each.is_transaction == is_transaction}
        if alike:
            names = ", ".join(sorted({each.name for each in alike}))
            counted = f", {count(sum(alike.values()), 'call')} only counted" if any(alike.values()) else ""
            yield f"throttled to keep to the budget: {names}{counted}{_off(alike)}; {what} (interpose report)"


def _off(alike: Iterable[Throttled]) -> str:
    """Whose calls were not even counted, and from when on, in the process that came to it first."""
    found: dict[str, int] = {}
    for each in alike:
        if each.off_after_ns is not None:
            found[each.name] = min(found.get(each.name, each.off_after_ns), each.off_after_ns)
    named = ", ".join(f"{name} off after {duration(after_ns)}" for name, after_ns in sorted(found.items()))
    return f", more not even counted ({named})" if named else ""


def _remark(made: Transactions) -> None:
    """Say what is estimated, unknown, or more than the thread's time."""
    if made.estimate:
        of = made.estimate.population
        how = "what the others' time was is estimated from these (interpose report --by kind has the margins)"
        what = how if made.estimate.is_scaled else "nothing is estimated"
        say(f"sampled, one transaction in {made.estimate.one_in:,}: {of.kept:,} of {of.seen:,} kept; {what}")
    if made.overwritten:
        say(f"ring: {made.overwritten:,} calls are before the ring; transactions before it are not counted")
    if made.unmarked:
        functions = count(made.unmarked, "function")
        say(f"not marked: {functions} with @transaction, whose calls are not in the table (docs/limits.md)")
    for line in _throttled(made.throttled):
        say(line)
    if not made.has_cpu:
        say("CPU time between calls: not recorded by transaction (record again with this version)")
    if made.overlapped:
        how = "while one was suspended, its thread ran others, or other threads worked for it"
        say(f"transactions overlap: {how}; shares are of the threads' time")
