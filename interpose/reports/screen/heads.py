"""The views of what an experiment is: header, list of experiments, overview of the metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from interpose.analysis.calls.figures import TIME, Figures, Metric, Vector
from interpose.analysis.recording.ending import ending
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import Table, table_of_cells
from interpose.reports.formats.units import SECOND_NS, percent
from interpose.reports.screen.metrics import Column, number
from interpose.reports.screen.state import command_line

HOT_PERCENT = 10  # of the wall time: then a metric of time is worth a look


def header_table(experiment: Experiment) -> Table:
    """Where, when, how and by what each experiment was recorded; its notes first."""
    rows: list[list[str]] = []
    for each in experiment.experiments:
        log = each.founder.log
        rows += [["note", line] for line in each.notes]
        rows += [
            ["experiment", each.directory],
            ["command", command_line(each.founder)],
            ["directory", log.cwd],
            ["process", f"{log.pid}, parent {log.ppid}"],
            ["processes", str(len(each.processes))],
            ["begun", _calendar(log.time_ns)],
            ["host", _told(log.system, "host", "os", "arch", "cpus")],
            ["collector", _told(log.collector, "name", "version", "implementation", "python")],
            ["format", str(log.version)],
            ["clock", _told(log.clock, "kind", "why")],
            ["cost of a call", f"{log.call_ns} ns, {log.inside_ns} ns of them within its own time"],
        ]
        rows += [["setting", f"{name}={value}"] for name, value in log.settings.items() if value]
        rows.append(["", ""])
    return table_of_cells("Header", [("",), ("",)], rows[:-1])


def experiment_list_table(experiment: Experiment) -> Table:
    """Each experiment: number, process, command, when it began and how long it took."""
    rows = []
    for place, each in enumerate(experiment.experiments, 1):
        log, end = each.founder.log, ending(each.founder)
        elapsed = f"{(end.end_ns - log.start_ns) / SECOND_NS:.3f}" if end.end_ns else end.state
        rows.append([str(place), str(log.pid), elapsed, _calendar(log.time_ns), each.name, command_line(each.founder)])
    heads = [("ID",), ("PID",), ("sec.",), ("Begun",), ("Experiment",), ("Command",)]
    return table_of_cells("Experiments", heads, rows, (True, True, True))


def overview_head(
    experiment: Experiment, figures: Figures, total: Vector, columns: Sequence[Column]
) -> Table:
    """Each metric and its total: `[X]` where it is shown in tables, `*` where it is hot."""
    shown = {column.metric.name for column in columns if column.metric}
    wall_ns = total[0]
    rows = []
    for metric in figures.made(total):
        value = total[metric.place]
        is_hot = bool(wall_ns) and metric.unit == TIME and 100 * value >= HOT_PERCENT * wall_ns
        share = percent(value, wall_ns) if metric.unit == TIME else ""
        mark = f"[{'X' if metric.name in shown else ' '}]"
        rows.append([mark, "*" if is_hot else "", metric.name, metric.title, number(value, 0, ".", metric.unit), share])
    names = ", ".join(each.name for each in experiment.experiments)
    heads = [("",), ("",), ("Metric",), ("Title",), ("Total",), ("of wall",)]
    notes = [f"[X] shown, * hot: at least {HOT_PERCENT} % of the wall time"]
    return table_of_cells(f"Overview of {names}", heads, rows, (False, False, False, False, True, True), notes)


def metrics_table(metrics: Mapping[str, Metric], columns: Sequence[Column], sort: str) -> Table:
    """The possible columns, and the present ones."""
    rows = [
        (metric.name, metric.unit, f"e{'.' if metric.unit == TIME else '+'}{metric.name}", metric.title)
        for metric in metrics.values()
    ]
    notes = [f"shown: {':'.join(column.spec for column in columns)}", f"sorted by: {sort}"]
    return table_of_cells("Metrics", [("Name",), ("Unit",), ("Column",), ("Title",)], rows, (), notes)


def _told(attributes: Mapping[str, str], *names: str) -> str:
    return " ".join(attributes[name] for name in names if attributes.get(name))


def _calendar(time_ns: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ns // SECOND_NS))
    except (OverflowError, ValueError, OSError):
        return "?"
