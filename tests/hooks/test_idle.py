"""Idle is waiting for work: for a client, a queue, a child. Waiting for an answer, for time or for a lock is not."""

import collections
import json
import re
import textwrap

import pytest
from packaged import make_package

LEAST_NS = 60_000_000  # what was made to wait for 100 ms and more waited at least that long
# What calls that wait for something are called. Any other, and any of a file, is only kept waiting by a busy machine.
WAIT = re.compile(
    r"accept|acquire|communicate|get(?!addr|host)|handle_|join|pause|poll|read|recv|select|shutdown|sig|sleep|wait"
)


def waits(done, process=None, thread=None):
    """What the outermost long calls of the process, or of one of its threads, were: name, kind, event."""
    process = process or done.experiment.founder
    found = []
    for event in done.events("", process):
        intrinsic = process.intrinsic(event.intrinsic)
        if intrinsic.kind == "file" or not WAIT.search(intrinsic.name.rpartition(".")[2]):
            continue
        if event.wall_ns > LEAST_NS and event.parent == 0 and thread in (None, event.thread):
            found.append((intrinsic.name, intrinsic.kind, event))
    return found


def kinds(found):
    return [(name, kind) for name, kind, _ in found]


def main_thread(process):
    (thread,) = [thread.number for thread in process.threads if thread.record.main]
    return thread


def other_threads(process):
    return [thread.number for thread in process.threads if not thread.record.main]


def wall_ns(found, kind):
    return sum(event.wall_ns for _, its, event in found if its == kind)


def kinds_inside(done, process, outer):
    """The kinds of the calls that took some time inside a call, at any depth."""
    inside, self_ns = {outer.call}, {}
    for event in done.events("", process):
        if event.thread == outer.thread and event.parent in inside:
            inside.add(event.call)
            kind = process.intrinsic(event.intrinsic).kind
            self_ns[kind] = self_ns.get(kind, 0) + event.wall_ns - event.inner_wall_ns
    return {kind for kind, ns in self_ns.items() if ns > LEAST_NS / 2}


# To let somebody wait for a time, however busy the machine is: it begins when that one does wait.
LETS_WAIT = """
import os, time

def is_asleep(process, task):
    try:
        with open(f"/proc/{process}/task/{task}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "S"
    except (FileNotFoundError, ProcessLookupError):
        return False

def let_wait(seconds, process=0, tasks=()):
    process = process or os.getppid()
    while not all(is_asleep(process, task) for task in tasks or os.listdir(f"/proc/{process}/task")):
        time.sleep(0.002)
    time.sleep(seconds)
"""
# Programs at the other end, in processes of their own that are not recorded: they let who started them wait.
ASKS_TWICE = """
    import socket, sys
    let_wait(0.1)
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for turn in range(2):
        let_wait(0.15)
        s.sendall(b"request")
        s.recv(100)
"""
ASKS_IN_PARTS = """
    import socket, sys
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for part in (b"half", b"rest", b"last"):
        let_wait(0.15)
        s.sendall(part)
    s.recv(100)
"""
ASKS_BY_HTTP = """
    import http.client, sys
    kept = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    for turn in range(2):
        let_wait(0.2)
        kept.request("GET", "/")
        assert kept.getresponse().read() == b"ok"
"""
ANSWERS = """
    import socket, threading
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)  # it ends in any case
    print(listener.getsockname()[1], flush=True)
    def serve(connection):
        connection.settimeout(20)
        while data := connection.recv(100):
            let_wait(0.15)
            connection.sendall(b"answer")
            if b"+" in data:
                let_wait(0.15)
                connection.sendall(b"answer")
    while True:
        threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""

# What the program measures itself, by the same clock: no wait was longer than it took.
MEASURED = """
    import contextlib, time
    took_ns = []
    @contextlib.contextmanager
    def measured():
        begun_ns = time.monotonic_ns()
        yield
        took_ns.append(time.monotonic_ns() - begun_ns)
