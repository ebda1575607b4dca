#define _GNU_SOURCE
#include "native/native_call.h"

#include <errno.h>
#include <string.h>

#include "core/database_name.h"
#include "core/detail_levels.h"
#include "core/program_name.h"
#include "core/readable.h"
#include "core/statement_interning.h"
#include "core/url.h"
#include "hooks/descriptors.h"
#include "hooks/open_calls.h"
#include "hooks/traffic.h"
#include "hooks/without_lock.h"
#include "native/native_errors.h"
#include "native/native_host.h"

struct native natives[NATIVE_COUNT];

enum { LONGEST_STATEMENT = 64 * 1024 };
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* --- may it be recorded? */

/* A call in progress with an unwound stack: nobody else ends what was begun. */
static void drop_unwound(struct thread *thread, struct native_progress *progress)
{
    struct thread_record *record = thread->record;
    uint32_t index = progress->index;
    writing_begin(thread);
    if (index < record->fields.depth && record->open[index].call == progress->call) {
        record->fields.dropped++;
        close_call(record, index);
    }
    progress->call = 0;
    writing_end(thread);
}

/* The thread is again where a signal handler has interrupted it, or in no native call. */
static void resume_interrupted(struct thread *thread)
{
    thread->native.call = 0;
    if (thread->interruptions) {
        thread->native = thread->interrupted[--thread->interruptions];
        thread->native.newest = thread->calls;
    }
}

/* Does a signal handler make the call, and has it interrupted recording? Then nothing is recorded. If it has interrupted the real
   function of another native call, it is inside that. */
static bool interrupts_recording(struct thread *thread, uintptr_t frame)
{
    if (UNLIKELY(thread->writing))
        return true;
    while (UNLIKELY(thread->native.call)) {
        if (frame < thread->native.frame && thread->calls == thread->native.newest)
            return !thread->native.is_inside || thread->interruptions == INTERRUPTED_CALLS;
        drop_unwound(thread, &thread->native);
        writing_begin(thread);
        resume_interrupted(thread);
        writing_end(thread);
    }
    return false;
}

static struct thread *recorded_native_thread(uintptr_t frame)
{
    struct thread *thread = native_host_thread();
    if (UNLIKELY(!thread || thread->quiet || thread->own_depth))
        return NULL;
    if (LIKELY(!interrupts_recording(thread, frame)))
        return thread;
    recorder_lose();
    return NULL;
}

/* --- its detail, and its stack */

/* For messages, or for clients. */
static bool waits_for_work(const struct slot *slot)
{
    return slot->choice == CHOICE_blocking || slot->effect == EFFECT_accept;
}

static uint32_t kind_of_native(const struct slot *slot, const struct descriptor *known, const struct thread *thread)
{
    if (slot->choice == CHOICE_descriptor)
        return kind_of_traffic(slot, known, thread);
    if (slot->kinds[KIND_idle] && (waits_for_work(slot) || inside(thread, KIND_idle)))
        return slot->kinds[KIND_idle];
    return slot->kinds[KIND_process] && inside(thread, KIND_process) ? slot->kinds[KIND_process] : 0;
}

static uint32_t stack_of_native(struct thread *thread, struct native_origin from)
{
    if (UNLIKELY(!recorder.stack_kept))
        return 0;
    return native_host_stack(thread, from);
}

/* --- what it changes in the known descriptors */

static bool is_about_descriptor(const struct slot *slot)
{
    return slot->detail == DETAIL_descriptor;
}

static void change_before_native(const struct slot *slot, intptr_t subject)
{
    if (slot->effect == EFFECT_forget)
        descriptor_forget((int)subject);
}

/* Its name is now that of the other end, also while the connection is still being made: the address, as a number in
   strings. A thread that the recorder does not know looks nothing up; the next known thread does. */
static uint32_t connected_to(const struct native_connection *connection)
{
    struct sockaddr_storage address = {0};
    if (!known_thread()) {
        descriptor_forget(connection->number);
        return 0;
    }
    if (connection->bytes > sizeof address || !readable_copy(&address, connection->address, connection->bytes))
        return 0;
    return descriptor_connects(connection->number, &address, (socklen_t)connection->bytes);
}

