"""Reads the events of an experiment to sums by intrinsic; prints seconds, events and the peak of memory.

Usage: reading.py EXPERIMENT compiled|plain|none
"""

import json
import sys
from time import perf_counter

from interpose.analysis.consolidation.consolidate import consolidated, fastest_consolidator
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.experiments.model.experiment import Experiment


def peak_bytes():
    """The most memory that this process had resident, what is mapped of files included (proc(5), VmHWM)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main():
    path, reader = sys.argv[1:]
    process = Experiment(path).founder
    begun = perf_counter()
    events = 0
    if reader != "none":
        consolidator = PlainConsolidator if reader == "plain" else fastest_consolidator()
        if reader == "compiled" and consolidator is PlainConsolidator:
            sys.exit("the compiled consolidator is not there")
        events = sum(sums.calls for sums in consolidated(process, ("intrinsic",), consolidator).sums().values())
    print(json.dumps({"seconds": perf_counter() - begun, "events": events, "peak_bytes": peak_bytes()}))


main()
