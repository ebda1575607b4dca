"""Findings in sentences: what took the time, from which line, how often, how long, and what to do about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from interpose.analysis.findings import drivers
from interpose.analysis.findings.event_loops import AT, BEFORE, WITHIN
from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.next_steps import CALLS, LINES
from interpose.analysis.findings.programs import has_program_only
from interpose.analysis.findings.statements import has_sql, is_redis, is_sql, writes
from interpose.analysis.findings.waits import GIL, HELD, INTERPRETER_LOCK, PIPE
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places, Shown
from interpose.reports.formats.table import clean, shortened
from interpose.reports.formats.units import count, duration, percent, size

# Calls that start a child process.
_STARTS = frozenset(
    (
        *("subprocess.Popen", "subprocess.fork_exec", "multiprocessing.Process.start", "os.system"),
        *("os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp"),
    )
)
_LINES = 3
_TRANSACTIONS = 3
_LONGEST_DETAIL = 72
_ADVICE = {
    "N+1 statements": "Make one call for all of them, if its library has one.",
    "commits one by one": "Commit several together.",
    "reconnects": "Keep the connection, or take it from a pool.",
    "tiny reads and writes": "Read and write through a buffer, or more at once.",
    "fsync storm": "Force the data to disk once, after the last write.",
    "sleep within a transaction": "Sleep outside the transaction, or wait for the event itself.",
    "lock convoy": "Hold the lock for a shorter time, or use several locks.",
    "deadlock": "Take the locks in the same order everywhere, or wait for them with a timeout.",
    "lock not released": "See why it is not released. If it is a signal for other threads, use threading.Event.",
    "waits for a turn": "Let more of them pass at a time, or let each be done sooner.",
    "repeated work": "Cache the result.",
    "database waits for the disk": "Write in fewer transactions, or use a write-ahead log (WAL).",
    "database waits for a lock": "Keep write transactions short, or use a write-ahead log (WAL).",
    "driver computes": "Fetch fewer rows and columns, or use a compiled driver.",
    "slow statement": "Look at its query plan: an index, fewer rows, fewer columns.",
    "child processes": "See what each took: interpose processes.",
    "wait for CPU": "Measure on a less busy machine, or use fewer threads and processes.",
    "unexplained wait": "A call that interpose does not record may be the cause: interpose doctor, docs/limits.md.",
    "computing": "See its lines: record with interpose run, then interpose report --by line.",
    "computing while idle": "They probably unpickled the work: send less data, or import modules before the first job.",
    "awaits one by one": "Request them together, or await them together: asyncio.gather.",
    "slow awaits": "Look at the service that answers, or request less from it.",
    "waits of event loop": "See what was awaited: interpose events.",
    "no lines": "Record with INTERPOSE_STACK=own.",
}
# The sleep may be on another thread, so it is not known whether it is in the background task or before it.
_BACKGROUND_ADVICE = (
    "The transaction has background tasks: if it sleeps in one, the answer was sent before. "
    "Otherwise sleep outside the transaction, or wait for the event itself."
)
# Of calls that are slow, and that no other rule knows more of.
_ADVICE_BY_KIND = {
    "db": "Look at what the database does during these calls.",
    "net": "Send requests at the same time, cache the responses, or set a timeout.",
    "sleep": "Wait for the event itself, or for a shorter time.",
    "process": "Look at who writes to this pipe, and when.",
    "import": "Import it only where it is needed.",
}
_SQL_ADVICE = "Load them together: a join, IN (...), executemany, or the ORM's eager loading."
_SQL_WRITES_ADVICE = "Write them together: executemany, or many rows a statement; if each commits, in one transaction."
_REDIS_ADVICE = "Send them together: a pipeline, or one command for many keys, such as MGET."
_REDIS_DRIVER_ADVICE = "Fetch fewer and smaller values, or install hiredis."
_FAR_LONGER_ADVICE = "See when, and what else ran then: interpose events."
_FAR_LONGER_WRITE_ADVICE = "It probably waited for a lock of another transaction. See when: interpose events."
_SEE_CALLS = "See their arguments: interpose report --by detail."
_LINES_ADVICE = "See what each line takes without that cost: interpose lines."
_IMPORTS_ADVICE = "See each import: record with --kinds all,import (docs/how-to/slow-start.md)."
_HOT_ADVICE = "See its lines: interpose report --by line."
_NATIVE_ADVICE = "See its lines with a profiler of native code, such as perf annotate."
_OTHER_PROGRAM_ADVICE = "See its functions with a profiler of native code, such as perf record."
_FEW_SAMPLES_ADVICE = "Too few samples to name its functions; count its lines: interpose run --lines own."
_BLOCKING_CALL = "Await an asynchronous form of it, or run it in a thread: asyncio.to_thread."
_BLOCKING_CODE = "Run it in a process, or let other tasks run in between: await asyncio.sleep(0)."
_FUNCTIONS_ADVICE = "See in which functions: record with --native-stack functions."
_LOCK_ADVICE = "Only one thread at a time runs Python code. Move this work to processes."

_OWN_LOCK_ADVICE = "Release it first, or use threading.RLock."

_REDIS_ADVICE_BY_RULE = {"N+1 statements": _REDIS_ADVICE, "driver computes": _REDIS_DRIVER_ADVICE}

_IN_PROGRESS = frozenset(("deadlock", "lock not released"))
_OF_PROGRAMS = frozenset(("slow calls", "lock convoy"))
_OF_LOCKS = _IN_PROGRESS | {"lock convoy"}
_LINE = re.compile(r"(?P<file>/.+):(?P<line>[0-9]{1,9}) (?P<function>.+)")  # as the recorder names a line

_OTHER_ADVICE = (
    *(_SQL_ADVICE, _SQL_WRITES_ADVICE, _REDIS_ADVICE, _REDIS_DRIVER_ADVICE),
    *(_FAR_LONGER_ADVICE, _FAR_LONGER_WRITE_ADVICE),
    *(_SEE_CALLS, _LINES_ADVICE, _IMPORTS_ADVICE, _HOT_ADVICE),
    *(_NATIVE_ADVICE, _OTHER_PROGRAM_ADVICE, _FEW_SAMPLES_ADVICE),
    *(_BLOCKING_CALL, _BLOCKING_CODE, _LOCK_ADVICE, _OWN_LOCK_ADVICE, _FUNCTIONS_ADVICE),
)
EVERY_ADVICE = frozenset((*_ADVICE.values(), *_ADVICE_BY_KIND.values(), *_OTHER_ADVICE))


def advice_for(finding: Finding) -> str:
    """What to do about a finding, in a sentence."""
    if finding.about == INTERPRETER_LOCK or _is_of_interpreter(finding):
        return _LOCK_ADVICE
    if finding.rule == "computing" and finding.unit == LINES:
        return _LINES_ADVICE
    if finding.rule == "computing" and finding.inner and not finding.inner.site:
        return _IMPORTS_ADVICE
    if finding.rule == "computing" and finding.site:
        return _NATIVE_ADVICE if finding.site.is_native else _HOT_ADVICE
    if finding.rule == "computing" and not finding.is_python:
        return _OTHER_PROGRAM_ADVICE
    if finding.rule == "computing" and finding.is_sampled:
        return _FEW_SAMPLES_ADVICE
    if finding.rule == "blocked event loop":
        return _BLOCKING_CALL if finding.intrinsic else _BLOCKING_CODE
    if finding.rule == "sleep within a transaction" and finding.about:
        return _BACKGROUND_ADVICE
    if finding.rule in _IN_PROGRESS and _waits_for_itself(finding.rows[:1]):
        return _OWN_LOCK_ADVICE
    if finding.rule in _REDIS_ADVICE_BY_RULE and finding.first and is_redis(finding.first):
        return _REDIS_ADVICE_BY_RULE[finding.rule]
    if finding.rule == "N+1 statements" and finding.rows and is_sql(_asked(finding)):
        return _SQL_WRITES_ADVICE if writes(_asked(finding)) else _SQL_ADVICE
    if finding.rule == "slow calls" and finding.first and finding.first.among:
        return _FAR_LONGER_WRITE_ADVICE if writes(finding.first) else _FAR_LONGER_ADVICE
    if finding.rule in _OF_PROGRAMS and finding.first and has_program_only(finding.first):
        return _FUNCTIONS_ADVICE
    if finding.rule == "slow awaits" and finding.first and finding.first.kind == "sleep":
        return _ADVICE_BY_KIND["sleep"]
    if finding.rule != "slow calls" or not finding.first:
        return _ADVICE[finding.rule]
    if finding.first.kind == "db" and has_sql(finding.first) and drivers.computes(finding):
        return _ADVICE["slow statement" if drivers.is_in_process(finding.first) else "driver computes"]
    return _ADVICE_BY_KIND.get(finding.first.kind, _SEE_CALLS)


def told(finding: Finding, words: Sentences) -> str:
    """The finding, and what to do about it."""
    return f"{words.of(finding)} {advice_for(finding)}"


def _is_of_interpreter(finding: Finding) -> bool:
    return finding.rule == "lock convoy" and finding.first is not None and finding.first.kind == GIL


class Sentences:
    """Turns findings into sentences, with the shortest paths that tell files apart.

    `matters_ns` is the time that sentences compare with (`Survey.matters_ns`), `shown` notes the lines they name.
    """

    def __init__(
        self, findings: Iterable[Finding], cwd: str, matters_ns: int, shown: Shown | None = None
    ) -> None:
        listed = list(findings)
        sites = {row.site for each in listed for row in each.rows if row.site}
        sites |= {site for each in listed for site in (each.site, *each.callers.lines) if site}
        sites |= {each.inner.site for each in listed if each.inner and each.inner.site}
        sites |= {site for each in listed for site in _holders(each)}
        self._places = Places([site.file for site in sites], cwd, shown)
        self.shown = self._places.shown
        self._cwd = cwd
        self._matters_ns = matters_ns

    def of(self, finding: Finding) -> str:
        """The finding in a sentence."""
        return clean(_SENTENCES[finding.rule](self, finding))

    def took(self, finding: Finding) -> str:
        """The time of its evidence in the time that matters: `1.90 s of 2.60 s`, and whether that is estimated."""
        return self.took_of(finding, finding.wall_ns)

    def took_of(self, finding: Finding, wall_ns: int) -> str:
        """The same for a part of its evidence."""
        return self.of_time(wall_ns) + (", estimated" if finding.is_estimated else "")

    def of_time(self, wall_ns: int) -> str:
        """A time in the time that matters."""
        return f"{duration(wall_ns)} of {duration(self._matters_ns)}"

    def where(self, row: Calls | None) -> str:
        """The line that calls were made from."""
        return self.line(row.site) if row else "?"

    def line(self, site: Site | None) -> str:
        """A line with its function: `orders.py:88 get`."""
        return self._places.named(site) if site else "an unknown line"

    def path(self, path: str) -> str:
        """A file that was read or written, relative to where the program ran."""
        under = self._cwd.rstrip("/") + "/"
        return path[len(under) :] if len(under) > 1 and path.startswith(under) else path

    def lines(self, finding: Finding) -> str:
        """The lines of the evidence, those that took most first."""
        sites = [finding.site] if finding.site else [row.site for row in finding.rows]
        told = list(dict.fromkeys(map(self.line, sites)))
        more = f" and {len(told) - _LINES} more" if len(told) > _LINES else ""
        return clean(", ".join(told[:_LINES]) + more)


def per_unit(finding: Finding, calls: int) -> str:
    """How many of `calls` are in each transaction or file: `, 60 per GET /orders`; nothing for one each."""
    each = calls / finding.units if finding.units else 1
    if each <= 1:
        return ""
    number = f"{each:,.0f}" if each == int(each) else f"about {each:,.1f}" if each < 10 else f"about {each:,.0f}"
    return f", {number} per {_unit(finding)}"


def _unit(finding: Finding) -> str:
    named = finding.transactions
    if finding.unit != "transaction" or not named:
        return finding.unit
    if len(named) == 1:
        return named[0]
    more = f" and {len(named) - _TRANSACTIONS} more" if len(named) > _TRANSACTIONS else ""
    return f"transaction, in {', '.join(named[:_TRANSACTIONS])}{more}"


def _quoted(text: str) -> str:
    return f'"{shortened(" ".join(text.split()), _LONGEST_DETAIL)}"'


def _each(finding: Finding) -> str:
    """What follows the calls: the mean of several, and which did not take their time."""
    number = _fetched(finding) or finding.calls
    mean = f", {duration(finding.wall_ns // number)} each" if number > 1 else ""
    return mean + _cut_off(finding)


def _fetched(finding: Finding) -> int:
    """The number of rows, where these calls fetched several a call or, as one event may have many, a fetch; else 0."""
    is_of_rows = finding.first is not None and has_sql(finding.first) and finding.fetched > finding.calls
    return finding.fetched if is_of_rows and not finding.made else 0


def _cut_off(finding: Finding) -> str:
    """How many of the calls had not ended, and how many sleeps an exception has ended early."""
    is_sleep = finding.rule == "sleep within a transaction"
    unended = min(sum(row.unended for row in finding.rows), finding.calls)
    failed = min(sum(row.failed for row in finding.rows), finding.calls) if is_sleep else 0
    numbers = [(unended, "in progress at the end"), (failed, "cut off by an exception")]
    several = finding.calls > 1
    return "".join(f", {f'{number:,} ' if several else ''}{what}" for number, what in numbers if number)


def _repeated(words: Sentences, finding: Finding) -> str:
    asked = _asked(finding)
    each = per_unit(finding, finding.calls) if finding.unit == "transaction" else ""
    what = f"{_of_language(finding.calls, asked)} from {words.where(asked)}{each}"
    return f"{what} ({words.took(finding)}{_without(finding)}): {_quoted(finding.about)}."


def _without(finding: Finding) -> str:
    """The call that took far longer than the others and is not in their time."""
    return f", without one of {duration(finding.longest_ns)}" if finding.longest_ns else ""


def _asked(finding: Finding) -> Calls:
    """The largest row of its statement, not of what was fetched by it."""
    return next(row for row in finding.rows if row.detail)


def _of_language(calls: int, asked: Calls) -> str:
    """How many statements, commands or calls: `300 Redis commands`."""
    if is_redis(asked):
        return count(calls, "Redis command")
    return count(calls, "SQL query", "SQL queries") if is_sql(asked) else f"{count(calls, 'call')} of {asked.intrinsic}"


def _commits(words: Sentences, finding: Finding) -> str:
    each = per_unit(finding, finding.calls) if finding.unit == "transaction" else ""
    made = f"{count(finding.calls, 'commit')} from {words.where(finding.first)}"
    return f"{made}{each}{_each(finding)} ({words.took(finding)}{_without(finding)})."


def _reconnects(words: Sentences, finding: Finding) -> str:
    to = f" to {words.path(finding.about)}" if finding.about else ""
    made = count(finding.calls, "connection")
    return f"{made}{to} from {words.lines(finding)}{_each(finding)} ({words.took(finding)})."


def _tiny(words: Sentences, finding: Finding) -> str:
    assert finding.first is not None
    mean = _mean_size(finding.bytes, finding.calls)
    what = f"{count(finding.calls, 'call')} of {finding.first.verb} with {mean} each"
    return f"{what} on {words.path(finding.about)} from {words.lines(finding)} ({words.took(finding)})."


def _mean_size(moved: int, calls: int) -> str:
    """The mean of what calls moved: `1 B`, `1.5 B`, `64 B`; never nothing, if anything was moved."""
    mean = round(moved / calls, 1)
    if moved and not mean:
        return "less than 0.1 B"
    return size(round(moved / calls)) if mean >= 10 or mean == int(mean) else f"{mean} B"


def _forced(words: Sentences, finding: Finding) -> str:
    assert finding.first is not None
    each = per_unit(finding, finding.calls)
    return f"{_made(words, finding)}{each}{_each(finding)} ({words.took(finding)})."


def _sleep(words: Sentences, finding: Finding) -> str:
    slept = count(finding.calls, "sleep")
    within = f" within {finding.transactions[0]}" if len(finding.transactions) == 1 else " within transactions"
    return f"{slept} from {words.where(finding.first)}{within}{_each(finding)} ({words.took(finding)})."


def _convoy(words: Sentences, finding: Finding) -> str:
    site, threads = _site(finding.about), count(finding.units, "thread")
    if not finding.about and finding.first:
        waited = f"{threads} waited {count(finding.calls, 'time')} for locks ({finding.first.intrinsic})"
        return f"{waited} in {words.lines(finding)}{_cut_off(finding)} ({words.took(finding)})."
    holder = words.line(site) if site else words.path(finding.about)
    lock = "Python's interpreter lock, which was" if _is_of_interpreter(finding) else "a lock"
    waited = f"{threads} waited {count(finding.calls, 'time')} at {words.lines(finding)}"
    return f"{waited} for {lock} held at {holder} ({words.took(finding)})."


def _deadlock(words: Sentences, finding: Finding) -> str:
    waits = [f"{_waiting(words, row)} {_taken(words, row)}" for row in finding.rows[:_LINES]]
    more = len(finding.rows) - len(waits)
    waits += [f"{count(more, 'more thread')} in the same circle"] if more else []
    may_end = any(row.verb.startswith("acquire") for row in finding.rows)  # which may have a timeout
    what = "Deadlock, unless a wait has a timeout" if may_end else "Deadlock"
    return f"{what}: {', and '.join(waits)} ({words.of_time(finding.bound_ns)})."


def _unreleased(words: Sentences, finding: Finding) -> str:
    row = finding.rows[0]
    several = finding.units > 1
    waits = f"{finding.units:,} threads wait at {words.lines(finding)} for a lock" if several else _waiting(words, row)
    waits = waits[0].upper() + waits[1:]
    return f"{waits} {_taken(words, row)} ({words.of_time(finding.bound_ns)})."


def _waiting(words: Sentences, row: Calls) -> str:
    """A wait in progress: `thread 2 waits at app.py:6 pay for a lock`."""
    return f"thread {_waiting_thread(row)} waits at {words.where(row)} for a lock"


def _taken(words: Sentences, row: Calls) -> str:
    """Which thread took the lock, and where: `that thread 3 took at app.py:4 refund`."""
    held = HELD.fullmatch(row.detail)
    if not held:
        return "whose holder is unknown"
    site = _site(held["place"])
    place = f" at {words.line(site)}" if site else f" at {held['place']}" if held["place"] else ""
    return f"that {'it' if _waits_for_itself([row]) else 'thread ' + held['thread']} took{place}"


def _waits_for_itself(rows: Iterable[Calls]) -> bool:
    """Whether threads wait for locks that they took themselves."""
    held = [(row, HELD.fullmatch(row.detail)) for row in rows]
    return any(match and int(match["thread"]) == _waiting_thread(row) for row, match in held)


def _waiting_thread(row: Calls) -> int:
    """The thread that has waited longest of those whose call is in progress; 0 for none."""
    _, thread = max(row.unended_at, key=lambda each: row.unended_at[each][1], default=(0, 0))
    return thread


def _turns(words: Sentences, finding: Finding) -> str:
    assert finding.first is not None
    waited = f"{count(finding.units, 'thread')} waited {count(finding.calls, 'time')} in {finding.first.intrinsic}"
    return f"{waited} from {words.where(finding.first)} ({words.took(finding)})."


def _holders(finding: Finding) -> Iterator[Site]:
    """The lines that held the locks that it is about."""
    if finding.rule in _OF_LOCKS:
        places = [finding.about, *(held["place"] for row in finding.rows if (held := HELD.fullmatch(row.detail)))]
        yield from filter(None, map(_site, places))


def _site(place: str | None) -> Site | None:
    """The line that held a lock; None if the recorder's text names another sort of place."""
    line = _LINE.fullmatch(place or "")
    return Site(line["file"], int(line["line"]), line["function"], True) if line else None


