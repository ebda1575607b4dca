/* The signatures of native intrinsics, under the names that native/native_calls.h uses: the type of the result, the
   parameters, the arguments, the detail (a descriptor, or the address of a text), and the error number of a failed
   call, or 0. The third argument of `open` and similar functions may be missing: whatever is in its place is passed on,
   and never read. A length that is an offset has 64 bits, whatever its name. */
#pragma once

#include <dirent.h>
#include <errno.h>
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
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "native/native_errors.h"
#include "native/tls_library.h"

#define FAILS_BELOW_ZERO (result < 0 ? errno : 0)
/* That the time was over is no error. */
#define FAILS_UNLESS_LATE (result < 0 && errno != ETIMEDOUT ? errno : 0)

/* Of the first `count` messages; the kernel has written how long each is. */
static inline int64_t bytes_of_messages(const struct mmsghdr *messages, int count)
{
    int64_t bytes = 0;
    for (int each = 0; each < count; each++)
        bytes += messages[each].msg_len;
    return bytes;
}

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
    X(name, int, (const char *path, const char *other), (path, other), (intptr_t)other, FAILS_BELOW_ZERO)
#define SHAPE_send_file(X, name) \
    X(name, ssize_t, (int number, int from, int64_t *offset, size_t bytes), (number, from, offset, bytes), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_splice(X, name) \
    X(name, ssize_t, (int number, int64_t *from, int to, int64_t *at, size_t bytes, unsigned flags), \
      (number, from, to, at, bytes, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_tee(X, name) \
    X(name, ssize_t, (int number, int to, size_t bytes, unsigned flags), (number, to, bytes, flags), number, \
      FAILS_BELOW_ZERO)
#define SHAPE_splice_memory(X, name) \
    X(name, ssize_t, (int number, const struct iovec *parts, size_t count, unsigned flags), \
      (number, parts, count, flags), number, FAILS_BELOW_ZERO)
#define SHAPE_memory_sync(X, name) \
    X(name, int, (void *memory, size_t bytes, int flags), (memory, bytes, flags), -1, FAILS_BELOW_ZERO)
#define SHAPE_file_lock(X, name) X(name, int, (int number, int how), (number, how), number, FAILS_BELOW_ZERO)
#define SHAPE_part_lock(X, name) \
    X(name, int, (int number, int how, int64_t bytes), (number, how, bytes), number, FAILS_BELOW_ZERO)
#ifndef F_OFD_SETLKW
#define F_OFD_SETLKW 38
#endif
/* X_IF passes all other calls through. Of fcntl's commands only these wait; a third argument may be missing, as that of
   `open`, and is a number or an address. */
#define SHAPE_waiting_lock(X, name) \
    X##_IF(name, int, (int number, int command, void *argument), (number, command, argument), number, FAILS_BELOW_ZERO, \
           command == F_SETLKW || command == F_OFD_SETLKW)
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
#define SHAPE_messages(X, name) \
    X##_TOLD(name, int, (int number, struct mmsghdr *messages, unsigned count, int flags), \
             (number, messages, count, flags), number, FAILS_BELOW_ZERO, bytes_of_messages(messages, result))
#define SHAPE_messages_until(X, name) \
    X##_TOLD(name, int, \
             (int number, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout), \
             (number, messages, count, flags, timeout), number, FAILS_BELOW_ZERO, bytes_of_messages(messages, result))
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

#define SHAPE_pause_of_seconds(X, name) X(name, unsigned, (unsigned wanted_s), (wanted_s), -1, 0)
#define SHAPE_signal_pause(X, name) X(name, int, (void), (), -1, FAILS_BELOW_ZERO)
#define SHAPE_signal_masked(X, name) X(name, int, (const sigset_t *mask), (mask), -1, FAILS_BELOW_ZERO)
#define SHAPE_signal_wait(X, name) X(name, int, (const sigset_t *wanted, int *came), (wanted, came), -1, result)
#define SHAPE_signal_told(X, name) \
    X(name, int, (const sigset_t *wanted, siginfo_t *info), (wanted, info), -1, FAILS_BELOW_ZERO)
#define SHAPE_signal_until(X, name) \
    X(name, int, (const sigset_t *wanted, siginfo_t *info, const struct timespec *timeout), (wanted, info, timeout), -1, \
      FAILS_BELOW_ZERO)

