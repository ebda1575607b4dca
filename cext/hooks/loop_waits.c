#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/loop_waits.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/import_table.h"
#include "core/recorder.h"
#include "core/spans.h"
#include "cpython/waiting_sites.h"
#include "hooks/idle_descriptors.h"
#include "hooks/without_lock.h"

#define FUNCTIONS(X) \
    X(int,     epoll_pwait, (int number, struct epoll_event *found, int room, int timeout_ms, const sigset_t *mask)) \
    X(int,     epoll_wait,  (int number, struct epoll_event *found, int room, int timeout_ms)) \
    X(int,     epoll_ctl,   (int number, int what, int descriptor, struct epoll_event *event)) \
    X(int,     accept4,     (int number, struct sockaddr *address, socklen_t *bytes, int flags)) \
    X(int,     connect,     (int number, const struct sockaddr *address, socklen_t bytes)) \
    X(ssize_t, read,        (int number, void *memory, size_t bytes)) \
    X(ssize_t, recvmsg,     (int number, struct msghdr *message, int flags)) \
    X(ssize_t, write,       (int number, const void *memory, size_t bytes)) \
    X(ssize_t, writev,      (int number, const struct iovec *parts, int count)) \
    X(ssize_t, sendmsg,     (int number, const struct msghdr *message, int flags))

#define REAL(returns, name, parameters) returns(*name) parameters;
static struct {
    FUNCTIONS(REAL)
} real;
static const struct slot *of_waits; /* NULL: nothing is recorded */

/* --- what is known of descriptors */

/* The loop has threads of its own, too, which the recorder does not know. */
static bool is_noted(void)
{
    return of_waits && recorder_is_on() && known_thread();
}

/* How uvloop's loop registers what it waits for is not seen: it may do so by io_uring(7). So it waits for all that it ever used. */
static void note_moved(int number, enum last last)
{
    int saved = errno;
    if (is_noted()) {
        descriptor_moved(number, last);
        descriptor_watch(number, (uint32_t)WATCHER_LOOP, watch);
    }
    errno = saved;
}

/* Where the other end is closed, no answer is due. */
static void note_received(int number, ssize_t moved)
{
    if (moved > 0)
        note_moved(number, LAST_RECEIVED);
    else if (!moved)
        note_moved(number, LAST_NOTHING);
}

static ssize_t loop_read(int number, void *memory, size_t bytes)
{
    ssize_t moved = real.read(number, memory, bytes);
    note_received(number, moved);
    return moved;
}

static ssize_t loop_recvmsg(int number, struct msghdr *message, int flags)
{
    ssize_t moved = real.recvmsg(number, message, flags);
    note_received(number, moved);
    return moved;
}

static ssize_t loop_write(int number, const void *memory, size_t bytes)
{
    ssize_t moved = real.write(number, memory, bytes);
    if (moved > 0)
        note_moved(number, LAST_SENT);
    return moved;
}

static ssize_t loop_writev(int number, const struct iovec *parts, int count)
{
    ssize_t moved = real.writev(number, parts, count);
    if (moved > 0)
        note_moved(number, LAST_SENT);
    return moved;
}

static ssize_t loop_sendmsg(int number, const struct msghdr *message, int flags)
{
    ssize_t moved = real.sendmsg(number, message, flags);
    if (moved > 0)
        note_moved(number, LAST_SENT);
    return moved;
}

/* The loop closes by a system call of its own: what was known of the number is older. */
static int loop_accept4(int number, struct sockaddr *address, socklen_t *bytes, int flags)
{
    int accepted = real.accept4(number, address, bytes, flags), saved = errno;
    if (accepted >= 0 && is_noted()) {
        descriptor_forget(accepted);
        descriptor_has_role(accepted, ROLE_CONNECTION);
    }
    errno = saved;
    return accepted;
}

static int loop_connect(int number, const struct sockaddr *address, socklen_t bytes)
{
    int failed = real.connect(number, address, bytes), saved = errno;
    if ((!failed || saved == EINPROGRESS) && is_noted()) {
        descriptor_forget(number);
        descriptor_has_role(number, ROLE_CLIENT);
    }
    errno = saved;
    return failed;
}

