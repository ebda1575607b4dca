"""Calls that C code makes: each once, inside the call of Python it was made in, with its line and its library; and the
program does what it would have done."""

import errno
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from system_calls import SYSTEM_CALLS, counted_by_strace, needs_strace
from tracing import environment, events_of, write_program

pytestmark = pytest.mark.every_python

NATIVE = {"INTERPOSE": "calls,native"}
TIMES = 1000

COMMITS = """
import os, sqlite3, sys
path = sys.argv[1]
connection = sqlite3.connect(path)
connection.execute("create table numbers (number, text)")
for number in range(20):
    connection.execute("insert into numbers values (?, ?)", (number, "x" * 3000))
    connection.commit()
connection.close()
connection = sqlite3.connect(path)
print(connection.execute("select sum(length(text)) from numbers").fetchall())
connection.close()
"""


def native_events(done, process=None):
    process = process or done.experiment.founder
    named = [(process.intrinsic(event.intrinsic).name, event) for event in events_of(process)]
    return [(name.removeprefix("libc."), event) for name, event in named if name.startswith("libc.")]


def details(done, name):
    return [done.experiment.founder.string(event.detail) for each, event in native_events(done) if each == name]


def line_of(done, text):
    lines = (done.directory / "program.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@needs_strace
def test_calls_of_sqlite_are_as_many_as_strace_counts(traced, tmp_path):
    (tmp_path / "strace").mkdir()
    database = tmp_path / "orders.db"
    words = [sys.executable, write_program(tmp_path / "strace", COMMITS), tmp_path / "strace" / "orders.db"]
    expected = counted_by_strace(words, tmp_path / "strace.log", words[-1])

    done = traced(COMMITS, str(database), **NATIVE)

    founder = done.experiment.founder
    named = [(name, founder.string(event.detail)) for name, event in native_events(done)]
    about = [SYSTEM_CALLS[name] for name, path in named if name in SYSTEM_CALLS and path.startswith(str(database))]
    assert Counter(about) == expected
    assert expected["fdatasync"] + expected["fsync"] >= 40


def test_a_native_call_is_inside_the_call_of_python_it_was_made_in(traced, tmp_path):
    done = traced(COMMITS, str(tmp_path / "orders.db"), **NATIVE)

    founder = done.experiment.founder
    every = {event.call: event for event in done.events()}
    around = Counter(
        founder.intrinsic(every[event.parent].intrinsic).name
        for name, event in native_events(done)
        if name == "fdatasync"
    )
    assert set(around) <= {"sqlite3.Connection.commit", "sqlite3.Connection.execute"}
    assert around["sqlite3.Connection.commit"] >= 40


def test_no_time_counts_twice(traced, tmp_path):
    done = traced(COMMITS, str(tmp_path / "orders.db"), **NATIVE)

    events = done.events()
    inside = defaultdict(lambda: [0, 0])
    for event in events:
        inside[event.parent][0] += event.wall_ns
        inside[event.parent][1] += event.cpu_ns
    for event in events:
        assert [event.inner_wall_ns, event.inner_cpu_ns] == inside[event.call]
        assert event.inner_wall_ns <= event.wall_ns and event.inner_cpu_ns <= event.cpu_ns


def test_the_program_gets_what_it_would_have_got(traced, tmp_path):
    done = traced(COMMITS, str(tmp_path / "orders.db"), **NATIVE)

    assert (done.returncode, done.stdout, done.stderr) == (0, "[(60000,)]\n", "")
    untraced = subprocess.run(
        [sys.executable, write_program(tmp_path, COMMITS), tmp_path / "other.db"], env=environment(), check=True
    )
    assert untraced.returncode == 0
    assert (tmp_path / "orders.db").read_bytes() == (tmp_path / "other.db").read_bytes()


def test_where_it_was_made_is_the_line_and_the_library(native):
    done = native("calls.reads(zero, 3)  # here\n")

    founder = done.experiment.founder
    frames = [list(founder.frames(event.stack)) for name, event in native_events(done) if name == "read"]
    assert len(frames) == 3
    for library, line in frames:
        assert (library.file, library.own) == ("calls.so", False)
        assert (os.path.basename(line.file), line.line, line.own) == ("program.py", line_of(done, "# here"), True)


ELSEWHERE = """
def one(): calls.reads(zero, 1)  # one
def other(): calls.reads(zero, 1)  # other
def both(call):
    call(zero, 1)  # both
held = ctypes.PyDLL(os.path.abspath("calls.so")).reads
for number in range(100):
    one()
    other()
    both(held)
    both(calls.reads)
    # The code is gone when the next one is made.
    exec(compile("\\n" * number + "calls.reads(zero, 1)", "made.py", "exec"))
    exec(compile("\\n" * number + "held(zero, 1)", "made.py", "exec"))
"""


def test_calls_from_places_in_turn_have_each_their_own(native):
    done = native(ELSEWHERE)

    founder = done.experiment.founder
    frames = [list(founder.frames(event.stack)) for name, event in native_events(done) if name == "read"]
    found = Counter((os.path.basename(line.file), line.line) for _, line in frames)
    assert {library.file for library, _ in frames} == {"calls.so"}
    in_program = {("program.py", line_of(done, f"# {name}")): times for name, times in PLACES.items()}
    assert found == in_program | {("made.py", number + 1): 2 for number in range(100)}


PLACES = {"one": 100, "other": 100, "both": 200}


def test_what_is_transferred_and_from_where_is_told(native):
    done = native('calls.reads(zero, 3)\ncalls.open_and_close(b"/etc/hostname")\ncalls.open_and_close(b"/no/such")\n')

    founder = done.experiment.founder
    reads = [event for name, event in native_events(done) if name == "read"]
    assert [(event.bytes, founder.string(event.detail)) for event in reads] == [(1, "/dev/zero")] * 3
    opens = [event for name, event in native_events(done) if name in ("open", "open64")]
    told = [(founder.string(event.detail), founder.string(event.error)) for event in opens]
    assert told == [("/etc/hostname", ""), ("/no/such", "ENOENT")]


def test_a_file_that_is_renamed_is_told_by_its_new_name(native):
    done = native('calls.moves(b"no such", b"new")\n')

    assert details(done, "rename") == ["new"]


def test_a_descriptor_of_a_long_path_has_all_of_it(native):
    done = native(
        """
path = "/".join([os.getcwd(), *["long" * 30] * 3])
os.makedirs(path)
with open(path + "/text", "w+b") as file:
    file.write(b"x")
    file.seek(0)
    calls.reads(file.fileno(), 1)
print(path)
"""
    )

    assert f"{done.stdout.strip()}/text" in details(done, "read")


STREAMS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void write_some(const char *path)
{
    FILE *stream = fopen(path, "w");
    fwrite("some", 1, 4, stream);
    fclose(stream);
}

/* Streams close and open a descriptor of the same number. */
int pipe_and_file(const char *path)
{
    char line[9] = "";
    FILE *pipe = popen("echo hi", "r");
    fgets(line, sizeof line, pipe);
    int number = fileno(pipe);
    pclose(pipe);
    write_some(path);
    return number;
}

/* Nobody sees the first one's end. */
void unseen_and_file(const char *path)
{
    int numbers[2];
    pipe(numbers);
    write(numbers[1], "x", 1);
    syscall(SYS_close, numbers[0]);
    syscall(SYS_close, numbers[1]);
    numbers[0] = open("/dev/null", O_RDONLY);
    write_some(path);
    close(numbers[0]);
}
"""


@pytest.mark.parametrize("function", ["pipe_and_file", "unseen_and_file"])
def test_a_stream_that_is_opened_is_not_what_its_descriptor_was_before(function, traced, built, tmp_path):
    (tmp_path / "streams.c").write_text(STREAMS)
    built(source=tmp_path / "streams.c", name="streams.so")
    code = f"import ctypes, os; ctypes.CDLL(os.path.abspath('streams.so')).{function}(b'written')"
    done = traced(code, **NATIVE, INTERPOSE_FILES="buffered")

    assert done.returncode == 0, done.stderr
    founder = done.experiment.founder
    names = ("libc.fwrite", "libc.fclose")
    written = [each for each in done.events() if founder.intrinsic(each.intrinsic).name in names]
    assert [founder.intrinsic(each.intrinsic).kind for each in written] == ["file", "file"]
    assert {os.path.basename(founder.string(each.detail)) for each in written} == {"written"}


def test_a_path_is_kept_as_the_settings_have_it(native):
    done = native('calls.open_and_close(b"/etc/hostname")\n', INTERPOSE_ARGUMENTS="file=shape")

    founder = done.experiment.founder
    opens = [event for name, event in native_events(done) if name in ("open", "open64")]
    assert [founder.string(event.detail) for event in opens] == ["/*/*"]


def test_errno_is_as_the_function_left_it(native):
    done = native(
        "print(calls.error_of_read(-1), calls.error_after_read(zero, 77), calls.error_of_bad_path(),"
        ' calls.open_and_close(b"/no/such"))\n'
    )

    assert done.stdout.split() == [str(number) for number in (errno.EBADF, 77, errno.EFAULT, errno.ENOENT)]


def test_functions_whose_addresses_are_kept_are_seen_too(native):
    done = native(f"print(calls.reads_by_table(zero, {TIMES}))\n")

    assert done.stdout == f"{TIMES}\n"
    assert len([name for name, _ in native_events(done) if name == "read"]) == TIMES


LINKED = {
    "lazy": ("-Wl,-z,lazy",),
    "relro, now": ("-Wl,-z,relro,-z,now",),
    "no plt": ("-fno-plt", "-Wl,-z,relro,-z,now"),
}


@pytest.mark.parametrize("options", LINKED.values(), ids=LINKED)
def test_however_a_library_is_linked(native, options):
    done = native(f"print(calls.reads(zero, {TIMES}), calls.reads_by_table(zero, {TIMES}))\n", *options)

    assert done.stdout == f"{TIMES} {TIMES}\n"
    assert len([name for name, _ in native_events(done) if name == "read"]) == 2 * TIMES


# --- what is patched, when, and for how long

ADDRESSES = """
from interpose.timing import shims
during = calls.address_of_read()
maps = lambda: [line.split()[1] for line in open("/proc/self/maps") if "calls.so" in line]
before = maps()
left = shims.end()
real = ctypes.cast(ctypes.CDLL(None).read, ctypes.c_void_p).value
print(during == real, calls.address_of_read() == real, left, before == maps(), calls.reads(zero, 3))
"""


@pytest.mark.parametrize("options", LINKED.values(), ids=LINKED)
def test_all_is_as_before_when_recording_has_ended(native, options):
    assert native(ADDRESSES, *options).stdout == "False True 0 True 3\n"


def test_nothing_is_patched_unless_asked_for(native):
    done = native(ADDRESSES, INTERPOSE="calls")

    assert done.stdout == "True True 0 True 3\n"
    assert not native_events(done)
    assert "libc." not in (Path(done.path) / "map.xml").read_text()


def test_what_is_loaded_later_is_patched_then(native, built):
    built(name="later.so")
    done = native(
        'import sqlite3\nlater = ctypes.CDLL(os.path.abspath("later.so"))\nlater.reads(zero, 3)\n'
        'sqlite3.connect("later.db").execute("create table later (it)")\n'
    )

    frames = [next(iter(done.experiment.founder.frames(event.stack))).file for _, event in native_events(done)]
    assert frames.count("later.so") == 3
    assert any("sqlite3" in name for name in frames)


def test_a_library_that_is_unloaded_and_loaded_again_is_patched_again(native):
    done = native(
        "import _ctypes\n"
        "for _ in range(3):\n"
        '    again = ctypes.CDLL(os.path.abspath("again.so"))\n'
        "    again.reads(zero, 2)\n"
        "    _ctypes.dlclose(again._handle)\n"
        "    del again\n".replace('"again.so"', 'os.path.realpath("calls.so")')
    )

    assert len([name for name, _ in native_events(done) if name == "read"]) == 6


@pytest.mark.parametrize("options", LINKED.values(), ids=LINKED)
def test_an_own_function_of_that_name_is_left_alone(traced, built, tmp_path, options):
    source = tmp_path / "own.c"
    source.write_text(
        "#include <sys/types.h>\nssize_t read(int number, void *memory, size_t bytes) { return 42; }\n"
        "typedef ssize_t transfer(int, void *, size_t);\ntransfer *volatile kept = read;\n"
        "long own(void) { return kept(0, 0, 0) + read(0, 0, 0); }\n"
    )
    built(*options, source=source, name="own.so")

    done = traced('import ctypes, os\nprint(ctypes.CDLL("./own.so", os.RTLD_DEEPBIND).own())\n', **NATIVE)

    assert done.stdout == "84\n"
    assert not [name for name, _ in native_events(done) if name == "read"]


# --- threads, forks, signals, the end

IN_THREADS = f"""
def work():
    assert calls.reads(zero, {TIMES}) == {TIMES}
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_without_the_interpreter_lock_are_counted_each(native):
    done = native(IN_THREADS)

    reads = Counter(event.thread for name, event in native_events(done) if name == "read")
    assert sorted(reads.values()) == [TIMES] * 4
    lines = {done.experiment.founder.own_line(event.stack).line for _, event in native_events(done)}
    assert lines == {line_of(done, "assert calls.reads")}


def test_a_thread_that_the_recorder_does_not_know_passes(native):
    done = native(f"print(calls.thread_run(zero, {TIMES}))\n")

    assert done.stdout == "0\n"
    assert not [name for name, _ in native_events(done) if name == "read"]


def test_a_connection_made_by_an_unknown_thread_has_its_address_in_other_threads(native):
    done = native("""
import socket
server = socket.create_server(("127.0.0.1", 0))
number = calls.thread_connects(server.getsockname()[1])
print(server.accept()[0].send(b"x" * 50), calls.reads(number, 50), server.getsockname()[1])
""")

    reads = [event for name, event in native_events(done) if name == "read"]
    sent, received, port = done.stdout.split()
    assert (sent, received, len(reads)) == ("50", "50", 50)
    assert {done.experiment.founder.string(event.detail) for event in reads} == {f"127.0.0.1:{port}"}


def test_a_thread_that_goes_on_at_the_end_does_no_harm(native):
    done = native("print(calls.thread_begin(zero), flush=True)\ncalls.reads(zero, 10)\n")

    assert (done.stdout, done.stderr) == ("0\n", "")
    assert len([name for name, _ in native_events(done) if name == "read"]) == 10


def test_a_forked_child_records_its_own(native):
    done = native(
        "if os.fork() == 0:\n    time.sleep(0)\n    calls.reads(zero, 5)\n    os._exit(0)\n"
        "os.wait()\ncalls.reads(zero, 3)\n"
    )

    founder = done.experiment.founder
    (child,) = founder.descendants
    names = [[name for name, _ in native_events(done, process)] for process in (founder, child)]
    assert [each.count("read") for each in names] == [3, 5]


def test_a_child_that_c_code_forks_does_what_it_would(native):
    done = native(f"print(calls.forked_reads(zero, {TIMES}))\ncalls.reads(zero, 3)\n")

    assert done.stdout == "7\n"
    assert len([name for name, _ in native_events(done) if name == "read"]) == 3


STORM = """
import sqlite3
reader, writer = os.pipe()
os.set_blocking(writer, False)
connection = sqlite3.connect("storm.db")
connection.execute("create table storm (it)")
seen = 0
calls.storm_begin(writer, 200)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    connection.execute("insert into storm values (1)")
    calls.reads(zero, 50)
    seen += len(os.read(reader, 65536))
written = calls.storm_end()
os.set_blocking(reader, False)
while True:
    try:
        seen += len(os.read(reader, 65536))
    except BlockingIOError:
        break
print(seen == written, written > 100)
"""


@pytest.mark.long
def test_a_handler_may_interrupt_any_of_it(native):
    done = native(STORM)

    assert done.stdout == "True True\n"
    founder = done.experiment.founder
    assert all(thread.adds_up for thread in founder.threads)
    for event in done.events():
        assert event.inner_wall_ns <= event.wall_ns and event.cpu_ns <= event.wall_ns


def test_a_handler_that_jumps_out_of_a_call_leaves_nothing_open(native):
    done = native(
        "reader, writer = os.pipe()\n"
        "print([calls.jump_out_of_read(reader) for _ in range(40)] == [1] * 40)\n"
        "os.getcwd()\ncalls.reads(zero, 3)\n"  # by the first one knows that none is interrupted
    )

    assert done.stdout == "True\n"
    (thread,) = done.experiment.founder.threads
    assert thread.adds_up and not thread.open_calls
    assert [name for name, _ in native_events(done)].count("read") == 3
    assert 0 < thread.record.dropped <= 40  # on a busy machine the signal may come before the call


# --- settings

def test_a_kind_that_is_off_is_not_recorded(native):
    done = native("calls.reads(zero, 3)\n", INTERPOSE_KINDS="net")

    assert not native_events(done)


def test_what_is_counted_is_counted(native):
    done = native(f"calls.reads(zero, {TIMES})\n", INTERPOSE_LEVELS="libc.read=count")

    founder = done.experiment.founder
    counted = {founder.intrinsic(number).name: count for number, count in founder.counts.items()}
    assert counted["libc.read"] == TIMES
    assert not [name for name, _ in native_events(done) if name == "read"]


def test_a_filter_holds_for_them(native):
    done = native(f"calls.reads(zero, {TIMES})\n", INTERPOSE_FILTER="event=-libc.read")

    assert not [name for name, _ in native_events(done) if name == "read"]


def test_native_stands_for_calls_too(traced, tmp_path):
    done = traced(COMMITS, str(tmp_path / "orders.db"), INTERPOSE="native")

    names = {done.experiment.founder.intrinsic(event.intrinsic).name for event in done.events()}
    assert {"sqlite3.Connection.commit", "libc.fdatasync"} <= names
