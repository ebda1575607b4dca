/* What the process and its threads have used: samples of it, taken by whichever thread is next to look; and the governor,
   which looks at the same time. */
#pragma once

#include "core/levels.h"
#include "core/threads.h"

/* Samples are so far apart; UINT64_MAX: only at the beginning and the end. */
void usage_choose(uint64_t every_ns);

/* Create the file. 0 or the error's number. */
int usage_create(const char *directory);

/* Take the first sample. */
void usage_begin(void);

/* Sample the process; its exit status, or the error by which recording stopped. The caller holds the exclusive lock. */
void usage_sample(enum overview_kind kind, int status);

/* When a thread that looks now is to look again, in nanoseconds of the monotonic clock. */
uint64_t usage_next_look_ns(uint64_t now_ns);

/* The next sample is due at the thread's next call. */
void usage_want_sample(struct thread *thread);

/* Sample what the thread and its process have used, where it is time; let the governor look. */
VISIBLE void thread_look(struct thread *thread);

/* Sample now, and have the log say so; `attributes` as they stand in its element. */
VISIBLE void recorder_sample(const char *attributes);

/* From now on what costs too much is lowered. */
VISIBLE void recorder_govern(const struct governor_settings *settings);

/* Count a call that is not timed. */
VISIBLE void recorder_count(struct thread *thread, uint32_t intrinsic);

/* The same, and nothing that is due besides. */
VISIBLE void recorder_count_only(struct thread *thread, uint32_t intrinsic);
