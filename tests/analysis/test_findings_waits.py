"""Findings of waiting: sleeps, convoys, the interpreter lock, native calls of databases."""

import pytest
from shops import MS, Shop

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from interpose.reports.tables.findings import findings_table
from tests.build import SECOND, START_NS, Build, event


def with_native_calls(shop, *, name, kind, native_ns, native_cpu_ns, cpu_ns):
    """Twenty calls of a database of 10 ms each, with a native call in each."""
    for _ in range(20):
        at, outer = shop.now.get(1, 0), len(shop.rows) + 2
        shop.call(name, kind, "/tmp/a.db", each_ns=native_ns, inside=outer, cpu_ns=native_cpu_ns)
        shop.now[1] = at
        inner = {"inner_wall_ns": native_ns, "inner_cpu_ns": native_cpu_ns}
        shop.call("psycopg2.cursor.fetchall", "db", each_ns=10 * MS, cpu_ns=cpu_ns, **inner)


def test_a_database_that_waits_for_the_disk_is_told(shop):
    with_native_calls(shop, name="libc.fdatasync", kind="file", native_ns=8 * MS, native_cpu_ns=MS, cpu_ns=3 * MS)

    assert shop.found() == [("database waits for the disk", 20, 200 * MS, 140 * MS)]


def test_a_database_that_sleeps_until_others_let_go_is_told(shop):
    with_native_calls(shop, name="libc.usleep", kind="sleep", native_ns=9 * MS, native_cpu_ns=0, cpu_ns=MS)

    assert shop.found() == [("database waits for a lock", 20, 200 * MS, 180 * MS)]


def test_a_driver_that_computes_while_its_server_does_not_is_told(shop):
    with_native_calls(shop, name="libc.recv", kind="net", native_ns=2 * MS, native_cpu_ns=MS, cpu_ns=8 * MS)

    assert shop.found() == [("driver computes", 20, 200 * MS, 140 * MS)]


def test_a_driver_that_computes_what_was_received_before_is_told(shop):
    shop.call("libc.recv", "net", "db:5432", each_ns=10, inside=2)
    shop.now[1] = 0
    shop.call("psycopg2.cursor.execute", "db", inner_wall_ns=10)
    shop.call("psycopg2.cursor.fetchall", "db", line=89, each_ns=200 * MS, cpu_ns=180 * MS)

    assert shop.found() == [("driver computes", 1, 200 * MS, 180 * MS)]


def test_a_server_that_takes_its_time_is_neither(shop):
    with_native_calls(shop, name="libc.recv", kind="net", native_ns=8 * MS, native_cpu_ns=MS, cpu_ns=2 * MS)

    assert shop.found() == []


def test_a_database_in_the_process_may_compute(shop):
    with_native_calls(shop, name="libc.pread64", kind="file", native_ns=2 * MS, native_cpu_ns=MS, cpu_ns=8 * MS)

    assert shop.found() == []


def test_native_calls_of_a_database_are_no_files_of_the_program(shop):
    for _ in range(200):
        outer = len(shop.rows) + 3
        shop.call("libc.pread64", "file", "/tmp/a.db", bytes=16, inside=outer, each_ns=10)
        shop.call("libc.fdatasync", "file", "/tmp/a.db", inside=outer, each_ns=10)
        shop.call("sqlite3.Cursor.execute", "db", cpu_ns=MS, inner_wall_ns=20)

    assert shop.found() == []


def test_a_sleep_in_a_transaction_is_told(shop):
    shop.request("GET /slow", lambda inside: shop.call("time.sleep", "sleep", inside=inside, each_ns=50 * MS))

    assert shop.found() == [("sleep within a transaction", 1, 50 * MS, 50 * MS)]


@pytest.mark.parametrize(("name", "words"), [("nap", "within the transaction {}"), ("job", "from {} within job")])
def test_a_function_with_the_name_of_the_transaction_is_named_once(traced, name, words):
    done = traced(f"""
    import time
    from interpose import transaction
    def nap():
        with transaction("{name}"):
            time.sleep(1)
    nap()
    """)
    survey = Survey(Analysis(done.experiment))
    found = found_in(survey)
    (sleep,) = [each for each in found if each.rule == "sleep within a transaction"]
    sentence = Sentences(found, str(done.directory), survey.matters_ns).of(sleep)

    assert sentence.startswith(f"1 sleep {words.format('program.py:6 nap')} (")


