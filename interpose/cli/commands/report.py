"""`interpose report`: where the time went."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TextIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import Profile, profile
from interpose.analysis.calls.selection import Within
from interpose.analysis.calls.structure import structure
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.profile.count_rows import with_code_and_counts
from interpose.analysis.recording.secrets import revealed
from interpose.analysis.transactions.response_times import Transactions, transactions
from interpose.cli.experiment_choice import (
    RECORDED,
    add_experiments_argument,
    add_label_argument,
    labelled,
    note_clipped,
    note_damages,
    note_one_in,
    note_sampled,
    open_paths,
    paths_of,
    refuse_sampled,
)
from interpose.cli.first_screen import screen_for
from interpose.cli.following import follow
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.messages import say
from interpose.cli.output import (
    GITHUB,
    add_output_arguments,
    linking,
    opened_output,
    positive,
    seconds,
    table_width,
    with_links,
    write_table,
)
from interpose.cli.parser import add_by_argument, add_unscaled_argument
from interpose.errors import UsageError
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.code_tables import NATURAL, with_codes
from interpose.reports.formats import text
from interpose.reports.formats.table import Table
from interpose.reports.screen.summary import summary
from interpose.reports.screen.whole import whole_report
from interpose.reports.tables.findings import findings_table
from interpose.reports.tables.rows import SORTS, arranged, profile_table
from interpose.reports.tables.secrets import secrets_table
from interpose.reports.tables.structure import structure_table
from interpose.reports.tables.transactions import arranged as arranged_transactions
from interpose.reports.tables.transactions import transactions_table

NAME = "report"
HELP = "show where the time went"
EXAMPLE = "interpose report --by line"
WHOLE = ("html", "mashzone")  # formats of the whole report, not of one table
FOLLOWED_EACH_S = 2.0
STRUCTURE, TRANSACTION, FINDING, SECRETS = "structure", "transaction", "finding", "secrets"
WITH_CODES = ("kind", "intrinsic")
UNSCALED = (STRUCTURE, SECRETS)
MERGED = (*GROUPINGS, TRANSACTION, FINDING)  # what is made from partial results of many experiments
BY = (*GROUPINGS, TRANSACTION, STRUCTURE, FINDING, SECRETS)
ESTIMATED = {
    FINDING: "findings are estimates for all of them",
    "html": "profiles, transactions and findings are estimates, the rest is of what was recorded",
    "mashzone": RECORDED,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    add_by_argument(parser, BY, None, "show a table instead of the first screen, with one row for each")
    add_label_argument(parser)
    parser.add_argument("--sort", choices=SORTS, metavar="COLUMN", help=f"sort rows by {', '.join(SORTS)}")
    parser.add_argument(
        "--follow",
        nargs="?",
        type=seconds,
        const=FOLLOWED_EACH_S,
        metavar="SECONDS",
        help=f"refresh every SECONDS (default: {FOLLOWED_EACH_S:g}) until the program has ended",
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="at most N rows; in text one more row sums the others"
    )
    add_unscaled_argument(parser)
    add_output_arguments(parser, GITHUB, *WHOLE)
    parser.add_argument(
        "--open", action="store_true", help="open the HTML page in the browser; -o FILE keeps it"
    )
    add_many_arguments(parser)
    advanced = parser.add_argument_group("advanced", "--format mashzone writes the sheet that MashZone reads.")
    advanced.add_argument(
        "--codes",
        choices=(NATURAL,),
        metavar=NATURAL,
        help="with --by kind or intrinsic: show the event codes of the Natural Profiler",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.open and arguments.format == "text":
        arguments.format = "html"
    if arguments.open and arguments.format != "html":
        raise UsageError(f"--open: opens the HTML page, not --format {arguments.format}")
    if arguments.follow and (arguments.output or arguments.format != "text"):
        raise UsageError("--follow writes text to standard output; it excludes --format and -o")
    if isinstance(arguments.follow, str):  # the option's value may be left out, not the experiment's name after it
        arguments.experiments.insert(0, arguments.follow)
        arguments.follow = FOLLOWED_EACH_S
    if arguments.format in WHOLE and (arguments.by or arguments.label or arguments.sort or arguments.limit):
        raise UsageError(f"--format {arguments.format} excludes --by, --label, --sort and --limit")
    by = arguments.by or _by_when_not_said(arguments) or ("kind" if arguments.codes else None)
    if arguments.codes and by not in WITH_CODES:
        raise UsageError(f"--codes needs --by {' or '.join(WITH_CODES)}; interpose events --codes shows each event")
    paths = paths_of(arguments.experiments)
    if len(paths) > 1 and by in MERGED and not (arguments.label or arguments.follow):
        return _report_many(paths, by, arguments)
    if len(paths) > 1 and by is None and not arguments.follow and arguments.format in ("text", "json"):
        return _report_first_screen_of_many(paths, arguments)
    experiment = open_paths(paths)
    if arguments.follow and isinstance(experiment, Collection):
        raise UsageError("--follow takes a single experiment")
    if arguments.follow:
        experiment = follow(experiment, lambda now: _text(now, by, arguments), arguments.follow, sys.stdout)
    elif arguments.format in WHOLE:
        if arguments.format == "html":
            refuse_sampled(experiment)
        note_sampled(experiment, ESTIMATED[arguments.format])
        path = private_file() if arguments.open and not arguments.output else arguments.output
        with opened_output(path) as out:
            _write_whole(experiment, arguments.format, out)
        if arguments.open:
            show_page(path)
    elif by is None:
        _write_summary(experiment, arguments)
    else:
        if by in UNSCALED or arguments.label or arguments.unscaled:
            note_sampled(experiment)
        elif by == FINDING:
            note_sampled(experiment, ESTIMATED[FINDING])
        write_table(_table(experiment, by, arguments), arguments)
    return note_damages(experiment)


def _report_first_screen_of_many(paths: Sequence[str], arguments: argparse.Namespace) -> int:
    from interpose.cli.many import answers  # one experiment needs nothing of it

    many, screen = answers.screen(paths, arguments)
    with opened_output(arguments.output) as out:
        if arguments.format == "json":
            answers.write_screen_as_json(screen, out)
        else:
            answers.write_screen(screen, out)
    return note_damages(many)


def _report_many(paths: Sequence[str], by: str, arguments: argparse.Namespace) -> int:
    """Write the table of many experiments."""
    from interpose.cli.many import answers  # one experiment needs nothing of it

    if by == TRANSACTION:
        _refuse_sorting_transactions(arguments)
        many, sampled = answers.transactions(paths, arguments)
        table = _transactions_table(sampled, arguments)
    elif by == FINDING:
        _refuse_sorting_findings(arguments)
        many, screen = answers.screen(paths, arguments)
        if not arguments.unscaled:
            note_one_in(many.partial.head.one_in, ESTIMATED[FINDING])
        table = findings_table(screen.findings[: arguments.limit], screen.part.times.matters_ns, many.log.cwd)
    else:
        many, made = answers.rows(paths, by, arguments)
        table = _rows_table(made, by, many.log, arguments)
    if arguments.unscaled:
        note_one_in(many.partial.head.one_in)
    write_table(table, arguments)
    return note_damages(many)


def _write_whole(experiment: Experiment, form: str, out: TextIO) -> None:
    from interpose.cli import page  # takes long

    (page.write_page if form == "html" else page.write_sheet)(Analysis(experiment), out)


def private_file() -> str:
    """The path of a new file for a page, which only the user can read."""
    descriptor, path = tempfile.mkstemp(prefix="interpose-", suffix=".html")
    os.close(descriptor)
    return path


def show_page(path: str) -> None:
    """Open the page at `path` in the browser, and say where it is."""
    import webbrowser  # takes long

    is_shown = webbrowser.open(Path(path).absolute().as_uri())
    say(path if is_shown else f"{path}: cannot start a browser; open this file yourself")


def _table(experiment: Experiment, by: str, arguments: argparse.Namespace) -> Table:
    analysis = Analysis(experiment)
    if by == FINDING:
        return _findings(analysis, arguments)
    if by == SECRETS:
        return _secrets(experiment, arguments)
    if by == TRANSACTION:
        _refuse_sorting_transactions(arguments)
        return _transactions_table(transactions(analysis, is_scaled=not arguments.unscaled), arguments)
    if by == STRUCTURE:
        if arguments.label or arguments.sort:
            raise UsageError(f"--by {STRUCTURE}: excludes --label and --sort")
        return structure_table(experiment, islice(structure(analysis), arguments.limit))
    if label := labelled(experiment, arguments.label):
        within = Within(label)
        made = profile(Analysis(experiment, within), by)
        note_clipped(within.has_clipped)
    else:
        made = profile(analysis, by, is_scaled=not arguments.unscaled)
        made = with_code_and_counts(made, by)
    return _rows_table(made, by, experiment.founder.log, arguments)


def _rows_table(made: Profile, by: str, log: Log, arguments: argparse.Namespace) -> Table:
    made.rows = arranged(made.rows, arguments.sort, arguments.limit, with_rest=arguments.format == "text")
    table = profile_table(made, by, log)
    return with_codes(table) if arguments.codes else table


def _refuse_sorting_transactions(arguments: argparse.Namespace) -> None:
    if arguments.label or arguments.sort:
        raise UsageError(f"--by {TRANSACTION}: excludes --label and --sort (interpose transactions sorts)")


def _transactions_table(made: Transactions, arguments: argparse.Namespace) -> Table:
    made.rows = arranged_transactions(made.rows, None, arguments.limit)
    return transactions_table(made)


def _findings(analysis: Analysis, arguments: argparse.Namespace) -> Table:
    _refuse_sorting_findings(arguments)
    survey = Survey(analysis, is_scaled=not arguments.unscaled)
    found = found_in(survey)[: arguments.limit]
    return findings_table(found, survey.matters_ns, analysis.experiment.founder.log.cwd)


def _refuse_sorting_findings(arguments: argparse.Namespace) -> None:
    if arguments.label or arguments.sort:
        raise UsageError("--by finding covers the whole experiment: it excludes --label and --sort")


def _secrets(experiment: Experiment, arguments: argparse.Namespace) -> Table:
    if arguments.label or arguments.sort:
        raise UsageError("--by secrets covers the whole experiment: it excludes --label and --sort")
    if isinstance(experiment, Collection):
        raise UsageError("--by secrets takes a single experiment")
    return secrets_table(revealed(experiment)[: arguments.limit])


def _text(experiment: Experiment, by: str | None, arguments: argparse.Namespace) -> str:
    """What would be written of the experiment as it is now."""
    if by is None:
        screen = screen_for(sys.stdout, Analysis(experiment))
        made = "".join(f"{line}\n" for line in summary(screen))
        return with_links(made, screen.shown, sys.stdout)
    out, table = StringIO(), _table(experiment, by, arguments)
    text.write(table, out, table_width(sys.stdout))
    return with_links(out.getvalue(), table.shown, sys.stdout)


def _by_when_not_said(arguments: argparse.Namespace) -> str | None:
    """The grouping for formats without a first screen, and for sorted rows."""
    if arguments.format == "markdown":
        return "kind"
    if arguments.label:
        return "intrinsic"
    return "intrinsic" if arguments.format == "csv" or arguments.sort or arguments.limit else None


def _write_summary(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """Write the first screen, or its content as one object."""
    with opened_output(arguments.output) as out:
        screen = screen_for(out, Analysis(experiment))
        if arguments.format == "json":
            out.write(json.dumps(whole_report(screen), indent=1) + "\n")
        elif arguments.format == GITHUB:
            from interpose.reports.screen.github import write_report  # takes long

            write_report(screen, out)
        else:
            for line in summary(screen):
                linking(out, screen.shown).write(f"{line}\n")
