"""Programs that are not Python, started by a recorded one: each has a subexperiment with its calls, and does what it
would have done."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter

import pytest
from system_calls import SYSTEM_CALLS, counted_by_strace, needs_strace
from tracing import environment, events_of, same_library

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile

NATIVE = {"INTERPOSE": "calls,native"}
pytestmark = same_library

RUN = """
import json, subprocess, sys
done = subprocess.run(json.loads(sys.argv[1]), capture_output=True)
print(json.dumps([done.returncode, done.stdout.decode("latin1"), done.stderr.decode("latin1")]))
"""
SHELL = """
import ctypes, os, sys
status = os.system(sys.argv[1])
print(os.waitstatus_to_exitcode(status), ctypes.CDLL(None).getenv(b"LD_PRELOAD") or None)
"""


@pytest.fixture
def data(tmp_path):
    """A directory with a file of a megabyte."""
    place = tmp_path / "data"
    place.mkdir()
    (place / "text").write_text("".join(f"line {number}\n" for number in range(100_000)))
    shutil.copy(place / "text", place / "same")
    (place / "script").write_text("cat /dev/null | wc -c; (exit 3)\nexit 0\n")
    (place / "small.c").write_text("int main(void) { return 0; }\n")
    return place


@pytest.fixture
def ran(traced):
    """Run a command as a child of a recorded program: the experiment."""

    def run(words, **variables):
        done = traced(RUN, json.dumps([str(word) for word in words]), **{**NATIVE, **variables})
        assert done.returncode == 0, done.stderr
        done.gave = json.loads(done.stdout)
        return done

    return run


def programs(done):
    """The names of the programs that were recorded, besides the founder, in the order of their lineages."""
    found = [each for each in done.experiment.processes if each.lineage]
    return {each.lineage: each.log.executable.rpartition("/")[2] for each in found}


def calls_about(done, path):
    """How often each system call was made of what begins with that path, by all processes but the founder."""
    found = Counter()
    for process in done.experiment.processes:
        for event in events_of(process) if process.lineage else ():
            name = process.intrinsic(event.intrinsic).name.removeprefix("libc.")
            if name in SYSTEM_CALLS and process.string(event.detail).startswith(str(path)):
                found[SYSTEM_CALLS[name]] += 1
    return found


NAMES = """
#include <fcntl.h>
#include <unistd.h>
int filter(void) { return 3; } /* as curses has it */
int lines(void) { return 4; }
unsigned long hash_bytes(const char *bytes) { return bytes ? *bytes : 5; }
int main(int count, char **words)
{
    char byte;
    return read(open(words[count - 1], O_RDONLY), &byte, 1) == 1 ? filter() : 9;
}
"""


def test_a_program_may_have_the_names_that_the_recorder_has(ran, compiler, data):
    (data / "names.c").write_text(NAMES)
    subprocess.run([compiler, "-rdynamic", "-o", data / "names", data / "names.c"], check=True)

    done = ran([data / "names", data / "text"])

    assert done.gave[0] == 3
    assert sum(calls_about(done, data / "text").values()) >= 2


# What the shell redirects is known as a stream, and what the C library reads for itself is not seen: both left out.
COUNTED = {
    "gzip": ("gzip -k {0}/text", "text"),
    "cat": ("cat {0}/text", "text"),
    "wc": ("wc {0}/text", "text"),
    "cmp": ("cmp {0}/text {0}/same", ""),
    "head": ("head -c 100000 {0}/text", "text"),
    "sh": ("sh {0}/script", "script"),
    "sqlite3": ("sqlite3 :memory: \"attach '{0}/d' as d; create table d.t(x); insert into d.t values (1)\"", "d"),
    "git": ("git -C {0} hash-object {0}/text", "text"),
    "gcc": ("gcc -c -o {0}/small.o {0}/small.c", "small.c"),
}


@needs_strace
@pytest.mark.parametrize(("line", "about"), COUNTED.values(), ids=COUNTED)
def test_calls_of_a_program_are_as_many_as_strace_counts(ran, data, tmp_path, line, about):
    if shutil.which(line.partition(" ")[0]) is None:
        pytest.skip("no such program")
    other = tmp_path / "other"
    shutil.copytree(data, other)
    expected = counted_by_strace(["sh", "-c", line.format(other)], tmp_path / "strace.log", other / about)

    done = ran(["sh", "-c", line.format(data)])

    assert calls_about(done, data / about) == expected
    assert sum(expected.values()) >= 2


OUTCOMES = [
    "true",
    "false",
    "gzip -c small.c | wc -c",
    "gzip -c missing",
    "git --version",
    "git log",
    "sort -r small.c",
    "gcc -o small small.c && ./small",
    "gcc -c missing.c",
    "make -f missing",
    "cp small.c new && cat new",
    "tar cf - small.c | tar tf -",
    "sqlite3 :memory: 'select 1+1;'",
    "sqlite3 :memory: 'select nothing;'",
    "sh -c 'exit 4'",
    "sh -c 'exec false'",
    "sh -c 'kill -9 $$'",
    "sh -c 'kill -TERM $$'",
    "bash -c 'for i in 1 2 3; do /bin/true; done; (exit 5)'",
    "sh -c 'trap \"echo caught\" USR1; kill -USR1 $$; echo after'",
    "bash -c 'ulimit -n 20; cat small.c | head -1'",
    "bash -c 'ulimit -f 0; cat small.c; echo $?'",
    "sh -c 'exec 0<&- 1>&- 2>&-; exit 6'",
    "ls -l /proc/self/fd | wc -l",
    "sh -c 'exec 3>out; echo told >&3; cat out'",
    "env -i /bin/echo hi",
    "env -i printenv",
    "env -i A=1 sh -c 'printenv A; printenv | wc -l'",
    "env -u INTERPOSE -u INTERPOSE_LINEAGE printenv INTERPOSE",
    "printenv LD_PRELOAD",
    "sh -c 'echo [$LD_PRELOAD]'",
    "LD_PRELOAD= printenv LD_PRELOAD",
    "find . -name '*.c' -exec wc -l {} +",
    "printf 'a\\nb\\n' | xargs -n 1 echo",
    "nonsense",
    "timeout 0.1 sleep 10",
    "awk 'BEGIN { print 1; system(\"echo hi\"); exit 3 }'",
    "perl -e 'system(\"ls small.c\"); exit 7'",
    'perl -e \'fork; wait; print "$$" ? "one " : ""\'',
    "bash -c 'coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} a; echo $a'",
    "yes | head -2",
    "file -b small.c",
    "setsid ls small.c",
    "cat < small.c > /dev/full",
]


@pytest.mark.long
def test_outcomes_are_those_of_programs_that_are_not_recorded(traced, data):
    outcomes = """