def _again(words: Sentences, finding: Finding) -> str:
    what = f"{finding.intrinsic} was called {count(finding.calls, 'time')} for {_quoted(words.path(finding.about))}"
    what += f" from {words.line(finding.site)}"
    others = sum(row.calls for row in finding.rows) - finding.calls
    if finding.named_ns:
        return f"{what} ({words.took_of(finding, finding.named_ns)}){_elsewhere(finding, others)}."
    more = f", with {count(others, 'more call')} on it" if others else ""
    return f"{what}{more} ({words.took(finding)})."


def _elsewhere(finding: Finding, calls: int) -> str:
    """The calls from other lines than the named one, or of another intrinsic."""
    if not calls:
        return ""
    lines = len({row.site for row in finding.rows} - {finding.site})
    where = f" from {count(lines, 'other line')}" if lines else ""
    return f", and {count(calls, 'more call')}{where} ({duration(finding.wall_ns - finding.named_ns)})"


def _slow_statement(words: Sentences, finding: Finding) -> str:
    made = f"{count(finding.calls, 'call')} of one SQL statement from {words.lines(finding)}{_each(finding)}"
    return f"{made} ({words.took(finding)}): {_quoted(finding.about)}."


_SIDES = {BEFORE: "before", AT: "at"}


def _blocked(words: Sentences, finding: Finding) -> str:
    where = words.line(finding.site)
    side = "" if finding.unit == WITHIN else f" {_SIDES.get(finding.unit, 'after')} {where}"
    what = f"{finding.intrinsic} from {where}" if finding.intrinsic else f"Code of {finding.about}{side}"
    if finding.intrinsic and not finding.about:  # of several tasks, each for a short time
        what = f"Calls of {what}"
    times = f"{finding.units:,} times, for up to" if finding.units > 1 else "once, for"
    times = f"{times} {duration(finding.longest_ns)}"
    waited = f"while up to {count(finding.waiting, 'other task')} waited"
    return f"{what} blocked the event loop {times}, {waited} ({words.of_time(finding.bound_ns)})."


