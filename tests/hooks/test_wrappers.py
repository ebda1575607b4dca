"""Interposing with wrapt: what it reaches is counted as in place, and it is left as it was found."""

from collections import Counter

import pytest

from interpose.capture.wrappers import place_of
from interpose.experiments.model.process import Process
from interpose.library import Intrinsic

PROGRAM = """
    import os, queue, select, socket, sqlite3, subprocess, sys, threading, time
    connection = sqlite3.connect(":memory:")
    connection.execute("create table orders (number integer, name text)")
    for number in range(20):
        connection.execute("insert into orders values (?, 'literal')", (number,))
    connection.commit()
    cursor = connection.cursor()
    cursor.execute("select * from orders")
    print(len(cursor.fetchall()), cursor.fetchone())
    try:
        cursor.execute("select * from nowhere")
    except sqlite3.OperationalError as error:
        print(error)
    descriptor = os.open("file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for _ in range(5):
        os.write(descriptor, b"0123456789")
    os.lseek(descriptor, 0, os.SEEK_SET)
    print(os.read(descriptor, 100))
    os.close(descriptor)
    here, there = socket.socketpair()
    here.sendall(b"hello")
    print(select.select([there], [], [], 1)[0] == [there], there.recv(100))
    waiting = queue.Queue()
    threading.Timer(0.05, waiting.put, ("done",)).start()
    print(waiting.get())
    print(subprocess.run([sys.executable, "-S", "-c", "print(1)"], capture_output=True, env={}).stdout)
    time.sleep(0.01)
    print(type(connection).__name__, isinstance(connection, sqlite3.Connection), os.write.__name__)
"""
# Of these every call is made by name, where a wrapper stands.
REACHED = """
    sqlite3.connect sqlite3.Connection.execute sqlite3.Connection.commit sqlite3.Cursor.execute
    sqlite3.Cursor.fetchall sqlite3.Cursor.fetchone os.open os.write os.lseek socket.socket.sendall
    socket.socket.recv select.select queue.Queue.get time.sleep subprocess.Popen.communicate
"""


def calls_by_name(process: Process, events: list) -> Counter[tuple[str, str, int, str]]:
    return Counter(
        (intrinsic.name, intrinsic.kind, event.bytes, process.string(event.detail))
        for event in events
        if (intrinsic := process.intrinsic(event.intrinsic)).name in REACHED.split()
    )


def test_what_wrapt_reaches_is_counted_as_in_place(traced):
    in_place = traced(PROGRAM)
    counted = calls_by_name(in_place.experiment.founder, in_place.events())
    wrapped = traced(PROGRAM, INTERPOSE_BY="wrapt")

    assert (wrapped.stdout, wrapped.stderr) == (in_place.stdout, "")
    assert calls_by_name(wrapped.experiment.founder, wrapped.events()) == counted
    assert {name for name, *_ in counted} == set(REACHED.split())
    assert wrapped.experiment.founder.log.interposed == {"by": "wrapt", "why": "as asked"}


def test_what_it_does_not_reach_is_listed_with_the_reason(traced):
    done = traced("import sqlite3, threading, time; time.sleep(0)", INTERPOSE_BY="wrapt")
    not_interposed = done.experiment.founder.not_interposed

    assert done.stderr == ""
    assert not_interposed["io.FileIO.read"] == "wrapt does not reach it: its type cannot be changed"
    assert "threading.Lock.acquire" in not_interposed
    assert not {"time.sleep", "os.write", "sqlite3.Cursor.execute"} & not_interposed.keys()


def test_the_undo_leaves_every_name_as_it_was(recorded):
    done = recorded("""
        import os, queue, sqlite3, socket, time
        from interpose.capture import wrappers
        from interpose.config import schema
        from interpose.instrumentation import system_library
        places = [(os, "write"), (time, "sleep"), (sqlite3, "connect"), (queue.Queue, "get"), (socket.socket, "send")]
        before = [(vars(owner).get(name), getattr(owner, name)) for owner, name in places]
        os.environ["INTERPOSE_BY"] = "wrapt"
        schema.BY_KEY["by"].default = "wrapt"
        record(*system_library.every())
        during = [getattr(owner, name) for owner, name in places]
        print(all(a is not b for (_, a), b in zip(before, during)))
        time.sleep(0)
        print(shims.end())
        print(before == [(vars(owner).get(name), getattr(owner, name)) for owner, name in places])
        time.sleep(0)
    """)

    assert (done.stdout, done.stderr) == ("True\n0\nTrue\n", "")
    assert len(done.events("time.sleep")) == 1


def test_it_is_fallen_back_upon_where_shims_in_place_do_not_work(recorded):
    done = recorded("""
        import time
        from interpose.library import Intrinsic
        shims.works_in_place = lambda modules: "as if this interpreter were another"
        record(Intrinsic("time.sleep", "time:sleep", "sleep"))
        time.sleep(0)
    """)
    founder = done.experiment.founder

    assert done.stderr == ""
    assert founder.log.interposed == {"by": "wrapt", "why": "as if this interpreter were another"}
    assert [founder.intrinsic(event.intrinsic).by for event in done.events()] == ["wrapt"]


@pytest.mark.parametrize(
    ("name", "target", "place"),
    [
        ("os.write", "posix:write", ("os", "write")),
        ("input", "builtins:input", ("builtins", "input")),
        ("socket.socket.send", "_socket:socket.send", ("socket", "socket.send")),
        ("getpass.getpass", "getpass:unix_getpass", ("getpass", "getpass")),
        ("multiprocessing.Process.join", "multiprocessing.process:BaseProcess.join",
         ("multiprocessing.process", "BaseProcess.join")),
    ],
)  # fmt: skip
def test_it_wraps_where_programs_look(name, target, place):
    assert place_of(Intrinsic(name, target, "file")) == place