def test_a_sleep_outside_of_any_is_none(shop):
    shop.request("GET /fast", lambda inside: shop.call("os.stat", "file", "/a", inside=inside))
    shop.call("time.sleep", "sleep", each_ns=50 * MS)

    assert shop.found() == []


HELD = "held by thread 3 at /home/u/shop/stock.py:17 Stock.take"


def test_a_convoy_names_the_line_that_holds_the_lock(shop):
    for thread in (1, 2):
        shop.call("threading.Lock.acquire", "sync", HELD, times=6, each_ns=5 * MS, thread=thread, line=88 + thread)

    found = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    (finding,) = found
    assert (finding.calls, finding.bound_ns, finding.units) == (12, 60 * MS, 2)
    words = findings_table(found, SECOND, "/home/u/shop").values(finding)["words"]
    assert words == (
        "2 threads waited 12 times at orders.py:89 line_89, orders.py:90 line_90 for a lock held at"
        " stock.py:17 Stock.take (60.0 ms of 1.00 s)."
    )


def test_a_library_that_holds_the_lock_has_as_short_a_path_as_other_lines(shop):
    held = "held by thread 3 at /usr/lib/python3.12/concurrent/futures/thread.py:89 _worker"
    for thread in (1, 2):
        shop.call("threading.Lock.acquire", "sync", held, times=6, each_ns=5 * MS, thread=thread)

    (finding,) = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    assert "for a lock held at thread.py:89 _worker (" in Sentences([finding], "/home/u/shop", SECOND).of(finding)


def test_a_few_waits_or_an_unknown_holder_are_no_convoy(shop):
    shop.call("threading.Lock.acquire", "sync", HELD, times=9)
    shop.call("threading.Lock.acquire", "sync", "held by thread 3", times=50)

    assert shop.found() == []


def test_one_thread_that_waits_and_who_waits_for_threads_to_end_are_no_convoy(shop):
    shop.call("threading.Lock.acquire", "sync", HELD, times=30)
    for thread in (1, 2):
        joined = "held by thread 4 at /usr/lib/python3.12/threading.py:1030 Thread._bootstrap"
        shop.call("threading.Thread.join", "sync", joined, times=30, thread=thread)

    assert shop.found() == []


def test_a_convoy_for_the_interpreter_lock_names_the_line_that_gave_it_up(shop):
    for thread in (1, 2):
        shop.call("interpreter lock", "gil", HELD, times=6, each_ns=30 * MS, thread=thread, line=88 + thread)
    shop.call("interpreter lock", "gil", "", times=100, each_ns=MS // 1000)

    (finding,) = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    assert (finding.calls, finding.bound_ns, finding.units) == (12, 360 * MS, 2)
    assert Sentences([finding], "/home/u/shop", SECOND).of(finding) == (
        "2 threads waited 12 times at orders.py:89 line_89, orders.py:90 line_90 for Python's interpreter lock, given"
        " up at stock.py:17 Stock.take (360 ms of 1.00 s)."
    )
    assert advice_for(finding) == (
        "Only one thread at a time runs Python code. Move what computes there, or just before, to processes."
    )


@pytest.mark.parametrize(
    "place", ["reduction.py:51 ForkingPickler.dumps", "reduction.py:60 dump", "queues.py:264 Queue._feed"]
)
def test_a_convoy_for_the_interpreter_lock_that_pickling_for_a_pool_had_does_not_advise_processes(shop, place):
    held = f"held by thread 4 at /usr/lib/python3.12/multiprocessing/{place}"
    shop.call("interpreter lock", "gil", held, times=6, each_ns=30 * MS)

    (finding,) = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    assert advice_for(finding).startswith("It pickles what is sent to other processes: send less data")


def test_short_waits_for_the_interpreter_lock_are_no_convoy(shop):
    for thread in (1, 2):
        shop.call("interpreter lock", "gil", HELD, times=20, each_ns=MS, thread=thread)

    assert shop.found() == []


def test_where_calls_were_not_recorded_nothing_is_said_of_waits(tmp_path):
    shop = Shop(tmp_path / "l.1.er", settings={"INTERPOSE": "lines"})

    assert shop.found() == []


@pytest.mark.parametrize("in_request_ms", [0, 440])
def test_threads_that_compute_at_a_time_wait_for_the_interpreter_lock_most_likely(tmp_path, in_request_ms):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS)
    shop.now = {1: 0, 2: 0}
    for thread in (1, 2) if in_request_ms else ():
        shop.call("wsgi.request", "logic", thread=thread, each_ns=in_request_ms * MS, cpu_ns=in_request_ms * MS)

    (wait,) = [each for each in found_in(shop.survey()) if each.rule == "unexplained wait"]

    assert Sentences([wait], "/", 2 * SECOND).of(wait).startswith(
        "2 threads computed at the same time and probably waited for Python's interpreter lock (1."
    )
    assert advice_for(wait).startswith("Only one thread at a time runs Python code.")


