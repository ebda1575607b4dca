"""The sections of a performance profile: what a program used, when, where it waited, and for whom."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.attribution import Invoker, Service, services_of
from interpose.analysis.calls.calltree import Calls, calls_of
from interpose.analysis.calls.functions import by_function, object_of
from interpose.analysis.calls.identification import identified
from interpose.analysis.calls.input_output import CLOSE, OPEN, OTHER, READ, WRITE, Activity, input_output
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.lines.line_rows import Trace, line_trace
from interpose.analysis.time.concurrency import CALLS_AT_MOST, RESTING, Resource, resource_of, solo_times
from interpose.analysis.time.run_queue import Spent, spent_by_thread, whole_of
from interpose.analysis.time.slices import slices_of
from interpose.analysis.transactions.response_times import transactions
from interpose.reports.formats.units import duration
from interpose.reports.screen.section import (
    COUNT,
    NO_SAMPLES,
    TEXT,
    Head,
    Section,
    bar,
    margin,
    shown_without,
    table_of,
    with_others,
    with_share,
)
from interpose.reports.screen.state import command_line

SLICES = 10
NO_LINES = "CPU of the program's own sections: not recorded (record with INTERPOSE=calls,lines)"
OUTSIDE, OWN = ".OUTSIDE", ".INTERPOSE"
NO_STRETCH = "stretch: not recorded (the kernel gave no run-queue delay); it is in wait"
NO_EVENTS = "single calls: not recorded (record without INTERPOSE_CONSOLIDATE)"


class Profiled:
    """The basis of the sections: the analysis, what several sections share, and how much they show."""

    def __init__(self, analysis: Analysis, slices: int = SLICES, limit: int | None = None) -> None:
        self.analysis = analysis
        self.experiment = analysis.experiment
        self.slices = slices
        self.limit = limit

    @cached_property
    def calls(self) -> Calls:
        """The tree of all calls."""
        return calls_of(self.analysis)

    @cached_property
    def total(self) -> Spent:
        """How all threads together spent their time."""
        return whole_of(spent_by_thread(self.analysis.accounts).values())

    @cached_property
    def lines(self) -> Trace:
        """What line trace tells, which is nothing if no lines were recorded."""
        return line_trace(self.experiment)


def session(made: Profiled) -> Section:
    """Measurement session data: what was measured, and how certain the figures are."""
    log, spent = made.experiment.founder.log, made.total
    samples = sum(max(len(process.overview) - 1, 0) for process in made.experiment.processes)
    calls = sum(account.found for account in made.analysis.accounts)
    dropped = sum(account.dropped for account in made.analysis.accounts)
    first = min(process.log.start_ns for process in made.experiment.processes)
    rows: list[tuple[str, str, int | None]] = [
        ("experiment", made.experiment.name, None),
        ("command", command_line(made.experiment.founder), None),
        ("host", f"{log.system.get('host', '?')}, {log.system.get('cpus', '?')} processors", None),
        ("processes", str(len(made.analysis.accounts)), len(made.analysis.accounts)),
        ("threads", str(sum(len(each.threads) for each in made.analysis.accounts)), None),
        ("session time", duration(span := max(each.latest_ns for each in made.analysis.accounts) - first), span),
        ("run time (of all threads)", duration(spent.wall_ns), spent.wall_ns),
        ("CPU time", with_share(spent.cpu_ns, spent.wall_ns), spent.cpu_ns),
        ("wait", with_share(spent.wait_ns, spent.wall_ns), spent.wait_ns),
        ("stretch", with_share(spent.stretch_ns, spent.wall_ns), spent.stretch_ns if spent.has_stretch else None),
        ("calls recorded", f"{calls:,}", calls),
        ("calls lost", f"{dropped:,}", dropped),
        ("samples of usage", f"{samples:,}", samples),
    ]
    rows += [(name, shown, None) for name, shown in _of_collectors(made)]
    if not spent.has_stretch:
        rows = [row if row[0] != "stretch" else ("stretch", "not recorded", None) for row in rows]
    heads = [Head("figure", "figure", TEXT), Head("shown", "value", TEXT), Head("value", "", TEXT)]
    notes = ["each call is measured: counts are exact, times have no margin of error", margin(samples)]
    if any(account.estimated for account in made.analysis.accounts):
        notes.append("run time is estimated: the end of a thread was not seen")
    if not spent.has_stretch:
        notes.append(NO_STRETCH)
    table = table_of(heads, rows)
    return Section("Measurement session data", "log, threads, overview, events", shown_without(table, "value"), notes)


def _of_collectors(made: Profiled) -> list[tuple[str, str]]:
    """The data collectors, with what they call themselves: STROBE's line SUBSYSTEM."""
    found = {each.name: each for process in made.experiment.processes for each in process.collectors}
    rows = []
    for each in found.values():
        rows.append(("data collector", f"{each.name.partition(':')[2]}  per {each.per}, for {each.programs}"))
        rows += [("subsystem", identifier) for identifier in each.identifiers]
    return rows