"""
OTHERS = MEASURED + """
    import asyncio, os, select, socket, subprocess, sys, threading
    plain = {name: value for name, value in os.environ.items() if not name.startswith("INTERPOSE")}
    plain["INTERPOSE_LINEAGE"] = "off"
    def start_client(listener):
        command = [sys.executable, "other.py", str(listener.getsockname()[1])]
        return subprocess.Popen(command, env=plain)
    def start_server():
        global port
        server = subprocess.Popen([sys.executable, "other.py"], env=plain, stdout=subprocess.PIPE)
        port = int(server.stdout.readline())
        return server
"""


@pytest.fixture
def with_other(tmp_path, traced):
    """Run a program under the tracer that starts another one."""

    def run(other, source):
        (tmp_path / "beside.py").write_text(LETS_WAIT)
        (tmp_path / "other.py").write_text("from beside import let_wait\n" + textwrap.dedent(other))
        return traced(OTHERS + source)

    return run


LISTENER = """
    listener = socket.create_server(("127.0.0.1", 0))
"""
SERVERS = {
    "recv": """
    def wait(connection):
        pass
    """,
    "select": """
    def wait(connection):
        select.select([connection, listener], [], [connection])
    """,
    "poll": """
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    def wait(connection):
        poller.register(connection, select.POLLIN)
        poller.poll(5000)
    """,
    "epoll": """
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    def wait(connection):
        try:
            poller.register(connection, select.EPOLLIN)
        except FileExistsError:
            pass
        poller.poll(5)
    """,
}
WAITED_BY = {
    "recv": "socket.socket.recv",
    "select": "select.select",
    "poll": "select.poll.poll",
    "epoll": "select.epoll.poll",
}


@pytest.mark.parametrize("how", SERVERS)
def test_a_server_that_waits_for_a_client_and_its_next_request_is_idle(how, with_other):
    done = with_other(ASKS_TWICE, LISTENER + SERVERS[how] + """
    client = start_client(listener)
    connection, _ = listener.accept()
    for turn in range(2):
        with measured():
            wait(connection)
            assert connection.recv(100) == b"request"
        time.sleep(0.1)
        connection.sendall(b"answer")
    connection.close()
    print(sum(took_ns))
    """)
    found = [each for each in waits(done) if each[0] != "threading._shutdown"]

    assert done.stderr == ""
    assert kinds(found) == [
        ("socket.socket.accept", "idle"),
        (WAITED_BY[how], "idle"),
        ("time.sleep", "sleep"),
        (WAITED_BY[how], "idle"),
        ("time.sleep", "sleep"),
    ]
    assert wall_ns(found[1:], "idle") <= int(done.stdout)


def test_waiting_for_the_rest_of_a_request_is_net(with_other):
    done = with_other(ASKS_IN_PARTS, LISTENER + """
    client = start_client(listener)
    connection, _ = listener.accept()
    select.select([connection], [], [])
    connection.recv(4)
    select.select([connection], [], [])
    connection.recv(4)
    connection.recv(4)
    connection.sendall(b"answer")
    print(client.wait())
    """)
    found = [each for each in waits(done) if each[0] == "select.select"]

    assert (done.stdout, done.stderr) == ("0\n", "")
    assert kinds(found) == [("select.select", "idle"), ("select.select", "net")]


def test_receiving_in_the_middle_of_a_request_is_net(with_other):
    done = with_other(ASKS_IN_PARTS, LISTENER + """
    client = start_client(listener)
    connection, _ = listener.accept()
    into = bytearray(4)
    connection.recv(4), connection.recv_into(into), connection.recvfrom(4)
    connection.sendall(b"answer")
    connection.recv(4)
    """)
    found = [each for each in waits(done) if each[0].startswith("socket.socket.recv")]

    assert done.stderr == ""
    assert kinds(found) == [
        ("socket.socket.recv", "idle"),
        ("socket.socket.recv_into", "net"),
        ("socket.socket.recvfrom", "net"),
    ]


CLIENTS = {
    "recv": """
    s.recv(100)
    """,
    "recv with a timeout": """
    s.settimeout(5)
    s.recv(100)
    """,
    "readline": """
    s.makefile("rb", buffering=6).read(6)
    """,
    "select": """
    select.select([s], [], [], 5)
    """,
    "select of a tuple of numbers": """
    select.select((s.fileno(),), (), (), 5)
    """,
    "select of a set": """
    select.select({s}, set(), set(), 5)
    """,
    "poll": """
    poller = select.poll()
    poller.register(s, select.POLLIN)
    poller.poll()
    """,
    "epoll registered before it was connected": """
    again = socket.socket()
    poller = select.epoll()
    poller.register(again.fileno(), select.EPOLLIN)
    poller.modify(again.fileno(), select.EPOLLIN)
    again.connect(("127.0.0.1", port))
    again.sendall(b"request")
    poller.poll()
    """,
}


@pytest.mark.parametrize("how", ["select of a set" if how == "select of a set" else how for how in CLIENTS])
def test_a_client_that_waits_for_its_answer_is_not_idle(how, with_other):
    done = with_other(ANSWERS, """
    server = start_server()
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"request")
    with measured():
    """ + textwrap.indent(CLIENTS[how], "    ") + """
    print(sum(took_ns))
    server.kill()
    """)
    found = [each for each in waits(done) if not each[0].startswith(("io.", "os."))]

    assert done.stderr == ""
    assert [kind for _, kind, _ in found] == ["net"]
    assert wall_ns(found, "net") <= int(done.stdout)


def test_a_client_that_waits_for_its_next_answer_is_not_idle(with_other):
    done = with_other(ANSWERS, """
    server = start_server()
    s = socket.create_connection(("127.0.0.1", port))
    for turn in range(2):
        s.sendall(b"request")
        select.select([s], [], [])
        assert s.recv(100) == b"answer"
    server.kill()
    """)
    found = [each for each in waits(done) if not each[0].startswith(("io.", "os."))]

    assert done.stderr == ""
    assert kinds(found) == [("select.select", "net")] * 2


def test_an_asyncio_client_that_waits_for_its_answer_is_not_idle(with_other):
    done = with_other(ANSWERS, """
    server = start_server()
    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for turn in range(2):
            writer.write(b"request")
            await writer.drain()
            assert await reader.read(100) == b"answer"
        writer.close()
        await writer.wait_closed()
    with measured():
        asyncio.run(ask())
    print(sum(took_ns))
    server.kill()
    """)
    found = [each for each in waits(done) if not each[0].startswith(("io.", "os."))]

    assert done.stderr == ""
    assert kinds(found) == [("select.epoll.poll", "net")] * 2
    assert wall_ns(found, "net") <= int(done.stdout)


def test_a_client_that_may_wait_for_more_of_its_answer_is_not_idle(with_other):
    """Nothing tells whether a connection that is watched with a pipe has had all of its answer."""
    done = with_other(ANSWERS, """
    server = start_server()
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"request")
    assert s.recv(100) == b"answer"
    work, _ = os.pipe()
    select.select([s, work], [], [], 0.15)
    server.kill()
    """)
    found = [each for each in waits(done) if each[0] == "select.select"]

    assert kinds(found) == [("select.select", "net")]


def test_an_http_server_is_idle_between_the_requests_of_a_kept_connection(with_other):
    done = with_other(ASKS_BY_HTTP, """
    import http.server
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            time.sleep(0.1)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
        def log_message(self, *arguments):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    client = start_client(server.socket)
    threading.Thread(target=lambda: (client.wait(), server.shutdown())).start()
    server.serve_forever()
    server.server_close()
    """)
    founder = done.experiment.founder
    main = waits(done, thread=main_thread(founder))
    workers = [waits(done, thread=number) for number in other_threads(founder)]
    (worker,) = [found for found in workers if any(kind == "logic" for _, kind, _ in found)]
    served = ("http.server.BaseHTTPRequestHandler.handle_one_request", "logic")

    assert (done.returncode, done.stderr) == (0, "")
    assert {each for each in kinds(main) if not each[0].startswith("threading.")} == {("select.poll.poll", "idle")}
    assert wall_ns(main, "idle") > LEAST_NS
    assert kinds(worker)[-3:] == [served, ("socket.socket.recv_into", "idle"), served]
    assert {kind for _, kind in kinds(worker)} == {"idle", "logic"}
    assert all(kinds_inside(done, founder, event) == {"sleep"} for _, kind, event in worker if kind == "logic")


def test_an_asyncio_server_is_idle_between_requests_and_not_while_it_waits_for_an_answer_itself(with_other):
    done = with_other(ANSWERS, """
    server = start_server()
    async def handle(reader, writer):
        asking = None
        while request := await reader.read(100):
            if asking is None:
                above, asking = await asyncio.open_connection("127.0.0.1", port)
            asking.write(request)
            writer.write(await above.read(100))
            await writer.drain()
        asking.close()
        writer.close()
        stop.set()
    async def main():
        global stop
        stop = asyncio.Event()
        serving = await asyncio.start_server(handle, "127.0.0.1", 0)
        with open("client.py", "w") as file:
            file.write("\\n".join(["import socket, sys", "from beside import let_wait",
                "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))",
                "for turn in range(2):",
                "    let_wait(0.3)",
                "    s.sendall(b'request')",
                "    assert s.recv(100) == b'answer'",
                "let_wait(0.3)"]))
        client = subprocess.Popen([sys.executable, "client.py", str(serving.sockets[0].getsockname()[1])], env=plain)
        await stop.wait()
        serving.close()
        client.wait()
    with measured():
        asyncio.run(main())
    print(sum(took_ns))
    server.kill()
    """)
    found = [each for each in waits(done) if each[0] == "select.epoll.poll"]

    assert done.stderr == ""
    assert [kind for _, kind, _ in found][-5:] == ["idle", "net", "idle", "net", "idle"]
    assert wall_ns(found, "net") + wall_ns(found, "idle") <= int(done.stdout)


def test_a_client_that_waits_for_the_rest_of_its_answer_is_not_idle(with_other):
    done = with_other(ANSWERS, """
    server = start_server()
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"one+two")
    for part in range(2):
        select.select([s], [], [])
        assert s.recv(6) == b"answer"
    server.kill()
    """)
    found = [each for each in waits(done) if each[0] == "select.select"]

    assert done.stderr == ""
    assert kinds(found) == [("select.select", "net")] * 2


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
    """)
    founder = done.experiment.founder
    [served] = done.events("serve")
    calls = [event for event in done.events() if event.thread == served.thread and event.start_ns > served.start_ns]
    took_ns = collections.Counter()
    for event in [served, *(event for event in calls if event.start_ns < served.start_ns + served.wall_ns)]:
        took_ns[founder.intrinsic(event.intrinsic).kind] += event.wall_ns - event.inner_wall_ns

    assert (done.returncode, done.stderr) == (0, "")
    assert "idle" not in took_ns
    assert sum(took_ns.values()) == served.wall_ns
    assert took_ns["sync"] >= 50e6
    assert took_ns["process"] >= 50e6


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
    """))
    (child,) = done.experiment.processes[1:]
    found = waits(done, child)
    main = waits(done, thread=main_thread(done.experiment.founder))

    assert (done.returncode, done.stderr) == (0, "")
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
    """)
    main = done.experiment.founder
    events = [event for event in done.events() if event.thread == 1]
    told = [event for event in events if main.intrinsic(event.intrinsic).name == name and event.wall_ns >= 100e6]
    inside = {main.intrinsic(event.intrinsic).kind for event in events if event.parent in {each.call for each in told}}

    assert (done.returncode, done.stderr) == (0, "")
    assert [main.intrinsic(event.intrinsic).kind for event in told] == [kind]
    assert inside == {kind}
    assert told[0].wall_ns <= int(done.stdout)


def test_the_workers_of_an_executor_of_processes_are_idle_without_work(traced):
    done = traced("""
        import concurrent.futures, multiprocessing, time
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
                assert executor.submit(abs, -1).result() == 1
                time.sleep(0.3)
                executor.submit(time.sleep, 0.15).result()
    """)
    (child,) = done.experiment.processes[1:]
    found = waits(done, child)

    assert (done.returncode, done.stderr) == (0, "")
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