def test_what_is_left_where_waits_for_the_interpreter_lock_are_known_is_none(tmp_path):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS)
    shop.now = {1: 0, 2: 0}
    shop.call("interpreter lock", "gil", "", each_ns=MS)

    (wait,) = [each for each in found_in(shop.survey()) if each.rule == "unexplained wait"]

    assert "interpreter lock" not in Sentences([wait], "/", 2 * SECOND).of(wait)


def test_waiting_that_nobody_saw_is_told(tmp_path):
    waiting = Shop(tmp_path / "t.1.er", cpu_ns=10 * MS).survey()

    assert [each.rule for each in found_in(waiting)] == ["unexplained wait"]

    busy = Shop(tmp_path / "t.2.er", cpu_ns=SECOND)
    assert "unexplained wait" not in [each.rule for each in found_in(busy.survey())]


LIMITED = """
import threading, time
{preparation}
def work():
    for _ in range(10):
        begun_ns = time.perf_counter_ns()
        {begins}
        waited.append(time.perf_counter_ns() - begun_ns)
        time.sleep(0.005)
        {ends}
waited = []
threads = [threading.Thread(target=work) for _ in range(6)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sum(waited))
"""
POOL = """
import queue, threading
class Stock:
    def __init__(self, free):
        self.free = free
        self.free.put(1)
    def get_connection(self):
        return self.free.get()
class Pool:
    def __init__(self):
        self.free, self.changed = [1], threading.Condition()
    def take(self):
        with self.changed:
            while not self.free:
                self.changed.wait()
            return self.free.pop()
    def give(self, one):
        with self.changed:
            self.free.append(one)
            self.changed.notify()
"""
TAKEN = ("one = pool.get_connection()", "pool.free.put(one)")


@pytest.mark.parametrize(
    ("preparation", "begins", "ends", "intrinsic"),
    [
        ("turn = threading.Semaphore(1)", "turn.acquire()", "turn.release()", "threading.Semaphore.acquire"),
        ("from pool import Pool; pool = Pool()", "one = pool.take()", "pool.give(one)", "threading.Condition.wait"),
        ("from pool import *; pool = Stock(queue.LifoQueue())", *TAKEN, "queue.Queue.get"),
        ("from pool import *; pool = Stock(queue.SimpleQueue())", *TAKEN, "queue.SimpleQueue.get"),
    ],
)
def test_threads_that_wait_for_their_turn_are_told_first(traced, tmp_path, preparation, begins, ends, intrinsic):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "pool.py").write_text(POOL)
    done = traced(LIMITED.format(preparation=preparation, begins=begins, ends=ends), PYTHONPATH=str(library))
    waited_ns = int(done.stdout)

    first, *_ = found_in(Survey(Analysis(done.experiment)))

    assert (first.rule, first.first.intrinsic, first.first.site.line) == ("waits for a turn", intrinsic, 7)
    assert 2 <= first.units <= 6
    assert 0.9 * waited_ns < first.wall_ns <= waited_ns


