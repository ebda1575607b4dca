#define _GNU_SOURCE
#include "core/control.h"

#include <errno.h>

#include "core/document.h"
#include "core/exclusive.h"
#include "core/filter.h"
#include "core/log.h"
#include "core/recorder.h"
#include "core/session.h"

static struct control nobodys; /* where no recording is */
struct recorder recorder = {.control = &nobodys};

static bool paused_at_first; /* not before all is calibrated, which calls shims */

static bool is_set(const uint32_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static void set_heeded(uint64_t said)
{
    __atomic_store_n(&recorder.heeded, said, __ATOMIC_RELAXED);
}

/* --- the page */

void control_forget(void)
{
    recorder.control = &nobodys;
    set_heeded(0);
}

/* A forked child has it mapped; where it cannot be had, a process has its own for itself. */
static struct control *find_page(void)
{
    struct control *ours = (struct control *)(threads_head() + 1);
    if (session_is_founder())
        return ours;
    if (recorder.control != &nobodys)
        return recorder.control;
    struct file_head *founders = file_map_head(session.founder, data_types[DATA_THREADS].name, THREAD_BYTES);
    return founders ? (struct control *)(founders + 1) : ours;
}

static uint32_t filter_changes(void)
{
    return __atomic_load_n(&recorder.control->filter_changes, __ATOMIC_ACQUIRE);
}

void control_begin(void)
{
    recorder.control = find_page();
    set_heeded((uint32_t)said_from_outside() ? LOOKED_AWAY : said_from_outside());
    filter_forget(); /* while all is calibrated */
    filter_take_changes(filter_changes());
}

/* --- pauses */

void control_choose_paused(bool at_first)
{
    paused_at_first = at_first;
}

void control_begin_paused(void)
{
    if (!paused_at_first || !session_is_founder())
        return;
    __atomic_store_n(&recorder.control->paused, 1, __ATOMIC_RELAXED);
    log_event("pause", "why=\"as asked\"");
}

/* Pauses apply to the whole experiment, and the founder's log lists them. The log never claims a longer pause than
   there was: the beginning is written after the last recorded call, and the end before the first. Page and log agree,
   whoever else writes at the same moment. */
void recorder_turn(bool paused)
{
    int saved = errno;
    uint32_t *flag = &recorder.control->paused;
    if (recorder_directory() && paused != is_set(flag)) {
        int held = file_lock(session.founder, "threads");
        if (paused != is_set(flag)) {
            if (paused)
                __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
            log_founder_event(paused ? "pause" : "resume", "");
            __atomic_store_n(flag, paused, __ATOMIC_SEQ_CST);
        }
        file_unlock(held);
    }
    errno = saved;
}

/* --- filters */

void control_take_filter(void)
{
    filter_read(session.founder, session.lineage, filter_changes());
}

static void take_filter(void)
{
    if (!exclusive_begin())
        return;
    control_take_filter();
    exclusive_end();
    if (recorder.filter_changed)
        recorder.filter_changed();
}

/* Another filter is to hold. */
static void heed_filter(void)
{
    struct thread *thread = current_thread;
    bool charged = thread_records(thread);
    if (filter_changes_taken() == filter_changes() || session_stopped() || !session_is_ours())
        return;
    struct reading begin = charged ? own_begin(thread) : (struct reading){0, 0};
    take_filter();
    if (charged)
        own_end_apart(thread, begin);
}

int recorder_filter(const char *text, size_t bytes)
{
    const struct iovec piece = {(void *)(uintptr_t)text, bytes};
    bool founds = bytes && session_is_founder();
    int failed = founds ? file_write(session.directory, "filter", &piece, 1, 0) : 0;
    if (founds && !failed)
        __atomic_store_n(&recorder.control->filter_changes, 1, __ATOMIC_RELEASE);
    take_filter();
    return failed;
}

/* --- all of it, at a call */

bool recorder_heed(void)
{
    uint64_t said = said_from_outside();
    struct thread *thread = current_thread;
    if ((uint32_t)said) {
        set_heeded(LOOKED_AWAY);
        return true;
    }
    if (__atomic_load_n(&recorder.heeded, __ATOMIC_RELAXED) == LOOKED_AWAY && recorder.pause_ended)
        recorder.pause_ended();
    heed_filter();
    if (thread_records(thread)) {
        set_heeded(said);
        usage_want_sample(thread);
    }
    return false;
}

void recorder_trigger(void)
{
    struct control *control = recorder.control;
    __atomic_store_n(&control->trigger_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    __atomic_store_n(&control->trigger_process, (uint32_t)session.process, __ATOMIC_RELAXED);
    __atomic_add_fetch(&control->triggers, 1, __ATOMIC_RELEASE);
}

/* Calls of greenlets take turns, and lie in one another by chance. */
void recorder_trigger_once(struct thread *thread, uint64_t begun_ns)
{
    if (thread->triggered_ns > begun_ns && !thread->greenlet)
        return;
    recorder_trigger();
    thread->triggered_ns = __atomic_load_n(&recorder.control->trigger_ns, __ATOMIC_RELAXED);
}
