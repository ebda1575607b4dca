"""Who waits for new work is idle: workers at their queues, pools, parents of processes; who needs a result is not."""

import collections
import json
import sys
import textwrap

import pytest
from idling import LETS_WAIT, MEASURED, kinds, kinds_inside, main_thread, other_threads, waits, wall_ns
from packaged import make_package

from interpose.analysis.recording.installed import packages_above
from interpose.analysis.time.waits_for_turns import takes_from_pool


@pytest.mark.interpreter_lock
def test_an_event_loop_that_has_nothing_but_timers_and_pipes_is_idle(traced):
    done = traced("""
        import asyncio
        asyncio.run(asyncio.sleep(0.15))
    """)

    assert kinds(waits(done)) == [("asyncio.sleep", "sleep"), ("select.epoll.poll", "idle")]


def test_workers_that_wait_for_their_queue_are_idle(traced):
    done = traced(textwrap.dedent(MEASURED) + LETS_WAIT + textwrap.dedent("""
        import concurrent.futures, queue, threading
        waiting, simple = queue.Queue(), queue.SimpleQueue()
        def work(source):
            with measured():
                assert source.get() == "work"
        def let_it_wait():
            let_wait(0.2, os.getpid(), [worker.native_id])
        for source in waiting, simple:
            worker = threading.Thread(target=work, args=(source,))
            worker.start()
            let_it_wait()
            source.put("work")
            worker.join()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            with measured():
                worker = executor.submit(threading.current_thread).result()
                let_it_wait()
                executor.submit(int).result()
        print(took_ns)
    """))
    founder = done.experiment.founder
    plain, simple, pooled = (waits(done, thread=number) for number in other_threads(founder))

    assert done.stderr == ""
    assert kinds(plain) == [("queue.Queue.get", "idle")]
    assert kinds_inside(done, founder, plain[0][2]) == {"idle"}
    assert kinds(simple) == [("queue.SimpleQueue.get", "idle")]
    assert kinds(pooled) == [("queue.SimpleQueue.get", "idle")]
    for found, took_ns in zip((plain, simple, pooled), json.loads(done.stdout), strict=True):
        assert 200e6 <= wall_ns(found, "idle") <= took_ns


POOLS = LETS_WAIT + """
import queue, sys, threading

class ThreadPool:
    def __init__(self):
        self.work = queue.Queue()

    def run(self):
        return self.work.get()

class ConnectionPool:
    def __init__(self):
        self.free = queue.LifoQueue()

    def get_connection(self):
        return self.free.get()

def let_wait_for(waits, source):
    worker = threading.Thread(target=waits)
    worker.start()
    let_wait(0.2, os.getpid(), [worker.native_id])
    source.put("given")
    worker.join()
"""


def test_only_who_takes_from_a_packages_pool_waits_for_no_work(traced, tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "pools.py").write_text(POOLS)
    done = traced(
        """
        import queue
        from pools import *
        class OwnPool(ConnectionPool):
            def get_connection(self):
                return self.free.get()
        workers, connections, own = ThreadPool(), ConnectionPool(), OwnPool()
        let_wait_for(workers.run, workers.work)
        let_wait_for(connections.get_connection, connections.free)
        let_wait_for(own.get_connection, own.free)
        """,
        PYTHONPATH=str(library),
    )
    founder = done.experiment.founder
    waited = [kinds(waits(done, thread=number)) for number in other_threads(founder)]

    assert done.stderr == ""
    assert waited == [[("queue.Queue.get", kind)] for kind in ("idle", "sync", "idle")]


NAMES = [
    *("_get_conn", "get_connection", "_do_get", "acquire", "connect", "get", "take", "_take", "session", "check_out"),
    *("get_task", "get_job", "take_work", "take_items", "next_message", "await_event", "get_request", "run", "getter"),
    *("client_thread", "GET_CLIENT", "get_nothing", "pool", "borrow", "connection_task"),
]
HOLDERS = ["ConnectionPool", "WorkerPool", "Other"]
FILES = ["site-packages/lib/pool.py", "dist-packages/lib/tasks_pool.py", "site-packages/pool/impl.py"]


