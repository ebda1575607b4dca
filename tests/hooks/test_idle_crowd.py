"""Waits of servers with many connections: their kinds, and that not each connection costs a question to the kernel."""

import re
import shutil
import subprocess
import sys

import pytest
from tracing import environment

CROWD = """
import select, socket, sys

def connected(server):
    asking = socket.create_connection(server.getsockname())
    return asking, server.accept()[0]

def asked_and_answered(asking, answering):
    asking.sendall(b"request")
    answering.recv(100)
    answering.sendall(b"answer")
    asking.recv(100)

listener = socket.create_server(("127.0.0.1", 0))
other = socket.create_server(("127.0.0.1", 0))  # stands for a server elsewhere
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
"""


def test_each_wait_among_many_connections_is_told_by_what_is_due_then(traced):
    done = traced(CROWD + """
served = [connected(listener) for _ in range(300)]
for asking, answering in served:
    asked_and_answered(asking, answering)
    poll.register(answering, select.EPOLLIN)
elsewhere = connected(other)
poll.register(elsewhere[0], select.EPOLLIN)
asked_and_answered(*elsewhere)
poll.poll(0.001)  # idle
asking, answering = served[250]
asking.sendall(b"request")
answering.recv(100)
poll.poll(0.002)  # a request is being answered
answering.sendall(b"answer")
poll.poll(0.003)  # idle
elsewhere[0].sendall(b"request")
poll.poll(0.004)  # an answer is due from elsewhere
elsewhere[1].sendall(b"answer")
elsewhere[0].recv(100)
poll.poll(0.005)  # idle
asking, answering = served[7]
poll.unregister(answering)
asking.sendall(b"request")
answering.recv(100)
poll.poll(0.006)  # idle: this request is not waited for here
poll.register(answering, select.EPOLLIN)
poll.poll(0.007)  # but here
""")
    process = done.experiment.founder
    found = [process.intrinsic(each.intrinsic) for each in done.events("", process)]

    assert done.stderr == ""
    kinds = [each.kind for each in found if each.name == "select.epoll.poll"]
    assert kinds == ["idle", "net", "idle", "net", "idle", "idle", "net"]


def questions(directory, source, turns, **variables):
    """How often the kernel is asked about sockets, with so many turns."""
    (directory / "crowd.py").write_text(CROWD + source)
    words = ["strace", "-f", "-o", "calls", "-e", "trace=getsockopt,getpeername,getsockname,fcntl"]
    words += [sys.executable, "crowd.py", str(turns)]
    done = subprocess.run(words, cwd=directory, env=environment(**variables), capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    return len(re.findall("getsockopt|getpeername|getsockname|fcntl", (directory / "calls").read_text()))


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_a_wait_asks_the_kernel_once_however_many_connections_there_are(tmp_path):
    source = """
asked_and_answered(*connected(listener))
elsewhere = [connected(other) for _ in range(40)]
for pair in elsewhere:
    asked_and_answered(*pair)
    poll.register(pair[0], select.EPOLLIN)
for _ in range(int(sys.argv[1])):
    poll.poll(0)
"""
    more = questions(tmp_path, source, 60, INTERPOSE="1") - questions(tmp_path, source, 10, INTERPOSE="1")

    assert more <= 2 * 50


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_a_connection_that_is_accepted_while_recording_costs_two_questions(tmp_path):
    source = """
for _ in range(int(sys.argv[1])):
    asked_and_answered(*connected(listener))
"""

    def added(turns):
        return questions(tmp_path, source, turns, INTERPOSE="1") - questions(tmp_path, source, turns)

    # Of each end: does it listen, and who is its peer? Of the client's also its own address. A few are asked once.
    assert added(20) - added(0) <= 5 * 20 + 10
