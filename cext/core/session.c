#define _GNU_SOURCE
#include "core/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/child_variables.h"
#include "core/log.h"
#include "core/open_file.h"
#include "core/usage.h"
#include "core/wiped.h"

struct session session;

/* In memory that a forked child finds zeroed. */
static struct identity {
    uint32_t ours;    /* the process began a recording, or its subexperiment */
    uint32_t refused; /* its subexperiment could not be made */
} *identity;

static int stopped;
static char variable[sizeof VARIABLE_LINEAGE + PATH_BYTES + 320]; /* changed in place, for a child may not allocate */

int session_prepare(void)
{
    if (!identity)
        identity = wiped_take(sizeof *identity);
    return identity ? 0 : errno;
}

bool session_is_ours(void)
{
    return identity && __atomic_load_n(&identity->ours, __ATOMIC_ACQUIRE);
}

void session_set_ours(void)
{
    __atomic_store_n(&identity->ours, 1, __ATOMIC_RELEASE);
}

bool session_is_refused(void)
{
    return !identity || __atomic_load_n(&identity->refused, __ATOMIC_RELAXED);
}

void session_refuse(void)
{
    __atomic_store_n(&identity->refused, 1, __ATOMIC_RELAXED);
}

bool session_is_founder(void)
{
    return strcmp(session.directory, session.founder) == 0;
}

int session_stopped(void)
{
    return __atomic_load_n(&stopped, __ATOMIC_RELAXED);
}

void session_restart(void)
{
    __atomic_store_n(&stopped, 0, __ATOMIC_RELAXED);
}

/* Without a lock and without allocating, as strerror may; since glibc 2.32. */
extern const char *strerrordesc_np(int) __attribute__((weak));

const char *error_in_words(int reason)
{
    if (reason == RESERVE_REACHED)
        return "too little disk is free";
    if (strerrordesc_np)
        return strerrordesc_np(reason);
    return reason == ENOSPC ? "No space left on device" : reason == EDQUOT ? "Disk quota exceeded" : "an error of the system";
}

void session_stop(int error)
{
    if (session_stopped())
        return;
    int reason = error ? error : ENOSPC;
    __atomic_store_n(&stopped, reason, __ATOMIC_RELAXED);
    usage_sample(OVERVIEW_STOPPED, reason);
    log_stopped(error_in_words(reason));
}

void session_stop_where_disk_is_low(void)
{
    int failed = directory_may_grow(session.directory);
    if (failed == RESERVE_REACHED)
        session_stop(failed);
}

void session_write_variable(void)
{
    snprintf(variable, sizeof variable, VARIABLE_LINEAGE "=%d %s %s", (int)session.process, session.founder,
             session.lineage);
    variables_name(variable);
}

void session_put_variable(void)
{
    putenv(variable);
}