@pytest.mark.parametrize(
    "wait",
    [
        "pool.submit(time.sleep, 0.3).result()",
        "barrier.wait()",
        "with changed: changed.wait_for(lambda: over)",
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(0.3), loop).result()",
        "everywhere.wait()",
    ],
)
def test_threads_that_wait_for_what_others_do_wait_for_no_turn(traced, wait):
    done = traced(f"""
import asyncio, multiprocessing, threading, time
from concurrent.futures import ThreadPoolExecutor
pool, barrier, changed, over = ThreadPoolExecutor(8), threading.Barrier(5), threading.Condition(), []
loop, everywhere = asyncio.new_event_loop(), multiprocessing.Event()
threading.Thread(target=loop.run_forever, daemon=True).start()
def work():
    {wait}
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads:
    each.start()
time.sleep(0.3)
over.append(1)
with changed:
    changed.notify_all()
everywhere.set()
if "barrier" in "{wait[:8]}":
    barrier.wait()
for each in threads:
    each.join()
""")

    assert "waits for a turn" not in [each.rule for each in found_in(Survey(Analysis(done.experiment)))]


def test_threads_that_wait_for_a_message_wait_for_no_turn(traced):
    done = traced("""
import threading, time
told, changed, over = threading.Event(), threading.Condition(), []
def wait():
    told.wait()
    with changed:
        while not over:
            changed.wait()
threads = [threading.Thread(target=wait) for _ in range(4)]
for each in threads:
    each.start()
time.sleep(0.3)
told.set()
time.sleep(0.3)
with changed:
    over.append(1)
    changed.notify_all()
for each in threads:
    each.join()
""")

    assert "waits for a turn" not in [each.rule for each in found_in(Survey(Analysis(done.experiment)))]


@pytest.mark.parametrize(
    ("settings", "event"),
    [
        ({"INTERPOSE_KINDS": "db,net=count"}, ""),
        ({"INTERPOSE_KINDS": "all", "INTERPOSE_LEVELS": "time.sleep=off"}, ""),
        ({"INTERPOSE_FILTER": "kind=db"}, ""),
        ({}, f'<event kind="filter" time_ns="{START_NS}">kind=db</event>'),
    ],
)
def test_where_calls_were_left_out_a_wait_may_be_in_these(tmp_path, settings, event):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS, settings=settings)
    shop.now = {1: 0, 2: 0}
    shop.log_events += [event] if event else []

    assert "unexplained wait" not in [each.rule for each in found_in(shop.survey())]


@pytest.mark.parametrize("kinds", ["all", "all,import", "all,sync=time"])
def test_where_no_calls_were_left_out_a_wait_is_told(tmp_path, kinds):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS, settings={"INTERPOSE_KINDS": kinds, "INTERPOSE_LEVELS": "time"})
    shop.now = {1: 0, 2: 0}

    assert "unexplained wait" in [each.rule for each in found_in(shop.survey())]


@pytest.mark.parametrize(("stack", "told"), [("none", ["no lines"]), ("own", [])])
def test_calls_without_lines_are_told_where_they_were_not_asked_for(tmp_path, stack, told):
    shop = Shop(tmp_path / "t.1.er", settings={"INTERPOSE_STACK": stack})
    shop.call("os.stat", "file", "/a", line=0, each_ns=300 * MS)

    assert [rule for rule, *_ in shop.found()] == told


@pytest.mark.parametrize(
    ("code_ms", "code_cpu_ms", "commits_ms", "delay_ms", "rules"),
    [
        (1000, 400, 0, 600, ["computing", "wait for CPU"]),
        (1000, 60, 0, 900, ["wait for CPU", "computing"]),
        (1000, 400, 400, 600, ["computing", "wait for CPU", "slow calls"]),
        (200, 200, 800, 700, ["slow calls", "wait for CPU"]),
    ],
)
def test_a_wait_for_a_processor_comes_after_own_causes_that_explain_as_much(
    tmp_path, code_ms, code_cpu_ms, commits_ms, delay_ms, rules
):
    build, whole_ns = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0), (code_ms + commits_ms) * MS
    commit, stack = build.intrinsic("sqlite3.Connection.commit", "db"), build.stack(build.site("/home/u/a.py", 3, "f"))
    build.events([event(0, commits_ms * MS, intrinsic=commit, stack=stack)])
    ends = {"end_ns": START_NS + whole_ns, "end_cpu_ns": code_cpu_ms * MS}
    build.thread(**ends, run_delay_ns=delay_ms * MS, main=1, tid=812, recorded=1)
    build.ended(whole_ns, code_cpu_ms * MS)

    found = found_in(Survey(Analysis(Experiment(str(build.write())))), 0.05)

    assert [each.rule for each in found if each.rule != "unexplained wait"] == rules


