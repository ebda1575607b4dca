"""The sections of a performance profile: what a program used, when, where it waited, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.attribution import Invoker, Service
from interpose.analysis.calls.calltree import CODE
from interpose.analysis.calls.figures import in_usual_order
from interpose.analysis.calls.functions import object_of
from interpose.analysis.calls.input_output import CLOSE, OPEN, OTHER, READ, WRITE
from interpose.analysis.lines.functions_part import LinesPart
from interpose.analysis.partial.sections import (
    ACTIVITY,
    FILES,
    IDENTIFIED,
    LINES,
    PROCEDURES,
    RESOURCES,
    SERVICES,
    SLICES,
    TRANSACTIONS,
    ProfilePart,
    question,
    reduced,
)
from interpose.analysis.time.concurrency import CALLS_AT_MOST, RESTING, Resource
from interpose.analysis.transactions import response_times
from interpose.analysis.transactions.response_times import Transaction, Transactions
from interpose.reports.formats.table import Table, clean
from interpose.reports.formats.units import count, duration
from interpose.reports.screen.section import (
    COUNT,
    NO_SAMPLES,
    TEXT,
    Head,
    Section,
    bar,
    largest,
    margin,
    shown_without,
    table_of,
    with_others,
    with_share,
)

NO_LINES = "CPU of the program's own sections: not recorded (record with INTERPOSE=calls,lines)"
SAMPLED = "CPU and wait of the program's own sections: estimated from samples (interpose report --by function: margins)"
OTHERS = ".OTHERS"  # of transactions: .OTHER is the time in none
OUTSIDE, OWN, UNTRACED = ".OUTSIDE", ".INTERPOSE", ".UNTRACED"
NO_DELAY = "wait for CPU: not recorded (the kernel gave no run-queue delay); it is in wait"
NO_EVENTS = "single calls: not recorded (record without INTERPOSE_CONSOLIDATE)"


class Profiled:
    """The basis of the sections, and how many rows they show."""

    def __init__(self, part: ProfilePart, limit: int | None = None) -> None:
        self.part = part
        self.limit = limit

    @cached_property
    def transactions(self) -> Transactions:
        """The transactions, sorted."""
        return response_times.finished(response_times.merged([self.part.transactions]))


def profiled(analysis: Analysis, slices: int = SLICES, limit: int | None = None) -> Profiled:
    """The basis of all sections for one analysis."""
    needs = [need for each in SECTIONS.values() for need in each.needs]
    return Profiled(reduced(analysis, question(needs, slices)), limit)


def session(made: Profiled) -> Section:
    """Measurement session data: what was measured, and how certain the figures are."""
    part, spent = made.part.session, made.part.session.spent
    span_ns = part.ends_ns - part.begins_ns
    rows: list[tuple[str, str, int | None]] = [
        ("experiment", _first_and_how_many([part.name], part.experiments), None),
        ("command", _first_and_how_many(part.commands, len(part.commands)), None),
        ("host", _first_and_how_many(part.hosts, len(part.hosts)), None),
        ("processes", str(part.processes), part.processes),
        ("threads", str(part.threads), None),
        ("session time", duration(span_ns), span_ns),
        ("run time (of all threads)", duration(spent.wall_ns), spent.wall_ns),
        ("CPU time", with_share(spent.cpu_ns, spent.wall_ns), spent.cpu_ns),
        ("wait", with_share(spent.wait_ns, spent.wall_ns), spent.wait_ns),
        ("wait for CPU", with_share(spent.delay_ns, spent.wall_ns), spent.delay_ns if spent.has_delay else None),
        ("calls recorded", f"{part.calls:,}", part.calls),
        ("calls lost", f"{part.dropped:,}", part.dropped),
        ("samples of usage", f"{part.samples:,}", part.samples),
    ]
    rows += [(name, shown, None) for name, shown in _of_collectors(made)]
    if not spent.has_delay:
        rows = [row if row[0] != "wait for CPU" else ("wait for CPU", "not recorded", None) for row in rows]
    heads = [Head("figure", "figure", TEXT), Head("shown", "value", TEXT), Head("value", "", TEXT)]
    notes = ["each call is measured: counts are exact, times have no margin of error", margin(part.samples)]
    if part.is_estimated:
        notes.append("run time is estimated: the end of a thread was not seen")
    if not spent.has_delay:
        notes.append(NO_DELAY)
    table = table_of(heads, rows)
    return Section("Measurement session data", "log, threads, overview, events", shown_without(table, "value"), notes)


def _first_and_how_many(given: list[str], number: int) -> str:
    """The first name, and how many more there are."""
    first = clean(given[0]) if given else ""
    return f"{first} and {number - 1:,} more" if number > 1 else first


def _of_collectors(made: Profiled) -> list[tuple[str, str]]:
    """The data collectors, with what they call themselves: STROBE's line SUBSYSTEM."""
    rows = []
    for each in made.part.session.collectors.values():
        rows.append(("data collector", f"{each.name.partition(':')[2]}  per {each.per}, for {each.programs}"))
        rows += [("subsystem", identifier) for identifier in each.identifiers]
    return rows