def test_what_takes_from_a_pool_is_the_same_in_a_recording_and_in_its_analysis(traced):
    done = traced(
        f"""
        import queue
        for file in {FILES} + ["my-packages/lib/pool.py"]:
            for holder in {HOLDERS}:
                for name in {NAMES}:
                    code = f"class {{holder}}:\\n    def {{name}}(self, free):\\n        return free.get()\\n"
                    made = {{}}
                    exec(compile(code, f"/x/{{file}}", "exec"), made)
                    for free in queue.Queue(), queue.SimpleQueue():
                        for turn in range(2):
                            free.put(1)
                            getattr(made[holder](), name)(free)
        """,
        INTERPOSE_SYNC="all",
    ).ended_well()
    founder = done.experiment.founder
    told = {"sync": set(), "idle": set()}
    for event in done.events():
        if (intrinsic := founder.intrinsic(event.intrinsic)).name in QUEUES:
            site = next(iter(founder.frames(event.stack)))
            told[intrinsic.kind].add((site.file, site.function, intrinsic.name))
            expected = bool(packages_above(site.file)) and takes_from_pool(site)
            assert (intrinsic.kind == "sync") == expected, (site.file, site.function)

    assert told["sync"].isdisjoint(told["idle"])
    assert len(told["sync"] | told["idle"]) == 2 * (len(FILES) + 1) * len(HOLDERS) * len(NAMES)
    taken = {(file.rpartition("-packages/")[2], function) for file, function, _ in told["sync"]}
    assert {("lib/pool.py", "ConnectionPool._get_conn"), ("pool/impl.py", "ConnectionPool._do_get")} <= taken
    assert {("lib/pool.py", "WorkerPool.get_job"), ("lib/tasks_pool.py", "Other.get_task")}.isdisjoint(taken)
    assert not [file for file, _, _ in told["sync"] if "my-packages" in file]


def test_one_line_that_asks_a_queue_for_many_is_of_the_kind_of_each_stack(traced, tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "pools.py").write_text("""
def ask(free):
    return free.get()
class Pool:
    def get_connection(self, free):
        return ask(free)
    def get_task(self, free):
        return ask(free)
""")
    done = traced(
        """
        import queue
        from pools import Pool
        free, pool = queue.SimpleQueue(), Pool()
        for turn in range(5):
            for take in pool.get_connection, pool.get_task:
                free.put(1)
                take(free)
        """,
        INTERPOSE_SYNC="all",
        PYTHONPATH=str(library),
    ).ended_well()
    founder = done.experiment.founder
    kinds_of_calls = [founder.intrinsic(event.intrinsic).kind for event in done.events("queue.SimpleQueue.get")]

    assert kinds_of_calls == ["sync", "idle"] * 5


def test_who_asks_a_queue_without_waiting_is_not_idle(traced):
    done = traced(
        """
        import queue
        for source in queue.Queue(), queue.SimpleQueue():
            [source.put(number) for number in range(4)]
            print(source.get(False), source.get(block=False), source.get_nowait(), source.get())
        """,
        INTERPOSE_SYNC="all",
    )
    founder = done.experiment.founder
    kept = {name: [founder.intrinsic(event.intrinsic).kind for event in done.events(name)] for name in QUEUES}

    assert (done.stdout, done.stderr) == ("0 1 2 3\n" * 2, "")
    assert kept["queue.Queue.get"] == ["sync"] * 3 + ["idle"]
    assert [kept["queue.SimpleQueue.get"][place] for place in (0, 1, -1)] == ["sync", "sync", "idle"]


