#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/loop_waits.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/import_table.h"
#include "core/recorder.h"
#include "core/spans.h"
#include "cpython/waiting_sites.h"
#include "hooks/call_kind.h"
#include "hooks/idle_descriptors.h"
#include "hooks/loop_children.h"
#include "hooks/without_lock.h"

#define FUNCTIONS(X) \
    X(int,     epoll_pwait, (int number, struct epoll_event *found, int room, int timeout_ms, const sigset_t *mask)) \
    X(int,     epoll_wait,  (int number, struct epoll_event *found, int room, int timeout_ms)) \
    X(int,     epoll_ctl,   (int number, int what, int descriptor, struct epoll_event *event)) \
    X(int,     accept4,     (int number, struct sockaddr *address, socklen_t *bytes, int flags)) \
    X(int,     connect,     (int number, const struct sockaddr *address, socklen_t bytes)) \
    X(int,     listen,      (int number, int backlog)) \
    X(ssize_t, read,        (int number, void *memory, size_t bytes)) \
    X(ssize_t, recvmsg,     (int number, struct msghdr *message, int flags)) \
    X(ssize_t, write,       (int number, const void *memory, size_t bytes)) \
    X(ssize_t, writev,      (int number, const struct iovec *parts, int count)) \
    X(ssize_t, sendmsg,     (int number, const struct msghdr *message, int flags)) \
    X(pid_t,   fork,        (void)) \
    X(int,     execvp,      (const char *name, char *const *words)) \
    X(pid_t,   waitpid,     (pid_t which, int *status, int options))

#define ONE_MORE(returns, name, parameters) +1
#define REAL(returns, name, parameters) returns(*name) parameters;
static struct {
    FUNCTIONS(REAL)
} real;

enum { LOOPS = 2, FUNCTION_COUNT = 0 FUNCTIONS(ONE_MORE) };
static struct c_loop {
    struct slot slot; /* of its waits */
    struct import imports[FUNCTION_COUNT];
    bool is_on;
} loops[LOOPS];

/* --- what is known of descriptors */

/* The loop has threads of its own, too, which the recorder does not know. */
static bool is_noted(void)
{
    return recorder_is_on() && known_thread();
}

static uint32_t this_loop(void)
{
    return watcher_of_thread(current_thread->number);
}

/* interpose does not see how uvloop's loop registers what it waits for: it may do so by io_uring(7). So the loop counts as
   waiting for all that it accepted or connected. Unknown descriptors are not looked up, because a signal handler writes, too. */
static void note_moved(int number, enum last last)
{
    int saved = errno;
    if (is_noted())
        descriptor_moved(number, last, true);
    errno = saved;
}

/* If the other end has closed, no answer is due. */
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

/* The loop closes descriptors by its own system call, unseen, so what was known of this number is out of date. */
static int loop_accept4(int number, struct sockaddr *address, socklen_t *bytes, int flags)
{
    int accepted = real.accept4(number, address, bytes, flags), saved = errno;
    if (accepted >= 0 && is_noted()) {
        descriptor_forget(accepted);
        descriptor_has_role(accepted, ROLE_CONNECTION);
        descriptor_watch(accepted, this_loop(), watch);
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
        descriptor_watch(number, this_loop(), watch);
    }
    errno = saved;
    return failed;
}

static int loop_listen(int number, int backlog)
{
    int failed = real.listen(number, backlog), saved = errno;
    if (!failed && is_noted()) {
        descriptor_forget(number);
        descriptor_has_role(number, ROLE_LISTENER);
        descriptor_watch(number, this_loop(), watch);
    }
    errno = saved;
    return failed;
}

static int loop_epoll_ctl(int number, int what, int descriptor, struct epoll_event *event)
{
    int failed = real.epoll_ctl(number, what, descriptor, event), saved = errno;
    if (!failed && is_noted())
        descriptor_watch(descriptor, this_loop(), what == EPOLL_CTL_DEL ? unwatch : watch);
    errno = saved;
    return failed;
}

/* --- children */

static pid_t loop_fork(void)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t child = real.fork();
    int saved = errno;
    if (child > 0)
        loop_forked(child, start_ns);
    errno = saved;
    return child;
}

static int loop_execvp(const char *name, char *const *words)
{
    struct loop_program *program = loop_becomes(name, words);
    int failed = real.execvp(name, words), saved = errno;
    loop_has_not_become(program, saved);
    errno = saved;
    return failed;
}

/* --- the waits */

static uint32_t stack_of_wait(struct thread *thread)
{
    frame *where = recorder.stack_kept ? own_innermost_frame() : NULL;
    return where ? stack_again(where, false, &thread->native_place) : 0;
}

static bool begin_wait(struct span *span, const struct c_loop *loop)
{
    const struct slot *slot = &loop->slot;
    struct thread *thread = loop->is_on && recorder_is_on() ? known_thread() : NULL;
    uint32_t added = thread ? slot->kinds[kind_of_poll(thread, this_loop(), true)] : 0;
    if (!thread || !is_recorded_now(thread, slot->intrinsic + added))
        return false;
    enum level level = slot_level(slot, added);
    if (level == LEVEL_count)
        recorder_count_only(thread, slot->intrinsic + added);
    return level == LEVEL_time && span_begin(span, thread, slot->intrinsic + added, stack_of_wait(thread), 0);
}

/* libuv and libev note the descriptor in the first four bytes of what the kernel gives back. */
static bool found_childs(const struct epoll_event *found, int count)
{
    for (int each = 0; each < count; each++)
        if (is_childs(found[each].data.fd))
            return true;
    return false;
}

