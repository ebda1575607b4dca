#include "hooks/callers.h"

#include <string.h>

#include "cpython/attributes.h"
#include "cpython/frame.h"
#include "hooks/call_effects.h"
#include "hooks/descriptors.h"

static bool is_in(frame *frame, const char *file)
{
    Py_ssize_t bytes;
    const char *path = frame ? bytes_of_text(frame_code(frame)->co_filename, &bytes) : NULL;
    return path && strstr(path, file);
}

static bool is_of(frame *frame, const char *function, const char *file)
{
    Py_ssize_t bytes;
    const char *name = frame ? bytes_of_text(frame_code(frame)->co_name, &bytes) : NULL;
    return name && strcmp(name, function) == 0 && is_in(frame, file);
}

static frame *caller_of(frame *called)
{
    return called ? frame_outer(called) : NULL;
}

bool is_feeder(void)
{
    return is_of(frame_innermost(PyThreadState_Get()), "_feed", "multiprocessing/queues.py");
}

static bool is_text_with(PyObject *text, const char *part)
{
    Py_ssize_t bytes;
    const char *found = bytes_of_text(text, &bytes);
    const char *name = found ? strrchr(found, '/') : NULL;
    return found && strcasestr(name ? name : found, part);
}

/* The same rule as in interpose/analysis/time/waits_for_turns.py. */
static bool takes_from_pool(const PyCodeObject *code)
{
    static const char *const takes[] = {"acquire", "get", "connect", "checkout", "take", "borrow"};
    if (!is_text_with(code->co_filename, "pool") && !is_text_with(code->co_qualname, "pool"))
        return false;
    for (size_t place = 0; place < sizeof takes / sizeof *takes; place++)
        if (is_text_with(code->co_name, takes[place]))
            return true;
    return false;
}

bool is_stock(void)
{
    frame *caller = frame_innermost(PyThreadState_Get());
    for (; caller; caller = frame_outer(caller))
        if (is_in(caller, "-packages/")) {
            /* There SQLAlchemy awaits what its pools need in greenlets, of which no frames are on the stack. */
            if (takes_from_pool(frame_code(caller)) || is_of(caller, "greenlet_spawn", "/sqlalchemy/"))
                return true;
        } else if (!is_in(caller, "/asyncio/"))
            return false;
    return false;
}

/* Acknowledgements have no answer (EFFECT_one_way); whatever else was sent last may have one. */
static bool is_answer_due(const struct call *call)
{
    const struct descriptor *known = descriptor_known(descriptor_at_attribute(call));
    return known && __atomic_load_n(&known->last, __ATOMIC_RELAXED) == LAST_SENT;
}

/* pika: `consume` and `start_consuming` wait for nothing else; a program that calls `process_data_events` itself may. */
static bool pika_awaits_deliveries(const struct call *call, frame *caller)
{
    static const char file[] = "pika/adapters/blocking_connection.py";
    if (!is_of(caller, "process_data_events", file))
        return false;
    return is_of(caller_of(caller), "_process_data_events", file) || !is_answer_due(call);
}

/* py-amqp: when it calls `drain_events` itself, it connects, waits for an answer, or looks whether the connection was closed. */
static bool amqp_awaits_deliveries(const struct call *call, frame *caller)
{
    if (!is_of(caller, "blocking_read", "/amqp/connection.py"))
        return false;
    return !is_in(caller_of(caller_of(caller)), "/amqp/") && !is_answer_due(call);
}

bool awaits_deliveries(const struct call *call, const struct thread *thread)
{
    frame *caller = frame_innermost(PyThreadState_Get());
    if (is_serving(thread) || inside(thread, KIND_net))
        return false;
    bool is_loop = is_of(caller, "create_loop", "kombu/asynchronous/hub.py"); /* answers are read where they are asked for */
    return is_loop || pika_awaits_deliveries(call, caller) || amqp_awaits_deliveries(call, caller);
}
