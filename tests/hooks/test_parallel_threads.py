"""Eight threads that do everything at once are counted and summed exactly, with an interpreter lock or without."""

import json
import sys
from collections import Counter

import pytest

# Each thread counts what it does itself; what is counted as done is what a reader has to find.
PROGRAM = """
import json, os, socket, sqlite3, subprocess, sys, threading, time
import interpose

ROUNDS, THREADS = int(sys.argv[1]), 8
shared_lock, shared_recursive, barrier = threading.Lock(), threading.RLock(), threading.Barrier(THREADS)
counts = [{} for _ in range(THREADS)]

class Tally:
    def __init__(self, number):
        self.mine = counts[number]
    def add(self, name, bytes=0):
        done = self.mine.setdefault(name, [0, 0])
        done[0] += 1
        done[1] += bytes

def files(number, round, tally):
    descriptor = os.open(f"file{number}", os.O_RDWR | os.O_CREAT)
    tally.add("os.open")
    size = 10 + (number * 7 + round) % 100
    tally.add("os.write", os.write(descriptor, b"x" * size))
    tally.add("os.pread", len(os.pread(descriptor, size, 0)))
    os.close(descriptor)
    os.stat(f"file{number}")
    tally.add("os.stat")

def database(number, round, tally, base):
    base.execute(f"insert into t{number} values (?)", (round,))
    tally.add("sqlite3.Connection.execute")
    base.commit()
    tally.add("sqlite3.Connection.commit")

def sockets(number, round, tally):
    one, other = socket.socketpair()
    sent = one.send(b"y" * (1 + round % 50))
    tally.add("socket.send", sent)
    tally.add("socket.recv", len(other.recv(100)))
    one.close()
    other.close()

def locks(number, round, tally):
    with shared_lock:
        pass
    with shared_recursive:
        with shared_recursive:
            pass
    time.sleep(0)
    tally.add("time.sleep")

def process(tally):
    subprocess.run(["/bin/true"])
    tally.add("subprocess")

def work(number):
    tally = Tally(number)
    base = sqlite3.connect(":memory:")
    base.execute(f"create table t{number} (a)")
    tally.add("sqlite3.Connection.execute")
    barrier.wait()
    for round in range(ROUNDS):
        with interpose.transaction(f"round {round % 3}"):
            files(number, round, tally)
            database(number, round, tally, base)
        tally.add(f"round {round % 3}")
        sockets(number, round, tally)
        locks(number, round, tally)
        if round % 100 == 0:
            process(tally)
    base.close()

threads = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([counts, getattr(sys, "_is_gil_enabled", lambda: True)()]))
"""
NAMES = {"os.open", "os.write", "os.pread", "os.stat", "time.sleep"}
NAMES |= {"sqlite3.Connection.execute", "sqlite3.Connection.commit"}
SOCKETS = {"socket.send": "socket.socket.send", "socket.recv": "socket.socket.recv"}


def read(done):
    """Of each worker, by number: how many calls there were of each name, and the bytes that they moved."""
    founder = done.experiment.founder
    workers = {thread.number: founder.string(thread.record.name) for thread in founder.threads}
    found = {int(name.split()[1]): Counter() for name in workers.values() if name.startswith("worker ")}
    moved = {number: Counter() for number in found}
    for event in done.events():
        name, thread = founder.intrinsic(event.intrinsic).name, workers[event.thread]
        if not thread.startswith("worker "):
            continue
        number = int(thread.split()[1])
        name = founder.string(event.detail) if name == "interpose.transaction" else name
        found[number][name] += 1
        moved[number][name] += event.bytes
    return found, moved


def check(traced, interpose, rounds, **how):
    done = traced(PROGRAM, str(rounds), **how).ended_well()
    counted, lock_is_on = json.loads(done.stdout)
    found, moved = read(done)

    assert lock_is_on == ("t" not in sys.abiflags)
    assert sorted(found) == list(range(8))
    for number, did in enumerate(counted):
        inside = {name: count for name, (count, _) in did.items() if name in NAMES or name.startswith("round ")}
        inside |= {SOCKETS[name]: count for name, (count, _) in did.items() if name in SOCKETS}
        assert {name: found[number][name] for name in inside} == inside
        sums = {SOCKETS.get(name, name): bytes for name, (_, bytes) in did.items() if bytes}
        assert {name: moved[number][name] for name in sums} == sums
    children = done.experiment.founder.children
    assert len(children) == sum(did["subprocess"][0] for did in counted)
    assert all(child.record.end_ns for child in children)
    assert "   complete\n" in interpose("report", done.path).stdout
    assert interpose("check", done.path).returncode == 0


@pytest.mark.long
def test_eight_threads_that_do_everything_at_once_are_counted_exactly(traced, interpose):
    check(traced, interpose, 300)


@pytest.mark.slow
@pytest.mark.reach
def test_they_are_for_minutes(traced, interpose):
    check(traced, interpose, 20_000, timeout_s=600)
