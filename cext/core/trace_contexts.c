#include "core/trace_contexts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/exclusive.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "core/room.h"
#include "core/series.h"
#include "core/session.h"
#include "core/trace_identities.h"
#include "core/trace_state.h"
#include "core/transaction_sampling.h"

enum { CARRIED = 1024, CAME_WITH = 0, CONTEXTS_OF_A_CALL = 3, IN_A_RING = (CONTEXTS_BYTES - sizeof(struct file_head)) / sizeof(struct kept_context) };

/* A thread's, by the call's number: what it came with, then the spans of OpenTelemetry and of ddtrace. Without a parent
   there is none. `state` is what it came with for other tracers, or NULL. */
struct carried {
    uint32_t call;
    char *state;
    struct trace_context contexts[CONTEXTS_OF_A_CALL];
};

static struct {
    struct series series;
    struct kept_context *first; /* NULL: there is no file yet */
    uint32_t kept;
    bool failed;
} contexts;

static struct trace_context outer; /* its trace is 0: there is none */
static char outer_state[TRACE_STATE_BYTES + 1];
static bool keeps_states;

void trace_contexts_begin(void)
{
    contexts.first = NULL;
    contexts.kept = 0;
    contexts.failed = false;
}

void trace_context_choose_outer(const struct trace_context *given, const char *state)
{
    outer = given ? *given : (struct trace_context){0};
    keeps_states = state != NULL;
    trace_state_keep(state ? state : "", state ? strlen(state) : 0, outer_state);
}

bool trace_states_are_kept(void)
{
    return keeps_states;
}

void trace_contexts_identify(void)
{
    session.seed = identity_seed((uint32_t)session.process, session.begun.wall_ns, session.time_ns);
    if (!session_is_founder())
        return;
    struct trace_identity own = identity_of_trace(session.seed);
    bool is_inside = outer.high || outer.low;
    recorder.control->trace_high = is_inside ? outer.high : own.high;
    recorder.control->trace_low = is_inside ? outer.low : own.low;
}

/* --- those in progress */

static struct carried *carried_by(const struct thread *thread, uint32_t call)
{
    struct carried *found = thread->carried ? &thread->carried[call % CARRIED] : NULL;
    return found && call && found->call == call ? found : NULL;
}

/* That of a call; NULL if it has none, or if a thousand calls of the thread have had one since. */
static const struct trace_context *trace_context_of(const struct thread *thread, uint32_t call)
{
    const struct carried *found = carried_by(thread, call);
    return found && found->contexts[CAME_WITH].parent ? &found->contexts[CAME_WITH] : NULL;
}

static struct carried *room_to_carry(void)
{
    size_t bytes = CARRIED * sizeof(struct carried);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void empty(struct carried *carried)
{
    free(carried->state);
    *carried = (struct carried){0};
}

void trace_contexts_forget(struct thread *thread)
{
    for (uint32_t place = 0; thread->carried && place < CARRIED; place++)
        if (thread->carried[place].call)
            empty(&thread->carried[place]);
}

static bool is_around(const struct thread *thread, uint32_t index, const struct trace_context *context)
{
    const struct thread_record *record = thread->record;
    for (uint32_t place = index < OPEN_CALLS ? index : OPEN_CALLS; place-- > 0;) {
        const struct trace_context *outside = trace_context_of(thread, record->open[place].call);
        if (outside && is_same_context(outside, context))
            return true;
    }
    return false;
}

/* What the call carries, perhaps nothing yet; NULL if there is no memory. */
static struct carried *carry(struct thread *thread, uint32_t call)
{
    if (!thread->carried && !(thread->carried = room_to_carry()))
        return NULL;
    struct carried *place = &thread->carried[call % CARRIED];
    if (place->call != call)
        empty(place);
    place->call = call;
    return place;
}

void trace_context_begin(struct thread *thread, uint32_t index, uint32_t call, const struct trace_context *context,
                         const char *state)
{
    struct carried *carried = is_around(thread, index, context) ? NULL : carry(thread, call);
    if (!carried)
        return;
    carried->contexts[CAME_WITH] = *context;
    free(carried->state);
    carried->state = state ? strdup(state) : NULL;
}

/* What of the calls in progress says in which trace the thread is. */
struct around {
    const struct open_call *transaction, *innermost; /* NULL: none */
    const struct carried *carried; /* by the transaction, or a call inside of it, that came with a context; or NULL */
};

static uint32_t sending_number, lasting_number; /* 0: none */

void trace_context_lasts(uint32_t sending, uint32_t lasting)
{
    sending_number = sending;
    lasting_number = lasting;
}

static bool only_sends(const struct open_call *open, const struct open_call *around)
{
    return sending_number && open->intrinsic == sending_number && around && around->intrinsic == lasting_number;
}

static struct around look_around(const struct thread *thread)
{
    const struct thread_record *record = thread->record;
    struct around found = {NULL, NULL, NULL};
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++) {
        const struct open_call *open = &record->open[index];
        if (!open->call || only_sends(open, found.innermost))
            continue;
        found.innermost = open;
        if (!found.transaction && is_transaction(open->intrinsic))
            found.transaction = open;
        if (found.transaction && !found.carried)
            found.carried = trace_context_of(thread, open->call) ? carried_by(thread, open->call) : NULL;
    }
    return found;
}

