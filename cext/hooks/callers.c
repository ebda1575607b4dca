#include "hooks/callers.h"

#include <string.h>

#include "core/installed_names.h"
#include "core/recorder.h"
#include "cpython/attributes.h"
#include "cpython/frame.h"
#include "hooks/call_effects.h"
#include "hooks/database_server.h"
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

/* Threads that wait by locks, conditions and events until they are given work, or until its time has come. */
#define WORKERS(X) \
    X("_feed", "multiprocessing/queues.py", "sends what was put into a queue") \
    X("handler_thread", "/waitress/task.py", "answers requests") \
    X("_work", "/trio/_core/_thread_cache.py", "runs functions") \
    X("_main_loop", "/apscheduler/schedulers/blocking.py", "starts jobs at their times") \
    X("worker", "/opentelemetry/sdk/_shared_internal/", "exports in batches") \
    X("_ticker", "/opentelemetry/sdk/metrics/_internal/export/", "exports at intervals") \
    X("run", "/rich/live.py", "draws at intervals") \
    X("run", "/rich/progress.py", "counts at intervals") \
    X("run", "/tqdm/_monitor.py", "looks at progress bars at intervals")

bool is_worker(void)
{
    frame *caller = frame_innermost(PyThreadState_Get());
    Py_ssize_t bytes;
    const char *name = caller ? bytes_of_text(frame_code(caller)->co_name, &bytes) : NULL;
#define IS_WORKER(function, file, meaning) (strcmp(name, function) == 0 && is_in(caller, file)) ||
    return name && (WORKERS(IS_WORKER) false);
#undef IS_WORKER
}

bool is_client_with_receiver(void)
{
    return is_in(frame_innermost(PyThreadState_Get()), "/grpc/_");
}

/* Whether a word of a list is in a text, in small or capital letters. */
static bool has_word_of(const char *text, const char *words)
{
    for (; *words; words += strlen(words) + 1)
        if (strcasestr(text, words))
            return true;
    return false;
}

static bool is_in_package(const PyCodeObject *code)
{
    Py_ssize_t bytes;
    const char *path = bytes_of_text(code->co_filename, &bytes);
    return path && is_installed_name(path, (size_t)bytes);
}

/* The same rule as in interpose/analysis/time/waits_for_turns.py: workers of a pool wait in its file, too. */
static bool takes_from_pool(const PyCodeObject *code)
{
    static const char taken[] = "acquire\0borrow\0channel\0checkout\0client\0conn\0resource\0session\0";
    static const char work[] = "event\0item\0job\0message\0request\0task\0thread\0work\0";
    static const char plain[] = "do_get\0get\0take\0";
    Py_ssize_t bytes;
    const char *path = bytes_of_text(code->co_filename, &bytes);
    const char *qualified = bytes_of_text(code->co_qualname, &bytes);
    const char *name = bytes_of_text(code->co_name, &bytes);
    if (!path || !qualified || !name)
        return false;
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    if ((!strcasestr(file, "pool") && !strcasestr(qualified, "pool")) || has_word_of(name, work))
        return false;
    if (has_word_of(name, taken))
        return true;
    name += strspn(name, "_");
    return is_one_of(name, strlen(name), plain) && !has_word_of(qualified, work) && !has_word_of(file, work);
}

static bool is_stock_of(frame *caller)
{
    for (; caller; caller = frame_outer(caller))
        if (is_in_package(frame_code(caller))) {
            /* There SQLAlchemy awaits what its pools need in greenlets, of which no frames are on the stack. */
            if (takes_from_pool(frame_code(caller)) || is_of(caller, "greenlet_spawn", "/sqlalchemy/"))
                return true;
        } else if (!is_in(caller, "/asyncio/"))
            return false;
    return false;
}

enum { ANSWERS_KEPT = 256 };

/* By the number of the stack; each holds that number, the recording's serial, and the answer. */
static uint64_t answers[ANSWERS_KEPT];

bool is_stock(uint32_t stack)
{
    uint64_t *kept = &answers[stack % ANSWERS_KEPT], known = __atomic_load_n(kept, __ATOMIC_RELAXED);
    uint64_t asked = (uint64_t)stack << 32 | (uint32_t)(recorder.serial << 1);
    if (LIKELY(stack && (known | 1) == (asked | 1)))
        return known & 1;
    bool answer = is_stock_of(frame_innermost(PyThreadState_Get()));
    if (stack)
        __atomic_store_n(kept, asked | answer, __ATOMIC_RELAXED);
    return answer;
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
