"""Idle is waiting for work: for a client, a queue, a child. Waiting for an answer, for time or for a lock is not."""

import textwrap

import pytest
from idling import LEAST_NS, LETS_WAIT, MEASURED, kinds, kinds_inside, main_thread, other_threads, waits, wall_ns
from packaged import make_package

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


@pytest.mark.parametrize("attribute", ["sock", "socket", "_sock"])
def test_a_listener_in_an_object_with_a_fileno_of_its_own_is_known_and_its_fileno_called_as_often(attribute, traced):
    done = traced(f"""
        import select, socket
        class Around:
            def __init__(self, inner):
                self.{attribute} = inner
            def fileno(self):
                asked.append(self)
                return self.{attribute}.fileno()
        class Computed:
            {attribute} = property(lambda self: print("computed"))
            __getattr__ = lambda self, name: getattr(listener, name)
        asked, listener = [], socket.create_server(("127.0.0.1", 0))
        around, poller = Around(listener), select.poll()
        select.select([around], [], [], 0.15)
        select.select([Computed()], [], [], 0.15)
        poller.register(around, select.POLLIN)
        poller.poll(150)
        print(len(asked))
    """)

    assert (done.stdout, done.stderr) == ("2\n", "")
    assert kinds(waits(done)) == [("select.select", "idle"), ("select.select", "net"), ("select.poll.poll", "idle")]


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
    # It may also wait for the first request, and for the end of the connection.
    made = kinds(worker)
    assert made[made.index(served) :][:3] == [served, ("socket.socket.recv_into", "idle"), served]
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


HALF_ASKED = """
    def ask_and_wait():
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(b"one+two")
        assert s.recv(6) == b"answer"
        select.select([s], [], [])
        assert s.recv(6) == b"answer"
    def accept():
        client = socket.create_connection(listener.getsockname())
        listener.accept()[0].close()
    server = start_server()
    listener = socket.create_server(("127.0.0.1", 0))
    select.select([listener], [], [], 0.01)
"""


@pytest.mark.parametrize(
    ("asking", "kind"),
    [
        ("accept(); ask_and_wait()", "idle"),
        ("ask_and_wait()", "net"),
        ("accept(); listener.close(); ask_and_wait()", "net"),
        ("accept(); child = os.fork(); (os.waitpid(child, 0) if child else (ask_and_wait(), os._exit(0)))", "net"),
    ],
    ids=["of a server", "that nobody uses", "after it was one", "forked by one"],
)
def test_an_answer_that_has_begun_may_be_complete_only_in_a_server(asking, kind, with_other):
    done = with_other(ANSWERS, HALF_ASKED + f"    {asking}\n    server.kill()\n")
    found = [each for process in done.experiment.processes for each in waits(done, process) if "select" in each[0]]

    assert done.stderr == ""
    assert kinds(found) == [("select.select", kind)]


KEPT = """
    server = start_server()
    def ask():
        kept.sendall(b"one")
        assert kept.recv(6) == b"answer"
    def send_datagram():
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"request", listener.getsockname())
    kept = socket.create_connection(("127.0.0.1", port))
    ask()
    listener = LISTENER
    select.select([listener], [], [], 0.01)
    USE
    select.select([kept, listener], [], [], 0.15)
    server.kill()
"""
STREAM = 'socket.create_server(("127.0.0.1", 0))'
DATAGRAMS = 'socket.socket(socket.AF_INET, socket.SOCK_DGRAM); listener.bind(("127.0.0.1", 0))'


@pytest.mark.parametrize(
    ("listener", "use", "kind"),
    [
        (STREAM, "pass", "idle"),
        (DATAGRAMS, "pass", "idle"),
        (STREAM, "ask()", "net"),
        (DATAGRAMS, "ask()", "net"),
        (DATAGRAMS, "send_datagram(); listener.recvfrom(100); ask()", "idle"),
    ],
    ids=["used before", "used before datagrams", "used since", "used since, of datagrams", "after a datagram"],
)
def test_a_connection_used_before_listening_or_after_a_request_may_be_kept(listener, use, kind, with_other):
    done = with_other(ANSWERS, KEPT.replace("LISTENER", listener).replace("USE", use))

    assert done.stderr == ""
    assert [each for each in kinds(waits(done)) if each[0] == "select.select"] == [("select.select", kind)]


ANSWERS_IN_PARTS = """
    import socket
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nab")
    for part in range(2):
        let_wait(0.15)
        connection.sendall(b"ab")
    connection.recv(1000)
"""
READS_IN_PARTS = """
    server = start_server()
    async def by_aiohttp():
        import aiohttp
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/") as answer:
                yield [part async for part in answer.content.iter_any()]
            yield
    async def by_httpx():
        import httpx
        async with httpx.AsyncClient() as client:
            async with client.stream("GET", f"http://127.0.0.1:{port}/") as answer:
                yield [part async for part in answer.aiter_raw()]
            yield
    async def main():
        serving = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*serving.sockets[0].getsockname())
        await reader.read()
        writer.close()
        async for parts in PACKAGE():
            if parts:
                print(b"".join(parts))
            else:
                await asyncio.sleep(0.15)
    asyncio.run(main())
    server.kill()
"""


