"""CPU time by function within each transaction, by the times of samples and transactions on a thread.

The CPU time of a transaction between its calls is known (its part `logic`); samples divide it among functions. If
transactions of tasks overlap on a thread, a sample belongs to that of the task whose call was in progress. If others
overlap, a sample in the overlap belongs to none, and the others represent it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.balance import Code, Spent, apportioned, divided
from interpose.analysis.profile.profiled import (
    NOT_SAMPLED,
    ONLY_WAITING,
    Function,
    Groups,
    ProcessProfile,
    function_of,
    functions_from,
    innermost,
    numbers_of,
    profiled,
)
from interpose.analysis.profile.weights import Pool, Weights, is_code, walk
from interpose.analysis.time.lifetimes import paused_outside
from interpose.analysis.transactions.response_times import LOGIC, Transaction, Transactions, key_of
from interpose.analysis.transactions.spans import TransactionsOfProcess
from interpose.analysis.transactions.tracking import OPEN
from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.sampled import Sampled
from interpose.experiments.model.stacks import Site
from interpose.kinds import CONTAINERS


class InTransaction(NamedTuple):
    """A function as transactions of one name ran it."""

    transaction: str
    function: Function


def code_by_transaction(analysis: Analysis, made: Transactions) -> list[InTransaction]:
    """The functions that each of the transactions `made` ran, in their order, those with the most CPU time first."""
    found = {id(row): _Found(row) for row in made.rows}
    processes = profiled(analysis).processes
    for each in processes:
        for row, weights in _weights(analysis, each, made) if each.process.events else ():
            if id(row) in found:
                found[id(row)].parts.append((each.sampled, weights))
    _leave_unsampled(found.values(), sum(spent.cpu_ns for each in processes for spent in each.unsampled.values()))
    return [InTransaction(each.row.name, function) for each in found.values() for function in each.functions()]


@dataclass
class _Found:
    """The samples of the transactions with one name, process by process; and how much of their CPU time was after the
    last sample of its thread."""

    row: Transaction
    parts: list[tuple[Sampled, Weights]] = field(default_factory=list)
    unsampled_ns: int = 0

    @property
    def cpu_ns(self) -> int:
        """The CPU time of the transactions between their calls."""
        return self.row.split[LOGIC].cpu_ns if LOGIC in self.row.split else 0

    @property
    def unexplained_ns(self) -> int:
        """The part of it that no sample stands for."""
        return max(self.cpu_ns - round(sum(sum(each.cpu_ns.values()) for _, each in self.parts)), 0)

    def functions(self) -> list[Function]:
        """The functions; each process has as much of the CPU time as it has of the weights."""
        lines: dict[Site, Code] = defaultdict(Code)
        functions: dict[tuple[str, str], Code] = defaultdict(Code)
        weights = [sum(each.cpu_ns.values()) for _, each in self.parts]
        if self.unsampled_ns:
            lines[NOT_SAMPLED].cpu_ns += self.unsampled_ns
            functions[function_of((NOT_SAMPLED,))].cpu_ns += self.unsampled_ns
        sampled_ns = self.cpu_ns - self.unsampled_ns
        for place, part_ns in apportioned(sampled_ns, dict(enumerate(weights)), 0) if self.parts else ():
            sampled, of = self.parts[place]
            spent = Spent(part_ns, part_ns)
            for site, code in divided(spent, of, Groups(sampled, innermost), NOT_SAMPLED).items():
                lines[site].add(code)
            for key, code in divided(spent, of, Groups(sampled, function_of), function_of((NOT_SAMPLED,))).items():
                functions[key].add(code)
        return functions_from(lines, functions)


def _leave_unsampled(found: Collection[_Found], unsampled_ns: int) -> None:
    """Leave CPU time after the last samples of threads to no function: at most so much."""
    unexplained = {number: each.unexplained_ns for number, each in enumerate(found) if each.unexplained_ns}
    left_ns = min(unsampled_ns, sum(unexplained.values()))
    given = dict(apportioned(left_ns, unexplained, 0))
    for number, each in enumerate(found):
        each.unsampled_ns = given.get(number, 0)


def _weights(analysis: Analysis, of: ProcessProfile, made: Transactions) -> Iterator[tuple[Transaction, Weights]]:
    """The weights of the samples in each transaction of a process; those of a thread stand for its CPU time."""
    process = of.process
    containers, waits = numbers_of(process, CONTAINERS), numbers_of(process, ONLY_WAITING)
    transactions = TransactionsOfProcess(process, paused_outside(process, analysis.pauses))
    sampled = {(each.thread, each.call) for each in of.sampled.samples() if each.call and is_code(each, containers)}
    of_tasks = transactions.names_of_tasks_calls(sampled)

    def pool_of(sample: SampleRecord) -> Pool | None:
        name = transactions.name_at(sample.thread, sample.last_ns)
        if name <= OPEN:  # the thread itself is in none that has a name
            name = of_tasks.get((sample.thread, sample.call), 0) or name
        return sample.thread, name

    started = {thread.number: thread.record.start_cpu_ns for thread in process.threads}
    pools = walk(of.sampled, started, containers, waits, pool_of).pools
    for name, weights in _scaled(of, pools).items():
        row = made.by_key.get(key_of(process, name)) if name else None
        if row:
            yield row, weights


def _scaled(of: ProcessProfile, pools: Mapping[Pool, Weights]) -> dict[int, Weights]:
    """The weights by transaction alone: all of a thread's together stand for the CPU time of its code."""
    cpu_ns: dict[int, int] = defaultdict(int)
    for (thread, _), spent in of.spent.items():
        cpu_ns[thread] += spent.cpu_ns
    whole: dict[int, float] = defaultdict(float)
    samples: dict[int, int] = defaultdict(int)
    for (thread, _), weights in pools.items():
        whole[thread] += sum(weights.cpu_ns.values())
        samples[thread] += sum(weights.ran.values())
    made: dict[int, Weights] = defaultdict(Weights)
    for (thread, name), weights in pools.items():
        alike = whole[thread] or samples[thread]
        made[name].add_scaled(weights, cpu_ns[thread] / alike if alike else 0.0, not whole[thread])
    return made
