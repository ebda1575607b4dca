"""The functions of programs that are not Python have the CPU time that the programs measured themselves."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import Sampled
from tests.kernel_counters import WITHOUT_PERF_EVENTS
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import cpu_by, shares_of
from tests.tracing import same_library

pytestmark = same_library

# Functions that take turns and measure their own CPU time; `read` makes calls that are recorded.
TURNS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}
static volatile double kept;
static double spent[3];
#define TAKES(name, number, part, work) \\
    __attribute__((noinline)) void name(double turn) \\
    { \\
        double began = now(); \\
        while (now() < began + turn * part) \\
            for (long each = 0; each < 50000; each++) \\
                work; \\
        spent[number] += now() - began; \\
    }
TAKES(multiply, 0, 0.6, kept = kept * 1.0000001 + 1)
TAKES(divide, 1, 0.3, kept = kept / 1.0000001 + 1)
TAKES(turn, 2, 0.1, kept = -kept)
static void *work(void *unused)
{
    double turn_s = atof(getenv("TURN_S")), all_s = atof(getenv("ALL_S"));
    while (spent[0] + spent[1] + spent[2] < all_s) {
        multiply(turn_s);
        divide(turn_s);
        turn(turn_s);
    }
    printf("{\\"multiply\\": %g, \\"divide\\": %g, \\"turn\\": %g}\\n", spent[0], spent[1], spent[2]);
    return unused;
}
int main(void)
{
    pthread_t thread;
    const char *place = getenv("PLACE");
    if (!place || *place != 't') {
        work(NULL);
        return 0;
    }
    pthread_create(&thread, NULL, work, NULL);
    if (place[sizeof "thread" - 1]) /* thread alone */
        pthread_exit(NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""

PAGES = """
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
__attribute__((noinline)) void touch(char *pages, long count)
{
    for (long each = 0; each < count; each++)
        pages[each * 4096] = 1;
}
int main(void)
{
    struct rusage before, after;
    struct timespec tenth = {0, 100000000};
    long count = 150000;
    char *pages = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, count * 4096, MADV_NOHUGEPAGE);
    nanosleep(&tenth, NULL);
    getrusage(RUSAGE_SELF, &before);
    for (int times = 0; times < 5; times++) {
        touch(pages, count);
        madvise(pages, count * 4096, MADV_DONTNEED);
    }
    getrusage(RUSAGE_SELF, &after);
    nanosleep(&tenth, NULL);
    printf("%ld", after.ru_minflt - before.ru_minflt);
    return 0;
}
"""

# One that is mostly in the kernel, one that computes; and another program, which cannot be followed.
FAULTS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile double kept;
static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}
__attribute__((noinline)) void touch(void)
{
    enum { BYTES = 2000 * 4096 };
    static char *pages;
    pages = pages ? pages : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, BYTES, MADV_NOHUGEPAGE);
    for (long each = 0; each < BYTES; each += 4096)
        pages[each] = 1;
    madvise(pages, BYTES, MADV_DONTNEED);
}
__attribute__((noinline)) void compute(void)
{
    for (long each = 0; each < 60000; each++)
        kept = kept * 1.0000001 + 1;
}
int main(int count, char **words)
{
    double spent[2] = {0, 0}, all_s = atof(getenv("ALL_S"));
    while (spent[0] + spent[1] < all_s) {
        double began = now();
        touch();
        spent[0] += now() - began;
        began = now();
        compute();
        spent[1] += now() - began;
    }
    if (count > 1) {
        execv(words[1], (char *[]){words[1], NULL});
        return 1;
    }
    printf("{\\"touch\\": %g, \\"compute\\": %g}\\n", spent[0], spent[1]);
    return 0;
}
"""

