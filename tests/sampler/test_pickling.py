"""What a program pickles to send it to other processes is named, with all the CPU time below it."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.sampled import RUNS, Sampled
from interpose.reports.sentences.advice import advice_for
from tests.sampler.chance import chance

PROGRAM = """
import json, threading, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

def first(rows):
    return rows[0]["a"]

def cpu_of(thread):
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))

if __name__ == "__main__":
    big = [{"a": number, "b": str(number)} for number in range(40_000)]
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        pool.submit(first, big).result()
        (feeder,) = [each for each in threading.enumerate() if each.name == "QueueFeederThread"]
        for answer in [pool.submit(first, big) for _ in range(120)]:
            answer.result()
        print(json.dumps([cpu_of(feeder), time.process_time()]))
"""


@pytest.mark.long
def test_pickling_arguments_of_a_pool_is_named_with_all_of_its_time(record):
    (feeder_s, all_s), experiment = record(PROGRAM, "--profile", "250")
    samples = sum(each.samples for each in Sampled(experiment.founder).samples() if each.state == RUNS)
    if samples < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    survey = Survey(Analysis(experiment))
    found = [each for each in found_in(survey) if each.rule == "computing" and each.site]

    (pickling,) = [each for each in found if each.site.function.endswith("dumps")]
    off_s = chance(100 * feeder_s / all_s, samples) / 100 * all_s
    assert pickling.wall_ns / 1e9 == pytest.approx(feeder_s, abs=off_s)
    assert "send less data" in advice_for(pickling)
    assert not [each for each in found if each.site.is_native]
