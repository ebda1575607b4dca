"""Each function of the list, called once as a program would: recorded once, of the kind of what lies behind it."""

import json
from collections import Counter

from interpose.experiments.model.process import Process
from interpose.timing import shims

# The program has a file that is open for reading and writing, both ends of a connection, and a listener with two
# clients. A compiler calls `__..._chk` if it knows how large the memory is.
HEAD = """
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define LONG(...) ((long)(__VA_ARGS__))
extern int __open_2(const char *, int), __open64_2(const char *, int);
extern ssize_t __read_chk(int, void *, size_t, size_t), __pread64_chk(int, void *, size_t, off64_t, size_t),
    __recv_chk(int, void *, size_t, size_t, int);
extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);
extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
/* Under names that the compiler does not know. */
extern ssize_t get_line(char **, size_t *, FILE *) __asm__("getline");
extern size_t read_unlocked(void *, size_t, size_t, FILE *) __asm__("fread_unlocked"),
    write_unlocked(const void *, size_t, size_t, FILE *) __asm__("fwrite_unlocked");

static char memory[64];
static struct iovec part = {memory, 4}, byte = {memory, 1};
static struct timespec instant = {0, 1000};
static struct timeval moment = {0, 1000};
static struct sockaddr_in address;
static struct addrinfo *found;
static struct epoll_event event;
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static struct mmsghdr messages = {.msg_hdr = {.msg_iov = &byte, .msg_iovlen = 1}};
static struct pollfd watched;
static fd_set readers;

static char *words[] = {"true", NULL};
static pid_t spawned;
static FILE *pipe_of, *stream;
static char *line;
static int copied;
static struct stat status;
static struct stat64 status64;
static struct statx statusx;
static size_t room;
static int ends[2], further[2];
static struct flock range = {.l_type = F_WRLCK}, freed = {.l_type = F_UNLCK};
static sigset_t none, usual;
static int came, queue, set;
static mqd_t mail;
static struct { long type; char text[4]; } letter = {1, "abc"};
static struct sembuf less = {0, -1, 0}, more = {0, 1, 0};

static void come(int number)
{
    (void)number;
}

static void alarms(int every_us)
{
    struct itimerval every = {{0, every_us}, {0, every_us}};
    signal(SIGALRM, come);
    setitimer(ITIMER_REAL, &every, NULL);
}
#define ALARMED(result) ({ alarms(20000); long got = (result); alarms(0); got; })

static void *page(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void told(void)
{
    pthread_kill(pthread_self(), SIGUSR1);
}

static pid_t forked(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    return child;
}

/* A child by the bare system call. */
static pid_t child(void)
{
    pid_t made = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (made == 0)
        syscall(SYS_exit_group, 3);
    return made;
}

/* Each lock is held by a thread for a while, or what is waited for is told by one then. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static mtx_t plain, own_plain;
static cnd_t of_plain;
static volatile int holds;

static void *hold(void *what)
{
    struct timespec while_held = {0, 50000000};
    if (what == &mutex)
        pthread_mutex_trylock(&mutex);
    if (what == &lock)
        pthread_rwlock_trywrlock(&lock);
    if (what == &plain)
        mtx_trylock(&plain);
    __atomic_store_n(&holds, 1, __ATOMIC_RELEASE);
    syscall(SYS_nanosleep, &while_held, NULL);
    if (what == &mutex)
        pthread_mutex_unlock(&mutex);
    if (what == &lock)
        pthread_rwlock_unlock(&lock);
    if (what == &semaphore)
        sem_post(&semaphore);
    if (what == &condition)
        pthread_cond_signal(&condition);
    if (what == &plain)
        mtx_unlock(&plain);
    if (what == &of_plain)
        cnd_signal(&of_plain);
    if (what == &set)
        semop(set, &more, 1);
    if (what == &barrier)
        pthread_barrier_wait(&barrier);
    return NULL;
}

static pthread_t held(void *what)
{
    pthread_t thread;
    holds = 0;
    pthread_create(&thread, NULL, hold, what);
    while (!__atomic_load_n(&holds, __ATOMIC_ACQUIRE))
        ;
    return thread;
}

static struct timespec *later(void)
{
    static struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    return &until;
}
#define UNLOCKED(what, result) ({ long got = (result); what; got; })
"""

FILE, NET, SLEEP, PROCESS, SYNC, IDLE = "file", "net", "sleep", "process", "sync", "idle"

