"""A program with data collectors, and what they recorded."""

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from interpose.reports.screen.sections import SECTIONS, profiled

PROGRAM = """
    import os, sys, threading, time
    def probe(path):
        try:
            os.stat(path)
        except OSError:
            pass
"""
BEFORE = "import interpose, sys\n"


def probes(done, prefix="/probe"):
    """Of each call of os.stat of such a path: the path, and what it was identified as."""
    founder = done.experiment.founder
    found = []
    for event in done.events("os.stat"):
        site = next(iter(founder.frames(event.stack)), None)
        if founder.string(event.detail).startswith(prefix):
            found.append((founder.string(event.detail), site))
    return found


def named(done, prefix="/probe"):
    """The same in short: path, module, section, statement, of those that a collector identified."""
    identified = [(path, site) for path, site in probes(done, prefix) if site and site.collector]
    return [(path, site.file, site.function, site.line) for path, site in identified]


def failures(done):
    return [each.why for each in done.experiment.founder.failures]


def rows(done, name):
    table = SECTIONS[name](profiled(Analysis(Experiment(done.path)))).table
    return [table.values(row) for row in table.rows]


def counts(done):
    return {row.name: row.sums.calls for row in transactions(Analysis(done.experiment)).rows}
