"""Programs and monitors that are killed at any moment: what was complete is there, and nothing is damaged by it."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tracing import environment, events_of, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.experiments.model.experiment import Experiment

pytestmark = [pytest.mark.slow, pytest.mark.reach]

# Each way to bear children; each child counts what it does, in a file that outlives it.
BEARING = """
import mmap, multiprocessing, os, subprocess, sys

def count(number, calls=3):
    counter = mmap.mmap(os.open("counters", os.O_RDWR), 8 * 4096)
    for made in range(calls):
        os.stat("/")
        counter[8 * number : 8 * number + 8] = (made + 1).to_bytes(8, "little")

def fork(number):
    child = os.fork()
    if not child:
        count(number)
        os._exit(0)
    return lambda: os.waitpid(child, 0)

def spawn(number):
    return subprocess.Popen([sys.executable, __file__, str(number)]).wait

def process(number):
    made = multiprocessing.get_context("fork").Process(target=count, args=(number,))
    made.start()
    return made.join

if __name__ == "__main__" and sys.argv[1].isdigit():
    count(int(sys.argv[1]))
elif __name__ == "__main__":
    way = globals()[sys.argv[1]]
    print(flush=True)
    for number in range(0, 4096, 3):
        for wait in [way(each) for each in range(number, number + 3)]:
            wait()
"""


def killed(directory, program, way, delay_s):
    """What children counted until all were killed, and the experiment."""
    (directory / "counters").write_bytes(bytes(8 * 4096))
    own = environment(INTERPOSE="1", XDG_STATE_HOME=str(directory / "state"))
    words = [sys.executable, str(program), way]
    with subprocess.Popen(words, cwd=directory, env=own, stdout=subprocess.PIPE, start_new_session=True) as busy:
        busy.stdout.readline()
        time.sleep(delay_s)
        os.killpg(busy.pid, signal.SIGKILL)
    counters = memoryview((directory / "counters").read_bytes()).cast("Q")
    return sum(counters), Experiment(str(directory / "test.1.er"))


@pytest.mark.parametrize(("way", "latest_s"), [("fork", 0.05), ("process", 0.05), ("spawn", 0.4)])
def test_a_kill_while_children_are_born_loses_and_damages_nothing(tmp_path, tally, way, latest_s):
    program = write_program(tmp_path, BEARING)
    for attempt in range(tally.times(300)):
        place = tmp_path / str(attempt)
        place.mkdir()

        made, experiment = killed(place, program, way, random.uniform(0, latest_s))
        children = experiment.processes[1:]
        found = sum(1 for child in children for _ in events_of(child, "os.stat"))
        profile(Analysis(experiment), "site")

        tally.check(
            found >= made and experiment.damages.found == [],
            f"{attempt}: {found} of {made} calls, {experiment.damages.found}",
        )
        shutil.rmtree(place)
    tally.end()


WORK = """
import os
sink = os.open(os.devnull, os.O_WRONLY)
for _ in range(40_000):
    os.write(sink, b"x")
"""


def calls_of(path):
    """How many calls are there, how many its threads say, and what is damaged."""
    process = Experiment(str(path)).founder
    found = sum(sums.calls for sums in consolidated(process, ("intrinsic",)).sums().values())
    return found, sum(thread.record.recorded for thread in process.threads), process.damages.found


@pytest.mark.parametrize("consolidate", ["0", "1"])
def test_a_kill_while_the_monitor_finishes_loses_doubles_and_damages_nothing(tmp_path, tally, consolidate):
    own = environment(INTERPOSE="1", INTERPOSE_CONSOLIDATE=consolidate, XDG_STATE_HOME=str(tmp_path / "state"))
    subprocess.run([sys.executable, str(write_program(tmp_path, WORK))], cwd=tmp_path, env=own, check=True)
    whole, copy = tmp_path / "test.1.er", tmp_path / "test.2.er"
    expected = calls_of(whole)
    assert expected[0] == expected[1] >= 40_000
    monitor = [sys.executable, "-c", "from interpose.monitor import main; print(flush=True); main('test.2.er')"]

    for attempt in range(tally.times(200)):
        shutil.copytree(whole, copy)
        finishing = subprocess.Popen(monitor, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE)
        finishing.stdout.readline()
        time.sleep(random.uniform(0, 0.1))
        meanwhile = calls_of(copy)
        finishing.kill()
        finishing.communicate()
        after = calls_of(copy)
        subprocess.run(monitor, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, check=True)
        at_last = calls_of(copy)

        tally.check(meanwhile == after == at_last == expected, f"{attempt}: {meanwhile}, {after}, {at_last}")
        shutil.rmtree(copy)
    tally.end()