import json, subprocess, sys
def outcome(line):
    done = subprocess.run(line, shell=True, capture_output=True, stdin=subprocess.DEVNULL, cwd=sys.argv[2])
    return [line, done.returncode, done.stdout.decode("latin1"), done.stderr.decode("latin1")]
print(json.dumps([outcome(line) for line in json.loads(sys.argv[1])]))
"""
    given = (json.dumps(OUTCOMES), str(data))
    plain = traced(outcomes, *given, INTERPOSE="0")

    done = traced(outcomes, *given, **NATIVE)

    assert json.loads(done.stdout) == json.loads(plain.stdout)
    assert len(done.experiment.processes) > len(OUTCOMES)


def test_children_of_children_are_followed(ran, data):
    done = ran(["sh", "-c", f"gzip -c {data}/text | wc -c; exit 3"])

    assert done.gave[0] == 3
    assert {"gzip", "wc"} <= set(programs(done).values())
    assert not [child for each in done.experiment.processes for child in each.not_followed]


def test_what_is_given_no_environment_is_followed(ran, data):
    python = f"{sys.executable} -c 'import os; print(os.environ)'"
    done = ran(["env", "-i", "sh", "-c", f"gzip -c {data}/text | wc -c; {python}"])

    assert {"sh", "dash"} & set(programs(done).values())
    assert {"gzip", "wc"} <= set(programs(done).values())
    assert [each for each in done.experiment.processes if each.lineage and each.log.arguments]
    assert "INTERPOSE" not in done.gave[1] and "LD_PRELOAD" not in done.gave[1]


STARTS = """
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
/* The program in the words, with an environment of its own, made in one of four ways. */
int main(int count, char **words)
{
    char *given[] = {"INTERPOSE=calls", "A=1", 0}, **rest = words + 2;
    int child = 0, status, way = atoi(words[1]);
    if (way == 3) {
        clearenv();
        setenv("INTERPOSE", "calls", 1);
    } else if (way == 4) {
        environ = given;
    }
    if (way == 1)
        posix_spawn(&child, *rest, 0, 0, rest, given);
    else if (way > 2)
        posix_spawn(&child, *rest, 0, 0, rest, environ);
    else if ((child = fork()) == 0)
        execve(*rest, rest, given);
    return waitpid(child, &status, 0) != child || status;
}
"""


@pytest.mark.parametrize("way", ["1", "2", "3", "4"])
def test_what_says_itself_what_to_record_has_its_place_and_the_libraries_of_the_founder(ran, compiler, tmp_path, way):
    show = "import os; print(sorted(os.environ))"
    group = tmp_path / "group"
    group.mkdir()

    done = ran(
        [built(tmp_path, STARTS), way, sys.executable, "-c", show],
        INTERPOSE_GROUP=group,
        INTERPOSE_KINDS="file,process",
    )

    (python,) = [each for each in done.experiment.processes if each.lineage and each.log.arguments]
    assert done.gave[0] == 0, done.gave
    assert "INTERPOSE_GROUP" not in done.gave[1] and "INTERPOSE_KINDS" not in done.gave[1]
    assert python.log.settings["INTERPOSE_GROUP"] == str(group)
    assert python.log.settings["INTERPOSE_KINDS"] == "all"
    assert python.log.settings["INTERPOSE"] == "calls"


def test_one_that_is_not_to_be_recorded_is_not(ran):
    done = ran(["env", "-i", "INTERPOSE=0", "sh", "-c", "true; exit 2"])

    assert done.gave[0] == 2
    assert set(programs(done).values()) == {"env"}


def test_what_os_system_runs_is_followed_and_the_environment_stays(traced):
    done = traced(SHELL, "cat /dev/null; echo [$LD_PRELOAD]; exit 3", **NATIVE)

    assert done.stdout == "[]\n3 None\n"
    assert "cat" in programs(done).values()


def test_an_interpreter_without_start_up_files_is_followed_from_a_shell(ran):
    done = ran(["sh", "-c", f"{sys.executable} -S -c 'import os; print(os.environ.get(\"LD_PRELOAD\"))'; exit 3"])

    (python,) = [each for each in done.experiment.processes if each.log.arguments[:2] == ["-S", "-c"]]
    assert done.gave[:2] == [3, "None\n"]
    assert python.lineage == "_c1_c1"


def built(tmp_path, source, *options):
    """The path of a program in C."""
    (tmp_path / "program.c").write_text("#define _GNU_SOURCE\n" + source)
    words = ["gcc", "-O1", "-pthread", *options, "-o", tmp_path / "program", tmp_path / "program.c"]
    subprocess.run(words, check=True, capture_output=True)
    return tmp_path / "program"


def test_a_thread_that_has_returned_is_not_cancelled_any_more(interpose, compiler, tmp_path):
    source = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int may_go;
static void *returns(void *given)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    while (!may_go)
        usleep(1000);
    free(malloc(100));
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    return given;
}
int main(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, returns, &thread);
    usleep(20000);
    pthread_cancel(thread);
    may_go = 1;
    pthread_join(thread, &result);
    puts(result == &thread ? "returned" : "cancelled");
}
"""
    program = built(tmp_path, source)
    plain = subprocess.run([program], capture_output=True, text=True)
    done = interpose("run", str(program))

    assert plain.stdout == done.stdout == "returned\n"


