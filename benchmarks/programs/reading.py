"""Reads the events of an experiment to sums by intrinsic; prints seconds, events and the peak of memory.

Usage: reading.py EXPERIMENT compiled|plain|none
"""

import json
import sys
from time import perf_counter

from interpose.analysis.reduce import PlainReducer, fastest_reducer, reduce_events
from interpose.experiments.experiment import Experiment


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
        reducer = PlainReducer if reader == "plain" else fastest_reducer()
        if reader == "compiled" and reducer is PlainReducer:
            sys.exit("the compiled reducer is not there")
        events = sum(sums.calls for sums in reduce_events(process, ("intrinsic",), reducer).values())
    print(json.dumps({"seconds": perf_counter() - begun, "events": events, "peak_bytes": peak_bytes()}))


main()
