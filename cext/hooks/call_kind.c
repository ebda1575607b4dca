#include "hooks/call_kind.h"

#include <string.h>
#include <sys/wait.h>

#include "cpython/attributes.h"
#include "hooks/answers.h"
#include "hooks/callers.h"
#include "hooks/carried_transactions.h"
#include "hooks/database_server.h"
#include "hooks/file_lock_detail.h"
#include "hooks/idle_descriptors.h"
#include "hooks/object_descriptor.h"

static bool is_generator_of(PyObject *object, const char *name)
{
    PyObject *called = object && PyGen_CheckExact(object) ? generator_name(object) : NULL;
    return called && PyUnicode_CompareWithASCIIString(called, name) == 0;
}

/* Does a command of Redis wait for what others will put there? */
static bool is_blocking_command(PyObject *command)
{
    static const char names[] = "BLPOP\0BRPOP\0BLMOVE\0BRPOPLPUSH\0BLMPOP\0BZPOPMIN\0BZPOPMAX\0BZMPOP\0";
    Py_ssize_t bytes;
    const char *text = bytes_of_text(command, &bytes);
    return text && is_one_of(text, (size_t)bytes, names);
}

static enum kind kind_of_receiver(int number)
{
    const struct descriptor *known = descriptor_known(number);
    struct descriptor now = known ? descriptor_now(known) : (struct descriptor){0};
    bool serves = now.role == ROLE_CONNECTION || now.role == ROLE_LISTENER;
    return serves && is_idle(number, now) ? KIND_idle : KIND_net;
}

/* A call whose answer somebody waits for is not waiting for work: a queue belongs to another thread, a child does
   its part. */
static uint32_t busy_while_serving(const struct slot *slot, uint32_t kind, const struct thread *thread)
{
    bool has_other = slot->numbers > 1 && is_idle_number(slot->intrinsic + kind);
    return has_other && is_serving(thread) ? !kind : kind;
}

/* -1 if it is no whole number, or is too large for one of a process. */
static int number_of_argument(const struct call *call, Py_ssize_t place)
{
    PyObject *number = argument_of(call, place);
    return number && PyLong_Check(number) ? descriptor_of_number(number) : -1;
}

enum { BY_DESCRIPTOR = 3 }; /* P_PIDFD, which glibc has since 2.36 */

/* Who waits for one child needs it; who waits for whichever ends first is a master, and waits for work. */
static enum kind kind_of_wait_for_child(const struct call *call)
{
    if (call->slot->effect != EFFECT_waitid)
        return number_of_argument(call, 0) > 0 ? KIND_process : KIND_idle;
    int way = number_of_argument(call, 0);
    return way == P_PID || way == BY_DESCRIPTOR ? KIND_process : KIND_idle;
}

/* Is it multiprocessing's pool of threads, which has all from the one of processes? */
static bool is_pool_of_threads(PyObject *pool)
{
    for (PyTypeObject *type = pool ? Py_TYPE(pool) : NULL; type; type = type->tp_base)
        if (strcmp(type->tp_name, "ThreadPool") == 0)
            return true;
    return false;
}

/* Whether somebody waits for its result; once that is there it has no pool any more. */
static enum kind kind_of_result(const struct call *call)
{
    PyObject *ways = call->slot->attributes;
    PyObject *pool = call->owner && ways ? attribute_at(call->owner, PyTuple_GET_ITEM(ways, 0)) : NULL;
    bool is_of_threads = is_pool_of_threads(pool);
    Py_XDECREF(pool);
    return is_of_threads ? KIND_sync : KIND_process;
}

enum kind kind_of_poll(const struct thread *thread, uint32_t watcher, bool is_sure)
{
    if (answer_is_awaited(thread->number, KIND_net))
        return KIND_net;
    if (answer_is_awaited(thread->number, KIND_process))
        return awaits_others(watcher, is_sure) ? KIND_net : KIND_process;
    return kind_of_watched(watcher, is_sure);
}

uint32_t number_of_poll(const struct span *span, const struct slot *slot, uint32_t watcher)
{
    uint32_t as_answer = slot->intrinsic + slot->kinds[KIND_net];
    bool is_for_requests = span->intrinsic == as_answer && was_worked_for(span) && !is_serving(span->thread) &&
                           !answer_is_awaited(span->thread->number, KIND_net) && !awaits_others(watcher, false);
    return is_for_requests ? slot->intrinsic + slot->kinds[KIND_idle] : span->intrinsic;
}