@pytest.mark.parametrize(
    ("request_ms", "rules"), [(1000, ["computing", "wait for CPU"]), (0, ["wait for CPU"])], ids=["all", "none"]
)
def test_a_wait_for_a_processor_in_a_request_is_of_its_code(tmp_path, request_ms, rules):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    names = ("wsgi.request", "logic", "is") if request_ms else ("os.read", "file", "")
    intrinsic = build.intrinsic(*names[:2], transaction=names[2])
    build.events([event(0, 1000 * MS, 100 * MS, intrinsic=intrinsic)])
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=100 * MS, run_delay_ns=880 * MS, main=1, tid=812, recorded=1)
    build.ended(SECOND, 100 * MS)

    found = found_in(Survey(Analysis(Experiment(str(build.write())))))

    assert [each.rule for each in found] == rules


@pytest.mark.parametrize("is_in_progress", [False, True])
def test_a_wait_for_a_processor_is_no_longer_than_the_waits_that_were_not_for_work(tmp_path, is_in_progress):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    get, stack = build.intrinsic("queue.Queue.get", "idle"), build.stack(build.site("/home/u/a.py", 3, "f"))
    read = build.intrinsic("os.read", "file")
    ended = [event(0, 100 * MS, 20 * MS, intrinsic=read, stack=stack)]
    ended += [] if is_in_progress else [event(200 * MS, 800 * MS, 10 * MS, intrinsic=get, stack=stack, call=2)]
    there = [{"start_ns": START_NS + 200 * MS, "start_cpu_ns": 80 * MS, "call": 2, "intrinsic": get, "stack": stack}]
    build.events(ended)
    ends = {"end_ns": START_NS + SECOND, "end_cpu_ns": 90 * MS, "open_calls": there if is_in_progress else []}
    build.thread(**ends, run_delay_ns=600 * MS, main=1, tid=812, recorded=len(ended), made=2)
    build.ended(SECOND, 90 * MS)
    survey = Survey(Analysis(Experiment(str(build.write()))))

    (found,) = [each for each in found_in(survey) if each.rule == "wait for CPU"]

    assert survey.matters_ns == 210 * MS
    assert found.wall_ns == (100 - 20 + 100 - 60) * MS
    assert sum(survey.unseen) - survey.unseen.unexplained_ns == 600 * MS


@pytest.mark.parametrize(("delay_ms", "first"), [(600, "repeated work"), (900, "wait for CPU")])
def test_a_wait_for_a_processor_in_repeated_calls_would_go_with_them(tmp_path, delay_ms, first):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    opening, stack = build.intrinsic("io.FileIO", "file"), build.stack(build.site("/home/u/a.py", 3, "f"))
    path = build.string("/etc/shop.conf")
    calls = [event(at * MS, 5 * MS, MS, intrinsic=opening, stack=stack, detail=path) for at in range(0, 400, 5)]
    build.events(calls)
    ends = {"end_ns": START_NS + SECOND, "end_cpu_ns": 100 * MS}
    build.thread(**ends, run_delay_ns=delay_ms * MS, main=1, tid=812, recorded=len(calls))
    build.ended(SECOND, 100 * MS)

    found = found_in(Survey(Analysis(Experiment(str(build.write())))))

    assert next(each.rule for each in found if each.rule != "unexplained wait") == first


def test_of_repeated_calls_one_that_took_far_longer_is_told_apart_from_the_others(shop):
    shop.call("os.read", "net", "10.0.0.1:80", each_ns=2_000 * MS)
    for _ in range(20):
        shop.call("os.read", "net", "10.0.0.1:80", each_ns=MS)
    survey = shop.survey()
    (found,) = [each for each in found_in(survey) if each.rule == "slow calls"]

    words = Sentences([found], "/home/u", survey.matters_ns).of(found)
    assert "21 calls of os.read" in words
    assert ", 2.00 s in one, 1.00 ms in each other (" in words