# How each is called, what it gives, and of which kind the call is.
CALLS = {
    "open": ("open(path, O_RDONLY)", None, FILE),
    "open64": ("open64(path, O_RDONLY)", None, FILE),
    "__open_2": ("__open_2(path, O_RDONLY)", None, FILE),
    "__open64_2": ("__open64_2(path, O_RDONLY)", None, FILE),
    "openat": ("openat(AT_FDCWD, path, O_RDONLY)", None, FILE),
    "openat64": ("openat64(AT_FDCWD, path, O_RDONLY)", None, FILE),
    "creat": ("creat(path, 0600)", None, FILE),
    "dup": ("copied = dup(file)", None, FILE),
    "dup2": ("dup2(file, copied) == copied", 1, FILE),
    "dup3": ("dup3(file, copied, O_CLOEXEC) == copied", 1, FILE),
    "close": ("close(copied)", 0, FILE),
    "stat": ("stat(path, &status)", 0, FILE),
    "stat64": ("stat64(path, &status64)", 0, FILE),
    "lstat": ("lstat(path, &status)", 0, FILE),
    "lstat64": ("lstat64(path, &status64)", 0, FILE),
    "fstatat": ("fstatat(AT_FDCWD, path, &status, 0)", 0, FILE),
    "fstatat64": ("fstatat64(AT_FDCWD, path, &status64, 0)", 0, FILE),
    "statx": ("statx(AT_FDCWD, path, 0, STATX_SIZE, &statusx)", 0, FILE),
    "access": ("access(path, R_OK)", 0, FILE),
    "opendir": ('LONG(opendir("."))', None, FILE),
    "mkdir": ('mkdir("a directory", 0700)', 0, FILE),
    "rename": ('rename("a directory", "another")', 0, FILE),
    "rmdir": ('rmdir("another")', 0, FILE),
    "unlink": ('unlink("missing")', -1, FILE),
    "unlinkat": ('unlinkat(AT_FDCWD, "missing", 0)', -1, FILE),
    "sendfile": ("sendfile(one, file, &(off_t){0}, 3)", 3, NET),
    "sendfile64": ("sendfile64(one, file, &(off64_t){0}, 2)", 2, NET),
    "copy_file_range": ("copy_file_range(file, &(off64_t){0}, file, &(off64_t){50}, 4, 0)", 4, FILE),
    "splice": ("splice(file, &(off64_t){0}, ends[1], NULL, 4, 0)", 4, FILE),
    "tee": ("tee(ends[0], further[1], 4, 0)", 4, PROCESS),
    "vmsplice": ("vmsplice(further[1], &part, 1, 0)", 4, PROCESS),
    "msync": ("msync(page(), 4096, MS_SYNC)", 0, FILE),
    "flock": ("flock(file, LOCK_EX)", 0, SYNC),
    "lockf": ("lockf(file, F_LOCK, 0)", 0, SYNC),
    "lockf64": ("lockf64(file, F_LOCK, 0)", 0, SYNC),
    "fcntl": ("fcntl(file, F_SETLKW, &range) + fcntl(file, F_GETFD) - FD_CLOEXEC", 0, SYNC),
    "fcntl64": ("fcntl64(file, F_SETLK, &freed), fcntl64(file, F_OFD_SETLKW, &range)", 0, SYNC),
    "socket": ("socket(AF_INET, SOCK_STREAM, 0)", None, NET),
    "write": ("write(file, memory, 16)", 16, FILE),
    "pwrite": ("pwrite(file, memory, 8, 0)", 8, FILE),
    "pwrite64": ("pwrite64(file, memory, 8, 0)", 8, FILE),
    "writev": ("writev(file, &part, 1)", 4, FILE),
    "pwritev": ("pwritev(file, &part, 1, 0)", 4, FILE),
    "pwritev64": ("pwritev64(file, &part, 1, 0)", 4, FILE),
    "lseek": ("lseek(file, 3, SEEK_SET)", 3, FILE),
    "lseek64": ("lseek64(file, 0, SEEK_SET)", 0, FILE),
    "read": ("read(file, memory, 2)", 2, FILE),
    "__read_chk": ("__read_chk(file, memory, 2, sizeof memory)", 2, FILE),
    "pread": ("pread(file, memory, 3, 0)", 3, FILE),
    "pread64": ("pread64(file, memory, 3, 0)", 3, FILE),
    "__pread64_chk": ("__pread64_chk(file, memory, 3, 0, sizeof memory)", 3, FILE),
    "readv": ("readv(file, &part, 1)", 4, FILE),
    "preadv": ("preadv(file, &part, 1, 0)", 4, FILE),
    "preadv64": ("preadv64(file, &part, 1, 0)", 4, FILE),
    "fsync": ("fsync(file)", 0, FILE),
    "fdatasync": ("fdatasync(file)", 0, FILE),
    "ftruncate": ("ftruncate(file, 5)", 0, FILE),
    "ftruncate64": ("ftruncate64(file, INT64_C(5) << 32)", 0, FILE),
    "connect": ("connect(fresh, (struct sockaddr *)&address, sizeof address)", 0, NET),
    "accept": ("accept(listener, NULL, NULL)", None, "idle"),
    "accept4": ("accept4(listener, NULL, NULL, SOCK_CLOEXEC)", None, "idle"),
    "send": ("send(one, memory, 5, 0)", 5, NET),
    "sendto": ("sendto(one, memory, 5, 0, NULL, 0)", 5, NET),
    "sendmsg": ("sendmsg(one, &message, 0)", 4, NET),
    "sendmmsg": ("sendmmsg(one, &messages, 1, 0)", 1, NET),
    "poll": ("poll(&watched, 1, 1000)", 1, NET),
    "__poll_chk": ("__poll_chk(&watched, 1, 1000, sizeof watched)", 1, NET),
    "ppoll": ("ppoll(&watched, 1, &instant, NULL)", 1, NET),
    "select": ("select(other + 1, &readers, NULL, NULL, &moment)", 1, NET),
    "pselect": ("pselect(other + 1, &readers, NULL, NULL, &instant, NULL)", 1, NET),
    "epoll_wait": ("epoll_wait(poller, &event, 1, 1000)", 1, NET),
    "epoll_pwait": ("epoll_pwait(poller, &event, 1, 1000, NULL)", 1, NET),
    "recv": ("recv(other, memory, 2, 0)", 2, NET),
    "__recv_chk": ("__recv_chk(other, memory, 2, sizeof memory, 0)", 2, NET),
    "recvfrom": ("recvfrom(other, memory, 2, 0, NULL, NULL)", 2, NET),
    "recvmsg": ("recvmsg(other, &message, 0)", 4, NET),
    "recvmmsg": ("recvmmsg(other, &messages, 1, 0, NULL)", 1, NET),
    "getaddrinfo": ('getaddrinfo("127.0.0.1", "80", NULL, &found)', 0, NET),
    "nanosleep": ("nanosleep(&instant, NULL)", 0, SLEEP),
    "clock_nanosleep": ("clock_nanosleep(CLOCK_MONOTONIC, 0, &instant, NULL)", 0, SLEEP),
    "usleep": ("usleep(1)", 0, SLEEP),
    "sleep": ("sleep(0)", 0, SLEEP),
    "thrd_sleep": ("thrd_sleep(&instant, NULL)", 0, SLEEP),
    "pause": ("ALARMED(pause())", -1, IDLE),
    "sigsuspend": ("ALARMED(sigsuspend(&none))", -1, IDLE),
    "sigwait": ("told(), sigwait(&usual, &came)", 0, IDLE),
    "sigwaitinfo": ("told(), sigwaitinfo(&usual, NULL) == SIGUSR1", 1, IDLE),
    "sigtimedwait": ("told(), sigtimedwait(&usual, NULL, &instant) == SIGUSR1", 1, IDLE),
    # What is sent is as long as the result says here.
    "msgsnd": ("msgsnd(queue, &letter, 4, 0) + 4", 4, PROCESS),
    "msgrcv": ("msgrcv(queue, &letter, 4, 0, 0)", 4, PROCESS),
    "mq_send": ("mq_send(mail, memory, 5, 0) + 5", 5, PROCESS),
    "mq_receive": ("mq_receive(mail, memory, 8, NULL)", 5, PROCESS),
    "mq_timedsend": ("mq_timedsend(mail, memory, 6, 0, later()) + 6", 6, PROCESS),
    "mq_timedreceive": ("mq_timedreceive(mail, memory, 8, NULL, later())", 6, PROCESS),
    "fork": ("forked()", None, PROCESS),
    "wait": ("wait(NULL)", None, PROCESS),
    "posix_spawn": ('posix_spawn(&spawned, "/bin/true", NULL, NULL, words, environ)', 0, PROCESS),
    "waitpid": ("waitpid(spawned, NULL, 0) == spawned", 1, PROCESS),
    "posix_spawnp": ('posix_spawnp(&spawned, "true", NULL, NULL, words, environ)', 0, PROCESS),
    "wait3": ("wait3(NULL, 0, NULL) == spawned", 1, PROCESS),
    "wait4": ("wait4(child(), NULL, 0, NULL)", None, PROCESS),
    "waitid": ("waitid(P_PID, child(), &(siginfo_t){0}, WEXITED)", 0, PROCESS),
    "system": ('system("exit 3")', 3 << 8, PROCESS),
    "popen": ('pipe_of = popen("exit 4", "r")', None, PROCESS),
    "pclose": ("pclose(pipe_of)", 4 << 8, PROCESS),
    "pthread_mutex_lock": ("held(&mutex), UNLOCKED(pthread_mutex_unlock(&mutex), pthread_mutex_lock(&mutex))", 0, SYNC),
    "pthread_mutex_timedlock": (
        "held(&mutex), UNLOCKED(pthread_mutex_unlock(&mutex), pthread_mutex_timedlock(&mutex, later()))",
        0,
        SYNC,
    ),
    "sem_wait": ("held(&semaphore), sem_wait(&semaphore)", 0, SYNC),
    "sem_timedwait": ("held(&semaphore), sem_timedwait(&semaphore, later())", 0, SYNC),
    "pthread_cond_wait": ("held(&condition), pthread_cond_wait(&condition, &own_mutex)", 0, SYNC),
    "pthread_cond_timedwait": ("held(&condition), pthread_cond_timedwait(&condition, &own_mutex, later())", 0, SYNC),
    "pthread_barrier_wait": ("held(&barrier), pthread_barrier_wait(&barrier) * 0", 0, SYNC),
    "pthread_join": ("pthread_join(held(NULL), NULL)", 0, SYNC),
    "pthread_timedjoin_np": ("pthread_timedjoin_np(held(NULL), NULL, later())", 0, SYNC),
    "pthread_clockjoin_np": ("pthread_clockjoin_np(held(NULL), NULL, CLOCK_REALTIME, later())", 0, SYNC),
    "pthread_mutex_clocklock": (
        "held(&mutex), UNLOCKED(pthread_mutex_unlock(&mutex),"
        " pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, later()))",
        0,
        SYNC,
    ),
    **{
        f"pthread_rwlock_{how}": (
            f"held(&lock), UNLOCKED(pthread_rwlock_unlock(&lock), pthread_rwlock_{how}(&lock{until}))",
            0,
            SYNC,
        )
        for how, until in (
            ("rdlock", ""),
            ("wrlock", ""),
            ("timedrdlock", ", later()"),
            ("timedwrlock", ", later()"),
            ("clockrdlock", ", CLOCK_REALTIME, later()"),
            ("clockwrlock", ", CLOCK_REALTIME, later()"),
        )
    },
    "sem_clockwait": ("held(&semaphore), sem_clockwait(&semaphore, CLOCK_REALTIME, later())", 0, SYNC),
    "semop": ("held(&set), semop(set, &less, 1)", 0, SYNC),
    "semtimedop": ("held(&set), semtimedop(set, &less, 1, &(struct timespec){20, 0})", 0, SYNC),
    "pthread_cond_clockwait": (
        "held(&condition), pthread_cond_clockwait(&condition, &own_mutex, CLOCK_REALTIME, later())",
        0,
        SYNC,
    ),
    "mtx_lock": ("held(&plain), UNLOCKED(mtx_unlock(&plain), mtx_lock(&plain))", 0, SYNC),
    "mtx_timedlock": ("held(&plain), UNLOCKED(mtx_unlock(&plain), mtx_timedlock(&plain, later()))", 0, SYNC),
    "cnd_wait": ("held(&of_plain), cnd_wait(&of_plain, &own_plain)", 0, SYNC),
    "cnd_timedwait": ("held(&of_plain), cnd_timedwait(&of_plain, &own_plain, later())", 0, SYNC),
    "thrd_join": ("thrd_join(held(NULL), NULL)", 0, SYNC),
    "fopen": ('stream = fopen(path, "w+")', None, FILE),
    "fwrite": ('fwrite("one\\ntwo\\n", 1, 8, stream)', 8, FILE),
    "fwrite_unlocked": ('write_unlocked("three\\n", 1, 6, stream)', 6, FILE),
    "fputs": ('fputs("four\\nfive\\nsix\\n", stream) >= 0', 1, FILE),
    "fflush": ("fflush(stream)", 0, FILE),
    "fseek": ("fseek(stream, 0, SEEK_SET)", 0, FILE),
    "fgets": ("fgets(memory, sizeof memory, stream) == memory", 1, FILE),
    "getline": ("get_line(&line, &room, stream)", 4, FILE),
    "getdelim": ("getdelim(&line, &room, 'r', stream)", 3, FILE),
    "__getdelim": ("__getdelim(&line, &room, '\\n', stream)", 3, FILE),
    "fread": ("fread(memory, 1, 2, stream)", 2, FILE),
    "fread_unlocked": ("read_unlocked(memory, 1, 3, stream)", 3, FILE),
    "__fread_chk": ("__fread_chk(memory, sizeof memory, 1, 4, stream)", 4, FILE),
    "fseeko": ("fseeko(stream, 1, SEEK_SET)", 0, FILE),
    "fseeko64": ("fseeko64(stream, 2, SEEK_SET)", 0, FILE),
    "fclose": ("fclose(stream)", 0, FILE),
    "fopen64": ('fopen64(path, "r")', None, FILE),
}

