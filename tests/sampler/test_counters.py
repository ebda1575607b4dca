"""Counters of real programs: by what the kernel tells the programs themselves, and what it says that it has."""

import json
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.counts import counted, not_read
from interpose.analysis.profile.profiled import NOT_SAMPLED
from interpose.counters import COUNTERS
from interpose.experiments.model.experiment import Experiment
from interpose.view.drilling import Step
from interpose.view.reading import Reading
from tests.kernel_counters import EVENTS, is_counted

pytestmark = pytest.mark.any_python

PAGES = 30_000
OFTEN = 10
STARTUP = 5_000  # faults of the interpreter's start, at most
PROGRAM = f"PAGES = {PAGES}" + """
import ctypes, json, mmap, os, resource, sys, threading, time

def busy(seconds=0.15):
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass

def touch(pages=PAGES):
    area = mmap.mmap(-1, pages * 4096)
    if hasattr(area, "madvise"):
        area.madvise(15)  # MADV_NOHUGEPAGE: each page is a fault
    for place in range(0, pages * 4096, 4096):
        area[place] = 1
    return area

def usage():
    used = resource.getrusage(resource.RUSAGE_THREAD)
    faults = {"minor_faults": used.ru_minflt, "major_faults": used.ru_majflt}
    return faults | {"voluntary_switches": used.ru_nvcsw, "involuntary_switches": used.ru_nivcsw}

def measured(function):
    # Between the first figures and the second the sampler has seen the thread, and after them it sees it again.
    busy()
    before = usage()
    function()
    after = usage()
    time.sleep(0.15)
    return {"tid": threading.get_native_id(), "before": before, "after": after, "last": usage()}
"""


# Often: what is between its last sample and its end counts for what follows.
TOUCHING = f"print(json.dumps(measured(lambda: [touch() and None for _ in range({OFTEN})])))"


def of_threads(experiment, name):
    """What each thread has, by the kernel's number."""
    found = [each for each in counted(Analysis(experiment)) if each.name == name]
    return {tid: count for each in found for (_, tid), count in each.by_thread().items()}


def below(experiment, name, function):
    """How much was counted in a function and in all that it called."""
    made = 0
    for each in counted(Analysis(experiment)):
        if each.name == name:
            inside = each.divided(lambda frames, seen: any(site.function == function for site in frames), None)
            made += inside[True].count if True in inside else 0
    return made


def assert_as_the_kernel_told(told, experiment, names):
    for name in names:
        found = of_threads(experiment, name)[told["tid"]]
        assert told["after"][name] - told["before"][name] <= found <= told["last"][name] + 20, name


# --- page faults and switches


@pytest.mark.long
def test_a_function_has_the_faults_of_the_pages_that_it_touches(record):
    # Often: what is counted in the interval in which a function begins or ends counts for one of the two.
    told, experiment = record(PROGRAM + TOUCHING, "--counters", "faults", "--profile", "500")

    pages = OFTEN * PAGES
    assert told["after"]["minor_faults"] - told["before"]["minor_faults"] >= pages
    assert below(experiment, "faults", "touch") == pytest.approx(pages, rel=0.1)
    assert below(experiment, "faults", "busy") < pages / 10
    (faults,) = counted(Analysis(experiment))
    assert pages <= faults.total <= pages + STARTUP + told["last"]["minor_faults"] - told["after"]["minor_faults"]


TAKING_TURNS = """
def compute():
    return sum(i * i for i in range(150_000))

def turns():
    area = mmap.mmap(-1, 10_000 * 4096)
    for _ in range(40):
        area.madvise(mmap.MADV_DONTNEED)  # its pages are faults again
        touch_again(area)
        compute()

def touch_again(area):
    for place in range(0, len(area), 4096):
        area[place] = 1

print(json.dumps(measured(turns)))
"""


@pytest.mark.long
def test_a_function_that_follows_another_one_has_none_of_its_faults(record):
    """Turns of some milliseconds: of each interval in which one ends, a part is of the other."""
    told, experiment = record(PROGRAM + TAKING_TURNS, "--counters", "faults", "--profile", "500")

    pages = told["after"]["minor_faults"] - told["before"]["minor_faults"]
    assert pages >= 40 * 10_000
    assert below(experiment, "faults", "compute") < 0.05 * pages
    assert below(experiment, "faults", "touch_again") == pytest.approx(pages, rel=0.06)


