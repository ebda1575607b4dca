#define _GNU_SOURCE
#include "core/fork.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/follow.h"
#include "core/open_file.h"
#include "core/recorder.h"
#include "core/session.h"
#include "core/transaction_sampling.h"
#include "core/wiped.h"

/* Of the fork that is under way, where the parent knows of it. The thread's own: while the program's handlers for forks
   run, others may fork. */
static __thread uint32_t fork_number __attribute__((tls_model("initial-exec")));
static __thread uint32_t fork_fate __attribute__((tls_model("initial-exec"))); /* the fate of the transaction around it */

void recorder_tell_fate(void)
{
    if (chosen.outside != FATE_none)
        recorder_say("within", chosen.outside == FATE_kept ? "text=\"kept\"" : "text=\"passed over\"");
}

/* --- in the parent */

/* The lineage of a fork of `parent`; returns its length. */
static int name_fork(char lineage[sizeof session.lineage], const char *parent, unsigned fork)
{
    return snprintf(lineage, sizeof session.lineage, "%s_f%u", parent, fork);
}

static uint32_t count_fork(void)
{
    return __atomic_add_fetch(&threads_head()->forks, 1, __ATOMIC_RELAXED);
}

void recorder_forks(void)
{
    if (!recorder_is_on() || !session_is_ours())
        return;
    fork_number = count_fork();
    fork_fate = chosen.outside;
    if (!current_thread)
        return;
    current_thread->fork = fork_number;
    if (chosen.one_in && thread_records(current_thread))
        fork_fate = chosen_fate(current_thread->record);
}

void recorder_has_forked(void)
{
    fork_number = 0;
}

bool recorder_follows(uint32_t number)
{
    char lineage[sizeof session.lineage];
    return name_fork(lineage, session.lineage, number) < (int)sizeof lineage && follow_matches(lineage);
}

/* --- in the child */

static bool name_child(void)
{
    unsigned fork = fork_number ? fork_number : count_fork();
    fork_number = 0;
    memcpy(session.parent, session.lineage, sizeof session.parent);
    int named = name_fork(session.lineage, session.parent, fork);
    int fits = snprintf(session.directory, sizeof session.directory, "%s/%s.er", session.founder, session.lineage);
    return named < (int)sizeof session.lineage && fits < (int)sizeof session.directory;
}

static void refuse(void)
{
    session_refuse();
    __atomic_store_n(&recorder.on, 0, __ATOMIC_RELAXED);
    if (current_thread)
        current_thread->recording = 0;
}

/* Its files; the child continues its parent's numbers, so the caches stay valid. */
static bool make_subexperiment(void)
{
    if (directory_may_grow(session.founder) || directory_create(session.directory))
        return false;
    if (recorder_begin_files(interning_next()) == 0 && log_begin() == 0)
        return true;
    directory_discard(session.directory);
    return false;
}

static void begin_anew(void)
{
    session.begun = (struct reading){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    session.process = getpid();
    session_restart();
    wiped_begin_child();
    threads_begin_child();
}

bool fork_begin_child(void)
{
    if (session_is_refused())
        return false;
    struct file_head *parents = threads_head(); /* stays mapped */
    enum fate fate = fork_number ? fork_fate : chosen.outside;
    begin_anew();
    bool named = name_child(), followed = named && follow_matches(session.lineage);
    if (!followed || !make_subexperiment()) {
        refuse();
        if (!named || followed)
            __atomic_add_fetch(&parents->unrecorded, 1, __ATOMIC_RELAXED);
        return false;
    }
    session_set_ours();
    chosen_forked(session.lineage, fate);
    control_take_filter();
    session_write_variable();
    recorder_tell_fate();
    return true;
}

void recorder_forked(void)
{
    if (recorder_is_on() && !session_is_ours())
        thread_enter();
}
