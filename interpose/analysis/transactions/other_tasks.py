"""What a transaction did in other tasks of its thread: a framework may serve a request in a task that it begins within
the server's call.

Such a call is inside of the server's, but its steps are not: the server's call is suspended while they run. So the CPU
time of calls inside of a call, if it is more than what that call has inside itself, is that of other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from interpose.analysis.consolidation.records import Record
from interpose.experiments.model.stacks import Site

_OF_LOOPS = frozenset(("asyncio", "anyio"))  # packages that await for who calls them
_BUILT_ON = {"fastapi": "starlette"}


class InOtherTasks(NamedTuple):
    """Calls inside of `around` that are transactions and ran in other tasks: from beginning to end, and CPU time."""

    around: Record
    wall_ns: int
    cpu_ns: int


def in_other_tasks(record: Record) -> Iterator[InOtherTasks]:
    """What ran in other tasks within the calls of `record`, by the calls that it is directly inside of."""
    waiting = [record] if record.is_call else []
    while waiting:
        around = waiting.pop()
        waiting.extend(around.inner)
        served = [each for each in around.inner if each.name]
        served_cpu_ns = sum(each.sums.cpu_ns for each in served)
        if not served_cpu_ns:
            continue
        inside_cpu_ns = around.sums.cpu_ns - around.sums.self_cpu_ns
        cpu_ns = min(sum(each.sums.cpu_ns for each in around.inner) - inside_cpu_ns, served_cpu_ns)
        if cpu_ns > 0:
            wall_ns = sum(each.sums.wall_ns for each in served)
            yield InOtherTasks(around, wall_ns * cpu_ns // served_cpu_ns, cpu_ns)


def waits_for(
    other: InOtherTasks, kind_of: Callable[[Record], str], is_of_framework: Callable[[Record], bool]
) -> Counter[str]:
    """By kind, for how long the calls around it awaited what other tasks did: as long as that took.

    That is taken from what the framework awaited in the task around, then from what it awaited in these tasks while
    that one ran, and then from whatever else was awaited around, each in proportion: code that is not of the framework
    mostly awaits something else. When all this was is not known, so it is an estimate.
    """
    around, inside = Counter[tuple[bool, str]](), Counter[tuple[bool, str]]()
    for each in _awaited(other.around):
        around[is_of_framework(each), kind_of(each)] += each.suspended_ns
    for served in filter(lambda each: each.name, other.around.inner):
        for each in _awaited(served):
            inside[is_of_framework(each), kind_of(each)] += each.suspended_ns
    waited: Counter[str] = Counter()
    for found, by_framework in ((around, True), (inside, True), (around, False)):
        by_kind = Counter({kind: ns for (is_its, kind), ns in found.items() if is_its == by_framework})
        waited += _in_proportion(by_kind, other.wall_ns - waited.total())
    return waited


def _awaited(record: Record) -> Iterator[Record]:
    """What was awaited in these calls, without the transactions inside of them."""
    waiting = list(record.inner)
    while waiting:
        each = waiting.pop()
        if each.name:
            continue
        if each.suspended_ns:
            yield each
        waiting.extend(each.inner)


def _in_proportion(by_kind: Counter[str], ns: int) -> Counter[str]:
    """So much of all kinds together, or all there is."""
    whole_ns = by_kind.total()
    ns = min(ns, whole_ns)
    return Counter({kind: each * ns // whole_ns for kind, each in by_kind.items() if each})


def packages_of(intrinsics: Iterable[str]) -> frozenset[str]:
    """The packages that intrinsics of these names are of, and those that these are built on."""
    packages = {name.partition(".")[0] for name in intrinsics}
    return frozenset(packages | {_BUILT_ON[each] for each in packages if each in _BUILT_ON})


def is_called_by(packages: frozenset[str], frames: Iterable[Site]) -> bool:
    """Whether code of these packages made a call from there, itself or with what event loops offer."""
    for site in frames:
        package = "" if site.own else _package_of(site.file)
        if package not in _OF_LOOPS:
            return package in packages
    return False


def _package_of(file: str) -> str:
    """The package that a file is of: one that is installed, or the folder of a module of the standard library."""
    folders = file.split("/")[:-1]
    installed = [place for place, name in enumerate(folders) if name in ("site-packages", "dist-packages")]
    return "".join(folders[installed[-1] + 1 : installed[-1] + 2] if installed else folders[-1:])