@pytest.mark.long
def test_threads_have_what_the_kernel_tells_them_of_themselves(record):
    text = """
def work(into, pages, waits):
    def worked():
        kept = touch(pages)
        for _ in range(waits):
            time.sleep(0.0005)
    into.append(measured(worked))

found = []
threads = [threading.Thread(target=work, args=(found, pages, waits)) for pages, waits in ((40_000, 10), (90_000, 300))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(found))
"""
    names = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
    told, experiment = record(PROGRAM + text, "--counters", ",".join(names))

    assert len(told) == 2
    for each in told:
        assert_as_the_kernel_told(each, experiment, names)
    more = max(told, key=lambda each: each["after"]["voluntary_switches"])
    assert more["after"]["voluntary_switches"] - more["before"]["voluntary_switches"] >= 300
    assert below(experiment, "minor_faults", "touch") == pytest.approx(130_000, rel=0.1)
    assert below(experiment, "voluntary_switches", "work.<locals>.worked") >= 250


@pytest.mark.long
def test_whole_processes_have_what_the_kernel_counts_of_them_and_children_have_their_own(record):
    text = """
def child():
    busy()
    kept = touch(2 * PAGES)
    busy()

parent = usage()
pid = os.fork()
if pid == 0:
    child()
    os._exit(0)
kept = touch()
busy()
_, _, used = os.wait4(pid, 0)
whole = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"child": used.ru_minflt + used.ru_majflt, "parent": whole.ru_minflt + whole.ru_majflt}))
"""
    told, experiment = record(PROGRAM + text, "--counters", "faults")

    parent, child = counted(Analysis(experiment))
    assert child.process.log.pid != parent.process.log.pid
    assert child.total == pytest.approx(told["child"], rel=0.05)
    assert parent.total == pytest.approx(told["parent"], abs=STARTUP)
    assert below(experiment, "faults", "child") == pytest.approx(2 * PAGES, rel=0.1)


FEWER = 8_000  # pages, where each is read from a file, too
CALLING = """
def fill(pages=FEWER):
    # A read into memory that nobody has touched: its faults are in the recorded call.
    area = mmap.mmap(-1, pages * 4096)
    if hasattr(area, "madvise"):
        area.madvise(15)
    with open("pages", "rb", buffering=0) as file:
        began = faults()
        file.readinto(area)
        return faults() - began

def faults():
    used = usage()
    return used["minor_faults"] + used["major_faults"]

def outside():
    began = faults()
    kept = touch(FEWER)
    return faults() - began

with open("pages", "wb") as file:
    file.truncate(FEWER * 4096)
busy()
within = sum([fill() for _ in range(4)])
busy()
between = sum([outside() for _ in range(4)])
busy()
time.sleep(0.15)
whole = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([within, between, whole.ru_minflt + whole.ru_majflt]))
"""


@pytest.mark.long
def test_a_call_has_the_faults_of_the_pages_that_it_touches_and_the_code_around_it_its_own(record, interpose):
    (within, between, whole), experiment = record(f"FEWER = {FEWER}\n" + PROGRAM + CALLING, "--counters", "faults")
    (faults,) = counted(Analysis(experiment))

    assert min(within, between) >= 4 * FEWER
    assert faults.total == pytest.approx(whole, abs=STARTUP)
    for by, name in (("kind", "file"), ("intrinsic", "io.FileIO.readinto")):
        rows = json.loads(interpose("report", "--by", by, "--format", "json", experiment.directory).stdout)
        counting = {row["intrinsic"] or row["kind"]: row for row in rows if row["faults"] is not None}
        found = {name: row["faults"] for name, row in counting.items()}
        margin = 2 * counting[name]["faults_margin"]  # on a busy machine there are few samples
        assert found[name] == pytest.approx(within, abs=0.2 * within + margin)
        assert found["code"] == pytest.approx(between, abs=0.2 * between + margin)
        assert sum(found.values()) == faults.total


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("perf"), reason="there is no perf")
def test_perf_counts_as_many_faults(record, work):
    program = PROGRAM + "busy()\nkept = touch(3 * PAGES)\nbusy()\nprint(1)"
    _, experiment = record(program, "--counters", "faults")

    said = subprocess.run(
        ["perf", "stat", "-x", ",", "-e", "page-faults", sys.executable, "app.py"],
        cwd=work,
        capture_output=True,
        text=True,
    ).stderr

    counts = [line.split(",")[0] for line in said.splitlines() if "page-faults" in line]
    if not counts or not counts[0].isdigit():
        pytest.skip(f"perf counts none here: {said.strip()}")
    (faults,) = counted(Analysis(experiment))
    assert faults.total == pytest.approx(int(counts[0]), abs=STARTUP)


