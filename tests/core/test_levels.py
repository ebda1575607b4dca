"""What is timed, what only counted, what neither: by kind, by name, and by the governor while the program runs."""

import json
import os
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.config.levels import assign, parse_budget, parse_kinds, parse_levels
from interpose.experiments.model.experiment import Experiment
from interpose.library import Intrinsic

CALLS = """
    import os, socket, sqlite3, time
    descriptor = os.open("file", os.O_RDWR | os.O_CREAT)
    for _ in range(20):
        os.write(descriptor, b"12")
        os.access("/", os.F_OK)
    here, there = socket.socketpair()
    here.send(b"hello")
    os.write(here.fileno(), b"more")
    print(os.read(there.fileno(), 100))
    os.close(descriptor)
    # Its number was a file's, and is a socket's now.
    os.dup2(here.fileno(), descriptor)
    os.write(descriptor, b"again")
    print(os.read(there.fileno(), 100))
    sqlite3.connect(":memory:").execute("select 1").close()
    if os.fork() == 0:
        os.access("/", os.F_OK)
        os._exit(0)
    os.wait()
    try:
        os.stat("nowhere")
    except FileNotFoundError as error:
        print(error)
"""
SAID = "b'hellomore'\nb'again'\n[Errno 2] No such file or directory: 'nowhere'\n"


def kinds_of(done, process=None):
    process = process or done.experiment.founder
    return {process.intrinsic(event.intrinsic).kind for event in done.events(process=process)}


def counted_of(process):
    found = Counter()
    for number, counted in process.counts.items():
        found[process.intrinsic(number).name] += counted
    return found


def timed_of(done):
    """How many calls of each intrinsic were timed in the whole experiment."""
    rows = profile(Analysis(done.experiment), "intrinsic").rows
    return {row.intrinsic: row.sums.calls for row in rows if row.kind == "file"}


def test_only_the_kinds_asked_for_are_recorded(traced):
    done = traced(CALLS, INTERPOSE_KINDS="db,net")
    founder = done.experiment.founder

    assert (done.stdout, done.returncode) == (SAID, 0)
    # What starts and awaits processes is always recorded.
    assert kinds_of(done) == {"db", "net", "process", "idle"}
    assert [event.bytes for event in done.events("os.write")] == [4, 5]
    assert done.events("os.access") == []
    assert founder.counts == {}
    assert not os.path.exists(os.path.join(founder.directory, "counts"))
    assert founder.not_interposed == {}
    assert [each.lineage for each in done.experiment.processes] == ["", "_f1"]


def test_what_is_counted_is_counted_in_each_process(traced, interpose_here):
    done = traced(CALLS, INTERPOSE_KINDS="all", INTERPOSE_LEVELS="os.access=count,os.write=count,sqlite3=off")
    founder, child = done.experiment.processes

    assert (done.stdout, done.returncode) == (SAID, 0)
    assert (counted_of(founder)["os.access"], counted_of(child)["os.access"]) == (20, 1)
    assert counted_of(founder)["os.write"] == 22
    assert done.events("os.write") == done.events("os.access") == done.events("sqlite3.Connection.execute") == []
    made = profile(Analysis(Experiment(done.path)), "intrinsic")
    rows = {(row.kind, row.intrinsic): row for row in made.rows}
    assert (rows["file", "os.access"].counted, rows["file", "os.access"].is_timed) == (21, False)
    assert (rows["file", "os.write"].counted, rows["net", "os.write"].counted) == (20, 2)
    assert all(thread.adds_up for process in done.experiment.processes for thread in process.threads)
    shown = interpose_here("report", done.path).stdout
    assert "calls counted, their time is in code, or in the surrounding call: os." in " ".join(shown.split())
    lines = interpose_here("report", done.path, "--by", "intrinsic").stdout.splitlines()
    (line,) = [line for line in lines if "os.access" in line]
    assert line.split()[:4] == ["file", "os.access", "0", "21"]
    assert "ms" not in line
    assert "us" not in line
    assert "os.access" in interpose_here("export", done.path).stdout


