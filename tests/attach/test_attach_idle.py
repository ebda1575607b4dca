"""What servers and clients wait for if their sockets were made before the recording began, or during a pause."""

import socket
from collections.abc import Callable

import pytest
from attaching import Running
from tracing import PATIENCE_S, events_of

from interpose.experiments.metadata.pauses import Switch
from interpose.experiments.model.experiment import Experiment

TURNS = 3
# The sockets exist before there is a file `go`; all that counts comes afterwards.
PROGRAM = """
import os, select, selectors, socket, sys, time
print("ready", flush=True)
connection = made()
if has_asked:
    connection.sendall(b"request")
while not os.path.exists("go"):
    time.sleep(0.01)
wait = waiting(connection)
"""
LISTENERS = {
    "TCP": 'socket.create_server(("127.0.0.1", 0))',
    "TCP over IPv6": 'socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)',
    "Unix": 'socket.socket(socket.AF_UNIX); listener.bind("listener"); listener.listen()',
}
ACCEPTED = """
has_asked = False
def made():
    global listener
    listener = LISTENER
    print(*listener.getsockname()[1:2] if listener.family != socket.AF_UNIX else [0], flush=True)
    return listener.accept()[0]
"""
CONNECTED = """
def made():
    listener = socket.create_server(("127.0.0.1", 0))  # beside it, as for metrics
    others.append(listener)
    return connected(sys.stdin.readline().strip())
others = []
"""
CLIENTS = {
    "TCP": """
def connected(port):
    return socket.create_connection(("127.0.0.1", int(port)))
""",
    "Unix with a name": """
def connected(path):
    client = socket.socket(socket.AF_UNIX)
    client.bind("client")
    client.connect(path)
    return client
""",
    "Unix with SO_PASSCRED": """
def connected(path):  # the kernel gives it a name
    client = socket.socket(socket.AF_UNIX)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    client.connect(path)
    return client
""",
}
WAITS = {
    "recv": """
def waiting(connection):
    return lambda: None
""",
    "select.select": """
def waiting(connection):
    return lambda: select.select([connection], [], [])
""",
    "select.poll.poll": """
def waiting(connection):
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return poller.poll
""",
    "select.epoll.poll": """
def waiting(connection):
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    return selector.select
""",
}
SERVES = """
while True:
    wait()
    if not connection.recv(100):
        break
    connection.sendall(b"answer")
"""
ASKS = f"""
for turn in range({TURNS}):
    if turn or not has_asked:
        connection.sendall(b"request")
    wait()
    connection.recv(100)
"""


def attach(program: Running) -> Experiment:
    return Experiment(program.attach())


def resume(program: Running) -> Experiment:
    experiment = Experiment(str(program.directory / "test.1.er"))
    Switch(experiment.founder).resume()
    return experiment


WAYS: dict[str, tuple[Callable[[Running], Experiment], dict[str, str]]] = {
    "attached": (attach, {}),
    "resumed": (resume, {"INTERPOSE": "1", "INTERPOSE_PAUSED": "1"}),
}


@pytest.fixture(params=WAYS)
def begun(request: pytest.FixtureRequest, running: Callable[..., Running]) -> tuple[Callable, Callable]:
    """Start a program; and let its recording begin, and then the program go on."""
    begin, variables = WAYS[request.param]

    def let_go(program: Running) -> Experiment:
        experiment = begin(program)
        (program.directory / "go").touch()
        return experiment

    return lambda source: running(source, **variables), let_go


def kinds_of_waits(program: Running, experiment: Experiment, name: str) -> list[str]:
    """Let the program end by itself; the kinds of its calls, in their order."""
    assert program.process.communicate(timeout=PATIENCE_S) == ("", "")
    process = Experiment(experiment.directory).founder
    calls = sorted((event.start_ns, process.intrinsic(event.intrinsic).kind) for event in events_of(process, name))
    return [kind for _, kind in calls]


def ask(peer: socket.socket) -> None:
    for _ in range(TURNS):
        peer.sendall(b"request")
        assert peer.recv(100) == b"answer"


def answer(peer: socket.socket) -> None:
    while peer.recv(100):
        peer.sendall(b"answer")


def connect(program: Running, family: str) -> socket.socket:
    port = int(program.line())
    if family != "Unix":
        return socket.create_connection(("127.0.0.1", port))
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(str(program.directory / "listener"))
    return peer


@pytest.mark.parametrize(
    ("family", "wait"),
    [*(("TCP", wait) for wait in WAITS), ("TCP over IPv6", "select.select"), ("Unix", "select.select")],
)
def test_a_server_waits_idly_for_requests_on_a_connection_that_it_accepted_unseen(family, wait, begun):
    start, let_go = begun
    program = start(ACCEPTED.replace("LISTENER", LISTENERS[family]) + WAITS[wait] + PROGRAM + SERVES)
    with connect(program, family) as peer:
        experiment = let_go(program)
        ask(peer)

    name = "socket.socket.recv" if wait == "recv" else wait
    assert kinds_of_waits(program, experiment, name) == ["idle"] * (TURNS + 1)


def server_for(program: Running, family: str) -> socket.socket:
    """Listen where the program connects to, and let it know."""
    if family == "TCP":
        listener = socket.create_server(("127.0.0.1", 0))
        address = listener.getsockname()[1]
    else:
        listener = socket.socket(socket.AF_UNIX)
        address = program.directory / "listener"
        listener.bind(str(address))
        listener.listen()
    print(address, file=program.process.stdin, flush=True)
    return listener


@pytest.mark.parametrize("has_asked", [False, True])
@pytest.mark.parametrize(
    ("family", "wait"),
    [*(("TCP", wait) for wait in WAITS), *((family, "recv") for family in CLIENTS if family != "TCP")],
)
def test_a_client_waits_for_answers_on_a_connection_that_it_made_unseen(family, wait, has_asked, begun):
    start, let_go = begun
    program = start(CONNECTED + CLIENTS[family] + WAITS[wait] + f"has_asked = {has_asked}" + PROGRAM + ASKS)
    with server_for(program, family) as listener, listener.accept()[0] as peer:
        experiment = let_go(program)
        answer(peer)

    name = "socket.socket.recv" if wait == "recv" else wait
    found = kinds_of_waits(program, experiment, name)
    assert len(found) == TURNS
    assert set(found[has_asked:]) == {"net"}  # nobody knows what the first wait is for if the request was sent unseen
