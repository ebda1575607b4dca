"""How far off shares may be that are estimated from samples."""

from __future__ import annotations

from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import RUNS, Sampled


def samples_that_count(process: Process) -> float:
    """As many samples of equal weight would tell as much. Each weighs as much as its thread used since it was last
    seen to run; where others have the processors, some weigh much more than the rest."""
    carried: dict[int, int] = {}
    before: dict[int, int] = {}
    weights: list[float] = []
    for record in Sampled(process).samples():
        used = record.cpu_ns - before.get(record.tid, record.cpu_ns)
        before[record.tid] = record.cpu_ns
        carried[record.tid] = carried.get(record.tid, 0) + used
        if record.state == RUNS:
            weights += [carried.pop(record.tid) / record.samples] * record.samples
    squares = sum(each * each for each in weights)
    return sum(weights) ** 2 / squares if squares else 0.0


def chance(share: float, samples: float) -> float:
    """Four times the standard error of a share, and of phases that begin and end between two samples, in points."""
    return 400 * (share / 100 * (1 - share / 100) / samples) ** 0.5 + 1