@pytest.mark.packages
@pytest.mark.interpreter_lock
@pytest.mark.parametrize("package", ["aiohttp", "httpx"])
def test_a_server_that_reads_an_answer_in_parts_is_not_idle_until_its_end(package, with_other):
    pytest.importorskip(package)
    done = with_other(ANSWERS_IN_PARTS, READS_IN_PARTS.replace("PACKAGE", f"by_{package}"))
    polls = [kind for name, kind in kinds(waits(done)) if name == "select.epoll.poll"]

    assert (done.stderr, done.stdout) == ("", "b'ababab'\n")
    assert polls == ["net", "net", "idle"]
    assert not done.events("aiohttp.StreamReader.wait") + done.events("httpcore.AsyncHTTP11Connection.receive")


WORKER = """
import socket

def ask(connection):
    connection.sendall(b"the next task, please")
"""
ASKS_FOR_WORK = """
import os, select, socket, sys, threading, time
from interpose.instrumentation import system_library
from interpose.library import Intrinsic
record(Intrinsic("ask", "shapes.worker:ask", "idle"), *system_library.every())
from shapes import worker

listener = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if not child:
    served, _ = listener.accept()
    while served.recv(100):
        time.sleep(0.15)
        served.sendall(b"a task")
    os._exit(0)
connection = socket.create_connection(listener.getsockname())
watched = select.epoll()
watched.register(connection, select.EPOLLIN)
for ask in connection.sendall, None, connection.sendall:
    ask(b"a question") if ask else worker.ask(connection)
    watched.poll()
    select.select([connection], [], [])
    connection.recv(100)
    watched.poll(0.1)
connection.close()
os.waitpid(child, 0)
"""


def test_who_has_asked_for_work_waits_idly_until_something_else_is_sent(tmp_path, recorded):
    make_package(tmp_path, worker=WORKER)
    done = recorded(ASKS_FOR_WORK).ended_well()

    assert kinds(waits(done))[:6] == [
        ("select.epoll.poll", "net"),
        ("select.epoll.poll", "net"),
        ("select.epoll.poll", "idle"),
        ("select.epoll.poll", "idle"),
        ("select.epoll.poll", "net"),
        ("select.epoll.poll", "net"),
    ]


DRIVER = """
import asyncio

async def ask(descriptor):
    answer = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(descriptor, answer.set_result, None)
    await answer
    asyncio.get_running_loop().remove_reader(descriptor)
"""
ASKS_IN_C = """
import asyncio, os, sys, threading
from interpose.instrumentation import system_library
from interpose.library import Intrinsic
record(Intrinsic("ask", "shapes.driver:ask", "db"), *system_library.every())
from shapes import driver

async def main():
    for ask in driver.ask, unrecorded, driver.ask:
        answers, server = os.pipe()
        threading.Timer(0.15, os.write, (server, b"answer")).start()
        await ask(answers)

async def unrecorded(descriptor):
    answer = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(descriptor, answer.set_result, None)
    await answer
    asyncio.get_running_loop().remove_reader(descriptor)

asyncio.run(main())
"""


@pytest.mark.interpreter_lock
@pytest.mark.parametrize("kind", ["db", "net"])
def test_a_loop_is_not_idle_while_a_task_awaits_a_server_with_a_driver_in_c(kind, tmp_path, recorded):
    make_package(tmp_path, driver=DRIVER)
    done = recorded(ASKS_IN_C.replace('"db"', f'"{kind}"')).ended_well()
    found = waits(done, thread=main_thread(done.experiment.founder))

    assert [each for each in kinds(found) if "poll" in each[0]] == [
        ("select.epoll.poll", "net"),
        ("select.epoll.poll", "idle"),
        ("select.epoll.poll", "net"),
    ]


@pytest.mark.interpreter_lock
def test_what_a_closed_loop_left_unanswered_is_not_awaited_by_the_next_one(tmp_path, recorded):
    make_package(tmp_path, driver=DRIVER)
    done = recorded(ASKS_IN_C.replace("asyncio.run(main())", "") + """
async def asks():
    left.append(asyncio.create_task(driver.ask(os.pipe()[0])))
    await asyncio.sleep(0.01)

left, loop = [], asyncio.new_event_loop()
loop.run_until_complete(asks())
loop.close()
answers, server = os.pipe()
threading.Timer(0.15, os.write, (server, b"work")).start()
asyncio.run(unrecorded(answers))
answers, server = os.pipe()
threading.Timer(0.15, os.write, (server, b"answer")).start()
asyncio.run(driver.ask(answers))
left[0]._log_destroy_pending = False
""").ended_well()
    found = waits(done, thread=main_thread(done.experiment.founder))

    assert [kind for name, kind in kinds(found) if "poll" in name][-2:] == ["idle", "net"]


def test_a_loop_that_waits_for_its_own_threads_is_idle(with_other):
    done = with_other(ASKS_TWICE, """
    from interpose import transaction
    async def main():
        served, stop = [], asyncio.Event()
        async def serve(reader, writer):
            while await reader.read(100):
                with transaction("answer"):
                    served.append(await (asyncio.sleep(0.15) if served else asyncio.to_thread(time.sleep, 0.15)))
                writer.write(b"answer")
            writer.close()
            stop.set()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = start_client(server.sockets[0])
        await stop.wait()
        server.close()
        client.wait()
    asyncio.run(main())
    """)
    found = [each for each in waits(done, thread=main_thread(done.experiment.founder)) if "poll" in each[0]]

    assert done.stderr == ""
    assert [kind for _, kind, _ in found][-4:] == ["idle", "idle", "idle", "net"]  # the last one is its own timer