QUEUES = ("queue.Queue.get", "queue.SimpleQueue.get")
SERVING = LETS_WAIT + """
import queue, subprocess, threading

def put(work, waiting):
    let_wait(0.05, os.getpid(), [waiting])
    work.put(1)

def serve(work):
    threading.Thread(target=put, args=(work, threading.get_native_id())).start()
    work.get()
    subprocess.run(["sleep", "0.05"])
"""


def test_inside_a_request_that_is_served_nothing_is_idle(tmp_path, recorded):
    make_package(tmp_path, serving=SERVING)
    done = recorded("""
        import queue
        from interpose.instrumentation import system_library
        from interpose.library import Intrinsic
        record(Intrinsic("serve", "shapes.serving:serve", "logic"), *system_library.every())
        from shapes import serving
        serving.serve(queue.Queue())
    """).ended_well()
    founder = done.experiment.founder
    [served] = done.events("serve")
    calls = [event for event in done.events() if event.thread == served.thread and event.start_ns > served.start_ns]
    took_ns = collections.Counter()
    for event in [served, *(event for event in calls if event.start_ns < served.start_ns + served.wall_ns)]:
        took_ns[founder.intrinsic(event.intrinsic).kind] += event.wall_ns - event.inner_wall_ns

    assert "idle" not in took_ns
    assert sum(took_ns.values()) == served.wall_ns
    assert took_ns["sync"] >= 50e6
    assert took_ns["process"] >= 50e6


@pytest.mark.interpreter_lock
def test_a_pool_of_processes_waits_for_its_work_idly(traced):
    done = traced(textwrap.dedent(MEASURED) + LETS_WAIT + textwrap.dedent("""
        import multiprocessing
        def work(seconds):
            time.sleep(seconds)
            return seconds
        if __name__ == "__main__":
            with measured(), multiprocessing.get_context("fork").Pool(1) as pool:
                (child,) = multiprocessing.active_children()
                let_wait(0.3, child.pid)
                assert pool.map(work, [0.1]) == [0.1]
                let_wait(0.2, child.pid)
                assert pool.apply(work, (0.15,)) == 0.15
                pool.close()
                pool.join()
            print(sum(took_ns))
    """)).ended_well()
    (child,) = done.experiment.processes[1:]
    found = waits(done, child)
    main = waits(done, thread=main_thread(done.experiment.founder))

    assert kinds(found) == [
        ("multiprocessing.SimpleQueue.get", "idle"),
        ("time.sleep", "sleep"),
        ("multiprocessing.SimpleQueue.get", "idle"),
        ("time.sleep", "sleep"),
    ]
    assert 200e6 <= wall_ns(found, "idle") <= int(done.stdout)
    for name, _, event in found:
        if name != "time.sleep":
            assert kinds_inside(done, child, event) == {"idle"}
    assert [each for each in kinds(main) if each[0] == "multiprocessing.Pool.wait"] == [
        ("multiprocessing.Pool.wait", "process")
    ] * 2


@pytest.mark.parametrize(
    ("pool", "kind"),
    [("multiprocessing.get_context('fork').Pool(1)", "process"), ("multiprocessing.pool.ThreadPool(1)", "sync")],
    ids=["of processes", "of threads"],
)
@pytest.mark.parametrize(
    ("ask", "name"),
    [
        ("pool.map(time.sleep, [0.15])", "multiprocessing.Pool.wait"),
        ("pool.apply_async(time.sleep, [0.15]).get(60)", "multiprocessing.Pool.wait"),
        ("next(pool.imap(time.sleep, [0.15]))", "multiprocessing.Pool.next"),
        ("list(pool.imap_unordered(time.sleep, [0.15]))", "multiprocessing.Pool.next"),
    ],
)
def test_who_waits_for_the_result_of_a_pool_waits_for_what_it_is_of(pool, kind, ask, name, traced):
    done = traced(f"""
        import multiprocessing.pool, time
        with {pool} as pool:
            begun_ns = time.monotonic_ns()
            {ask}
            print(time.monotonic_ns() - begun_ns)
    """).ended_well()
    main = done.experiment.founder
    events = [event for event in done.events() if event.thread == 1]
    told = [event for event in events if main.intrinsic(event.intrinsic).name == name and event.wall_ns >= 100e6]
    inside = {main.intrinsic(event.intrinsic).kind for event in events if event.parent in {each.call for each in told}}

    assert [main.intrinsic(event.intrinsic).kind for event in told] == [kind]
    assert inside == {kind}
    assert told[0].wall_ns <= int(done.stdout)


