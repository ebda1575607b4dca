#define _GNU_SOURCE
#include "core/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/child_variables.h"
#include "core/dialogue.h"
#include "core/exclusive.h"
#include "core/preload.h"
#include "core/reserve.h"
#include "core/session.h"
#include "core/task_names.h"
#include "core/trace_contexts.h"
#include "core/unmap.h"

const char *recorder_directory(void)
{
    return recorder_is_on() && !session_stopped() && session_is_ours() ? session.directory : NULL;
}

int recorder_series(struct series *series, enum data_number type)
{
    int failed = series_create(series, recorder_directory(), &data_types[type], 1);
    series->keep_windows = true;
    return failed;
}

/* --- the beginning */

static void program_exits(int status, void *nothing)
{
    (void)nothing;
    recorder_end(status & 0xff);
}

static int prepare_once(void)
{
    static bool prepared;
    int failed = exclusive_prepare();
    failed = failed ? failed : session_prepare();
    failed = failed ? failed : threads_prepare();
    if (!failed && !prepared) {
        prepared = true;
        preload_library(); /* looked for now: a call finds it without allocating */
        on_exit(program_exits, NULL);
    }
    return failed;
}

static void take_place(const struct recorder_settings *settings)
{
    snprintf(session.directory, sizeof session.directory, "%s", settings->directory);
    snprintf(session.founder, sizeof session.founder, "%s", settings->founder);
    snprintf(session.lineage, sizeof session.lineage, "%s", settings->lineage);
    session.parent[0] = 0;
    session.process = getpid();
    session.clock = settings->clock;
    session.begun = (struct reading){settings->begun_wall_ns, settings->begun_cpu_ns};
    session_restart();
}

/* What the shims look at. */
static void take_levels(const struct recorder_settings *settings)
{
    recorder.stack_kept = settings->stack_kept;
    recorder.stack_above_ns = settings->stack_kept ? settings->stack_above_ns : UINT64_MAX;
    recorder.native_functions = settings->native_functions;
    recorder.trigger_above_ns = settings->trigger_above_ns;
    recorder.long_ns = recorder.stack_above_ns < recorder.trigger_above_ns ? recorder.stack_above_ns
                                                                           : recorder.trigger_above_ns;
    recorder.trigger_exit = settings->trigger_exit;
    snprintf(recorder.trigger_errors, sizeof recorder.trigger_errors, "%s", settings->trigger_errors);
    recorder.wait_above_ns = settings->wait_above_ns;
    recorder.rows = settings->rows;
    recorder.all_waits = settings->wait_above_ns == 0;
    recorder.governed = 0;
    recorder.interval_ns = 0;
}

static void take_settings(const struct recorder_settings *settings)
{
    take_place(settings);
    take_levels(settings);
    control_forget();
    control_choose_paused(settings->paused);
    files_begin(settings->group_reads);
    reserve_choose(settings->reserve_bytes);
    log_choose_objects(settings->objects);
    room_choose(settings->wait_when_full, settings->ring_bytes);
    interning_choose(settings->ring_bytes);
    usage_choose(settings->sample_every_ns);
    dialogue_choose(settings->dialogue_bytes);
}

static int create_files(struct first_numbers first)
{
    int failed = room_create(session.directory);
    failed = failed ? failed : interning_create(session.directory, first);
    failed = failed ? failed : threads_create(session.directory);
    failed = failed ? failed : usage_create(session.directory);
    children_forget();
    levels_begin();
    task_names_begin();
    trace_contexts_begin();
    dialogue_begin();
    return failed;
}

int recorder_begin_files(struct first_numbers first)
{
    int failed = create_files(first);
    if (failed)
        return failed;
    room_count_in(threads_head());
    control_begin();
    threads_forget();
    usage_begin();
    return threads_begin_main() ? 0 : errno ? errno : ENOMEM;
}

static int begin_files_alone(void)
{
    if (!exclusive_begin())
        return EBUSY;
    int failed = recorder_begin_files((struct first_numbers){1, 1, 1});
    exclusive_end();
    return failed;
}