void trace_context_note_span(struct thread *thread, const struct trace_context *span)
{
    const struct open_call *transaction = look_around(thread).transaction;
    struct carried *carried = transaction ? carry(thread, transaction->call) : NULL;
    int place = span->flags & SPAN_OF_OPENTELEMETRY ? 1 : 2;
    if (carried && !carried->contexts[place].parent)
        carried->contexts[place] = *span;
}

/* The state of the trace that a request made now is in: a transaction that came with none begins a trace of its own. */
static const char *state_of(const struct around *around)
{
    const struct control *control = recorder.control;
    bool is_outer = control->trace_high == outer.high && control->trace_low == outer.low;
    if (around->carried)
        return around->carried->state;
    return !around->transaction && is_outer && *outer_state ? outer_state : NULL;
}

bool trace_context_here(const struct thread *thread, struct trace_context *context, const char **state)
{
    struct around found = look_around(thread);
    const struct control *control = recorder.control;
    bool is_unsampled = found.transaction && is_number_passed_over(found.transaction->intrinsic);
    if (is_unsampled && !found.carried)
        return false;
    *state = state_of(&found);
    *context = found.carried ? found.carried->contexts[CAME_WITH]
                             : (struct trace_context){.high = control->trace_high,
                                                      .low = control->trace_low,
                                                      .flags = TRACE_SAMPLED};
    context->flags &= TRACE_FLAGS;
    if (is_unsampled)
        return true;
    if (found.transaction && !found.carried)
        context->low = identity_of_span(session.seed, thread->number, found.transaction->call);
    context->parent = found.innermost ? identity_of_span(session.seed, thread->number, found.innermost->call)
                                      : identity_of_span(session.seed, 0, 0);
    return context->high || context->low;
}

/* --- the file */

static bool begin(void)
{
    if (contexts.first || contexts.failed)
        return !contexts.failed;
    contexts.failed = series_create(&contexts.series, session.directory, &data_types[DATA_CONTEXTS], 1) != 0;
    return !contexts.failed;
}

/* The place of the next one: behind the others; where events go round in a ring, that of the oldest. */
static struct kept_context *next_place(void)
{
    if (room_is_ring() && contexts.kept >= IN_A_RING)
        return &contexts.first[contexts.kept % IN_A_RING];
    struct kept_context *place = series_extend(&contexts.series, sizeof *place);
    contexts.first = contexts.first ? contexts.first : place;
    return place;
}

static void keep(const struct thread *thread, uint32_t number, const struct trace_context *context)
{
    struct kept_context *place = room_for_event(thread) && begin() ? next_place() : NULL;
    if (!place)
        return;
    __atomic_store_n(&place->call, 0, __ATOMIC_RELEASE); /* nobody reads one with another's trace */
    place->trace_high = context->high;
    place->trace_low = context->low;
    place->parent = context->parent;
    place->flags = context->flags;
    place->thread = thread->number;
    place->time_ns = clock_ns(CLOCK_MONOTONIC);
    __atomic_store_n(&place->call, number, __ATOMIC_RELEASE);
    contexts.kept++;
}

void trace_context_end(struct thread *thread, uint32_t call, uint32_t number)
{
    struct carried *found = carried_by(thread, call);
    if (!found || session_stopped())
        return;
    struct carried carried = *found;
    empty(found);
    struct reading own = own_begin(thread);
    if (exclusive_begin()) {
        for (int place = 0; place < CONTEXTS_OF_A_CALL && session_is_ours(); place++)
            if (carried.contexts[place].parent)
                keep(thread, number, &carried.contexts[place]);
        exclusive_end();
    }
    own_end(thread, own);
}
