"""Which lines the code that blocked event loops executed, as far as the program was sampled."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from interpose.analysis.profile.profiled import Frames, sampled_frames
from interpose.analysis.time.blocks_of_loops import Block
from interpose.experiments.model.sampled import Sampled
from interpose.experiments.model.stacks import Site

Function = tuple[str, str]
# Frames from here outward are of the loop and of the program that runs it, and not of the task.
_LOOPS = ("_run_once", "Runner.run", "run_until_complete", "run_forever", "unrolled_run")


def with_lines(blocks: Sequence[Block], sampled: Sampled) -> list[Block]:
    """The blocks, each of code with the line that was sampled most in it; where none was, with that of its transaction
    or task."""
    found = _sampled_in([each for each in blocks if not each.intrinsic], sampled)
    lines: defaultdict[Function, Counter[Site]] = defaultdict(Counter)
    of_owner: defaultdict[str, Counter[Function]] = defaultdict(Counter)
    functions: dict[Block, Counter[Function]] = {}
    for block, sites in found.items():
        functions[block] = Counter()
        for site, samples in sites.items():
            lines[_function(site)][site] += samples
            functions[block][_function(site)] += samples
        of_owner[block.owner] += functions[block]

    def line_of(block: Block) -> Site | None:
        counted = functions.get(block) or of_owner.get(block.owner)
        return lines[_most(counted)].most_common(1)[0][0] if counted and not block.intrinsic else None

    return [replace(each, line=line_of(each)) for each in blocks]


def _function(site: Site) -> Function:
    return site.file, site.function


def _most(counted: Counter[Function]) -> Function:
    return counted.most_common(1)[0][0]


def _sampled_in(blocks: Sequence[Block], sampled: Sampled) -> dict[Block, Counter[Site]]:
    """How often each line was sampled in the code of each block."""
    of_thread: defaultdict[int, list[Block]] = defaultdict(list)
    for block in sorted(blocks, key=lambda block: block.code):
        of_thread[block.thread].append(block)
    starts = {thread: [block.code[0] for block in mine] for thread, mine in of_thread.items()}
    found: defaultdict[Block, Counter[Site]] = defaultdict(Counter)
    for sample in sampled.samples() if blocks else ():
        place = bisect_right(starts.get(sample.thread, ()), sample.time_ns) - 1
        around = of_thread[sample.thread][place] if place >= 0 else None
        if not around or sample.time_ns >= around.code[1]:
            continue
        if line := _line_of(sampled_frames(sampled, sample.stack)):
            found[around][line] += max(sample.samples, 1)
    return found


def _line_of(frames: Frames) -> Site | None:
    """The line of a task's own code, else the innermost one of Python code."""
    of_task = [each for each in takewhile(lambda each: not each.function.endswith(_LOOPS), frames) if each.line]
    return next((each for each in of_task if each.own), of_task[0] if of_task else None)