def _one_by_one(words: Sentences, finding: Finding) -> str:
    each = per_unit(finding, finding.calls) if finding.units > 1 else ""
    return f"{_awaits(words, finding)}{each}, one after the other{_of_each(finding)}{_about(words, finding)}."


def _slow_awaits(words: Sentences, finding: Finding) -> str:
    return f"{_awaits(words, finding)}{_of_each(finding)}{_about(words, finding)}."


def _awaits(words: Sentences, finding: Finding) -> str:
    assert finding.first is not None
    return f"{count(finding.calls, 'await')} of {finding.first.intrinsic} from {words.where(finding.first)}"


def _of_each(finding: Finding) -> str:
    return f", {duration(finding.each_ns)} each" if finding.calls > 1 else ""


def _about(words: Sentences, finding: Finding) -> str:
    about = f": {_quoted(finding.about)}" if finding.about else ""
    return f" ({words.took(finding)}){about}"


def _loop_waits(words: Sentences, finding: Finding) -> str:
    return (
        "The event loop waited for a timer, or for the network in an await that was not recorded"
        f" ({words.of_time(finding.bound_ns)})."
    )


def _slow_calls(words: Sentences, finding: Finding) -> str:
    assert finding.first is not None
    if among := sum(row.among for row in finding.rows):
        what = f"{finding.calls:,} of {_made(words, finding, among)} took far longer than the others"
        return f"{what}{_each(finding)} ({words.took(finding)}){_statement(finding)}."
    return f"{_made(words, finding)}{_each(finding)} ({words.took(finding)})."


