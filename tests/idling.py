"""Programs that wait, for the tests of what is idle."""

import re

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
