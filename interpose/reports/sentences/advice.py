"""What to do about findings."""

from __future__ import annotations

from interpose.analysis.findings import drivers
from interpose.analysis.findings.busy_polls import CHILD
from interpose.analysis.findings.errors import errors_of
from interpose.analysis.findings.event_loops import NATIVE_LOOP
from interpose.analysis.findings.failures import mostly_failed
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.lock_waits import path_tried
from interpose.analysis.findings.next_steps import END, LINES
from interpose.analysis.findings.programs import has_program_only
from interpose.analysis.findings.sockets import is_send
from interpose.analysis.findings.statements import has_sql, is_redis, is_sql, takes_locks, writes
from interpose.analysis.findings.unseen_waits import INTERPRETER_LOCK
from interpose.analysis.findings.waits import HELD_LOCK, POLL
from interpose.analysis.profile.pickling import pickles, sends
from interpose.analysis.profile.profiled import IMPORTS, NO_PYTHON, OWN_CODE
from interpose.analysis.time.turns import NATIVE_SELECTORS
from interpose.experiments.model.sampled import COLLECTOR
from interpose.experiments.model.stacks import Site
from interpose.kinds import NATIVE
from interpose.reports.sentences.databases import asked
from interpose.reports.sentences.held_locks import holders, is_of_interpreter, is_row_lock, waits_for_itself

