"""A service for a long time, each of its requests about something else: what recording takes of it stays bounded.

REACH_SOAK_S=900 soaks for so many seconds, an hour by default; and a sixth of it with names that are folded.
"""

import contextlib
import importlib.util
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time

import pytest
from tracing import environment

from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reach,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("flask", "gunicorn"))), reason="Flask and gunicorn are not installed"
    ),
]

SOAK_S = float(os.environ.get("REACH_SOAK_S", "3600"))
RATE = 150  # requests a second
LOOK_S = 5.0
WEEK_S = 7 * 24 * 3600
MIB = 1 << 20
SHOP = """
import sqlite3, flask
shop = flask.Flask(__name__)
connection = sqlite3.connect("shop.db", isolation_level=None, check_same_thread=False)
connection.execute("pragma synchronous = off")
connection.execute("create table if not exists orders (id integer primary key, what text)")

@shop.get("/orders/<int:number>")
def order(number):
    connection.execute(f"select what from orders where id = {number}").fetchall()
    connection.execute(f'select what as "order {number}" from orders where id = ?', (number,)).fetchall()
    return str(number)

@shop.get("/health")
def health():
    return "ok"
"""
# Asks for /health each tenth time; prints how many requests were answered, and in what time in the middle.
CLIENT = """
import http.client, statistics, sys, time
port, rate, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
begun_s, answered, times_s = time.monotonic(), 0, []
for number in range(int(rate * seconds)):
    due_s = begun_s + number / rate
    time.sleep(max(due_s - time.monotonic(), 0))
    before_s = time.monotonic()
    if before_s - begun_s > seconds:
        break
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/health" if number % 10 == 0 else f"/orders/{number}")
    answered += connection.getresponse().read() != b""
    connection.close()
    times_s.append(time.monotonic() - before_s)
print(answered, statistics.median(times_s))
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


def used_by(pid):
    """The resident memory of a process and how many descriptors it has."""
    with open(f"/proc/{pid}/status") as file:
        resident = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def on_disk(directory, name="*"):
    return sum(file.stat().st_blocks * 512 for file in directory.rglob(name) if file.is_file())


class Sample:
    """What is used at one time."""

    def __init__(self, experiment, master):
        self.at_s = time.monotonic()
        self.disk_bytes = on_disk(experiment)
        self.texts_bytes = on_disk(experiment, "strings")
        # Events are put together when they have so much, and records are so many: these go up and down.
        bounded = sum(on_disk(experiment, name) for name in ("events", "events.zst", "consolidated"))
        self.growing_bytes = self.disk_bytes - self.texts_bytes - bounded
        used = [used_by(pid) for pid in children_of(master)]
        self.workers_bytes = sum(resident for resident, _ in used)
        self.descriptors = sum(count for _, count in used)
        self.monitor_bytes = self.monitor_descriptors = 0
        monitor = Control(Experiment(str(experiment)).founder).read().monitor
        if monitor:
            with contextlib.suppress(FileNotFoundError, StopIteration):
                self.monitor_bytes, self.monitor_descriptors = used_by(monitor)


def soaked(place, settings, seconds):
    """Samples while the service was asked, and how much was answered in which time."""
    (place / "shop.py").write_text(SHOP)
    port = free_port()
    own = environment(XDG_STATE_HOME=str(place / "state"), **settings)
    words = ["-m", "gunicorn", "--workers", "2", "--log-level", "critical", "--bind", f"127.0.0.1:{port}", "shop:shop"]
    with subprocess.Popen([sys.executable, *words], cwd=place, env=own) as service:
        try:
            wait_for(port)
            client = subprocess.Popen(
                [sys.executable, "-c", CLIENT, str(port), str(RATE), str(seconds)], stdout=subprocess.PIPE, text=True
            )
            samples = []
            while client.poll() is None:
                time.sleep(min(LOOK_S, seconds / 60))
                with contextlib.suppress(OSError):
                    samples.append(Sample(place / "test.1.er", service.pid))
            answered, median_s = client.communicate()[0].split()
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)
    return samples, int(answered), float(median_s)


def wait_for(port):
    end_s = time.monotonic() + 30
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port)).close()
        time.sleep(0.05)
    raise AssertionError("the service does not answer")


def reported(path):
    """The processor time and the elapsed time that a report takes."""
    before, begun_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    words = [sys.executable, "-m", "interpose", "report", "--by", "detail", str(path)]
    done = subprocess.run(words, env=environment(), cwd=path.parent, capture_output=True, text=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.monotonic() - begun_s, done.stdout


# Names that differ, as they are and folded to their shape.
FOLDED = {"INTERPOSE_ARGUMENTS": "net=normalised,file=normalised,logic=normalised,db=normalised"}


@pytest.mark.parametrize(
    ("settings", "seconds"), [({}, SOAK_S), (FOLDED, SOAK_S / 6)], ids=["as they are", "folded"]
)
def test_what_recording_takes_is_bounded_however_long_it_goes_on(tmp_path, tally, settings, seconds):
    variables = {"INTERPOSE": "1", "INTERPOSE_CONSOLIDATE": "1", **settings}
    samples, answered, median_s = soaked(tmp_path, variables, seconds)
    experiment = tmp_path / "test.1.er"
    cpu_s, elapsed_s, shown = reported(experiment)
    half = samples[len(samples) // 2 :]
    ahead, behind = half[: len(half) // 2], half[len(half) // 2 :]
    begin, end = half[0], half[-1]
    texts = (end.texts_bytes - begin.texts_bytes) / (end.at_s - begin.at_s)
    rest = (end.growing_bytes - begin.growing_bytes) / (end.at_s - begin.at_s)
    # Texts that are new are kept until they have a quarter of the pool (INTERPOSE_POOL).
    week_texts_bytes = min(end.texts_bytes + texts * WEEK_S, 2 * 1024 * MIB / 4)
    week_bytes = week_texts_bytes + end.disk_bytes - end.texts_bytes + max(rest, 0) * WEEK_S
    most_of_monitor = max(each.monitor_bytes for each in samples)

    print(
        f"\n{seconds:.0f} s, {answered:,} requests, {median_s * 1e3:.1f} ms in the middle; disk"
        f" {end.disk_bytes / MIB:.1f} MiB, texts {texts / 1024:.2f} KiB/s, else {rest / 1024:.2f}, so"
        f" {week_bytes / MIB:,.0f} MiB in a week, of it texts {week_texts_bytes / MIB:,.0f};"
        f" monitor {begin.monitor_bytes / MIB:.1f} to {end.monitor_bytes / MIB:.1f} MiB, at most"
        f" {most_of_monitor / MIB:.1f}, {begin.monitor_descriptors} to {end.monitor_descriptors} descriptors; workers"
        f" {begin.workers_bytes / MIB:.1f} to {end.workers_bytes / MIB:.1f} MiB, {begin.descriptors} to"
        f" {end.descriptors} descriptors; report {cpu_s:.2f} s of processor, {elapsed_s:.2f} s"
    )
    for what in ("workers_bytes", "monitor_bytes"):
        before, after = (statistics.median(getattr(each, what) for each in part) for part in (ahead, behind))
        tally.check(after <= before * 1.1 + 2 * MIB, f"{what}: {before / MIB:.1f} MiB, then {after / MIB:.1f}")
    for what in ("descriptors", "monitor_descriptors"):
        before, after = (max(getattr(each, what) for each in part) for part in (ahead, behind))
        tally.check(after <= before + 4, f"{what}: {before}, then {after}")
    tally.check(most_of_monitor <= 64 * MIB, f"the monitor had {most_of_monitor / MIB:.1f} MiB")
    if begin.monitor_bytes:  # in a short soak there is no monitor yet, and no week can be told from it
        tally.check(week_bytes <= 1024 * MIB, f"{week_bytes / MIB:,.0f} MiB in a week")
    tally.check(cpu_s <= 5, f"the report took {cpu_s:.1f} s of a processor")
    tally.check("/health" in shown and answered > 0, shown[:500])
    tally.end()
