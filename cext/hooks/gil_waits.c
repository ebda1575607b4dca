#define _GNU_SOURCE
#include "hooks/gil_waits.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "core/exclusive.h"
#include "core/import_table.h"
#include "core/recorder.h"
#include "core/wiped.h"
#include "cpython/interpreter_lock.h"
#include "cpython/sites.h"
#include "cpython/waiting_sites.h"
#include "hooks/without_lock.h"

/* The thread that last released the lock while others waited for it, recorded by that thread itself. Only the holder
   of the mutex that guards the lock reads or writes it; a forked child finds it empty. */
struct given {
    const PyThreadState *state; /* compared, never looked into */
    uint32_t waiting;           /* how many threads wait */
    uint32_t thread, detail;
};

typedef int timed_wait_function(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int plain_wait_function(pthread_cond_t *, pthread_mutex_t *);
typedef int signal_function(pthread_cond_t *);

static struct {
    struct interpreter_lock lock;
    timed_wait_function *timed_wait;
    plain_wait_function *plain_wait;
    signal_function *signal;
    struct import timed, plain, signalled;
    struct given *given;
    uint32_t intrinsic, level;
} waits = {.timed_wait = pthread_cond_timedwait,
           .plain_wait = pthread_cond_wait,
           .signal = pthread_cond_signal,
           .timed = {.name = "pthread_cond_timedwait"},
           .plain = {.name = "pthread_cond_wait"},
           .signalled = {.name = "pthread_cond_signal"},
           .level = LEVEL_off};

/* --- who had the lock */

enum { TOLD = 64 };

/* Texts of holders that were written, by thread and stack. */
static struct {
    uint32_t serial, thread, stack, detail;
} told[TOLD];

/* Own cost. */
static uint32_t write_holder(struct thread *thread, frame *where)
{
    char text[1200];
    struct reading begin = own_begin(thread);
    int length = snprintf(text, sizeof text, where ? "held by thread %u at " : "held by thread %u", thread->number);
    size_t bytes = (size_t)length + (where ? describe_waiting(where, text + length, sizeof text - (size_t)length) : 0);
    uint32_t detail = detail_intern(text, bytes);
    own_end(thread, begin);
    return detail;
}

static uint32_t detail_of_holder(struct thread *thread, uint32_t stack, frame *where)
{
    unsigned place = (thread->number * 31 + stack) % TOLD;
    if (told[place].serial != recorder.serial || told[place].thread != thread->number || told[place].stack != stack) {
        told[place].detail = write_holder(thread, where);
        told[place].serial = recorder.serial;
        told[place].thread = thread->number;
        told[place].stack = stack;
    }
    return told[place].detail;
}

/* The calling thread has just released the lock, and nobody can take it yet. */
static void note_giving(void)
{
    struct thread *thread = known_thread();
    waits.given->state = NULL;
    if (!thread || waits.level != LEVEL_time)
        return;
    int saved = errno;
    frame *where = own_innermost_frame();
    thread->lock_wait.stack = where ? stack_of_waiting(where, false) : 0;
    waits.given->state = lock_holder(&waits.lock);
    waits.given->thread = thread->number;
    waits.given->detail = detail_of_holder(thread, thread->lock_wait.stack, where);
    errno = saved;
}

static uint32_t detail_of_giver(const struct thread *thread)
{
    const struct given *given = waits.given;
    return given->state && given->state == lock_holder(&waits.lock) && given->thread != thread->number ? given->detail : 0;
}

/* --- recording */

static void begin_wait(struct thread *thread)
{
    struct span span;
    if (waits.level != LEVEL_time || !is_recorded_now(thread, waits.intrinsic) || !span_begin(&span, thread, waits.intrinsic, 0, 0))
        return;
    thread->lock_wait.begin = span.begin;
    thread->lock_wait.call = span.call;
    thread->lock_wait.index = span.index;
    thread->record->fields.lock_wait = span.call;
}

/* Nobody has the lock, and nobody can take it. */
static void describe_wait(struct span *span, const struct thread *thread)
{
    frame *where = own_innermost_frame();
    span->stack = where ? stack_of_waiting(where, span->wall_ns >= recorder.stack_above_ns) : 0;
    span->detail = detail_of_giver(thread);
}

static void record_wait(struct span *span, struct thread *thread, bool nobody_has_it)
{
    if (span->wall_ns < recorder.wait_above_ns) {
        span_pass(span);
        return;
    }
    if (nobody_has_it)
        describe_wait(span, thread);
    else
        span->stack = thread->lock_wait.stack;
    if (span->wall_ns >= recorder.trigger_above_ns)
        recorder_trigger_once(thread, span->begin.wall_ns);
    span_write(span, 0, 0);
}

static void end_wait(struct thread *thread, bool nobody_has_it)
{
    int saved = errno;
    struct span span = {.thread = thread, .begin = thread->lock_wait.begin, .index = thread->lock_wait.index,
                        .call = thread->lock_wait.call, .intrinsic = waits.intrinsic};
    thread->lock_wait.call = 0;
    if (span_open(&span))
        thread->record->fields.lock_wait = 0;
    if (span_stop(&span))
        record_wait(&span, thread, nobody_has_it);
    errno = saved;
}

static void count_wait(struct thread *thread)
{
    int saved = errno;
    if (is_recorded_now(thread, waits.intrinsic))
        recorder_count_only(thread, waits.intrinsic);
    errno = saved;
}

/* --- in the place of the three functions */

/* The interpreter waits again as long as the lock is held: all of that is one wait. */
static int wait_until_freed(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct thread *thread = known_thread();
    if (thread && !thread->lock_wait.call)
        begin_wait(thread);
    waits.given->waiting++;
    int result = waits.timed_wait(condition, mutex, until);
    waits.given->waiting--;
    if (!thread || lock_is_held(&waits.lock))
        return result;
    if (thread->lock_wait.call)
        end_wait(thread, true);
    else if (waits.level == LEVEL_count && known_thread())
        count_wait(thread);
    return result;
}

static int timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (LIKELY(condition != waits.lock.freed))
        return waits.timed_wait(condition, mutex, until);
    return wait_until_freed(condition, mutex, until);
}

