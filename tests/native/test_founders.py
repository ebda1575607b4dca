"""`interpose run` of programs that are not Python: each is the founder of its experiment, and does what it would have
done."""

import glob
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from servers import need_server
from system_calls import SYSTEM_CALLS, counted_by_strace, needs_strace
from tracing import events_of, same_library

from interpose.experiments.model.experiment import Experiment

# In the search path Debian has a script that starts it.
PSQL = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql")) or [each for each in (shutil.which("psql"),) if each]

pytestmark = same_library


@pytest.fixture
def work(tmp_path, interpose):
    """Where `interpose` runs, with a file of 100 KiB."""
    (tmp_path / "work" / "text").write_text("".join(f"line {number}\n" for number in range(10_000)))
    return tmp_path / "work"


def experiment_in(work):
    return Experiment(str(work / "test.1.er"))


def executable_of(process):
    return process.log.executable.rpartition("/")[2]


@needs_strace
def test_its_calls_are_as_many_as_strace_counts(interpose, work, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(work / "text", other)
    expected = counted_by_strace(["gzip", "-k", other / "text"], tmp_path / "strace.log", other / "text")

    done = interpose("run", "gzip", "-k", str(work / "text"))

    process = experiment_in(work).founder
    found = Counter()
    for event in events_of(process):
        name = process.intrinsic(event.intrinsic).name.removeprefix("libc.")
        if name in SYSTEM_CALLS and process.string(event.detail).startswith(str(work / "text")):
            found[SYSTEM_CALLS[name]] += 1
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert executable_of(process) == "gzip"
    assert found == expected
    assert sum(expected.values()) >= 5


def counted_by_ltrace(words, log, names):
    """How often the program itself, and none of its libraries, called each of these functions."""
    done = subprocess.run(["ltrace", "-c", "-e", "+".join(names), "-o", log, *words], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("ltrace does not work here")
    rows = [line.split() for line in log.read_text().splitlines()]
    return Counter({row[-1]: int(row[-2]) for row in rows if row and row[-1] in names})


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ltrace"), reason="no ltrace")
@pytest.mark.parametrize(
    ("words", "least"),
    [
        (["gzip", "-kf", "text"], 8),
        (["cat", "text"], 4),
        (["sort", "text", "-o", "sorted"], 4),
        (["dd", "if=text", "of=copy", "bs=10"], 19_000),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_its_own_calls_are_as_many_as_ltrace_counts(interpose, work, tmp_path, monkeypatch, words, least):
    other = tmp_path / "other"
    shutil.copytree(work, other)
    done = interpose("run", *words)

    process = experiment_in(work).founder
    own = [process.intrinsic(each.intrinsic).name for each in events_of(process) if is_of_program(process, each)]
    waits = {each.name for each in process.intrinsics if each.kind == "sync"}  # those that did not are no events
    names = {each.name.removeprefix("libc.") for each in process.intrinsics if each.name not in waits}
    found = Counter(name.removeprefix("libc.") for name in own if name not in waits)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(other)
    assert found == counted_by_ltrace(words, tmp_path / "ltrace.log", names)
    assert found.total() >= least


def is_of_program(process, event):
    """Whether the program called, and not one of its libraries."""
    return next(process.frames(event.stack)).file == process.log.executable


@pytest.fixture
def served_file():
    """The address of a server of HTTP that answers with a megabyte."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 20))
            self.end_headers()
            self.wfile.write(bytes(1 << 20))

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def count_both(own_environment, work, address, *words):
    """Run a program, recorded and watched by strace at the same time: how often each call was made of that address, as
    interpose and as strace count."""
    log = work / "strace.log"
    calls = {"send": "sendto", "sendto": "sendto", "recv": "recvfrom", "recvfrom": "recvfrom"}
    calls |= {"read": "read", "write": "write"}
    tracer = ["strace", "-f", "--seccomp-bpf", "-yy", "-o", log, "-e", "trace=sendto,recvfrom,read,write"]
    words = [*tracer, sys.executable, "-m", "interpose", "run", *words]
    done = subprocess.run(words, cwd=work, env=own_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in log.read_text().splitlines() if f"->{address}]>" in line]
    process = experiment_in(work).founder
    found = Counter()
    for event in events_of(process):
        name = process.intrinsic(event.intrinsic).name.removeprefix("libc.")
        if name in calls and process.string(event.detail) == address:
            found[calls[name]] += 1
    return found, Counter(re.search(r"(\w+)\(", line)[1] for line in lines)


@needs_strace
@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_calls_of_curl_are_as_many_as_strace_counts(own_environment, work, served_file):
    words = ["curl", "-s", "--noproxy", "*", "-o", "got", f"http://{served_file}/"]
    found, expected = count_both(own_environment, work, served_file, *words)

    assert (work / "got").stat().st_size == 1 << 20
    assert found == expected
    assert sum(expected.values()) >= 10


@needs_strace
@pytest.mark.skipif(not PSQL, reason="no psql")
def test_calls_of_psql_are_as_many_as_strace_counts(own_environment, work):
    need_server("postgresql")
    query = "select repeat('x', 1000) from generate_series(1, 3000)"
    words = [PSQL[-1], "-h", "127.0.0.1", "-U", "postgres", "-o", "got", "-c", query]
    found, expected = count_both({**own_environment, "PGSSLMODE": "disable"}, work, "127.0.0.1:5432", *words)

    assert (work / "got").stat().st_size > 3_000_000
    assert found == expected
    assert sum(expected.values()) >= 20


OUTCOMES = [
    "gzip -c text | wc -c; exit 3",
    "kill -TERM $$",
    "exec cat missing",
    "cat < text > /dev/full",
    "printenv LD_PRELOAD; ls -l /proc/self/fd | wc -l",
    "trap 'echo caught' USR1; kill -USR1 $$; echo after",
    "read a; echo $a",
]


@pytest.mark.parametrize("line", OUTCOMES)
def test_its_outcome_is_that_of_a_program_that_is_not_recorded(interpose, work, own_environment, line):
    given = {"input": "given\n", "text": True}
    plain = subprocess.run(["sh", "-c", line], cwd=work, env=own_environment, capture_output=True, **given)

    done = interpose("run", "sh", "-c", line, input="given\n")

    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert executable_of(experiment_in(work).founder) in ("dash", "bash", "sh", "busybox")


def test_python_below_it_is_a_descendant_with_calls_of_python_alone(interpose, work):
    line = f"{sys.executable} -c 'import os; os.stat(\".\")'; cat text | wc -l"

    done = interpose("run", "sh", "-c", line)

    lineages = {each.lineage: executable_of(each) for each in experiment_in(work).processes}
    (python,) = [each for each in experiment_in(work).processes if each.log.arguments]
    assert done.stdout.strip() == "10000"
    assert lineages[python.lineage].startswith("python")
    assert {"cat", "wc"} <= set(lineages.values())
    assert not [event for event in events_of(python) if python.intrinsic(event.intrinsic).name.startswith("libc.")]


def test_native_calls_of_python_below_it_are_recorded_on_request(interpose, work):
    code = 'import sqlite3; sqlite3.connect("d").execute("create table t(x)")'

    interpose("run", "--native", "sh", "-c", f"{sys.executable} -c '{code}'; true")

    (python,) = [each for each in experiment_in(work).processes if each.log.arguments]
    assert {"libc.fdatasync", "libc.fsync"} & {python.intrinsic(event.intrinsic).name for event in events_of(python)}


def test_what_is_to_be_recorded_of_python_leaves_a_shell_alone(interpose, work):
    interpose("run", "--record", "calls", "sh", "-c", f"{sys.executable} -c 1; true")

    (process,) = experiment_in(work).processes
    assert process.log.arguments


def test_ranks_below_a_launcher_that_is_recorded_have_their_numbers(interpose, work):
    words = "for rank in 0 1; do (export PMI_RANK=$rank; exec $PYTHON -c 'print(1)'); done"

    interpose("run", "sh", "-c", words, variables={"PYTHON": sys.executable})

    assert {"", "M_r0", "M_r1"} <= {each.lineage for each in experiment_in(work).processes}


@pytest.mark.long
def test_the_filter_and_the_pause_are_those_of_the_whole_experiment(interpose, work):
    line = "cat text > /dev/null; true"
    interpose("run", "--filter", "event=libc.read", "sh", "-c", line)
    interpose("run", "-y", "USR1", "-o", "paused.er", "sh", "-c", line)

    filtered, paused = experiment_in(work), Experiment(str(work / "paused.er"))
    names = {each.intrinsic(event.intrinsic).name for each in filtered.processes for event in events_of(each)}
    assert names == {"libc.read"}
    assert [event.kind for event in filtered.founder.log.events if event.kind == "filter"] == ["filter"]
    assert not [event for each in paused.processes for event in events_of(each)]
    assert [event.kind for event in paused.founder.log.events if event.kind == "pause"] == ["pause"]


def test_it_can_be_excluded_from_its_own_experiment(interpose, work):
    done = interpose("run", "--native", "--follow", "=^cat", "sh", "-c", "cat text > /dev/null; true")

    assert "nothing was recorded: --follow =^cat did not choose it, " in done.stderr
    assert not (work / "test.1.er").exists()


def test_without_descendants_it_is_alone(interpose, work):
    interpose("run", "--native", "--follow", "off", "sh", "-c", "cat text > /dev/null; true")

    assert [executable_of(each) for each in experiment_in(work).processes] != []
    assert len(experiment_in(work).processes) == 1


def test_one_that_cannot_be_recorded_says_why_and_what_it_used(interpose, work, compiler):
    (work / "spin.c").write_text("int main(void) { for (volatile int i = 0; i < 100000000; i++); return 5; }\n")
    subprocess.run([compiler, "-static", "-o", work / "spin", work / "spin.c"], check=True, capture_output=True)

    begun_s = time.monotonic()
    done = interpose("run", "./spin")
    took_ms = (time.monotonic() - begun_s) * 1e3

    assert done.returncode == 5
    assert done.stderr.startswith("interpose: nothing was recorded: ./spin: linked statically, ")
    assert done.stderr.count("\n") == 1
    used = re.search(r"used ([0-9.]+) ms of CPU time", done.stderr)
    assert used and 1 < float(used[1]) < took_ms
    assert not (work / "test.1.er").exists()


def test_a_killed_one_leaves_an_experiment_that_says_so(interpose, work):
    done = interpose("run", "bash", "-c", "kill -9 $$")

    assert done.returncode == -9
    assert "killed by SIGKILL" in interpose("processes").stdout


def test_nothing_of_the_plan_s_making_is_left(interpose, work, tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()

    interpose("run", "true", variables={"TMPDIR": str(place)})

    assert os.listdir(place) == []
    assert executable_of(experiment_in(work).founder) == "true"


def test_what_one_computes_is_not_looked_for_in_lines_of_python(interpose, work):
    (work / "numbers").write_text("".join(f"{number}\n" for number in range(500_000)))
    interpose("run", "gzip", "-9", "numbers")

    shown = " ".join(interpose("report").stdout.split())
    assert "gzip computes: " in shown
    assert "a profiler of native code, such as perf" in shown and "interpose run --lines" not in shown


def test_its_usage_is_noted_while_it_runs_and_a_long_call_triggers(interpose, work):
    line = "for each in 1 2 3 4 5; do sleep 0.06; done"

    done = interpose("run", "--sample", "0.05", "--trigger", "call > 50ms", "bash", "-c", line)

    process = experiment_in(work).founder
    assert len(process.overview) >= 5
    assert "saved as " in done.stderr
