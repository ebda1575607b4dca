"""Data races in the shims and the recorder, where no interpreter lock orders threads: what ThreadSanitizer finds.

For an interpreter and an interpose that were both compiled with it (CONTRIBUTING.md).
"""

import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from tracing import environment

from interpose.config import filters
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.filtering import change_filter
from interpose.experiments.metadata.pauses import Switch
from interpose.experiments.model.experiment import Experiment

IS_SANITIZED = "--with-thread-sanitizer" in (sysconfig.get_config_var("CONFIG_ARGS") or "") and "t" in sys.abiflags
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SANITIZED, reason="not a free-threaded interpreter compiled with ThreadSanitizer"),
]

PROGRAM = """
import importlib, os, queue, select, socket, sqlite3, subprocess, sys, tempfile, threading, time
import interpose

THREADS, SECONDS = 6, 8
MODULES = "wave colorsys netrc plistlib csv getopt gettext quopri zipfile tarfile http.client ftplib ssl dbm".split()
ends = time.monotonic() + SECONDS
plain, recursive, condition = threading.Lock(), threading.RLock(), threading.Condition()
semaphore, event, items = threading.Semaphore(2), threading.Event(), queue.Queue()
directory = tempfile.mkdtemp()
server = socket.create_server(("127.0.0.1", 0))

def serve():
    while True:
        client, _ = server.accept()
        with client:
            client.sendall(client.recv(100))

def files(number, round):
    path = f"{directory}/{number}.{round % 7}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"x" * (round % 50))
    os.close(descriptor)
    with open(path) as file:
        file.read()
    os.unlink(path)
    os.listdir(directory)

def database(number, round, base):
    base.execute(f"insert into t values ({round}, 'text {number}')")
    base.execute(f"select a as c{round % 300} from t where a = {round}").fetchall()
    for row in base.execute("select a from t limit 3"):
        pass
    base.commit()

def sockets(round):
    one, other = socket.socketpair()
    with one, other:
        one.send(b"y" * (1 + round % 50))
        select.select([other], [], [], 0)
        poller = select.poll()
        poller.register(other, select.POLLIN)
        poller.poll(0)
        with select.epoll() as epoll:
            epoll.register(other.fileno(), select.EPOLLIN)
            epoll.poll(0)
            epoll.unregister(other.fileno())
        other.recv(100)
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(b"hello")
        client.recv(100)

def locks(round):
    with plain:
        if round % 5 == 0:
            time.sleep(0.001)
    with recursive, recursive, semaphore:
        time.sleep(0)
    with condition:
        condition.notify_all()
        if round % 9 == 0:
            condition.wait(0.001)
    items.put(round)
    items.get()
    event.set()
    event.wait(0.01)
    event.clear()

def processes(number):
    subprocess.run(["/bin/true"])
    if number == 0:
        child = os.fork()
        if child == 0:
            with interpose.transaction("child"):
                os.listdir("/")
            os._exit(0)
        os.waitpid(child, 0)

def come_and_go(round):
    threads = [threading.Thread(target=os.stat, args=("/",), name=f"short {round}") for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def patched(round):
    made = type("Made", (sqlite3.Connection,), {"commit": lambda self: super(made, self).commit()})
    base = made(":memory:")
    base.execute("select 1")
    base.commit()
    base.close()
    names = {}
    exec(compile("import os\\ndef f():\\n    os.stat('/')\\nf()", f"made{round % 50}.py", "exec"), names)

def work(number):
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a, b)")
    round = 0
    while time.monotonic() < ends:
        round += 1
        with interpose.transaction(f"round {round % 3}"):
            files(number, round)
            database(number, round, base)
        sockets(round)
        locks(round)
        patched(round)
        if round % 10 == 0: come_and_go(round)
        if round % 15 == 0: processes(number)
        if round % 4 == 0: importlib.import_module(MODULES[(number * 3 + round) % len(MODULES)])
        if round % 12 == 0:
            interpose.user_event(f"seen {round}")
            interpose.sample(f"at {round}")
    base.close()

threading.Thread(target=serve, daemon=True).start()
threads = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(THREADS)]
for thread in threads: thread.start()
if "stop" in sys.argv:
    time.sleep(SECONDS / 2)
    interpose.stop_process()
for thread in threads: thread.join()
"""