def test_a_python_that_does_not_find_its_environment_by_its_name_is_followed(ran, compiler, tmp_path):
    source = """
#include <spawn.h>
#include <sys/wait.h>
int main(int count, char **words)
{
    char *given[] = {words[2], "-c", "import os; print(sorted(os.environ))", 0}, *variables[] = {"A=1", 0};
    int child, status;
    return posix_spawn(&child, words[1], 0, 0, given, variables) || waitpid(child, &status, 0) != child || status;
}
"""
    path, name = os.path.split(sys.executable)

    done = ran([built(tmp_path, source), sys.executable, name], PATH=f"{path}:{os.environ['PATH']}")

    assert done.gave[0] == 0
    assert "'A'" in done.gave[1] and "INTERPOSE" not in done.gave[1]
    assert [each for each in done.experiment.processes if each.lineage and each.log.arguments]


def test_its_cpu_time_is_what_it_measured_itself(ran, compiler, tmp_path):
    source = """
#include <stdio.h>
#include <time.h>
static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}
int main(void)
{
    while (now(CLOCK_PROCESS_CPUTIME_ID) < 200000000)
        ;
    printf("%lld\\n", now(CLOCK_PROCESS_CPUTIME_ID));
}
"""
    done = ran([built(tmp_path, source)])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    (thread,) = process.threads
    of_kernel = process.started_as.record.cpu_ns
    assert int(done.gave[1]) <= thread.record.end_cpu_ns <= of_kernel