def identification(made: Profiled) -> Section:
    """What data collectors identified, module by module; what they did not by where it was made."""
    found = identified(made.analysis)
    whole = sum(sums.self_wall_ns for sums in found.values())
    rows: list[tuple[Any, ...]] = [
        (what.module, what.section, what.statement or "", what.collector.partition(":")[2], *_times_of(sums))
        for what, sums in sorted(found.items(), key=lambda each: each[0])
    ]
    heads = [Head("module", "module", TEXT), Head("section", "section", TEXT)]
    heads += [Head("statement", "statement", TEXT), Head("collector", "identified by", TEXT)]
    heads += [Head("calls", "calls", COUNT), *(Head(f"{each.lower()}_ns", each) for each in ("wall", "CPU", "wait"))]
    notes = ["names that begin with a dot: not identified by a collector, or declared overhead by one"]
    table = table_of(heads, rows, shares=("wall_ns",), whole=whole)
    return Section("Identification by data collectors", "events, stacks, threads", table, notes)


def _times_of(sums: Sums) -> tuple[int, int, int, int]:
    return sums.calls, sums.self_wall_ns, sums.self_cpu_ns, max(sums.self_wall_ns - sums.self_cpu_ns, 0)


def resource(made: Profiled) -> Section:
    """Resource demand: what each kind and file or address took, alone and in total, and its part of the wait."""
    whole = made.calls.tree.totals()[made.calls.tree.root]
    found: dict[Resource, list[int]] = {}
    for process in made.experiment.processes:
        for key, sums in made.analysis.records(process, ("intrinsic", "stack", "detail")).sums().items():
            figures = found.setdefault(resource_of(process, *key), [0, 0, 0])
            figures[0] += sums.calls
            figures[1] += sums.self_wall_ns
            figures[2] += sums.self_cpu_ns
    rows: list[tuple[Any, ...]] = [(kind, name, *figures) for (kind, name), figures in found.items()]
    rows += [(function.name, "", 0, *figures[:2]) for function, figures in _in_no_call(made)]
    solo, notes = _solo(made, found)
    full = [
        (kind, name, calls, wall, solo.get((kind, name)) if solo is not None else None, cpu, max(wall - cpu, 0))
        for kind, name, calls, wall, cpu in sorted(rows, key=lambda row: (-row[3], row[:2]))
    ]
    full = with_others(full, made.limit, 2)
    heads = [
        Head("kind", "task", TEXT),
        Head("resource", "resource", TEXT),
        Head("calls", "calls", COUNT),
        Head("total_ns", "total"),
        Head("solo_ns", "solo"),
        Head("cpu_ns", "CPU"),
        Head("wait_ns", "causing wait"),
    ]
    table = table_of(heads, full, shares=("total_ns",), whole=whole[0])
    return Section("Resource demand distribution", "events, threads", table, notes)