static void switch_on(void)
{
    session_set_ours();
    session_write_variable();
    session_put_variable();
    recorder.serial++;
    __atomic_store_n(&recorder.on, 1, __ATOMIC_RELEASE);
}

int recorder_begin(const struct recorder_settings *settings)
{
    if (recorder_is_on())
        return EALREADY;
    if (getauxval(AT_SECURE))
        return EPERM;
    take_settings(settings);
    int failed = prepare_once();
    failed = failed ? failed : interning_begin();
    failed = failed ? failed : begin_files_alone();
    if (failed)
        return failed;
    if (session_is_founder()) {
        recorder.control->pool_bytes = settings->pool_bytes;
        recorder.control->limit_bytes = settings->limit_bytes;
        recorder.control->reserve_bytes = reserve_on(session.directory);
    }
    switch_on();
    thread_tell_beginning();
    return 0;
}

int recorder_describe(const char *head, size_t bytes)
{
    int failed = log_describe(head, bytes);
    if (failed)
        return failed;
    control_begin_paused();
    if (exclusive_begin()) {
        session_stop_where_disk_is_low();
        exclusive_end();
    }
    return 0;
}

/* --- calls that are no spans */

void recorder_lose(void)
{
    if (session_is_ours())
        __atomic_add_fetch(&threads_head()->lost, 1, __ATOMIC_RELAXED);
}

void recorder_hush(void)
{
    if (current_thread)
        current_thread->quiet++;
}

static struct child *add_child(const struct child *attempt)
{
    if (!exclusive_begin())
        return NULL;
    struct child *child = children_add(session.directory, attempt);
    if (child && child->how == CHILD_EXEC)
        usage_sample(OVERVIEW_SAMPLE, 0); /* what it uses from then on belongs to the other program */
    if (!child)
        session_stop(errno);
    exclusive_end();
    return child;
}

/* Of this process, in KiB. */
static uint32_t most_memory_kib(void)
{
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) ? 0 : (uint32_t)used.ru_maxrss;
}

struct child *recorder_starts(const struct child *attempt)
{
    struct thread *thread = current_thread;
    if (session_stopped() || !session_is_ours() || !thread_records(thread))
        return NULL;
    struct reading begin = own_begin(thread);
    struct child attempted = *attempt;
    attempted.thread = thread->number;
    attempted.starter_memory_kib = most_memory_kib();
    if (attempted.how == CHILD_EXEC)
        attempted.pid = (uint32_t)session.process;
    struct child *child = add_child(&attempted);
    own_end(thread, begin);
    return child;
}

/* --- the end */

/* Recording has ended. */
static void switch_off(bool process_ends)
{
    for (int step = 0; step < END_STEPS; step++)
        if (recorder.before_end[step])
            recorder.before_end[step]();
    __atomic_store_n(&recorder.on, 0, __ATOMIC_RELEASE);
    bool alone = exclusive_begin(); /* a thread that holds it for ever must not keep the program from ending */
    threads_stop(process_ends);
    if (alone)
        exclusive_end();
}

static void sample_end(int status)
{
    bool alone = exclusive_begin();
    usage_sample(OVERVIEW_END, status);
    if (alone)
        exclusive_end();
}

static void say_end_of_process(int status)
{
    char shown[32];
    if (status > 0 && recorder.trigger_exit)
        recorder_trigger();
    snprintf(shown, sizeof shown, "status=\"%d\"", status);
    sample_end(status);
    log_objects();
    log_ending("exit", shown);
}

void recorder_end(int status)
{
    if (!recorder_is_on() || !session_is_ours())
        return;
    int saved = errno;
    switch_off(status >= 0);
    if (status >= 0) {
        say_end_of_process(status);
    } else {
        log_stopped("as asked");
        variables_forget();
    }
    errno = saved;
}

void recorder_detach(void)
{
    if (!recorder_is_on() || !session_is_ours())
        return;
    int saved = errno;
    switch_off(false);
    log_ending("detached", "");
    variables_forget();
    control_forget();
    children_forget();
    levels_begin();
    task_names_begin();
    trace_contexts_begin();
    retire_files(threads_head());
    threads_forget_head();
    errno = saved;
}
