/* The native intrinsics: functions of the C library, and of libraries of encrypted connections, that are timed when extension
   modules and C libraries call them.

   This list is the only description. From it are made the wrappers (native/native_wrappers.c), the declarations in Python
   (interpose/instrumentation/native.py) with their entries in the map and in the documentation, and the test of what each
   records. A new function is one line here; a new shape is one line in native/native_shapes.h.

   The columns: the name; the shape; the kinds; how one of several is chosen, what is kept of the call, what its result
   means, and what it changes, in the words of hooks/slot.h. A free lock is taken without a trace, unless all are requested;
   waits below the threshold are counted.

   A wait for a signal is idle, as in Python: nobody knows what it waits for. Message queues are between processes.

   Streams of the C library (fopen and so on) are recorded if the buffers above files are (INTERPOSE_FILES=buffered); the calls
   of the system that they make come from within the C library, and are not seen.

   A call of an encrypted connection holds those of its socket. Within another such call it is part of that.

   Missing are vfork, whose child continues in its caller's frame, and exec, which a child of vfork calls: neither can be
   between a beginning and an end. */
#pragma once

#include <stdbool.h>

#define ANY_DESCRIPTOR "file screen net process idle", "descriptor"
#define A_FILE "file", ""
#define A_SOCKET "net idle", ""
#define A_WAIT "net idle", ""
#define A_PAUSE "sleep idle process", ""
#define A_CHILD "process idle", ""
#define A_MESSAGE "process idle", ""
#define A_SIGNAL "idle", ""
#define A_LOCK "sync idle process", ""

#define A_TLS "net idle", "layer"

#define NATIVE_CALLS(X) DIRECT_CALLS(X) OPENSSL_CALLS(X) GNUTLS_CALLS(X) STREAM_CALLS(X)