def _solo(made: Profiled, found: dict[Resource, list[int]]) -> tuple[dict[Resource, int] | None, list[str]]:
    """Solo times: all where a process has one thread."""
    told = f"solo: while no other thread of the process was in a call, except {', '.join(sorted(RESTING))}"
    if all(len(account.threads) <= 1 for account in made.analysis.accounts):
        return {resource: figures[1] for resource, figures in found.items()}, [told]
    solo = solo_times(made.experiment)
    if solo is None:
        return None, [f"solo: not calculated (more than {CALLS_AT_MOST:,} calls of several threads, or consolidated)"]
    return {resource: solo.get(resource, 0) for resource in found}, [told]


def activity(made: Profiled) -> Section:
    """Activity over time: what the calls that began in each slice took, by kind, and what the processes used."""
    found = slices_of(made.analysis, made.slices)
    figures = found.figures
    kinds = [kind for kind in figures.kinds if any(figures.of_kind(each.calls, kind) for each in found.slices)]
    start = found.slices[0].start_ns
    rows = []
    for each in found.slices:
        used = (round(each.cpu_ns), round(each.run_delay_ns)) if found.samples else (None, None)
        times = [figures.of_kind(each.calls, kind) for kind in kinds]
        rows.append((each.start_ns - start, each.stop_ns - each.start_ns, *used, each.calls[3], *times))
    heads = [Head("since_ns", "since"), Head("elapsed_ns", "for"), Head("cpu_ns", "CPU")]
    heads.append(Head("run_delay_ns", "stretch"))
    heads += [Head("calls", "calls", COUNT), *(Head(f"{kind}_ns", kind) for kind in kinds)]
    notes = ["each call counts, with its whole time, in the slice in which it began"]
    notes.append(margin(found.samples) if found.samples else NO_SAMPLES)
    if not found.has_events:
        notes.append(NO_EVENTS)
    return Section("Time distribution of activity level", "events, overview", table_of(heads, rows), notes)


def wait(made: Profiled) -> Section:
    """Waits by module and section, each with its invokers."""
    return _attributed(made, "Wait time by module", 2, "wait")


def cpu(made: Profiled) -> Section:
    """The CPU time of the called services, by invoker."""
    found = _attributed(made, "Attribution of CPU execution time", 1, "cpu")
    told = [] if made.lines.functions else [NO_LINES]
    return Section(found.title, found.made_from, found.table, [*found.notes, *told])


def _attributed(made: Profiled, title: str, place: int, name: str) -> Section:
    services = sorted(services_of(made.calls.tree), key=lambda each: (-each.figures[place], each.function.name))
    rows: list[tuple[Any, ...]] = []
    for service in services[: made.limit]:
        rows.append((object_of(service.function), service.function.name, "", "", service.figures[place]))
        rows += [
            ("", "", *_told(invoker), service.invokers[invoker][place]) for invoker in _invokers(service, place)
        ]
    rest = sum(service.figures[place] for service in services[made.limit :]) if made.limit else 0
    if rest:
        rows.append((".OTHER", "", "", "", rest))
    whole = sum(service.figures[place] for service in services)
    heads = [
        Head("module", "module", TEXT),
        Head("section", "section", TEXT),
        Head("invoked_by", "was invoked by", TEXT),
        Head("via", "via", TEXT),
        Head(f"{name}_ns", name),
    ]
    notes = ["rows without a section divide the row above them"]
    return Section(title, "events, stacks, threads", table_of(heads, rows, shares=(f"{name}_ns",), whole=whole), notes)


def _invokers(service: Service, place: int) -> list[Invoker]:
    """The invokers with a share, largest first; none for time outside calls."""
    if not service.function.object:
        return []
    there = [each for each, figures in service.invokers.items() if figures[place]]
    return sorted(there, key=lambda each: (-service.invokers[each][place], str(each)))


def _told(invoker: Invoker) -> tuple[str, str]:
    function, line = invoker.frame
    where = f"{function.name} {function.object}:{line}" if line else function.name
    return where, f"{invoker.via.name} ({invoker.via.object})" if invoker.via else ""


