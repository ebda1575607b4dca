"""The commands that `interpose display` understands, in one list: their words, and what each does with a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from interpose.analysis.calls.calltree import Calls, Tree
from interpose.analysis.calls.folding import API, HIDE, SHOW
from interpose.analysis.calls.input_output import input_output
from interpose.analysis.heap import heaps
from interpose.analysis.recording.statistics import statistics
from interpose.analysis.time.usage import usages
from interpose.cli.er_print.views import Session
from interpose.errors import Caught, UsageError
from interpose.reports.formats.table import Table, table_of_cells
from interpose.reports.screen.display import DELIMITER, HTML, TEXT
from interpose.reports.screen.heads import experiment_list_table, header_table, metrics_table, overview_head
from interpose.reports.screen.views import (
    Shown,
    callers_table,
    calltree_table,
    functions_table,
    lines_table,
    objects_table,
    processes_table,
    single_table,
    threads_table,
)
from interpose.reports.tables.heap import heap_rows, heap_table, summary
from interpose.reports.tables.input_output import ioactivity_table, iodetail_table, iostat_table
from interpose.reports.tables.overview import overview_table
from interpose.reports.tables.statistics import statistics_table
from interpose.reports.tables.tokens import tokens_table

OFF = ("off", "none")
NO_SAMPLES = "not recorded (record with INTERPOSE_SAMPLE=on, and for longer than a second)"
_ELSEWHERE = {
    "compare": "interpose compare BEFORE AFTER compares experiments",
    "disasm": "interpose shows no machine code",
}
_FUNCTION, _OBJECTS, _METRICS, _FILE = "FUNCTION", "OBJECT,…", "METRIC:…", "FILE"

Act = Callable[[Session, Sequence[str]], None]


@dataclass(frozen=True)
class Verb:
    """A command: its name, its arguments (in brackets if optional), its function.

    `takes_line` if the whole line is one argument. `sets` if it shows nothing and can be in the file of defaults.
    """

    name: str
    words: tuple[str, ...]
    help: str
    act: Act
    takes_line: bool = False
    sets: bool = False

    @property
    def needed(self) -> int:
        """How many words there must be."""
        return sum(not word.startswith("[") for word in self.words)

    @property
    def usage(self) -> str:
        """How it is written."""
        return " ".join((self.name, *self.words))

    def run(self, session: Session, given: Sequence[str]) -> None:
        """Do it. Raises InterposeError."""
        if not self.needed <= len(given) <= len(self.words):
            raise UsageError(f"usage: {self.usage}")
        self.act(session, given)


class Ended(Caught):
    """There is nothing more to be done."""


def _calls(table: Callable[[Tree, Shown], Table]) -> Act:
    """Shows the calls in such a table."""
    return lambda session, given: session.show_calls(table)


def _parts(table: Callable[[Calls, Shown], Table]) -> Act:
    """Shows the threads or processes in such a table."""
    return lambda session, given: session.show(table(session.calls, session.shown(session.calls.tree)))


def _object_list(session: Session, given: Sequence[str]) -> None:
    names = session.names_of(session.calls.tree)
    folding, seen = session.folding, {}
    for node in session.calls.tree.nodes:
        function = node.frame.function
        if function.object and (function.own or function.object not in seen):
            seen[function.object] = folding.mode_of(function)
    rows = [(seen[each], names.file(each)) for each in sorted(seen)]
    session.show(table_of_cells("Objects", [("Shown",), ("Object",)], rows))


def _show_fragment(session: Session) -> None:
    session.show_calls(lambda tree, shown: callers_table(tree, shown, session.fragment))


def _csingle(session: Session, given: Sequence[str]) -> None:
    session.fragment = [session.function(*given)]
    _show_fragment(session)


def _begun(session: Session) -> None:
    if not session.fragment:
        raise UsageError("use csingle FUNCTION first")


def _cprepend(session: Session, given: Sequence[str]) -> None:
    _begun(session)
    session.fragment = [session.function(*given), *session.fragment]
    _show_fragment(session)


def _cappend(session: Session, given: Sequence[str]) -> None:
    _begun(session)
    session.fragment = [*session.fragment, session.function(*given)]
    _show_fragment(session)


def _shorter(session: Session, kept: slice) -> None:
    _begun(session)
    if len(session.fragment) < 2:
        raise UsageError("the last function cannot be removed")
    session.fragment = session.fragment[kept]
    _show_fragment(session)


def _fsingle(session: Session, given: Sequence[str]) -> None:
    chosen = [session.function(*given)]
    session.show_calls(lambda tree, shown: single_table(tree, shown, chosen))


def _fsummary(session: Session, given: Sequence[str]) -> None:
    there = list(dict.fromkeys(node.frame.function for node in session.tree.nodes))
    session.show_calls(lambda tree, shown: single_table(tree, shown, there[: session.limit or None]))


def _source(session: Session, given: Sequence[str]) -> None:
    session.show(session.source(*given))


def _experiments(session: Session, given: Sequence[str]) -> None:
    session.show(experiment_list_table(session.experiment))


def _iostat(session: Session, given: Sequence[str]) -> None:
    session.show(iostat_table(input_output(session.analysis)))


def _ioactivity(session: Session, given: Sequence[str]) -> None:
    session.show(ioactivity_table(input_output(session.analysis), session.limit))


def _iodetail(session: Session, given: Sequence[str]) -> None:
    session.show(iodetail_table(input_output(session.analysis), session.limit))


def _show_heap(session: Session, sort: str) -> None:
    found = heaps(session.experiment)
    table = heap_table(heap_rows(found, sort, session.limit or None), session.experiment.founder.log.cwd)
    notes = [summary(each) for each in found] or ["no heap: record with INTERPOSE=calls,heap"]
    session.show(replace(table, notes=notes))


def _header(session: Session, given: Sequence[str]) -> None:
    session.show(header_table(session.experiment))


def _overview(session: Session, given: Sequence[str]) -> None:
    session.show(overview_head(session.experiment, session.tree.figures, session.total, session.columns))


def _statistics(session: Session, given: Sequence[str]) -> None:
    session.show(
        *(
            replace(statistics_table(statistics(each)), title=f"Statistics of {each.name}")
            for each in session.experiment.experiments
        )
    )


def _samples(session: Session, given: Sequence[str]) -> None:
    made = []
    for each in session.experiment.experiments:
        samples = list(usages(each))
        notes = () if samples else (NO_SAMPLES,)
        made.append(replace(overview_table(each, samples), title=f"Samples of {each.name}", notes=notes))
    session.show(*made)


def _metrics(session: Session, given: Sequence[str]) -> None:
    if given:
        session.show_columns(given[0])
    else:
        _metric_list(session, given)


def _metric_list(session: Session, given: Sequence[str]) -> None:
    session.show(metrics_table(session.metrics, session.columns, session.sort.title))


def _dmetrics(session: Session, given: Sequence[str]) -> None:
    session.show_columns(given[0])
    session.default_columns = list(session.columns)


def _sort(session: Session, given: Sequence[str]) -> None:
    session.sort_by(given[0])


def _dsort(session: Session, given: Sequence[str]) -> None:
    session.sort_by(given[0])
    session.default_sort = session.sort


def _limit(session: Session, given: Sequence[str]) -> None:
    session.limit = _whole("limit", given[0], 0, 10**9)


def _sthresh(session: Session, given: Sequence[str]) -> None:
    session.hot_percent = _whole("sthresh", given[0], 1, 100)


def _whole(name: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise UsageError(f"{name}: {text!r} is not a number from {least} to {most}")
    return int(text)


def _filters(session: Session, given: Sequence[str]) -> None:
    if given:
        session.filter_by("" if given[0].strip().lower() in OFF else given[0])
    else:
        session.show(table_of_cells("", [("Filter",)], [[session.filter or "none"]]))


def _objects(mode: str) -> Act:
    """Has objects shown in this mode."""
    return lambda session, given: session.folding.set(session.objects(given[0]), mode)


def _object_select(session: Session, given: Sequence[str]) -> None:
    chosen = session.objects(given[0])
    session.folding.set(["all"], HIDE)
    session.folding.set(chosen, SHOW)


def _printmode(session: Session, given: Sequence[str]) -> None:
    mode = given[0]
    if mode in (TEXT, HTML, DELIMITER):
        session.mode, session.sign = mode, ","
    elif len(mode) == 1 and mode.isprintable() and not mode.isalnum() and mode not in "\"' ":
        session.mode, session.sign = DELIMITER, mode
    else:
        raise UsageError(f"{mode}: must be text, html, delimiter, or a single character")


def _outfile(session: Session, given: Sequence[str]) -> None:
    session.write_to(given[0])


def _appendfile(session: Session, given: Sequence[str]) -> None:
    session.write_to(given[0], append=True)


def _setpath(session: Session, given: Sequence[str]) -> None:
    session.sources.path = [part for part in given[0].split(":") if part]


def _addpath(session: Session, given: Sequence[str]) -> None:
    session.sources.path += [part for part in given[0].split(":") if part]


def _pathmap(session: Session, given: Sequence[str]) -> None:
    session.sources.replaced.append((given[0], given[1]))


def _describe(session: Session, given: Sequence[str]) -> None:
    session.show(replace(tokens_table(), title="What can stand in an expression"))


def _help(session: Session, given: Sequence[str]) -> None:
    chosen = [found(given[0])] if given else VERBS
    rows = [(verb.usage, verb.help) for verb in chosen]
    session.show(table_of_cells("", [("Command",), ("What it does",)], rows))


def _quit(session: Session, given: Sequence[str]) -> None:
    raise Ended


VERBS: tuple[Verb, ...] = (
    Verb("functions", (), "functions, with exclusive and inclusive metrics", _calls(functions_table)),
    Verb("callers-callees", (), "callers and callees of each function", _calls(callers_table)),
    Verb("csingle", (_FUNCTION, "[N]"), "callers and callees of one function", _csingle),
    Verb("cprepend", (_FUNCTION, "[N]"), "the same, where FUNCTION called that one", _cprepend),
    Verb("cappend", (_FUNCTION, "[N]"), "the same, where that one called FUNCTION", _cappend),
    Verb("crmfirst", (), "the same, without the first function", lambda s, given: _shorter(s, slice(1, None))),
    Verb("crmlast", (), "the same, without the last function", lambda s, given: _shorter(s, slice(None, -1))),
    Verb("fsingle", (_FUNCTION, "[N]"), "all metrics of one function", _fsingle),
    Verb("fsummary", (), "all metrics of each function", _fsummary),
    Verb("calltree", (), "calls as a tree", _calls(calltree_table)),
    Verb("lines", (), "lines that made calls", _calls(lines_table)),
    Verb("source", (f"{_FUNCTION}|{_FILE}", "[N]"), "a source, with metrics left of its lines", _source),
    Verb("objects", (), "files of the program, and modules of the calls", _calls(objects_table)),
    Verb("threads", (), "threads with their metrics", _parts(threads_table)),
    Verb("processes", (), "processes with their metrics", _parts(processes_table)),
    Verb("experiments", (), "experiments that are shown", _experiments),
    Verb("experiment_list", (), "the same", _experiments),
    Verb("iostat", (), "input and output: count, time and size by operation", _iostat),
    Verb("ioactivity", (), "the same by file", _ioactivity),
    Verb("iodetail", (), "the same by file and call", _iodetail),
    Verb("heap", (), "memory at the peak, by the line that allocated it", lambda s, given: _show_heap(s, "peak")),
    Verb("leaks", (), "the same for memory at the end", lambda s, given: _show_heap(s, "end")),
    Verb("header", (), "notes, and how the experiment was recorded", _header),
    Verb("overview", (), "totals of metrics; * marks much of the wall time", _overview),
    Verb("statistics", (), "events recorded and dropped, use of the pool", _statistics),
    Verb("samples", (), "what the processes used, second by second", _samples),
    Verb("metrics", (f"[{_METRICS}]",), "choose columns: e.%wall:i+cpu:name, or default", _metrics, sets=True),
    Verb("metric_list", (), "list the metrics", _metric_list),
    Verb("sort", ("METRIC",), "sort rows by METRIC: i.wall, -e.cpu (least first)", _sort, sets=True),
    Verb("limit", ("N",), "show at most N rows; 0 shows all", _limit, sets=True),
    Verb("filters", ("[EXPRESSION]",), "show only calls that match; off shows all", _filters, takes_line=True),
    Verb("object_show", (_OBJECTS,), "show all functions of these objects (all, library)", _objects(SHOW), sets=True),
    Verb("object_hide", (_OBJECTS,), "show each of these objects as one row", _objects(HIDE), sets=True),
    Verb("object_api", (_OBJECTS,), "show only the outermost function of these objects", _objects(API), sets=True),
    Verb("api", (_OBJECTS,), "the same; api library hides what libraries call", _objects(API), sets=True),
    Verb("object_select", (_OBJECTS,), "show these objects, and hide all others", _object_select, sets=True),
    Verb("object_list", (), "list the objects, and how each is shown", _object_list),
    Verb("sthresh", ("PERCENT",), "mark source lines from PERCENT of the largest on", _sthresh, sets=True),
    Verb("printmode", ("MODE",), "text, html, delimiter, or a character between cells", _printmode, sets=True),
    Verb("outfile", (_FILE,), "write what follows to FILE; - is standard output", _outfile),
    Verb("appendfile", (_FILE,), "append what follows to FILE", _appendfile),
    Verb("setpath", ("DIRECTORY:…",), "look for sources there; $expts is the experiment", _setpath, sets=True),
    Verb("addpath", ("DIRECTORY:…",), "look for sources there, too", _addpath, sets=True),
    Verb("pathmap", ("FROM", "TO"), "look for sources of FROM in TO", _pathmap, sets=True),
    Verb("dmetrics", (_METRICS,), "set the default columns", _dmetrics, sets=True),
    Verb("dsort", ("METRIC",), "set the default order of rows", _dsort, sets=True),
    Verb("describe", (), "list what an EXPRESSION can contain", _describe),
    Verb("help", ("[COMMAND]",), "list the commands, or explain one", _help),
    Verb("quit", (), "end", _quit),
    Verb("exit", (), "end", _quit),
)
_BY_NAME = {verb.name: verb for verb in VERBS}


def find(name: str) -> Verb | None:
    """The command with that name, or the only one that begins so; None if there is none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    begun = [verb for verb in VERBS if len(name) > 1 and verb.name.startswith(name)]
    return begun[0] if len(begun) == 1 else None


def found(name: str) -> Verb:
    """The same. Raises UsageError, with a suggestion if there is one."""
    verb = find(name)
    if verb is None:
        raise UsageError(f"{name} is not a command{nearest(name, _BY_NAME)}")
    return verb


def nearest(name: str, known: Iterable[str]) -> str:
    """What else could have been meant, in words, or where commands of er_print are that are not here."""
    if name in _ELSEWHERE:
        return f"; {_ELSEWHERE[name]}"
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else "; help lists them"