@pytest.mark.interpreter_lock
def test_the_workers_of_an_executor_of_processes_are_idle_without_work(traced):
    done = traced("""
        import concurrent.futures, multiprocessing, time
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
                assert executor.submit(abs, -1).result() == 1
                time.sleep(0.3)
                executor.submit(time.sleep, 0.15).result()
    """).ended_well()
    (child,) = done.experiment.processes[1:]
    found = waits(done, child)

    assert kinds(found) == [("multiprocessing.Queue.get", "idle"), ("time.sleep", "sleep")]
    assert kinds_inside(done, child, found[0][2]) == {"idle"}


@pytest.mark.parametrize(
    ("wait", "name"),
    [
        ("os.waitpid(os.posix_spawn('/bin/sleep', ['sleep', '0.15'], os.environ), 0)", "os.waitpid"),
        ("subprocess.run(['sleep', '0.15'])", "subprocess.Popen.wait"),
        ("subprocess.run(['sleep', '0.15'], timeout=5)", "subprocess.Popen.wait"),
        ("subprocess.run(['sleep', '0.15'], capture_output=True)", "subprocess.Popen.communicate"),
        ("subprocess.check_output('sleep 0.15', shell=True)", "subprocess.Popen.communicate"),
    ],
)
def test_a_parent_that_waits_for_one_child_needs_it(wait, name, traced):
    done = traced(f"""
        import os, subprocess, time
        begun_ns = time.monotonic_ns()
        {wait}
        print(time.monotonic_ns() - begun_ns)
    """)
    found = waits(done)
    outermost = [each for each in found if each[0] in (name, "subprocess.Popen.communicate")]

    assert done.stderr == ""
    assert [kind for _, kind, _ in found] == ["process"]
    assert len(outermost) == 1
    assert kinds_inside(done, done.experiment.founder, outermost[0][2]) <= {"process"}
    assert wall_ns(found, "process") <= int(done.stdout)


WAITS_FOR_CHILD = """
import asyncio, os, select, selectors, subprocess, time
PIPE = subprocess.PIPE
CHILD = ["sh", "-c", "sleep 0.2; echo done"]

class Reads(asyncio.Protocol):
    def __init__(self):
        self.closed = asyncio.get_running_loop().create_future()
    def connection_lost(self, error):
        self.closed.set_result(None)

async def waits():
    await (await asyncio.create_subprocess_exec(*CHILD, stdout=subprocess.DEVNULL)).wait()
async def communicates():
    children = [await asyncio.create_subprocess_exec(*CHILD, stdout=PIPE) for _ in range(2)]
    await asyncio.gather(*(child.communicate() for child in children))
async def reads_a_line():
    child = await asyncio.create_subprocess_exec(*CHILD, stdout=PIPE)
    await child.stdout.readline()
    await child.wait()  # else its transport outlives the loop
async def reads_a_pipe():
    child = subprocess.Popen(CHILD, stdout=PIPE)
    _, protocol = await asyncio.get_running_loop().connect_read_pipe(Reads, child.stdout)
    await protocol.closed
    child.wait()
def in_loop(main):
    return lambda: asyncio.run(main())

def by_threaded_watcher():
    asyncio.unix_events.can_use_pidfd = lambda: False  # from 3.12 on; before, this is the default
    asyncio.run(waits())

def selects():
    child = subprocess.Popen(CHILD, stdout=PIPE)
    select.select([child.stdout], [], [])
def polls():
    child, poller = subprocess.Popen(CHILD, stdout=PIPE), select.poll()
    poller.register(child.stdout, select.POLLIN)
    poller.poll()
def by_selector():
    child, selector = subprocess.Popen(CHILD, stdout=PIPE), selectors.DefaultSelector()
    selector.register(child.stdout, selectors.EVENT_READ)
    selector.select()
def by_descriptor():
    child, poller = subprocess.Popen(CHILD, stdout=subprocess.DEVNULL), select.poll()
    poller.register(os.pidfd_open(child.pid), select.POLLIN)
    poller.poll()

"""
EPOLL = "select.epoll.poll"
ASYNCHRONOUS = ["waits", "communicates", "reads_a_line", "reads_a_pipe"]
WAYS_TO_WAIT = {
    **{f"in_loop({name})": EPOLL for name in ASYNCHRONOUS},
    "by_threaded_watcher": EPOLL,
    "selects": "select.select",
    "polls": "select.poll.poll",
    "by_selector": EPOLL,
    "by_descriptor": "select.poll.poll",
}