/* --- message queues, of System V and of POSIX; a call that sends gives 0 */

#define SENT (result < 0 ? 0 : bytes)
#define SHAPE_queue_put(X, name) \
    X##_TOLD(name, int, (int queue, const void *message, size_t bytes, int flags), (queue, message, bytes, flags), -1, \
             FAILS_BELOW_ZERO, SENT)
#define SHAPE_queue_take(X, name) \
    X(name, ssize_t, (int queue, void *message, size_t room, long type, int flags), (queue, message, room, type, flags), \
      -1, FAILS_BELOW_ZERO)
#define SHAPE_mail_put(X, name) \
    X##_TOLD(name, int, (mqd_t queue, const char *message, size_t bytes, unsigned priority), \
             (queue, message, bytes, priority), -1, FAILS_BELOW_ZERO, SENT)
#define SHAPE_mail_put_until(X, name) \
    X##_TOLD(name, int, \
             (mqd_t queue, const char *message, size_t bytes, unsigned priority, const struct timespec *until), \
             (queue, message, bytes, priority, until), -1, FAILS_UNLESS_LATE, SENT)
#define SHAPE_mail_take(X, name) \
    X(name, ssize_t, (mqd_t queue, char *message, size_t room, unsigned *priority), (queue, message, room, priority), -1, \
      FAILS_BELOW_ZERO)
#define SHAPE_mail_take_until(X, name) \
    X(name, ssize_t, (mqd_t queue, char *message, size_t room, unsigned *priority, const struct timespec *until), \
      (queue, message, room, priority, until), -1, FAILS_UNLESS_LATE)

/* --- streams; X_TOLD says how many bytes were moved, or which descriptor was opened. A stream may have no descriptor: then
   there is none of that number. */

static inline int number_of_stream(FILE *stream)
{
    int saved = errno, number = fileno(stream);
    errno = saved;
    return number;
}

static inline int number_of_opened(FILE *stream)
{
    return stream ? number_of_stream(stream) : -1;
}

/* Without its lock, which another thread may hold for long. */
#define FAILS_WITH_ERROR(stream) (result < wanted && ferror_unlocked(stream) ? errno : 0)
#define SHAPE_stream_open(X, name) \
    X##_TOLD(name, FILE *, (const char *path, const char *mode), (path, mode), (intptr_t)path, (result ? 0 : errno), \
             number_of_opened(result))
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
    X##_TOLD(name, FILE *, (const char *command, const char *mode), (command, mode), (intptr_t)command, \
             (result ? 0 : errno), number_of_opened(result))
#define SHAPE_pipe_end(X, name) X(name, int, (FILE *pipe), (pipe), number_of_stream(pipe), FAILS_BELOW_ZERO)
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
#define SHAPE_mutex_by_clock(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until), \
                    (mutex, clock, until), -1, FAILS_WITH_RESULT, \
                    is_clock_of_locks(clock) ? pthread_mutex_trylock(mutex) : EBUSY)
#define SHAPE_read_lock_until(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock, const struct timespec *until), (lock, until), -1, \
                    FAILS_WITH_RESULT, is_time(until) ? pthread_rwlock_tryrdlock(lock) : EBUSY)
#define SHAPE_write_lock_until(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock, const struct timespec *until), (lock, until), -1, \
                    FAILS_WITH_RESULT, is_time(until) ? pthread_rwlock_trywrlock(lock) : EBUSY)
#define SHAPE_read_lock_by_clock(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until), \
                    (lock, clock, until), -1, FAILS_WITH_RESULT, \
                    is_clock_of_locks(clock) && is_time(until) ? pthread_rwlock_tryrdlock(lock) : EBUSY)
#define SHAPE_write_lock_by_clock(X, name) \
    X##_UNLESS_FREE(name, int, (pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until), \
                    (lock, clock, until), -1, FAILS_WITH_RESULT, \
                    is_clock_of_locks(clock) && is_time(until) ? pthread_rwlock_trywrlock(lock) : EBUSY)
#define SHAPE_semaphore(X, name) \
    X##_UNLESS_FREE(name, int, (sem_t *semaphore), (semaphore), -1, FAILS_BELOW_ZERO, try_semaphore(semaphore))