@pytest.mark.long
def test_a_thread_that_has_ended_before_the_next_sample_is_not_lost_to_the_process(record):
    text = """
def short():
    kept = touch(200)

busy()
for _ in range(20):
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
whole = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps(whole.ru_minflt + whole.ru_majflt))
"""
    told, experiment = record(PROGRAM + text, "--counters", "faults,migrations")

    faults, migrations = counted(Analysis(experiment))
    assert faults.total == faults.sampled + faults.not_sampled
    assert faults.total == pytest.approx(told, abs=STARTUP) and faults.total >= 4000
    assert migrations.not_sampled is None


@pytest.mark.long
def test_what_was_counted_in_a_pause_belongs_to_no_code(record):
    text = """
import interpose
busy()
interpose.pause()
time.sleep(0.1)
kept = touch()
time.sleep(0.1)
interpose.resume()
busy()
print(1)
"""
    _, experiment = record(PROGRAM + text, "--counters", "faults")

    (faults,) = counted(Analysis(experiment))
    assert faults.sampled < PAGES / 10
    assert faults.divided(lambda frames, seen: frames[0], NOT_SAMPLED)[NOT_SAMPLED].count >= PAGES


# --- what a perf event counts


@pytest.mark.long
@pytest.mark.skipif(not is_counted("migrations"), reason="the kernel counts no migrations for us")
def test_migrations_are_those_of_an_event_that_the_program_has_itself(record):
    text = """
from tests.kernel_counters import open_event, read_event

def move(times=200):
    processors = sorted(os.sched_getaffinity(0))
    for number in range(times if len(processors) > 1 else 0):
        os.sched_setaffinity(0, {processors[number % 2]})
    os.sched_setaffinity(0, processors)

event = open_event("migrations")
busy()
before = read_event(event)
move()
after = read_event(event)
time.sleep(0.15)
print(json.dumps({"tid": os.getpid(), "moved": after - before, "last": read_event(event)}))
"""
    top = str(Path(__file__).parents[2])
    told, experiment = record(f"import sys\nsys.path.append({top!r})\n" + PROGRAM + text, "--counters", "migrations")

    found = of_threads(experiment, "migrations").get(told["tid"], 0)
    assert told["moved"] <= found <= told["last"] + 20


# --- what the machine has


def test_what_the_kernel_does_not_count_is_said_and_the_rest_is_recorded(interpose, work):
    (work / "app.py").write_text("import time\ntime.sleep(0.3)\n")
    there = {name for name in EVENTS if is_counted(name)}

    done = interpose("run", "--counters", ",".join(COUNTERS), "app.py")

    assert done.returncode == 0
    experiment = Experiment(str(work / "test.1.er"))
    said = {word.strip(" ,:") for line in done.stderr.splitlines() if "not counted" in line for word in line.split()}
    assert said & set(COUNTERS) == set(EVENTS) - there
    read = {each.name for each in counted(Analysis(experiment)) if each.is_read}
    assert read == set(COUNTERS) - (set(EVENTS) - there)
    reported = {word.strip(" ,:") for line in not_read(experiment) if "not counted" in line for word in line.split()}
    assert reported & set(COUNTERS) == set(EVENTS) - there


def test_doctor_says_what_can_be_counted(interpose):
    found = json.loads(interpose("doctor", "--format", "json").stdout)["counters"]

    there = {name for name, why in found.items() if not why}
    assert there == set(COUNTERS) - {name for name in EVENTS if not is_counted(name)}


def test_nothing_is_counted_unless_it_is_requested(record, work):
    record("import time\ntime.sleep(0.3)\nprint(1)")

    assert (work / "test.1.er" / "samples").exists()
    assert not (work / "test.1.er" / "sampled_counts").exists()