MOVING = {name for _, name, _, _, _, moves, *_ in shims.native_calls() if moves}

BODY = """
void all(long *results, const char *path, int file, int one, int other, int listener, int fresh, int port, int poller)
{
    memset(memory, 'x', sizeof memory);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    pthread_mutex_trylock(&own_mutex);
    mtx_init(&plain, mtx_timed);
    mtx_init(&own_plain, mtx_plain);
    mtx_trylock(&own_plain);
    cnd_init(&of_plain);
    if (pipe(ends) || pipe(further))
        return;
    sigaddset(&usual, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usual, NULL);
    queue = msgget(IPC_PRIVATE, 0600);
    set = semget(IPC_PRIVATE, 1, 0600);
    mail = mq_open("/interpose-list", O_CREAT | O_RDWR, 0600, &(struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 8});
    mq_unlink("/interpose-list");
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    watched = (struct pollfd){other, POLLIN, 0};
    FD_SET(other, &readers);
    %s
    msgctl(queue, IPC_RMID, NULL);
    semctl(set, 0, IPC_RMID);
}
"""

PROGRAM = """
import ctypes, json, os, select, socket
calls = ctypes.CDLL(os.path.abspath("all.so"))
one, other = socket.socketpair()
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
already = socket.create_connection(("127.0.0.1", port))
fresh = socket.socket()
poller = select.epoll()
poller.register(other)
with open("file", "wb") as file:
    file.write(bytes(100))
file = os.open("file", os.O_RDWR)
results = (ctypes.c_long * COUNT)()
ends = one.fileno(), other.fileno(), listener.fileno(), fresh.fileno()
calls.all(results, b"made", file, *ends, port, poller.fileno())
print(json.dumps(list(results)))
"""


