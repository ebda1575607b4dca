"""Findings in sentences: what took the time, from which line, how often, how long, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable

from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.table import clean
from interpose.reports.sentences import calls, child_processes, computing, databases, event_loops, files, locks
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.wording import Wording, of_failing

_SENTENCES: dict[str, Callable[[Wording, Finding], str]] = {
    "N+1 statements": databases.repeated,
    "commits one by one": databases.commits,
    "reconnects": databases.reconnects,
    "tiny reads and writes": files.tiny,
    "fsync storm": files.forced,
    "sleep within a transaction": databases.sleeps,
    "lock convoy": locks.convoy,
    "file lock": locks.file_lock,
    "deadlock": locks.deadlock,
    "lock not released": locks.unreleased,
    "waits for a turn": locks.turns,
    "busy poll": calls.busy_poll,
    "repeated work": calls.again,
    "database waits for the disk": databases.disk,
    "database waits for a lock": databases.locked,
    "driver computes": databases.driver,
    "slow statement": databases.slow_statement,
    "failed calls": calls.failed,
    "slow calls": calls.slow_calls,
    "blocked event loop": event_loops.blocked,
    "awaits one by one": event_loops.one_by_one,
    "slow awaits": event_loops.slow_awaits,
    "waits of event loop": event_loops.loop_waits,
    "child processes": child_processes.children,
    "wait for CPU": computing.processor,
    "unexplained wait": computing.unexplained,
    "computing": computing.computing,
    "computing while idle": computing.computing_while_idle,
    "no lines": calls.no_lines,
}
RULES_IN_WORDS = frozenset(_SENTENCES)


class Sentences(Wording):
    """Turns findings into sentences."""

    def of(self, finding: Finding) -> str:
        """The finding in a sentence."""
        return clean(_SENTENCES[finding.rule](self, finding) + of_failing(self, finding))

    def with_advice(self, finding: Finding) -> str:
        """The finding, and what to do about it."""
        return f"{self.of(finding)} {advice_for(finding)}"