def section(made: Profiled) -> Section:
    """Section usage: what CPU time each section of each module took."""
    if made.lines.functions:
        return _section_by_lines(made.lines)
    rows = []
    services = services_of(made.calls.tree)
    whole = sum(service.figures[1] for service in services)
    alone = all(len(account.threads) <= 1 for account in made.analysis.accounts)
    for service in sorted(services, key=lambda each: (object_of(each.function), each.function.name)):
        took = service.figures[1]
        solo = took if alone else None
        rows.append((object_of(service.function), service.function.name, solo, took, bar(took, whole)))
    heads = [Head("module", "module", TEXT), Head("section", "section", TEXT), Head("solo_ns", "solo")]
    heads += [Head("cpu_ns", "total"), Head("histogram", "", TEXT)]
    notes = [NO_LINES + "; <code> stands for them"]
    if not alone:
        notes.append("solo: not available for CPU time with several threads")
    table = table_of(heads, rows, shares=("cpu_ns",), whole=whole)
    return Section("Program section usage", "events, threads", table, notes)


def _section_by_lines(trace: Trace) -> Section:
    """The same for functions with traced lines; the rest of the threads' CPU time has a row."""
    took = sorted((each.place.file, each.place.function, each.figures.self_cpu_ns) for each in trace.functions)
    took.append(("", OUTSIDE, sum(thread.outside.self_cpu_ns for thread in trace.threads)))
    took.append(("", OWN, sum(thread.own_ns for thread in trace.threads)))
    whole = sum(cpu_ns for *_, cpu_ns in took)
    alone = len({(id(thread.process), thread.thread) for thread in trace.threads}) == 1
    rows = [(file, name, cpu_ns if alone else None, cpu_ns, bar(cpu_ns, whole)) for file, name, cpu_ns in took]
    heads = [Head("module", "module", TEXT), Head("section", "section", TEXT), Head("solo_ns", "solo")]
    heads += [Head("cpu_ns", "total"), Head("histogram", "", TEXT)]
    notes = [*trace.notes, f"{OUTSIDE}: time outside traced functions; {OWN}: the cost of line trace (calibrated)"]
    if not alone:
        notes.append("solo: not available for CPU time with several threads")
    return Section("Program section usage", "lines", table_of(heads, rows, shares=("cpu_ns",), whole=whole), notes)


def procedure(made: Profiled) -> Section:
    """Procedure usage: the CPU time and the wait of what each own function called, itself or by others."""
    if made.lines.functions:
        return _procedure_by_lines(made.lines, made.limit)
    own = [row for row in by_function(made.calls.tree) if row.what.own and row.inclusive[3]]
    own.sort(key=lambda row: (-row.inclusive[1], row.what))
    rows = [
        (row.what.name, row.what.object, row.inclusive[3], row.inclusive[1], row.inclusive[2])
        for row in (own[: made.limit] if made.limit else own)
    ]
    heads = [Head("procedure", "procedure", TEXT), Head("file", "file", TEXT), Head("calls", "calls", COUNT)]
    heads += [Head("cpu_ns", "CPU of calls"), Head("wait_ns", "wait of calls")]
    notes = ["a call counts for each procedure on its stack, so the columns do not add up", NO_LINES]
    return Section("Program usage by procedure", "events, stacks", table_of(heads, rows), notes)


def _procedure_by_lines(trace: Trace, limit: int | None) -> Section:
    """The same for functions with traced lines: their own CPU time, and with called functions."""
    rows = [
        (
            each.place.function,
            f"{each.place.file}:{each.place.first_line}",
            *(figures.entered, figures.self_cpu_ns, figures.cpu_ns, figures.wall_ns),
        )
        for each in trace.functions[:limit]
        for figures in (each.figures,)
    ]
    heads = [Head("procedure", "procedure", TEXT), Head("start", "start", TEXT), Head("entered", "entered", COUNT)]
    heads += [Head("solo_ns", "CPU solo"), Head("cpu_ns", "CPU total"), Head("elapsed_ns", "elapsed")]
    notes = [*trace.notes, "solo excludes what a procedure called, total includes it"]
    return Section("Program usage by procedure", "lines", table_of(heads, rows), notes)


