"""Reads what shares of its CPU time a program spent where; prints them in percent, with its events and CPU time.

Usage: shares.py EXPERIMENT BY
"""

import json
import sys

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.experiments.model.experiment import Experiment


def main():
    path, by = sys.argv[1:]
    experiment = Experiment(path)
    found = profile(Analysis(experiment), by)
    shares = {}
    for row in found.rows:
        name = " ".join(filter(None, [row.kind, row.intrinsic, row.labels.get(by, "")]))
        shares[name] = shares.get(name, 0) + 100 * row.sums.self_cpu_ns / found.total.cpu_ns
    print(json.dumps({"shares": shares, "events": events_of(experiment), "cpu_ns": found.total.cpu_ns}))


def events_of(experiment):
    """How many events there are."""
    return sum(head.used for process in experiment.processes if process.events for _, head in process.events.heads())


main()