#define DIRECT_CALLS(X) \
    X(open,          open,         A_FILE,         "path",       "",       "open") \
    X(open64,        open,         A_FILE,         "path",       "",       "open") \
    X(__open_2,      open_checked, A_FILE,         "path",       "",       "open") \
    X(__open64_2,    open_checked, A_FILE,         "path",       "",       "open") \
    X(openat,        openat,       A_FILE,         "path",       "",       "open") \
    X(openat64,      openat,       A_FILE,         "path",       "",       "open") \
    X(creat,         create,       A_FILE,         "path",       "",       "open") \
    X(close,         descriptor,   ANY_DESCRIPTOR, "descriptor", "",       "forget") \
    X(read,          transfer,     ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(__read_chk,    read_checked, ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(write,         transfer,     ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pread,         transfer_at,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pread64,       transfer_at,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(__pread64_chk, at_checked,   ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pwrite,        transfer_at,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pwrite64,      transfer_at,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(readv,         vector,       ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(writev,        vector,       ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(preadv,        vector_at,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(preadv64,      vector_at,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pwritev,       vector_at,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(pwritev64,     vector_at,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(lseek,         seek,         ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(lseek64,       seek,         ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(dup,           descriptor,   ANY_DESCRIPTOR, "descriptor", "",       "open") \
    X(dup2,          duplicate,    ANY_DESCRIPTOR, "descriptor", "",       "open") \
    X(dup3,          duplicate_with, ANY_DESCRIPTOR, "descriptor", "",     "open") \
    X(stat,          status,       A_FILE,         "path",       "",       "") \
    X(stat64,        status,       A_FILE,         "path",       "",       "") \
    X(lstat,         status,       A_FILE,         "path",       "",       "") \
    X(lstat64,       status,       A_FILE,         "path",       "",       "") \
    X(fstatat,       status_within, A_FILE,        "path",       "",       "") \
    X(fstatat64,     status_within, A_FILE,        "path",       "",       "") \
    X(statx,         status_asked, A_FILE,         "path",       "",       "") \
    X(access,        create,       A_FILE,         "path",       "",       "") \
    X(opendir,       directory,    A_FILE,         "path",       "",       "") \
    X(mkdir,         create,       A_FILE,         "path",       "",       "") \
    X(rmdir,         named,        A_FILE,         "path",       "",       "") \
    X(rename,        renamed,      A_FILE,         "destination", "",      "") \
    X(unlink,        named,        A_FILE,         "path",       "",       "") \
    X(unlinkat,      named_within, A_FILE,         "path",       "",       "") \
    X(sendfile,      send_file,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(sendfile64,    send_file,    ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(copy_file_range, splice,     A_FILE,         "descriptor", "result", "") \
    X(splice,        splice,       ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(tee,           tee,          ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(vmsplice,      splice_memory, ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fsync,         descriptor,   A_FILE,         "descriptor", "",       "") \
    X(fdatasync,     descriptor,   A_FILE,         "descriptor", "",       "") \
    X(msync,         memory_sync,  A_FILE,         "",           "",       "") \
    X(flock,         file_lock,    A_LOCK,         "descriptor", "",       "") \
    X(lockf,         part_lock,    A_LOCK,         "descriptor", "",       "") \
    X(lockf64,       part_lock,    A_LOCK,         "descriptor", "",       "") \
    X(fcntl,         waiting_lock, A_LOCK,         "descriptor", "",       "") \
    X(fcntl64,       waiting_lock, A_LOCK,         "descriptor", "",       "") \
    X(ftruncate,     resize,       A_FILE,         "descriptor", "",       "") \
    X(ftruncate64,   resize,       A_FILE,         "descriptor", "",       "") \
    X(socket,        socket,       A_SOCKET,       "",           "",       "open") \
    X(connect,       connect,      A_SOCKET,       "address",    "",       "connect") \
    X(accept,        accept,       A_WAIT,         "descriptor", "",       "accept") \
    X(accept4,       accept4,      A_WAIT,         "descriptor", "",       "accept") \
    X(send,          exchange,     A_SOCKET,       "descriptor", "result", "") \
    X(sendto,        send_to,      A_SOCKET,       "descriptor", "result", "") \
    X(sendmsg,       message,      A_SOCKET,       "descriptor", "result", "") \
    X(sendmmsg,      messages,     A_SOCKET,       "descriptor", "result", "") \
    X(recv,          exchange,     A_SOCKET,       "descriptor", "result", "") \
    X(__recv_chk,    recv_checked, A_SOCKET,       "descriptor", "result", "") \
    X(recvfrom,      receive_from, A_SOCKET,       "descriptor", "result", "") \
    X(recvmsg,       message,      A_SOCKET,       "descriptor", "result", "") \
    X(recvmmsg,      messages_until, A_SOCKET,     "descriptor", "result", "") \
    X(getaddrinfo,   look_up,      A_SOCKET,       "host",       "",       "") \
    X(poll,          poll,         A_WAIT,         "",           "",       "") \
    X(__poll_chk,    poll_checked, A_WAIT,         "",           "",       "") \
    X(ppoll,         ppoll,        A_WAIT,         "",           "",       "") \
    X(select,        select,       A_WAIT,         "",           "",       "") \
    X(pselect,       pselect,      A_WAIT,         "",           "",       "") \
    X(epoll_wait,    epoll,        A_WAIT,         "",           "",       "") \
    X(epoll_pwait,   epoll_masked, A_WAIT,         "",           "",       "") \
    X(nanosleep,     pause,        A_PAUSE,        "",           "",       "") \
    X(clock_nanosleep, pause_until, A_PAUSE,       "",           "",       "") \
    X(usleep,        micropause,   A_PAUSE,        "",           "",       "") \
    X(sleep,         pause_of_seconds, A_PAUSE,    "",           "",       "") \
    X(thrd_sleep,    thread_pause, A_PAUSE,        "",           "",       "") \
    X(pause,         signal_pause, A_SIGNAL,       "",           "",       "") \
    X(sigsuspend,    signal_masked, A_SIGNAL,      "",           "",       "") \
    X(sigwait,       signal_wait,  A_SIGNAL,       "",           "",       "") \
    X(sigwaitinfo,   signal_told,  A_SIGNAL,       "",           "",       "") \
    X(sigtimedwait,  signal_until, A_SIGNAL,       "",           "",       "") \
    X(msgsnd,        queue_put,    A_MESSAGE,      "",           "result", "") \
    X(msgrcv,        queue_take,   A_MESSAGE,      "",           "result", "") \
    X(mq_send,       mail_put,     A_MESSAGE,      "",           "result", "") \
    X(mq_timedsend,  mail_put_until, A_MESSAGE,    "",           "result", "") \
    X(mq_receive,    mail_take,    A_MESSAGE,      "",           "result", "") \
    X(mq_timedreceive, mail_take_until, A_MESSAGE, "",           "result", "") \
    X(fork,          fork,         A_CHILD,        "",           "",       "") \
    X(posix_spawn,   spawn,        A_CHILD,        "program",    "",       "") \
    X(posix_spawnp,  spawn,        A_CHILD,        "program",    "",       "") \
    X(system,        shell,        A_CHILD,        "command",    "",       "") \
    X(popen,         pipe_from,    A_CHILD,        "command",    "",       "open") \
    X(pclose,        pipe_end,     A_CHILD,        "",           "",       "forget") \
    X(wait,          wait,         A_CHILD,        "",           "",       "") \
    X(waitpid,       wait_for,     A_CHILD,        "",           "",       "") \
    X(wait3,         wait_three,   A_CHILD,        "",           "",       "") \
    X(wait4,         wait_four,    A_CHILD,        "",           "",       "") \
    X(waitid,        wait_by_id,   A_CHILD,        "",           "",       "") \
    X(pthread_mutex_lock,      mutex,       A_LOCK, "",          "",       "") \
    X(pthread_mutex_timedlock, mutex_until, A_LOCK, "",          "",       "") \
    X(pthread_mutex_clocklock, mutex_by_clock, A_LOCK, "",       "",       "") \
    X(pthread_rwlock_rdlock,   read_lock,   A_LOCK, "",          "",       "") \
    X(pthread_rwlock_wrlock,   write_lock,  A_LOCK, "",          "",       "") \
    X(pthread_rwlock_timedrdlock, read_lock_until, A_LOCK, "",   "",       "") \
    X(pthread_rwlock_timedwrlock, write_lock_until, A_LOCK, "",  "",       "") \
    X(pthread_rwlock_clockrdlock, read_lock_by_clock, A_LOCK, "", "",      "") \
    X(pthread_rwlock_clockwrlock, write_lock_by_clock, A_LOCK, "", "",     "") \
    X(sem_wait,                semaphore,   A_LOCK, "",          "",       "") \
    X(sem_timedwait,           semaphore_until, A_LOCK, "",      "",       "") \
    X(sem_clockwait,           semaphore_by_clock, A_LOCK, "",   "",       "") \
    X(semop,                   semaphores,  A_LOCK, "",          "",       "") \
    X(semtimedop,              semaphores_until, A_LOCK, "",     "",       "") \
    X(pthread_cond_wait,       condition,   A_LOCK, "",          "",       "") \
    X(pthread_cond_timedwait,  condition_until, A_LOCK, "",      "",       "") \
    X(pthread_cond_clockwait,  condition_by_clock, A_LOCK, "",   "",       "") \
    X(pthread_barrier_wait,    barrier,     A_LOCK, "",          "",       "") \
    X(pthread_join,            join,        A_LOCK, "",          "",       "") \
    X(pthread_timedjoin_np,    join_until,  A_LOCK, "",          "",       "") \
    X(pthread_clockjoin_np,    join_by_clock, A_LOCK, "",        "",       "") \
    X(mtx_lock,                thread_mutex, A_LOCK, "",         "",       "") \
    X(mtx_timedlock,           thread_mutex_until, A_LOCK, "",   "",       "") \
    X(cnd_wait,                thread_condition, A_LOCK, "",     "",       "") \
    X(cnd_timedwait,           thread_condition_until, A_LOCK, "", "",     "") \
    X(thrd_join,               thread_join, A_LOCK, "",          "",       "")

#define OPENSSL_CALLS(X) \
    X(SSL_connect,      openssl_act,      A_TLS, "descriptor", "",       "") \
    X(SSL_accept,       openssl_act,      A_TLS, "descriptor", "",       "") \
    X(SSL_do_handshake, openssl_act,      A_TLS, "descriptor", "",       "") \
    X(SSL_shutdown,     openssl_shutdown, A_TLS, "descriptor", "",       "") \
    X(SSL_read,         openssl_move,     A_TLS, "descriptor", "result", "") \
    X(SSL_read_ex,      openssl_move_ex,  A_TLS, "descriptor", "result", "") \
    X(SSL_write,        openssl_move,     A_TLS, "descriptor", "result", "") \
    X(SSL_write_ex,     openssl_move_ex,  A_TLS, "descriptor", "result", "")

#define GNUTLS_CALLS(X) \
    X(gnutls_handshake,     gnutls_act,  A_TLS, "descriptor", "",       "") \
    X(gnutls_record_send,   gnutls_move, A_TLS, "descriptor", "result", "") \
    X(gnutls_record_recv,   gnutls_move, A_TLS, "descriptor", "result", "") \
    X(gnutls_record_uncork, gnutls_flag, A_TLS, "descriptor", "result", "") \
    X(gnutls_bye,           gnutls_flag, A_TLS, "descriptor", "",       "")

#define STREAM_CALLS(X) \
    X(fopen,         stream_open,   A_FILE,         "path",       "",       "open") \
    X(fopen64,       stream_open,   A_FILE,         "path",       "",       "open") \
    X(fclose,        stream_end,    ANY_DESCRIPTOR, "descriptor", "",       "forget") \
    X(fread,         stream_read,   ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fread_unlocked, stream_read,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(__fread_chk,   stream_read_checked, ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fwrite,        stream_write,  ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fwrite_unlocked, stream_write, ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fgets,         stream_line,   ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(getline,       stream_whole_line, ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(__getdelim,    stream_part,   ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(getdelim,      stream_part,   ANY_DESCRIPTOR, "descriptor", "result", "") \
    X(fputs,         stream_text,   ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(fflush,        stream,        ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(fseek,         stream_seek,   ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(fseeko,        stream_seek,   ANY_DESCRIPTOR, "descriptor", "",       "") \
    X(fseeko64,      stream_seek,   ANY_DESCRIPTOR, "descriptor", "",       "")

#define NUMBER_OF_NATIVE(name, ...) NATIVE_##name,
enum native_number {
    NATIVE_CALLS(NUMBER_OF_NATIVE) NATIVE_COUNT,
    FIRST_OPENSSL = NATIVE_SSL_connect,
    FIRST_GNUTLS = NATIVE_gnutls_handshake,
    FIRST_STREAM = NATIVE_fopen
};

/* Of any object that has it, also one loaded later; else it is the C library's. */
static inline bool native_is_openssl(unsigned number)
{
    return number >= FIRST_OPENSSL && number < FIRST_GNUTLS;
}

static inline bool native_is_tls(unsigned number)
{
    return number >= FIRST_OPENSSL && number < FIRST_STREAM;
}
