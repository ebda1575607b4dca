"""Where memory grew: by what the programs themselves read of their size, and in experiments made for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.analysis.profile.memory import memories, memory_of
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.memory_limit import memory_limit_bytes
from interpose.reports.screen.memory import memory_lines, shortages
from tests.build import SECOND, START_NS, Build, event

MIB = 1 << 20
OFTEN = ("--profile", "500")  # by the next sample, what a quick machine allocates in 10 ms counts for what runs then
NEAR_MIB = 8  # what is written down are changes of a megabyte or more, and Python's pools come a megabyte at a time
GROWING = """
import gc, json, os, time

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def texts():
    return [str(number) * 4 for number in range(600_000)]

def tables():
    return {number: [number] for number in range(400_000)}

def busy(seconds=0.2):
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass

gc.disable()  # it would touch all objects, wherever it runs
busy()
kept, sizes = [], {"first": resident()}
for function in (texts, tables):
    before = resident()
    kept.append(function())
    sizes[function.__name__] = resident() - before
    busy()
sizes["peak"] = resident()
"""


def grew_by_function(memory):
    """Bytes by function, with those of its comprehensions, which before 3.12 are functions of their own."""
    found = {}
    for site, grew_bytes, _ in memory.growth:
        function = site.function.partition(".<locals>.")[0]
        found[function] = found.get(function, 0) + grew_bytes
    return found


@pytest.mark.long
def test_functions_have_the_memory_that_the_program_saw_come(record):
    sizes, experiment = record(GROWING + "print(json.dumps(sizes))", *OFTEN)

    memory = memory_of(experiment.founder)

    grew = grew_by_function(memory)
    near = NEAR_MIB * MIB
    assert {name: grew.get(name, 0) for name in ("texts", "tables")} == {
        name: pytest.approx(sizes[name], abs=near) for name in ("texts", "tables")
    }
    assert sizes["texts"] > 40 * MIB and sizes["tables"] > 40 * MIB
    assert memory.peak_bytes == pytest.approx(sizes["peak"], abs=near)
    assert sum(grew.values()) == memory.grew_bytes


@pytest.mark.long
def test_what_is_given_back_before_the_peak_is_no_growth(record):
    text = """
del kept[:]
before = resident()
block = b"x" * (256 << 20)
sizes["block"] = resident() - before
busy()
print(json.dumps(sizes))
"""
    sizes, experiment = record(GROWING + text)

    memory = memory_of(experiment.founder)

    assert sizes["block"] > 200 * MIB
    assert sum(each.grew_bytes for each in memory.growth) == memory.grew_bytes
    assert memory.grew_bytes < sizes["texts"] + sizes["tables"] + sizes["block"]


@pytest.mark.long
def test_each_process_has_its_own(record):
    text = """
