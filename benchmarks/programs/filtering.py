"""Reads the events of an experiment one by one and decides of each; prints seconds, events and how many were kept.

Usage: filtering.py EXPERIMENT EXPRESSION, which may be empty
"""

import json
import sys
from time import perf_counter

from interpose.analysis.expressions.filters import Filter
from interpose.experiments.model.experiment import Experiment


def main():
    path, text = sys.argv[1:]
    experiment = Experiment(path)
    process = experiment.founder
    keeps = Filter(text, experiment).over(process) if text else None
    begun = perf_counter()
    events = kept = 0
    for block in process.events.blocks():
        found = list(process.events.events(block))
        events += len(found)
        kept += sum(1 for event in found if keeps(event, 0)) if keeps else len(found)
    print(json.dumps({"seconds": perf_counter() - begun, "events": events, "kept": kept}))


main()