FILTERS = (
    "kind=db,file",
    "function=__main__:files",
    "within=__main__:work;skip=10",
    "transaction=round 1",
    "thread=worker-*,2,3",
    "event=os.*;keep=100000",
    "line=program.py:1-60",
    "module=-__main__",
    "within=-__main__:files;from=1s",
    "off",
)
SETTINGS = {
    "sampled": {"TRANSACTIONS": "1/3", "BUDGET": "1%", "PROPAGATE": "1", "SYNC": "all"},
    "ring": {"LEVELS": "os.stat=count", "RING": "4MiB", "ROWS": "cursor", "STACK_ABOVE": "1us"},
    "interval": {"INTERVAL": "100us", "SAMPLE": "0.01", "TRIGGER": "call > 1ms", "REDACT": "text"},
}

SUPPRESSIONS = Path(__file__).with_name("races.supp")
OURS = re.compile(r"\((libinterpose\w*|shims|clocks)\.")
STACK = re.compile(r"(?:^ +#\d+ .*\n)+", re.MULTILINE)


def start(directory, *words, **variables):
    """The program, recorded in `directory`."""
    (directory / "program.py").write_text(PROGRAM)
    logs = f"log_path={directory / 'races'} exitcode=0 history_size=7 die_after_fork=0 suppressions={SUPPRESSIONS}"
    settings = environment(INTERPOSE="1", TSAN_OPTIONS=logs, **variables)
    command = [sys.executable, "-W", "ignore", "program.py", *words]
    return subprocess.Popen(command, cwd=directory, env=settings, stderr=subprocess.PIPE, text=True)


def is_of_interpreter(line):
    """Is a frame of a stack in the sanitizer's own functions, which stand before that which called them?"""
    return "libtsan" in line or "sanitizer_common" in line


def is_by_us(stack):
    """Is the access that a stack leads to one of our code?"""
    frames = [line for line in stack.splitlines() if not is_of_interpreter(line)]
    return bool(frames) and OURS.search(frames[0]) is not None


def races(directory):
    """Of each race of which one of the two accesses is in our code, the two stacks."""
    reports = [
        report
        for log in directory.glob("races.*")
        for report in log.read_text(errors="replace").split("WARNING: ThreadSanitizer: data race")[1:]
    ]
    both = [STACK.findall(report)[:2] for report in reports]
    return ["\n".join(stacks) for stacks in both if any(is_by_us(stack) for stack in stacks)]


def check(directory, program):
    told = program.communicate(timeout=300)[1]

    assert (program.returncode, told) == (0, "")
    assert Experiment(str(directory / "test.1.er")).founder.events
    assert races(directory) == []


def change_until_the_end(directory, program):
    """Change filter and pauses, and want samples, as long as the program runs."""
    while not (directory / "test.1.er" / "map.xml").exists():
        time.sleep(0.05)
    time.sleep(1)  # it imports
    founder = Experiment(str(directory / "test.1.er")).founder
    made = {text: filters.parse(text) for text in FILTERS}
    while program.poll() is None:
        for text, each in made.items():
            change_filter(founder, text, each.compiled(founder.log.start_ns) if each else b"")
            time.sleep(0.01)
        Switch(founder).turn(True)
        Switch(founder).turn(False)
        Control(founder).want_sample()


def test_threads_that_do_everything_at_once_do_not_race(tmp_path):
    check(tmp_path, start(tmp_path))


def test_they_do_not_race_while_filter_and_pauses_change(tmp_path):
    program = start(tmp_path)
    change_until_the_end(tmp_path, program)

    check(tmp_path, program)


def test_they_do_not_race_while_the_recording_ends(tmp_path):
    check(tmp_path, start(tmp_path, "stop"))


@pytest.mark.parametrize("settings", SETTINGS)
def test_they_do_not_race_with_other_settings(tmp_path, settings):
    variables = {f"INTERPOSE_{name}": value for name, value in SETTINGS[settings].items()}

    check(tmp_path, start(tmp_path, **variables))