static void change_after_native(const struct slot *slot, intptr_t subject, int64_t result, int error)
{
    if (slot->effect == EFFECT_connect && (!error || error == EINPROGRESS))
        connected_to((const struct native_connection *)subject);
    else if (!error && (slot->effect == EFFECT_open || slot->effect == EFFECT_accept))
        descriptor_forget((int)result);
}

/* --- the call */

/* Whether it is timed. Untimed ones are counted here. */
static bool is_timed(struct thread *thread, const struct slot *slot, uint32_t added)
{
    enum level level = slot_level(slot, added);
    if (level == LEVEL_off || !is_recorded_now(thread, slot->intrinsic + added))
        return false;
    if (level == LEVEL_count)
        recorder_count_only(thread, slot->intrinsic + added);
    return level == LEVEL_time;
}

/* The library makes calls of the list within it. */
static bool holds_others(const struct slot *slot)
{
    return slot->choice == CHOICE_outermost || slot->choice == CHOICE_layer || slot->choice == CHOICE_blocking;
}

static struct native_progress *progress_of(struct thread *thread, const struct slot *slot)
{
    if (LIKELY(!holds_others(slot)))
        return &thread->native;
    return slot->choice == CHOICE_layer ? &thread->tls : &thread->outermost;
}

/* Is a call that holds others in no such one? One that was begun no farther out was left, as by longjmp(3). */
static bool is_outermost(struct thread *thread, const struct slot *slot, uintptr_t frame)
{
    struct native_progress *progress = progress_of(thread, slot);
    if (progress->call && frame >= progress->frame)
        drop_unwound(thread, progress);
    return slot->choice == CHOICE_layer ? !progress->call : !inside(thread, KIND_db);
}

/* The thread is in the call from now on, until its end. */
static void begin_progress(const struct native_call *call, uintptr_t frame)
{
    const struct span *span = &call->span;
    struct native_progress *progress = progress_of(span->thread, call->slot);
    struct thread *thread = span->thread;
    writing_begin(thread);
    if (UNLIKELY(progress->call) && progress == &thread->native && thread->interruptions < INTERRUPTED_CALLS)
        thread->interrupted[thread->interruptions++] = *progress;
    *progress = (struct native_progress){.call = span->call, .index = span->index, .newest = thread->calls, .frame = frame};
    writing_end(thread);
}

static void end_progress(const struct native_call *call)
{
    struct thread *thread = call->span.thread;
    struct native_progress *progress = progress_of(thread, call->slot);
    writing_begin(thread);
    if (progress == &thread->native)
        resume_interrupted(thread);
    else
        progress->call = 0;
    writing_end(thread);
}

static bool begin_span(struct native_call *call, struct thread *thread, struct native_origin from)
{
    const struct slot *slot = call->slot;
    const struct descriptor *known = is_about_descriptor(slot) ? descriptor_known((int)call->subject) : NULL;
    uint32_t added = kind_of_native(slot, known, thread), detail = known ? known->name : 0;
    if (!is_timed(thread, slot, added) || (holds_others(slot) && !is_outermost(thread, slot, from.frame)))
        return false;
    uint32_t stack = stack_of_native(thread, from);
    if (!span_begin(&call->span, thread, slot->intrinsic + added, stack, detail))
        return false;
    begin_progress(call, from.frame);
    return true;
}

bool native_begin(struct native_call *call, const struct native *native, intptr_t subject, const void *caller,
                  uintptr_t frame)
{
    const struct slot *slot = &native->slot;
    if (UNLIKELY(!recorder_is_on() || !slot->numbers))
        return false;
    int saved = errno;
    struct thread *thread = recorded_native_thread(frame);
    call->slot = slot;
    call->subject = subject;
    call->failed = 0;
    if (!thread || !begin_span(call, thread, (struct native_origin){caller, frame}))
        call->span.thread = NULL;
    change_before_native(slot, subject);
    if (call->span.thread)
        progress_of(thread, slot)->is_inside = true;
    errno = saved;
    return call->span.thread || slot->effect;
}