#define SHAPE_semaphore_until(X, name) \
    X##_UNLESS_FREE(name, int, (sem_t *semaphore, const struct timespec *until), (semaphore, until), -1, \
                    FAILS_UNLESS_LATE, is_time(until) ? try_semaphore(semaphore) : EBUSY)
#define SHAPE_semaphore_by_clock(X, name) \
    X##_UNLESS_FREE(name, int, (sem_t *semaphore, clockid_t clock, const struct timespec *until), \
                    (semaphore, clock, until), -1, FAILS_UNLESS_LATE, \
                    is_clock_of_locks(clock) && is_time(until) ? try_semaphore(semaphore) : EBUSY)
#define SHAPE_semaphores(X, name) \
    X(name, int, (int set, struct sembuf *acts, size_t count), (set, acts, count), -1, FAILS_BELOW_ZERO)
#define SHAPE_semaphores_until(X, name) \
    X(name, int, (int set, struct sembuf *acts, size_t count, const struct timespec *timeout), \
      (set, acts, count, timeout), -1, FAILS_BELOW_ZERO)
#define SHAPE_condition(X, name) \
    X(name, int, (pthread_cond_t *condition, pthread_mutex_t *mutex), (condition, mutex), -1, FAILS_WITH_RESULT)
#define SHAPE_condition_until(X, name) \
    X(name, int, (pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until), \
      (condition, mutex, until), -1, FAILS_WITH_RESULT)
#define SHAPE_condition_by_clock(X, name) \
    X(name, int, (pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until), \
      (condition, mutex, clock, until), -1, FAILS_WITH_RESULT)
#define SHAPE_barrier(X, name) \
    X(name, int, (pthread_barrier_t *barrier), (barrier), -1, (result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result))
#define SHAPE_join(X, name) X(name, int, (pthread_t thread, void **result_of), (thread, result_of), -1, result)
#define SHAPE_join_until(X, name) \
    X(name, int, (pthread_t thread, void **result_of, const struct timespec *until), (thread, result_of, until), -1, \
      FAILS_WITH_RESULT)
#define SHAPE_join_by_clock(X, name) \
    X(name, int, (pthread_t thread, void **result_of, clockid_t clock, const struct timespec *until), \
      (thread, result_of, clock, until), -1, FAILS_WITH_RESULT)

/* What the real function refuses also where the lock is free: it must say so itself. */
static inline bool is_clock_of_locks(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static inline bool is_time(const struct timespec *until)
{
    return until && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

/* As pthread_mutex_trylock(3) would say it; errno stays as it is. */
static inline int try_semaphore(sem_t *semaphore)
{
    int saved = errno, taken = sem_trywait(semaphore) == 0;
    errno = saved;
    return taken ? 0 : EBUSY;
}

/* --- threads of C11, declared as older C libraries can, which lack threads.h: a mutex is one of POSIX */

#define SHAPE_thread_mutex(X, name) \
    X##_UNLESS_FREE_NAMED(name, int, (pthread_mutex_t *mutex), (mutex), -1, failed_thread(result), \
                          try_thread_mutex(mutex))
#define SHAPE_thread_mutex_until(X, name) \
    X##_UNLESS_FREE_NAMED(name, int, (pthread_mutex_t *mutex, const struct timespec *until), (mutex, until), -1, \
                          failed_thread(result), try_thread_mutex(mutex))
#define SHAPE_thread_condition(X, name) \
    X##_NAMED(name, int, (void *condition, void *mutex), (condition, mutex), -1, failed_thread(result), 0)
#define SHAPE_thread_condition_until(X, name) \
    X##_NAMED(name, int, (void *condition, void *mutex, const struct timespec *until), (condition, mutex, until), -1, \
              failed_thread(result), 0)
#define SHAPE_thread_join(X, name) \
    X##_NAMED(name, int, (pthread_t thread, int *result_of), (thread, result_of), -1, failed_thread(result), 0)
/* -1: a signal arrived. */
#define SHAPE_thread_pause(X, name) \
    X##_NAMED(name, int, (const struct timespec *wanted, struct timespec *left), (wanted, left), -1, \
              failed_thread(result < -1 ? THREAD_ERROR : 0), 0)

/* Any other result is the real function's to say. */
static inline int try_thread_mutex(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == 0 ? 0 : EBUSY;
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