static int loop_epoll_ctl(int number, int what, int descriptor, struct epoll_event *event)
{
    int failed = real.epoll_ctl(number, what, descriptor, event), saved = errno;
    if (!failed && is_noted())
        descriptor_watch(descriptor, (uint32_t)WATCHER_LOOP, what == EPOLL_CTL_DEL ? unwatch : watch);
    errno = saved;
    return failed;
}

/* --- the waits */

static uint32_t stack_of_wait(struct thread *thread)
{
    frame *where = recorder.stack_kept ? own_innermost_frame() : NULL;
    return where ? stack_again(where, false, &thread->native_place) : 0;
}

static bool begin_wait(struct span *span)
{
    struct thread *thread = of_waits && recorder_is_on() ? known_thread() : NULL;
    uint32_t added = thread ? of_waits->kinds[kind_of_watched((uint32_t)WATCHER_LOOP, true)] : 0;
    if (!thread || !is_recorded_now(thread, of_waits->intrinsic + added))
        return false;
    enum level level = slot_level(of_waits, added);
    if (level == LEVEL_count)
        recorder_count_only(thread, of_waits->intrinsic + added);
    return level == LEVEL_time && span_begin(span, thread, of_waits->intrinsic + added, stack_of_wait(thread), 0);
}

static void end_wait(struct span *span)
{
    if (span_stop(span) && span_write(span, 0, 0) && recorder.governed)
        governor_note(span->intrinsic);
}

#define WAIT(call) \
    struct span span; \
    int saved = errno; \
    bool is_begun = begin_wait(&span); \
    errno = saved; \
    int result = call; \
    saved = errno; \
    if (is_begun) \
        end_wait(&span); \
    errno = saved; \
    return result

static int loop_epoll_pwait(int number, struct epoll_event *found, int room, int timeout_ms, const sigset_t *mask)
{
    WAIT(real.epoll_pwait(number, found, room, timeout_ms, mask));
}

static int loop_epoll_wait(int number, struct epoll_event *found, int room, int timeout_ms)
{
    WAIT(real.epoll_wait(number, found, room, timeout_ms));
}

/* --- exchanging */

#define EXCHANGED(returns, function, parameters) {{.name = #function}, (void *)loop_##function, (void **)&real.function},
static struct {
    struct import import;
    void *ours, **real;
} exchanged[] = {FUNCTIONS(EXCHANGED)};
enum { PWAIT, WAIT_OF_FOUR, EXCHANGED_COUNT = sizeof exchanged / sizeof *exchanged };

static const void *object_of(const void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* What somebody has preloaded, or put there, is called as before. */
static bool may_exchange(const struct import *import, const void *found)
{
    bool is_of_c_library = found && object_of(found) == object_of((const void *)qsort);
    return import->count && is_of_c_library && (!import->real || import->real == found);
}

static void exchange(unsigned number)
{
    struct import *import = &exchanged[number].import;
    void *found = dlsym(RTLD_DEFAULT, import->name);
    *exchanged[number].real = found;
    if (!may_exchange(import, found) || !import_put(import, exchanged[number].ours))
        import->count = 0;
}

bool loop_waits_are_on(void)
{
    for (unsigned number = 0; number < EXCHANGED_COUNT; number++)
        if (exchanged[number].import.count)
            return true;
    return false;
}

const char *loop_waits_begin(const struct slot *slot, const void *within)
{
    struct import *imports[EXCHANGED_COUNT + 1] = {NULL};
    for (unsigned number = 0; number < EXCHANGED_COUNT; number++)
        imports[number] = &exchanged[number].import;
    if (waiting_sites_begin())
        return "memory is short";
    const char *wrong = imports_find(imports, within);
    if (wrong)
        return wrong;
    of_waits = slot;
    for (unsigned number = 0; number < EXCHANGED_COUNT; number++)
        exchange(number);
    return exchanged[PWAIT].import.count || exchanged[WAIT_OF_FOUR].import.count ? NULL : "its module waits by other functions";
}

bool loop_waits_end(void)
{
    bool restored = true;
    of_waits = NULL;
    for (unsigned number = 0; number < EXCHANGED_COUNT; number++) {
        struct import *import = &exchanged[number].import;
        bool is_as_before = import_restore(import);
        import->count = is_as_before ? 0 : import->count;
        restored &= is_as_before;
    }
    return restored;
}