/* That of a call that failed may have been refused unread. */
static uint32_t statement_of_native(enum dialect dialect, struct native_statement *statement, bool failed)
{
    bool literals;
    size_t bytes = statement->bytes < LONGEST_STATEMENT ? statement->bytes : LONGEST_STATEMENT;
    if (statement->text && !(failed && readable_length(statement->text, bytes) < 0))
        statement->detail = statement_intern(0, dialect, statement->text, strnlen(statement->text, bytes), &literals);
    return statement->detail;
}

/* What was read by a call that succeeded can be read, as can the path of what does not exist; other calls may have refused it
   unread. */
static bool can_be_read(const struct native_call *call, const char *text, int error)
{
    bool was_read = (!error && !call->failed) || (error == ENOENT && call->slot->detail == DETAIL_path);
    return text && (was_read || readable_length(text, LONGEST_STATEMENT) >= 0);
}

static uint32_t host_intern(const char *text)
{
    size_t bytes = strlen(text);
    const char *host = host_within(text, &bytes);
    return path_intern(KIND_net, host, bytes);
}

static uint32_t late_native_detail(const struct native_call *call, int error)
{
    const struct slot *slot = call->slot;
    const char *text = (const char *)call->subject;
    if (slot->detail >= DETAIL_statement && slot->detail <= DETAIL_oracle_statement)
        return statement_of_native(slot->detail - DETAIL_statement + DIALECT_any, (struct native_statement *)call->subject,
                                   call->failed);
    if (slot->detail == DETAIL_address)
        return connected_to((const struct native_connection *)call->subject);
    if (!can_be_read(call, text, error))
        return 0;
    if (is_path(slot->detail))
        return path_intern(KIND_file, text, strlen(text));
    if (slot->detail == DETAIL_command)
        return program_of_line(text, strlen(text));
    if (slot->detail == DETAIL_program)
        return program_intern(text);
    if (slot->detail == DETAIL_word)
        return argument_intern(KIND_db, text, strspn(text, letters));
    if (slot->detail == DETAIL_database)
        return database_intern(text);
    return slot->detail == DETAIL_host ? host_intern(text) : 0;
}

/* It did not wait long enough to be recorded. */
static bool passed_native(const struct native_call *call)
{
    if (call->slot->waits == WAITS_not || call->span.wall_ns >= recorder.wait_above_ns)
        return false;
    span_pass(&call->span);
    return true;
}

static void record_native(struct native_call *call, int64_t result, int error)
{
    struct span *span = &call->span;
    uint64_t bytes = call->slot->moves && result > 0 ? (uint64_t)result : 0;
    if (!span->detail && !is_about_descriptor(call->slot))
        span->detail = late_native_detail(call, error);
    span->task = span->thread->in_loop ? 0 : span->thread->greenlet;
    uint32_t failed = UNLIKELY(error) ? native_error(call->slot->detail == DETAIL_host, error) : call->failed;
    if (span_write(span, bytes, failed) && UNLIKELY(recorder.governed))
        governor_note(span->intrinsic);
    if (UNLIKELY(span->wall_ns >= recorder.trigger_above_ns) && !is_idle_number(span->intrinsic))
        recorder_trigger_once(span->thread, span->begin.wall_ns);
    if (UNLIKELY(span->begin.wall_ns + span->wall_ns >= span->thread->look_ns))
        native_host_is_due(span->thread);
}

void native_end(struct native_call *call, int64_t result, int error)
{
    int saved = errno;
    struct thread *thread = call->span.thread;
    if (thread && span_open(&call->span)) {
        progress_of(thread, call->slot)->is_inside = false;
        span_stop(&call->span);
        if (!passed_native(call))
            record_native(call, result, error);
        end_progress(call);
    }
    change_after_native(call->slot, call->subject, result, error);
    errno = saved;
}

bool native_lower(uint32_t number, enum level level)
{
    bool found = false;
    for (unsigned each = 0; each < NATIVE_COUNT; each++)
        found |= natives[each].slot.numbers && slot_lower(&natives[each].slot, number, level);
    return found;
}