def test_what_is_not_timed_is_called_once_and_raises_as_before(traced):
    source = """
        import os, threading, time
        for function, words in ((time.sleep, (-1,)), (os.stat, ()), (os.listdir, ("/nowhere",)), (os.close, (-1,))):
            try:
                function(*words)
            except Exception as error:
                print(type(error).__name__, error)
        lock = threading.Lock()
        with lock:
            print(lock.acquire(timeout=0.01), lock.locked())
    """
    plain = traced(source, INTERPOSE="0")
    for how in ("off", "count"):
        done = traced(source, INTERPOSE_KINDS=",".join(f"{kind}={how}" for kind in ("db", "file", "sync", "sleep")))
        assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, plain.returncode)


def test_wrapt_has_levels_too(traced):
    done = traced(CALLS, INTERPOSE_BY="wrapt", INTERPOSE_KINDS="db,file=count")

    assert (done.stdout, done.returncode) == (SAID, 0)
    assert counted_of(done.experiment.founder)["os.access"] == 20
    assert len(done.events("sqlite3.Connection.execute")) == 1
    assert done.events("os.access") == done.events("socket.socket.send") == []


BUSY = """
    import os, sys, time
    descriptor = os.open("/dev/null", os.O_WRONLY)
    made = 0
    while time.process_time() < {seconds}:
        for _ in range(1000):
            os.write(descriptor, b"x")
        os.stat("/")
        made += 1000
    print(made)
    {then}
"""


@pytest.mark.long
def test_the_budget_lowers_what_costs_most_and_each_step_is_told(traced, interpose_here):
    done = traced(BUSY.format(seconds=3, then=""), INTERPOSE_BUDGET="0.1%")
    founder = done.experiment.founder
    steps = [each for each in founder.log.events if each.kind == "level"]

    assert [each.level for each in steps if founder.intrinsic(each.intrinsic).name == "os.write"] == ["count", "off"]
    timed, counted = timed_of(done)["os.write"], counted_of(founder)["os.write"]
    assert min(timed, counted) > 0
    assert timed + counted < int(done.stdout)
    assert all(thread.adds_up for thread in founder.threads)
    shown = interpose_here("report", done.path).stdout
    assert "throttled  os.write to count after" in shown
    assert "% of the CPU time" in shown


@pytest.mark.long
def test_within_the_budget_nothing_is_throttled(traced):
    done = traced(BUSY.format(seconds=1.2, then=""), INTERPOSE_BUDGET="100%", INTERPOSE_SAMPLE="off")

    assert [each.kind for each in done.experiment.founder.log.events] == ["exit"]
    assert timed_of(done)["os.write"] == int(done.stdout)


MARKED = """
    import os, sys, time
    from interpose import transaction
    descriptor = os.open(os.devnull, os.O_WRONLY)
    def work(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(1000):
                os.write(descriptor, b"x")
            time.sleep(0.005)
    for _ in range(2):
        with transaction("batch"):
            work(1.4)
    if len(sys.argv) > 1:
        work(1.5)
"""

JOBS = """
    import os, time
    from interpose import transaction
    made = 0
    while time.process_time() < 2.5:
        with transaction("job"):
            os.stat("/")
        made += 1
    print(made)
"""


@pytest.mark.long
def test_transactions_that_are_missing_because_of_the_budget_are_told_beside_their_table(traced, interpose_here):
    done = traced(JOBS, INTERPOSE_BUDGET="0.1%")
    shown = interpose_here("transactions", done.path, "--format", "json")
    (jobs,) = [each["count"] for each in json.loads(shown.stdout) if each["transaction"] == "job"]
    counted = counted_of(done.experiment.founder)["interpose.transaction"]
    told = [line for line in shown.stderr.splitlines() if "throttled to keep to the budget" in line]
    steps = [each for each in done.experiment.founder.log.events if each.kind == "level"]

    assert 0 < jobs < jobs + counted <= int(done.stdout)
    assert len(told) == 2
    assert f": interpose.transaction, {counted:,} calls only counted" in told[0]
    assert "; those after it are not in the table" in told[0]
    assert ("more not even counted" in told[0]) == (jobs + counted < int(done.stdout))
    assert ("interpose.transaction off after " in told[0]) == (jobs + counted < int(done.stdout))
    assert sum(line.count(" off after ") for line in told) == sum(each.level == "off" for each in steps)
    assert ": os.stat, " in told[1] and "the time of those after it is in code" in told[1]