def test_threads_have_their_own_calls(ran, compiler, tmp_path):
    source = """
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *reads(void *number)
{
    char byte;
    for (int each = 0; each < 1000; each++)
        (void)!read(*(int *)number, &byte, 1);
    return NULL;
}
int main(void)
{
    pthread_t threads[3];
    int zero = open("/dev/zero", O_RDONLY);
    for (int each = 0; each < 3; each++)
        pthread_create(&threads[each], NULL, reads, &zero);
    for (int each = 0; each < 3; each++)
        pthread_join(threads[each], NULL);
    reads(&zero);
}
"""
    done = ran([built(tmp_path, source)])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    assert sorted(Counter(event.thread for event in events_of(process, "libc.read")).values()) == [1000] * 4


def test_a_child_of_vfork_is_followed_and_one_that_ends_does_not_end_its_parent(ran, compiler, tmp_path):
    source = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int status;
    if (vfork() == 0) {
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    wait(&status);
    if (vfork() == 0) {
        execl("/missing", "missing", NULL);
        _exit(9);
    }
    wait(&status);
    write(1, "on", 2);
    return WEXITSTATUS(status);
}
"""
    done = ran([built(tmp_path, source)])

    assert done.gave[:2] == [9, "on"]
    assert programs(done) == {"_c1": "program", "_c1_c1": "true"}
    assert "libc.write" in {
        each.intrinsic(event.intrinsic).name
        for each in done.experiment.processes
        for event in (events_of(each) if each.lineage == "_c1" else ())
    }


def test_what_a_descriptor_refers_to_is_known_after_it_was_made_another(ran, compiler, tmp_path):
    source = """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words)
{
    char byte;
    int first = open(words[1], O_RDONLY), second = open(words[2], O_RDONLY);
    read(first, &byte, 1);
    dup2(second, first);
    return read(first, &byte, 1) != 1;
}
"""
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        path.write_text("text")

    done = ran([built(tmp_path, source), *paths])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    assert [process.string(event.detail) for event in events_of(process, "libc.read")] == list(map(str, paths))


CONNECTS = """
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **ports)
{
    int end = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int each = 1; each < count; each++) {
        address.sin_port = htons(atoi(ports[each]));
        connect(end, (struct sockaddr *)&address, sizeof address);
    }
    return send(end, "x", 1, 0) != 1;
}
"""


def test_a_socket_has_the_address_that_it_is_connected_to_last(ran, compiler, tmp_path):
    (tmp_path / "connects.c").write_text(CONNECTS)
    subprocess.run([compiler, "-o", tmp_path / "connects", tmp_path / "connects.c"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # it does not listen
        refused, there = (each.getsockname()[1] for each in (other, server))
        done = ran([tmp_path / "connects", str(refused), str(there)])

    assert done.gave[0] == 0
    (process,) = (each for each in done.experiment.processes if each.lineage)
    told = [(process.intrinsic(event.intrinsic).name, process.string(event.detail)) for event in events_of(process)]
    addresses = [f"127.0.0.1:{port}" for port in (refused, there)]
    assert [detail for name, detail in told if name == "libc.connect"] == addresses
    assert [detail for name, detail in told if name == "libc.send"] == addresses[1:]


def test_streams_are_recorded_if_buffers_above_files_are(ran, data, compiler, tmp_path):
    source = """