@pytest.mark.parametrize("wait", WAYS_TO_WAIT)
def test_a_loop_or_selector_that_waits_for_a_child_needs_it(wait, traced):
    if "t" in sys.abiflags and wait in ("in_loop(waits)", "by_threaded_watcher"):
        pytest.skip("awaits are not recorded in a free-threaded interpreter")
    done = traced(f"""{WAITS_FOR_CHILD}
begun_ns = time.monotonic_ns()
({wait})()
print(time.monotonic_ns() - begun_ns)
""")
    found = [each for each in waits(done, thread=main_thread(done.experiment.founder)) if "select." in each[0]]

    assert done.stderr == ""
    assert set(kinds(found)) == {(WAYS_TO_WAIT[wait], "process")}
    assert 150e6 < wall_ns(found, "process") <= int(done.stdout)


HAS_CHILDREN = WAITS_FOR_CHILD + """
import ctypes, fcntl, multiprocessing, socket, sys, threading

def asked(address):
    socket.create_connection(address).close()

async def serve(child=None, awaited=False):
    served = asyncio.Event()
    server = await asyncio.start_server(lambda reader, writer: (writer.close(), served.set()), "127.0.0.1", 0)
    threading.Timer(0.2, asked, [server.sockets[0].getsockname()]).start()
    if awaited:
        await child.wait()
    await served.wait()
    server.close()
    if child and not awaited:
        child.kill()
        await child.wait()
def serve_beside_a_child():
    async def main():
        await serve(await asyncio.create_subprocess_exec("sleep", "9", stdout=PIPE))
    asyncio.run(main())
def serve_and_await_a_child():
    async def main():
        await serve(await asyncio.create_subprocess_exec("sleep", "0.6", stdout=PIPE), True)
    asyncio.run(main())
def serve_beside_a_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1]) == [1]
        asyncio.run(serve())
def sleep_beside_a_child():
    async def main():
        child = await asyncio.create_subprocess_exec("sleep", "9", stdout=PIPE)
        begun_ns = time.monotonic_ns()
        await asyncio.sleep(0.2)
        print(time.monotonic_ns() - begun_ns)
        child.kill()
        await child.wait()
    asyncio.run(main())
def select_beside_a_child(selects):
    child = subprocess.Popen(["sleep", "9"], stdout=PIPE)
    begun_ns = time.monotonic_ns()
    selects(child.stdout, 0.2)
    print(time.monotonic_ns() - begun_ns)
    child.kill()
def with_selector(stream, seconds):
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        selector.select(seconds)
def wait_for_clients_and_a_child():
    listener, child = socket.create_server(("127.0.0.1", 0)), subprocess.Popen(["sleep", "9"], stdout=PIPE)
    threading.Timer(0.2, asked, [listener.getsockname()]).start()
    select.select([listener, child.stdout], [], [])
    child.kill()
def wait_at_a_pipe_to_oneself():
    wake, waker = os.pipe()
    child = subprocess.Popen(["sleep", "9"], stdout=PIPE)
    threading.Timer(0.2, os.write, [waker, b"signal"]).start()
    select.select([wake], [], [])
    child.kill()
def by_dup2(number):
    return os.dup2(number, 77)
def by_fcntl(number):
    return fcntl.fcntl(number, fcntl.F_DUPFD, 50)
def by_c(number):
    return ctypes.CDLL(None).dup(number)
def with_a_child_that_has_it(number):
    subprocess.Popen(["sleep", "0.1"], stdout=number)
    return os.dup(number)
"""


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        ("serve_beside_a_child", "idle"),
        ("serve_beside_a_pool", "idle"),
        ("wait_for_clients_and_a_child", "idle"),
        ("wait_at_a_pipe_to_oneself", "idle"),
        ("serve_and_await_a_child", "process"),
    ],
)
def test_a_server_whose_children_live_as_long_as_itself_waits_for_requests_and_not_for_them(server, kind, traced):
    if "t" in sys.abiflags and kind == "process":
        pytest.skip("awaits are not recorded in a free-threaded interpreter")
    done = traced(f"{HAS_CHILDREN}\n{server}()\n")
    found = [each for each in waits(done, thread=main_thread(done.experiment.founder)) if "select." in each[0]]

    assert done.stderr == ""
    assert {its for _, its, _ in found} == {kind}


