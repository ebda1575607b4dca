/* The recorder: a recording from its beginning to its end. What is done at each call is in core/spans.h. */
#pragma once

#include "core/children.h"
#include "core/control.h"
#include "core/fields.h"
#include "core/fork.h"
#include "core/interning.h"
#include "core/levels.h"
#include "core/log.h"
#include "core/recording.h"
#include "core/room.h"
#include "core/spans.h"
#include "core/usage.h"

struct recorder_settings {
    const char *directory; /* exists */
    const char *founder;   /* the founder's directory, where forked children get theirs */
    const char *lineage;
    enum clock_kind clock;
    uint32_t stack_kept;
    uint64_t stack_above_ns;
    uint64_t wait_above_ns; /* 0: free locks as well */
    uint64_t pool_bytes, limit_bytes; /* of the whole experiment, where this process is its founder */
    uint32_t wait_when_full;
    uint64_t ring_bytes; /* full blocks of each process go round in so much of the disk; 0: none is overwritten */
    uint64_t trigger_above_ns; /* a call so long fires the trigger; UINT64_MAX: none does */
    const char *trigger_errors; /* the names of errors that do, with spaces between them; "*" for all */
    uint32_t trigger_exit; /* an exit status that is not 0 does */
    uint32_t paused; /* nothing is recorded until somebody outside says so, where this process is its founder */
    uint64_t sample_every_ns; /* UINT64_MAX: only at the beginning and the end */
    uint64_t begun_wall_ns; /* since when the time is ours */
    uint64_t begun_cpu_ns;
    uint32_t objects; /* the files that are mapped are noted */
    uint32_t group_reads;
    uint32_t rows;
    uint64_t dialogue_bytes; /* so much of the dialogue is kept; 0: none */
};

/* Begin recording into a directory that was made for it. 0 or the error's number. */
VISIBLE int recorder_begin(const struct recorder_settings *settings);

/* Write log.xml: `head`, the process, the closing tag; and an empty map.xml. Forked children begin theirs with the
   same head. 0 or the error's number. */
VISIBLE int recorder_describe(const char *head, size_t bytes);

/* Create the files of a process whose first numbers these are, and let the calling thread record. 0 or the error's
   number. */
int recorder_begin_files(struct first_numbers first);

/* Where this process is recorded; NULL where it is not, or no longer. */
VISIBLE const char *recorder_directory(void);

/* End of the recording, and of the process with `status` if that is known (>= 0). */
VISIBLE void recorder_end(int status);

/* End of the recording, as somebody outside wants it; the process goes on. Nothing of the files is mapped afterwards. */
VISIBLE void recorder_detach(void);

/* What the calling thread calls from now on is not recorded. */
VISIBLE void recorder_hush(void);

/* Record an attempt to start a process, of the calling thread; NULL where nothing can be recorded. */
VISIBLE struct child *recorder_starts(const struct child *attempt);

/* Count a call of a thread that cannot record. */
VISIBLE void recorder_lose(void);