static void end_wait(struct span *span, const struct c_loop *loop, const struct epoll_event *found, int count)
{
    const struct slot *slot = &loop->slot;
    if (!span_stop(span))
        return;
    span->intrinsic = number_of_poll(span, slot, this_loop());
    if (may_have_awaited_child(span, slot) && found_childs(found, count) && watches_nobody(this_loop()))
        span->intrinsic = slot->intrinsic + slot->kinds[KIND_process];
    if (span_write(span, 0, 0) && recorder.governed)
        governor_note(span->intrinsic);
}

#define WAIT(loop, call) \
    struct span span; \
    int saved = errno; \
    bool is_begun = begin_wait(&span, loop); \
    errno = saved; \
    int result = call; \
    saved = errno; \
    if (is_begun) \
        end_wait(&span, loop, found, result); \
    errno = saved; \
    return result

#define WAITS_OF_LOOP(number_of_loop) \
    static int loop_epoll_pwait_##number_of_loop(int number, struct epoll_event *found, int room, int timeout_ms, \
                                                 const sigset_t *mask) \
    { \
        WAIT(&loops[number_of_loop], real.epoll_pwait(number, found, room, timeout_ms, mask)); \
    } \
    static int loop_epoll_wait_##number_of_loop(int number, struct epoll_event *found, int room, int timeout_ms) \
    { \
        WAIT(&loops[number_of_loop], real.epoll_wait(number, found, room, timeout_ms)); \
    }
WAITS_OF_LOOP(0)
WAITS_OF_LOOP(1)

/* --- exchanging */

#define PLACE(returns, function, parameters) PLACE_##function,
#define NAME(returns, function, parameters) #function,
#define ADDRESS(returns, function, parameters) (void **)&real.function,
enum { FUNCTIONS(PLACE) };
static const char *const names[] = {FUNCTIONS(NAME)};
static void **const reals[] = {FUNCTIONS(ADDRESS)};

static void *const of_all[FUNCTION_COUNT] = {
    [PLACE_epoll_ctl] = (void *)loop_epoll_ctl, [PLACE_accept4] = (void *)loop_accept4, [PLACE_connect] = (void *)loop_connect,
    [PLACE_listen] = (void *)loop_listen,       [PLACE_read] = (void *)loop_read,       [PLACE_recvmsg] = (void *)loop_recvmsg,
    [PLACE_write] = (void *)loop_write,         [PLACE_writev] = (void *)loop_writev,   [PLACE_sendmsg] = (void *)loop_sendmsg,
    [PLACE_fork] = (void *)loop_fork,           [PLACE_execvp] = (void *)loop_execvp,   [PLACE_waitpid] = (void *)loop_waits_for,
};
static void *const of_each[LOOPS][FUNCTION_COUNT] = {
    {[PLACE_epoll_pwait] = (void *)loop_epoll_pwait_0, [PLACE_epoll_wait] = (void *)loop_epoll_wait_0},
    {[PLACE_epoll_pwait] = (void *)loop_epoll_pwait_1, [PLACE_epoll_wait] = (void *)loop_epoll_wait_1},
};

/* Functions that somebody has preloaded, or put there, stay in place. */
static bool may_exchange(const struct import *import, const void *found)
{
    return import->count && function_is_of_the_c_library(found) && (!import->real || import->real == found);
}

static void exchange(struct c_loop *loop, unsigned place)
{
    struct import *import = &loop->imports[place];
    void *found = dlsym(RTLD_DEFAULT, import->name), *ours = of_all[place] ? of_all[place] : of_each[loop - loops][place];
    *reals[place] = found;
    if (!may_exchange(import, found) || !import_put(import, ours))
        import->count = 0;
}

/* Whether somebody has replaced our functions by others, and ours may still be called. */
static bool loop_is_exchanged(const struct c_loop *loop)
{
    for (unsigned place = 0; place < FUNCTION_COUNT; place++)
        if (loop->imports[place].count)
            return true;
    return false;
}

struct slot *loop_waits_slot(void)
{
    for (unsigned number = 0; number < LOOPS; number++)
        if (!loops[number].is_on && !loop_is_exchanged(&loops[number]))
            return &loops[number].slot;
    return NULL;
}

const char *loop_waits_begin(struct slot *slot, const void *within)
{
    struct c_loop *loop = (struct c_loop *)((char *)slot - offsetof(struct c_loop, slot));
    struct import *imports[FUNCTION_COUNT + 1] = {NULL};
    for (unsigned place = 0; place < FUNCTION_COUNT; place++) {
        loop->imports[place].name = names[place];
        imports[place] = &loop->imports[place];
    }
    if (waiting_sites_begin())
        return "memory is short";
    const char *wrong = imports_find(imports, within);
    if (wrong)
        return wrong;
    loop->is_on = true;
    for (unsigned place = 0; place < FUNCTION_COUNT; place++)
        exchange(loop, place);
    bool is_seen = loop->imports[PLACE_epoll_pwait].count || loop->imports[PLACE_epoll_wait].count;
    return is_seen ? NULL : "its module waits by other functions";
}

static bool restore(struct c_loop *loop)
{
    bool restored = true;
    loop->is_on = false;
    for (unsigned place = 0; place < FUNCTION_COUNT; place++) {
        struct import *import = &loop->imports[place];
        bool is_as_before = import_restore(import);
        import->count = is_as_before ? 0 : import->count;
        restored &= is_as_before;
    }
    return restored;
}

bool loop_waits_end(void)
{
    bool restored = true;
    for (unsigned number = 0; number < LOOPS; number++)
        restored &= restore(&loops[number]);
    return restored;
}

bool loop_waits_are_on(void)
{
    return loops[0].is_on || loops[1].is_on;
}