_BY_RULE = {
    "N+1 statements": "Make one call for all of them, if its library has one.",
    "commits one by one": "Commit several together.",
    "reconnects": "Keep the connection, or take it from a pool.",
    "tiny reads and writes": "Read and write through a buffer, or more at once.",
    "fsync storm": "Force the data to disk once, after the last write.",
    "sleep within a transaction": "Sleep outside the transaction, or wait for the event itself.",
    "lock convoy": "Hold the lock for a shorter time, or use several locks.",
    "file lock": "Hold the lock for a shorter time, or use a file for each part of the data.",
    "deadlock": "Take the locks in the same order everywhere, or wait for them with a timeout.",
    "lock not released": "See why it is not released. If it is a signal for other threads, use threading.Event.",
    "waits for a turn": "Let more of them pass at a time, or let each be done sooner.",
    "busy poll": "Wait for the event itself: for who makes the file, or with inotify; or sleep between two looks.",
    "repeated work": "Cache the result.",
    "database waits for the disk": "Write in fewer transactions, or use a write-ahead log (WAL).",
    "database waits for a lock": "Keep write transactions short, or use a write-ahead log (WAL).",
    "driver computes": "Fetch fewer rows and columns, or use a compiled driver.",
    "slow statement": "Look at its query plan: an index, fewer rows, fewer columns.",
    "failed calls": "See why they fail: interpose events. A shorter timeout or fewer attempts would save time.",
    "child processes": "See what each took: interpose processes.",
    "wait for CPU": "Measure on a less busy machine, or use fewer threads and processes.",
    "unexplained wait": "A call that interpose does not record may be the cause: interpose doctor, docs/limits.md.",
    "computing": "See its lines: record with interpose run, then interpose report --by line.",
    "computing while idle": "They probably unpickled the work: send less data, or import modules before the first job.",
    "awaits one by one": "Request them together, or await them together: asyncio.gather, gevent.joinall.",
    "slow awaits": "Look at the service that answers, or request less from it.",
    "waits of event loop": "See what was awaited: interpose events.",
    "no lines": "Record with INTERPOSE_STACK=own.",
}
# Of calls that are slow, and that no other rule knows more of.
_BY_KIND = {
    "db": "Look at what the database does during these calls.",
    "net": "Send requests at the same time, cache the responses, or set a timeout.",
    "sleep": "Wait for the event itself, or for a shorter time.",
    "process": "Look at who writes to this pipe, and when.",
    "import": "Import it only where it is needed.",
}
# Where more is known than the rule.
_IN_CASE = {
    "children of C code": (
        "Look at what C code starts here: interpose processes lists only those of its children that are recorded."
    ),
    "unrecorded call": "C code that the line calls may wait. To record such calls, too, use INTERPOSE=calls,native.",
    "no Python code": "A server in C that runs Python, such as uWSGI, waits for requests there: docs/limits.md.",
    "native loop": "Record without native calls to see what uvloop waits for.",
    "native selector": "See what was called before and after: interpose events.",
    "sql": "Load them together: a join, IN (...), executemany, or the ORM's eager loading.",
    "sql writes": "Write them together: executemany, or many rows a statement; if each commits, in one transaction.",
    "sql writes of psycopg2": (
        "Write them together: psycopg2.extras.execute_values. In psycopg2, executemany sends each row by itself."
    ),
    "executemany of psycopg2": (
        "In psycopg2, executemany sends each row by itself: psycopg2.extras.execute_values sends many rows together."
    ),
    "requests": (
        "Cache the response if the query of the URL, which is not recorded, is always the same. Otherwise send the "
        "requests at the same time, or look at the service that answers."
    ),
    "redis": "Send them together: a pipeline, or one command for many keys, such as MGET.",
    "redis driver": "Fetch fewer and smaller values, or install hiredis.",
    # The sleep may be on another thread, so it is not known whether it is in the background task or before it.
    "background": (
        "The transaction has background tasks: if it sleeps in one, the answer was sent before. "
        "Otherwise sleep outside the transaction, or wait for the event itself."
    ),
    "failed": "See why they fail: interpose events.",
    "deadlock of a database": "Lock the rows in the same order in every transaction: for example, sorted by their key.",
    "slow write": "Look at its query plan (an index, fewer rows), or for a lock that another session holds.",
    "rows made": (
        "This time includes the code that makes the rows, such as a generator: see how long that code takes by itself."
    ),
    "slow writes": "Look at what the database does during these calls, or for a lock that another session holds.",
    "statement in process": (
        "Look at its query plan: an index, fewer rows. INTERPOSE=calls,native shows waits for the disk or locks."
    ),
    "calls in process": (
        "Look at what the database does during these calls: INTERPOSE=calls,native shows waits for the disk or locks."
    ),
    "row lock": (
        "That transaction probably had the lock: keep such transactions short, or lock the rows later in them."
    ),
    "awaits at once": "Look at the service that answers, at a limit of connections, or request less from it.",
    "far longer": "See when, and what else ran then: interpose events.",
    "far longer write": "It probably waited for a lock of another transaction. See when: interpose events.",
    "lines": "See what each line takes without that cost: interpose lines.",
    "end": "Keep fewer objects. Or flush and close everything, and end with os._exit, which frees no objects.",
    "imports": "See each import: record with --kinds all,import (docs/how-to/slow-start.md).",
    "collector": (
        "The collector visits every object that refers to others: make fewer such objects, or see gc.freeze() and "
        "gc.set_threshold()."
    ),
    "function": "See its lines: interpose report --by line.",
    "library function": "See which lines call it: interpose profile --section cpu.",
    "native function": "See its lines with a profiler of native code, such as perf annotate.",
    "other program": "See its functions with a profiler of native code, such as perf record.",
    "merged": "Merging left out the samples: see the functions with interpose report of the experiments themselves.",
    "few samples": "Too few samples to name its functions; count its lines: interpose run --lines own.",
    "blocking call": "Await an asynchronous form of it, or run it in a thread: asyncio.to_thread.",
    "blocking code": "Run it in a process, or let other tasks run in between: await asyncio.sleep(0).",
    "program only": "See in which functions: record with --native-stack functions.",
    "interpreter lock": "Only one thread at a time runs Python code. Move this work to processes.",
    "given up": (
        "Only one thread at a time runs Python code. Move what computes there, or just before, to processes."
    ),
    "pickling": "It pickles what is sent to other processes: send less data, or let them load it themselves.",
    "poll": "An installed package sleeps there until something else is done: see what ran then, interpose events.",
    "between attempts": (
        "A library sleeps there inside its own call, as between attempts: see what failed before, interpose events."
    ),
    "sending": "Send less data, or look at the receiver, and at how busy the machine is.",
    "held lock": "Do it before the lock is taken, or after it is released.",
    "tried lock": "Wait for the lock without LOCK_NB: the call returns as soon as the lock is free.",
    "tried lock of package": (
        "A package tries again after each sleep: hold the lock for a shorter time, or let the package try more often."
    ),
    "poll of child": "Wait for the child with wait(), which uses no CPU time.",
    "poll for child": "Wait for the child that makes the file, with wait(), or with inotify.",
    "own lock": "Release it first, or use threading.RLock.",
}
_OF_STATEMENTS = frozenset(("N+1 statements", "driver computes"))
_IN_PROGRESS = frozenset(("deadlock", "lock not released"))
_OF_WAITS = frozenset(("slow statement", "slow calls", "slow awaits"))
_OF_SLEEPS = frozenset(("slow calls", "sleep within a transaction"))
_AT_ONCE = 2  # so many awaits in the mean are no longer one after the other
_OF_PROGRAMS = frozenset(("slow calls", "lock convoy"))
_SEE_CALLS = "See their arguments: interpose report --by detail."
EVERY_ADVICE = frozenset((_SEE_CALLS, *_BY_RULE.values(), *_BY_KIND.values(), *_IN_CASE.values()))


def advice_for(finding: Finding) -> str:
    """What to do about a finding, in a sentence."""
    case = _case(finding)
    return _IN_CASE[case] if case else _by_rule(finding)