def source():
    # Made before it is opened, and connected to twice before that is accepted.
    order = sorted(CALLS, key=lambda name: (name != "creat", name.startswith("accept")))
    lines = [f"results[{place}] = LONG({CALLS[name][0]});" for place, name in enumerate(order)]
    return order, HEAD + BODY % "\n    ".join(lines)


def kind_of(process: Process, number: int) -> str:
    return process.intrinsic(number).kind


def test_each_function_of_the_list_is_called_here():
    assert set(CALLS) == {name for library, name, *_ in shims.native_calls() if library == "libc"}


def test_each_is_recorded_once_and_does_what_it_does(traced, built, tmp_path):
    order, text = source()
    (tmp_path / "all.c").write_text(text)
    built("-Wno-all", "-U_FORTIFY_SOURCE", source=tmp_path / "all.c", name="all.so")

    done = traced(PROGRAM.replace("COUNT", str(len(order))), INTERPOSE="calls,native", INTERPOSE_FILES="buffered")

    assert done.returncode == 0, done.stderr
    given = dict(zip(order, json.loads(done.stdout), strict=True))
    assert {name: given[name] for name in CALLS if CALLS[name][1] is not None} == {
        name: result for name, (_, result, _) in CALLS.items() if result is not None
    }
    assert all(given[name] > 2 for name in CALLS if CALLS[name][1] is None)
    founder = done.experiment.founder
    own = [event for event in done.events() if next(iter(founder.frames(event.stack)), None)]
    own = [event for event in own if next(iter(founder.frames(event.stack))).file == "all.so"]
    names = [founder.intrinsic(event.intrinsic).name.removeprefix("libc.") for event in own]
    assert Counter(names) == Counter(dict.fromkeys(CALLS, 1))
    assert (tmp_path / "file").stat().st_size == 5 << 32
    for name, event in zip(names, own, strict=True):
        expected = given[name] if name in MOVING else 0
        assert (name, kind_of(founder, event.intrinsic), event.bytes) == (name, CALLS[name][2], expected)
