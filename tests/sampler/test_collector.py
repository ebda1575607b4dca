"""The garbage collector is told apart from the line of Python in which it began."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.sampled import COLLECTOR, Sampled
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import cpu_by, shares_of

PROGRAM = """
import gc, hashlib, json, threading, time
gc.disable()
kept, going, data = [[] for _ in range(300_000)], True, bytes(1_000_000)

def digest():
    while going: hashlib.sha256(data).digest()

def collect():
    gc.collect()

def add():
    s = 0
    for i in range(100_000): s += i * i % 7

other = threading.Thread(target=digest)
if DIGESTS: other.start()
spent = {"collect": 0, "add": 0}
while sum(spent.values()) < ALL_S:
    for function in (collect, add):
        began = time.thread_time()
        function()
        spent[function.__name__] += time.thread_time() - began
going = False
print(json.dumps(spent))
"""


def executed(frames):
    """What was executed: the collector, or the innermost function of the program."""
    if frames and frames[0].file == COLLECTOR:
        return "collect"
    return next((site.function for site in frames if site.own), "")


@pytest.mark.long
@pytest.mark.alone
def test_the_collector_has_the_cpu_time_that_the_program_measured(record):
    spent, experiment = record(f"ALL_S, DIGESTS = 3, False\n{PROGRAM}", "--profile", "250")

    found = cpu_by(experiment.founder, executed)

    truth, shares = shares_of(spent), shares_of({name: found[name] for name in spent})
    samples = samples_that_count(experiment.founder)
    assert shares == {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth}


def told_below(experiment):
    """The functions below which the collector was told."""
    sampled = Sampled(experiment.founder)
    stacks = [tuple(sampled.frames(number)) for number in {each.stack for each in sampled.samples()}]
    return {executed(frames[1:]) for frames in stacks if frames and frames[0].file == COLLECTOR}


def test_the_collector_is_below_the_line_that_it_interrupts(record):
    _, experiment = record(f"ALL_S, DIGESTS = 0.6, False\n{PROGRAM}", "--profile", "500")

    assert "collect" in told_below(experiment)


def test_of_several_threads_none_is_said_to_collect(record):
    _, experiment = record(f"ALL_S, DIGESTS = 0.6, True\n{PROGRAM}", "--profile", "500")

    assert told_below(experiment) <= {"", "<module>"}  # before the other one began


def test_what_a_finalizer_computes_is_its_own(record):
    _, experiment = record(
        """
import gc, json, time
def compute():
    until = time.thread_time() + 0.4
    while time.thread_time() < until: sum(range(1000))
class Closed:
    def __init__(self): self.itself = self
    def __del__(self): compute()
Closed()
gc.collect()
print(json.dumps({}))
""",
        "--profile",
        "500",
    )

    assert "compute" not in told_below(experiment)
    assert cpu_by(experiment.founder, executed)["compute"] > 0.3e9


def test_a_finding_names_the_collector_and_says_what_helps(record):
    _, experiment = record(f"ALL_S, DIGESTS = 0.6, False\n{PROGRAM}", "--profile", "250")

    told = found_in(Survey(Analysis(experiment)))

    [finding] = [each for each in told if each.rule == "computing" and each.site and each.site.function == "collect"]
    assert f" of it in {COLLECTOR}: CPU time (" in Sentences(told, "", 10**9).of(finding)
    assert "gc.freeze()" in advice_for(finding)