def _case(finding: Finding) -> str:
    """Its key in `_IN_CASE`; empty where no more is known than its rule and kind."""
    first = finding.first
    if finding.about == INTERPRETER_LOCK or is_of_interpreter(finding):
        computing = "given up" if finding.rule == "lock convoy" else "interpreter lock"
        return "pickling" if any(map(sends, holders(finding))) else computing
    if finding.rule == "busy poll" and finding.meanwhile:
        return "poll of child" if finding.unit == CHILD else "poll for child"
    if finding.failing:
        return _case_of_failing(finding)
    if finding.rule == "failed calls" and "deadlock" in "".join(errors_of(finding.rows)[:1]).lower():
        return "deadlock of a database"
    if finding.rule == "computing":
        return _case_of_computing(finding)
    if finding.rule == "unexplained wait" and finding.site:
        return "no Python code" if finding.site == NO_PYTHON else "unrecorded call"
    if finding.rule == "child processes" and not finding.about and _is_native(finding):
        return "children of C code"
    if finding.rule == "waits of event loop" and finding.unit == NATIVE_LOOP:
        return "native loop"
    if finding.rule == "slow calls" and first and first.intrinsic in NATIVE_SELECTORS:
        return "native selector"
    if finding.rule == "blocked event loop":
        return "blocking call" if finding.intrinsic else "blocking code"
    if finding.rule == "sleep within a transaction" and finding.about:
        return "background"
    if finding.rule in _IN_PROGRESS and waits_for_itself(finding.rows[:1]):
        return "own lock"
    if finding.rule in _OF_STATEMENTS and finding.rows:
        return _case_of_statements(finding)
    if is_row_lock(finding):
        return "row lock"
    if finding.rule == "slow statement" and mostly_failed(finding.rows):
        return "failed"
    if finding.rule == "slow calls" and first and first.intrinsic == "psycopg2.cursor.executemany":
        return "executemany of psycopg2"
    if finding.rule == "slow calls" and first and first.among:
        return "far longer write" if takes_locks(first) else "far longer"
    if finding.rule in _OF_SLEEPS and 2 * sum(row.slept_ns for row in finding.rows) > finding.wall_ns:
        return "between attempts"
    if finding.rule == "slow calls" and finding.unit == HELD_LOCK:
        return "held lock"
    if finding.rule == "slow calls" and finding.unit == POLL:
        return "poll"
    if finding.rule in _OF_WAITS and finding.rows and (case := _case_of_waits(finding)):
        return case
    if finding.rule == "repeated work" and first and first.kind == "net":
        return "requests"
    return "program only" if finding.rule in _OF_PROGRAMS and first and has_program_only(first) else ""


def _case_of_failing(finding: Finding) -> str:
    if not any(map(path_tried, finding.failing)):
        return "failed"
    slept = finding.rows[0].caller
    return "tried lock of package" if slept and not slept.own else "tried lock"


def _is_native(finding: Finding) -> bool:
    return any(row.intrinsic.startswith(NATIVE) for row in finding.rows)


def _case_of_computing(finding: Finding) -> str:
    if finding.unit in (END, LINES):
        return "end" if finding.unit == END else "lines"
    if finding.site:
        return _case_of_function(finding, finding.site)
    if finding.is_merged:
        return "merged"
    if not finding.is_python:
        return "other program"
    return "few samples" if finding.is_sampled else ""


def _case_of_function(finding: Finding, site: Site) -> str:
    inner = finding.inner[0] if finding.inner else None
    if COLLECTOR in (site.file, inner.site.file if inner and inner.site else ""):
        return "collector"
    mostly = inner.what if inner else OWN_CODE
    if mostly == IMPORTS:
        return "imports"
    if pickles(site):
        return "pickling"
    if site.is_native:
        return "native function"
    return "function" if mostly == OWN_CODE else "library function"


def _case_of_statements(finding: Finding) -> str:
    is_repeated = finding.rule == "N+1 statements"
    if is_repeated and mostly_failed(finding.rows):
        return "failed"
    if is_redis(finding.rows[0]):
        return "redis" if is_repeated else "redis driver"
    if is_repeated and is_sql(asked(finding)):
        of_psycopg2 = " of psycopg2" if asked(finding).intrinsic.startswith("psycopg2.") else ""
        return f"sql writes{of_psycopg2}" if writes(asked(finding)) else "sql"
    return ""


def _case_of_waits(finding: Finding) -> str:
    is_statement, is_await = finding.rule == "slow statement", finding.rule == "slow awaits"
    if finding.rule == "slow calls" and is_send(finding.rows[0]):
        return "sending"
    first = asked(finding) if is_statement else finding.rows[0]
    if first.verb == "executemany" and drivers.computes(finding):
        return "rows made"
    if first.kind == "db" and drivers.is_in_process(first) and not drivers.computes(finding):
        is_known = any(row.native_wait_ns for row in finding.rows)
        return "" if is_known else "statement in process" if is_statement else "calls in process"
    if first.kind == "db" and takes_locks(first) and not drivers.computes(finding):
        return "slow write" if is_statement else "slow writes"
    is_at_once = finding.each_ns * finding.calls >= _AT_ONCE * finding.bound_ns
    return "awaits at once" if is_await and first.kind != "sleep" and is_at_once else ""


def _by_rule(finding: Finding) -> str:
    first = finding.first
    if finding.rule == "slow awaits" and first and first.kind == "sleep":
        return _BY_KIND["sleep"]
    if finding.rule != "slow calls" or not first:
        return _BY_RULE[finding.rule]
    if first.kind == "db" and has_sql(first) and drivers.computes(finding):
        return _BY_RULE["slow statement" if drivers.is_in_process(first) else "driver computes"]
    return _BY_KIND.get(first.kind, _SEE_CALLS)
