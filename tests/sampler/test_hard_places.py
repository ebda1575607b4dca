"""Where sampling is hard, or refused: the program is what it is without it, and the sampler ends well."""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import profiled
from interpose.analysis.recording.ending import has_mapped
from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import SAMPLES, Sampled
from interpose.profiler import Profiler
from interpose.timing.sampler import Sampler
from tests.hooks.test_other_interpreters import MAKING

pytestmark = pytest.mark.any_python

BUSY = """
import time
print("ready", flush=True)
def busy(until):
    while time.monotonic() < until: sum(range(1000))
busy(time.monotonic() + 60)
"""


def sampled_records(path: Path) -> int:
    return sum(each.samples for each in Sampled(Experiment(str(path)).founder).samples())


def sample_for(sampler: Sampler, seconds: float) -> None:
    """It returns whenever the experiment's directory has changed."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        sampler.run(left)


@pytest.fixture
def program():
    return BUSY


@contextlib.contextmanager
def started(place, environment, program):
    """A program that computes and is recorded, but not sampled; its experiment."""
    environment = {**environment, "INTERPOSE": "calls", "INTERPOSE_DIR": str(place)}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield Experiment(str(place / "test.1.er")).founder
    process.kill()
    process.communicate()


@pytest.fixture
def running(tmp_path, own_environment, program):
    with started(tmp_path, own_environment, program) as founder:
        yield founder


@pytest.fixture
def sampler(running):
    found = Sampler(running.directory, 500)
    yield found
    found.close()


def test_what_is_no_layout_is_refused(running, sampler):
    for layout in ({"runtime": 1}, {**running.log.interpreter, "thread_bytes": 1 << 40}):
        with pytest.raises(OSError):
            sampler.add(running.log.pid, running.directory, layout, [])


def test_wrong_places_lead_nowhere_and_break_nothing(running, tmp_path):
    """The layout stands in a file that anybody might have written."""
    source, layout = random.Random(20), running.log.interpreter
    values = [0, 1, 7, 8, 255, 4096, 2**31, 2**47, 2**64 - 1, *layout.values()]
    for _ in range(60):
        wrong = {**layout, **{name: source.choice(values) for name in source.sample(list(layout), 3)}}
        sampler = Sampler(running.directory, 1000)
        try:
            sampler.add(running.log.pid, running.directory, wrong, ["/usr/"])
            sample_for(sampler, 0.02)
        except OSError:
            pass
        sampler.close()
        for name in ("samples", "sampled_sites", "sampled_stacks", "sampled_strings", "sampled_memory"):
            (Path(running.directory) / name).unlink(missing_ok=True)
    assert has_mapped(running.directory, running.log.pid)


def test_a_process_that_ends_is_let_go(running, sampler):
    sampler.add(running.log.pid, running.directory, running.log.interpreter, running.log.libraries)
    sample_for(sampler, 0.1)
    os.kill(running.log.pid, 9)
    time.sleep(0.05)
    sample_for(sampler, 0.1)
    sampler.close()

    assert sampled_records(Path(running.directory)) > 10


def test_who_was_sampled_by_another_is_not_sampled_again(running, sampler):
    sampler.add(running.log.pid, running.directory, running.log.interpreter, running.log.libraries)
    sample_for(sampler, 0.2)
    sampler.close()
    before = (Path(running.directory) / "samples").read_bytes()

    again = Sampler(running.directory, 100)
    with pytest.raises(FileExistsError):
        again.add(running.log.pid, running.directory, running.log.interpreter, running.log.libraries)
    again.close()
    assert (Path(running.directory) / "samples").read_bytes() == before


def test_an_experiment_that_is_removed_meanwhile_ends_the_sampling(running):
    profiler = Profiler(running.directory, 500)
    time.sleep(0.2)
    shutil.rmtree(running.directory)
    time.sleep(0.2)
    profiler.close()

    assert not os.path.exists(running.directory)
    assert os.path.exists(f"/proc/{running.log.pid}")


@pytest.mark.long
def test_what_is_sampled_for_long_is_sampled_more_rarely(running):
    """The rate is halved after each record here, so each takes at least twice the rounds of the one before it."""
    rounds = 2000
    sampler = Sampler(running.directory, 1000, at_each_rate_bytes=64)
    sampler.add(running.log.pid, running.directory, running.log.interpreter, running.log.libraries)
    sample_for(sampler, rounds / 1000)
    sampler.close()

    records = list(Sampled(Experiment(running.directory).founder).samples())
    assert 2 <= len(records) <= rounds.bit_length() + 2


def test_a_closed_sampler_says_so(sampler):
    sampler.close()
    with pytest.raises(ValueError, match="closed"):
        sampler.run(0.1)


@pytest.fixture
def disk(tmp_path):
    """A file system of a few MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_disk_that_is_full_ends_the_sampling_alone(disk, own_environment):
    with started(disk, own_environment, BUSY) as founder:
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        sampler = Sampler(founder.directory, 1000)
        sampler.add(founder.log.pid, founder.directory, founder.log.interpreter, founder.log.libraries)
        sample_for(sampler, 0.5)
        sampler.close()

        assert has_mapped(founder.directory, founder.log.pid)
        assert sampled_records(Path(founder.directory)) == 0


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 0),
        ("import os; os._exit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("import sys; sys.exit('bad')", 1),
        ("import os\nfor _ in range(40):\n    if os.fork() == 0: os._exit(0)\n    os.wait()", 0),
        ("import threading\nfor _ in range(300):\n t = threading.Thread(target=int); t.start(); t.join()", 0),
        ("for n in range(3000): exec(f'def f{n}(x): return x + {n}\\nf{n}(1)')", 0),
        ("import sys\nsys.setswitchinterval(1e-6)\nimport threading\n"
         "ts=[threading.Thread(target=lambda: sum(range(300_000))) for _ in range(8)]\n"
         "[t.start() for t in ts]; [t.join() for t in ts]", 0),
        ("import gc\nfor _ in range(3000):\n g = (i for i in range(3)); next(g); del g\n gc.collect(0)", 0),
    ],
)  # fmt: skip
def test_the_outcome_is_the_programs_own(interpose, tmp_path, program, code):
    (tmp_path / "work" / "app.py").write_text(program)

    done = interpose("run", "--profile", "1000", "app.py")
    plain = subprocess.run([sys.executable, "app.py"], cwd=tmp_path / "work", capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.returncode == code
    assert not Experiment(str(tmp_path / "work" / "test.1.er")).damages.found


BECOMES_ANOTHER = """
import ctypes, os, sys, time
def busy(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: sum(range(1000))
SAME_ADDRESSES, NEXT = 0x40000, "import time; print(time.monotonic_ns(), flush=True); import app; app.busy(0.3)"
if __name__ == "__main__":
    if len(sys.argv) == 1:  # what runs next has its memory where this one has it
        ctypes.CDLL(None).personality(SAME_ADDRESSES)
        os.execv(sys.executable, [sys.executable, "app.py", "again"])
    busy(0.2)
    os.execve(sys.executable, [sys.executable, "-c", NEXT], {"INTERPOSE": "0"})
"""


def test_a_program_that_the_process_becomes_is_not_sampled_as_the_one_before(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text(BECOMES_ANOTHER)

    done = interpose("run", "--profile", "1000", "app.py")

    before = next(each for each in Experiment(str(tmp_path / "work" / "test.1.er")).processes if each.lineage == "_x1")
    taken = list(before.table_if_there(SAMPLES, SampleRecord).plain())
    assert len(taken) > 20
    assert max(each.last_ns for each in taken) < int(done.stdout)


def test_a_wait_that_no_call_explains_is_told_with_its_line(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text("""
import ctypes
libc = ctypes.CDLL(None)
def fetch():
    for _ in range(20): libc.usleep(20_000)
fetch()
""")

    interpose("run", "app.py")

    assert "outside all recorded calls, mostly at app.py:5 fetch (" in " ".join(interpose("report").stdout.split())


FORKED_BY_C = """
import ctypes, os, threading, time
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
def of_the_child():
    os.stat(".")
    until = time.thread_time() + 0.3
    while time.thread_time() < until: sum(range(1000))
if not ctypes.PyDLL(None).fork():
    of_the_child()
    os._exit(0)
os.wait()
end.set()
"""


def test_a_child_that_c_code_forked_without_telling_python_is_sampled(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text(FORKED_BY_C)

    interpose("run", "--profile", "1000", "app.py")

    _, child = Experiment(str(tmp_path / "work" / "test.1.er")).processes
    found = Sampled(child)
    taken = [each for each in found.samples() if "of_the_child" in [site.function for site in found.frames(each.stack)]]
    assert {each.tid for each in taken} == {child.log.pid}
    assert sum(each.samples for each in taken) > 20


@pytest.mark.long
def test_five_hundred_threads_are_sampled(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text("""
import threading, time
end = threading.Event()
threads = [threading.Thread(target=end.wait) for _ in range(500)]
for each in threads: each.start()
until = time.thread_time() + 0.5
while time.thread_time() < until: sum(range(1000))
end.set()
for each in threads: each.join()
""")
    assert interpose("run", "app.py").returncode == 0
    records = list(Sampled(Experiment(str(tmp_path / "work" / "test.1.er")).founder).samples())

    assert len({each.tid for each in records}) > 490


SAMPLE = """
import sys
from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.experiment import Experiment
from interpose.timing.sampler import Sampler
founder = Experiment(sys.argv[1]).founder
try:
    Sampler(founder.directory, 100).add(founder.log.pid, founder.directory, founder.log.interpreter, [])
except PermissionError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a right to give up")
@pytest.mark.parametrize("program", ["import ctypes; ctypes.CDLL(None).prctl(4, 0)" + BUSY])
def test_where_reading_is_refused_the_experiment_says_so(running):
    """A process that is not dumpable can be read only by who has the right to trace anything."""
    words = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", sys.executable, "-c", SAMPLE]

    done = subprocess.run([*words, running.directory], capture_output=True, text=True)

    assert done.stdout == "Operation not permitted\n", done.stderr
    sampled = Sampled(Experiment(running.directory).founder)
    assert (sampled.why_not, list(sampled.samples())) == ("Operation not permitted", [])


OTHER_INTERPRETER = """
def inner(until):
    while time.thread_time() < until: sum(range(1000))
run("import time\\n" + inspect.getsource(inner) + "inner(time.thread_time() + 0.5)")
"""


@pytest.mark.long
def test_what_another_interpreter_of_the_process_runs_is_sampled(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text("import inspect" + MAKING + OTHER_INTERPRETER)

    done = interpose("run", "--profile", "500", "app.py")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sampled = Sampled(Experiment(str(tmp_path / "work" / "test.1.er")).founder)
    assert "inner" in {site.function for each in sampled.samples() for site in sampled.frames(each.stack)}


IN_A_NAMESPACE = """
import subprocess, sys
child = "import time\\nwhile time.thread_time() < 0.5: sum(range(1000))\\nprint(sum(range(9)))"
done = subprocess.run(["unshare", "-fp", sys.executable, "-c", child], capture_output=True, text=True)
print(done.stdout, done.stderr, done.returncode)
"""


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_a_child_whose_number_is_another_process_outside_is_not_sampled(interpose, tmp_path):
    """In a namespace of process numbers it is process 1."""
    (tmp_path / "work" / "app.py").write_text(IN_A_NAMESPACE)

    done = interpose("run", "--profile", "500", "app.py")

    if "unshare" in done.stdout:
        pytest.skip("no right to make a namespace")
    assert (done.returncode, done.stdout, done.stderr) == (0, "36\n  0\n", "")
    child = Experiment(str(tmp_path / "work" / "test.1.er")).processes[-1]
    assert child.log.pid == 1
    assert list(Sampled(child).samples()) == []


ELSEWHERE = "import time\nwhile time.process_time() < 0.3: sum(range(1000))\n"
DECOY = """
import subprocess, sys, threading
def decoy():
    while not done: sum(range(1000))
done = []
thread = threading.Thread(target=decoy)
thread.start()
print(subprocess.run(sys.argv[1:], capture_output=True, text=True))
done.append(1)
thread.join()
"""


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
@pytest.mark.parametrize("has_decoy", [False, True])
def test_nothing_is_read_of_the_process_that_has_the_number_outside(own_environment, tmp_path, has_decoy):
    """Process 1 outside is the machine's first one, which may not be read, or a process of the same user."""
    (tmp_path / "app.py").write_text(ELSEWHERE)
    namespace = ["unshare", "-fp", "--mount-proc", sys.executable]
    words = [sys.executable, "-m", "interpose", "run", "--profile", "500", "-O", "t.1.er", *namespace, "app.py"]
    if shutil.which("strace"):
        words = ["strace", "-f", "-qq", "-o", "calls", "-e", "trace=openat", *words]
    if has_decoy:
        (tmp_path / "decoy.py").write_text(DECOY)
        words = [*namespace, "decoy.py", *words]

    done = subprocess.run(words, cwd=tmp_path, env=own_environment, capture_output=True, text=True, timeout=60)

    if "unshare:" in done.stdout + done.stderr:
        pytest.skip("no right to make a namespace")
    assert done.returncode == 0, done.stderr
    experiment = Experiment(str(tmp_path / "t.1.er"))
    inside = [each for each in experiment.processes if each.log.pid == 1 and each.log.interpreter]
    assert [(Sampled(each).is_elsewhere, list(Sampled(each).samples())) for each in inside] == [(True, [])]
    assert "another PID namespace" in profiled(Analysis(experiment)).sampling.refused
    if shutil.which("strace"):
        calls = (tmp_path / "calls").read_text().splitlines()
        assert [line for line in calls if "app.py" in line]
        assert [line for line in calls if '"/proc/1/' in line] == []


FILLED_STACK = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
def numbers():
    while True: yield sum(range(3))
endless = numbers()
call = ctypes.CFUNCTYPE(None)(lambda: next(endless) and None)
while time.thread_time() < 1.5: library.call_and_fill(call, 2000)
print(library.call_and_fill.__name__)
"""


@pytest.mark.long
def test_whatever_c_code_leaves_where_frames_were_is_not_taken_for_an_address(interpose, compiler, tmp_path):
    source, library = Path(__file__).with_name("filled_stack.c"), tmp_path / "filled_stack.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    (tmp_path / "work" / "app.py").write_text(FILLED_STACK)

    done = interpose("run", "--profile", "500", "app.py", str(library))

    assert (done.returncode, done.stdout, done.stderr) == (0, "call_and_fill\n", "")
    sampled = Sampled(Experiment(str(tmp_path / "work" / "test.1.er")).founder)
    assert sum(each.samples for each in sampled.samples()) > 100


MANY_DEEP = """
import time
def numbers(depth):
    if depth: yield from numbers(depth - 1)
    while True: yield sum(range(20_000))
endless = numbers(40)
until = time.monotonic() + 1.5
while time.monotonic() < until: next(endless)  # who asks the kernel for its CPU time may lose the processor in it
"""


@pytest.mark.long
def test_generators_many_deep_are_read_whole(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text(MANY_DEEP)

    assert interpose("run", "--profile", "250", "app.py").returncode == 0

    sampled = Sampled(Experiment(str(tmp_path / "work" / "test.1.er")).founder)
    samples = list(sampled.samples())
    depths = [[site.function for site in sampled.frames(each.stack)].count("numbers") for each in samples]
    whole = sum(each.samples for each, depth in zip(samples, depths, strict=True) if depth == 41)
    assert whole > 0.8 * sum(each.samples for each in samples)