def _statement(finding: Finding) -> str:
    """The statement of all of the evidence, if it is one."""
    details = {row.detail for row in finding.rows}
    return f": {_quoted(details.pop())}" if len(details) == 1 and "" not in details else ""


def _disk(words: Sentences, finding: Finding) -> str:
    return f"{_made(words, finding)} waited {duration(finding.bound_ns)} for the disk ({words.took(finding)})."


def _locked(words: Sentences, finding: Finding) -> str:
    waited = f"waited {duration(finding.bound_ns)} for a database lock that another connection held"
    return f"{_made(words, finding)} {waited} ({words.took(finding)})."


def _driver(words: Sentences, finding: Finding) -> str:
    computed = f"the driver itself computed for {duration(finding.bound_ns)}"
    return f"In {_made(words, finding)} {computed} ({words.took(finding)})."


def _made(words: Sentences, finding: Finding, calls: int = 0) -> str:
    assert finding.first is not None
    fetched = 0 if calls else _fetched(finding)
    what = f"{count(fetched, 'row')} fetched by" if fetched else f"{count(calls or finding.calls, 'call')} of"
    return f"{what} {finding.first.intrinsic} from {words.lines(finding)}"


def _children(words: Sentences, finding: Finding) -> str:
    of = f" ({finding.about})" if finding.about else ""
    where, took = words.where(finding.first), words.took(finding)
    if finding.unit == PIPE:
        return f"The program waited at a pipe while child processes{of} ran, at {where} ({took})."
    started = _most_calls(each for each in finding.rows if each.intrinsic in _STARTS)
    waits = started or _most_calls(each for each in finding.rows if each.intrinsic == finding.rows[0].intrinsic)
    mean = f", {duration(finding.wall_ns // waits)} each" if waits > 1 else ""
    if started > 1:
        return f"The program waited for {started:,} child processes{of} at {where}{mean} ({took})."
    times = f" {waits:,} times" if waits > 1 else ""
    return f"The program waited{times} for child processes{of} at {where}{mean} ({took})."