def identification(made: Profiled) -> Section:
    """What data collectors identified, module by module; what they did not by where it was made."""
    found = made.part.identified
    whole = sum(wall_ns for _, wall_ns, _ in found.values())
    rows: list[tuple[Any, ...]] = [
        (*what[:2], what.statement or "", what.collector.partition(":")[2], calls, wall, cpu, max(wall - cpu, 0))
        for what, (calls, wall, cpu) in sorted(found.items(), key=lambda each: each[0])
    ]
    heads = [Head("module", "module", TEXT), Head("section", "section", TEXT)]
    heads += [Head("statement", "statement", TEXT), Head("collector", "identified by", TEXT)]
    heads += [Head("calls", "calls", COUNT), *(Head(f"{each.lower()}_ns", each) for each in ("wall", "CPU", "wait"))]
    notes = ["names that begin with a dot: not identified by a collector, or declared overhead by one"]
    table = table_of(heads, largest(rows, made.limit, 4, 5), shares=("wall_ns",), whole=whole)
    return Section("Identification by data collectors", "events, stacks, threads", table, notes)


def resource(made: Profiled) -> Section:
    """Resource demand: what each kind and file or address took, alone and in total, and its part of the wait."""
    part = made.part.resources
    rows: list[tuple[Any, ...]] = [(*resource, *figures) for resource, figures in part.figures.items()]
    rows += [(name, "", 0, *figures) for name, figures in part.outside.items()]
    full = [
        (kind, name, calls, wall, _solo(part.solo, (kind, name)), cpu, max(wall - cpu, 0))
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
    table = table_of(heads, full, shares=("total_ns",), whole=part.whole_ns)
    told = f"solo: while no other thread of the process was in a call, except {', '.join(sorted(RESTING))}"
    if part.solo is None:
        told = f"solo: not calculated (more than {CALLS_AT_MOST:,} calls of several threads, or consolidated)"
    return Section("Resource demand distribution", "events, threads", table, [told])


def _solo(solo: dict[Resource, int] | None, resource: Resource) -> int | None:
    """The solo time of a resource; None if that is unknown, or if it is no resource but time outside of calls."""
    return solo.get(resource) if solo is not None else None


def activity(made: Profiled) -> Section:
    """Activity over time: what the calls that began in each slice took, by kind, and what the processes used."""
    found, experiments = made.part.activity, max(made.part.session.experiments, 1)
    kinds = in_usual_order({kind for each in found.slices for kind in each.kinds})
    rows = []
    for each in found.slices:
        used = (each.cpu_ns, each.run_delay_ns) if found.samples else (None, None)
        times = [each.kinds.get(kind, 0) for kind in kinds]
        rows.append((each.start_ns // experiments, each.length_ns // experiments, *used, each.calls, *times))
    heads = [Head("since_ns", "since"), Head("elapsed_ns", "for"), Head("cpu_ns", "CPU")]
    heads.append(Head("run_delay_ns", "wait for CPU"))
    heads += [Head("calls", "calls", COUNT), *(Head(f"{kind}_ns", kind) for kind in kinds)]
    notes = ["each call counts, with its whole time, in the slice in which it began"]
    notes.append(margin(found.samples) if found.samples else NO_SAMPLES)
    if not found.has_events:
        notes.append(NO_EVENTS)
    if experiments > 1:
        of = count(experiments, "experiment")
        notes.append(f"each slice is the same part of {of}: since and for are means, all other figures sums")
    return Section("Time distribution of activity level", "events, overview", table_of(heads, rows), notes)


def wait(made: Profiled) -> Section:
    """Waits by module and section, each with its invokers."""
    return _attributed(made, "Wait time by module", 2, "wait")


def cpu(made: Profiled) -> Section:
    """The CPU time of the called services, by invoker."""
    found = _attributed(made, "Attribution of CPU execution time", 1, "cpu")
    return Section(found.title, found.made_from, found.table, [*found.notes, *_of_own_sections(made.part)])


def _of_own_sections(part: ProfilePart) -> list[str]:
    """Where the CPU time of the program's own sections comes from, or why it is not known."""
    if part.lines.functions:
        return []
    return [SAMPLED] * part.is_sampled + [NO_LINES] * (not part.is_sampled)


def _attributed(made: Profiled, title: str, place: int, name: str) -> Section:
    services = sorted(made.part.services, key=lambda each: (-each.figures[place], each.function.name))
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
    if made.part.lines.functions:
        return _section_by_lines(made.part.lines, made.part.session.spent.cpu_ns, made.limit)
    services = made.part.services
    took = sorted((object_of(each.function), each.function.name, each.figures[1]) for each in services)
    alone = made.part.session.is_alone
    table, notes = _usage(took, alone, made.limit), _of_own_sections(made.part)
    if any(service.function == CODE for service in services):
        notes.append(f"{CODE.name} stands for those that were not recorded or sampled")
    return Section("Program section usage", "events, threads", table, [*notes, *_solo_of(alone)])


def _usage(took: list[tuple[str, str, int]], alone: bool, limit: int | None) -> Table:
    """The table of sections that used so much CPU time, by module."""
    whole = sum(cpu_ns for *_, cpu_ns in took)
    rows = largest([(*names, cpu_ns if alone else None, cpu_ns) for *names, cpu_ns in took], limit, 2, 3)
    heads = [Head("module", "module", TEXT), Head("section", "section", TEXT), Head("solo_ns", "solo")]
    heads += [Head("cpu_ns", "total"), Head("histogram", "", TEXT)]
    return table_of(heads, [(*row, bar(row[3], whole)) for row in rows], shares=("cpu_ns",), whole=whole)


def _solo_of(alone: bool) -> list[str]:
    return [] if alone else ["solo: not available for CPU time with several threads"]


def _section_by_lines(trace: LinesPart, of_threads_ns: int, limit: int | None) -> Section:
    """The same for functions with traced lines; the rest of the threads' CPU time, of which there is `of_threads_ns`,
    has rows of its own."""
    took = sorted((place.file, place.function, figures.self_cpu_ns) for place, figures in trace.functions.items())
    took += [("", OUTSIDE, trace.outside_cpu_ns), ("", OWN, trace.own_ns)]
    rest_ns = of_threads_ns - sum(cpu_ns for *_, cpu_ns in took)
    if rest_ns > 0:
        took.append(("", UNTRACED, rest_ns))
    alone = trace.threads == 1
    notes = [*trace.notes, f"{OUTSIDE}: time outside traced functions; {OWN}: the cost of line trace (calibrated)"]
    if rest_ns > 0:
        notes.append(f"{UNTRACED}: threads and times without line trace, such as the start of recording")
    return Section("Program section usage", "lines", _usage(took, alone, limit), [*notes, *_solo_of(alone)])


def procedure(made: Profiled) -> Section:
    """Procedure usage: the CPU time and the wait of what each own function called, itself or by others."""
    if made.part.lines.functions:
        return _procedure_by_lines(made.part.lines, made.limit)
    own = sorted(made.part.procedures.items(), key=lambda each: (-each[1][1], each[0]))
    rows = [(function.name, function.object, *figures) for function, figures in own[: made.limit]]
    heads = [Head("procedure", "procedure", TEXT), Head("file", "file", TEXT), Head("calls", "calls", COUNT)]
    of = "" if made.part.is_sampled else " of calls"
    heads += [Head("cpu_ns", f"CPU{of}"), Head("wait_ns", f"wait{of}")]
    what = "a call or a sample" if made.part.is_sampled else "a call"
    notes = [f"{what} counts for each procedure on its stack, so the columns do not add up"]
    notes += _of_own_sections(made.part)
    return Section("Program usage by procedure", "events, stacks", table_of(heads, rows), notes)


def _procedure_by_lines(trace: LinesPart, limit: int | None) -> Section:
    """The same for functions with traced lines: their own CPU time, and with called functions."""
    dearest = sorted(trace.functions.items(), key=lambda each: -each[1].self_cpu_ns)[:limit]
    rows = [
        (
            place.function,
            f"{place.file}:{place.first_line}",
            *(figures.entered, figures.self_cpu_ns, figures.cpu_ns, figures.wall_ns),
        )
        for place, figures in dearest
    ]
    heads = [Head("procedure", "procedure", TEXT), Head("start", "start", TEXT), Head("entered", "entered", COUNT)]
    heads += [Head("solo_ns", "CPU solo"), Head("cpu_ns", "CPU total"), Head("elapsed_ns", "elapsed")]
    notes = [*trace.notes, "solo excludes what a procedure called, total includes it"]
    return Section("Program usage by procedure", "lines", table_of(heads, rows), notes)


def transaction(made: Profiled) -> Section:
    """Transaction usage by section: the CPU time and the response time of each transaction by kind."""
    found = made.transactions
    by_time = sorted(found.rows, key=lambda row: (-row.thread_ns, row.name))
    rows: list[tuple[Any, ...]] = []
    for row in sorted(by_time[: made.limit], key=lambda row: row.name):
        rows += _parts_of(row, found)
    rest = by_time[made.limit :] if made.limit else []
    if rest:
        sums = [sum(column) for column in zip(*(_figures_of(row) for row in rest), strict=True)]
        rows.append((OTHERS, "", sums[0], None, *sums[1:4], sums[4] if found.has_cpu else None))
    heads = [Head("transaction", "transaction", TEXT), Head("section", "section", TEXT)]
    heads += [Head("count", "count", COUNT), Head("mean_ns", "mean service")]
    heads += [Head("response_ns", "response"), Head("overlap_ns", "overlap"), Head("thread_ns", "of threads")]
    heads.append(Head("cpu_ns", "CPU"))
    notes = ["rows without a name divide the transaction above them"]
    if rest:
        notes.append(f"{OTHERS}: the {len(rest):,} rows that --limit leaves out; .OTHER: time in no transaction")
    if not found.has_cpu:
        notes.append("CPU between calls: not recorded by transaction (record again with this version)")
    table = table_of(heads, rows, shares=("thread_ns",), whole=found.thread_ns)
    return Section("Transaction usage by section", "events, threads", table, notes)


def _figures_of(row: Transaction) -> tuple[int, ...]:
    return row.sums.calls, row.response_ns, row.overlap_ns, row.thread_ns, row.cpu_ns


def _parts_of(row: Transaction, found: Transactions) -> Iterator[tuple[Any, ...]]:
    """The row of a transaction, and one for each kind in it."""
    calls, response_ns, overlap_ns, thread_ns, cpu_ns = _figures_of(row)
    mean = response_ns // calls if calls and row.is_named else None
    yield row.name, "", calls, mean, response_ns, overlap_ns, thread_ns, cpu_ns if found.has_cpu else None
    for kind in found.kinds:
        share = row.split.get(kind)
        if share and (share.wall_ns or share.cpu_ns):
            of_thread_ns = None if overlap_ns else share.wall_ns
            of_cpu_ns = share.cpu_ns if found.has_cpu or kind != "logic" else None
            yield "", kind, None, None, share.wall_ns, None, of_thread_ns, of_cpu_ns


def files(made: Profiled) -> Section:
    """Data set characteristics: each file with its operations, even if they took no time."""
    found: dict[str, dict[str, list[int]]] = {}
    for (name, operation), figures in made.part.files.items():
        found.setdefault(name, {})[operation] = figures
    rows = []
    for name, done in sorted(found.items(), key=lambda each: (-_time_of(each[1]), each[0])):
        counts = [done[operation][0] if operation in done else 0 for operation in (OPEN, READ, WRITE, CLOSE, OTHER)]
        moved = [done[operation][1] if operation in done else 0 for operation in (READ, WRITE)]
        access = "".join(letter for letter, made_ in zip("rw", counts[1:3], strict=True) if made_) or "-"
        rows.append((name, access, sum(counts), *counts, *moved, _time_of(done)))
    rows = with_others(rows, made.limit, 2)
    heads = [Head("file", "file", TEXT), Head("access", "access", TEXT), Head("operations", "operations", COUNT)]
    heads += [Head(name, name, COUNT) for name in ("opened", "read", "written", "closed", "other")]
    heads += [Head("read_bytes", "bytes read", COUNT), Head("written_bytes", "bytes written", COUNT)]
    heads.append(Head("time_ns", "time"))
    notes = ["access: r read, w written; the mode of opening is not recorded"]
    return Section("Data set characteristics", "events", table_of(heads, rows), notes)


def _time_of(done: dict[str, list[int]]) -> int:
    return sum(time_ns for _, _, time_ns in done.values())


class Kind(NamedTuple):
    """A section: how it is made, which parts of a profile it needs, and why its rows have no limit if so."""

    make: Callable[[Profiled], Section]
    needs: tuple[str, ...] = ()
    unlimited: str = ""

    def __call__(self, made: Profiled) -> Section:
        return self.make(made)


SECTIONS = {
    "session": Kind(session, (), "its rows are fixed"),
    "resource": Kind(resource, (RESOURCES,)),
    "activity": Kind(activity, (ACTIVITY,), "use --slices N"),
    "wait": Kind(wait, (SERVICES,)),
    "section": Kind(section, (SERVICES, LINES)),
    "identified": Kind(identification, (IDENTIFIED,)),
    "procedure": Kind(procedure, (PROCEDURES, LINES)),
    "transaction": Kind(transaction, (TRANSACTIONS,)),
    "cpu": Kind(cpu, (SERVICES, LINES)),
    "files": Kind(files, (FILES,)),
}
UNASKED = [name for name in SECTIONS if name != "identified"]


def told_unasked(made: Profiled) -> list[str]:
    """The sections by default: identification only if there were collectors."""
    return [name for name in SECTIONS if name != "identified" or made.part.session.collectors]
