/* The signatures of native intrinsics, each under the name that native/native_calls.h gives it: the type of the result, the
   parameters, the arguments, what the call is about (a descriptor, or the address of a text), and the number of the error
   that it failed with, or 0.

   Of `open` and its like the third argument may not have been given: what stands in its place is passed on, and is looked at by
   nobody. A length in an offset is of 64 bits, whatever it is called. */
#pragma once

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define FAILS_BELOW_ZERO (result < 0 ? errno : 0)

#define SHAPE_open(X, name) \
    X(name, int, (const char *path, int flags, mode_t mode), (path, flags, mode), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_open_checked(X, name) \
    X(name, int, (const char *path, int flags), (path, flags), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_openat(X, name) \
    X(name, int, (int within, const char *path, int flags, mode_t mode), (within, path, flags, mode), (intptr_t)path, \
      FAILS_BELOW_ZERO)
#define SHAPE_create(X, name) \
    X(name, int, (const char *path, mode_t mode), (path, mode), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_descriptor(X, name) X(name, int, (int number), (number), number, FAILS_BELOW_ZERO)
#define SHAPE_transfer(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes), (number, memory, bytes), number, FAILS_BELOW_ZERO)
#define SHAPE_read_checked(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, size_t room), (number, memory, bytes, room), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_transfer_at(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, int64_t offset), (number, memory, bytes, offset), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_at_checked(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, int64_t offset, size_t room), \
      (number, memory, bytes, offset, room), number, FAILS_BELOW_ZERO)
#define SHAPE_vector(X, name) \
    X(name, ssize_t, (int number, const struct iovec *parts, int count), (number, parts, count), number, FAILS_BELOW_ZERO)
#define SHAPE_vector_at(X, name) \
    X(name, ssize_t, (int number, const struct iovec *parts, int count, int64_t offset), (number, parts, count, offset), \
      number, FAILS_BELOW_ZERO)
#define SHAPE_seek(X, name) \
    X(name, int64_t, (int number, int64_t offset, int from), (number, offset, from), number, FAILS_BELOW_ZERO)
#define SHAPE_resize(X, name) X(name, int, (int number, int64_t bytes), (number, bytes), number, FAILS_BELOW_ZERO)
#define SHAPE_connect(X, name) \
    X(name, int, (int number, const struct sockaddr *address, socklen_t bytes), (number, address, bytes), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_accept(X, name) \
    X(name, int, (int number, struct sockaddr *address, socklen_t *bytes), (number, address, bytes), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_accept4(X, name) \
    X(name, int, (int number, struct sockaddr *address, socklen_t *bytes, int flags), (number, address, bytes, flags), \
      number, FAILS_BELOW_ZERO)
#define SHAPE_exchange(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, int flags), (number, memory, bytes, flags), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_recv_checked(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, size_t room, int flags), \
      (number, memory, bytes, room, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_send_to(X, name) \
    X(name, ssize_t, \
      (int number, const void *memory, size_t bytes, int flags, const struct sockaddr *address, socklen_t length), \
      (number, memory, bytes, flags, address, length), number, FAILS_BELOW_ZERO)
#define SHAPE_receive_from(X, name) \
    X(name, ssize_t, (int number, void *memory, size_t bytes, int flags, struct sockaddr *address, socklen_t *length), \
      (number, memory, bytes, flags, address, length), number, FAILS_BELOW_ZERO)
#define SHAPE_message(X, name) \
    X(name, ssize_t, (int number, void *message, int flags), (number, message, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_look_up(X, name) \
    X(name, int, (const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found), \
      (host, service, hints, found), (intptr_t)host, result)
#define SHAPE_poll(X, name) \
    X(name, int, (struct pollfd *watched, nfds_t count, int timeout_ms), (watched, count, timeout_ms), -1, \
      FAILS_BELOW_ZERO)
#define SHAPE_poll_checked(X, name) \
    X(name, int, (struct pollfd *watched, nfds_t count, int timeout_ms, size_t room), (watched, count, timeout_ms, room), \
      -1, FAILS_BELOW_ZERO)
#define SHAPE_ppoll(X, name) \
    X(name, int, (struct pollfd *watched, nfds_t count, const struct timespec *timeout, const sigset_t *mask), \
      (watched, count, timeout, mask), -1, FAILS_BELOW_ZERO)
#define SHAPE_select(X, name) \
    X(name, int, (int end, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout), \
      (end, readers, writers, others, timeout), -1, FAILS_BELOW_ZERO)
#define SHAPE_pselect(X, name) \
    X(name, int, \
      (int end, fd_set *readers, fd_set *writers, fd_set *others, const struct timespec *timeout, const sigset_t *mask), \
      (end, readers, writers, others, timeout, mask), -1, FAILS_BELOW_ZERO)
#define SHAPE_epoll(X, name) \
    X(name, int, (int number, struct epoll_event *found, int room, int timeout_ms), (number, found, room, timeout_ms), -1, \
      FAILS_BELOW_ZERO)
#define SHAPE_epoll_masked(X, name) \
    X(name, int, (int number, struct epoll_event *found, int room, int timeout_ms, const sigset_t *mask), \
      (number, found, room, timeout_ms, mask), -1, FAILS_BELOW_ZERO)
#define SHAPE_pause(X, name) \
    X(name, int, (const struct timespec *wanted, struct timespec *left), (wanted, left), -1, FAILS_BELOW_ZERO)
#define SHAPE_pause_until(X, name) \
    X(name, int, (clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left), \
      (clock, flags, wanted, left), -1, result)
#define SHAPE_micropause(X, name) X(name, int, (useconds_t us), (us), -1, FAILS_BELOW_ZERO)