WAITS_AT_ITS_OWN = ["os.dup", "by_dup2", "by_fcntl", "by_c", "with_a_child_that_has_it"]


@pytest.mark.parametrize("way", ["select.select([wake], [], [])", "with_selector(wake, 9)"])
@pytest.mark.parametrize("duplicated", WAITS_AT_ITS_OWN)
def test_a_pipe_is_ones_own_as_long_as_a_duplicate_of_its_other_end_is_open(duplicated, way, traced):
    done = traced(f"""{HAS_CHILDREN}
wake, waker = os.pipe()
writer = ({duplicated})(waker)
os.close(waker)
def send():
    os.write(writer, b"signal")
    os.close(writer)
threading.Timer(0.2, send).start()
{way}
""")
    found = [each for each in waits(done, thread=main_thread(done.experiment.founder)) if "select." in each[0]]

    assert done.stderr == ""
    assert {its for _, its, _ in found} == {"idle"}


@pytest.mark.parametrize(
    "sleeps",
    [
        "sleep_beside_a_child()",
        "select_beside_a_child(with_selector)",
        "select_beside_a_child(lambda stream, seconds: select.select([stream], [], [], seconds))",
    ],
)
def test_a_loop_or_selector_that_waits_for_its_own_timer_does_not_wait_for_the_child_beside_it(sleeps, traced):
    done = traced(f"{HAS_CHILDREN}\n{sleeps}\n")
    found = [each for each in waits(done, thread=main_thread(done.experiment.founder)) if "select." in each[0]]
    slept_ns = int(done.stdout)

    assert done.stderr == ""
    assert wall_ns(found, "idle") > 0.9 * slept_ns
    assert wall_ns(found, "process") < 0.1 * slept_ns