# A thread that computes beside many that wait.
POOL = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile double kept;
static void *wait(void *nothing) { for (;;) pause(); return nothing; }
__attribute__((noinline)) void crunch(long times)
{
    for (long each = 0; each < times; each++)
        kept = kept * 1.0000001 + 1;
}
static void *work(void *nothing) { crunch(400000000); return nothing; }
int main(void)
{
    pthread_t thread;
    for (int each = 0; each < 50; each++)
        pthread_create(&thread, NULL, wait, NULL);
    usleep(300000);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""

# Threads that end in every way, with the smallest stacks, and more at the same time than have room to begin at once.
ENDS = """
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t all;
static int unwound;
static void note(void *unused) { unwound++; }
static void *returns(void *given) { return given; }
static void *exits(void *given) { pthread_exit(given); }
static void *waits(void *given)
{
    pthread_cleanup_push(note, NULL);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return given;
}
static void *meets(void *given) { pthread_barrier_wait(&all); return given; }
int main(void)
{
    void *(*each[])(void *) = {returns, exits, waits}, *result;
    pthread_t threads[150];
    pthread_attr_t small;
    long sum = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (long number = 0; number < 90; number++) {
        if (pthread_create(threads, &small, each[number % 3], (void *)number)) return 1;
        if (number % 3 == 2) pthread_cancel(*threads);
        pthread_join(*threads, &result);
        sum += result == PTHREAD_CANCELED ? 1000 : (long)result;
    }
    pthread_barrier_init(&all, NULL, 150);
    for (long number = 0; number < 150; number++)
        if (pthread_create(threads + number, NULL, meets, (void *)number)) return 2;
    for (long number = 0; number < 150; number++) {
        pthread_join(threads[number], &result);
        sum += (long)result;
    }
    printf("%ld %d", sum, unwound);
    return 0;
}
"""


def named(frames):
    return frames[0].function if frames else ""


def sampled_process(work):
    """The process of the experiment that was sampled most."""
    processes = Experiment(str(work / "test.1.er")).processes
    refused = {why for process in processes if (why := Sampled(process).why_not)}
    if refused:
        pytest.skip(f"the kernel tells nobody where threads execute: {refused}")
    return max(processes, key=samples_that_count)


def check_shares(process, spent):
    found, truth, samples = cpu_by(process, named), shares_of(spent), samples_that_count(process)
    if samples < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    shares = shares_of({name: found[name] for name in spent})
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    others = sum(found.values()) - sum(found[name] for name in spent)
    assert others < 0.1 * sum(found.values())


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("turn_s", ["0.2", "0.005"])
@pytest.mark.parametrize("place", ["main", "thread", "thread alone", "descendant"])
def test_functions_have_the_cpu_time_that_the_program_measured(interpose, client, work, turn_s, place):
    command = client(TURNS, "-O1", "-pthread")
    words = ["sh", "-c", f"{command}; true"] if place == "descendant" else [command]

    done = interpose("run", "--profile", "250", *words, variables={"TURN_S": turn_s, "ALL_S": "2", "PLACE": place})

    assert done.returncode == 0, done.stderr
    process, spent = sampled_process(work), json.loads(done.stdout)
    assert Sampled(process).is_there
    check_shares(process, spent)
    used_s = [(each.record.end_cpu_ns - each.record.start_cpu_ns) / 1e9 for each in process.threads]
    assert len(used_s) == (2 if "thread" in place else 1)
    assert max(used_s) == pytest.approx(sum(spent.values()), rel=0.02)


@pytest.mark.long
def test_reports_name_the_functions_of_the_program_as_its_own(interpose, client, work):
    done = interpose("run", client(TURNS, "-O1", "-pthread"), variables={"TURN_S": "0.02", "ALL_S": "1"})
    sampled_process(work)

    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)
    first = interpose("report").stdout

    assert done.returncode == 0, done.stderr
    found = {row["function"]: row for row in rows if row["kind"] == "code"}
    assert (Path(found["multiply"]["file"]).name, found["multiply"]["line"]) == ("client", None)
    assert "client multiply computes" in " ".join(first.split())
    assert "perf annotate" in first and "interpreter lock" not in first


@pytest.mark.long
@pytest.mark.alone
def test_time_in_the_kernel_is_that_of_the_function_that_needs_it(interpose, client, work):
    done = interpose("run", "--profile", "250", client(FAULTS, "-O1"), variables={"ALL_S": "2"})

    process, spent = sampled_process(work), json.loads(done.stdout)
    found, truth, samples = cpu_by(process, named), shares_of(spent), samples_that_count(process)
    found["touch"] += found["madvise"] + found["__madvise"]
    shares = shares_of({name: found[name] for name in spent})
    assert shares["touch"] == pytest.approx(truth["touch"], abs=chance(truth["touch"], samples) + 5)