child = os.fork()
if child == 0:
    kept.append(b"x" * (128 << 20))
    busy()
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps(sizes))
"""
    sizes, experiment = record(GROWING + text)

    peaks = {each.process.place: each.peak_bytes for each in memories(experiment)}

    parent, child = experiment.processes
    assert peaks[child.place] - peaks[parent.place] == pytest.approx(128 * MIB, abs=40 * MIB)
    assert peaks[parent.place] == pytest.approx(sizes["peak"], abs=NEAR_MIB * MIB)


# --- what is read of it


@pytest.fixture
def shop(tmp_path):
    """Four looks: 30 MiB, then 100 and 300 MiB more in two lines of load, and 50 MiB less in one of save."""
    build = Build(tmp_path / "test.1.er", cwd="/home/u", arguments=["python", "shop.py"])
    build.thread(end_ns=START_NS + 10 * SECOND, end_cpu_ns=SECOND, recorded=1)
    build.events([event(0, SECOND, call=1, intrinsic=build.intrinsic("time.sleep", "sleep"))])
    places = ((3, "load"), (4, "load"), (9, "save"))
    lines = [build.sampled_stack(("/home/u/shop.py", line, name)) for line, name in places]
    sizes = (30, 130, 430, 380, 500)
    for number, (size_mib, stack) in enumerate(zip(sizes, (0, *lines, lines[0]), strict=True)):
        build.resident(START_NS + number * SECOND, size_mib * MIB, stack=stack, limit_bytes=520 * MIB)
    build.ended(10 * SECOND, SECOND)
    return build


def test_lines_add_up_to_what_there_was_more_at_the_peak(shop):
    memory = memory_of(Experiment(str(shop.write())).founder)

    assert (memory.first_bytes, memory.peak_bytes, memory.limit_bytes) == (30 * MIB, 500 * MIB, 520 * MIB)
    assert [(site.line, grew // MIB) for site, grew, _ in memory.growth] == [(4, 300), (3, 220), (9, -50)]
    assert memory.peak_ns == START_NS + 4 * SECOND


def test_the_first_screen_names_the_lines(shop, capsys):
    experiment = Experiment(str(shop.write()))

    assert list(memory_lines(experiment, "/home/u")) == [
        " memory      500 MiB  at its peak, 96 % of 520 MiB, 30.0 MiB at first",
        "            +300 MiB  while shop.py:4 load ran",
        "            +220 MiB  while shop.py:3 load ran",
    ]
    assert len(list(shortages(experiment))) == 1


def test_where_no_line_ran_for_most_of_the_growth_the_first_screen_says_how_to_learn_more(shop):
    for number in range(5, 8):
        line = shop.sampled_stack(("/home/u/shop.py", number + 10, "save"))
        shop.resident(START_NS + number * SECOND, (500 + 150 * (number - 4)) * MIB, stack=line)

    assert list(memory_lines(Experiment(str(shop.write())), "/home/u"))[1:] == [
        "            +300 MiB  while shop.py:4 load ran",
        "            +220 MiB  while shop.py:3 load ran",
        "            +150 MiB  while shop.py:15 save ran",
        "                      to see which lines allocated it: INTERPOSE=calls,heap",
    ]


def test_a_line_in_which_the_thread_waited_is_not_said_to_have_made_it_grow(shop, capsys):
    running, waiting = (shop.sampled_stack(("/home/u/shop.py", line, "load")) for line in (3, 4))
    for number, (stack, state) in enumerate([(running, 1), (running, 1), (waiting, 2), (running, 1), (running, 1)]):
        shop.thread_sample(START_NS + number * SECOND - 1, cpu_ns=number, stack=stack, state=state)
    path = str(shop.write())

    assert list(memory_lines(Experiment(path), "/home/u"))[1:] == [
        "            +300 MiB  before shop.py:4 load waited",
        "            +220 MiB  while shop.py:3 load ran",
        "                      to see which lines allocated it: INTERPOSE=calls,heap",
    ]
    assert "; most came before load waited, /home/u/shop.py:4" in next(shortages(Experiment(path)))
    assert main(["report", path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["memory"][0]["rows"]
    assert [(row["line"], row["waited"]) for row in rows] == [(4, True), (3, False), (9, False)]


def test_json_and_page_have_it_too(shop, tmp_path, capsys):
    path = str(shop.write())
    page = tmp_path / "page.html"

    assert main(["report", path, "--format", "json"]) == 0
    (memory,) = json.loads(capsys.readouterr().out)["memory"]
    assert main(["report", path, "--format", "html", "-o", str(page)]) == 0

    assert (memory["peak_bytes"], sum(row["grew_bytes"] for row in memory["rows"])) == (500 * MIB, 470 * MIB)
    assert "memory at its peak" in page.read_text() and "while shop.py:4 load ran" in page.read_text()


def test_small_programs_are_not_spoken_of(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.resident(START_NS, 10 * MIB)
    build.resident(START_NS + SECOND, 70 * MIB)

    assert list(memory_lines(Experiment(str(build.write())), "/")) == []


def test_what_is_no_look_is_passed_over(shop):
    """Times that go back, sizes of nothing, stacks that are not there."""
    shop.resident(START_NS + SECOND, 900 * MIB)
    shop.resident(START_NS + 6 * SECOND, 0)
    shop.resident(START_NS + 7 * SECOND, 510 * MIB, stack=999)

    memory = memory_of(Experiment(str(shop.write())).founder)

    assert memory.peak_bytes == 510 * MIB
    assert sum(each.grew_bytes for each in memory.growth) == memory.grew_bytes


# --- how much there may be


@pytest.fixture
def machine(tmp_path):
    """Writes what the kernel says: a file by its path below `proc` or `groups`."""

    def said(**files):
        for path, text in files.items():
            place = tmp_path / path.replace("__", "/").replace("_dot_", ".")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return memory_limit_bytes(812, str(tmp_path / "proc"), str(tmp_path / "groups"))

    return said


MEMORY = "MemTotal:       16000 kB\nMemFree: 5 kB\n"


def test_without_a_control_group_it_is_the_machines(machine):
    assert machine(proc__meminfo=MEMORY) == 16000 * 1024


def test_a_group_around_may_allow_less(machine):
    groups = {
        "proc__812__cgroup": "0::/a/b\n",
        "groups__a__b__memory_dot_max": "max\n",
        "groups__a__memory_dot_max": "4096000\n",
    }

    assert machine(proc__meminfo=MEMORY, **groups) == 4_096_000


def test_in_a_container_the_root_is_the_group(machine):
    groups = {"proc__812__cgroup": "0::/../outside\n", "groups__memory_dot_max": "8192000\n"}

    assert machine(proc__meminfo=MEMORY, **groups) == 8_192_000


def test_version_1_has_a_hierarchy_of_its_own(machine):
    groups = {
        "proc__812__cgroup": "5:cpu,memory:/x\n3:pids:/x\n",
        "groups__memory__x__memory_dot_limit_in_bytes": "2048000\n",
        "groups__memory__memory_dot_limit_in_bytes": "9223372036854771712\n",
    }

    assert machine(proc__meminfo=MEMORY, **groups) == 2_048_000


def test_where_nothing_is_told_it_is_not_known(machine):
    assert machine() == 0


def test_the_limit_of_a_real_process_is_no_more_than_the_machine_has():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        limit_bytes = memory_limit_bytes(child.pid)
    finally:
        child.communicate(b"\n")

    machine_kib = int(Path("/proc/meminfo").read_text().split()[1])
    assert 0 < limit_bytes <= machine_kib * 1024
