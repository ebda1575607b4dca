"""Which descendants are followed, ranks of MPI, and servers as there are."""

import sys
import time
from pathlib import Path

import pytest
from families import lineages

from interpose.analysis.calls.groupings import program_label
from interpose.experiments.model.experiment import Experiment

# --- which are followed

FAMILY = """
import os, subprocess, sys
if os.fork() == 0:
    subprocess.run([sys.executable, "-c", "1", "inner"])
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "1", "outer"])
deep = "import subprocess, sys; subprocess.run([sys.executable, '-c', '1', 'deep'])"
subprocess.run([sys.executable, "-c", deep])
"""


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        ("on", ["", "_c1", "_c2", "_c2_c1", "_f1", "_f1_c1"]),
        ("off", [""]),
        ("=outer$", ["", "_c2"]),
        ("=deep$|inner$", ["", "_c1", "_c4"]),
        ("=program|_f1", ["", "_f1", "_f1_c1"]),
        ("=_f1$", ["", "_f1"]),
        ("=_c2$", ["", "_c2"]),
    ],
)
def test_those_that_match_are_followed(traced, follow, expected):
    done = traced(FAMILY, INTERPOSE_FOLLOW=follow).ended_well()
    processes = done.experiment.processes

    assert [process.lineage for process in processes] == expected
    assert processes[0].unrecorded_children == 0


def test_who_is_not_followed_sees_nothing_of_it(traced):
    show = "import os; print(sorted(name for name in os.environ if name.startswith('INTERPOSE')))"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show!r}], env={{'INTERPOSE_X': ''}})"
    for follow in ("off", "=nothing"):
        done = traced(program, INTERPOSE_FOLLOW=follow)

        assert done.stdout == "['INTERPOSE_X']\n"
        assert len(done.experiment.processes) == 1


# --- ranks of MPI

LAUNCHER = """
import os, subprocess, sys
child = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', '1']); os.fork() or os._exit(0); os.wait()"
ranks = [
    subprocess.Popen([sys.executable, "-c", child], env={**os.environ, sys.argv[1]: str(rank), "SLURM_STEP_ID": "0"})
    for rank in range(2)
]
for rank in ranks:
    rank.wait()
"""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")


@pytest.mark.parametrize("variable", RANKS)
def test_ranks_of_mpi_are_named_by_their_numbers(traced, variable):
    done = traced(LAUNCHER, variable)

    each = ["M_r0", "M_r0_c1", "M_r0_f1", "M_r1", "M_r1_c1", "M_r1_f1"]
    assert [process.lineage for process in done.experiment.processes] == ["", *each]


def test_what_a_rank_starts_is_no_rank(traced):
    done = traced(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', '1'])", PMI_RANK="3", SLURM_PROCID="3"
    )

    assert [process.lineage for process in done.experiment.processes] == ["", "_c1"]


def test_ranks_may_be_all_that_there_is(interpose, tmp_path):
    words = "for rank in 0 1; do PMI_RANK=$rank $PYTHON -c 'print(1)'; done"
    done = interpose("run", "sh", "-c", words, variables={"PYTHON": sys.executable, "INTERPOSE": "1"})
    shown = interpose("report")

    processes = Experiment(str(tmp_path / "work" / "test.1.er")).processes
    assert (done.stdout, done.stderr) == ("1\n1\n", "")
    assert [process.lineage for process in processes] == ["M_r0", "M_r1"]
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "2 processes" in shown.stdout


# --- programs as there are

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.chdir("/")
        time.sleep(0.01)
        os._exit(0)
    os._exit(0)
os.wait()
"""

POOLS = """
import concurrent.futures, multiprocessing, os, sys, time

def work(number):
    time.sleep(0.001)
    return number

if __name__ == "__main__":
    way = sys.argv[1]
    context = multiprocessing.get_context(way)
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join()
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        print(list(pool.map(work, range(3))))
"""

PREFORK = """
import os, signal, socket, time

listener = socket.create_server(("127.0.0.1", 0))
ready, begun = os.pipe()
workers = []
for _ in range(3):
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        os.write(begun, b"!")
        while True:
            connection, _ = listener.accept()
            connection.sendall(str(os.getpid()).encode())
            connection.close()
    workers.append(worker)
answered = set()
deadline = time.monotonic() + 60
for _ in workers:
    os.read(ready, 1)
while len(answered) < 2 and time.monotonic() < deadline:
    with socket.create_connection(listener.getsockname()) as client:
        answered.add(int(client.recv(100)))
for worker in workers:
    os.kill(worker, signal.SIGTERM)
    os.waitpid(worker, 0)
print(answered <= set(workers))
"""


def test_a_daemon_that_forks_twice_is_followed(traced):
    done = traced(DAEMON)
    deadline = time.monotonic() + 30
    while len(done.experiment.processes) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)

    assert [process.lineage for process in done.experiment.processes] == ["", "_f1", "_f1_f1"]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("fork", {"": 1, "_f": 2}),
        ("spawn", {"": 1, "_c": 3}),  # the two, and the tracker of semaphores
        ("forkserver", {"": 1, "_c": 2, "_c_f": 2}),
    ],
)
def test_processes_of_multiprocessing_are_followed(traced, way, expected):
    done = traced(POOLS, way)

    assert (done.stdout, done.stderr, done.returncode) == ("[0, 1, 2]\n", "", 0)
    assert lineages(Path(done.path)) == expected


def test_the_workers_of_a_server_are_followed(traced):
    done = traced(PREFORK)

    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
    assert [process.lineage for process in done.experiment.processes] == ["", "_f1", "_f2", "_f3"]


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_has_the_name_of_the_program_that_started_it(traced, way):
    done = traced(POOLS, way)
    own, *children = [program_label(process) for process in done.experiment.processes]

    assert own and not own.startswith("-")
    assert set(children) == {own if way == "fork" else f"{own} (multiprocessing child)"}