def _most_calls(rows: Iterable[Calls]) -> int:
    """The calls of the intrinsic with the most: a start may contain another one."""
    calls: Counter[str] = Counter()
    for row in rows:
        calls[row.intrinsic] += row.calls
    return max(calls.values(), default=0)


def _processor(words: Sentences, finding: Finding) -> str:
    return f"The program was ready to run, but waited for CPU ({words.took(finding)}, estimated)."


def _unexplained(words: Sentences, finding: Finding) -> str:
    if finding.about == INTERPRETER_LOCK:
        threads = f"{count(finding.units, 'thread')} computed at the same time"
        return f"{threads} and probably waited for Python's interpreter lock ({words.took(finding)})."
    return f"The program waited outside all recorded calls ({words.took(finding)})."


def _computing(words: Sentences, finding: Finding) -> str:
    if finding.site:
        what, called = _what_computes(words, finding), _called(words, finding)
        return f"{words.line(finding.site)} computes{what} ({words.took(finding)}){called}."
    traced = ", with the cost of tracing its lines" if finding.unit == LINES else ""
    does = "computes, or makes calls that were not recorded" if finding.unit == CALLS else "computes"
    return f"{words.path(finding.about)} {does}: CPU time between recorded calls{traced} ({words.took(finding)})."


def _what_computes(words: Sentences, finding: Finding) -> str:
    """Its own code, or the library code that it calls: `, 81 % of it in decoder.py:353 raw_decode: CPU time`."""
    if not finding.inner:
        return ": CPU time of its own code"
    share = percent(round(100 * finding.inner.share), 100)
    inner = words.line(finding.inner.site) if finding.inner.site else "imports"
    return f", {share} of it in {inner}: CPU time"


