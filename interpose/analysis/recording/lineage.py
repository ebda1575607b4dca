"""Who started whom: the processes of an experiment as a tree, those that were not followed among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.recording.ending import Ending, ending, ending_of_child, ending_of_number, is_running
from interpose.analysis.recording.life import began_ns, ended_ns
from interpose.experiments.format.children import EXCLUDED, EXEC, LEFT_NO_EXPERIMENT, Child
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

# Options of the interpreter that a word belongs to, the next or the rest of this one: `-X dev`, `-Xdev`, `-Im shop`.
_WITH_WORD = re.compile(r"-[^-cmWX]*([cmWX])|--check-hash-based-pycs$")

MULTIPROCESSING_CHILD = " (multiprocessing child)"
_HELPERS = ("/multiprocessing/forkserver.py", "/multiprocessing/resource_tracker.py")
_MULTIPROCESSING = ("/multiprocessing", "/loky/backend")  # directories


@dataclass
class Node:
    """A process: one that was recorded, or a `child` of one that was not; `below` are those that it started."""

    process: Process
    child: Child | None = None
    below: list[Node] = field(default_factory=list)

    @property
    def is_followed(self) -> bool:
        """Whether it was recorded."""
        return self.child is None

    @property
    def pid(self) -> int:
        """Its number; 0 if it is not known."""
        return self.child.record.pid if self.child else self.process.log.pid

    @property
    def start_ns(self) -> int:
        """The monotonic instant of its beginning, or of the beginning of its recording."""
        return self.child.record.start_ns if self.child else began_ns(self.process)

    @cached_property
    def ending(self) -> Ending:
        """How it ended."""
        if self.child is None:
            return ending(self.process)
        if self.child.record.how == EXEC:
            return ending_of_number(self.process) or Ending("running" if is_running(self.process) else "unseen")
        return ending_of_child(self.child) or Ending("unawaited")

    @cached_property
    def end_ns(self) -> int | None:
        """The monotonic instant of its end; None if unknown."""
        return self.ending.end_ns if self.child else ended_ns(self.process)

    @cached_property
    def last_ns(self) -> int:
        """The monotonic instant of its end, or the last that is known of it."""
        if self.end_ns is None:
            return self.start_ns if self.child else latest_instant_ns(self.process, [])
        return self.end_ns


def unfollowed(experiment: Experiment) -> list[tuple[Process, Child]]:
    """The processes that were started and not recorded, each with the one that started it."""
    return [(process, child) for process in experiment.processes for child in process.not_followed]


def why_not(child: Child, starter: Process) -> str:
    """Why a child was not followed: it could not be, it was excluded, or the reason is unknown. With a pattern, each
    descendant decides for itself."""
    chosen = starter.log.settings.get("INTERPOSE_FOLLOW", "on")
    is_excluded = child.why == EXCLUDED or child.record.pid in starter.excluded
    if is_excluded or (chosen == "off" and not child.why):
        return f"{EXCLUDED} '{chosen}'"
    said = starter.log.why_unrecorded(child.record.pid, child.record.start_ns)
    return child.why or said or LEFT_NO_EXPERIMENT


def program_of(child: Child, starter: Process) -> str:
    """The path of the program that a child ran: of a fork that of its parent."""
    return child.command or starter.log.executable or "?"


def script_of(process: Process) -> str:
    """What the interpreter ran: the script, `-m` and the module, or `-c`; empty if none of these."""
    words = iter(process.log.arguments)
    for word in words:
        if word == "-" or not word.startswith("-"):
            return word
        if word == "--":
            return next(words, "")
        option = _WITH_WORD.match(word)
        if option:
            following = word[option.end() :] or next(words, "")
            if option[1] == "c":
                return "-c"
            if option[1] == "m":
                return f"-m {following}".rstrip()
    return ""


def main_of(process: Process) -> Process:
    """The process of which multiprocessing, or loky, started this one as a child: it runs that one's program, whatever
    its own command is. Other processes are their own."""
    while process.starter and _is_of_multiprocessing(process, process.starter):
        process = process.starter
    return process


def _is_of_multiprocessing(process: Process, starter: Process) -> bool:
    frames = starter.frames(process.started_as.record.stack) if process.started_as else ()
    return any(not each.own and each.file.rpartition("/")[0].endswith(_MULTIPROCESSING) for each in frames)


def forkserver_line(process: Process) -> Site | None:
    """The own line where multiprocessing started this one to fork others; None of other processes. It also starts its
    resource tracker from there."""
    if not process.starter or not process.started_as:
        return None
    stack = process.started_as.record.stack
    files = [each.file for each in process.starter.frames(stack)]
    helper = next((each for each in files if each.endswith(_HELPERS)), "")
    return process.starter.own_line(stack) if helper.endswith("/forkserver.py") else None


def tree(experiment: Experiment) -> list[Node]:
    """The processes that no other process of the experiment started, usually the founder alone."""
    nodes = {process.lineage: Node(process) for process in experiment.processes}
    roots: list[Node] = []
    for node in nodes.values():
        starter = node.process.starter
        siblings = nodes[starter.lineage].below if starter and starter.lineage in nodes else roots
        siblings.append(node)
        node.below += [Node(node.process, child) for child in node.process.not_followed]
    for node in nodes.values():
        _put_under_shells(node)
    return roots


def _put_under_shells(node: Node) -> None:
    """What a program that was not followed started is below it."""
    others = [each for each in node.below if not each.is_followed]
    of_pid = {each.pid: each for each in others if each.pid}
    shells = [each for each in others if not each.pid]
    of_namespace: dict[int, Node] = {}
    kept: list[Node] = []
    for each in sorted(node.below, key=_cpu_ns, reverse=True):
        if not each.is_followed or each.process.started_as:
            above = None
        elif each.process.log.has_numbers_of(node.process.log):
            above = _above(each, of_pid, shells)
        else:
            above = _above_namespace(each, others, of_namespace)
        (above.below if above else kept).append(each)
    node.below = kept


def _above(node: Node, of_pid: Mapping[int, Node], shells: Sequence[Node]) -> Node | None:
    """The program that is not followed and started the process: its parent, or a shell that ran meanwhile."""
    parent = of_pid.get(node.process.log.ppid)
    if parent and parent.start_ns <= node.start_ns:
        return parent
    running = [each for each in shells if _ran_at(each, node.start_ns)]
    return running[-1] if running else None


def _above_namespace(node: Node, others: Sequence[Node], of_namespace: dict[int, Node]) -> Node | None:
    """The program that started the process in another PID namespace, where the number of its parent is not one of ours.
    Of those that ran then and started no other namespace, the one of least CPU time that can include the process's.
    """
    namespace = node.process.log.pid_namespace
    if namespace not in of_namespace:
        free = [each for each in others if each not in of_namespace.values() and _ran_at(each, node.start_ns)]
        able = [each for each in free if _cpu_ns(each) >= _cpu_ns(node)]
        if not able:
            return None
        of_namespace[namespace] = min(able, key=_cpu_ns)
    return of_namespace[namespace]


def _cpu_ns(node: Node) -> int:
    """Its CPU time; of a program that was not followed, with the children that it waited for."""
    if node.child:
        return node.child.record.cpu_ns
    return node.process.overview[-1].cpu_ns if node.process.overview else 0


def _ran_at(node: Node, instant_ns: int) -> bool:
    return node.start_ns <= instant_ns <= node.last_ns


def walk(roots: list[Node]) -> Iterator[tuple[int, Node]]:
    """Each process with its depth in the tree, those that began first first."""
    waiting = [(0, node) for node in _latest_first(roots)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting += [(depth + 1, each) for each in _latest_first(node.below)]


def _latest_first(nodes: list[Node]) -> list[Node]:
    return sorted(nodes, key=_start_ns)[::-1]


def _start_ns(node: Node) -> int:
    return node.start_ns
