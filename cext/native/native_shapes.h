/* The signatures of native intrinsics, under the names that native/native_calls.h uses: the type of the result, the
   parameters, the arguments, the detail (a descriptor, or the address of a text), and the error number of a failed
   call, or 0. The third argument of `open` and similar functions may be missing: whatever is in its place is passed on,
   and never read. A length that is an offset has 64 bits, whatever its name. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "native/tls_library.h"

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
#define SHAPE_duplicate(X, name) X(name, int, (int number, int other), (number, other), number, FAILS_BELOW_ZERO)
#define SHAPE_duplicate_with(X, name) \
    X(name, int, (int number, int other, int flags), (number, other, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_status(X, name) \
    X(name, int, (const char *path, void *status), (path, status), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_status_within(X, name) \
    X(name, int, (int within, const char *path, void *status, int flags), (within, path, status, flags), (intptr_t)path, \
      FAILS_BELOW_ZERO)
#define SHAPE_status_asked(X, name) \
    X(name, int, (int within, const char *path, int flags, unsigned asked, void *status), \
      (within, path, flags, asked, status), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_directory(X, name) \
    X##_TOLD(name, DIR *, (const char *path), (path), (intptr_t)path, (result ? 0 : errno), 0)
#define SHAPE_named(X, name) X(name, int, (const char *path), (path), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_named_within(X, name) \
    X(name, int, (int within, const char *path, int flags), (within, path, flags), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_renamed(X, name) \
    X(name, int, (const char *path, const char *other), (path, other), (intptr_t)path, FAILS_BELOW_ZERO)
#define SHAPE_send_file(X, name) \
    X(name, ssize_t, (int number, int from, int64_t *offset, size_t bytes), (number, from, offset, bytes), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_copy(X, name) \
    X(name, ssize_t, (int number, int64_t *from, int to, int64_t *at, size_t bytes, unsigned flags), \
      (number, from, to, at, bytes, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_socket(X, name) \
    X(name, int, (int family, int type, int protocol), (family, type, protocol), -1, FAILS_BELOW_ZERO)
#define SHAPE_connect(X, name) \
    X(name, int, (int number, const struct sockaddr *address, socklen_t bytes), (number, address, bytes), \
      ((intptr_t)&(struct native_connection){number, address, bytes}), FAILS_BELOW_ZERO)
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

/* --- streams; X_TOLD says how many bytes were moved. A stream may have no descriptor: then there is none of that number. */

static inline int number_of_stream(FILE *stream)
{
    int saved = errno, number = fileno(stream);
    errno = saved;
    return number;
}

/* Without its lock, which another thread may hold for long. */
#define FAILS_WITH_ERROR(stream) (result < wanted && ferror_unlocked(stream) ? errno : 0)
#define SHAPE_stream_open(X, name) \
    X##_TOLD(name, FILE *, (const char *path, const char *mode), (path, mode), (intptr_t)path, (result ? 0 : errno), 0)
#define SHAPE_stream_end(X, name) X(name, int, (FILE *of), (of), number_of_stream(of), FAILS_BELOW_ZERO)
#define SHAPE_stream_read(X, name) \
    X##_TOLD(name, size_t, (void *memory, size_t each, size_t wanted, FILE *of), (memory, each, wanted, of), \
             number_of_stream(of), FAILS_WITH_ERROR(of), result * each)
#define SHAPE_stream_read_checked(X, name) \
    X##_TOLD(name, size_t, (void *memory, size_t room, size_t each, size_t wanted, FILE *of), \
             (memory, room, each, wanted, of), number_of_stream(of), FAILS_WITH_ERROR(of), result * each)
#define SHAPE_stream_write(X, name) \
    X##_TOLD(name, size_t, (const void *memory, size_t each, size_t wanted, FILE *of), (memory, each, wanted, of), \
             number_of_stream(of), FAILS_WITH_ERROR(of), result * each)
#define SHAPE_stream_line(X, name) \
    X##_TOLD(name, char *, (char *memory, int room, FILE *of), (memory, room, of), number_of_stream(of), \
             (!result && ferror_unlocked(of) ? errno : 0), 0)
#define SHAPE_stream_whole_line(X, name) \
    X(name, ssize_t, (char **line, size_t *room, FILE *of), (line, room, of), number_of_stream(of), \
      (result < 0 && ferror_unlocked(of) ? errno : 0))
#define SHAPE_stream_part(X, name) \
    X(name, ssize_t, (char **line, size_t *room, int end, FILE *of), (line, room, end, of), number_of_stream(of), \
      (result < 0 && ferror_unlocked(of) ? errno : 0))
#define SHAPE_stream_text(X, name) \
    X(name, int, (const char *text, FILE *of), (text, of), number_of_stream(of), FAILS_BELOW_ZERO)
#define SHAPE_stream(X, name) X(name, int, (FILE *of), (of), (of ? number_of_stream(of) : -1), FAILS_BELOW_ZERO)
#define SHAPE_stream_seek(X, name) \
    X(name, int, (FILE *of, long offset, int from), (of, offset, from), number_of_stream(of), FAILS_BELOW_ZERO)

/* --- processes; X_OF_TWO is a function that returns in the child too, where there is nothing to end */