static int wait_until_taken(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct thread *thread = known_thread();
    if (thread)
        begin_wait(thread);
    int result = waits.plain_wait(condition, mutex);
    if (thread && thread->lock_wait.call)
        end_wait(thread, false);
    return result;
}

static int plain_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (LIKELY(condition != waits.lock.taken))
        return waits.plain_wait(condition, mutex);
    return wait_until_taken(condition, mutex);
}

/* Nobody waits, the usual case: nobody asks who it was. */
static int signal_freed(pthread_cond_t *condition)
{
    if (condition == waits.lock.freed && UNLIKELY(waits.given->waiting))
        note_giving();
    return waits.signal(condition);
}

/* --- installing */

static const char *prepare(void)
{
    if (waiting_sites_begin())
        return "memory is short";
    if (!waits.given && exclusive_begin()) {
        waits.given = wiped_take(sizeof *waits.given);
        exclusive_end();
    }
    return waits.given ? interpreter_lock_find(&waits.lock) : "memory is short";
}

static const char *find_imports(void)
{
    struct import *const imports[] = {&waits.timed, &waits.plain, &waits.signalled, NULL};
    const char *wrong = imports_find(imports, (const void *)PyEval_RestoreThread);
    if (wrong)
        return wrong;
    if (!waits.timed.count || !waits.plain.count || !waits.signalled.count)
        return "the function is not in the import table";
    if (waits.timed.real)
        waits.timed_wait = (timed_wait_function *)waits.timed.real;
    if (waits.plain.real)
        waits.plain_wait = (plain_wait_function *)waits.plain.real;
    if (waits.signalled.real)
        waits.signal = (signal_function *)waits.signalled.real;
    return NULL;
}

static const char *put(void)
{
    const char *wrong = find_imports();
    if (!wrong && import_put(&waits.timed, (void *)timed_wait) && import_put(&waits.plain, (void *)plain_wait) &&
        import_put(&waits.signalled, (void *)signal_freed))
        return NULL;
    gil_waits_end();
    return wrong ? wrong : "the import table is read-only";
}

const char *gil_waits_begin(const struct slot *slot)
{
    if (waits.level != LEVEL_off)
        return "it is interposed already";
    const char *wrong = prepare();
    bool stayed = waits.timed.count > 0; /* ours could not be taken out, and is called still */
    wrong = wrong || stayed ? wrong : put();
    if (wrong)
        return wrong;
    waits.intrinsic = slot->intrinsic;
    waits.level = slot->levels[0];
    return NULL;
}

bool gil_waits_end(void)
{
    waits.level = LEVEL_off;
    bool restored = import_restore(&waits.timed);
    restored &= import_restore(&waits.plain);
    restored &= import_restore(&waits.signalled);
    if (restored)
        waits.timed.count = waits.plain.count = waits.signalled.count = 0;
    return restored;
}