#include <stdio.h>
int main(int count, char **words)
{
    char line[200];
    int lines = 0;
    FILE *stream = fopen(words[1], "r");
    while (fgets(line, sizeof line, stream))
        lines++;
    fclose(stream);
    return lines % 100;
}
"""
    words = [built(tmp_path, source), data / "script"]
    done = ran(words, INTERPOSE_FILES="buffered")
    plain = ran(words)

    def names(done):
        (process,) = [each for each in done.experiment.processes if each.lineage]
        about = [event for event in events_of(process) if process.string(event.detail) == str(data / "script")]
        return Counter(process.intrinsic(event.intrinsic).name for event in about)

    assert (done.gave[0], plain.gave[0]) == (2, 2)
    assert names(done) == {"libc.fopen": 1, "libc.fgets": 3, "libc.fclose": 1}
    assert names(plain) == {}


def test_the_end_of_a_stream_is_seen_while_another_thread_has_its_lock(ran, compiler, tmp_path):
    source = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static FILE *stream;
static pthread_barrier_t begun;
static void *holds(void *nothing)
{
    flockfile(stream);
    pthread_barrier_wait(&begun);
    pause();
    return nothing;
}
int main(void)
{
    char bytes[100];
    pthread_t other;
    alarm(20);
    stream = fopen("/dev/null", "r");
    pthread_barrier_init(&begun, NULL, 2);
    pthread_create(&other, NULL, holds, NULL);
    pthread_barrier_wait(&begun);
    _exit(fread_unlocked(bytes, 1, sizeof bytes, stream) ? 1 : 7);
}
"""
    done = ran([built(tmp_path, source)], INTERPOSE_FILES="buffered")

    assert done.gave[0] == 7


def test_a_child_that_clone_makes_is_a_forked_one_and_execveat_is_an_exec(ran, compiler, tmp_path):
    source = """
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536], memory[65536];
static int reads(void *given)
{
    char byte;
    return read(*(int *)given, &byte, 1) == 1 ? 3 : 1;
}
static int becomes(void *given)
{
    char *words[] = {"sh", "-c", "exit $((4 + ${#LD_PRELOAD}))", 0}, *variables[] = {0};
    execveat(*(int *)given, "sh", words, variables, 0);
    return 1;
}
static int shares(void *given)
{
    return *(int *)given < 0;
}
int main(void)
{
    int status, zero = open("/dev/zero", O_RDONLY), bin = open("/bin", O_PATH), sum = 0;
    clone(reads, stack + sizeof stack, SIGCHLD, &zero);
    wait(&status);
    sum += WEXITSTATUS(status);
    clone(becomes, stack + sizeof stack, SIGCHLD, &bin);
    wait(&status);
    sum += WEXITSTATUS(status);
    clone(shares, memory + sizeof memory, CLONE_VM | CLONE_VFORK | SIGCHLD, &bin);
    wait(&status);
    return sum + WEXITSTATUS(status);
}
"""
    done = ran([built(tmp_path, source)])

    found = programs(done)
    ends = {
        each.lineage: [event.status for event in each.log.events if event.kind == "exit"]
        for each in done.experiment.processes
    }
    assert done.gave[0] == 7
    assert found["_c1_f1"] == found["_c1_f2"] == "program"
    assert found["_c1_f2_x1"] in ("dash", "bash", "sh")
    assert (ends["_c1_f1"], ends["_c1_f2_x1"]) == ([3], [4])
    assert set(found) == {"_c1", "_c1_f1", "_c1_f2", "_c1_f2_x1"}