#define SHAPE_fork(X, name) X##_OF_TWO(name, pid_t, (void), (), -1, FAILS_BELOW_ZERO)
#define SHAPE_spawn(X, name) \
    X(name, int, \
      (pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, \
       char *const *words, char *const *variables), \
      (child, path, actions, how, words, variables), (intptr_t)path, result)
#define SHAPE_shell(X, name) X(name, int, (const char *command), (command), (intptr_t)command, FAILS_BELOW_ZERO)
#define SHAPE_pipe_from(X, name) \
    X(name, FILE *, (const char *command, const char *mode), (command, mode), (intptr_t)command, (result ? 0 : errno))
#define SHAPE_pipe_end(X, name) X(name, int, (FILE *pipe), (pipe), -1, FAILS_BELOW_ZERO)
#define SHAPE_wait(X, name) X(name, pid_t, (int *status), (status), -1, FAILS_BELOW_ZERO)
#define SHAPE_wait_for(X, name) \
    X(name, pid_t, (pid_t child, int *status, int options), (child, status, options), -1, FAILS_BELOW_ZERO)
#define SHAPE_wait_three(X, name) \
    X(name, pid_t, (int *status, int options, struct rusage *used), (status, options, used), -1, FAILS_BELOW_ZERO)
#define SHAPE_wait_four(X, name) \
    X(name, pid_t, (pid_t child, int *status, int options, struct rusage *used), (child, status, options, used), -1, \
      FAILS_BELOW_ZERO)
#define SHAPE_wait_by_id(X, name) \
    X(name, int, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), -1, FAILS_BELOW_ZERO)

/* --- locks; X_UNLESS_FREE first tries to take it: what that gives is the result, unless it is EBUSY. That the time was over is
   no error. */

#define FAILS_WITH_RESULT (result == ETIMEDOUT ? 0 : result)
#define SHAPE_mutex(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_mutex_t *mutex), (mutex), -1, FAILS_WITH_RESULT, pthread_mutex_trylock(mutex))
#define SHAPE_mutex_until(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_mutex_t *mutex, const struct timespec *until), (mutex, until), -1, \
                    FAILS_WITH_RESULT, pthread_mutex_trylock(mutex))
#define SHAPE_read_lock(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock), (lock), -1, FAILS_WITH_RESULT, pthread_rwlock_tryrdlock(lock))
#define SHAPE_write_lock(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock), (lock), -1, FAILS_WITH_RESULT, pthread_rwlock_trywrlock(lock))
#define SHAPE_semaphore(X, name) \
    X##_UNLESS_FREE(name, int, (sem_t *semaphore), (semaphore), -1, FAILS_BELOW_ZERO, try_semaphore(semaphore))
#define SHAPE_semaphore_until(X, name) \
    X##_UNLESS_FREE(name, int, (sem_t *semaphore, const struct timespec *until), (semaphore, until), -1, \
                    (result < 0 && errno != ETIMEDOUT ? errno : 0), try_semaphore(semaphore))
#define SHAPE_condition(X, name) \
    X(name, int, (pthread_cond_t *condition, pthread_mutex_t *mutex), (condition, mutex), -1, FAILS_WITH_RESULT)
#define SHAPE_condition_until(X, name) \
    X(name, int, (pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until), \
      (condition, mutex, until), -1, FAILS_WITH_RESULT)
#define SHAPE_barrier(X, name) \
    X(name, int, (pthread_barrier_t *barrier), (barrier), -1, (result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result))
#define SHAPE_join(X, name) X(name, int, (pthread_t thread, void **result_of), (thread, result_of), -1, result)

/* As pthread_mutex_trylock(3) would say it; errno stays as it is. */
static inline int try_semaphore(sem_t *semaphore)
{
    int saved = errno, taken = sem_trywait(semaphore) == 0;
    errno = saved;
    return taken ? 0 : EBUSY;
}

/* --- encrypted connections; X_NAMED has the name of the error, and how many bytes were moved */

#define SHAPE_openssl_act(X, name) \
    X##_NAMED(name, int, (void *on), (on), number_of_openssl(on), failed_openssl(on, result), 0)
/* That the other end has not ended yet is no error. */
#define SHAPE_openssl_shutdown(X, name) \
    X##_NAMED(name, int, (void *on), (on), number_of_openssl(on), (result < 0 ? failed_openssl(on, result) : 0), 0)
#define SHAPE_openssl_move(X, name) \
    X##_NAMED(name, int, (void *on, void *memory, int bytes), (on, memory, bytes), number_of_openssl(on), \
              failed_openssl(on, result), result)
#define SHAPE_openssl_move_ex(X, name) \
    X##_NAMED(name, int, (void *on, void *memory, size_t bytes, size_t *moved), (on, memory, bytes, moved), \
              number_of_openssl(on), failed_openssl(on, result), (result > 0 ? *moved : 0))
#define SHAPE_gnutls_act(X, name) \
    X##_NAMED(name, int, (void *on), (on), number_of_gnutls(on), failed_gnutls(result), 0)
#define SHAPE_gnutls_flag(X, name) \
    X##_NAMED(name, int, (void *on, unsigned how), (on, how), number_of_gnutls(on), failed_gnutls(result), result)
#define SHAPE_gnutls_move(X, name) \
    X##_NAMED(name, ssize_t, (void *on, void *memory, size_t bytes), (on, memory, bytes), number_of_gnutls(on), \
              failed_gnutls(result), result)