bool may_have_awaited_child(const struct span *span, const struct slot *slot)
{
    bool is_answer = slot->kinds[KIND_net] + slot->intrinsic == span->intrinsic;
    return slot->kinds[KIND_process] && (is_idle_number(span->intrinsic) || (is_answer && is_serving(span->thread)));
}

uint32_t number_of_wait(const struct call *call, PyObject *result)
{
    const struct slot *slot = call->slot;
    struct span span = call->span;
    bool is_poll = slot->choice == CHOICE_poll;
    if (is_poll)
        span.intrinsic = number_of_poll(&span, slot, watcher_of(call->owner));
    if (!result || !may_have_awaited_child(&span, slot) || !brings_childs(result))
        return span.intrinsic;
    bool is_for_child = is_poll ? watches_nobody(watcher_of(call->owner)) : selects_nobody(call->arguments, call->count);
    return is_for_child ? slot->intrinsic + slot->kinds[KIND_process] : span.intrinsic;
}

/* The number of waits for another thread of a client, which receives; 0 until there is one. */
static uint32_t wait_for_receiver;

static uint32_t kind_of_wait_for_receiver(const struct slot *slot)
{
    __atomic_store_n(&wait_for_receiver, slot->intrinsic + slot->kinds[KIND_net], __ATOMIC_RELAXED);
    return slot->kinds[KIND_net];
}

/* Is the call made by such a wait? A lock that a client takes itself is no wait for an answer. */
static bool is_of_wait_for_receiver(const struct thread *thread)
{
    uint32_t depth = thread->record->fields.depth;
    return inside(thread, KIND_net) && thread->record->open[depth - 1].intrinsic ==
                                           __atomic_load_n(&wait_for_receiver, __ATOMIC_RELAXED);
}

static uint32_t kind_by_choice(const struct call *call, const struct thread *thread)
{
    const struct slot *slot = call->slot;
    switch ((enum choice)slot->choice) {
    case CHOICE_receive:
        return slot->kinds[kind_of_receiver(call->descriptor)];
    case CHOICE_select:
        return slot->kinds[kind_of_selected(call->arguments, call->count)];
    case CHOICE_outermost:
        return slot->kinds[is_generator_of(argument_of(call, 0), "notifies") ? KIND_idle : KIND_db];
    case CHOICE_blocking:
        return slot->kinds[is_blocking_command(argument_of(call, 0)) ? KIND_idle : KIND_db];
    case CHOICE_poll:
        return slot->kinds[kind_of_poll(thread, watcher_of(call->owner), false)];
    case CHOICE_child:
        return slot->kinds[kind_of_wait_for_child(call)];
    case CHOICE_pool:
        return slot->kinds[kind_of_result(call)];
    case CHOICE_worker:
        if (!slot->lock && slot->kinds[KIND_net] && inside(thread, KIND_net) && is_client_with_receiver())
            return kind_of_wait_for_receiver(slot);
        return slot->kinds[is_worker() ? KIND_idle : KIND_sync];
    case CHOICE_stock:
        return slot->kinds[is_stock(call->span.stack) ? KIND_sync : KIND_idle];
    case CHOICE_queue:
        return subject_of(call) == Py_False || is_stock(call->span.stack);
    default:
        return 0;
    }
}

uint32_t chosen_kind(const struct call *call, const struct thread *thread)
{
    const struct slot *slot = call->slot;
    if (slot->choice == CHOICE_lock && is_lock_command(call))
        return slot->kinds[KIND_sync];
    if (slot->choice == CHOICE_descriptor || slot->choice == CHOICE_lock)
        return kind_of_traffic(slot, descriptor_known(call->descriptor), thread);
    if (slot->kinds[KIND_idle] && inside(thread, KIND_idle))
        return slot->kinds[KIND_idle];
    if (slot->kinds[KIND_db] && inside(thread, KIND_db)) /* how a driver in Python talks to its server */
        return slot->kinds[KIND_db];
    if (slot->kinds[KIND_process] && inside(thread, KIND_process)) /* how it is seen that a child has ended */
        return slot->kinds[KIND_process];
    if (slot->lock && slot->kinds[KIND_net] && is_of_wait_for_receiver(thread))
        return slot->kinds[KIND_net];
    return busy_while_serving(slot, kind_by_choice(call, thread), thread);
}