def test_what_a_handler_calls_is_inside_the_call_that_it_interrupts(ran, compiler, tmp_path):
    source = """
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static int zero, ends[2], count;
static void come(int number)
{
    char byte;
    if (count < 20 && (read(zero, &byte, 1) != 1 || (++count == 20 && write(ends[1], &byte, 1) != 1)))
        _exit(1);
}
int main(void)
{
    struct sigaction action = {.sa_handler = come, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 2000}, {0, 50000}}, never = {{0}};
    char byte;
    zero = open("/dev/zero", O_RDONLY);
    if (pipe(ends))
        return 2;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    long got = read(ends[0], &byte, 1);
    setitimer(ITIMER_REAL, &never, 0);
    got += read(zero, &byte, 1);
    return got == 2 ? 7 : 3;
}
"""
    done = ran([built(tmp_path, source)])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    assert done.gave[0] == 7 and process.lost_calls == 0
    calls = [*events_of(process, "libc.read"), *events_of(process, "libc.write")]
    outer = max(calls, key=lambda event: event.wall_ns)
    inner = [event for event in calls if event.parent == outer.call]
    assert (len(calls), len(inner)) == (23, 21)
    assert outer.inner_wall_ns == sum(event.wall_ns for event in inner)
    assert {event.call for event in calls if not event.parent} == {outer.call, max(event.call for event in calls)}


def test_calls_that_a_handler_in_a_handler_leaves_are_not_around_later_ones(ran, compiler, tmp_path):
    source = """
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
static sigjmp_buf back;
static int ends[2];
static void leaves(int number)
{
    siglongjmp(back, 1);
}
static void sleeps(int number)
{
    alarm(1);
    usleep(5000000);
}
int main(void)
{
    char byte;
    int file;
    signal(SIGUSR1, sleeps);
    signal(SIGALRM, leaves);
    if (pipe(ends))
        return 2;
    if (!fork()) {
        usleep(200000);
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    if (!sigsetjmp(back, 1) && read(ends[0], &byte, 1))
        return 3;
    file = open("/dev/null", O_WRONLY);
    return write(file, "x", 1) == 1 ? 7 : 4;
}
"""
    done = ran([built(tmp_path, source)])

    process = next(each for each in done.experiment.processes if each.lineage == "_c1")
    (write,) = events_of(process, "libc.write")
    (thread,) = process.threads
    assert done.gave[0] == 7
    assert write.parent == 0 and not thread.open_calls
    assert thread.record.dropped == 2 and thread.adds_up


def test_what_a_program_loads_by_name_is_recorded(ran, compiler, tmp_path):
    (tmp_path / "loaded.c").write_text(
        "#include <unistd.h>\nlong reads(int number) { char byte; return read(number, &byte, 1); }\n"
    )
    words = ["gcc", "-shared", "-fPIC", "-o", tmp_path / "loaded.so", tmp_path / "loaded.c"]
    subprocess.run(words, check=True, capture_output=True)
    source = f"""
#include <dlfcn.h>
#include <fcntl.h>
int main(void)
{{
    void *loaded = dlopen("{tmp_path}/loaded.so", RTLD_NOW);
    long (*reads)(int) = (long (*)(int))dlsym(loaded, "reads");
    return reads(open("/dev/zero", O_RDONLY)) == 1 ? 0 : 1;
}}
"""
    done = ran([built(tmp_path, source)])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    (event,) = events_of(process, "libc.read")
    assert [site.function for site in process.frames(event.stack)] == ["loaded.so", "program"]


