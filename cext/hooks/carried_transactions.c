#include "hooks/carried_transactions.h"

#include <string.h>

#include "core/filter.h"
#include "core/levels.h"
#include "core/trace_contexts.h"
#include "core/transaction_sampling.h"
#include "cpython/attributes.h"
#include "cpython/frame.h"
#include "cpython/side_lock.h"
#include "cpython/sites.h"
#include "cpython/tasks.h"
#include "hooks/await_event.h"
#include "hooks/checked_begin.h"
#include "hooks/filtering.h"
#include "hooks/serving.h"

enum { CARRYING = 4096, TRIES = 4 };

/* A call that is a transaction: its thread and its name. */
struct origin {
    uint32_t recording, thread, call, detail;
    bool is_passed_over, has_context;
    struct trace_context context; /* the trace it belongs to */
};

static struct carrying {
    PyObject *object;  /* no reference: compared, never dereferenced */
    uint32_t identity; /* 0: an unused entry */
    struct origin origin;
} carrying[CARRYING + TRIES];

/* The calls that other threads run for transactions of a thread, by its number: how many there are, and when the last one
   ended. Threads with the same index share it. */
static struct work {
    uint32_t recording, running;
    uint64_t ended_ns;
} works[256];

static struct work *work_for(uint32_t thread)
{
    struct work *found = &works[thread % (sizeof works / sizeof *works)];
    if (__atomic_exchange_n(&found->recording, recorder.serial, __ATOMIC_RELAXED) != recorder.serial) {
        __atomic_store_n(&found->running, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&found->ended_ns, 0, __ATOMIC_RELAXED);
    }
    return found;
}

static void work_begins(struct thread *thread, uint32_t works_for)
{
    thread->works_for = works_for;
    __atomic_add_fetch(&work_for(works_for)->running, 1, __ATOMIC_RELAXED);
}

static void work_ends(const struct span *span)
{
    struct work *work = work_for(span->thread->works_for);
    span->thread->works_for = 0;
    if (__atomic_load_n(&work->running, __ATOMIC_RELAXED))
        __atomic_sub_fetch(&work->running, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&work->ended_ns, span->begin.wall_ns + span->wall_ns, __ATOMIC_RELAXED);
}

bool was_worked_for(const struct span *span)
{
    struct work *work = work_for(span->thread->number);
    bool has_ended = __atomic_load_n(&work->ended_ns, __ATOMIC_RELAXED) > span->begin.wall_ns;
    return has_ended || __atomic_load_n(&work->running, __ATOMIC_RELAXED);
}

static struct carrying *first_place(const PyObject *object)
{
    return &carrying[((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 20 & (CARRYING - 1)];
}

static struct carrying *carrier_at(const PyObject *object)
{
    struct carrying *place = first_place(object);
    for (unsigned turn = 0; turn < TRIES; turn++)
        if (__atomic_load_n(&place[turn].object, __ATOMIC_RELAXED) == object)
            return &place[turn];
    return NULL;
}

bool may_carry(const PyObject *object)
{
    return carrier_at(object);
}

static bool origin_of(const PyObject *object, struct origin *found)
{
    if (!side_begin(SIDE_CARRYING))
        return false;
    const struct carrying *place = carrier_at(object);
    bool is_there = place && place->origin.recording == recorder.serial && object_lives(object, place->identity);
    if (is_there)
        *found = place->origin;
    side_end(SIDE_CARRYING);
    return is_there;
}

/* The entry for an object: its own, an unused one, or that of another object. */
static struct carrying *room_for(const PyObject *object)
{
    struct carrying *own = carrier_at(object), *place = first_place(object);
    for (unsigned turn = 0; !own && turn < TRIES; turn++)
        if (!place[turn].identity || !object_lives(place[turn].object, place[turn].identity))
            own = &place[turn];
    return own ? own : place;
}

static void put(PyObject *object, const struct origin *origin)
{
    uint32_t identity = object_watch(object);
    if (!identity || !side_begin(SIDE_CARRYING))
        return;
    struct carrying *place = room_for(object);
    place->identity = identity;
    place->origin = *origin;
    __atomic_store_n(&place->object, object, __ATOMIC_RELAXED);
    side_end(SIDE_CARRYING);
}

/* The call in progress that names the thread's transaction: the outermost one that the program marks, or the innermost. */
static const struct open_call *transaction_of(const struct thread *thread)
{
    const struct thread_record *record = thread->record;
    const struct open_call *found = NULL;
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++) {
        const struct open_call *open = &record->open[index];
        if (!open->call || !is_transaction(open->intrinsic))
            continue;
        found = open;
        if (is_number_or_further(open->intrinsic, marking))
            break;
    }
    return found;
}

/* What the running coroutine carries, if it belongs to a task. */
static bool origin_of_task(const struct thread *thread, struct origin *found)
{
    PyObject *outermost = thread->in_loop ? outermost_here() : NULL;
    return outermost && origin_of(outermost, found);
}

static bool origin_here(const struct thread *thread, struct origin *found)
{
    const struct open_call *open = transaction_of(thread);
    const char *state;
    if (!open)
        return origin_of_task(thread, found);
    *found = (struct origin){.recording = recorder.serial,
                             .thread = thread->number,
                             .call = open->call,
                             .detail = open->detail,
                             .is_passed_over = is_number_passed_over(open->intrinsic)};
    found->has_context = trace_context_here(thread, &found->context, &state);
    return open->detail;
}

void carry_transaction(const struct call *call, PyObject *result)
{
    const struct thread *thread = current_thread;
    PyObject *carrier = call->slot->subject == SUBJECT_RESULT ? result : subject_of(call);
    struct origin origin;
    if (carrier && thread_records(thread) && origin_here(thread, &origin))
        put(carrier, &origin);
}

/* From CPython 3.14 on, a whole thread may run in a copy of the context in which it was started. If the thread belongs
   to a pool, it serves others, too. */
static bool is_whole_thread(PyThreadState *state)
{
    frame *caller = frame_innermost(state);
    Py_ssize_t bytes;
    const char *name = caller ? bytes_of_text(frame_code(caller)->co_name, &bytes) : NULL;
    return name && strcmp(name, "_bootstrap_inner") == 0;
}

static bool continues(const struct call *call, const struct thread *thread, PyThreadState *state, struct origin *origin)
{
    return !thread->in_loop && !transaction_of(thread) && origin_of(call->owner, origin) &&
           origin->thread != thread->number && !is_whole_thread(state);
}

bool begin_continuing(struct call *call, struct thread *thread, PyThreadState *state)
{
    uint32_t number = call->slot->intrinsic;
    struct origin origin;
    call->span.thread = NULL;
    if (!continues(call, thread, state, &origin))
        return false;
    if (!is_timed(call->slot, number))
        return begin_untimed(call, thread, number) && false;
    if (UNLIKELY(filter_is_on()) && !transaction_passes(call->slot, thread, state))
        return false;
    number += origin.is_passed_over ? chosen_further(number) : 0;
    if (!span_begin(&call->span, thread, number, stack_here(state), origin.detail))
        return false;
    work_begins(thread, origin.thread);
    if (origin.has_context)
        trace_context_begin(thread, call->span.index, call->span.call, &origin.context, NULL);
    return true;
}

void end_continuing(struct call *call)
{
    struct origin origin;
    work_ends(&call->span);
    uint32_t route = origin_of(call->owner, &origin) ? route_of_request(origin.thread, origin.call) : 0;
    call->span.detail = route ? route : call->span.detail;
}
