"""Waits of programs in C and C++: each is an event as long as the program's clock says, and ends as it would have."""

import shutil
import subprocess
from collections import Counter

import pytest
from tracing import events_of, same_library

from interpose.experiments.model.experiment import Experiment

pytestmark = same_library

# A helper ends each wait after 120 ms, by the bare system call's clock: a thread, or a timer whose signal interrupts.
HEAD = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static struct timespec ms(int ms) { return (struct timespec){ms / 1000, ms % 1000 * 1000000L}; }

static struct timespec *in_ms(clockid_t clock, int wanted)
{
    static struct timespec until;
    clock_gettime(clock, &until);
    until.tv_nsec += wanted % 1000 * 1000000L;
    until.tv_sec += wanted / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return &until;
}

static void *act(void *what)
{
    struct timespec wait = ms(120);
    syscall(SYS_nanosleep, &wait, NULL);
    ((void (*)(void))what)();
    return NULL;
}

static void later(void (*what)(void))
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&thread, NULL, act, (void *)what);
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void come(int number) { (void)number; }

static void alarm_soon(void)
{
    struct sigaction action = {.sa_handler = come};
    struct itimerval once = {{0, 0}, {0, 120000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &once, NULL);
}

#define TELL(call) do { int result; errno = 0; result = (call); printf("%d %d\\n", result, errno); } while (0)
#define WAITS(name, call) do { \\
    struct timespec begin, end; \\
    clock_gettime(CLOCK_MONOTONIC, &begin); \\
    errno = 0; \\
    long result = (long)(call); \\
    int error = errno; \\
    clock_gettime(CLOCK_MONOTONIC, &end); \\
    printf("%s %ld %d %ld\\n", name, result, error, \\
           (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec); \\
    } while (0)
#define WAIT(function, ...) WAITS(#function, function(__VA_ARGS__))
"""

SLEEPS = """
int main(void)
{
    struct timespec wanted = ms(120), longer = ms(3500);
    WAIT(sleep, 1);
    alarm_soon();
    WAIT(sleep, 3);
    WAIT(thrd_sleep, &wanted, NULL);
    alarm_soon();
    WAIT(thrd_sleep, &longer, NULL);
    return 0;
}
"""

LOCKS = """
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static mtx_t plain;
static cnd_t told;
static int set;
static void unlock_plain(void) { mtx_unlock(&plain); }
static void tell(void) { cnd_signal(&told); }
static void more(void) { semop(set, &(struct sembuf){0, 1, 0}, 1); }
static void nothing(void) {}
static int sleeps(void *none) { (void)none; act((void *)nothing); return 7; }
static void *holds(void *none)
{
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&lock);
    sem_post(&semaphore);
    for (;;)
        syscall(SYS_pause);
    return none;
}
static pthread_t slow(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, act, (void *)nothing);
    return thread;
}

