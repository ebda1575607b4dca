"""Processes and locks of C code: recorded where it waits, passed through where it does not; nothing ends otherwise."""

import errno
import os
from collections import Counter

import pytest

NATIVE = {"INTERPOSE": "calls,native"}


def named(done):
    """The events of functions of the C library, each with its name."""
    founder = done.experiment.founder
    every = [(founder.intrinsic(event.intrinsic).name, event) for event in done.events()]
    return [(name.removeprefix("libc."), event) for name, event in every if name.startswith("libc.")]


def test_a_child_of_vfork_and_what_it_becomes_pass(native):
    done = native("print([calls.run_by_vfork(status) for status in (0, 7, 3)])\nos.getcwd()\n")

    assert (done.stdout, done.stderr) == ("[0, 7, 3]\n", "")
    counts = Counter(name for name, _ in named(done))
    assert counts["waitpid"] == 3
    assert not counts["execv"]
    (thread,) = done.experiment.founder.threads
    assert thread.adds_up and not thread.open_calls


def test_a_forked_child_of_c_code_ends_nothing_of_its_parents(native):
    done = native("print([calls.forked_reads(zero, 10) for _ in range(50)] == [7] * 50)\n")

    assert (done.stdout, done.stderr) == ("True\n", "")
    counts = Counter(name for name, _ in named(done))
    assert (counts["fork"], counts["waitpid"]) == (50, 50)
    (thread,) = done.experiment.founder.threads
    assert thread.adds_up and not thread.open_calls


def test_of_a_command_the_program_is_told(native):
    done = native(
        'print(calls.run_shell(b"exit 3"), calls.run_shell(b"SECRET=canary true canary"), calls.run_shell(None) != 0)\n'
    )

    assert done.stdout == f"{3 << 8} 0 True\n"
    founder = done.experiment.founder
    assert [founder.string(event.detail) for name, event in named(done) if name == "system"] == ["exit", "true", ""]


def test_errors_are_as_they_would_be(native):
    done = native(
        "print(calls.error_of_wait(), calls.error_of_exec(), calls.lock_twice_checked(), calls.lock_twice_recursive(),"
        " calls.lock_of_the_dead(), calls.time_out_of_condition())\n"
    )

    given = [errno.ECHILD, errno.ENOENT, errno.EDEADLK, 0, errno.EOWNERDEAD, errno.ETIMEDOUT]
    assert done.stdout.split() == [str(number) for number in given]
    founder = done.experiment.founder
    assert [founder.string(event.error) for name, event in named(done) if name == "waitpid"] == ["ECHILD"]


def test_a_free_lock_leaves_no_trace(native):
    done = native("calls.add_guarded.restype = ctypes.c_long\nprint(calls.add_guarded(100000, 0))\n")

    assert done.stdout == "100000\n"
    assert not [name for name, _ in named(done) if name == "pthread_mutex_lock"]


def test_free_locks_are_recorded_if_asked_for(native):
    done = native("print(calls.add_guarded(100, 0))\n", INTERPOSE_SYNC="all")

    assert done.stdout == "100\n"
    assert [name for name, _ in named(done)].count("pthread_mutex_lock") == 100


HELD = """
calls.add_guarded.restype = ctypes.c_long
threads = [threading.Thread(target=calls.add_guarded, args=(20, 2000)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(calls.add_guarded(0, 0), calls.add_guarded(1, 0))
"""


def test_waits_for_a_lock_that_others_hold_are_timed(native):
    done = native(HELD)

    assert done.stdout == "80 81\n"
    waits = [event for name, event in named(done) if name == "pthread_mutex_lock"]
    founder = done.experiment.founder
    assert {founder.intrinsic(event.intrinsic).kind for event in waits} == {"sync"}
    assert len({event.thread for event in waits}) >= 3
    # One at a time holds it for 2 ms: the others wait meanwhile, 80 times.
    assert sum(event.wall_ns for event in waits) > 80 * 2_000_000
    assert all(event.cpu_ns <= event.wall_ns for event in waits)
    assert all(thread.adds_up for thread in founder.threads)


@pytest.mark.parametrize("value", ["calls", "calls,native"])
def test_an_openmp_like_pool_ends(traced, built, tmp_path, value):
    source = tmp_path / "pool.c"
    source.write_text(POOL)
    built(source=source, name="pool.so")

    done = traced('import ctypes\nprint(ctypes.CDLL("./pool.so").run(2000))\n', INTERPOSE=value, timeout_s=60)

    assert (done.stdout, done.stderr) == ("2000\n", "")
    assert os.path.isdir(done.path)


# Threads that take numbers from each other by a condition, with a handler that comes between.
POOL = """
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER, taken = PTHREAD_COND_INITIALIZER;
static int number, has, ends, sum;
static volatile sig_atomic_t came;
static void come(int signal) { came++; }
static void *take(void *nothing)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!has && !ends)
            pthread_cond_wait(&there, &mutex);
        if (!has)
            break;
        has = 0;
        sum++;
        pthread_cond_signal(&taken);
    }
    pthread_mutex_unlock(&mutex);
    return nothing;
}
int run(int count)
{
    struct sigaction action = {.sa_handler = come, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    pthread_t threads[4];
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int each = 0; each < 4; each++)
        pthread_create(&threads[each], NULL, take, NULL);
    pthread_mutex_lock(&mutex);
    for (number = 0; number < count; number++) {
        while (has)
            pthread_cond_wait(&taken, &mutex);
        has = 1;
        pthread_cond_signal(&there);
    }
    while (has)
        pthread_cond_wait(&taken, &mutex);
    ends = 1;
    pthread_cond_broadcast(&there);
    pthread_mutex_unlock(&mutex);
    for (int each = 0; each < 4; each++)
        pthread_join(threads[each], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    return sum;
}
"""
