"""A prefork server that everybody has: its workers are followed, and it serves, reloads and ends as without us."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing

import pytest
from tracing import Traced, environment

from interpose.analysis.recording.ending import ending

pytest.importorskip("gunicorn")

APP = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep(60)
    with open(__file__) as file:
        size = len(file.read())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {size}".encode()]
"""
WORKERS = 2


class Server:
    """gunicorn with two workers in `directory`; what it says is in the file `said`."""

    def __init__(self, directory, *options, **variables):
        self.directory = directory
        (directory / "shop.py").write_text(APP)
        words = [sys.executable, "-m", "gunicorn", "-w", str(WORKERS), "-b", "127.0.0.1:0", *options, "shop:app"]
        with open(directory / "said", "wb") as said:
            self.process = subprocess.Popen(
                words, cwd=directory, env=environment(**variables), stdout=said, stderr=said, start_new_session=True
            )
        self.port = int(self.until(r"Listening at: http://127.0.0.1:(\d+)")[0])
        self.until(r"Booting worker with pid: (\d+)", WORKERS)

    def until(self, pattern, times=1):
        """What the pattern found, as soon as it was said so often."""
        end_s = time.monotonic() + 60
        while len(found := re.findall(pattern, (self.directory / "said").read_text())) < times:
            assert time.monotonic() < end_s, (self.directory / "said").read_text()
            assert self.process.poll() is None, (self.directory / "said").read_text()
            time.sleep(0.02)
        return found

    def ask(self, path="/", timeout_s=60):
        """The number of the worker that answered."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)) as connection:
            connection.request("GET", path)
            worker, size = connection.getresponse().read().split()
        assert int(size) == len(APP)
        return int(worker)

    def ask_until(self, workers):
        """Ask until so many different ones have answered; gives how often each did."""
        answered, end_s = Counter(), time.monotonic() + 60
        while len(answered) < workers:
            assert time.monotonic() < end_s
            answered[self.ask()] += 1
        return answered

    def end(self):
        """Its exit code, after SIGTERM."""
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def server(tmp_path):
    servers = []

    def start(*options, **variables):
        servers.append(Server(tmp_path, *options, INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"), **variables))
        return servers[-1]

    yield start
    for each in servers:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
        each.process.wait()


def recorded(server):
    done = subprocess.CompletedProcess([], server.process.returncode, "", "")
    return Traced(server.directory, done)


def test_its_workers_are_followed_and_what_they_did_is_recorded(server):
    running = server()
    answered = running.ask_until(WORKERS)
    assert running.end() == 0

    done = recorded(running)
    founder, *workers = done.experiment.processes
    assert [process.lineage for process in workers] == ["_f1", "_f2"]
    assert {process.log.pid for process in workers} == set(answered)
    for process in workers:
        opened = [each for each in done.events("io.FileIO", process) if "shop.py" in process.string(each.detail)]
        assert len(opened) >= answered[process.log.pid]
        assert len(done.events("socket.socket.sendall", process)) >= answered[process.log.pid]
        assert (ending(process).state, ending(process).status) == ("exit", 0)
    assert "Traceback" not in (running.directory / "said").read_text()
    assert founder.unrecorded_children == 0


@pytest.mark.parametrize("addresses", [(), ("-b", "unix:other.sock")], ids=["one listener", "two listeners"])
def test_a_worker_that_waits_for_a_connection_is_idle(addresses, server):
    running = server("-k", "sync", *addresses)
    running.ask_until(WORKERS)
    time.sleep(0.3)
    running.ask_until(WORKERS)
    assert running.end() == 0

    done = recorded(running)
    for process in done.experiment.processes[1:]:
        waited = {process.intrinsic(event.intrinsic).kind for event in done.events("select.select", process)}
        assert waited == {"idle"}


def test_a_worker_that_is_killed_is_told_and_the_next_is_followed(server):
    running = server()
    first = running.ask()
    os.kill(first, signal.SIGKILL)
    booted = running.until(r"Booting worker with pid: (\d+)", WORKERS + 1)
    running.ask_until(WORKERS)
    assert running.end() == 0

    processes = recorded(running).experiment.processes[1:]
    assert [process.lineage for process in processes] == ["_f1", "_f2", "_f3"]
    assert {str(process.log.pid) for process in processes} == set(booted)
    ends = {process.log.pid: ending(process) for process in processes}
    assert (ends.pop(first).signal, {end.state for end in ends.values()}) == (signal.SIGKILL, {"exit"})


def test_workers_of_threads_that_are_reloaded_and_loaded_before_the_fork(server):
    running = server("--preload", "-k", "gthread", "--threads", "4")
    running.ask()
    running.process.send_signal(signal.SIGHUP)
    booted = running.until(r"Booting worker with pid: (\d+)", 2 * WORKERS)
    running.until(r"Worker exiting", WORKERS)
    running.ask()
    assert running.end() == 0

    processes = recorded(running).experiment.processes[1:]
    assert {str(process.log.pid) for process in processes} == set(booted)
    assert {ending(process).state for process in processes} == {"exit"}