@pytest.mark.parametrize(
    "wait", ["os.wait()", "os.waitpid(-1, 0)", "os.wait4(0, 0)", "os.waitid(os.P_ALL, 0, os.WEXITED)"]
)
def test_a_parent_that_waits_for_whichever_child_ends_first_is_idle(wait, traced):
    done = traced(f"""
        import os
        os.posix_spawn('/bin/sleep', ['sleep', '0.15'], os.environ)
        {wait}
    """)

    assert done.stderr == ""
    assert [kind for _, kind, _ in waits(done)] == ["idle"]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_parent_that_joins_its_process_needs_it(method, traced):
    done = traced(f"""
        import multiprocessing, time
        if __name__ == "__main__":
            child = multiprocessing.get_context({method!r}).Process(target=time.sleep, args=(0.2,))
            child.start()
            begun_ns = time.monotonic_ns()
            child.join()
            print(time.monotonic_ns() - begun_ns)
            assert child.exitcode == 0
    """)
    found = [each for each in waits(done) if each[0].startswith("multiprocessing.Process.join")]

    assert done.stderr == ""
    assert kinds(found) == [("multiprocessing.Process.join", "process")]
    assert wall_ns(found, "process") <= int(done.stdout)


def test_what_comes_through_pipes_and_queues_between_processes_is_waited_for_idly(traced):
    done = traced(LETS_WAIT + textwrap.dedent("""
        import multiprocessing
        context = multiprocessing.get_context("fork")
        def answer(ours, queue, simple):
            let_wait(0.2)
            ours.send("pipe")
            let_wait(0.2)
            queue.put("queue")
            let_wait(0.2)
            simple.put("simple")
        ours, theirs = context.Pipe()
        queue, simple = context.Queue(), context.SimpleQueue()
        child = context.Process(target=answer, args=(theirs, queue, simple))
        child.start()
        assert ours.recv() == "pipe"
        assert queue.get() == "queue"
        assert simple.get() == "simple"
        child.join()
    """))
    found = [each for each in waits(done) if "join" not in each[0]]

    assert done.stderr == ""
    assert kinds(found) == [
        ("multiprocessing.connection.Connection.recv", "idle"),
        ("multiprocessing.Queue.get", "idle"),
        ("multiprocessing.SimpleQueue.get", "idle"),
    ]
    for _, _, event in found:
        assert kinds_inside(done, done.experiment.founder, event) <= {"idle"}


def test_the_thread_that_feeds_a_queue_between_processes_is_idle_without_items(traced):
    done = traced(LETS_WAIT + textwrap.dedent("""
        import multiprocessing, threading
        queue = multiprocessing.get_context("fork").Queue()
        queue.put(0)
        (feeder,) = (each for each in threading.enumerate() if each.name == "QueueFeederThread")
        for item in range(1, 3):
            let_wait(0.2, os.getpid(), [feeder.native_id])
            queue.put(item)
        assert [queue.get() for _ in range(3)] == [0, 1, 2]
    """))
    (feeder,) = other_threads(done.experiment.founder)
    found = waits(done, thread=feeder)

    assert done.stderr == ""
    assert kinds(found) == [("threading.Condition.wait", "idle")] * 2
    assert [kinds_inside(done, done.experiment.founder, event) for _, _, event in found] == [{"idle"}] * 2


WORKERS = {
    "waitress/task.py": ("handler_thread", "Condition"),
    "apscheduler/schedulers/blocking.py": ("_main_loop", "Event"),
    "opentelemetry/sdk/_shared_internal/__init__.py": ("worker", "Event"),
    "opentelemetry/sdk/metrics/_internal/export/__init__.py": ("_ticker", "Event"),
    "rich/live.py": ("run", "Event"),
    "rich/progress.py": ("run", "Event"),
    "tqdm/_monitor.py": ("run", "Event"),
    "waitress/others.py": ("handler_thread", "Condition"),
}