@pytest.mark.long
def test_the_variable_alone_is_enough(own_environment, work):
    """A monitor of its own is then started; it writes what is left when the program has ended."""
    until_sampled = """
until = time.monotonic() + 30
while not os.path.exists("test.1.er/samples") and time.monotonic() < until: busy()
"""
    (work / "app.py").write_text(PROGRAM + until_sampled + "busy(0.3)\nkept = touch()\nbusy()\n")
    asked = own_environment | {"INTERPOSE": "1", "INTERPOSE_COUNTERS": "faults"}

    subprocess.run([sys.executable, "app.py"], cwd=work, env=asked, check=True)

    found, until = 0, time.monotonic() + 20
    while found <= PAGES / 2 and time.monotonic() < until:
        time.sleep(0.2)
        found = below(Experiment(str(work / "test.1.er")), "faults", "touch")
    assert found > PAGES / 2


class Cells(HTMLParser):
    """The cells of the page's tables, row by row, by the name of the table."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self._is_cell = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self._rows = self.tables.setdefault(dict(attributes).get("id") or "", [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        self._is_cell = tag in ("td", "th", "a", "span") and bool(self._rows)

    def handle_endtag(self, tag):
        self._is_cell = False

    def handle_data(self, data):
        if self._is_cell:
            self._rows[-1][-1] += data


def column(rows: list[list[str]], title: str) -> list[str]:
    """What a column has, blank cells aside."""
    head, *others = rows
    return [row[head.index(title)] for row in others if row[head.index(title)]]


WITH_COUNTERS = [("function", "function"), ("site", "line"), ("thread", "thread"), ("intrinsic", "intrinsic")]


@pytest.mark.long
@pytest.mark.parametrize(("by", "option"), WITH_COUNTERS)
def test_the_page_and_the_view_have_the_counters_of_the_report(record, interpose, by, option):
    _, experiment = record(PROGRAM + "print(json.dumps(measured(touch)))", "--counters", "faults")
    directory = experiment.directory
    report = interpose("report", "--by", option, "--format", "json", directory).stdout
    told = sorted(row["faults"] for row in json.loads(report) if row["faults"] is not None)

    page = Cells(interpose("report", "--format", "html", directory).stdout).tables[f"table-{by}"]
    view = Reading(Experiment(directory)).rows(Step(by), None)

    assert sum(told) > PAGES
    assert sorted(int(cell.lstrip("~").replace(",", "")) for cell in column(page, "faults")) == told
    (faults,) = [each for each in view.columns if each.title == "faults"]
    assert sorted(int(text.lstrip("~").replace(",", "")) for text in map(faults.show, view.rows) if text) == told


@pytest.mark.long
@pytest.mark.parametrize("by", ["function", "line", "kind", "thread"])
def test_the_columns_of_counters_are_those_read_in_the_order_requested(record, interpose, work, by):
    wanted = ["migrations", "switches", "faults"]
    _, experiment = record("import time\ntime.sleep(0.3)\nprint(1)", "--counters", ",".join(wanted))

    shutil.copytree(experiment.directory, work / "copy.1.er")
    for options in ((), ("--limit", "1"), ("--limit", "1", "copy.1.er")):
        head = interpose("report", "--by", by, "--format", "csv", *options, experiment.directory).stdout.splitlines()[0]
        text = interpose("report", "--by", by, *options, experiment.directory, variables={"COLUMNS": "300"}).stdout
        assert [name for name in head.split(",") if name in wanted] == wanted
        assert [word for word in text.split() if word in wanted] == wanted


def test_sql_has_the_counters_of_threads_and_lines(record, interpose):
    pytest.importorskip("duckdb")
    told, experiment = record(PROGRAM + TOUCHING, "--counters", "faults")
    query = "select function, tid, sum(count) as faults from counters where counter = 'faults' group by all"

    rows = json.loads(interpose("sql", query, experiment.directory, "--format", "json").stdout)
    report = json.loads(interpose("report", "--by", "function", "--format", "json", experiment.directory).stdout)

    (faults,) = counted(Analysis(experiment))
    assert sum(row["faults"] for row in rows) == faults.total
    of_thread = sum(row["faults"] for row in rows if row["tid"] == told["tid"])
    assert of_thread == of_threads(experiment, "faults")[told["tid"]] >= OFTEN * PAGES
    (touched,) = [row["faults"] for row in rows if row["function"] == "touch"]
    assert [touched] == [row["faults"] for row in report if row["function"] == "touch" and row["faults"] is not None]