def _called(words: Sentences, finding: Finding) -> str:
    """The chain of callers: `, called from a.py:3 f, below b.py:7 g (80 % of it)`; that a script runs says nothing."""
    lines = [words.line(site) for site in finding.callers.lines if site.function != "<module>"]
    if not lines:
        return ""
    below = f", below {' and '.join(lines[1:])}" if lines[1:] else ""
    used = percent(round(100 * finding.callers.share), 100)
    share = f" ({used} of it)" if used != "100 %" else ""
    return f", called from {lines[0]}{below}{share}"


def _computing_while_idle(words: Sentences, finding: Finding) -> str:
    made = f"{count(finding.calls, 'call')} of {finding.intrinsic} from {words.lines(finding)}"
    return f"{made} waited for work, and also computed ({words.took(finding)})."


def _no_lines(words: Sentences, finding: Finding) -> str:
    return f"{count(finding.calls, 'call')} have no line: INTERPOSE_STACK was none ({words.took(finding)})."


_SENTENCES: dict[str, Callable[[Sentences, Finding], str]] = {
    "N+1 statements": _repeated,
    "commits one by one": _commits,
    "reconnects": _reconnects,
    "tiny reads and writes": _tiny,
    "fsync storm": _forced,
    "sleep within a transaction": _sleep,
    "lock convoy": _convoy,
    "deadlock": _deadlock,
    "lock not released": _unreleased,
    "waits for a turn": _turns,
    "repeated work": _again,
    "database waits for the disk": _disk,
    "database waits for a lock": _locked,
    "driver computes": _driver,
    "slow statement": _slow_statement,
    "slow calls": _slow_calls,
    "blocked event loop": _blocked,
    "awaits one by one": _one_by_one,
    "slow awaits": _slow_awaits,
    "waits of event loop": _loop_waits,
    "child processes": _children,
    "wait for CPU": _processor,
    "unexplained wait": _unexplained,
    "computing": _computing,
    "computing while idle": _computing_while_idle,
    "no lines": _no_lines,
}
RULES_IN_WORDS = frozenset(_SENTENCES)