int main(void)
{
    struct timespec soon = ms(120), invalid = {0, -1};
    struct sembuf less = {0, -1, 0};
    pthread_t holder;
    thrd_t thread;
    int given;
    sem_init(&semaphore, 0, 0);
    mtx_init(&plain, mtx_timed);
    cnd_init(&told);
    pthread_create(&holder, NULL, holds, NULL);
    while (sem_trywait(&semaphore))
        ;
    WAIT(pthread_mutex_clocklock, &mutex, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    WAIT(pthread_mutex_timedlock, &mutex, in_ms(CLOCK_REALTIME, 120));
    WAIT(pthread_rwlock_timedrdlock, &lock, in_ms(CLOCK_REALTIME, 120));
    WAIT(pthread_rwlock_timedwrlock, &lock, in_ms(CLOCK_REALTIME, 120));
    WAIT(pthread_rwlock_clockrdlock, &lock, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    WAIT(pthread_rwlock_clockwrlock, &lock, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    WAIT(sem_clockwait, &semaphore, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    alarm_soon();
    WAIT(sem_clockwait, &semaphore, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 2000));
    pthread_mutex_lock(&own);
    WAIT(pthread_cond_clockwait, &condition, &own, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    set = semget(IPC_PRIVATE, 1, 0600);
    later(more);
    WAIT(semop, set, &less, 1);
    WAIT(semtimedop, set, &less, 1, &soon);
    alarm_soon();
    WAIT(semop, set, &less, 1);
    semctl(set, 0, IPC_RMID);
    pthread_t ending = slow();
    WAIT(pthread_timedjoin_np, ending, NULL, in_ms(CLOCK_REALTIME, 2000));
    WAIT(pthread_clockjoin_np, holder, NULL, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 120));
    mtx_lock(&plain);
    later(unlock_plain);
    WAIT(mtx_lock, &plain);
    WAIT(mtx_timedlock, &plain, in_ms(CLOCK_REALTIME, 120));
    later(tell);
    WAIT(cnd_wait, &told, &plain);
    WAIT(cnd_timedwait, &told, &plain, in_ms(CLOCK_REALTIME, 120));
    thrd_create(&thread, sleeps, NULL);
    WAIT(thrd_join, thread, &given);
    /* What is refused is so also where nobody holds the lock. */
    pthread_mutex_unlock(&own);
    sem_post(&semaphore);
    printf("%d\\n", given);
    TELL(pthread_mutex_clocklock(&own, CLOCK_PROCESS_CPUTIME_ID, &soon));
    TELL(pthread_mutex_clocklock(&own, CLOCK_MONOTONIC, &invalid));
    TELL(sem_clockwait(&semaphore, CLOCK_PROCESS_CPUTIME_ID, &soon));
    TELL(sem_timedwait(&semaphore, &invalid));
    lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    TELL(pthread_rwlock_timedrdlock(&lock, &invalid));
    TELL(pthread_rwlock_clockwrlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &soon));
    return 0;
}
"""

FILES = """
static int holder, ends[2];
static struct flock range = {.l_type = F_WRLCK}, freed = {.l_type = F_UNLCK}, own = {.l_type = F_WRLCK};
static void unflock(void) { flock(holder, LOCK_UN); }
static void unlock_range(void) { fcntl(holder, F_OFD_SETLK, &freed); }
static void write_pipe(void) { syscall(SYS_write, ends[1], "abc", 3); }

int main(void)
{
    int further[2], file = open("locked", O_RDWR | O_CREAT, 0600), copied;
    holder = open("locked", O_RDWR);
    if (pipe(ends) || pipe(further))
        return 1;
    flock(holder, LOCK_EX);
    later(unflock);
    WAIT(flock, file, LOCK_EX);
    alarm_soon();
    WAIT(flock, holder, LOCK_EX);
    fcntl(holder, F_OFD_SETLK, &range);
    later(unlock_range);
    WAIT(fcntl, file, F_SETLKW, &own);
    fcntl(file, F_SETLK, &freed);
    fcntl(holder, F_OFD_SETLK, &range);
    later(unlock_range);
    WAIT(fcntl, file, F_OFD_SETLKW, &own);
    fcntl(file, F_OFD_SETLK, &freed);
    fcntl(holder, F_OFD_SETLK, &range);
    alarm_soon();
    WAIT(fcntl, file, F_SETLKW, &own);
    later(unlock_range);
    WAIT(lockf, file, F_LOCK, 1);
    later(write_pipe);
    WAIT(splice, ends[0], NULL, file, NULL, 3, 0);
    later(write_pipe);
    WAIT(tee, ends[0], further[1], 3, 0);
    copied = fcntl(file, F_DUPFD, 50);
    printf("%d %d\\n", copied, fcntl(copied, F_GETFD));
    printf("%d %d\\n", fcntl(copied, F_SETFD, FD_CLOEXEC), fcntl(copied, F_GETFD));
    TELL(fcntl(ends[1], F_SETPIPE_SZ, 65536));
    TELL(fcntl(holder, F_SETLK, &own));
    TELL(fcntl(-1, F_GETFL));
    return 0;
}
"""

SIGNALS = """
static pthread_t first;
static void tell(void) { pthread_kill(first, SIGUSR1); }

int main(void)
{
    sigset_t none, usual;
    siginfo_t info;
    struct timespec soon = ms(120);
    int came = 0;
    first = pthread_self();
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usual, NULL);
    alarm_soon();
    WAIT(pause);
    alarm_soon();
    WAIT(sigsuspend, &none);
    later(tell);
    WAIT(sigwait, &usual, &came);
    later(tell);
    WAIT(sigwaitinfo, &usual, &info);
    alarm_soon();
    WAIT(sigwaitinfo, &usual, &info);
    WAIT(sigtimedwait, &usual, &info, &soon);
    printf("%d\\n", came);
    return 0;
}
"""

MESSAGES = """
static int queue, ends[2];
static mqd_t mail;
static struct { long type; char text[4]; } letter = {1, "abc"};
static char memory[64];
static void put(void) { msgsnd(queue, &letter, 4, 0); }
static void post(void) { mq_send(mail, "abcde", 5, 0); }
static void take(void) { mq_receive(mail, memory, 8, NULL); }
static void transmit(void) { syscall(SYS_write, ends[1], "abc", 3); }

int main(void)
{
    struct iovec part = {memory, sizeof memory};
    struct mmsghdr several[2] = {{.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}};
    struct mq_attr narrow = {.mq_maxmsg = 1, .mq_msgsize = 8};
    queue = msgget(IPC_PRIVATE, 0600);
    mail = mq_open("/interpose-long-waits", O_CREAT | O_RDWR, 0600, &narrow);
    mq_unlink("/interpose-long-waits");
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
        return 1;
    later(put);
    WAIT(msgrcv, queue, &letter, 4, 0, 0);
    alarm_soon();
    WAIT(msgrcv, queue, &letter, 4, 0, 0);
    later(post);
    WAIT(mq_receive, mail, memory, 8, NULL);
    WAIT(mq_timedreceive, mail, memory, 8, NULL, in_ms(CLOCK_REALTIME, 120));
    post();
    WAIT(mq_timedsend, mail, memory, 4, 0, in_ms(CLOCK_REALTIME, 120));
    later(take);
    WAIT(mq_send, mail, memory, 4, 0);
    later(transmit);
    WAIT(recvmmsg, ends[0], several, 1, 0, NULL);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
"""

IN_CPP = """
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
using namespace std::chrono;

template <class Wait> void waits(const char *name, Wait wait)
{
    auto begin = steady_clock::now();
    int result = wait();
    long took = duration_cast<nanoseconds>(steady_clock::now() - begin).count();
    std::printf("%s %d 0 %ld\\n", name, result, took);
}

int main()
{
    std::mutex mutex;
    std::condition_variable condition;
    std::timed_mutex timed;
    std::shared_timed_mutex shared;
    std::unique_lock<std::mutex> lock(mutex);
    auto soon = milliseconds(120);
    std::mutex held;
    std::unique_lock<std::mutex> first(held);
    std::atomic<bool> holds{false};
    std::thread holder([&] {
        timed.lock();
        shared.lock();
        holds = true;
        held.lock();
        shared.unlock();
        timed.unlock();
    });
    while (!holds)
        std::this_thread::yield();
    waits("nanosleep", [&] { std::this_thread::sleep_for(soon); return 0; });
    waits("pthread_cond_clockwait", [&] { return condition.wait_for(lock, soon) == std::cv_status::timeout; });
    waits("pthread_cond_clockwait", [&] {
        return condition.wait_until(lock, steady_clock::now() + soon, [] { return false; });
    });
    waits("pthread_cond_timedwait", [&] { return (int)condition.wait_until(lock, system_clock::now() + soon); });
    waits("pthread_mutex_clocklock", [&] { return timed.try_lock_for(soon); });
    waits("pthread_rwlock_clockwrlock", [&] { return shared.try_lock_for(soon); });
    waits("pthread_rwlock_clockrdlock", [&] { return shared.try_lock_shared_for(soon); });
    first.unlock();
    holder.join();
}
"""

KINDS = {
    **dict.fromkeys(("sleep", "thrd_sleep", "nanosleep"), "sleep"),
    **dict.fromkeys(("pause", "sigsuspend", "sigwait", "sigwaitinfo", "sigtimedwait"), "idle"),
    # splice and tee begin at a pipe here.
    **dict.fromkeys(("splice", "tee", "msgrcv", "mq_receive", "mq_timedreceive", "mq_timedsend", "mq_send"), "process"),
    "recvmmsg": "net",
}
PROGRAMS = {"sleeps": SLEEPS, "locks": LOCKS, "files": FILES, "signals": SIGNALS, "messages": MESSAGES}


def waits_of(text):
    """Name, result, errno and nanoseconds of each wait that the program printed."""
    rows = [line.split() for line in text.splitlines()]
    return [(row[0], row[1], row[2], int(row[3])) for row in rows if len(row) == 4]


def without_times(text):
    return [line.split()[:3] for line in text.splitlines()]


def recorded(work, least_ns=0):
    founder = Experiment(str(work / "test.1.er")).founder
    named = [(founder.intrinsic(event.intrinsic), event) for event in events_of(founder)]
    named.sort(key=lambda each: each[1].start_ns)
    long = [(each, event.wall_ns) for each, event in named if event.wall_ns > least_ns]
    return [(each.name.removeprefix("libc."), each.kind, wall_ns) for each, wall_ns in long]


def agree(interpose, work, command):
    plain = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=60, check=True)
    done = interpose("run", command)

    assert (done.returncode, done.stderr) == (0, "")
    assert without_times(done.stdout) == without_times(plain.stdout)
    own = waits_of(done.stdout)
    assert all(wait_ns > 100_000_000 for *_, wait_ns in own), own
    names = {name for name, *_ in own}
    found = [each for each in recorded(work, 90_000_000) if each[0] in names]
    assert [(name, kind) for name, kind, _ in found] == [(name, KINDS.get(name, "sync")) for name, *_ in own]
    for (name, _, wall_ns), (*_, wait_ns) in zip(found, own, strict=True):
        assert 0.9 * wait_ns <= wall_ns <= wait_ns, name


@pytest.mark.alone
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wait_of_c_is_recorded_as_long_as_it_was_and_ends_as_it_would(interpose, work, client, program):
    command = client(HEAD + PROGRAMS[program], "-pthread", "-Wno-unused-function")

    agree(interpose, work, command)

    if program == "files":
        # Other commands of fcntl are not recorded.
        assert Counter(name for name, *_ in recorded(work))["fcntl"] == 3


@pytest.mark.alone
@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_a_timed_wait_of_cpp_is_recorded_as_long_as_it_was_and_ends_as_it_would(interpose, work):
    (work / "client.cpp").write_text(IN_CPP)
    subprocess.run(["g++", "-std=c++17", "-O1", "-pthread", "-o", "client", "client.cpp"], cwd=work, check=True)

    agree(interpose, work, "./client")


def test_a_sleep_that_python_makes_by_ctypes_is_recorded(traced):
    done = traced("import ctypes\nprint(ctypes.CDLL(None).sleep(1))\n", INTERPOSE="calls,native")

    assert done.stdout == "0\n"
    founder = done.experiment.founder
    (found,) = [event for event in done.events() if founder.intrinsic(event.intrinsic).name == "libc.sleep"]
    assert founder.intrinsic(found.intrinsic).kind == "sleep"
    assert found.wall_ns >= 1_000_000_000
