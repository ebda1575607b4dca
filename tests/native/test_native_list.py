"""Each function of the list, called once as a program would: recorded once, of the kind of what lies behind it."""

import json
import re
from collections import Counter

from interpose.experiments.model.process import Process
from interpose.timing import shims

# The program has a file that is open for reading and writing, both ends of a connection, and a listener with two
# clients. A compiler calls `__..._chk` if it knows how large the memory is.
HEAD = """
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LONG(what) ((long)(what))
extern int __open_2(const char *, int), __open64_2(const char *, int);
extern ssize_t __read_chk(int, void *, size_t, size_t), __pread64_chk(int, void *, size_t, off64_t, size_t),
    __recv_chk(int, void *, size_t, size_t, int);
extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);

static char memory[64];
static struct iovec part = {memory, 4};
static struct timespec instant = {0, 1000};
static struct timeval moment = {0, 1000};
static struct sockaddr_in address;
static struct addrinfo *found;
static struct epoll_event event;
static struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
static struct pollfd watched;
static fd_set readers;
"""

FILE, NET, SLEEP = "file", "net", "sleep"

# How each is called, what it gives, and of which kind the call is.
CALLS = {
    "open": ("open(path, O_RDONLY)", None, FILE),
    "open64": ("open64(path, O_RDONLY)", None, FILE),
    "__open_2": ("__open_2(path, O_RDONLY)", None, FILE),
    "__open64_2": ("__open64_2(path, O_RDONLY)", None, FILE),
    "openat": ("openat(AT_FDCWD, path, O_RDONLY)", None, FILE),
    "openat64": ("openat64(AT_FDCWD, path, O_RDONLY)", None, FILE),
    "creat": ("creat(path, 0600)", None, FILE),
    "close": ("close(dup(file))", 0, FILE),
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
    "accept": ("accept(listener, NULL, NULL)", None, NET),
    "accept4": ("accept4(listener, NULL, NULL, SOCK_CLOEXEC)", None, NET),
    "send": ("send(one, memory, 5, 0)", 5, NET),
    "sendto": ("sendto(one, memory, 5, 0, NULL, 0)", 5, NET),
    "sendmsg": ("sendmsg(one, &message, 0)", 4, NET),
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
    "getaddrinfo": ('getaddrinfo("127.0.0.1", "80", NULL, &found)', 0, NET),
    "nanosleep": ("nanosleep(&instant, NULL)", 0, SLEEP),
    "clock_nanosleep": ("clock_nanosleep(CLOCK_MONOTONIC, 0, &instant, NULL)", 0, SLEEP),
    "usleep": ("usleep(1)", 0, SLEEP),
}

BODY = """
void all(long *results, const char *path, int file, int one, int other, int listener, int fresh, int port, int poller)
{
    memset(memory, 'x', sizeof memory);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    watched = (struct pollfd){other, POLLIN, 0};
    FD_SET(other, &readers);
    %s
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
    assert set(CALLS) == {name for name, *_ in shims.native_calls()}


def test_each_is_recorded_once_and_does_what_it_does(traced, built, tmp_path):
    order, text = source()
    (tmp_path / "all.c").write_text(text)
    built("-Wno-all", "-U_FORTIFY_SOURCE", source=tmp_path / "all.c", name="all.so")

    done = traced(PROGRAM.replace("COUNT", str(len(order))), INTERPOSE="calls,native")

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
        expected = given[name] if re.search(r"read|write|recv|send", name) else 0
        assert (name, kind_of(founder, event.intrinsic), event.bytes) == (name, CALLS[name][2], expected)