@pytest.mark.parametrize("how", ["kill(getpid(), SIGKILL)", "abort()", "_exit(7)", "exit(7)"])
def test_its_end_is_that_which_it_had(ran, compiler, tmp_path, how):
    source = f"#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ {how}; }}"

    done = ran([built(tmp_path, source)])

    (process,) = [each for each in done.experiment.processes if each.lineage]
    expected = {"kill": -signal.SIGKILL, "abort": -signal.SIGABRT}.get(how.partition("(")[0], 7)
    assert done.gave[0] == expected
    child = process.started_as
    assert (child.exit_status if expected > 0 else -child.signal) == expected
    ends = [event.status for event in process.log.events if event.kind == "exit"]
    assert ends == ([7] if expected == 7 else [])


def test_one_that_cannot_be_followed_says_why(ran, compiler, tmp_path):
    done = ran([built(tmp_path, "int main(void) { return 5; }", "-static")])

    (child,) = done.experiment.founder.not_followed
    assert done.gave[0] == 5
    assert child.why == "linked statically"


BUSY = """
#include <time.h>
int main(void)
{
    while (clock() < CLOCKS_PER_SEC / 10)
        ;
    return 5;
}
"""
UNFOLLOWED = {
    "static": (["gcc", "-static"], "linked statically"),
    "musl": (["musl-gcc"], "another C library"),
    "sanitizer": (["gcc", "-fsanitize=address"], "address sanitizer"),
}


@pytest.mark.parametrize(("words", "why"), UNFOLLOWED.values(), ids=UNFOLLOWED)
def test_what_a_shell_runs_and_cannot_be_followed_is_in_the_balance(ran, tmp_path, words, why):
    (tmp_path / "busy.c").write_text(BUSY)
    made = (
        shutil.which(words[0])
        and subprocess.run([*words, "-o", tmp_path / "busy", tmp_path / "busy.c"]).returncode == 0
    )
    if not made:
        pytest.skip(f"no {' '.join(words)}")

    done = ran(["sh", "-c", f"{tmp_path}/busy; echo $?"])
    asked = {"capture_output": True, "text": True, "env": environment(COLUMNS="200"), "cwd": done.directory}
    report = [sys.executable, "-m", "interpose", "report", done.path, "--format", "json"]
    whole = json.loads(subprocess.run(report, **asked).stdout)
    processes = subprocess.run([sys.executable, "-m", "interpose", "processes", done.path], **asked)

    (child,) = [child for each in done.experiment.processes for child in each.not_followed]
    (counted,) = whole["children_not_followed"]
    assert done.gave[:2] == [0, "5\n"]
    assert child.why == why
    assert child.record.cpu_ns >= 100_000_000
    assert counted == {"program": "busy", "cpu_ns": child.record.cpu_ns, "is_estimated": False}
    assert re.search(rf"busy.*{why}|{why}.*busy", processes.stdout), processes.stdout


def test_without_native_calls_none_is_followed(ran):
    done = ran(["true"], INTERPOSE="calls")

    assert [child.why for child in done.experiment.founder.not_followed] == ["not Python"]
    assert not os.path.exists(os.path.join(done.path, "programs"))


def test_one_that_is_excluded_is_not_recorded(ran):
    done = ran(["sh", "-c", "exit 2"], INTERPOSE_FOLLOW="=python")

    assert done.gave[0] == 2
    assert [each.lineage for each in done.experiment.processes] == [""]


def test_a_program_runs_as_it_would_where_its_plan_is_damaged(traced, data):
    spoiled = """
import os, subprocess, sys
experiment = sys.argv[1] + "/test.1.er/programs"
whole = open(experiment, "rb").read()
for part in (b"", whole[:40], whole[:-1000], whole.replace(b"format ", b"format 9"), b"map 99999999\\n", b"\\0" * 5000):
    open(experiment, "wb").write(part)
    print(subprocess.run(["sh", "-c", "echo on; exit 3"], capture_output=True))
"""
    done = traced(spoiled, str(data.parent), **NATIVE)

    assert done.stdout.count("returncode=3, stdout=b'on\\n', stderr=b''") == 6, done.stdout
    assert done.experiment.founder.log.pid


def test_arguments_are_kept_only_if_all_is_kept_of_commands(ran):
    told = ran(["printf", "%s", "hush"])
    kept = ran(["printf", "%s", "hush"], INTERPOSE_ARGUMENTS="process=whole")

    def arguments(done):
        return [each.log.arguments for each in done.experiment.processes if each.lineage]

    assert arguments(told) == [[]]
    assert arguments(kept) == [["%s", "hush"]]