@pytest.mark.parametrize("file", WORKERS)
def test_threads_of_packages_that_only_do_what_they_are_given_are_idle_without_it(file, traced):
    function, waits_by = WORKERS[file]
    done = traced(LETS_WAIT + textwrap.dedent(f"""
        import threading
        code = "def {function}(awaited):\\n    WAIT"
        wait = "with awaited: awaited.wait()" if "{waits_by}" == "Condition" else "awaited.wait()"
        made = {{}}
        exec(compile(code.replace("WAIT", wait), "/x/site-packages/{file}", "exec"), made)
        awaited = threading.{waits_by}()
        thread = threading.Thread(target=made["{function}"], args=(awaited,))
        thread.start()
        let_wait(0.2, os.getpid(), [thread.native_id])
        if "{waits_by}" == "Event":
            awaited.set()
        else:
            with awaited:
                awaited.notify()
        thread.join()
    """)).ended_well()
    (worker,) = other_threads(done.experiment.founder)
    found = waits(done, thread=worker)
    kind = "idle" if file != "waitress/others.py" else "sync"

    assert kinds(found) == [(f"threading.{waits_by}.wait", kind)]
    assert kinds_inside(done, done.experiment.founder, found[0][2]) == {kind}


def test_workers_of_waitress_are_idle_between_requests(traced):
    pytest.importorskip("waitress")
    done = traced(LETS_WAIT + textwrap.dedent("""
        import sys, threading, urllib.request
        from waitress.server import create_server
        def answers(environ, start):
            start("200 OK", [("Content-Length", "2")])
            return [b"ok"]
        server = create_server(answers, host="127.0.0.1", port=0, threads=2)
        threading.Thread(target=server.run, daemon=True).start()
        for _ in range(3):
            time.sleep(0.1)
            urllib.request.urlopen(f"http://127.0.0.1:{server.effective_port}", timeout=60).read()
        time.sleep(0.1)
        server.task_dispatcher.shutdown()
    """)).ended_well()
    waited = {
        done.experiment.founder.intrinsic(event.intrinsic).kind
        for event in done.events("threading.Condition.wait")
        if any(each.function.endswith("handler_thread") for each in done.experiment.founder.frames(event.stack))
    }

    assert waited == {"idle"}


@pytest.mark.interpreter_lock
def test_sleeping_and_waiting_for_a_lock_are_not_idle(traced):
    done = traced(LETS_WAIT + textwrap.dedent("""
        import select, threading
        time.sleep(0.15)
        select.select([], [], [], 0.15)
        lock, event = threading.Lock(), threading.Event()
        ready = threading.Event()
        def hold():
            with lock:
                ready.set()
                let_wait(0.15, os.getpid(), [threading.main_thread().native_id])
        threading.Thread(target=hold).start()
        ready.wait()
        lock.acquire()
        event.wait(0.15)
    """))
    found = waits(done, thread=main_thread(done.experiment.founder))

    assert done.stderr == ""
    assert kinds(found) == [
        ("time.sleep", "sleep"),
        ("select.select", "sleep"),
        ("threading.Lock.acquire", "sync"),
        ("threading.Event.wait", "sync"),
    ]


def test_signals_are_waited_for_idly(traced):
    done = traced("""
        import signal
        signal.signal(signal.SIGALRM, lambda number, frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        signal.pause()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        assert signal.sigwait({signal.SIGALRM}) == signal.SIGALRM
        assert signal.sigtimedwait({signal.SIGALRM}, 0.15) is None
    """)

    assert done.stderr == ""
    assert kinds(waits(done)) == [
        ("signal.pause", "idle"),
        ("signal.sigwait", "idle"),
        ("signal.sigtimedwait", "idle"),
    ]


def test_gevents_threads_are_idle_without_work(traced):
    pytest.importorskip("gevent")
    done = traced("""
        import gevent, gevent.threadpool
        pool = gevent.threadpool.ThreadPool(1)
        assert pool.apply(abs, (-1,)) == 1
        gevent.sleep(0.3)
        assert pool.apply(abs, (-1,)) == 1
    """).ended_well()
    founder = done.experiment.founder
    found = waits(done, thread=other_threads(founder)[0])

    assert ("gevent.ThreadPool.get", "idle") in kinds(found)
    assert {kind for _, kind in kinds(found)} == {"idle"}