SERVING = """
    import http.client, http.server, os, threading, time
    descriptor = os.open(os.devnull, os.O_WRONLY)
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                for _ in range(1000):
                    os.write(descriptor, b"x")
                time.sleep(0.005)
            self.send_response(204)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.handle_request)
    serving.start()
    client = http.client.HTTPConnection("127.0.0.1", server.server_port)
    client.request("GET", "/")
    print(client.getresponse().status)
    serving.join()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "name"),
    [(MARKED, "interpose.transaction"), (SERVING, "http.server.BaseHTTPRequestHandler.handle_one_request")],
)
def test_within_a_transaction_nothing_is_throttled(traced, source, name):
    done = traced(source, "then", INTERPOSE_BUDGET="0.1%", INTERPOSE_KINDS="file,logic")
    found = done.events(name)
    steps = [each.time_ns for each in done.experiment.founder.log.events if each.kind == "level"]

    assert len(found) == (2 if source is MARKED else 1)
    assert steps or source is SERVING
    assert len(done.events("os.write")) > 10_000
    assert not [
        time_ns for time_ns in steps for each in found if each.start_ns <= time_ns <= each.start_ns + each.wall_ns
    ]


@pytest.mark.long
def test_a_forked_child_begins_at_its_parents_levels(traced):
    then = "os.fork() or (os.write(descriptor, b'y'), os._exit(0)); os.wait()"
    done = traced(BUSY.format(seconds=1.5, then=then), INTERPOSE_BUDGET="0.01%")
    founder, child = done.experiment.processes

    assert [each.level for each in founder.log.events if each.kind == "level"][:1] == ["count"]
    assert done.events("os.write", child) == []


def test_an_intrinsic_is_switched_off_while_the_program_runs(traced):
    source = """
        import os, sys
        shims = sys.modules["interpose.timing.shims"]
        text = open("test.1.er/map.xml").read()
        number = int(text.partition('name="os.stat"')[0].rpartition('number="')[2].partition('"')[0])
        for level in ("time", "count", "off"):
            lowered = level == "time" or shims.lower(number, level)
            for _ in range(10):
                os.stat("/usr")
            print(lowered)
        print(shims.lower(999999, "off"))
    """
    done = traced(source)

    assert done.stdout == "True\nTrue\nTrue\nFalse\n"
    founder = done.experiment.founder
    assert len([event for event in done.events("os.stat") if founder.string(event.detail) == "/usr"]) == 10
    assert counted_of(founder) == {"os.stat": 10}


def levels_of(kinds, levels):
    intrinsics = [
        Intrinsic("os.write", "posix:write", "file screen net process idle"),
        Intrinsic("os.stat", "posix:stat", "file"),
        Intrinsic("redis.Redis.get", "redis:Redis.get", "db"),
    ]
    for intrinsic in intrinsics:
        intrinsic.library = "orders" if intrinsic.module == "redis" else "system"
    return {each.name: each.levels for each in assign(intrinsics, parse_kinds(kinds), parse_levels(levels))}


def test_the_longest_name_goes_before_the_library_and_that_before_the_kind():
    everything = levels_of("all", "time")
    assert {level for levels in everything.values() for level in levels} == {"time"}
    assert levels_of("net,file=count", "time") == {
        "os.write": ["count", "off", "time", "off", "count"],
        "os.stat": ["count"],
        "redis.Redis.get": ["off"],
    }
    assert levels_of("all", "orders=off")["redis.Redis.get"] == ["off"]
    assert levels_of("all", "orders=off,redis.Redis=count,redis=time")["redis.Redis.get"] == ["count"]
    assert levels_of("db", "os.stat=time,system=count") == {
        "os.write": ["count"] * 5,
        "os.stat": ["time"],
        "redis.Redis.get": ["time"],
    }


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_kinds, text) for text in ("disk", "db,", "db=slow", "idle", "db=")),
        *((parse_levels, text) for text in ("os.stat", "os.stat=slow", "=off", "os..stat=off", "a b=off")),
        *((parse_budget, text) for text in ("2", "0%", "101%", "-1%", "%", "nan%", "1e9%", "2%%")),
    ],
)
def test_what_means_nothing_is_refused(parse, text):
    with pytest.raises(ValueError, match="not"):
        parse(text)


def test_a_budget_is_a_share():
    assert [parse_budget(text) for text in ("off", "2%", "0.5%", "100%")] == [0, 20_000, 5_000, 1_000_000]