def test_reports_show_it(ran, data):
    done = ran(["gzip", "-k", data / "text"])
    report = [sys.executable, "-m", "interpose", "report"]
    asked = {"capture_output": True, "text": True, "env": environment(COLUMNS="200"), "cwd": done.directory}

    whole = subprocess.run([*report, done.path, "--format", "json"], **asked)
    rows = subprocess.run([*report, done.path, "--by", "line"], **asked)
    processes = subprocess.run([sys.executable, "-m", "interpose", "processes", done.path], **asked)

    assert re.search(r"file +libc\.read +gzip", rows.stdout), rows.stdout
    assert re.search(r"_c1 .* exit 0 +gzip", processes.stdout), processes.stdout
    found = json.loads(whole.stdout)
    assert sum(row["self_wall_ns"] for row in found["rows"]) == found["thread_ns"]
    assert not found.get("children_not_followed")


LOADS = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int zero;
void *loads(void *path)
{
    for (int each = 0; each < 5000; each++) {
        void *library = dlopen(path, RTLD_NOW);
        int (*reads)(int) = (int (*)(int))dlsym(library, "reads");
        if (reads(zero) != 1)
            return "no byte";
        dlclose(library);
    }
    return "";
}
int main(void)
{
    pthread_t threads[6];
    zero = open("/dev/zero", O_RDONLY);
    for (int each = 0; each < 6; each++)
        pthread_create(&threads[each], NULL, loads, each % 2 ? "./one.so" : "./two.so");
    for (int each = 0; each < 6; each++) {
        void *why;
        pthread_join(threads[each], &why);
        fputs(why, stdout);
    }
    return 0;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("stack", ["library", "functions"])
def test_threads_that_load_libraries_do_not_wait_for_each_other(interpose, compiler, tmp_path, stack):
    work = tmp_path / "work"
    source = "#include <unistd.h>\nint reads(int zero) { char byte; return (int)read(zero, &byte, 1); }\n"
    (work / "one.c").write_text(source)
    (work / "program.c").write_text(LOADS)
    for name in ("one.so", "two.so"):
        subprocess.run([compiler, "-shared", "-fPIC", "-o", name, "one.c"], cwd=work, check=True)
    subprocess.run([compiler, "-w", "-pthread", "-o", "program", "program.c", "-ldl"], cwd=work, check=True)

    done = interpose("run", "--native-stack", stack, "./program")

    assert (done.returncode, done.stdout) == (0, "")


EXECUTES_ITSELF = """
#include <time.h>
#include <unistd.h>
int main(int count, char **words)
{
    clock_t end = clock() + 100000;
    usleep(3000);
    if (count == 1)
        execl(words[0], words[0], "again", (char *)0);
    while (clock() < end)
        continue;
    return count != 2;
}
"""
WAITS_FOR_EACH = """
import json, os, sys
for turn in range(8):
    started = os.posix_spawn(sys.argv[1], [sys.argv[1]], os.environ)
    _, status, used = os.wait4(started, 0)
    print(json.dumps([started, status, round((used.ru_utime + used.ru_stime) * 1e9)]))
"""


@pytest.mark.long
def test_a_program_that_executes_itself_has_no_more_cpu_time_than_the_kernel_counted(traced, compiler, tmp_path):
    done = traced(WAITS_FOR_EACH, built(tmp_path, EXECUTES_ITSELF), **NATIVE)

    found = profile(Analysis(done.experiment), "process").rows
    used_ns = Counter()
    for row in found:
        used_ns[int(row.labels["process"].split()[0])] += row.sums.self_cpu_ns
        assert row.sums.self_cpu_ns <= row.sums.self_wall_ns
    assert done.stderr == ""
    for started, status, counted_ns in map(json.loads, done.stdout.splitlines()):
        assert status == 0
        assert 99_000_000 < used_ns[started] <= counted_ns
