/* The session: which process is recorded, where and since when. One at a time; a forked child has its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/clock.h"
#include "core/open_file.h"
#include "core/visible.h"

struct session {
    pid_t process;
    char directory[PATH_BYTES], founder[PATH_BYTES]; /* the founder's is where forked children get theirs */
    char lineage[256], parent[256];
    enum clock_kind clock;
    struct reading begun; /* since when the time is ours */
    uint64_t time_ns;     /* the same by the calendar, as the log has it */
    uint64_t seed;        /* of the identities of its spans (core/trace_identities.h) */
};
VISIBLE extern struct session session;

/* Make what a session needs once in a process. 0 or the error's number. */
int session_prepare(void);

/* Is this the process that the experiment is of, and no child of it? */
VISIBLE bool session_is_ours(void);
void session_set_ours(void);

/* A forked child that could not be given a subexperiment asks for none again. */
bool session_is_refused(void);
void session_refuse(void);

bool session_is_founder(void);

/* The error that ended the recording before the process, or 0. */
int session_stopped(void);
void session_restart(void);

/* Stop recording; the program continues, and its later calls count as dropped. The caller holds the exclusive lock. */
void session_stop(int error);

/* What an error number of the system, or RESERVE_REACHED, means. It takes no lock and allocates nothing. */
const char *error_in_words(int reason);

/* The same, because no more disk space is free than the reserve. */
void session_stop_where_disk_is_low(void);

/* Have this process's children find their place: in its environment, not in the program's mapping. */
void session_write_variable(void);
void session_put_variable(void);