@pytest.mark.long
def test_what_another_program_does_in_the_process_is_not_told_of_this_one(interpose, client, work, compiler):
    command = client(FAULTS, "-O1")
    words = [compiler, "-O1", "-static", "-o", work / "other", work / "client.c"]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("programs cannot be linked statically here")

    done = interpose("run", command, "./other", variables={"ALL_S": "0.7"})
    sampled_process(work)
    told = json.loads(interpose("report", "--format", "json").stdout)
    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert told["cpu_ns"] == pytest.approx(0.7e9, rel=0.2)
    assert "other" not in {Path(row["file"] or "").name for row in rows}


@pytest.mark.long
def test_a_thread_that_computes_is_told_beside_many_that_wait(interpose, client, work):
    interpose("run", client(POOL, "-O1", "-pthread"))

    found = cpu_by(sampled_process(work), named)

    assert found["crunch"] > 0.8 * sum(found.values())


@pytest.mark.long
def test_a_stripped_program_is_named_without_functions(interpose, client, work):
    interpose("run", client(TURNS, "-O1", "-pthread", "-s"), variables={"TURN_S": "0.02", "ALL_S": "0.5"})

    found = cpu_by(sampled_process(work), named)

    assert found["client"] + found["[vdso]"] > 0.8 * sum(found.values())  # the latter has the clock that it reads
    assert "multiply" not in found and "main" not in found


@pytest.mark.long
@pytest.mark.alone
def test_page_faults_are_counted_where_they_were(interpose, client, work):
    done = interpose("run", "--counters", "faults", "--profile", "500", client(PAGES, "-O1"))
    sampled_process(work)

    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)

    faults = Counter({row["function"]: row["faults"] for row in rows if row.get("faults")})
    margin = next(row["faults_margin"] for row in rows if row["function"] == "touch")
    assert faults["touch"] == pytest.approx(int(done.stdout), abs=max(2 * margin, 0.05 * int(done.stdout)))


@contextmanager
def busy_machine():
    """Other programs take the processors again and again: the kernel lets one go as it returns from a system call."""
    program = "import time\nwhile True:\n    time.sleep(0.0003)\n    for each in range(10000): pass"
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(1 + len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


@pytest.mark.long
@pytest.mark.alone
def test_without_rights_functions_have_the_cpu_time_that_the_program_measured(client, work, own_environment):
    words = [sys.executable, "-m", "interpose", "run", "--profile", "250", client(TURNS, "-O1", "-pthread")]
    if os.geteuid() == 0:  # a user without capabilities may not look into the kernel
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]
        if not shutil.which("setpriv"):
            pytest.skip("there is no setpriv")
    environment = {**own_environment, "TURN_S": "0.02", "ALL_S": "2"}

    with busy_machine():
        done = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    check_shares(sampled_process(work), json.loads(done.stdout))


def test_without_perf_events_nothing_is_sampled_and_the_report_says_so(client, interpose, work, own_environment):
    words = [sys.executable, "-c", WITHOUT_PERF_EVENTS, "run", client(TURNS, "-O1", "-pthread")]
    environment = {**own_environment, "TURN_S": "0.02", "ALL_S": "0.3"}

    done = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    shown = " ".join(interpose("report").stdout.split())
    told = "samples of code a process could not be sampled: the kernel permits no perf events: Permission denied"
    assert told in shown
    assert "client computes: CPU time between recorded calls" in shown


def test_without_perf_events_doctor_says_what_is_not_sampled(work, own_environment):
    words = [sys.executable, "-c", WITHOUT_PERF_EVENTS, "doctor"]

    done = subprocess.run(words, cwd=work, env=own_environment, capture_output=True, text=True)

    assert "programs that are not Python are not sampled" in " ".join(done.stdout.split())


def test_threads_end_as_they_would(client, interpose, work):
    command = client(ENDS, "-O1", "-pthread")

    untraced = subprocess.run([command], cwd=work, capture_output=True, text=True, timeout=60)
    done = interpose("run", command)

    assert (untraced.returncode, untraced.stderr) == (0, "")
    assert (done.returncode, done.stdout, done.stderr) == (0, untraced.stdout, "")
    (process,) = Experiment(str(work / "test.1.er")).processes
    assert len(list(process.threads)) == 1 + 90 + 150
