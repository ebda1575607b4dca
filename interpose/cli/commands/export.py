"""`interpose export`: an experiment in the formats of other tools."""

from __future__ import annotations

import argparse

from interpose.analysis.analysis import Analysis
from interpose.cli.experiment_choice import (
    add_experiments_argument,
    note_damages,
    note_sampled,
    open_experiments,
    refuse_sampled,
)
from interpose.cli.following_spans import follow_spans
from interpose.cli.messages import say
from interpose.cli.output import add_output_argument, opened_bytes, refuse_within_experiments
from interpose.cli.parser import list_below
from interpose.errors import UsageError
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.exports.formats import FORMATS, Format
from interpose.exports.sending import send, shown

NAME = "export"
HELP = "write an experiment in the formats of other tools"
EXAMPLE = "interpose export --to pprof -o profile.pb.gz"
RAW, OTLP = "raw", "otlp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    parser.add_argument(
        "--to", choices=FORMATS, metavar="FORMAT", default=RAW, help="one of those below (default: %(default)s)"
    )
    list_below(parser, "formats", ((each.name, each.meaning) for each in FORMATS.values()))
    add_output_argument(parser, "; parquet: the directory to make")
    parser.add_argument("--endpoint", metavar="URL", help="with --to otlp: send to this collector, by HTTP")
    parser.add_argument("--follow", action="store_true", help="with --endpoint: send while the program runs")
    parser.add_argument(
        "--header",
        type=_header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="with --endpoint: add this header to the requests; repeatable",
    )


def run(arguments: argparse.Namespace) -> int:
    chosen = FORMATS[arguments.to]
    experiment = open_experiments(arguments.experiments)
    if isinstance(experiment, Collection) and not chosen.takes_many:
        raise UsageError(f"--to {chosen.name} takes a single experiment")
    if chosen.name != RAW:
        refuse_sampled(experiment)
    note_sampled(experiment)
    analysis = Analysis(experiment)
    if arguments.endpoint is None and (arguments.header or arguments.follow):
        raise UsageError(f"--{'header' if arguments.header else 'follow'} needs --endpoint")
    if arguments.endpoint is not None:
        code = _send(experiment, arguments)
        if arguments.follow:  # what was read of it is of before its end
            analysis = Analysis(open_experiments(arguments.experiments))
        return max(code, _note_damages(analysis))
    if chosen.function:
        with opened_bytes(arguments.output, chosen.is_text) as out:
            chosen.writer()(analysis, out)
    else:
        _write_directory(chosen, analysis, arguments.output)
    return _note_damages(analysis)


def _note_damages(analysis: Analysis) -> int:
    """The same as for a report, which counts calls: those that are missing are noted with the accounts."""
    assert isinstance(analysis.accounts, list)
    return note_damages(analysis.experiment)


def _send(experiment: Experiment, arguments: argparse.Namespace) -> int:
    if arguments.to != OTLP or arguments.output is not None:
        raise UsageError("--endpoint needs --to otlp, without -o")
    headers = dict(arguments.header)
    if arguments.follow:
        made = follow_spans(experiment, arguments.endpoint, headers)
    else:
        made = send(experiment, arguments.endpoint, headers)
    lost = f"; {made.lost:,} lost ({'; '.join(made.why)})" if made.lost else ""
    say(f"{made.sent:,} spans sent to {shown(arguments.endpoint)}{lost}")
    return 1 if made.lost else 0


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not (colon and name.strip() and text.isascii() and text.isprintable()):
        raise argparse.ArgumentTypeError("must be 'Name: value', in ASCII")  # what was given may be a secret
    return name.strip(), value.strip()


def _write_directory(chosen: Format, analysis: Analysis, path: str | None) -> None:
    if path is None:
        raise UsageError(f"--to {chosen.name} writes a directory: name it with -o DIRECTORY")
    refuse_within_experiments(path)
    chosen.directory_writer()(analysis, path)