def transaction(made: Profiled) -> Section:
    """Transaction usage by section: the CPU time and the response time of each transaction by kind."""
    found = transactions(made.analysis)
    rows: list[tuple[Any, ...]] = []
    for row in sorted(found.rows, key=lambda row: row.name):
        mean = row.response_ns // row.sums.calls if row.sums.calls and row.is_named else None
        cpu_ns = row.cpu_ns if found.has_cpu else None
        rows.append((row.name, "", row.sums.calls, mean, row.response_ns, row.overlap_ns, row.thread_ns, cpu_ns))
        for kind in found.kinds:
            share = row.split.get(kind)
            if share and (share.wall_ns or share.cpu_ns):
                is_known = found.has_cpu or kind != "logic"
                of_thread_ns = None if row.overlap_ns else share.wall_ns
                cpu_ns = share.cpu_ns if is_known else None
                rows.append(("", kind, None, None, share.wall_ns, None, of_thread_ns, cpu_ns))
    heads = [Head("transaction", "transaction", TEXT), Head("section", "section", TEXT)]
    heads += [Head("count", "count", COUNT), Head("mean_ns", "mean service")]
    heads += [Head("response_ns", "response"), Head("overlap_ns", "overlap"), Head("thread_ns", "of threads")]
    heads.append(Head("cpu_ns", "CPU"))
    notes = ["rows without a name divide the transaction above them"]
    if not found.has_cpu:
        notes.append("CPU between calls: not recorded by transaction (record again with this version)")
    table = table_of(heads, rows, shares=("thread_ns",), whole=found.thread_ns)
    return Section("Transaction usage by section", "events, threads", table, notes)


def files(made: Profiled) -> Section:
    """Data set characteristics: each file with its operations, even if they took no time."""
    found = input_output(made.analysis).by_file()
    rows = []
    for name, done in sorted(found.items(), key=lambda each: (-_time_of(each[1]), each[0])):
        counts = [done.get(operation, Activity()).sums.calls for operation in (OPEN, READ, WRITE, CLOSE, OTHER)]
        moved = [done.get(operation, Activity()).sums.bytes for operation in (READ, WRITE)]
        access = "".join(letter for letter, made_ in zip("rw", counts[1:3], strict=True) if made_) or "-"
        rows.append((name, access, sum(counts), *counts, *moved, _time_of(done)))
    rows = with_others(rows, made.limit, 2)
    heads = [Head("file", "file", TEXT), Head("access", "access", TEXT), Head("operations", "operations", COUNT)]
    heads += [Head(name, name, COUNT) for name in ("opened", "read", "written", "closed", "other")]
    heads += [Head("read_bytes", "bytes read", COUNT), Head("written_bytes", "bytes written", COUNT)]
    heads.append(Head("time_ns", "time"))
    notes = ["access: r read, w written; the mode of opening is not recorded"]
    return Section("Data set characteristics", "events", table_of(heads, rows), notes)


SECTIONS: dict[str, Callable[[Profiled], Section]] = {
    "session": session,
    "resource": resource,
    "activity": activity,
    "wait": wait,
    "section": section,
    "identified": identification,
    "procedure": procedure,
    "transaction": transaction,
    "cpu": cpu,
    "files": files,
}


def told_unasked(made: Profiled) -> list[str]:
    """The sections by default: identification only if there were collectors."""
    has_collectors = any(process.collectors for process in made.experiment.processes)
    return [name for name in SECTIONS if name != "identified" or has_collectors]


def _time_of(done: dict[str, Activity]) -> int:
    return sum(activity.sums.self_wall_ns for activity in done.values())


def _in_no_call(made: Profiled) -> list[tuple[Any, Any]]:
    """Time outside calls, with its figures."""
    there = made.calls.tree.root.inner.values()
    return [(node.frame.function, node.own) for node in there if node.own and not node.frame.function.object]
